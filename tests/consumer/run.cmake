# cmake -DHOW=... -DSOURCE=<project> -DBUILD=<its build> -DFOLDER=<scratch> -DVERSION=<wanted> -DGENERATOR=... -DCOMPILER=...
#       -DTOOLS=ON|OFF [-DKIND=static|shared] [-DPKG_CONFIG=...] -P run.cmake
#
# Builds the consumer program and runs it. HOW:
#   install       nothing yet: installs the library to FOLDER/both, and to FOLDER/static without the shared one
#   find_package  against what `install` installed, the library of this KIND
#   pkg_config    the same by the compiler alone
#   subdirectory  against the sources, both libraries
#   deb           makes Debian packages and builds against what they hold
cmake_minimum_required(VERSION 3.25)

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "The consumer test (${HOW} ${KIND}) failed with ${code} in: ${command}")
    endif()
endfunction()

# Runs the program and looks at what it says; `shared` tells whether it must be linked with the shared library.
function(check program shared)
    execute_process(COMMAND ${program} ${program}.safetensors RESULT_VARIABLE code OUTPUT_VARIABLE output)
    message("${output}")
    if(NOT code EQUAL 0 OR NOT output MATCHES "^declivity ${VERSION}\n\\[2, 3\\]\n.*saved, loaded and compared\n$")
        message(FATAL_ERROR "${program} ended with ${code}; it should have said 'declivity ${VERSION}', '[2, 3]' and in the end "
                            "'saved, loaded and compared'.")
    endif()
    find_program(READELF readelf)
    if(READELF)
        execute_process(COMMAND ${READELF} -d ${program} OUTPUT_VARIABLE needed)
        string(FIND "${needed}" "libdeclivity" at)
        if(needed MATCHES "NEEDED" AND ((shared AND at EQUAL -1) OR (NOT shared AND NOT at EQUAL -1)))
            message(FATAL_ERROR "${program}: shared is wanted to be ${shared}, and it needs:\n${needed}")
        endif()
    endif()
endfunction()

# All files of include/declivity, and no others, lie in `folder`.
function(compare_headers folder)
    file(GLOB_RECURSE wanted RELATIVE ${SOURCE}/include/declivity ${SOURCE}/include/declivity/*)
    file(GLOB_RECURSE got RELATIVE ${folder} ${folder}/*)
    if(NOT "${wanted}" STREQUAL "${got}")
        message(FATAL_ERROR "Installed are\n${got}\nand not the files of include/declivity,\n${wanted}")
    endif()
endfunction()

# build_with_cmake(<folder> <option>...)
function(build_with_cmake folder)
    # No build type: the fastest to compile.
    run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${folder} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} ${ARGN})
    run(${CMAKE_COMMAND} --build ${folder} --parallel 2)
endfunction()

if(NOT DEFINED KIND)
    set(KIND "")
endif()
set(shared FALSE)
set(tree static)
if(KIND STREQUAL "shared")
    set(shared TRUE)
    set(tree both)
endif()
set(build ${FOLDER}/${HOW})
if(KIND)
    string(APPEND build _${KIND})
endif()

if(HOW STREQUAL "install")
    # Nothing of an earlier installation may help.
    file(REMOVE_RECURSE ${FOLDER}/both ${FOLDER}/static)
    foreach(tree both static)
        run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/${tree})
        compare_headers(${FOLDER}/${tree}/include/declivity)
    endforeach()
    if(TOOLS)
        run(${FOLDER}/both/bin/declivity --version)
    endif()
    # As a build of the static library alone installs it.
    file(GLOB_RECURSE shared_files ${FOLDER}/static/*libdeclivity.so* ${FOLDER}/static/*declivity-shared-targets*.cmake)
    file(GLOB_RECURSE pc ${FOLDER}/static/*/declivity.pc)
    if(NOT shared_files OR NOT pc)
        message(FATAL_ERROR "The installation lacks the shared library ('${shared_files}') or declivity.pc ('${pc}').")
    endif()
    file(REMOVE ${shared_files})
    file(COPY_FILE ${BUILD}/generated/static/declivity.pc ${pc})

elseif(HOW STREQUAL "find_package")
    file(REMOVE_RECURSE ${build})
    # A static library is found where there is no other, or by its name.
    build_with_cmake(${build} -DCMAKE_PREFIX_PATH=${FOLDER}/${tree})
    check(${build}/consumer ${shared})
    if(KIND STREQUAL "static")
        build_with_cmake(${build} -DDECLIVITY_COMPONENTS=static -DCMAKE_PREFIX_PATH=${FOLDER}/both -Ddeclivity_DIR=)
        check(${build}/consumer ${shared})
        execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${build}_refused -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
                                -DDECLIVITY_COMPONENTS=shared -DCMAKE_PREFIX_PATH=${FOLDER}/static
                        RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
        string(REGEX REPLACE "[ \n]+" " " output "${output}")
        if(code EQUAL 0 OR NOT output MATCHES "shared, one is not installed here; static is")
            message(FATAL_ERROR "COMPONENTS shared should have been refused where there is only a static library: ${output}")
        endif()
    endif()

