// Functions that move, repeat, drop or copy elements: differentiable to any order, or explicitly detached.
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// y = A x + b for a linear function of tensors, in double: A by its columns.
struct Linear {
    Linear(const std::function<Tensor(const Tensor&)>& function, const Shape& shape, DType dtype) {
        const NoGrad none;
        offset = values(function(zeros(shape, {dtype})));
        for (std::int64_t i = 0; i < shape.numel(); ++i) {
            Values unit(static_cast<std::size_t>(shape.numel()), 0);
            unit[static_cast<std::size_t>(i)] = 1;
            Values column = values(function(tensor(unit, shape, dtype)));
            for (std::size_t j = 0; j < column.size(); ++j) column[j] -= offset[j];
            columns.push_back(std::move(column));
        }
    }
    [[nodiscard]] Values forward(const Values& x, bool with_offset) const {
        Values y = with_offset ? offset : Values(offset.size(), 0);
        for (std::size_t i = 0; i < x.size(); ++i)
            for (std::size_t j = 0; j < y.size(); ++j) y[j] += columns[i][j] * x[i];
        return y;
    }
    [[nodiscard]] Values backward(const Values& g) const {
        Values x;
        for (const Values& column : columns) {
            double sum = 0;
            for (std::size_t j = 0; j < g.size(); ++j) sum += column[j] * g[j];
            x.push_back(sum);
        }
        return x;
    }
    Values offset;
    std::vector<Values> columns;
};

/// Compares gradients of first, second and third order of sum(w y^3) with y = function(x) with 3 A^T (w y^2), 6 A^T (w
/// y (A v)) and 6 A^T (w (A v) (A u)).
std::string check(const std::function<Tensor(const Tensor&)>& function, const Shape& shape, DType dtype) {
    const Linear reference(function, shape, dtype);
    const Tensor x = random_tensor(shape, 1, dtype).set_requires_grad();
    const Tensor y = function(x);
    if (!y.requires_grad()) return "cut";
    const Tensor w = random_tensor(y.shape(), 2, y.dtype()), v = random_tensor(shape, 3, dtype),
                 u = random_tensor(shape, 4, dtype);
    const auto at = reference.forward(values(x), true), by_v = reference.forward(values(v), false),
               by_u = reference.forward(values(u), false), weights = values(w);
    Values linear, two, three;
    for (std::size_t j = 0; j < at.size(); ++j) {
        linear.push_back(3 * weights[j] * at[j] * at[j]);
        two.push_back(6 * weights[j] * at[j] * by_v[j]);
        three.push_back(6 * weights[j] * by_v[j] * by_u[j]);
    }
    const Tolerance allowed =
        dtype == DType::f64 && y.dtype() == DType::f64 ? Tolerance{1e-12, 1e-12} : Tolerance{1e-4, 1e-4};
    const Tensor first = grad({sum(w * y * y * y)}, {x}, {.create_graph = true})[0];
    if (const auto fault = difference(first, reference.backward(linear), allowed); !fault.empty())
        return "first: " + fault;
    const Tensor second = grad({sum(first * v)}, {x}, {.create_graph = true})[0];
    if (const auto fault = difference(second, reference.backward(two), allowed); !fault.empty())
        return "second: " + fault;
    sum(second * u).backward();
    if (const auto fault = difference(x.grad(), reference.backward(three), allowed); !fault.empty())
        return "third: " + fault;
    return "";
}

}  // namespace

TEST_CASE("copies: functions that move, repeat, drop or copy elements are differentiable to any order") {
    const DType dtype = device().info().fp64 ? DType::f64 : DType::f32,
                other = dtype == DType::f64 ? DType::f32 : DType::f16;
    const Device second = fresh_device();
    const Tensor m = random_tensor({4, 5}, 9, dtype);
    const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> functions{
        {"clone", [](const Tensor& x) { return x.clone(); }},
        {"clone of what is not dense", [](const Tensor& x) { return transpose(x).clone(); }},
        {"clone of a value that waits", [](const Tensor& x) { return (x * 2.0 + 1.0).clone(); }},
        {"clone of a stretched one",
         [](const Tensor& x) {
             return expand(reshape(x, {1, 12}), {2, 12}).clone();
         }},
        {"to a device", [&](const Tensor& x) { return x.to(second).to(device()); }},
        {"reshape",
         [](const Tensor& x) {
             return reshape(x, {2, -1});
         }},
        {"reshape of what is not dense",
         [](const Tensor& x) {
             return reshape(transpose(x), {6, 2});
         }},
        {"flatten", [](const Tensor& x) { return flatten(x, 0); }},
        {"permute",
         [](const Tensor& x) {
             return permute(reshape(x, {3, 2, 2}), {2, 0, 1});
         }},
        {"transpose", [](const Tensor& x) { return transpose(x); }},
        {"slice", [](const Tensor& x) { return slice(x, 1, 1, 4, 2); }},
        {"expand",
         [](const Tensor& x) {
             return expand(slice(x, 0, 1, 2), {3, 4});
         }},
        {"concat",
         [](const Tensor& x) {
             return concat({x, slice(x, 1, 0, 1), x}, 1);
         }},
        {"pad",
         [](const Tensor& x) {
             return pad(x, {1, 0}, {0, 2}, 0.5);
         }},
        {"sum", [](const Tensor& x) { return sum(x, {0}); }},
        {"mean", [](const Tensor& x) { return mean(x, {1}, true); }},
        {"matmul", [&](const Tensor& x) { return matmul(x, m); }},
        {"linear", [&](const Tensor& x) { return linear(x, transpose(m)); }},
        {"arithmetic",
         [&](const Tensor& x) { return (-x + x * 3.0 - 2.0) / 4.0 + (1.0 - x) * slice(transpose(m), 0, 0, 1); }},
    };
    for (const auto& [name, function] : functions) {
        CAPTURE(name);
        CHECK(check(function, {3, 4}, dtype) == "");
        if (small_cases() && name == "reshape") break;
    }
    CHECK(check([&](const Tensor& x) { return x.to(DType::f32) * 1.0; }, {3, 4}, dtype) == "");
    CHECK(check([&](const Tensor& x) { return x.to(other).to(x.dtype()); }, {3, 4}, DType::f32).find("cut") ==
          std::string::npos);
}

