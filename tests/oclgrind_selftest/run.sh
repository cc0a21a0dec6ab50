#!/bin/sh
# run.sh OCLGRIND FOLDER PROGRAM: oclgrind.sh passes the correct kernel, and fails each wrong one for the right reason.
set -u
oclgrind=$1 folder=$2 program=$3
script=$(dirname "$0")/../oclgrind.sh
wrong=0

# check CODE TEXT SCRIPT-OPTIONS FAULT: the script ends with CODE and its output contains TEXT.
check() {
    # shellcheck disable=SC2086  # options, or none
    output=$("$script" $3 "$oclgrind" "$folder" "$program" "$4" 2>&1)
    code=$?
    if [ $code -eq "$1" ] && printf '%s\n' "$output" | grep -q -- "$2"; then
        echo "as expected: $4 $3"
    else
        printf '%s\n' "$output"
        echo "WRONG: for '$4' oclgrind.sh ended with $code, expected $1 and the text '$2' in its output"
        wrong=1
    fi
}

markers=$folder.markers
mkdir -p "$markers" || exit 2
echo '// no-oclgrind: a reason' >"$markers/skipped.cpp"
echo '// oclgrind-api-errors: a reason' >"$markers/api.cpp"
echo 'no marker' >"$markers/plain.cpp"

check 0 'Oclgrind Simulator' "" right
check 1 'data race at' "" race
check 1 'Invalid read of size' "" bounds
check 1 'uninitialized value' "" uninitialized
check 1 'FAILED: Oclgrind refused an OpenCL call' "" api
check 1 'FAILED: Oclgrind refused an OpenCL call' "-s $markers/plain.cpp" api
check 0 'OpenCL runtime error detected' "-s $markers/api.cpp" api
check 1 'data race at' "-s $markers/api.cpp" race
check 3 'Oclgrind Simulator' "" exit
check 77 'SKIPPED: a reason' "-s $markers/skipped.cpp" race
exit $wrong
