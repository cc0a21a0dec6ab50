// no-oclgrind: it is about whose memory is written; its kernels are those of other tests
// In-place operations with autograd: the handle takes the new value and its place in the graph.
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/launches.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/lazy_array.hpp"
#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;
using Tensors = std::vector<Tensor>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The same function with and without in-place writes.
struct Twin {
    const char* name;
    std::function<Tensor(const Tensors&in)> in_place, plain;
};

std::vector<Twin> twins() {
    return {
        {"add_, used before and after",
         [](const Tensors& in) {
             Tensor x = tanh(in[0]);
             const Tensor before = x * in[1];
             x.add_(in[1]);
             return before * x + square(x);
         },
         [](const Tensors& in) {
             const Tensor x = tanh(in[0]), y = x + in[1];
             return x * in[1] * y + square(y);
         }},
        {"all of them, one after the other",
         [](const Tensors& in) {
             Tensor x = exp(in[0]);  // saves its result
             x.mul_(in[1]).sub_(in[0]).mul_(0.5).div_(x.clone() * x.clone() + 1.0).add_(in[1]);
             return x * in[0];
         },
         [](const Tensors& in) {
             const Tensor y = (exp(in[0]) * in[1] - in[0]) * 0.5;
             return (y / (y * y + 1.0) + in[1]) * in[0];
         }},
        {"a plain tensor that becomes a part of the graph",
         [](const Tensors& in) {
             Tensor x = full({3, 5}, 0.25, {in[0].dtype()});
             const Tensor before = x * in[0];
             for (int i = 0; i < 3; ++i) x.add_(in[0] * x);
             return x * in[1] + before;
         },
         [](const Tensors& in) {
             Tensor x = full({3, 5}, 0.25, {in[0].dtype()});
             const Tensor before = x * in[0];
             for (int i = 0; i < 3; ++i) x = x + in[0] * x;
             return x * in[1] + before;
         }},
        {"copy_ of a donated tensor, and of a saved one",
         [](const Tensors& in) {
             Tensor x = zeros({3, 5}, {in[0].dtype()}), z = in[1] * 2.0;
             x.copy_(sigmoid(in[0]));
             const Tensor before = x * x;
             z.copy_(x);
             x.mul_(in[1]);
             return before + z * x;
         },
         [](const Tensors& in) {
             const Tensor x = sigmoid(in[0]), y = x * in[1];
             return x * x + x * y;
         }},
        {"fill_ and zero_",
         [](const Tensors& in) {
             Tensor x = in[0] * in[1];
             const Tensor before = square(x);
             x.fill_(3);
             const Tensor filled = x + in[1];
             x.zero_();
             x.add_(in[0]);
             return before + filled + x * in[1];
         },
         [](const Tensors& in) { return square(in[0] * in[1]) + 3.0 + in[1] + in[0] * in[1]; }},
        {"a source that stretches, and one that is the tensor itself",
         [](const Tensors& in) {
             Tensor x = in[0] * 1.5;
             x.add_(slice(in[1], 0, 1, 2)).mul_(x).add_(x);
             return x;
         },
         [](const Tensors& in) {
             const Tensor x = in[0] * 1.5 + slice(in[1], 0, 1, 2);
             return x * x + x * x;
         }},
        {"of what a product and a reduction keep",
         [](const Tensors& in) {
             Tensor h = in[0] * 2.0;
             const Tensor p = matmul(h, transpose(in[1])), m = softmax(h);
             h.mul_(in[1]);
             return sum(p) * h + m * h;
         },
         [](const Tensors& in) {
             const Tensor h = in[0] * 2.0, k = h * in[1];
             return sum(matmul(h, transpose(in[1]))) * k + softmax(h) * k;
         }},
        {"rows filled by slice_scatter and select_scatter",
         [](const Tensors& in) {
             Tensor x = zeros({3, 5}, {in[0].dtype()});
             for (int i = 0; i < 3; ++i) {
                 Tensor row = tanh(slice(in[0], 0, i, i + 1) * slice(in[1], 0, 2 - i, 3 - i));
                 if (i == 1) x = select_scatter(std::move(x), select(row, 0, 0), 0, -2);
                 else x = slice_scatter(std::move(x), std::move(row), 0, i, i + 1);
             }
             return x * in[1];
         },
         [](const Tensors& in) {
             Tensors rows;
             for (int i = 0; i < 3; ++i)
                 rows.push_back(tanh(slice(in[0], 0, i, i + 1) * slice(in[1], 0, 2 - i, 3 - i)));
             return concat(rows, 0) * in[1];
         }},
        {"columns overwritten, some twice, and looked at between",
         [](const Tensors& in) {
             Tensor x = in[0] * in[1];
             const Tensor before = square(x);
             x = slice_scatter(std::move(x), square(slice(in[1], 1, 0, 3)), 1, 0, 5, 2);
             const Tensor between = sum(x * in[0], {0}, true);
             x = slice_scatter(std::move(x), slice(in[0], 1, 1, 3), 1, 1, 3);
             return before + between * x;
         },
         [](const Tensors& in) {
             const Tensor x = in[0] * in[1], s = square(slice(in[1], 1, 0, 3));
             const auto column = [](const Tensor& tensor, int i) { return slice(tensor, 1, i, i + 1); };
             const Tensor y = concat({column(s, 0), column(x, 1), column(s, 1), column(x, 3), column(s, 2)}, 1);
             const Tensor z = concat({column(s, 0), slice(in[0], 1, 1, 3), column(x, 3), column(s, 2)}, 1);
             return square(x) + sum(y * in[0], {0}, true) * z;
         }},
    };
}

