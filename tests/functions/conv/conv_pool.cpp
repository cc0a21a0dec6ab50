// no-oclgrind: its kernels are those of the tests of convolutions, pooling and sums of rows
// Convolutions, padding and pooling beyond the catalogue: indices of maxima, unbatched inputs, integers, f16 and bf16,
// errors.
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// For each window of a plane (D, H, W) the first of its largest elements, as d * H * W + h * W + w.
std::vector<double> first_largest(const std::vector<double>& x, const Shape& from, const Shape& out, const Dims& kernel,
                                  const Dims& stride, const Dims& padding, const Dims& dilation) {
    std::vector<double> indices;
    const std::int64_t plane = from[2] * from[3] * from[4];
    for_each_index(out, [&](const Dims& at) {
        std::int64_t best = -1;
        const std::int64_t base = (at[0] * from[1] + at[1]) * plane;
        for_each_index(kernel, [&](const Dims& tap) {
            std::int64_t index = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const std::int64_t coordinate =
                    at[2 + axis] * stride[axis] - padding[axis] + tap[axis] * dilation[axis];
                if (coordinate < 0 || coordinate >= from[2 + axis]) return;
                index = index * from[2 + axis] + coordinate;
            }
            const auto value = [&](std::int64_t i) { return x[static_cast<std::size_t>(base + i)]; };
            if (best < 0 || value(index) > value(best)) best = index;
        });
        indices.push_back(static_cast<double>(best));
    });
    return indices;
}

/// Few distinct values, so that there are ties.
Tensor with_ties(const Shape& shape, DType dtype) {
    std::vector<float> values;
    for (const double random_value : random_values(shape.numel(), 7, 0, 4))
        values.push_back(static_cast<float>(std::floor(random_value)));
    return Tensor::from(values, shape).to(dtype);
}

bool same(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && values(a) == values(b); }

}  // namespace

TEST_CASE("max_pool: indices of the maxima, the first of equal ones") {
    const Shape from{2, 2, 5, 6, 7};
    struct Windows {
        Pool3dParameters options;
        Shape out;
    };
    for (const DType dtype : {DType::f32, DType::f16, DType::i32, DType::u8}) {
        CAPTURE(name_of(dtype));
        const Tensor x = with_ties(from, dtype);
        const auto plain = values(x.to(DType::f32));
        for (const auto& [options, out] :
             {Windows{{.kernel_size = {2, 3, 2}, .stride = {2, 1, 2}}, {2, 2, 2, 4, 3}},
              Windows{{.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true}, {2, 2, 3, 4, 4}},
              Windows{{.kernel_size = {1, 2, 3}, .stride = {1, 2, 3}, .ceil_mode = true}, {2, 2, 5, 3, 3}},
              Windows{{.kernel_size = {2, 3, 2}, .stride = 1, .padding = {0, 2, 1}, .dilation = {3, 2, 4}},
                      {2, 2, 2, 6, 5}}}) {
            CAPTURE(out.str());
            const PoolParameters<3>& parameters = options;
            const auto window_dims = [&](const Size3& size, bool or_kernel) {
                return dims_of(or_kernel && size[0] == 0 ? parameters.kernel_size : size);
            };
            const auto expected = first_largest(
                plain, from, out, window_dims(parameters.kernel_size, false), window_dims(parameters.stride, true),
                window_dims(parameters.padding, false), window_dims(parameters.dilation, false));
            const MaxPooled both = max_pool3d_with_indices(x, options);
            CHECK(both.values.shape() == out);
            CHECK(both.values.dtype() == dtype);
            CHECK(both.indices.dtype() == DType::i64);
            CHECK(values(both.indices) == expected);
            CHECK(same(max_pool3d(x, options), both.values));
            const Shape flat_shape{from[0], from[1], from[2] * from[3] * from[4]};
            CHECK(values(reshape(both.values, {-1}).to(DType::f32)) ==
                  values(reshape(gather(reshape(x, flat_shape), 2, reshape(both.indices, {2, 2, -1})), {-1})
                             .to(DType::f32)));
            if (parameters.kernel_size[0] != 1) continue;
            // The same as images, and as lines.
            const Tensor images = reshape(x, {2, 10, 6, 7});
            const MaxPooled slice_results =
                max_pool2d_with_indices(images, {.kernel_size = {2, 3}, .stride = {2, 3}, .ceil_mode = true});
            CHECK(values(slice_results.values) == values(both.values));
            for (std::size_t i = 0; i < expected.size(); ++i)
                CHECK(values(slice_results.indices)[i] == std::fmod(expected[i], 42));
        }
        const MaxPooled lines = max_pool1d_with_indices(reshape(x, {2, 2, 210}), {.kernel_size = 4, .ceil_mode = true});
        CHECK(values(lines.indices) ==
              first_largest(plain, {2, 2, 1, 1, 210}, {2, 2, 1, 1, 53}, {1, 1, 4}, {1, 1, 4}, {0, 0, 0}, {1, 1, 1}));
    }
}

