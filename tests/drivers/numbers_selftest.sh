#!/bin/sh
# numbers_selftest.sh NUMBERS FOLDER: a driver agrees with itself bit for bit, its two kernel styles agree within rounding, and another seed is detected.
set -eu
numbers=$1 folder=$2
mkdir -p "$folder"
"$numbers" write "$folder/one"
"$numbers" write "$folder/again"
"$numbers" write "$folder/other" 21
"$numbers" compare "$folder/one" again="$folder/again" >"$folder/again.txt" || { cat "$folder/again.txt"; exit 1; }
if grep -v -e ' results | equal |$' -e '^| --- ' -e '| again |$' -e '^$' "$folder/again.txt"; then
    echo "WRONG: the same seed on the same driver gives other numbers"
    exit 1
fi
if "$numbers" compare "$folder/one" other="$folder/other" >"$folder/other.txt"; then
    cat "$folder/other.txt"
    echo "WRONG: another seed is not detected"
    exit 1
fi
grep -q '^| uniform | \*\*[0-9]* of 12297 differ\*\* |$' "$folder/other.txt" || { echo "WRONG: no line for uniform"; exit 1; }
grep -q '^WRONG: ' "$folder/other.txt"
# The other kernel style; if a driver cannot run it, its own again.
DECLIVITY_KERNEL_STYLE=simt "$numbers" write "$folder/gpu"
"$numbers" compare "$folder/one" gpu="$folder/gpu" || exit 1