Tensors inputs_of(DType dtype) {
    return {random_tensor({3, 5}, 1, dtype, 0.2, 1.5), random_tensor({3, 5}, 2, dtype, -1, 1)};
}

/// Result, gradients, and second-order gradients.
std::vector<Values> outcomes(const std::function<Tensor(const Tensors&)>& function, DType dtype) {
    Tensors in = inputs_of(dtype);
    for (Tensor& input : in) input.set_requires_grad();
    const Tensor weights = random_tensor({3, 5}, 7, dtype);
    std::vector<Values> out;
    const Tensor y = function(in);
    out.push_back(values(y));
    const Tensor loss = sum(y * weights);
    const auto first = grad({loss}, in, {.retain_graph = true, .create_graph = true});
    for (const Tensor& tensor : first) out.push_back(values(tensor));
    for (const Tensor& tensor : grad({sum(square(first[0])) + sum(first[1] * weights)}, in, {.retain_graph = true}))
        out.push_back(values(tensor));
    loss.backward();
    for (const Tensor& input : in) out.push_back(values(input.grad()));
    return out;
}

}  // namespace

TEST_CASE("in place with autograd: a square is multiplied by 10") {
    const Tensor x = tensor({1, 2}, {2}).set_requires_grad();
    Tensor y = square(x);
    y *= 10;
    CHECK(values(y) == Values{10, 40});
    sum(y).backward();
    CHECK(values(x.grad()) == Values{20, 40});  // 20 x
}

TEST_CASE("in place with autograd: values and gradients to second order match those without") {
    for (const Twin& twin : twins()) {
        INFO(twin.name);
        for (const DType dtype : floats()) {
            const auto got = outcomes(twin.in_place, dtype), expected = outcomes(twin.plain, dtype);
            REQUIRE(got.size() == expected.size());
            for (std::size_t i = 0; i < got.size(); ++i) {
                CAPTURE(i);
                CHECK(difference(got[i], expected[i], tolerance(dtype, 60, 4)) == "");
            }
        }
        if (device().info().fp64 && !small_cases())
            CHECK(gradient_difference(twin.in_place, inputs_of(DType::f64)) == "");
    }
}