TEST_CASE("adaptive and fractional max_pool: indices of the maxima") {
    const Tensor x = random_tensor({2, 3, 7, 9}, 1, DType::f32);
    const auto check_indices = [&](const MaxPooled& both) {
        const Tensor gathered = gather(reshape(x, {6, 63}), 1, reshape(both.indices, {6, -1}));
        CHECK(values(gathered) == values(both.values));
        return both;
    };
    check_indices(adaptive_max_pool2d_with_indices(x, {7, 3}));
    check_indices(adaptive_max_pool2d_with_indices(x, {4, 5}));
    check_indices(fractional_max_pool2d_with_indices(x, {.kernel_size = 2, .output_size = Size2(4, 5)}));
    // Random windows: increasing, different each time, the same for the same seed.
    manual_seed(3);
    const FractionalPool2dParameters by_ratio{.kernel_size = 2, .output_ratio = {{0.6, 0.6}}};
    const Tensor first = fractional_max_pool2d(x, by_ratio), second = fractional_max_pool2d(x, by_ratio);
    CHECK(first.shape() == Shape{2, 3, 4, 5});
    CHECK_FALSE(same(first, second));
    manual_seed(3);
    CHECK(same(first, fractional_max_pool2d(x, by_ratio)));
    const Tensor ascending = reshape(arange(0, 6 * 63, 1, {DType::f32}), {2, 3, 7, 9});
    const auto at = values(fractional_max_pool2d(ascending, by_ratio));
    for (std::size_t i = 0; i + 1 < 5; ++i) CHECK(at[i] < at[i + 1]);
    CHECK(at[19] == 62);  // the last window is at the end
}

