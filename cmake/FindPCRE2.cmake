# Finds PCRE2 with characters of 8 bits: the target PCRE2::8BIT. Debian's package brings no file for CMake.
include(FindPackageHandleStandardArgs)
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_library(PCRE2_LIBRARY NAMES pcre2-8 pcre2-8-static)
find_package_handle_standard_args(PCRE2 REQUIRED_VARS PCRE2_LIBRARY PCRE2_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "it comes with the package libpcre2-dev (Debian), pcre2-devel (Fedora, openSUSE) or pcre2 (Arch, Homebrew)")
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY)
if(PCRE2_FOUND AND NOT TARGET PCRE2::8BIT)
    add_library(PCRE2::8BIT UNKNOWN IMPORTED)
    set_target_properties(PCRE2::8BIT PROPERTIES
        IMPORTED_LOCATION ${PCRE2_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${PCRE2_INCLUDE_DIR})
endif()
