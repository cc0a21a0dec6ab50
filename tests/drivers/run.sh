#!/bin/sh
# tests/drivers/run.sh [quick] [DRIVER...]
#
# Runs the tests of build/dev on each OpenCL driver of this machine, one at a time, and prints a table. Drivers:
#   pocl        the installed PoCL
#   intel       Intel's runtime for CPUs, from the Python packages intel-opencl-rt and intel-cmplr-lib-rt in build/drivers/intel
#   rusticl     Mesa's rusticl on llvmpipe, or on a GPU where RUSTICL_ENABLE names its Gallium driver
#   oclgrind    Oclgrind's simulated device; its tests are separate entries (label oclgrind)
#   NAME        any other file /etc/OpenCL/vendors/NAME.icd, for example nvidia
# Without names: all available ones. quick: the few most informative entries, with small cases; no Oclgrind, which `./bootstrap test` runs.
# Then runs the same program on each, and compares its results (numbers.cpp).
# `./bootstrap drivers` installs what is missing. Logs and results are kept in build/drivers/NAME.*, the table in build/drivers/table.md.
# Exit status: 0 if nothing failed.
set -eu
cd "$(dirname "$0")/../.."
build=$PWD/build/dev out=$PWD/build/drivers vendors=/etc/OpenCL/vendors
[ -e "$build/CTestTestfile.cmake" ] || { echo "run.sh: build/dev is not built: run ./bootstrap build" >&2; exit 2; }
mkdir -p "$out"

quick=
if [ "${1:-}" = quick ]; then quick=1; shift; fi
quick_entries='runtime.launch runtime.buffer runtime.device runtime.interop runtime.capture ops.elementwise
    ops.elementwise_copies ops.fusion ops.pending ops.reduce ops.softmax ops.gather_weighted_sum ops.philox ops.random
    ops.pool2d ops.multi_tensor ops.cross_entropy functions.shape_functions nn.module train.labels tools.declivity
    sample.softmax_regression'

if [ -n "$quick" ]; then
    known=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p')
    for entry in $quick_entries; do
        echo "$known" | grep -qxF "$entry" || { echo "run.sh: build/dev has no test entry '$entry'" >&2; exit 2; }
    done
    quick_entries="^($(echo $quick_entries | sed 's/[.]/[.]/g; s/ /|/g'))\$"
fi

# Makes the folder of .icd files for a driver, and sets the environment it needs; fails with a reason if it is missing.
prepare() {
    icd=$out/$1.icds
    rm -rf "$icd"
    mkdir -p "$icd"
    unset RUSTICL LIBRARIES
    case $1 in
        intel)
            library=$(find "$out/intel/lib" -maxdepth 1 -name 'libintelocl.so' 2>/dev/null | head -n 1)
            [ -n "$library" ] || { reason="its Python packages are not installed"; return 1; }
            echo "$library" >"$icd/intel.icd"
            LIBRARIES=$out/intel/lib
            ;;
        rusticl)
            [ -e $vendors/rusticl.icd ] || { reason="the package mesa-opencl-icd is not installed"; return 1; }
            cp $vendors/rusticl.icd "$icd"
            RUSTICL=${RUSTICL_ENABLE:-llvmpipe}
            ;;
        oclgrind)
            (cd "$build" && ctest -N -L '^oclgrind$' | grep -q selftest) || { reason="Oclgrind is not installed"; return 1; }
            ;;
        *)
            [ -e "$vendors/$1.icd" ] || { reason="there is no $vendors/$1.icd"; return 1; }
            cp "$vendors/$1.icd" "$icd"
            ;;
    esac
}

# Runs a command on the prepared driver only.
on_driver() { env OCL_ICD_VENDORS="$icd" ${RUSTICL:+RUSTICL_ENABLE="$RUSTICL"} ${LIBRARIES:+LD_LIBRARY_PATH="$LIBRARIES"} "$@"; }

# The entries of a JUnit file with a status: `names FILE run|notrun|fail`.
names() { sed -n 's/.*<testcase name="\([^"]*\)".* status="'"$2"'".*/\1/p' "$1"; }
count() { names "$1" "$2" | wc -l | tr -d ' '; }

