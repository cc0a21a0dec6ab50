# cmake -DSOURCE=<project> -DFOLDER=<scratch> -DCOMPILER=... -P presets_selftest.cmake
#
# The preset `release` builds only the library and its tool, `samples` and `bench` are built on request, and all
# other presets are valid. Nothing is compiled.
cmake_minimum_required(VERSION 3.25)
find_program(NINJA ninja)
if(NOT NINJA)
    message("SKIPPED: the presets need Ninja")
    return()
endif()
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} --preset release -B ${FOLDER} -DCMAKE_CXX_COMPILER=${COMPILER} -DDECLIVITY_UNITY_BUILD=OFF
                WORKING_DIRECTORY ${SOURCE} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

# The compile and link commands of a target.
function(commands_of target variable)
    execute_process(COMMAND ${NINJA} -C ${FOLDER} -t commands ${target} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
    set(${variable} "${output}" PARENT_SCOPE)
endfunction()
function(expect target)
    commands_of(${target} commands)
    foreach(expected IN LISTS ARGN)
        string(REGEX REPLACE "^!" "" pattern "${expected}")
        string(FIND "${commands}" "${pattern}" at)
        if((expected MATCHES "^!" AND NOT at EQUAL -1) OR (NOT expected MATCHES "^!" AND at EQUAL -1))
            message(FATAL_ERROR "With the preset release the target ${target} should build: ${ARGN}, where ! means not. It would run\n${commands}")
        endif()
    endforeach()
endfunction()
# The tool computes cases of the tests, with their support code.
expect(all src/tensor/tensor.cpp tools/declivity/main.cpp libdeclivity !${SOURCE}/samples/ !${SOURCE}/bench/ !${SOURCE}/tests/main.cpp
       !${SOURCE}/tests/runtime/ !${SOURCE}/tests/tensor/)
expect(demo src/tensor/tensor.cpp samples/demo.cpp !samples/mlp.cpp !tools/declivity/main.cpp)
expect(samples samples/demo.cpp samples/mnist.cpp !${SOURCE}/bench/ !${SOURCE}/tests/)
expect(bench bench/declivity_bench/main.cpp !samples/demo.cpp)

# Installed generated files exist.
file(READ ${FOLDER}/cmake_install.cmake made)
string(REGEX MATCHALL "${FOLDER}/generated/[^\"]*" made "${made}")
list(FILTER made INCLUDE REGEX "(Config|\\.pc)")
list(LENGTH made count)
if(count LESS 3)
    message(FATAL_ERROR "cmake --install takes only these from ${FOLDER}/generated: ${made}")
endif()
foreach(file IN LISTS made)
    if(NOT EXISTS ${file})
        message(FATAL_ERROR "cmake --install needs ${file}, which does not exist.")
    endif()
endforeach()

# The build presets of README and docs.
execute_process(COMMAND ${CMAKE_COMMAND} --list-presets=all WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE presets COMMAND_ERROR_IS_FATAL ANY)
foreach(preset release release-tests dev asan package samples bench)
    if(NOT presets MATCHES "\"${preset}\"")
        message(FATAL_ERROR "There is no preset ${preset}: ${presets}")
    endif()
endforeach()
