# cmake -DHOW=install|subdirectory -DSOURCE=<project> -DBUILD=<its build> -DFOLDER=<scratch> -DVERSION=<wanted>
#       -DGENERATOR=... -DCOMPILER=... -DTOOLS=ON|OFF -P run.cmake
#
# Builds the consumer program against the installed library or against its sources, and runs it.
cmake_minimum_required(VERSION 3.25)

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "The consumer test (${HOW}) failed with ${code} in: ${command}")
    endif()
endfunction()

set(options -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER})  # no build type: the fastest to compile
if(HOW STREQUAL "install")
    # Nothing of an earlier installation may help.
    file(REMOVE_RECURSE ${FOLDER})
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix)
    list(APPEND options -DCMAKE_PREFIX_PATH=${FOLDER}/prefix)
    if(TOOLS)
        run(${FOLDER}/prefix/bin/declivity --version)
    endif()
else()
    # The build folder stays, so that a second run compiles only what changed.
    list(APPEND options -DDECLIVITY_SOURCE_DIR=${SOURCE})
endif()
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${FOLDER}/build ${options})
run(${CMAKE_COMMAND} --build ${FOLDER}/build --target consumer --parallel 2)
execute_process(COMMAND ${FOLDER}/build/consumer RESULT_VARIABLE code OUTPUT_VARIABLE output)
message("${output}")
if(NOT code EQUAL 0 OR NOT output MATCHES "^declivity ${VERSION}\n\\[2, 3\\]\n")
    message(FATAL_ERROR "The consumer program ended with ${code}; it should have said 'declivity ${VERSION}' and '[2, 3]'.")
endif()
