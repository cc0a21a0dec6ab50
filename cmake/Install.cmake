# Installs the library, its headers and what find_package(declivity CONFIG) reads.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/declivity)

install(TARGETS declivity EXPORT declivity
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/declivity DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp)
install(EXPORT declivity NAMESPACE declivity:: FILE declivityTargets.cmake DESTINATION ${package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/declivityConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/generated/declivityConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/declivityConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/declivityConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/declivityConfigVersion.cmake
        DESTINATION ${package_dir})
