#!/bin/sh
# run.sh COLLECT CHECK FOLDER LIBRARY LIST: collects the kernels that GPU-like devices may be given in FOLDER and compiles them for GPUs. Exit code 77 where
# there is no compiler for them.
set -u
collect=$1 check=$2 folder=$3 library=$4 list=$5
"$check" --compilers || exit $?
mkdir -p "$folder" || exit 2
"$collect" "$folder" || exit 1
# All programs with DECLIVITY_FULL=1; otherwise each kernel, in a third of its programs.
every=3
[ -z "${DECLIVITY_FULL:-}" ] || every=1
exec "$check" --every "$every" --jobs 2 --library "$library" --only-forced "$list" "$folder/kernels"
