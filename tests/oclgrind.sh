#!/bin/sh
# oclgrind.sh [-s SOURCE] OCLGRIND FOLDER PROGRAM [ARGUMENT...]
#
# Runs PROGRAM on Oclgrind's simulated device and passes without findings: exit code 0, an empty log and no refused
# OpenCL call. (Oclgrind itself does not change the exit code, and writes refused calls to stderr, not to the log.)
# FOLDER is emptied and gets the log and the caches of the run.
#   -s SOURCE  source file of the test; it may have one of these lines:
#                // no-oclgrind: REASON            it does not run here; exit code 77, which ctest shows as Skipped
#                // oclgrind-api-errors: REASON    it provokes refused OpenCL calls on purpose
set -u
source=
while getopts s: option; do
    case $option in
        s) source=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
oclgrind=$1 folder=$2
shift 2

marker() { [ -n "$source" ] && sed -n "s|^// $1: *\(..*\)|\1|p" "$source"; }
reason=$(marker no-oclgrind)
if [ -n "$reason" ]; then
    echo "SKIPPED: $reason"
    exit 77
fi

rm -rf "$folder"
mkdir -p "$folder/cache" || exit 2
log=$folder/log errors=$folder/stderr
# Created here, because Oclgrind continues without a log if it cannot create one.
: >"$log" || { echo "oclgrind.sh: cannot write $log" >&2; exit 2; }

DECLIVITY_POOL=exact DECLIVITY_CASES=small DECLIVITY_CACHE_DIR=$folder/cache \
    "$oclgrind" --log "$log" --data-races --uninitialized --check-api --max-errors 50 --num-threads 1 --build-options -cl-opt-disable "$@" 2>"$errors"
code=$?
cat "$errors" >&2

if [ -s "$log" ]; then
    head -n 80 "$log"
    echo "FAILED: Oclgrind found errors; see the first lines of $log above." >&2
    exit 1
fi
if [ -z "$(marker oclgrind-api-errors)" ] && grep -q 'OpenCL runtime error detected' "$errors"; then
    echo "FAILED: Oclgrind refused an OpenCL call, see above." >&2
    exit 1
fi
exit $code