TEST_CASE("in place with autograd: the same in a checkpoint, captured, and without fusion") {
    for (const Twin& twin : twins()) {
        INFO(twin.name);
        const auto plain = outcomes(twin.in_place, DType::f32);
        const auto in_checkpoint = outcomes(
            [&](const Tensors& in) {
                return checkpoint([&](const Tensors& recomputed) { return Tensors{twin.in_place(recomputed)}; }, in)[0];
            },
            DType::f32);
        for (std::size_t i = 0; i < plain.size(); ++i)
            CHECK(difference(in_checkpoint[i], plain[i], tolerance(DType::f32, 60, 4)) == "");

        auto leaves = [] {
            Tensors in = inputs_of(DType::f32);
            for (Tensor& input : in) input.set_requires_grad();
            return in;
        };
        const auto step_of = [&](const Tensors& in) {
            return [&](const Tensors& factors) {
                for (const Tensor& input : in) Tensor(input).zero_grad();
                const Tensor y = twin.in_place({in[0] * factors[0], in[1]});
                sum(y * factors[0]).backward();
                return Tensors{y.detach()};
            };
        };
        const Tensors a = leaves(), b = leaves();
        auto captured_step = capture(step_of(a));
        const auto plain_step = step_of(b);
        for (std::uint64_t turn = 0; turn < 3; ++turn) {
            const Tensor factors = random_tensor({3, 5}, 30 + turn, DType::f32, 0.5, 1);
            const Values got = values(captured_step({factors})[0]);
            CHECK(got == values(plain_step({factors})[0]));
            for (std::size_t i = 0; i < a.size(); ++i) CHECK(values(a[i].grad()) == values(b[i].grad()));
        }
        CHECK(captured_step.replayed() == 2);
    }
}

TEST_CASE("in place with autograd: all handles take the value; the graph is released, or retained") {
    Tensor x = random_tensor({4}, 1).set_requires_grad();
    Tensor h = x * 2.0;
    const Tensor other = h;
    const Tensor& result = h.add_(x);
    CHECK(state_of(result) == state_of(h));
    CHECK(values(other) == values(x * 3.0));
    CHECK(other.requires_grad());
    CHECK_FALSE(other.is_leaf());
    const Tensor loss = sum(other);
    loss.backward({}, true);
    loss.backward();
    CHECK(values(x.grad()) == Values(4, 6));
    CHECK_THROWS_AS(loss.backward(), ValueError);
    // fill_ ends its part in the graph; add_ of a leaf joins it again.
    h.fill_(2);
    CHECK_FALSE(h.requires_grad());
    CHECK(h.is_leaf());
    h.add_(x);
    CHECK(values(grad({sum(h * h)}, {h, x})[0]) == values(h * 2.0));
    // Writes without a gradient are seen by views.
    Tensor plain = zeros({2, 2});
    const Tensor row = slice(plain, 0, 0, 1);
    plain.add_(ones({2, 2})).sub_(full({2, 2}, 3)).div_(full({2, 2}, 2)).mul_(full({2, 2}, 5));
    CHECK(values(row) == Values{-5, -5});
    CHECK(values(plain.zero_()) == Values(4, 0));
    CHECK(values(row) == Values{0, 0});
}

TEST_CASE("in place with autograd: hooks belong to the value they were registered on") {
    Tensor x = random_tensor({3}, 1).set_requires_grad();
    Tensor h = x * 2.0;
    std::vector<Values> seen;
    const auto record = [&](const Tensor& g) {
        seen.push_back(values(g));
        return Tensor();
    };
    h.register_hook(record);
    h.mul_(5.0);
    h.register_hook(record);
    sum(h).backward();
    CHECK(seen == std::vector<Values>{Values(3, 1), Values(3, 5)});
    CHECK(values(x.grad()) == Values(3, 10));
}

