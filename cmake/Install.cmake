# Installs the library, its headers, and what find_package(declivity CONFIG) and pkg-config read. The components are
# `runtime` (what a program linked with the shared library needs to run), `development` and `tools`.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/declivity)

# The static and the shared library may lie in one folder: each is described by a file of its own, from which
# declivityConfig.cmake chooses.
foreach(kind IN LISTS kinds)
    install(TARGETS ${target_of_${kind}} EXPORT declivity_${kind}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
            RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
    install(EXPORT declivity_${kind} NAMESPACE declivity:: FILE declivity-${kind}-targets.cmake
            DESTINATION ${package_dir} COMPONENT development)
endforeach()

# All files, whatever they are called: a header may include any of them.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/declivity ${declivity_deprecated_include}/declivity
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/declivityConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/generated/declivityConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/declivityConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/declivityConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/declivityConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindPCRE2.cmake ${PROJECT_SOURCE_DIR}/cmake/Findutf8proc.cmake
        DESTINATION ${package_dir} COMPONENT development)

# For pkg-config. What only a static library needs of its users is private, given by --static; where there is no shared
# library everybody needs it. The file finds its folder by itself, so that the whole tree may be moved.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_prefix)
    string(PREPEND pc_prefix "\${pcfiledir}/")
endif()
foreach(folder INCLUDEDIR LIBDIR)
    set(pc_${folder} ${CMAKE_INSTALL_${folder}})
    if(NOT IS_ABSOLUTE "${pc_${folder}}")
        string(PREPEND pc_${folder} "\${prefix}/")
    endif()
endforeach()
set(pc_needs "clblast, OpenCL, fmt, libpcre2-8, libpng, libutf8proc, zlib")
foreach(kind IN LISTS kinds)
    set(pc_cflags "")
    if(kind STREQUAL "shared")
        set(pc_more "Requires.private: ${pc_needs}\nLibs: -L\${libdir} -ldeclivity\nLibs.private: -pthread")
        if(WIN32)
            set(pc_cflags " -DDECLIVITY_SHARED")
        endif()
    else()
        set(pc_more "Requires: ${pc_needs}\nLibs: -L\${libdir} -ldeclivity -pthread")
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/cmake/declivity.pc.in ${PROJECT_BINARY_DIR}/generated/${kind}/declivity.pc @ONLY)
endforeach()
set(pc_kind static)
if("shared" IN_LIST kinds)
    set(pc_kind shared)
endif()
install(FILES ${PROJECT_BINARY_DIR}/generated/${pc_kind}/declivity.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
