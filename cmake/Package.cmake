# cpack makes Debian packages: the shared library, what programs are built with, and the command.
# `cmake --workflow --preset package` does all of it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "Declivity")
set(CPACK_PACKAGE_CONTACT "Declivity developers <declivity@localhost>")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")  # the name of the library changes with the minor version
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# The libraries that a program linked with the static one is linked with, and that declivity.pc names.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "ocl-icd-opencl-dev | opencl-dev, libclblast-dev, libfmt-dev, libpcre2-dev, libpng-dev, libutf8proc-dev, zlib1g-dev")
# After the first line, which is the project's description.
set(about "Declivity is a C++20 library of tensors with automatic differentiation, layers,\noptimizers and a trainer, for GPUs and plain CPUs alike.")

set(runtime_name libdeclivity${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(development_name libdeclivity-dev)
set(tools_name declivity)
set(CPACK_COMPONENTS_ALL "")

# declivity_package(<component> <section> <text>)
macro(declivity_package component section text)
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${${component}_name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${about}\n${text}")
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${CPACK_DEBIAN_${upper}_DESCRIPTION}")
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright EXCLUDE_FROM_ALL
            DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${${component}_name} COMPONENT ${component})
endmacro()

if("shared" IN_LIST kinds)
    declivity_package(runtime libs "\nThis package holds the library that programs need to run.")
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
    string(PREPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime_name} (= ${PROJECT_VERSION}), ")
endif()
declivity_package(development libdevel "\nThis package holds the headers, the libraries to link, and the files that CMake\nand pkg-config read.")
if(DECLIVITY_BUILD_TOOLS)
    declivity_package(tools utils "\nThis package holds the command declivity, which lists devices, reads profiles\nand measures strategies.")
    set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
    if(BUILD_SHARED_LIBS)
        set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${runtime_name} (= ${PROJECT_VERSION})")
        set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
    endif()
    set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
endif()
include(CPack)
