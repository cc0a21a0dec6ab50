# Puts the text of every kernel file into the library, in plain CMake.
#
# Included: defines declivity_embed_kernels(<target> <folder>), which compiles a generated source into <target> and
# regenerates it when a file in <folder> changes, appears or disappears.
# Run (cmake -DLIST=... -DFOLDER=... -DOUTPUT=... -P EmbedKernels.cmake): writes that source. LIST is a file with one path a line.
# Kernels include each other, and are named, by file name alone: no two may have the same.
#
# The text travels as numbers, byte by byte: string literals have length limits, and raw ones end at a delimiter that
# a kernel might contain.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(DECLIVITY_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

    function(declivity_embed_kernels target folder)
        file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${folder}/*.cl ${folder}/*.clh)
        list(SORT kernels)
        set(list_file ${PROJECT_BINARY_DIR}/generated/${target}_kernels.txt)
        set(output ${PROJECT_BINARY_DIR}/generated/${target}_kernels.cpp)
        # A file that goes away changes no dependency's date; it does change this list.
        string(JOIN "\n" list_text ${kernels})
        file(CONFIGURE OUTPUT ${list_file} CONTENT "${list_text}\n" @ONLY)
        add_custom_command(
            OUTPUT ${output}
            COMMAND ${CMAKE_COMMAND} -DLIST=${list_file} -DFOLDER=${folder} -DOUTPUT=${output} -P ${DECLIVITY_EMBED_SCRIPT}
            DEPENDS ${kernels} ${list_file} ${DECLIVITY_EMBED_SCRIPT}
            COMMENT "Embedding the kernels of ${folder}"
            VERBATIM)
        target_sources(${target} PRIVATE ${output})
    endfunction()
    return()
endif()

file(STRINGS ${LIST} kernels)
set(arrays "")
set(rows "")
set(index 0)
foreach(kernel IN LISTS kernels)
    cmake_path(GET kernel FILENAME name)
    cmake_path(RELATIVE_PATH kernel BASE_DIRECTORY ${FOLDER} OUTPUT_VARIABLE path)
    if(DEFINED path_of_${name})
        message(FATAL_ERROR "EmbedKernels: two kernel files have the same name: ${path_of_${name}} and ${path}")
    endif()
    set(path_of_${name} ${path})
    file(READ ${kernel} bytes HEX)
    file(SIZE ${kernel} size)
    # '\x41' has type char whatever its sign, so bytes above 127 do not narrow.
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND arrays "constexpr char text_${index}[] = {  // ${path}\n    ${bytes}'\\0'};\n\n")
    string(APPEND rows "    {\"${name}\", \"${path}\", {text_${index}, ${size}}},\n")
    math(EXPR index "${index} + 1")
endforeach()
# An array of no elements is not C++; one spare row keeps a library without kernels well formed.
file(WRITE ${OUTPUT} "// Made by cmake/EmbedKernels.cmake from the files in cl_kernels/.
#include <runtime/embedded_kernels.hpp>

namespace declivity::detail {
namespace {

${arrays}constexpr EmbeddedKernel kKernels[] = {
${rows}    {},
};

}  // namespace

std::span<const EmbeddedKernel> embedded_kernels() { return {kKernels, ${index}}; }

}  // namespace declivity::detail
")
