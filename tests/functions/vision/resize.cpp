// interpolate, resize, grid_sample, affine_grid: kernels of both styles compared with plain C++ and their
// decomposition, more sizes than the catalogue, types, NaN pixels, and errors.
#include <declivity/functions/resize.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/references.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

struct ResizeOutcome {
    Values y, dx, ddx;  // the value, its gradient, and the gradient of that gradient's sum of squares
};

ResizeOutcome outcome(const Tensor& x, const std::function<Tensor(const Tensor&)>& call) {
    Tensor leaf = x.detach().set_requires_grad();
    const Tensor y = call(leaf);
    Tensor g = random_tensor(y.shape(), 9, x.dtype()).set_requires_grad();
    const Tensor dx = grad({sum(y * g)}, {leaf}, {.create_graph = true})[0];
    return {values(y), values(dx), values(grad({sum(square(dx))}, {g})[0])};
}

/// Compares kernels of both styles with the decomposition.
void check_kernels(const Tensor& x, const std::function<Tensor(const Tensor&)>& call, double terms) {
    const ResizeOutcome expected = [&] {
        const detail::DecompositionScope decomposed;
        return outcome(x, call);
    }();
    const Tolerance allowed = tolerance(x.dtype(), terms, 8);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(static_cast<int>(style));
        const ResizeOutcome got = outcome(x, call);
        CHECK(difference(got.y, expected.y, allowed) == "");
        CHECK(difference(got.dx, expected.dx, allowed) == "");
        CHECK(difference(got.ddx, expected.ddx, allowed) == "");
    }
}

bool begins(const std::string& text, const std::string& prefix) { return text.starts_with(prefix); }

}  // namespace

TEST_CASE("interpolate, grid_sample: two pixels become four, and an image is read between its pixels") {
    const Tensor x = tensor({1, 2}, {1, 1, 2});
    CHECK(values(interpolate(x, {.scale_factor = 2})) == Values{1, 1, 2, 2});
    CHECK(difference(interpolate(x, {.size = 4, .mode = "linear"}), {1, 1.25, 1.75, 2}, {1e-6}) == "");
    CHECK(difference(interpolate(x, {.size = 3, .mode = "linear", .align_corners = true}), {1, 1.5, 2}, {1e-6}) == "");
    // The centre, a pixel's centre, and a corner, of which three quarters are outside.
    const Tensor image = tensor({1, 2, 3, 4}, {1, 1, 2, 2}), grid = tensor({0, 0, -0.5, -0.5, 1, 1}, {1, 1, 3, 2});
    CHECK(difference(grid_sample(image, grid), {2.5, 1, 1}, {1e-6}) == "");
    CHECK(difference(grid_sample(image, grid, {.align_corners = true}), {2.5, 1.75, 4}, {1e-6}) == "");
}

TEST_CASE("interpolate: values of all modes and sizes, in both kernel styles") {
    std::vector<std::pair<Shape, InterpolateOptions>> cases;
    for (const Shape& x : {Shape{2, 3, 7, 5}, Shape{1, 2, 1, 40}, Shape{1, 1, 37, 1}})
        for (const char* mode : {"nearest", "nearest-exact", "area", "bilinear", "bicubic"}) {
            cases.push_back({x, {.size = {3, 17}, .mode = mode}});
            cases.push_back({x, {.size = {20, 1}, .mode = mode}});
            cases.push_back({x, {.scale_factor = {1.31, 2.73}, .mode = mode}});
            cases.push_back({x, {.scale_factor = {2.23}, .mode = mode, .recompute_scale_factor = true}});
            if (mode[0] != 'b') continue;
            cases.push_back({x, {.size = {3, 17}, .mode = mode, .align_corners = true}});
            cases.push_back({x, {.size = {1, 2}, .mode = mode, .align_corners = true}});
            cases.push_back({x, {.size = {3, 4}, .mode = mode, .antialias = true}});
            cases.push_back({x, {.size = {1, 70}, .mode = mode, .antialias = true}});
            cases.push_back({x, {.size = {5, 2}, .mode = mode, .align_corners = true, .antialias = true}});
        }
    // Rows longer than a vector of a simd device.
    cases.push_back({{1, 2, 9, 37}, {.size = {5, 37}, .mode = "bilinear"}});
    cases.push_back({{1, 2, 9, 37}, {.size = {21, 20}, .mode = "bicubic"}});
    cases.push_back({{2, 1, 3, 4, 5}, {.size = {5, 3, 7}, .mode = "trilinear", .align_corners = true}});
    cases.push_back({{2, 1, 3, 4, 5}, {.size = {2}, .mode = "area"}});
    cases.push_back({{2, 3, 6}, {.size = {11}, .mode = "linear"}});
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (small_cases() && i % 7 != 0) continue;
        const auto& [shape, options] = cases[i];
        CAPTURE(shape.str());
        CAPTURE(options.mode);
        CAPTURE(i);
        for (const DType dtype : floats()) {
            const Tensor x = random_tensor(shape, 3, dtype);
            const Values expected = catalogue::interpolate_case(shape, options).reference({values(x)}, dtype);
            for (const KernelStyle style : kernel_styles()) {
                const ops::KernelStyleScope scope(style);
                CHECK(difference(interpolate(x, options), expected, tolerance(dtype, 40, 4)) == "");
            }
            if (i % 3 == 0)
                check_kernels(
                    x, [&options = options](const Tensor& in) { return interpolate(in, options); }, 60);
        }
    }
}

