#!/bin/sh
# kernel_macros.sh ROOT: a macro of a kernel file is a constant, a list of parameters or arguments, an expression, or the
# whole definition of functions. One that declares variables of its caller, opens or closes a block, or contains
# statements fails: such kernels cannot be read from top to bottom. So does an always_inline function that returns a struct
# or has a restrict parameter: Oclgrind does not know what the compiler writes there instead. So does a 64-bit variable that
# is a constant in some programs: Mesa 22 drops loops of an int up to a 64-bit constant.
set -eu
cd "$1"
# FILE:MACRO that may contain statements, with the reason. The list may only shrink.
allowed='
doctor_arguments.cl:VALUE lines of a generated list
doctor_arguments.cl:WRITTEN lines of a generated list
'
find cl_kernels -name '*.cl' -o -name '*.clh' | sort | xargs awk -v allowed="$allowed" '
function check(    name, body, opened, closed) {
    body = text
    sub(/^#[ ]*define[ ]+/, "", body)
    match(body, /^[A-Za-z_0-9]+/)
    name = substr(body, 1, RLENGTH)
    body = substr(body, RLENGTH + 1)
    if (substr(body, 1, 1) == "(") sub(/^\([^)]*\)/, "", body)
    gsub(/\/\*[^*]*\*\//, "", body)
    gsub(/\\/, " ", body)
    gsub(/[ \t]+/, " ", body)
    sub(/^ /, "", body)
    opened = gsub(/\{/, "{", body)
    closed = gsub(/\}/, "}", body)
    if (opened == closed && index(body, ";") == 0 && body !~ /^(for|while|if|do|switch)[ (]/) return
    # Definitions and declarations of functions, perhaps by other such macros.
    if (opened == closed && body ~ /^(static|typedef|NOINLINE|__kernel|[A-Z_]*_FN|[A-Z][A-Z_0-9#]*\()/ && body ~ /(\)|\}|;) ?$/ &&
        body !~ /^\{/) return
    if (body ~ /^[A-Z#a-z0-9]+ (BUILTIN|__attribute__)/) return
    file = from
    sub(/.*\//, "", file)
    if (index(allowed, "\n" file ":" name " ")) return
    printf "%s: the macro %s contains statements: make it a function\n", from, name
    failed = 1
}
FNR == 1 { text = "" }
text == "" && /^#[ ]*define/ { text = $0; from = FILENAME; sub(/\/\/.*/, "", text) }
{
    if (text != "") {
        if ($0 !~ /^#[ ]*define/) { line = $0; text = text " " line }
        if ($0 !~ /\\$/) { check(); text = "" }
    }
}
/^(INLINE|static inline __attribute__\(\(always_inline\)\)) / && (/^[^(]*(\(\([^)]*\)\))?[^(]*struct [A-Za-z0-9_]+ [a-z0-9_]+\(/ || /restrict/) {
    printf "%s:%d: an always_inline function that returns a struct or has a restrict parameter: make it static inline\n", FILENAME, FNR
    failed = 1
}
/(long|ulong|size_t) [A-Za-z_0-9]+ = [A-Z][A-Z_0-9]* \? / {
    printf "%s:%d: a 64-bit variable that may be a constant: make it int\n", FILENAME, FNR
    failed = 1
}
END { exit failed }
'
