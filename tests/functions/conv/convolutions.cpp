// no-oclgrind: its kernels are those of the tests of operator conv2d
// Convolutions, unfold and fold beyond the catalogue: unbatched inputs, integers, f16 and bf16, views, errors.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

bool identical(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && values(a) == values(b); }

}  // namespace

TEST_CASE("convolutions: sums of products of a window and a filter") {
    using List = std::vector<double>;
    const Tensor x = tensor({1, 2, 3}, {1, 3}), filter = tensor({1, 10}, {1, 1, 2});
    CHECK(values(conv1d(x, filter)) == List{21, 32});
    CHECK(values(conv1d(x, filter, tensor({100}, {1}))) == List{121, 132});
    CHECK(values(conv1d(x, filter, {}, {.padding = "same"})) == List{21, 32, 3});
    CHECK(values(conv_transpose1d(tensor({1, 2}, {1, 2}), filter)) == List{1, 12, 20});
    CHECK(values(conv_transpose1d(tensor({1, 2}, {1, 2}), filter, {}, {.stride = 2})) == List{1, 10, 2, 20});
    CHECK(values(conv3d(tensor({1, 2, 3, 4}, {1, 2, 1, 2}), tensor({1, 10}, {1, 1, 2, 1, 1}))) == List{31, 42});
    const Tensor columns = unfold(tensor({1, 2, 3, 4, 5, 6}, {1, 2, 3}), {.kernel_size = 2});
    CHECK(values(columns) == List{1, 2, 2, 3, 4, 5, 5, 6});
    CHECK(values(fold(columns, {2, 3}, {.kernel_size = 2})) == List{1, 4, 3, 4, 10, 6});
}

TEST_CASE("convolutions: an unbatched input matches a batch of one") {
    const auto check = [](const char* name, const Shape& shape, const std::function<Tensor(const Tensor&)>& call) {
        CAPTURE(name);
        Tensor x = random_tensor(shape, 1, DType::f32).set_requires_grad(), batch = unsqueeze(x.detach(), 0);
        batch.set_requires_grad();
        const Tensor y = call(x), expected = call(batch);
        CHECK(identical(y, select(expected, 0, 0)));
        sum(square(y)).backward();
        sum(square(expected)).backward();
        CHECK(identical(x.grad(), select(batch.grad(), 0, 0)));
    };
    const Tensor line = random_tensor({4, 2, 3}, 2, DType::f32), image = random_tensor({4, 2, 3, 2}, 3, DType::f32),
                 cube = random_tensor({4, 2, 2, 3, 2}, 4, DType::f32), bias = random_tensor({4}, 5, DType::f32),
                 other = random_tensor({2}, 5, DType::f32);
    check("conv1d", {2, 9}, [&](auto& x) { return conv1d(x, line, bias, {.padding = 1}); });
    check("conv2d", {2, 9, 5}, [&](auto& x) { return conv2d(x, image, bias, {.stride = 2}); });
    check("conv3d", {2, 4, 5, 3}, [&](auto& x) { return conv3d(x, cube, bias); });
    check("conv_transpose1d", {4, 9}, [&](auto& x) { return conv_transpose1d(x, line, other); });
    check("conv_transpose2d", {4, 3, 5}, [&](auto& x) { return conv_transpose2d(x, image, other); });
    check("conv_transpose3d", {4, 3, 2, 3}, [&](auto& x) { return conv_transpose3d(x, cube, other); });
    check("unfold", {2, 5, 4}, [&](auto& x) { return unfold(x, {.kernel_size = 2}); });
    check("fold", {8, 12}, [&](auto& x) { return fold(x, {5, 4}, {.kernel_size = 2}); });
}

TEST_CASE("convolutions: integers are exact") {
    const auto random_integers = [](const Shape& shape, std::uint64_t seed) {
        return (random_tensor(shape, seed, DType::f32) * 20).to(DType::i32);
    };
    const Tensor x = random_integers({2, 4, 6, 5}, 1), weight = random_integers({6, 2, 3, 2}, 2),
                 bias = random_integers({6}, 3);
    const Conv2dParameters options{.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}, .groups = 2};
    const auto real = [](const Tensor& tensor) { return tensor.to(DType::f32); };
    const Tensor y = conv2d(x, weight, bias, options);
    CHECK(y.dtype() == DType::i32);
    CHECK(identical(y, conv2d(real(x), real(weight), real(bias), options)));
    const ConvTranspose2dParameters back{
        .stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
    const Tensor other = random_integers({4, 3, 3, 2}, 4);
    CHECK(identical(conv_transpose2d(x, other, bias, back), conv_transpose2d(real(x), real(other), real(bias), back)));
    const Tensor cube = random_integers({2, 2, 3, 4, 5}, 5), filter = random_integers({3, 2, 2, 2, 3}, 6);
    CHECK(identical(conv3d(cube, filter), conv3d(real(cube), real(filter))));
}

