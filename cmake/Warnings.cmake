# Warnings for the targets of this project alone: a program that takes it in by add_subdirectory keeps its own.
function(declivity_set_warnings target)
    if(MSVC)
        target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${DECLIVITY_WARNINGS_AS_ERRORS}>:/WX>)
    else()
        target_compile_options(${target} PRIVATE
            -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
            $<$<BOOL:${DECLIVITY_WARNINGS_AS_ERRORS}>:-Werror>)
        # GCC 12 reports sums of a temporary std::string and a literal as out of bounds once they are inlined
        # (https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651), those from a precompiled header among them.
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
            target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
        endif()
    endif()
endfunction()