TEST_CASE("in place with autograd: error messages") {
    Tensor w = random_tensor({2, 3}, 1).set_requires_grad(), plain = zeros({2, 3});
    CHECK(contains(error_message<Error>([&] { w.add_(plain); }),
                   "add_: expected a tensor that does not require a gradient, got one of shape [2, 3] that requires a "
                   "gradient; write under NoGrad"));
    constexpr auto* message = "expected a tensor with unshared memory when grad mode is on";
    const auto check_error = [&](Tensor x, const std::string& name, const std::function<void(Tensor&)>& write) {
        return error_message<Error>([&] { write(x); }).starts_with(name + ": " + message);
    };
    Tensor h = w * 2.0;
    {
        for (const Tensor& view : {slice(h, 0, 0, 1), reshape(h, {6}), transpose(h), h.detach(), select(h, 0, 1)}) {
            CHECK(check_error(h, "mul_", [](Tensor& x) { x.mul_(2); }));
            CHECK(check_error(h, "fill_", [](Tensor& x) { x.fill_(2); }));
            if (view.requires_grad()) CHECK(check_error(view, "mul_", [](Tensor& x) { x.mul_(2); }));
        }
        CHECK(check_error(slice(plain, 0, 0, 1), "copy_", [&](Tensor& x) { x.copy_(slice(w, 0, 1, 2)); }));
        CHECK(values(h) == values(w * 2.0));  // and nothing was written
        CHECK(values(plain) == Values(6, 0));
    }
    CHECK_NOTHROW(h.mul_(2));  // the views are gone
    {
        // Views held only by the graph do not count.
        const Tensor squared = square(slice(h, 0, 0, 1));
        h.add_(w);
        sum(h).backward({}, true);
        CHECK(values(w.grad()) == Values(6, 5));
        w.zero_grad();
        sum(squared).backward();
        CHECK(difference(slice(w.grad(), 0, 0, 1), values(slice(w, 0, 0, 1) * 32.0), {1e-5, 1e-5}) == "");
    }
    // Under NoGrad memory is written, which views see and saved tensors detect.
    Tensor e = w * 3.0;
    const Tensor view = slice(e, 0, 0, 1), loss = sum(square(e));
    (void)values(loss);
    {
        const NoGrad no_grad;
        e.fill_(1);
    }
    CHECK(values(view) == Values(3, 1));
    CHECK(contains(error_message<Error>([&] { loss.backward(); }), "was written in place after the forward call"));
    // Errors leave the tensor unchanged.
    Tensor k = w * 1.0;
    CHECK(contains(error_message<Error>([&] {
                       k.add_(random_tensor({2, 2, 3}, 1));
                   }),
                   "add_: expected a shape that broadcasts to [2, 3]"));
    CHECK(contains(error_message<Error>([&] { k.copy_(zeros({3})); }),
                   "copy_: expected the source of shape [2, 3], got [3]"));
    CHECK(values(k) == values(w));
}

TEST_CASE("in place with autograd: a checkpoint's input is unchanged, other tensors used by its function are refused") {
    const Tensor w = random_tensor({3}, 1).set_requires_grad();
    Tensor h = w * 2.0;
    const Tensor y = checkpoint([](const Tensor& in) { return square(in); }, h);
    h.add_(w);
    sum(y + h).backward();
    CHECK(difference(w.grad(), values(w * 8.0 + 3.0), {1e-5, 1e-5}) == "");
    Tensor k = w * 2.0;
    const Tensor z = checkpoint([&](const Tensor& in) { return in * k; }, h.detach());
    k.add_(w);
    CHECK(contains(error_message<Error>([&] { sum(z).backward(); }),
                   "was written in place under a graph after the first call"));
}

TEST_CASE("in place with autograd: a captured step writes only its own tensors this way") {
    const Tensor w = random_tensor({3}, 1).set_requires_grad();
    Tensor outside = zeros({3});
    const auto step = [&](const Tensor& in) {
        outside.add_(w * in);
        return in * 2.0;
    };
    auto strict = capture(step);
    CHECK(contains(error_message<Error>([&] { strict(ones({3})); }),
                   "add_ under a graph to a tensor from before the step"));
    outside = zeros({3});
    auto fallback = capture(step, {.when_refused = WhenRefused::run});
    for (int i = 0; i < 3; ++i) (void)fallback(ones({3}));
    CHECK(difference(outside, values(w * 3.0), {1e-6, 1e-6}) == "");
    CHECK(fallback.replayed() == 0);
    // Without a graph, memory is written, and the write is replayed.
    Tensor state = zeros({3});
    auto adds = capture([&](const Tensor& in) {
        state.add_((w * in).detach());
        return in * 2.0;
    });
    for (int i = 0; i < 3; ++i) (void)adds(ones({3}));
    CHECK(difference(state, values(w * 3.0), {1e-6, 1e-6}) == "");
    CHECK(adds.replayed() == 2);
    // A tensor created by the step that outlives it does not count as one from before it.
    Tensor escaped;
    auto keeps = capture([&](const Tensor& in) {
        Tensor(w).zero_grad();
        Tensor h = w * in;
        const Tensor before = square(h);
        h.add_(w);
        sum(h * before).backward();
        escaped = h;
        return in * 2.0;
    });
    for (int i = 0; i < 3; ++i) (void)keeps(full({3}, i + 1.0));
    CHECK(keeps.replayed() == 2);
    CHECK(difference(escaped, values(w * 4.0), {1e-5, 1e-5}) == "");
    CHECK(difference(w.grad(), values(square(w) * 108.0), {1e-4, 1e-5}) == "");
}

