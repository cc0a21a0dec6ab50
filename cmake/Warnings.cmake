# Warnings for the targets of this project alone: a program that takes it in by add_subdirectory keeps its own.
function(declivity_set_warnings target)
    if(MSVC)
        target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${DECLIVITY_WARNINGS_AS_ERRORS}>:/WX>)
    else()
        target_compile_options(${target} PRIVATE
            -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
            $<$<BOOL:${DECLIVITY_WARNINGS_AS_ERRORS}>:-Werror>)
    endif()
endfunction()