TEST_CASE("resize: all coordinate modes, roundings, scales and sizes") {
    using C = ResizeCoordinates;
    const Shape shape{6, 5};
    for (const DType dtype : floats())
        for (const auto coordinates : {C::half_pixel, C::half_pixel_symmetric, C::pytorch_half_pixel, C::align_corners,
                                       C::asymmetric, C::tf_half_pixel_for_nn, C::tf_crop_and_resize})
            for (const auto mode : {ResizeMode::nearest, ResizeMode::linear, ResizeMode::cubic})
                for (int variant = 0; variant < 8; ++variant) {
                    if (small_cases() && variant != 3) continue;
                    ResizeOptions options{.mode = mode, .coordinates = coordinates};
                    if (variant % 2 == 0) options.sizes = {variant < 4 ? 4 : 13, variant < 4 ? 9 : 1};
                    else options.scales = {variant < 4 ? 0.7 : 1.9, variant < 4 ? 2.3 : 0.45};
                    options.nearest_mode = static_cast<ResizeNearest>(variant / 2);
                    options.exclude_outside = variant % 4 > 1;
                    options.antialias = variant % 3 == 1;
                    if (coordinates == C::tf_crop_and_resize) options.roi = {0.7, -0.1, 0.2, 1.05};
                    // Positions in the middle between two pixels may round either way.
                    if (mode == ResizeMode::nearest && coordinates == C::tf_crop_and_resize)
                        options.roi = {0.713, -0.1, 0.217, 1.053};
                    CAPTURE(name_of(coordinates));
                    CAPTURE(name_of(mode));
                    CAPTURE(variant);
                    CAPTURE(name_of(dtype));
                    const Tensor x = random_tensor(shape, 5, dtype);
                    const Values expected = catalogue::resize_reference(values(x), shape, options);
                    for (const KernelStyle style : kernel_styles()) {
                        const ops::KernelStyleScope scope(style);
                        CHECK(difference(resize(x, options), expected, tolerance(dtype, 60, 8)) == "");
                    }
                    if (variant == 3)
                        check_kernels(
                            x, [&](const Tensor& in) { return resize(in, options); }, 60);
                }
}

TEST_CASE("resize: rounding of ties, selected axes, extrapolation, and unchanged axes") {
    const Tensor x = tensor({0, 1, 2, 3}, {4});
    using N = ResizeNearest;
    const auto nearest = [&](N mode) {
        return values(resize(x, {.sizes = {2}, .nearest_mode = mode}));  // at 0.5 and 2.5
    };
    CHECK(nearest(N::round_prefer_floor) == Values{0, 2});
    CHECK(nearest(N::round_prefer_ceil) == Values{1, 3});
    CHECK(nearest(N::floor) == Values{0, 2});
    CHECK(nearest(N::ceil) == Values{1, 3});
    const Tensor image = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
    CHECK(values(resize(image, {.scales = {2}, .axes = {-1}})) == values(resize(image, {.scales = {1, 2}})));
    CHECK(values(resize(image, {.sizes = {6, 1}, .axes = {1, 0}, .mode = ResizeMode::linear})) ==
          values(resize(image, {.sizes = {1, 6}, .mode = ResizeMode::linear})));
    const ResizeOptions crop{.sizes = {3},
                             .axes = {1},
                             .mode = ResizeMode::linear,
                             .coordinates = ResizeCoordinates::tf_crop_and_resize,
                             .roi = {-0.5, 0.75},
                             .extrapolation_value = 9};
    // At -1, 0.25 and 1.5.
    CHECK(values(resize(image, crop)) == Values{9, 1.25, 2.5, 9, 4.25, 5.5});
    CHECK(values(resize(image, {.sizes = {2, 3}, .mode = ResizeMode::cubic})) == values(image));
}

TEST_CASE("resize: a NaN pixel affects only the outputs in which it has a weight") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Tensor x = tensor({1, 2, nan, 4, 5, 6}, {1, 1, 6});
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const bool decomposed : {false, true}) {
            std::optional<detail::DecompositionScope> by_decomposition;
            if (decomposed) by_decomposition.emplace();
            // At 0, 1, ... 5 in steps of 0.5.
            const Values y = values(interpolate(x, {.size = 11, .mode = "linear", .align_corners = true}));
            for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i >= 3 && i <= 5));
            const Values means = values(interpolate(x, {.size = 4, .mode = "area"}));
            for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(means[i]) == (i == 1));
        }
    }
}