TEST_CASE("pooling and convolutions: an unbatched input matches a batch of one") {
    const auto check = [](const char* name, const Shape& shape, const std::function<Tensor(const Tensor&)>& call) {
        CAPTURE(name);
        Tensor x = random_tensor(shape, 1, DType::f32).set_requires_grad(), batch = unsqueeze(x.detach(), 0);
        batch.set_requires_grad();
        const Tensor y = call(x), expected = call(batch);
        CHECK(same(y, select(expected, 0, 0)));
        sum(square(y)).backward();
        sum(square(expected)).backward();
        CHECK(same(x.grad(), select(batch.grad(), 0, 0)));
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
    check("max_pool1d", {3, 9}, [&](auto& x) { return max_pool1d(x); });
    check("max_pool2d", {3, 9, 4}, [&](auto& x) { return max_pool2d(x); });
    check("max_pool3d", {3, 4, 5, 6}, [&](auto& x) { return max_pool3d(x, {.dilation = {1, 2, 1}}); });
    check("avg_pool1d", {3, 9}, [&](auto& x) { return avg_pool1d(x); });
    check("avg_pool2d", {3, 9, 4}, [&](auto& x) { return avg_pool2d(x); });
    check("avg_pool3d", {3, 4, 5, 6}, [&](auto& x) { return avg_pool3d(x, {.ceil_mode = true}); });
    check("lp_pool2d", {3, 9, 4}, [&](auto& x) { return lp_pool2d(x, 2); });
    check("adaptive_avg_pool2d", {3, 9, 4}, [&](auto& x) { return adaptive_avg_pool2d(x, 3); });
    check("adaptive_max_pool3d", {3, 9, 4, 5}, [&](auto& x) { return adaptive_max_pool3d(x, 3); });
}

TEST_CASE("convolutions and means of integers are exact") {
    const auto random_integers = [](const Shape& shape, std::uint64_t seed) {
        return (random_tensor(shape, seed, DType::f32) * 20).to(DType::i32);
    };
    const Tensor x = random_integers({2, 4, 6, 5}, 1), weight = random_integers({6, 2, 3, 2}, 2),
                 bias = random_integers({6}, 3);
    const Conv2dParameters options{.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}, .groups = 2};
    const auto real = [](const Tensor& tensor) { return tensor.to(DType::f32); };
    const Tensor y = conv2d(x, weight, bias, options);
    CHECK(y.dtype() == DType::i32);
    CHECK(same(y, conv2d(real(x), real(weight), real(bias), options)));
    const ConvTranspose2dParameters back{
        .stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
    const Tensor other = random_integers({4, 3, 3, 2}, 4);
    CHECK(same(conv_transpose2d(x, other, bias, back), conv_transpose2d(real(x), real(other), real(bias), back)));
    const Tensor cube = random_integers({2, 2, 3, 4, 5}, 5), filter = random_integers({3, 2, 2, 2, 3}, 6);
    CHECK(same(conv3d(cube, filter), conv3d(real(cube), real(filter))));
    for (const std::int64_t divisor : {0, 3, -3}) {
        const Tensor means = avg_pool2d(
            x, {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = divisor});
        CHECK(means.dtype() == DType::i32);
        const Tensor expected = avg_pool2d(
            real(x), {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = divisor});
        CHECK(same(means, trunc(expected + sign(expected) * 1e-4)));
    }
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
    CHECK(same(y_bf16, conv3d(rounded(x), rounded(weight)).to(DType::bf16)));  // rounded once, not per plane
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
    CHECK(same(fold(unfold(x.detach(), tiles), {6, 7}, tiles), x.detach()));
}

TEST_CASE("max_unpool: inverts max_pool") {
    const Tensor x = random_tensor({2, 3, 8, 6}, 1, DType::f32, 1, 2);
    const MaxPooled both = max_pool2d_with_indices(x);
    const Tensor back = max_unpool2d(both.values, both.indices);
    CHECK(same(back, where(back != 0, x, 0)));
    CHECK(values(sum(back))[0] == doctest::Approx(values(sum(both.values))[0]));
    CHECK(same(max_pool2d(back), both.values));
    CHECK(max_unpool2d(both.values, both.indices, {}, {9, 7}).shape() == Shape{2, 3, 9, 7});
    // If overlapping windows found the same element, each one gets the gradient.
    const Tensor duplicates = Tensor::from<float>({5, 5, 1}, {1, 1, 3}).set_requires_grad();
    const Tensor max_indices = Tensor::from<std::int64_t>({2, 2, 0}, {1, 1, 3});
    const Tensor y = max_unpool1d(duplicates, max_indices, {.kernel_size = 3, .stride = 1});
    CHECK(values(y) == std::vector<double>{1, 0, 5, 0, 0});
    (y * Tensor::from<float>({1, 2, 3, 4, 5}, {1, 1, 5})).backward(ones({1, 1, 5}));
    CHECK(values(duplicates.grad()) == std::vector<double>{3, 3, 1});
    // Elements without an index get none.
    const Tensor distinct = Tensor::from<float>({1, 2, 3}, {1, 1, 3}).set_requires_grad();
    const Tensor invalid_indices = Tensor::from<std::int64_t>({2, 7, -9}, {1, 1, 3});
    const Tensor unpooled = max_unpool1d(distinct, invalid_indices, {.kernel_size = 3, .stride = 1});
    CHECK(values(unpooled) == std::vector<double>{0, 0, 1, 0, 0});
    sum(unpooled * 2.0).backward();
    CHECK(values(distinct.grad()) == std::vector<double>{2, 0, 0});
}

TEST_CASE("convolutions and pooling: sizes that overflow are refused by name") {
    constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max(), too_many = std::int64_t{1} << 40;
    const Tensor line = ones({1, 1, 9}), weight = ones({1, 1, 3});
    const auto check_error = [](const char* message, auto call) {
        CAPTURE(message);
        CHECK_THROWS_WITH_AS(call(), doctest::Contains(message), ValueError);
    };
    check_error("pad: expected numbers up to 2^31 as the pads, got", [&] { pad(line, {max_int64, max_int64}); });
    check_error("conv1d: expected numbers up to 2^31 as the padding, got",
                [&] { conv1d(line, weight, {}, {.padding = max_int64}); });
    check_error("conv1d: expected numbers up to 2^31 as the dilation, got",
                [&] { conv1d(line, weight, {}, {.dilation = max_int64}); });
    check_error("conv_transpose1d: expected numbers up to 2^31 as the stride, got",
                [&] { conv_transpose1d(line, weight, {}, {.stride = max_int64}); });
    check_error("pixel_shuffle: expected numbers up to 2^31 as the factor, got", [&] {
        pixel_shuffle(ones({1, 4, 1, 1}), max_int64);
    });
    check_error("adaptive_avg_pool1d: expected numbers up to 2^31 as the output size, got",
                [&] { adaptive_avg_pool1d(line, max_int64); });
    check_error("tensor_split: expected numbers up to 2^31 as the sections, got",
                [&] { tensor_split(line, too_many); });
    check_error("tril_indices: expected numbers up to 2^31 as sizes, got", [&] { tril_indices(too_many, too_many); });
    CHECK(combinations(arange(3), 4).shape() == Shape{0, 4});
    CHECK(combinations(arange(3), 7, true).shape() == Shape{36, 7});
}

TEST_CASE("pad: modes, cropping, all types") {
    const Tensor x = Tensor::from<std::int32_t>({1, 2, 3, 4}, {4});
    const auto padded = [&](std::vector<std::int64_t> pads, PadMode mode) { return values(pad(x, pads, mode)); };
    using List = std::vector<double>;
    CHECK(padded({3, 2}, PadMode::reflect) == List{4, 3, 2, 1, 2, 3, 4, 3, 2});
    CHECK(padded({2, 3}, PadMode::replicate) == List{1, 1, 1, 2, 3, 4, 4, 4, 4});
    CHECK(padded({4, 1}, PadMode::circular) == List{1, 2, 3, 4, 1, 2, 3, 4, 1});
    CHECK(padded({2, -4}, PadMode::replicate) == List{1, 1});
    CHECK(padded({-1, 2}, PadMode::reflect) == List{2, 3, 4, 3, 2});
    CHECK(padded({-1, 2}, PadMode::circular) == List{2, 3, 4, 2, 3});
    CHECK(padded({-3, 1}, PadMode::zeros) == List{4, 0});
    CHECK(padded({0, 0}, PadMode::reflect) == List{1, 2, 3, 4});
    CHECK(values(pad(x > 2, {1, 0}, PadMode::circular)) == List{1, 0, 0, 1, 1});
    CHECK(pad(zeros({0, 3}), {2, 1}, PadMode::replicate).shape() == Shape{0, 6});
    CHECK(values(pad(x, {-1}, {2}, 7)) == List{2, 3, 4, 7, 7});
}

TEST_CASE("convolutions and pooling: errors") {
    const Tensor line = zeros({1, 2, 5}), image = zeros({1, 2, 5, 5}), cube = zeros({1, 2, 5, 5, 5}),
                 filter = zeros({2, 2, 3, 3, 3}), labels = zeros({1, 2, 5}, {DType::i64});
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
    begins("pad", [&] { (void)pad(line, {1}); });
    begins("pad", [&] { (void)pad(line, {5, 0}, PadMode::reflect); });
    begins("pad", [&] { (void)pad(line, {6, 0}, PadMode::circular); });
    begins("pad", [&] { (void)pad(zeros({2, 0}), {1, 0}, PadMode::replicate); });
    begins("pad", [&] { (void)pad(line, {-3, -3}); });
    begins("pad", [&] { (void)pad(line, {-3, -3}, PadMode::reflect); });
    begins("max_pool1d", [&] { (void)max_pool1d(image); });
    begins("max_pool1d", [&] { (void)max_pool1d(line, {.kernel_size = 6}); });
    begins("max_pool3d", [&] { (void)max_pool3d(cube, {.kernel_size = {0, 1, 1}}); });
    begins("max_pool3d", [&] { (void)max_pool3d(cube, {.padding = 2}); });
    begins("max_pool3d", [&] { (void)max_pool3d(cube, {.dilation = 0}); });
    begins("max_pool2d_with_indices", [&] { (void)max_pool2d_with_indices(image > 0); });
    begins("avg_pool3d", [&] { (void)avg_pool3d(cube, {.dilation = 2}); });
    begins("avg_pool1d", [&] { (void)avg_pool1d(line, {.stride = -1}); });
    begins("lp_pool1d", [&] { (void)lp_pool1d(line, 2, {.padding = 1}); });
    begins("lp_pool1d", [&] { (void)lp_pool1d(line, 0); });
    begins("lp_pool1d", [&] { (void)lp_pool1d(labels, 2); });
    begins("adaptive_avg_pool1d", [&] { (void)adaptive_avg_pool1d(line, 0); });
    begins("adaptive_avg_pool2d", [&] { (void)adaptive_avg_pool2d(cube, 1); });
    begins("adaptive_max_pool1d", [&] { (void)adaptive_max_pool1d(labels, 1); });
    begins("max_unpool1d", [&] { (void)max_unpool1d(line, line); });
    begins("max_unpool1d", [&] { (void)max_unpool1d(line, zeros({1, 2, 4}, {DType::i64})); });
    begins("max_unpool1d", [&] { (void)max_unpool1d(line, labels, {}, {12}); });
    begins("max_unpool1d", [&] { (void)max_unpool1d(line, labels, {}, {10, 10}); });
    begins("fractional_max_pool2d", [&] { (void)fractional_max_pool2d(image, {}); });
    begins("fractional_max_pool2d", [&] { (void)fractional_max_pool2d(image, {.output_size = 5}); });
    begins("fractional_max_pool2d", [&] { (void)fractional_max_pool2d(image, {.output_ratio = {{1.5, 0.5}}}); });
    begins("fractional_max_pool2d", [&] { (void)fractional_max_pool2d(image, {.output_size = 2}, zeros({1, 2, 3})); });
    CHECK_THROWS_WITH_AS((void)conv_transpose2d(ones({2, 6, 5, 7}), ones({6, 4, 3, 2}), {}, {.groups = 4}),
                         "conv_transpose2d: expected groups that divide the channels of x, got 4 groups for x "
                         "[2, 6, 5, 7]",
                         ValueError);
}