TEST_CASE("in place with autograd: pending values stay one kernel, and donated ones are not copied") {
    const Tensor w = random_tensor({64, 64}, 1).set_requires_grad();
    const auto chain = [&] {
        Tensor x = w * 2.0;
        x.add_(w).mul_(3.0).mul_(w);
        return x;
    };
    const auto plain = [&] { return ((w * 2.0 + w) * 3.0) * w; };
    materialize(chain());
    CHECK(launches([&] { materialize(chain()); }) == launches([&] { materialize(plain()); }));
    // Elements of a donated tensor are used without a copy.
    const auto peak_of_copy = [](Tensor from) {
        Tensor to = zeros(from.shape());
        device().synchronize();
        device().reset_peak_memory();
        const auto before = device().memory().in_use;
        const Values expected = values(from);
        to.copy_(std::move(from));
        CHECK(values(to) == expected);
        return device().memory().peak - before;
    };
    Tensor donated = relu(w), alias = donated;
    materialize(donated);
    CHECK(peak_of_copy(std::move(donated)) > 0);
    CHECK(peak_of_copy(std::move(alias)) == 0);
    const Tensor shares = relu(w);
    CHECK(peak_of_copy(reshape(shares, {4096})) > 0);
}

TEST_CASE("slice_scatter: writes into donated memory only") {
    const Device current_device = device();
    const auto row = [](std::uint64_t seed) { return random_tensor({1, 4096}, seed); };
    Tensor x = zeros({8, 4096});
    const auto memory = [](const Tensor& tensor) { return tensor.value().view().buffer; };
    current_device.synchronize();
    const auto before = current_device.memory().in_use;
    Values expected;
    for (std::uint64_t i = 0; i < 8; ++i) {
        x = slice_scatter(std::move(x), row(i), 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1);
        const Values row_values = values(row(i));
        expected.insert(expected.end(), row_values.begin(), row_values.end());
        CHECK(current_device.memory().in_use ==
              before);  // else it is a copy, until the old one is freed: see the peak below
    }
    CHECK(values(x) == expected);
    // The memory is referenced, has a view, or has a pending reader.
    {
        const Tensor alias = x, view = slice(x, 0, 0, 1), pending = square(x);
        const Tensor y = slice_scatter(x, row(20), 0, 0, 1);
        CHECK_FALSE(memory(y) == memory(x));
        CHECK(values(alias) == expected);
        Tensor recomputed = x;
        x = {};
        const Tensor z = slice_scatter(std::move(recomputed), row(20), 0, 0, 1);
        CHECK(values(alias) == expected);
        CHECK(values(pending) == values(square(alias)));
        CHECK(values(z) == values(y));
    }
    Tensor base = zeros({8, 4096});
    const Tensor view = slice(base, 0, 0, 1), pending = base + 1.0;
    base = slice_scatter(std::move(base), ones({1, 4096}), 0, 0, 1);
    CHECK(values(view) == Values(4096, 0));
    CHECK(values(pending) == Values(std::size_t{8} * 4096, 1));
    // A saved tensor is not overwritten.
    const Tensor w = random_tensor({8, 4096}, 3).set_requires_grad();
    Tensor h = w * 1.0;
    const Tensor loss = sum(square(h));
    h = slice_scatter(std::move(h), row(1), 0, 2, 3);
    (loss + sum(h)).backward();
    Values gradient = values(w * 2.0);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += i / 4096 == 2 ? 0 : 1;
    CHECK(difference(w.grad(), gradient, {1e-5, 1e-5}) == "");
    // A leaf is not written, even through its last handle.
    Tensor leaf = zeros({8, 4096}).set_requires_grad();
    const Tensor updated_leaf = slice_scatter(std::move(leaf), row(1), 0, 2, 3);
    CHECK_NOTHROW(sum(updated_leaf).backward());
}

