// Gradients of slices are accumulated in place into the gradient of the whole tensor.
#include <cmath>
#include <functional>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/launches.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// A loss of slices of (7, 6), and the multiplicity of each element in it; the loss is a sum of squares, with gradient
/// 2 x.
struct Part {
    std::int64_t axis, start, end, step;
    double weight;
};

Tensor region_of(const Tensor& x, const Part& part) { return slice(x, part.axis, part.start, part.end, part.step); }

Tensor loss(const Tensor& x, const std::vector<Part>& parts) {
    Tensor all;
    for (const Part& part : parts) {
        const Tensor term = sum(square(region_of(x, part)) * part.weight);
        all = all.defined() ? all + term : term;
    }
    return all;
}

Values gradient(const Values& x, const std::vector<Part>& parts, double initial_weight) {
    Values out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        double weight = initial_weight;
        for (const Part& part : parts) {
            const auto at = static_cast<std::int64_t>(part.axis == 0 ? i / 6 : i % 6);
            if (at >= part.start && at < part.end && (at - part.start) % part.step == 0) weight += part.weight;
        }
        out[i] = 2 * weight * x[i];
    }
    return out;
}

const std::vector<Part> parts{{0, 0, 3, 1, 1}, {0, 2, 7, 1, 3}, {1, 1, 6, 2, 0.5}, {0, 0, 3, 1, -2}, {1, 0, 6, 1, 1}};
const Tolerance near = tolerance(DType::f32, 8);

}  // namespace

TEST_CASE("slice gradients: of a leaf, of a result, combined with the whole, before and after it") {
    const Tensor x = random_tensor({7, 6}, 1).set_requires_grad();
    const auto gradient_of = [](const std::function<Tensor(const Tensor&)>& function, const Tensor& at) {
        return grad({function(at)}, {at})[0];
    };
    CHECK(difference(gradient_of([](const Tensor& in) { return loss(in, parts); }, x), gradient(values(x), parts, 0),
                     near) == "");
    for (const bool first : {false, true}) {
        const auto both = [&](const Tensor& in) {
            const Tensor sum_of_squares = sum(square(in));
            return first ? sum_of_squares + loss(in, parts) : loss(in, parts) + sum_of_squares;
        };
        CHECK(difference(gradient_of(both, x), gradient(values(x), parts, 1), near) == "");
        // Slices of the result of a function.
        const auto after_scaling = [&](const Tensor& in) { return both(in * 1.0); };
        CHECK(difference(gradient_of(after_scaling, x), gradient(values(x), parts, 1), near) == "");
        // With create_graph the same numbers, from other functions.
        CHECK(difference(grad({both(x)}, {x}, {.create_graph = true})[0], gradient(values(x), parts, 1), near) == "");
    }
    // The whole tensor, and an empty slice.
    CHECK(difference(gradient_of([](const Tensor& in) { return sum(slice(in, 0, 0, 7)); }, x), Values(42, 1), near) ==
          "");
    CHECK(values(gradient_of([](const Tensor& in) { return sum(slice(in, 0, 3, 3)); }, x)) == Values(42, 0));
}

TEST_CASE("slice gradients: shared tensors are not written") {
    const Tensor x = random_tensor({7, 6}, 1).set_requires_grad();
    const Tensor y = x * 1.0;
    // The gradient of the sum is one tensor for both of its terms, and a hook keeps what it saw.
    Tensor hook_gradient;
    const Tensor a = y * 1.0;
    Tensor(a).register_hook([&](const Tensor& g) {
        hook_gradient = g;
        return Tensor();
    });
    const Tensor total = sum(square(a + y)) + loss(y, parts);
    const auto gradients = grad({total}, {x, a, y}, {.retain_graph = true});
    Values expected = gradient(values(x), parts, 0);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += 2 * 4 * values(x)[i];
    CHECK(difference(gradients[0], expected, near) == "");
    CHECK(difference(gradients[2], expected, near) == "");
    Values expected_half = values(x);
    for (double& value : expected_half) value *= 4;
    CHECK(difference(gradients[1], expected_half, near) == "");
    CHECK(difference(hook_gradient, expected_half, near) == "");
    // Accumulated once more into an existing grad.
    total.backward({}, true);
    total.backward();
    for (double& value : expected) value *= 2;
    CHECK(difference(x.grad(), expected, near) == "");
    const Tensor retained = x.grad();
    x.grad().mul_(0);
    CHECK(values(retained) == Values(42, 0));
}

TEST_CASE("slice gradients: T of them take T kernels, and the memory of one") {
    const std::int64_t count = 20;
    const Tensor x = random_tensor({count, 256}, 1).set_requires_grad();
    const Tensor h = tanh(x);
    Tensor state = zeros({1, 256});
    for (std::int64_t t = 0; t < count; ++t) state = state * 0.5 + slice(h, 0, t, t + 1);
    const Tensor total = sum(square(state));
    Tensor gradient;
    const int launch_count =
        launches([&] { gradient = grad({total}, {h}, {.retain_graph = true})[0], materialize(gradient); });
    CHECK(launch_count <= 2 * count + 5);
    Values expected(static_cast<std::size_t>(count) * 256);
    const Values last = values(state);
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = 2 * last[i % 256] * std::pow(0.5, static_cast<double>(count) - 1 - static_cast<double>(i / 256));
    CHECK(difference(gradient, expected, near) == "");
}

TEST_CASE("slice gradients: captured and replayed") {
    const Tensor w = random_tensor({7, 6}, 1).set_requires_grad();
    auto step = capture([&](const Tensor& x) {
        const Tensor total = loss(w * x, parts);
        return grad({total}, {w})[0] + 0.0;
    });
    for (int i = 0; i < 4; ++i) {
        const Tensor x = random_tensor({7, 6}, static_cast<std::uint64_t>(i) + 2);
        Values expected = gradient(values(w), parts, 0);
        for (std::size_t k = 0; k < expected.size(); ++k) expected[k] *= values(x)[k] * values(x)[k];
        CHECK(difference(step(x), expected, near) == "");
    }
}

TEST_CASE("slice gradients: a custom gradient function without double backward") {
    const Tensor x = random_tensor({7, 6}, 1).set_requires_grad();
    const auto rows = [](const ops::View& whole_view) { return ops::sliced(whole_view, 0, 2, 3); };
    const auto taken_rows = [&] {
        return attach_backward("taken_rows", {x}, ops::LazyArray(rows(x.view())), [&](const GradientContext& context) {
            context.accumulate_region(0, context.gradient() * 2.0, rows);
            return std::vector<Tensor>(1);
        });
    };
    Values expected(42, 0);
    for (std::size_t i = 12; i < 30; ++i) expected[i] = 2;
    CHECK(values(grad({sum(taken_rows())}, {x})[0]) == expected);
    const Tensor first = grad({sum(taken_rows() + slice(x, 0, 2, 5))}, {x}, {.create_graph = true})[0];
    for (double& value : expected) value *= 1.5;
    CHECK(values(first) == expected);
    CHECK_THROWS_AS((void)grad({sum(first)}, {x}), Unsupported);
    const Tensor none = x.detach();
    CHECK_FALSE(attach_backward("none", {none}, ops::LazyArray(none.view()), [](const GradientContext&) {
                    return std::vector<Tensor>(1);
                }).requires_grad());
}