TEST_CASE("conv3d: sum over the planes of its filter, for f16 and bf16 and in views of larger tensors") {
    const Tensor x = random_tensor({3, 6, 5, 7, 4}, 1, DType::f32),
                 weight = random_tensor({4, 6, 3, 2, 2}, 2, DType::f32);
    const Tensor y = conv3d(slice(x, 0, 0, 3, 2), weight, {}, {.stride = {2, 1, 1}, .padding = {1, 0, 0}});
    Tensor expected;
    for (std::int64_t layer = 0; layer < 3; ++layer) {
        std::vector<Tensor> parts;
        for (std::int64_t d = 0; d < 3; ++d) {
            const std::int64_t at = 2 * d + layer - 1;
            const Tensor slab = select(x, 2, std::clamp<std::int64_t>(at, 0, 4)) * (at < 0 || at > 4 ? 0 : 1);
            parts.push_back(conv2d(slice(slab, 0, 0, 3, 2), select(weight, 2, layer)));
        }
        const Tensor all = stack(parts, 2);
        expected = expected.defined() ? expected + all : all;
    }
    CHECK(difference(values(y), values(expected), tolerance(DType::f32, 72)) == "");
    const Tensor y_bf16 = conv3d(x.to(DType::bf16), weight.to(DType::bf16));
    CHECK(y_bf16.dtype() == DType::bf16);
    const auto rounded = [](const Tensor& tensor) { return tensor.to(DType::bf16).to(DType::f32); };
    CHECK(identical(y_bf16, conv3d(rounded(x), rounded(weight)).to(DType::bf16)));  // rounded once, not per plane
    CHECK(conv3d(slice(x, 0, 0, 0), weight).shape() == Shape{0, 4, 3, 6, 3});
    CHECK(conv_transpose3d(slice(x, 0, 0, 0), random_tensor({6, 2, 1, 1, 1}, 3, DType::f32)).shape() ==
          Shape{0, 2, 5, 7, 4});
}

TEST_CASE("fold: the gradient of unfold, and its inverse for windows without overlap") {
    const UnfoldParameters windows{.kernel_size = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .dilation = {2, 1}};
    const Tensor x = random_tensor({2, 3, 6, 7}, 1, DType::f32).set_requires_grad();
    const Tensor columns = unfold(x, windows), g = random_tensor(columns.shape(), 2, DType::f32);
    columns.backward(g);
    CHECK(difference(values(x.grad()), values(fold(g, {6, 7}, windows)), tolerance(DType::f32, 6)) == "");
    const UnfoldParameters tiles{.kernel_size = {2, 7}, .stride = {2, 7}};
    CHECK(identical(fold(unfold(x.detach(), tiles), {6, 7}, tiles), x.detach()));
}

TEST_CASE("convolutions: sizes that overflow are refused by name") {
    constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();
    const Tensor line = ones({1, 1, 9}), weight = ones({1, 1, 3});
    const auto check_error = [](const char* message, auto call) {
        CAPTURE(message);
        CHECK_THROWS_WITH_AS(call(), doctest::Contains(message), ValueError);
    };
    check_error("conv1d: expected numbers up to 2^31 as the padding, got",
                [&] { conv1d(line, weight, {}, {.padding = max_int64}); });
    check_error("conv1d: expected numbers up to 2^31 as the dilation, got",
                [&] { conv1d(line, weight, {}, {.dilation = max_int64}); });
    check_error("conv_transpose1d: expected numbers up to 2^31 as the stride, got",
                [&] { conv_transpose1d(line, weight, {}, {.stride = max_int64}); });
}

TEST_CASE("convolutions: errors") {
    const Tensor line = zeros({1, 2, 5}), image = zeros({1, 2, 5, 5}), cube = zeros({1, 2, 5, 5, 5}),
                 filter = zeros({2, 2, 3, 3, 3});
    const auto begins = [](const char* name, const std::function<void()>& call) {
        CAPTURE(name);
        CHECK_UNARY(error_message<Error>(call).starts_with(std::string(name) + ": expected "));
    };
    begins("conv3d", [&] { (void)conv3d(image, filter); });
    begins("conv3d", [&] { (void)conv3d(cube, zeros({2, 3, 3, 3, 3})); });
    begins("conv3d", [&] { (void)conv3d(cube, filter, zeros({3})); });
    begins("conv3d", [&] { (void)conv3d(cube, filter, {}, {.stride = 0}); });
    begins("conv3d", [&] { (void)conv3d(cube, filter, {}, {.stride = 2, .padding = "same"}); });
    begins("conv3d", [&] { (void)conv3d(cube, filter, {}, {.padding = {1, 2}}); });
    begins("conv3d", [&] { (void)conv3d(cube, filter.to(DType::i32)); });
    begins("conv2d", [&] { (void)conv2d(image, zeros({2, 2, 3, 3}), {}, {.padding = ConvPadding::sides(1, -1)}); });
    begins("conv2d", [&] { (void)conv2d(image > 0, zeros({2, 2, 3, 3}, {DType::boolean})); });
    begins("ConvPadding", [&] { (void)conv2d(image, zeros({2, 2, 3, 3}), {}, {.padding = "full"}); });
    begins("conv_transpose3d", [&] { (void)conv_transpose3d(cube, filter, {}, {.output_padding = 1}); });
    begins("conv_transpose3d", [&] { (void)conv_transpose3d(cube, zeros({3, 2, 1, 1, 1})); });
    begins("conv_transpose1d", [&] { (void)conv_transpose1d(line, zeros({2, 1, 1}), {}, {.padding = 3}); });
    begins("unfold_axis", [&] { (void)unfold_axis(line, 2, 6, 1); });
    begins("unfold_axis", [&] { (void)unfold_axis(line, 2, 2, 0); });
    begins("unfold", [&] { (void)unfold(line, {.kernel_size = 6}); });
    begins("unfold", [&] { (void)unfold(cube, {.kernel_size = 2}); });
    begins("unfold", [&] { (void)unfold(image, {.kernel_size = 0}); });
    begins("fold", [&] { (void)fold(zeros({1, 8, 5}), {3, 3}, {.kernel_size = 2}); });
    begins("fold", [&] { (void)fold(zeros({1, 7, 4}), {3, 3}, {.kernel_size = 2}); });
    CHECK_THROWS_WITH_AS((void)conv_transpose2d(ones({2, 6, 5, 7}), ones({6, 4, 3, 2}), {}, {.groups = 4}),
                         "conv_transpose2d: expected groups that divide the channels of x, got 4 groups for x "
                         "[2, 6, 5, 7]",
                         ValueError);
}