TEST_CASE("slice_scatter: the cost of a row in a long chain is that of the row, forward and backward") {
    const std::int64_t rows = 24, columns = 2048;
    const Tensor w = random_tensor({1, columns}, 1).set_requires_grad();
    const auto fill = [&](bool donate) {
        Tensor x = zeros({rows, columns});
        for (std::int64_t t = 0; t < rows; ++t)
            x = donate ? slice_scatter(std::move(x), w * static_cast<double>(t + 1), 0, t, t + 1)
                       : slice_scatter(x, w * static_cast<double>(t + 1), 0, t, t + 1);
        return x;
    };
    const auto peak_of = [&](const std::function<void()>& call) {
        device().synchronize();
        device().reset_peak_memory();
        const auto before = device().memory().in_use;
        call();
        device().synchronize();
        return device().memory().peak - before;
    };
    const Tensor donated = fill(true), copied = fill(false);
    CHECK(values(donated) == values(copied));
    const auto tensor_bytes = static_cast<std::uint64_t>(rows * columns) * 4;
    CHECK(peak_of([&] { materialize(fill(true)); }) < 2 * tensor_bytes);
    CHECK(peak_of([&] { materialize(fill(false)); }) >= 2 * tensor_bytes);
    Values expected(static_cast<std::size_t>(columns));
    const Values weights = random_values(rows * columns, 5);
    for (std::size_t i = 0; i < weights.size(); ++i)
        expected[i % static_cast<std::size_t>(columns)] +=
            weights[i] * static_cast<double>(i / static_cast<std::size_t>(columns) + 1);
    for (const Tensor& x : {donated, copied}) {
        Tensor(w).zero_grad();
        const Tensor loss = sum(x * tensor(weights, {rows, columns}));
        materialize(loss);
        const auto peak = peak_of([&] { loss.backward(); });
        if (ops::fuses()) CHECK(2 * peak < 3 * tensor_bytes);  // the gradient, and rows
        CHECK(difference(w.grad(), expected, {1e-3, 1e-4}) == "");
    }
}

TEST_CASE("select, slice_scatter and select_scatter: parts, types and errors") {
    const Tensor x = tensor({0, 1, 2, 3, 4, 5}, {2, 3});
    CHECK(values(select(x, 0, -1)) == Values{3, 4, 5});
    CHECK(select(x, 1, 0).shape() == Shape{2});
    CHECK(values(select_scatter(x, tensor({7, 8}, {2}), 1, 1)) == Values{0, 7, 2, 3, 8, 5});
    CHECK(values(slice_scatter(x, tensor({7, 8, 9, 6}, {2, 2}), 1, 0, 3, 2)) == Values{7, 1, 8, 9, 4, 6});
    CHECK(values(slice_scatter(x, zeros({0, 3}), 0, 1, 1)) == values(x));
    CHECK(values(slice_scatter(x, ones({2, 3}), 0, -5, 9)) == Values(6, 1));
    CHECK(values(x) == Values{0, 1, 2, 3, 4, 5});
    for (const DType dtype : {DType::i32, DType::u8, DType::i64, DType::boolean})
        CHECK(values(select_scatter(zeros({2, 2}, {dtype}), ones({2}, {dtype}), 0, 1)) == Values{0, 0, 1, 1});
    CHECK(error_message<Error>([&] { (void)select(x, 0, 2); }) ==
          "select: expected an index from -2 to 1 along axis 0, got 2");
    CHECK(error_message<Error>([&] { (void)select_scatter(x, zeros({3}), 0, -3); }) ==
          "select_scatter: expected an index from -2 to 1 along axis 0, got -3");
    CHECK(error_message<Error>([&] { (void)select_scatter(x, zeros({2}), 0, 1); }) ==
          "select_scatter: expected src of shape [3], got [2]");
    CHECK(error_message<Error>([&] { (void)slice_scatter(x, zeros({3}), 0, 0, 1); }) ==
          "slice_scatter: expected src of shape [1, 3], got [3]");
    CHECK(contains(error_message<Error>([&] {
                       (void)slice_scatter(x, zeros({1, 3}, {DType::i32}), 0, 0, 1);
                   }),
                   "slice_scatter: "));
    CHECK(error_message<Error>([&] {
              (void)slice_scatter(x, zeros({1, 3}), 0, 0, 1, 0);
          }) == "slice_scatter: expected a step of at least 1, got 0");
}
