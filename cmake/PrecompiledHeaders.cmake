# Most of the time of a build goes into reading headers, the same ones for every source: those of the standard library
# alone take a compiler longer than most sources themselves. Here each is read once for a group of targets.
#
# Sources include all that they use nevertheless: a precompiled header may be missing (this option, a compiler that has
# none, a source with flags of its own), and then they must compile all the same. A build with the option OFF says whether
# they do.
#
# A compiler takes a precompiled header for sources with the same flags alone, those for position-independent code,
# optimisation, debugging and the macros that the header looks at. So there is one for each group with the same flags:
# - the library: its runtime has its own, since <CL/opencl.hpp> takes as long as the standard library, and brings static
#   initialisers into each object that includes it, which the other layers have none of (startup.initialisers); and its core,
#   which is optimised more than other layers;
# - programs as users write them: samples, pages of the guide, peers;
# - programs that reach into the library: its command, the benchmark;
# - tests, those that are optimised and those that are not.
option(DECLIVITY_PRECOMPILED_HEADERS "Read the headers that most sources include once, not for each source" ${PROJECT_IS_TOP_LEVEL})

set(declivity_std_headers
    <algorithm> <array> <atomic> <bit> <cmath> <concepts> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring> <filesystem> <fstream> <functional>
    <initializer_list> <iterator> <limits> <map> <memory> <mutex> <numbers> <numeric> <optional> <set> <span> <sstream> <string> <string_view>
    <thread> <tuple> <type_traits> <unordered_map> <utility> <variant> <vector>)
# Headers that most sources of the library and of the tests include, those of all functions among them: a change there builds
# everything again, as a change of tensor.hpp does.
set(declivity_tensor_headers
    <declivity/runtime/error.hpp> <declivity/runtime/scope.hpp> <declivity/autograd/autograd.hpp> <declivity/functions/functions.hpp>
    <declivity/tensor/creation.hpp> <declivity/tensor/tensor.hpp>)

# declivity_precompile(<target> <header>...)
function(declivity_precompile target)
    if(DECLIVITY_PRECOMPILED_HEADERS)
        target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
endfunction()

# declivity_join_group(<group> <target>...): targets with the same flags and the same precompiled header.
# The target `declivity_pch_<group>` holds it, so that no program waits for another one.
#   programs   what users write, and peers: <declivity/declivity.hpp>, and CLI11 where it is installed. They compute little on
#              the host, and so are not optimised in builds for work on the library
#   internals  programs that reach into the library: what its own sources include most
function(declivity_join_group group)
    if(group STREQUAL "programs" AND CMAKE_BUILD_TYPE STREQUAL "Dev" AND NOT MSVC)
        set(flags -O0 -g0)
    else()
        set(flags "")
    endif()
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE ${flags})
    endforeach()
    if(NOT DECLIVITY_PRECOMPILED_HEADERS)
        return()
    endif()
    set(holder declivity_pch_${group})
    if(NOT TARGET ${holder})
        set(source ${PROJECT_BINARY_DIR}/generated/${holder}.cpp)
        file(CONFIGURE OUTPUT ${source} CONTENT "// Exists for its precompiled header.\n" @ONLY)
        add_library(${holder} OBJECT EXCLUDE_FROM_ALL ${source})
        set_target_properties(${holder} PROPERTIES CXX_EXTENSIONS OFF)
        target_compile_options(${holder} PRIVATE ${flags})
        declivity_set_warnings(${holder})
        target_link_libraries(${holder} PRIVATE declivity::declivity)
        if(group STREQUAL "programs")
            set(more <declivity/declivity.hpp>)
            if(TARGET CLI11::CLI11)
                target_link_libraries(${holder} PRIVATE CLI11::CLI11)
                list(PREPEND more <CLI/CLI.hpp>)
            endif()
        else()
            declivity_use_internals(${holder})
            set(more <fmt/format.h> ${declivity_tensor_headers})
        endif()
        target_precompile_headers(${holder} PRIVATE ${declivity_std_headers} ${more})
    endif()
    foreach(target IN LISTS ARGN)
        target_precompile_headers(${target} REUSE_FROM ${holder})
    endforeach()
endfunction()
