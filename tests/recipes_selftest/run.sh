#!/bin/sh
# run.sh PROGRAM SOURCE FOLDER: follows the recipes of CONTRIBUTING.md in a copy of SOURCE below FOLDER, builds it, and runs
# the tests that they name.
set -eu
program=$1 source=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
for part in CMakeLists.txt CMakePresets.json CHANGELOG.md CONTRIBUTING.md LICENSE README.md bench cl_kernels cmake docs include reference samples src tests tools; do
    cp -r "$source/$part" "$folder/"
done
"$program" "$source/CONTRIBUTING.md" "$folder"
cd "$folder"
cmake --preset dev -D DECLIVITY_BUILD_TOOLS=OFF \
    -D 'DECLIVITY_TEST_FILES=^(ops/engine/elementwise|ops/matmul/matmul|functions/(catalogue|catalogue_table|second_gradients)|functions/reduction/row_rms|nn/layer_scale)[.]cpp' >configure.log 2>&1 || {
    cat configure.log
    exit 1
}
cmake --build build/dev --parallel 2 --target declivity_tests docs_examples xor gpu_compile_collect >build.log 2>&1 || {
    grep -m 20 -B 2 -A 8 'error' build.log || tail -40 build.log
    exit 1
}
export DECLIVITY_CASES=small DECLIVITY_CACHE_DIR="$folder/cache" POCL_SIGFPE_HANDLER=0
tests=build/dev/bin/declivity_tests
$tests --source-file='*ops/engine/elementwise.cpp,*functions/catalogue_table.cpp,*nn/layer_scale.cpp,*reduction/row_rms.cpp'
$tests --source-file='*functions/catalogue.cpp,*functions/second_gradients.cpp'
$tests --test-case='matmul: outer*'
$tests --test-case='matmul: each strategy*' --subcase=outer
build/dev/bin/docs_examples --test-case='examples: math,examples: reduce,examples: every*'
build/dev/bin/xor
