// Random numbers whose parameters are tensors.
#include <declivity/functions/random.hpp>

#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void random_distributions() {
    for (const DType dtype : kReals) {
        const Tensor x = of(dtype, {40, 7});
        compute(poisson(x));
        compute(gamma(x));
        compute(beta(x, x));
        compute(categorical(x));
        compute(multinomial(x, 3, true));
        compute(truncated_normal({41}, 0, 1, -2, 2, {dtype}));
    }
}

const Part part{"random_distributions", random_distributions};

}  // namespace
