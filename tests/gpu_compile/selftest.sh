#!/bin/sh
# selftest.sh CHECK FOLDER: the check passes the correct kernel, and fails each wrong one for the right reason. FOLDER is for the lists.
set -u
check=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)/selftest
mkdir -p "$folder" || exit 2
wrong=0

# expect CODE TEXT ARGUMENT...: the check ends with CODE and its output contains TEXT.
expect() {
    code_wanted=$1 text=$2
    shift 2
    output=$("$check" "$@" 2>&1)
    code=$?
    if [ $code -eq "$code_wanted" ] && printf '%s\n' "$output" | grep -q -- "$text"; then
        echo "as expected: $*: $text"
    else
        printf '%s\n' "$output"
        echo "WRONG: for '$*' it ended with $code, expected $code_wanted and the text '$text' in its output"
        wrong=1
    fi
}

DECLIVITY_CLANG=no-such-compiler expect 77 'SKIPPED: found no clang' "$here/right.cl"
DECLIVITY_LIBCLC=/nonexistent expect 77 'SKIPPED: found no clang' "$here/right.cl"
"$check" --compilers
code=$?
if [ $code -eq 77 ]; then exit $((wrong ? 1 : 77)); fi

expect 0 '1 programs, 1 kernels: 0 faults' "$here/right.cl"
expect 1 'FAILED: spills: gfx906: [0-9]* vector registers spilled' "$here/spills.cl"
expect 1 'FAILED: scratch: gfx906: [0-9]* bytes of scratch memory a work-item' "$here/scratch.cl"
expect 1 'FAILED: broken: does not compile for gfx906: .*no_such_function' "$here/broken.cl"
expect 1 'FAILED: another: there is no kernel of this name in the program' "$here/misnamed.cl"
mkdir -p "$folder/empty"
expect 1 "no .cl file to compile" "$folder/empty"
if "$check" --compilers | grep -q 'for sm_80'; then
    expect 1 'FAILED: spills_more: sm_80: [0-9]* bytes of registers spilled' "$here/spills_more.cl"
    expect 1 'FAILED: scratch: sm_80: [0-9]* bytes of stack a work-item' "$here/scratch.cl"
fi

# The lists: all kernels of the library are compiled or listed, and none is both.
list() {
    printf '%s\n' "$@" >"$folder/list.txt"
}
list 'left_out: a reason'
expect 0 '0 faults' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list '# nothing'
expect 1 'FAILED: left_out: not collected' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list 'left_out: a reason' 'right: a reason'
expect 1 'FAILED: right: listed as only forced, and yet given' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list 'left_out: a reason' 'gone: a reason'
expect 1 'FAILED: gone: listed as only forced, and the library has no such kernel' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list 'left_*: a reason'
expect 0 '0 faults' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list 'left_out: a reason' 'r*: a reason'
expect 1 'FAILED: right: listed as only forced, and yet given' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list 'left_out: a reason' 'gone_*: a reason'
expect 1 'FAILED: gone_.: listed as only forced, and the library has no such kernel' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
list 'left_out: '
expect 1 'FAILED: left_out: listed as only forced without a reason' --library "$here/library" --only-forced "$folder/list.txt" "$here/right.cl"
exit $wrong