TEST_CASE("interpolate: integers, f16 and bf16, empty batches, and views") {
    const Tensor x = (random_tensor({1, 2, 5, 4}, 3, DType::f32, 0, 255));
    for (const DType dtype : {DType::u8, DType::i32, DType::i64, DType::i8}) {
        const Tensor integral = x.to(DType::i32).to(dtype);
        const Tensor y = interpolate(integral, {.size = {3, 9}});
        CHECK(y.dtype() == dtype);
        CHECK(values(y) == values(interpolate(integral.to(DType::f32), {.size = {3, 9}})));
    }
    const Tensor bytes = x.to(DType::u8);
    // Rounded after each axis.
    for (const char* mode : {"bilinear", "bicubic", "area"})
        for (const Dims& size : {Dims{8, 4}, Dims{5, 3}}) {
            const Values exact = values(interpolate(bytes.to(DType::f32), {.size = size, .mode = mode}));
            const Values got = values(interpolate(bytes, {.size = size, .mode = mode}));
            for (std::size_t i = 0; i < got.size(); ++i)
                CHECK(std::abs(got[i] - std::clamp(exact[i], 0.0, 255.0)) <= 0.52);
        }
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
            const Tensor half = random_tensor({1, 2, 5, 4}, 3).to(dtype);
            const InterpolateOptions options{.size = {8, 3}, .mode = mode};
            const Tensor y = interpolate(half, options);
            CHECK(y.dtype() == dtype);
            CHECK(values(y) == values(interpolate(half.to(DType::f32), options).to(dtype)));
        }
    CHECK(interpolate(zeros({0, 3, 4, 5}), {.size = 7, .mode = "bilinear"}).shape() == Shape{0, 3, 7, 7});
    CHECK(resize(zeros({3, 4}), {.sizes = {0, 2}}).shape() == Shape{0, 2});
    const Tensor view = transpose(x, 2, 3);
    CHECK(values(interpolate(view, {.size = {8, 3}, .mode = "bilinear"})) ==
          values(interpolate(view.clone(), {.size = {8, 3}, .mode = "bilinear"})));
}

TEST_CASE("grid_sample and affine_grid: identity and reflection") {
    const Tensor x = random_tensor({2, 3, 5, 4}, 1), theta = tensor({1, 0, 0, 0, 1, 0, -1, 0, 0, 0, 1, 0}, {2, 2, 3});
    for (const bool corners : {false, true})
        for (const char* mode : {"bilinear", "nearest", "bicubic"}) {
            const Tensor y =
                grid_sample(x, affine_grid(theta, x.shape(), corners), {.mode = mode, .align_corners = corners});
            CHECK(difference(select(y, 0, 0), values(select(x, 0, 0)), {1e-5, 1e-5}) == "");
            CHECK(difference(select(y, 0, 1), values(flip(select(x, 0, 1), {2})), {1e-5, 1e-5}) == "");
        }
    const Tensor none = grid_sample(x, zeros({2, 0, 3, 2}));
    CHECK(none.shape() == Shape{2, 3, 0, 3});
    CHECK(grid_sample(zeros({0, 3, 5, 4}), zeros({0, 2, 3, 2})).shape() == Shape{0, 3, 2, 3});
    // Infinite values outside of the samples are not read, and a NaN position reads nothing.
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isfinite(values(grid_sample(x, full({2, 1, 1, 2}, 1e30)))[0]));
    CHECK_NOTHROW((void)values(grid_sample(x, full({2, 1, 1, 2}, nan))));
}

TEST_CASE("grid_sample: kernels match the decomposition, rows of few and many pixels") {
    for (const DType dtype : floats())
        for (const std::int64_t channels : {1, 3, 37})
            for (const char* mode : {"bilinear", "bicubic"}) {
                if (small_cases() && (channels != 3 || mode[2] == 'c')) continue;
                const Shape x{2, channels, 3, 4}, grid{2, 2, 3, 2};
                const GridSampleOptions options{.mode = mode};
                Tensor image = random_tensor(x, 1, dtype).set_requires_grad(),
                       at = random_tensor(grid, 2, dtype, -1.3, 1.3).set_requires_grad();
                const Values expected = catalogue::grid_sample_reference({values(image), values(at)}, x, grid, options);
                const auto run = [&] {
                    const Tensor y = grid_sample(image, at, options);
                    const auto both =
                        grad({y}, {image, at}, {.output_gradients = {random_tensor(y.shape(), 3, dtype)}});
                    return std::vector{values(y), values(both[0]), values(both[1])};
                };
                const auto decomposed = [&] {
                    const detail::DecompositionScope scope;
                    return run();
                }();
                for (const KernelStyle style : kernel_styles()) {
                    const ops::KernelStyleScope scope(style);
                    const auto got = run();
                    CHECK(difference(got[0], expected, tolerance(dtype, 40, 8)) == "");
                    for (std::size_t i = 1; i < 3; ++i)
                        CHECK(difference(got[i], decomposed[i],
                                         tolerance(dtype, 40.0 * static_cast<double>(channels), 8)) == "");
                }
            }
}

