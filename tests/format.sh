#!/bin/sh
# tests/format.sh [--fix] FOLDER [CLANG_FORMAT]
#
# Checks the format of C++ and kernels below FOLDER: at most 120 columns, and the layout of clang-format with
# .clang-format. Versions of clang-format differ in details: only version 14 is used. --fix rewrites the files.
# Exit status: 0 all right, 1 differences, 77 only line lengths were checked.
set -eu
fix=
if [ "${1:-}" = --fix ]; then fix=1; shift; fi
[ $# -ge 1 ] || { sed -n '2,6p' "$0" >&2; exit 2; }
cd "$1"
program=${2:-clang-format}
folders="src include cl_kernels reference tests tools bench samples"
# shellcheck disable=SC2086  # a list of names
files=$(find $folders -path tests/embed_selftest/files -prune -o -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cl' -o -name '*.clh' \) -print | sort)
[ -n "$files" ] || { echo "format.sh: there are no sources below $1" >&2; exit 2; }

agrees=77
if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then
    agrees=0
    if [ -n "$fix" ]; then
        echo "$files" | xargs "$program" -i
    else
        echo "$files" | xargs "$program" --dry-run -Werror || agrees=1
    fi
else
    echo "SKIPPED: clang-format 14 is missing"
fi
# Rows of elementwise_table.def are formatted by hand.
long=$(echo "$files include/declivity/ops/elementwise_table.def" | xargs awk 'length > 120 { print FILENAME ":" FNR ": " length " columns" }')
if [ -n "$long" ]; then
    echo "$long"
    echo "FAILED: lines of more than 120 columns"
    exit 1
fi
[ "$agrees" != 1 ] || echo "FAILED: run tests/format.sh --fix ."
exit $agrees
