#!/bin/sh
# run.sh COLLECT CHECK FOLDER LIBRARY LIST: collects the kernels that simt devices may use in FOLDER and compiles them for GPUs. Exit code 77 without a
# GPU compiler.
set -u
collect=$1 check=$2 folder=$3 library=$4 list=$5
"$check" --compilers || exit $?
mkdir -p "$folder" || exit 2
# Two processes, since each builds kernels on one core.
half="convolutions elementwise linalg places pools sorts"
# shellcheck disable=SC2086  # a list of names
"$collect" "$folder/1" $half &
# shellcheck disable=SC2086
"$collect" "$folder/2" --but $half || exit 1
wait $! || exit 1
# All programs with DECLIVITY_FULL=1; otherwise each kernel in a sixth of its programs. This runs in every eighth turn:
# those have all sixths.
every=6
turn=${DECLIVITY_TURN:-0}
[ -z "${DECLIVITY_FULL:-}" ] || every=1
exec "$check" --every "$every" --from "$((turn / 8))" --jobs 2 --library "$library" --only-forced "$list" "$folder/1/kernels" "$folder/2/kernels"