elseif(HOW STREQUAL "pkg_config")
    file(REMOVE_RECURSE ${build})
    file(MAKE_DIRECTORY ${build})
    file(GLOB_RECURSE pc ${FOLDER}/${tree}/*/declivity.pc)
    cmake_path(GET pc PARENT_PATH folder)
    set(ENV{PKG_CONFIG_PATH} ${folder})
    set(more "")
    if(shared)
        cmake_path(GET folder PARENT_PATH libraries)
        set(more -Wl,-rpath,${libraries})
    endif()
    run(${PKG_CONFIG} --print-errors --exists "declivity = ${VERSION}")
    execute_process(COMMAND ${PKG_CONFIG} --cflags declivity OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run(${COMPILER} -std=c++20 ${flags} -c ${SOURCE}/tests/consumer/main.cpp -o ${build}/consumer.o)
    # --static asks for what a static library needs, whether or not a plain --libs says it already.
    foreach(option "" --static)
        execute_process(COMMAND ${PKG_CONFIG} ${option} --libs declivity OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
        message("pkg-config ${option} --libs declivity: ${flags}")
        if(NOT option AND shared AND flags MATCHES "clblast")
            message(FATAL_ERROR "Who links the shared library does not link what it is made of.")
        endif()
        separate_arguments(flags UNIX_COMMAND "${flags}")
        run(${COMPILER} ${build}/consumer.o ${flags} ${more} -o ${build}/consumer)
        check(${build}/consumer ${shared})
    endforeach()
    # Where both are installed, the static one with what --static says.
    if(shared)
        run(${COMPILER} ${build}/consumer.o -Wl,-Bstatic -L${libraries} -ldeclivity -Wl,-Bdynamic ${flags} -Wl,--as-needed -o ${build}/consumer_static)
        check(${build}/consumer_static FALSE)
    endif()

elseif(HOW STREQUAL "subdirectory")
    # The build folder stays, so that a second run compiles only what changed.
    build_with_cmake(${build} -DDECLIVITY_SOURCE_DIR=${SOURCE} -DBUILD_SHARED_LIBS=ON -DDECLIVITY_BUILD_BOTH=ON
                     -DDECLIVITY_PRECOMPILED_HEADERS=ON)  # half of the time
    check(${build}/consumer TRUE)
    check(${build}/consumer_static FALSE)

elseif(HOW STREQUAL "deb")
    file(REMOVE_RECURSE ${build})
    # By their names, and with what they need of each other and of the system.
    run(cpack -G DEB --config ${BUILD}/CPackConfig.cmake -B ${build})
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor ${VERSION})
    foreach(package libdeclivity${minor} libdeclivity-dev declivity)
        file(GLOB file ${build}/${package}_${VERSION}_*.deb)
        if(NOT file)
            message(FATAL_ERROR "There is no package ${package}.")
        endif()
        run(dpkg-deb --info ${file})
        run(dpkg-deb --extract ${file} ${build}/root)
        execute_process(COMMAND dpkg-deb --field ${file} Depends OUTPUT_VARIABLE depends_of_${package})
    endforeach()
    function(needs package)
        foreach(wanted IN LISTS ARGN)
            string(FIND "${depends_of_${package}}" "${wanted}" at)
            if(at EQUAL -1)
                message(FATAL_ERROR "The package ${package} does not depend on ${wanted}, only on ${depends_of_${package}}")
            endif()
        endforeach()
    endfunction()
    needs(libdeclivity${minor} libclblast1 libfmt libpng16-16 libpcre2-8-0 libutf8proc2 zlib1g libopencl1 libstdc++6)
    needs(libdeclivity-dev "libdeclivity${minor} (= ${VERSION})" ocl-icd-opencl-dev libclblast-dev libfmt-dev libpcre2-dev libpng-dev libutf8proc-dev zlib1g-dev)
    needs(declivity libstdc++6)
    compare_headers(${build}/root/usr/include/declivity)
    file(GLOB_RECURSE found RELATIVE ${build}/root/usr ${build}/root/usr/*)
    list(JOIN found "\n" found)
    foreach(wanted "bin/declivity" "/libdeclivity\\.so" "/libdeclivity\\.so\\.${minor}" "/libdeclivity\\.a" "pkgconfig/declivity\\.pc"
                   "doc/declivity/copyright" "doc/libdeclivity${minor}/copyright" "doc/libdeclivity-dev/copyright")
        if(NOT "\n${found}\n" MATCHES "${wanted}\n")
            message(FATAL_ERROR "None of the packages holds ${wanted}. They hold\n${found}")
        endif()
    endforeach()
    build_with_cmake(${build}/consumer -DCMAKE_PREFIX_PATH=${build}/root/usr)
    check(${build}/consumer/consumer TRUE)

else()
    message(FATAL_ERROR "HOW is '${HOW}'.")
endif()
