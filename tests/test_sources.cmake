# cmake -DTESTS=<programs of tests> -DFILES=<test sources, by their path below tests/> -P test_sources.cmake
#
# ctest has an entry for each test source, which selects test cases by their file: fails for a test case that is written
# in another file, such as one that a source includes, since no entry would run it.
cmake_minimum_required(VERSION 3.25)

set(files "")
foreach(program IN LISTS TESTS)
    execute_process(COMMAND ${program} --list-test-cases --reporters=xml OUTPUT_VARIABLE output RESULT_VARIABLE code)
    string(REGEX MATCHALL "filename=\"[^\"]*\"" files_of_program "${output}")
    if(NOT code EQUAL 0 OR NOT files_of_program)
        message(FATAL_ERROR "${program} lists no test cases: ${code}")
    endif()
    list(APPEND files ${files_of_program})
endforeach()
list(REMOVE_DUPLICATES files)
set(wrong "")
foreach(file IN LISTS files)
    string(REGEX REPLACE "^.*[/\"]tests/([^\"]*)\"$" "\\1" path "${file}")
    if(NOT path IN_LIST FILES)
        string(APPEND wrong "\n  ${file}")
    endif()
endforeach()
if(wrong)
    message(FATAL_ERROR "No ctest entry runs the test cases of:${wrong}")
endif()
