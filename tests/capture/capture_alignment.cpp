// no-oclgrind: it replays kernels that other tests launch there
//
// Inputs of captured steps with another alignment than the captured ones.
#include <declivity/capture/capture.hpp>

#include <cstdint>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Ten elements at an offset of `before` elements.
Tensor part(std::int64_t before, std::uint64_t seed, DType dtype) {
    return slice(random_tensor({before + 10}, seed, dtype, 0, 50), 0, before, before + 10);
}

}  // namespace

TEST_CASE("capture alignment: inputs of any alignment, whichever was captured") {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i64, DType::u8, DType::boolean})
        for (const std::int64_t captured : {0, 5, 64, 67})
            for (const std::int64_t later : {0, 1, 5, 33, 64, 100}) {
                CAPTURE(name_of(dtype));
                CAPTURE(captured);
                CAPTURE(later);
                const auto function = [](const Tensor& x) { return x.to(DType::f32) * 2 + 1; };
                auto step = capture(function);
                std::uint64_t seed = 1;
                for (const std::int64_t before : {captured, later, captured, later}) {
                    const Tensor x = part(before, seed++, dtype);
                    REQUIRE(values(step(x)) == values(function(x)));
                }
                CHECK(step.replayed() >= 2);
            }
}

TEST_CASE("capture alignment: fresh, empty, strided inputs and own results where a part of a tensor was captured") {
    const Tensor x = random_tensor({40}, 1);
    const auto function = [](const Tensor& t) { return t * 2; };
    auto step = capture(function);
    CHECK(values(step(slice(x, 0, 5, 15))) == values(slice(x, 0, 5, 15) * 2));
    CHECK(values(step(ones({10}))) == std::vector<double>(10, 2));
    CHECK(values(step(slice(x, 0, 1, 40, 4))) == values(slice(x, 0, 1, 40, 4) * 2));
    const Tensor result = step(slice(x, 0, 7, 17)), result_before = result.clone();
    CHECK(values(step(result)) == values(result_before * 2));
    CHECK(values(step(slice(x, 0, 3, 3))).empty());
    CHECK(values(step(slice(x, 0, 9, 9))).empty());
}

TEST_CASE("capture alignment: a step that writes its input writes the tensor that was passed, whatever its strides") {
    auto step = capture([](const std::vector<Tensor>& inputs) {
        const NoGrad no_grad;
        Tensor x = inputs[0];
        x.add_(inputs[1]);
        return std::vector{x * 1};
    });
    for (const std::int64_t before : {3, 3, 0, 8, 64, 3}) {
        CAPTURE(before);
        Tensor base = random_tensor({before + 12}, 5);
        Tensor x = slice(base, 0, before, before + 10);
        const Tensor added = slice(random_tensor({30}, 6), 0, before % 5, before % 5 + 10);
        const auto expected = values(x + added), after_part = values(slice(base, 0, before + 10, before + 12));
        CHECK(values(step({x, added})[0]) == expected);
        CHECK(values(x) == expected);
        CHECK(values(slice(base, 0, before, before + 10)) == expected);
        CHECK(values(slice(base, 0, before + 10, before + 12)) == after_part);
    }
}
