// Fourier transforms: in one work-group, as passes over memory, by convolutions (Bluestein), of real numbers.
#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void transforms() {
    for (const DType dtype : kReals) {
        for (const std::int64_t n : {840, 8192, 11}) compute(fft::fft(of(dtype, {3, n, 2})));
        compute(fft::fft(of(dtype, {3, 12, 5, 2}), -1, 1));
        compute(fft::rfft(of(dtype, {3, 60})));
        compute(fft::irfft(of(dtype, {3, 31, 2})));
    }
}

const Part part{"fft", transforms};

}  // namespace
