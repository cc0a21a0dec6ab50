# cmake -DTESTS=<declivity_tests> -DFILES=<test sources, by their path below tests/> -P test_sources.cmake
#
# ctest has an entry for each test source, which selects test cases by their file: fails for a test case that is written
# in another file, such as one that a source includes, since no entry would run it.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${TESTS} --list-test-cases --reporters=xml OUTPUT_VARIABLE output RESULT_VARIABLE code)
string(REGEX MATCHALL "filename=\"[^\"]*\"" files "${output}")
if(NOT code EQUAL 0 OR NOT files)
    message(FATAL_ERROR "${TESTS} lists no test cases: ${code}")
endif()
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
