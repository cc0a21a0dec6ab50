# cmake -DPAGE=<page.md> -DOUT=<program.cpp> -DFILES=<folder> -P GuidePage.cmake
#
# Makes a program of a page of the guide, so that a test compiles and runs all that the page shows:
# - the ```cpp blocks of a page follow one another in one function, and see each other's variables;
# - a block that begins with struct, class or template stands in front of it, at namespace scope; so does a block
#   with a "void program() {", made of "int main() {", which is called where the block stands;
# - lines with #include move to the top;
# - a ```text block is what the block before it writes to standard output, "..." standing for anything;
# - a ```c block whose first line is "// name.cl" is written to FILES/name.cl.
# Links to files that there are not, and blocks of other kinds (but cmake and sh), are errors. tests/guide/guide.hpp has what the program calls.
cmake_minimum_required(VERSION 3.25)

file(READ "${PAGE}" rest)
cmake_path(GET PAGE FILENAME file)
cmake_path(GET PAGE PARENT_PATH folder)
cmake_path(GET PAGE STEM page)
set(includes "")
set(outside "")
set(inside "")
set(kind "")       # of the block at hand; empty outside of blocks
set(after "text")  # the kind of the last block
set(number 0)

while(NOT rest STREQUAL "")
    string(FIND "${rest}" "\n" end)
    if(end EQUAL -1)
        string(LENGTH "${rest}" end)
        string(APPEND rest "\n")
    endif()
    string(SUBSTRING "${rest}" 0 ${end} line)
    math(EXPR next "${end} + 1")
    string(SUBSTRING "${rest}" ${next} -1 rest)
    math(EXPR number "${number} + 1")

    if(kind STREQUAL "")
        string(REPLACE "](" "<link>" links "${line}")  # lists of CMake's do not bear brackets
        string(REGEX MATCHALL "<link>[^)#: ]+[)#]" links "${links}")
        foreach(link IN LISTS links)
            string(REGEX REPLACE "^<link>(.*).$" "\\1" link "${link}")
            if(NOT EXISTS "${folder}/${link}")
                message(FATAL_ERROR "${PAGE}:${number}: there is no ${link}")
            endif()
        endforeach()
        if("${line}" MATCHES "^ *```(.*)$")
            set(kind "${CMAKE_MATCH_1}")
            set(block "")
            set(begin ${number})
            if(NOT kind MATCHES "^(cpp|text|c|cmake|sh)$")
                message(FATAL_ERROR "${PAGE}:${number}: a block is one of cpp, text, c, cmake and sh, not '${kind}'")
            endif()
        endif()
    elseif("${line}" STREQUAL "```")
        math(EXPR first "${begin} + 1")
        set(place "#line ${first} \"${PAGE}\"\n")
        set(at "guide::block(\"${file}:${begin}\");\n")
        if(kind STREQUAL "cpp")
            if("${block}" MATCHES "(^|\n)int main\\(\\) {")
                string(REPLACE "int main() {" "void program() {" block "${block}")
                string(APPEND outside "namespace program_${begin} {\n${place}${block}}\n")
                string(APPEND inside "${at}program_${begin}::program();\n")
            elseif("${block}" MATCHES "^\n*(struct|class|template) ")
                string(APPEND outside "${place}${block}")
            else()
                string(APPEND inside "${at}${place}${block}")
            endif()
        elseif(kind STREQUAL "text")
            if(NOT after STREQUAL "cpp")
                message(FATAL_ERROR "${PAGE}:${begin}: a text block follows the cpp block that prints it")
            endif()
            string(APPEND inside "guide::printed(\"${file}:${begin}\", R\"guide(${block})guide\");\n")
        elseif(kind STREQUAL "c" AND "${block}" MATCHES "^// ([a-z_]+\\.cl)\n")
            file(WRITE "${FILES}/${CMAKE_MATCH_1}" "${block}")
        endif()
        set(after "${kind}")
        set(kind "")
    elseif(kind STREQUAL "cpp" AND "${line}" MATCHES "^#include")
        string(APPEND includes "${line}\n")
        string(APPEND block "\n")
    else()
        string(APPEND block "${line}\n")
    endif()
endwhile()
if(NOT kind STREQUAL "")
    message(FATAL_ERROR "${PAGE}:${begin}: the block has no end")
endif()

file(WRITE "${OUT}" "// Made from ${PAGE}.
${includes}#include <cstdio>
#include <iostream>
#include <declivity/declivity.hpp>
#include <tests/guide/guide.hpp>

namespace guide_${page} {
using namespace declivity;
${outside}
void all();
void all() {
${inside}}
#line 1 \"${OUT}\"
const guide::Page page(\"${page}\", all);
}
")