drivers="$*"
if [ -z "$drivers" ]; then
    drivers="pocl intel rusticl"
    for file in "$vendors"/*.icd; do
        name=$(basename "$file" .icd)
        # mesa.icd is Clover, which Mesa has dropped.
        case $name in pocl | rusticl | mesa | '*') ;; *) drivers="$drivers $name" ;; esac
    done
    [ -n "$quick" ] || drivers="$drivers oclgrind"
fi

table=$out/table.md
details=$out/details.txt
: >"$details"
{
    echo "| driver | device | version | passed | skipped | failed |"
    echo "| --- | --- | --- | --- | --- | --- |"
} >"$table"
status=0 reference= others=
for driver in $drivers; do
    if ! prepare "$driver"; then
        printf '\n== %s: not here (%s)\n' "$driver" "$reason"
        echo "| $driver | not here: $reason | | | | |" >>"$table"
        continue
    fi
    printf '\n== %s\n' "$driver"
    if [ "$driver" = oclgrind ]; then
        what="-L ^oclgrind$" device="simulated" version=$(oclgrind --version 2>/dev/null | sed -n 's/^Oclgrind *//p' | head -n 1)
    else
        on_driver "$build/bin/declivity" devices || { echo "| $driver | no device | | | | |" >>"$table"; status=1; continue; }
        device=$(on_driver "$build/bin/declivity" devices --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p' | head -n 1)
        version=$(on_driver "$build/bin/declivity" devices --json | sed -n 's/^ *"driver": "\(.*\)",$/\1/p' | head -n 1)
        what="-LE ^(oclgrind|build|consumer|guide|gpu_compile)$"
        [ -z "$quick" ] || what="-R $quick_entries"
    fi
    report=$out/$driver.xml
    rm -f "$report"
    # shellcheck disable=SC2086  # options
    on_driver env ${quick:+DECLIVITY_CASES=small} ctest --test-dir "$build" $what --output-on-failure --output-junit "$report" >"$out/$driver.log" 2>&1 || true
    [ -s "$report" ] || { tail -n 20 "$out/$driver.log"; status=1; continue; }
    failed=$(count "$report" fail)
    echo "| $driver | $device | $version | $(count "$report" run) | $(count "$report" notrun) | $failed |" >>"$table"
    {
        for entry in $(names "$report" fail); do echo "FAILED on $driver: $entry"; done
        for entry in $(names "$report" notrun); do echo "skipped on $driver: $entry"; done
        # Why parts of entries were skipped.
        sed -n 's/.*\(SKIPPED: .*\)$/  \1/p' "$report" | grep -v 'part(s) of this run' | sort | uniq -c | sort -rn
    } >"$out/$driver.txt"
    grep '^FAILED' "$out/$driver.txt" || true
    cat "$out/$driver.txt" >>"$details"
    [ "$failed" = 0 ] || status=1
    [ "$driver" != oclgrind ] || continue
    numbers=$out/$driver.numbers
    rm -f "$numbers"
    if on_driver env DECLIVITY_CACHE_DIR="$build/tests/cache" "$build/bin/declivity_numbers" write "$numbers"; then
        if [ -z "$reference" ]; then reference=$numbers; else others="$others $driver=$numbers"; fi
    else
        echo "FAILED on $driver: declivity_numbers"
        status=1
    fi
done
# Devices of two platforms in one process.
if [ -e "$out/intel.icds/intel.icd" ] && [ -e $vendors/pocl.icd ]; then
    printf '\n== pocl and intel in one process\n'
    icd=$out/several.icds LIBRARIES=$out/intel/lib
    unset RUSTICL
    rm -rf "$icd"
    mkdir -p "$icd"
    cp $vendors/pocl.icd "$out/intel.icds/intel.icd" "$icd"
    on_driver ctest --test-dir "$build" -R '^train\.two_platforms$' --output-on-failure || status=1
fi
printf '\n'
cat "$table"
if [ -n "$others" ]; then
    printf '\nHow far results differ from those of %s (also in %s):\n\n' "$(basename "$reference" .numbers)" "$out/numbers.md"
    # shellcheck disable=SC2086  # a list
    "$build/bin/declivity_numbers" compare "$reference" $others >"$out/numbers.md" || status=1
    cat "$out/numbers.md"
fi
printf '\nWhat failed, what was skipped and why: %s\n' "$details"
exit $status
