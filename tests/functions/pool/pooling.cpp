// no-oclgrind: its kernels are those of the tests of operator pool2d and of sums of rows
// Pooling beyond the catalogue: indices of maxima, unbatched inputs, integers, unpooling, errors.
#include <cmath>
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

bool identical(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && values(a) == values(b); }

}  // namespace

TEST_CASE("pooling: maxima and means of a 4 x 4 image by windows of 2 x 2") {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {1, 1, 4, 4});
    CHECK(values(max_pool2d(x)) == std::vector<double>{6, 8, 14, 16});
    CHECK(values(max_pool2d_with_indices(x).indices) == std::vector<double>{5, 7, 13, 15});
    CHECK(values(avg_pool2d(x)) == std::vector<double>{3.5, 5.5, 11.5, 13.5});
    CHECK(values(max_pool2d(x, {.kernel_size = 3, .stride = 1})) == std::vector<double>{11, 12, 15, 16});
    CHECK(values(adaptive_avg_pool2d(x, {1, 2})) == std::vector<double>{7.5, 9.5});
    CHECK(values(max_unpool2d(tensor({5}, {1, 1, 1}), int64_tensor({2}, {1, 1, 1}))) ==
          std::vector<double>{0, 0, 5, 0});
}

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
            CHECK(identical(max_pool3d(x, options), both.values));
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
    CHECK_FALSE(identical(first, second));
    manual_seed(3);
    CHECK(identical(first, fractional_max_pool2d(x, by_ratio)));
    const Tensor ascending = reshape(arange(0, 6 * 63, 1, {DType::f32}), {2, 3, 7, 9});
    const auto at = values(fractional_max_pool2d(ascending, by_ratio));
    for (std::size_t i = 0; i + 1 < 5; ++i) CHECK(at[i] < at[i + 1]);
    CHECK(at[19] == 62);  // the last window is at the end
}

TEST_CASE("max_unpool: inverts max_pool") {
    const Tensor x = random_tensor({2, 3, 8, 6}, 1, DType::f32, 1, 2);
    const MaxPooled both = max_pool2d_with_indices(x);
    const Tensor back = max_unpool2d(both.values, both.indices);
    CHECK(identical(back, where(back != 0, x, 0)));
    CHECK(values(sum(back))[0] == doctest::Approx(values(sum(both.values))[0]));
    CHECK(identical(max_pool2d(back), both.values));
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

TEST_CASE("pooling: an unbatched input matches a batch of one") {
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

TEST_CASE("avg_pool: means of integers are rounded toward zero") {
    const Tensor x = (random_tensor({2, 4, 6, 5}, 1, DType::f32) * 20).to(DType::i32);
    for (const std::int64_t divisor : {0, 3, -3}) {
        const Tensor means = avg_pool2d(
            x, {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = divisor});
        CHECK(means.dtype() == DType::i32);
        const Tensor expected =
            avg_pool2d(x.to(DType::f32),
                       {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = divisor});
        CHECK(identical(means, trunc(expected + sign(expected) * 1e-4)));
    }
}

TEST_CASE("adaptive_avg_pool: an output size that overflows is refused") {
    CHECK_THROWS_WITH_AS(adaptive_avg_pool1d(ones({1, 1, 9}), std::numeric_limits<std::int64_t>::max()),
                         doctest::Contains("adaptive_avg_pool1d: expected numbers up to 2^31 as the output size, got"),
                         ValueError);
}

TEST_CASE("pooling: errors") {
    const Tensor line = zeros({1, 2, 5}), image = zeros({1, 2, 5, 5}), cube = zeros({1, 2, 5, 5, 5}),
                 labels = zeros({1, 2, 5}, {DType::i64});
    const auto begins = [](const char* name, const std::function<void()>& call) {
        CAPTURE(name);
        CHECK_UNARY(error_message<Error>(call).starts_with(std::string(name) + ": expected "));
    };
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
}
