# cmake -DHEADER=<header.hpp> -DNAME=<path in messages> -DOUT=<source.cpp> -P DocExamples.cmake
#
# Makes a test of the examples in the docstrings of a header. An example ends a paragraph of a docstring:
#
#   /// Sum over axes. Example: for x = `[[1, 2], [3, 4]]`, `sum(x)` is `10`; `sum(x, 0)` is `[4, 6]` (columns).
#
# - `EXPRESSION` is `RESULT`: the expression is C++, with all names of the namespace declivity; the result is compared with
#   what tests/examples/examples.hpp makes of its value, white space left out. Text in parentheses may follow.
# - for NAME = `VALUE` and NAME = `VALUE`, ...: variables, for all expressions that follow in the paragraph. A number or a list
#   in brackets is a tensor, of type f32 unless another type precedes the name: "for i64 index = `[0, 2]`". Other values are C++.
# - Several examples are separated by semicolons and end with a full stop.
#
# Everything else after "Example: " or "Examples: " is an error, with the line.
cmake_minimum_required(VERSION 3.25)

cmake_path(GET HEADER STEM stem)
file(READ "${HEADER}" rest)
set(code "")
set(types "^(f32|f64|f16|bf16|i8|u8|i16|u16|i32|u32|i64|u64|bool)$")

# malformed(<what is wrong>): the paragraph at hand.
function(malformed what)
    message(FATAL_ERROR "${NAME}:${begin}: ${what} at \"${text}\"")
endfunction()

# Appends the examples of a paragraph, which is `text`, to `code`.
macro(end_of_paragraph)
    set(names "")
    while(TRUE)
        if("${text}" MATCHES "^for (.*)$")
            set(text "${CMAKE_MATCH_1}")
            while(TRUE)
                if(NOT "${text}" MATCHES "^(([a-z0-9]+) )?([a-z_][a-z0-9_]*) = `([^`]+)`(,| and|, and) (.*)$")
                    malformed("expected NAME = `VALUE` and a comma")
                endif()
                set(type "${CMAKE_MATCH_2}")
                set(name "${CMAKE_MATCH_3}")
                set(value "${CMAKE_MATCH_4}")
                set(text "${CMAKE_MATCH_6}")
                if(type STREQUAL "")
                    set(type f32)
                elseif(NOT type MATCHES "${types}")
                    malformed("unknown type ${type}")
                endif()
                if("${value}" MATCHES "^(\\[.*\\]|-?[0-9][0-9.]*|-?inf|nan|true|false)$")
                    set(value_of_${name} "declivity::test::literal(\"${type}\", \"${value}\")")
                else()
                    set(value_of_${name} "${value}")
                endif()
                list(REMOVE_ITEM names ${name})
                list(APPEND names ${name})
                if("${text}" MATCHES "^`")
                    break()
                endif()
            endwhile()
        endif()
        if(NOT "${text}" MATCHES "^`([^`]+)` is `([^`]+)`( \\([^`()]*\\))?([;.])(.*)$")
            malformed("expected `EXPRESSION` is `RESULT` and a semicolon or a full stop")
        endif()
        set(expression "${CMAKE_MATCH_1}")
        set(result "${CMAKE_MATCH_2}")
        set(after "${CMAKE_MATCH_4}")
        set(text "${CMAKE_MATCH_5}")
        string(APPEND code "    {${begin}, R\"example(${expression})example\", R\"example(${result})example\", [] {\n")
        string(APPEND code "#line ${begin} \"${HEADER}\"\n")
        foreach(name IN LISTS names)
            string(APPEND code "         [[maybe_unused]] auto ${name} = ${value_of_${name}};\n")
        endforeach()
        string(APPEND code "         return declivity::test::shown(${expression});\n     }},\n")
        if(after STREQUAL ".")
            if(NOT text STREQUAL "")
                malformed("expected nothing after the full stop")
            endif()
            break()
        endif()
        if(NOT "${text}" MATCHES "^ (.*)$")
            malformed("expected another example")
        endif()
        set(text "${CMAKE_MATCH_1}")
    endwhile()
endmacro()

set(number 0)
set(inside FALSE)  # whether the last line belongs to an example
while(TRUE)
    string(FIND "${rest}" "\n" end)
    string(SUBSTRING "${rest}" 0 ${end} line)
    math(EXPR number "${number} + 1")
    set(comment "")
    if("${line}" MATCHES "^ */// *(.*)$")
        set(comment "${CMAKE_MATCH_1}")
    endif()
    if(inside AND NOT comment STREQUAL "" AND NOT "${comment}" MATCHES "^@")
        string(APPEND text " ${comment}")
    else()
        if(inside)
            end_of_paragraph()
            set(inside FALSE)
        endif()
        if("${comment}" MATCHES "(^|[.:;)] )Examples?: (.+)$")
            set(inside TRUE)
            set(begin ${number})
            set(text "${CMAKE_MATCH_2}")
        elseif("${comment}" MATCHES "(^|[^a-z])Examples?([^a-z]|$)|` is `")
            set(begin ${number})
            set(text "${comment}")
            malformed("expected 'Example: ' and an example")
        endif()
    endif()
    if(end EQUAL -1)
        break()
    endif()
    math(EXPR next "${end} + 1")
    string(SUBSTRING "${rest}" ${next} -1 rest)
endwhile()

file(WRITE "${OUT}" "// Made from ${NAME}.
#include <declivity/declivity.hpp>
#include <doctest/doctest.h>
#include <tests/examples/examples.hpp>

namespace {
using namespace declivity;

const declivity::test::Examples ${stem}_examples(\"${NAME}\", {
${code}});
}  // namespace
#line 1 \"${OUT}\"
TEST_CASE(\"examples: ${stem}\") { ${stem}_examples.check(); }
")
