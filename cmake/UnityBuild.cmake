# The sources of a folder are compiled together, some 250 KB at a time: headers, and the templates of the standard library
# that they all instantiate, are compiled once for ten sources or more.
#
# A name in an unnamed namespace is then visible in the other sources of its folder, and of the folders joined with it.
# Sources that use a name for something else (parts of a strategy, which share its namespace and all have a LaunchConfig)
# are compiled alone: SEPARATE lists them, by their names without folders. If a compiler reports the redefinition of such
# a name, or that such a function is unused (calls found an overload in another source), rename one of both, or add the
# source to the list. With the option OFF each source is compiled alone, which suits work on a few of them: after a change
# only that source is compiled.
option(DECLIVITY_UNITY_BUILD "Compile the sources of a folder together, which takes less time" ON)

# GCC 12 needs up to 1.4 GB of memory for such a unit.
set(declivity_bytes_of_unit 250000)

# declivity_unity_build(<target> [JOIN <regex>...] [SEPARATE <name>...]): folders that match the same JOIN are compiled as if
# they were one.
function(declivity_unity_build target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "JOIN;SEPARATE")
    if(NOT DECLIVITY_UNITY_BUILD)
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    list(SORT sources)
    set(missing ${arg_SEPARATE})
    foreach(source IN LISTS sources)
        cmake_path(GET source FILENAME name)
        list(REMOVE_ITEM missing ${name})
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
        cmake_path(GET path PARENT_PATH folder)
        # A generated source has no size yet when a clone is configured first.
        cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} NORMALIZE generated)
        if(generated OR name IN_LIST arg_SEPARATE)
            continue()
        endif()
        cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE group)
        foreach(joined IN LISTS arg_JOIN)
            if(group MATCHES "^(${joined})")
                set(group "${joined}")
                break()
            endif()
        endforeach()
        string(MAKE_C_IDENTIFIER "${group}" group)
        if(NOT DEFINED unit_${group})
            set(unit_${group} 0)
            set(bytes_${group} 0)
        endif()
        file(SIZE ${path} size)
        math(EXPR bytes "${bytes_${group}} + ${size}")
        if(bytes GREATER declivity_bytes_of_unit AND bytes_${group} GREATER 0)
            math(EXPR unit_${group} "${unit_${group}} + 1")
            set(bytes ${size})
        endif()
        set(bytes_${group} ${bytes})
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${group}_${unit_${group}}")
    endforeach()
    if(missing AND NOT DECLIVITY_TEST_FILES)
        message(FATAL_ERROR "declivity_unity_build(${target}): expected names of its sources after SEPARATE, got ${missing}")
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # GCC takes a source that is not compiled alone for a header, where members of unnamed types would differ between units.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