TEST_CASE("resize: errors name the called function") {
    const Tensor x = zeros({1, 2, 4, 5}), line = zeros({1, 2, 4}), integers = zeros({1, 2, 4, 5}, {DType::i32});
    const auto interpolated = [&](const Tensor& in, const InterpolateOptions& options) {
        return error_message<Error>([&] { interpolate(in, options); });
    };
    for (const auto& [in, options] : std::vector<std::pair<Tensor, InterpolateOptions>>{
             {x, {}},
             {x, {.size = 3, .scale_factor = {2}}},
             {x, {.size = {3, 4, 5}}},
             {x, {.scale_factor = {1, 2, 3}}},
             {x, {.scale_factor = {-1}}},
             {x, {.scale_factor = {std::numeric_limits<double>::quiet_NaN()}}},
             {x, {.scale_factor = {0.1}}},
             {x, {.size = {0, 3}}},
             {x, {.size = 3, .mode = "quadratic"}},
             {x, {.size = 3, .mode = "linear"}},
             {line, {.size = 3, .mode = "bilinear"}},
             {zeros({4, 5}), {.size = 3}},
             {x, {.size = 3, .align_corners = true}},
             {x, {.size = 3, .recompute_scale_factor = true}},
             {line, {.size = 3, .mode = "linear", .antialias = true}},
             {integers, {.size = 3, .mode = "bilinear"}},
             {zeros({1, 2, 0, 5}), {.size = 3}},
             {zeros({1, 2, 4, 5}, {DType::boolean}), {.size = 3}}})
        CHECK(begins(interpolated(in, options), "interpolate: "));
    for (const ResizeOptions& options :
         {ResizeOptions{}, ResizeOptions{.sizes = {1, 2, 3}}, ResizeOptions{.sizes = {3}, .scales = {2}, .axes = {1}},
          ResizeOptions{.sizes = {3, 3}, .axes = {1, -3}}, ResizeOptions{.sizes = {3}, .axes = {4}},
          ResizeOptions{.scales = {0}, .axes = {1}}, ResizeOptions{.sizes = {-1}, .axes = {1}},
          ResizeOptions{.sizes = {3}, .axes = {1}, .coordinates = ResizeCoordinates::tf_crop_and_resize}})
        CHECK(begins(error_message<Error>([&] { resize(x, options); }), "resize: "));
    CHECK(
        begins(error_message<Error>([&] { resize(integers, {.sizes = {3}, .axes = {1}, .mode = ResizeMode::cubic}); }),
               "resize: expected x of f32"));
    CHECK(begins(error_message<Error>([&] { resize(zeros({2, 0}), {.sizes = {2, 2}}); }), "resize: expected sizes"));
    const Tensor grid = zeros({1, 3, 3, 2});
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { grid_sample(x, grid, {.mode = "cubic"}); }, [&] { grid_sample(x, grid, {.padding_mode = "wrap"}); },
             [&] {
                 grid_sample(x, zeros({2, 3, 3, 2}));
             },
             [&] {
                 grid_sample(x, zeros({1, 3, 3, 3}));
             },
             [&] {
                 grid_sample(line, zeros({1, 3, 1}));
             },
             [&] { grid_sample(x, grid.to(DType::f16)); }, [&] { grid_sample(integers, grid); },
             [&] {
                 grid_sample(zeros({1, 2, 0, 3}), grid);
             }})
        CHECK(begins(error_message<Error>(call), "grid_sample: expected"));
    for (const auto& call :
         std::vector<std::function<void()>>{[&] {
                                                affine_grid(zeros({1, 2, 3}), {1, 3, 4});
                                            },
                                            [&] {
                                                affine_grid(zeros({1, 2, 2}), {1, 3, 4, 5});
                                            },
                                            [&] {
                                                affine_grid(zeros({2, 2, 3}), {1, 3, 4, 5});
                                            },
                                            [&] {
                                                affine_grid(zeros({1, 2, 3}), {1, 3, 0, 5});
                                            },
                                            [&] {
                                                affine_grid(zeros({1, 2, 3}, {DType::i64}), {1, 3, 4, 5});
                                            }})
        CHECK(begins(error_message<Error>(call), "affine_grid: expected"));
}