TEST_CASE("clone: its own memory, in the graph; of a detached tensor, outside") {
    Tensor x = tensor({1, 2, 3}, {3}).set_requires_grad();
    const Tensor copy = x.clone();
    CHECK(copy.requires_grad());
    CHECK_FALSE(copy.is_leaf());
    CHECK_FALSE(copy.view().buffer == x.view().buffer);
    CHECK_THROWS_WITH_AS(Tensor(copy).set_requires_grad(),
                         "set_requires_grad: expected a leaf, got the result of clone; detach() it first", ValueError);
    sum(copy * copy).backward();
    CHECK(values(x.grad()) == Values{2, 4, 6});
    // Later writes affect only the copy, or only the original.
    {
        const NoGrad none;
        x.fill_(7);
        CHECK(values(copy) == Values{1, 2, 3});
        CHECK_FALSE(x.clone().requires_grad());
        CHECK(x.clone().is_leaf());
        x.clone().fill_(1);
    }
    Tensor detached = x.detach().clone();
    CHECK_FALSE(detached.requires_grad());
    CHECK(detached.set_requires_grad().is_leaf());
    CHECK_FALSE(tensor({1}, {1}).clone().requires_grad());
    CHECK_FALSE(argmax(x).clone().requires_grad());

    // Its output gradient has its own memory.
    Tensor a = ones({2}).set_requires_grad(), b = ones({2}).set_requires_grad();
    sum(a.clone() + b.clone().clone() + b).backward();
    CHECK(values(a.grad()) == Values{1, 1});
    CHECK(values(b.grad()) == Values{2, 2});
    a.grad().fill_(9);
    CHECK(values(b.grad()) == Values{2, 2});
    Tensor c = ones({2}).set_requires_grad(), d = ones({2}).set_requires_grad();
    (c.clone() + d.clone()).backward(ones({2}));
    c.grad().fill_(9);
    CHECK(values(d.grad()) == Values{1, 1});
}

TEST_CASE("copies: integers, external memory and assignments are detached") {
    Tensor x = tensor({1.5, -2.5, 3}, {3}).set_requires_grad();
    CHECK_FALSE(x.to(DType::i32).requires_grad());
    CHECK_FALSE(argmax(x).requires_grad());
    CHECK_FALSE(less(x, x * 2.0).requires_grad());
    CHECK_FALSE(Tensor(x.view()).requires_grad());
    CHECK_FALSE(Tensor(x.value()).requires_grad());
    Tensor plain = zeros({3});
    plain.assign(x * 2.0);
    CHECK_FALSE(plain.requires_grad());
}

TEST_CASE(
    "copies: without double backward the first gradient works, the second is refused with function name and layer") {
    const CustomFunction exponential{
        .name = "exponential",
        .forward = [](const std::vector<Tensor>& in) { return std::vector{exp(in[0])}; },
        .backward = [](const std::vector<Tensor>&, const std::vector<Tensor>& out,
                       const std::vector<Tensor>& g) { return std::vector{g[0] * out[0]}; }};
    nn::Sequential model(nn::Linear(3, 4),
                         nn::Lambda([&](const Tensor& in) { return exponential({in})[0]; }, "Exponential"));
    const Tensor x = random_tensor({5, 3}, 1).set_requires_grad();
    const Tensor y = model(x);
    const Tensor first = grad({sum(y)}, {x}, {.create_graph = true})[0];  // the same as without it
    CHECK(values(first) == values(grad({sum(model(x))}, {x})[0]));
    CHECK(first.requires_grad());
    const auto error_of = [](const std::function<void()>& call) -> std::string {
        try {
            call();
        } catch (const Unsupported& error) {
            return error.what();
        }
        return "none";
    };
    constexpr auto* expected =
        "backward: expected functions that are twice differentiable, got exponential, which has no gradient of "
        "its gradient (in Sequential/1)";
    CHECK(error_of([&] { (void)grad({sum(square(first))}, {x}, {.retain_graph = true}); }) == expected);
    CHECK(error_of([&] { sum(square(first)).backward(); }) == expected);
    for (const Tensor& parameter : model.parameters()) CHECK_FALSE(parameter.grad().defined());
    // Paths that do not use that gradient are not affected.
    const Tensor z = grad({sum(x * x * x) + sum(y)}, {x}, {.create_graph = true})[0];
    CHECK(z.requires_grad());
    CHECK(difference(grad({sum(z.detach() * x)}, {x})[0], values(z), {1e-6, 1e-6}) == "");
}
