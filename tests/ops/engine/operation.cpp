// Deferred operations: reads and writes, several outputs, epilogues, and launches.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/matmul.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/launches.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"
#include "ops/engine/fusion.hpp"
#include "ops/engine/lazy_array.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::EpilogueFused;
using ops::FusionScope;
using ops::LazyArray;
using ops::OperationViews;
using ops::View;

namespace {

using Values = std::vector<double>;

/// Data passed from a launch function to a test.
struct LaunchLog {
    int calls = 0;
    bool fails = false;
    std::vector<bool> required = {};
};

/// out 0 = x * factor, out 1 (of another type) = x + 1, written 0 += x.
struct Mixed {
    double factor;
    LaunchLog* log;
    bool fuses_epilogue = false;
};

EpilogueFused launch_mixed(const OperationViews& views, const Mixed& mixed) {
    ++mixed.log->calls;
    if (mixed.log->fails) throw DeviceError("mixed: it broke", -5);
    const View &x = views.in(0), &sums = views.written(0);
    mixed.log->required = {views.out(0).buffer ? true : false, sums.buffer ? true : false};
    const auto apply = [](ops::Function function, const ops::Expression& a, const ops::Expression& b) {
        return ops::Expression::apply(function, std::array{a, b});
    };
    if (sums.buffer) ops::evaluate(apply(ops::Function::add, sums, x), sums);
    ops::evaluate(
        ops::Expression::cast(apply(ops::Function::add, x, ops::Expression::constant(1, x.dtype)), views.out(1).dtype),
        views.out(1));
    if (!views.out(0).buffer) return EpilogueFused::yes;
    ops::evaluate(apply(ops::Function::mul, x, ops::Expression::constant(mixed.factor, x.dtype)), views.out(0));
    if (!mixed.fuses_epilogue) return EpilogueFused::no;
    ops::apply_epilogue(views.epilogue(), views.out(0));
    return EpilogueFused::yes;
}

DType another_type() { return device().info().fp64 ? DType::f64 : DType::f16; }

struct Results {
    Tensor scaled, plus_one;
};

Results mixed(const Tensor& x, const Tensor& sums, const Mixed& attributes) {
    const View in = x.view();
    const auto results = ops::operation("mixed", launch_mixed, attributes,
                                        {.reads = {in, View()},
                                         .writes = {sums.defined() ? sums.view() : View()},
                                         .outputs = {{in.dtype, in.shape, true}, {another_type(), in.shape}}});
    return {Tensor(results[0]), Tensor(results[1])};
}

std::vector<double> changed(const Tensor& x, double factor, double offset) {
    std::vector<double> all = values(x);
    for (double& value : all) value = value * factor + offset;
    return all;
}

const Tolerance near = tolerance(DType::f32, 4);

struct HoldsView {
    View view;
};

}  // namespace

// A launch function can only use declared data: these do not compile.
static_assert(!std::is_trivially_copyable_v<HoldsView>);
static_assert(std::is_convertible_v<decltype([](const OperationViews&, const Mixed&) { return EpilogueFused::no; }),
                                    ops::OperationCall::Launch<Mixed>>);
static_assert(
    !std::is_convertible_v<decltype([view = View()](const OperationViews&, const Mixed&) { return EpilogueFused::no; }),
                           ops::OperationCall::Launch<Mixed>>);

TEST_CASE("operation: several outputs of several types in one launch; an epilogue that it fuses or not") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({3, 37}, 1), other = random_tensor({3, 37}, 2);
    for (const bool takes : {false, true}) {
        CAPTURE(takes);
        LaunchLog log;
        const auto [scaled, plus_one] = [&] {
            Results results = mixed(x, {}, {2, &log, takes});
            return std::pair{std::move(results.scaled) * 3.0 + other, results.plus_one};
        }();
        CHECK(log.calls == 0);
        std::vector<double> expected = changed(x, 6, 0);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += values(other)[i];
        CHECK(difference(scaled, expected, near) == "");
        CHECK(plus_one.value().computed());
        CHECK(difference(plus_one, changed(x, 1, 1), {1e-3, 1e-3}) == "");
        CHECK(log.calls == 1);
        // The second output first, broadcast by an expression and as its only input.
        const Results again = mixed(x, {}, {2, &log, takes});
        const Tensor mean = sum(again.plus_one.to(DType::f32) * again.scaled, {1});
        std::vector<double> rows(3);
        for (std::size_t i = 0; i < 111; ++i) rows[i / 37] += (values(x)[i] + 1) * values(x)[i] * 2;
        CHECK(difference(mean, rows, {0.02, 0.01}) == "");
        CHECK(log.calls == 2);
    }
    const FusionScope fusion_off(false);
    LaunchLog log;
    const Results now = mixed(x, {}, {2, &log});
    CHECK(log.calls == 1);
    CHECK(difference(now.scaled, changed(x, 2, 0), near) == "");
}

TEST_CASE("operation: unreferenced outputs are not computed") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({50}, 1), sums = random_tensor({50}, 2);
    LaunchLog log;
    const std::vector<double> before = values(sums);
    (void)mixed(x, {}, {2, &log});
    {
        const Tensor plus_one = mixed(x, {}, {2, &log}).plus_one;
        CHECK(log.calls == 0);
        materialize(plus_one);
        CHECK(log.calls == 1);
        CHECK(log.required == std::vector<bool>{false, false});
    }
    // In-place writes happen even without a referenced output.
    (void)mixed(x, sums, {2, &log});
    CHECK(log.calls == 1);
    std::vector<double> expected = before;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += values(x)[i];
    CHECK(difference(sums, expected, near) == "");
    CHECK(log.calls == 2);
    CHECK(log.required == std::vector<bool>{false, true});
    // Unless the written tensor is gone, too; and if it is gone when an output is needed.
    (void)mixed(x, random_tensor({50}, 3), {2, &log});
    CHECK(log.calls == 2);
    const Tensor scaled = mixed(x, random_tensor({50}, 3), {2, &log}).scaled;
    CHECK(difference(scaled, changed(x, 2, 0), near) == "");
    CHECK(log.required == std::vector<bool>{true, false});
}

TEST_CASE("operation: in-place writes happen in order") {
    const FusionScope fusion_on(true);
    Tensor x = random_tensor({4, 11}, 1), sums = zeros({4, 11});
    LaunchLog log;
    const std::vector<double> in = values(x);
    const auto version = sums.view().buffer.version();
    const Tensor earlier = sums + 5.0;  // reads the old value
    const Results results = mixed(x, sums, {3, &log});
    CHECK(sums.view().buffer.version() > version);
    x.fill_(100);  // written after the call
    (void)mixed(x, sums, {3, &log});
    const Tensor later = sums * 2.0;
    CHECK(values(earlier) == std::vector<double>(44, 5));
    CHECK(difference(
              results.scaled,
              [&] {
                  std::vector<double> expected = in;
                  for (double& value : expected) value *= 3;
                  return expected;
              }(),
              near) == "");
    std::vector<double> expected = in;
    for (double& value : expected) value = (value + 100) * 2;
    CHECK(difference(later, expected, tolerance(DType::f32, 4, 200)) == "");
    CHECK(log.calls == 2);
    // Saved tensors detect the write.
    Tensor weight = random_tensor({4, 11}, 5);
    weight.set_requires_grad();
    const Tensor loss = sum(weight * sums);
    (void)mixed(x, sums, {3, &log});
    CHECK_THROWS_AS(loss.backward(), ValueError);
}

TEST_CASE("operation: a failed launch stays pending, and its error names it") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({6}, 1), w = random_tensor({6, 6}, 2);
    LaunchLog log{.fails = true};
    const Tensor y = [&] {
        const Scope scope("layer");
        return mixed(x, {}, {2, &log}).scaled * 2.0;
    }();
    // Another call, which launches it as a deferred operation, throws its error, and can be repeated.
    CHECK_THROWS_WITH_AS((void)matmul(w, w), "mixed: it broke (in layer/mixed, deferred and launched now)",
                         DeviceError);
    CHECK(log.calls == 1);
    CHECK(values(matmul(w, w)).size() == 36);
    CHECK(log.calls == 1);
    std::string message;
    {
        const Scope elsewhere("elsewhere");
        try {
            (void)values(y);
        } catch (const DeviceError& error) {
            message = error.what();
        }
        CHECK(Scope::path() == "elsewhere");
    }
    CHECK(message == "mixed: it broke (in layer)");
    CHECK(log.calls == 2);
    log.fails = false;
    CHECK(difference(y, changed(x, 4, 0), near) == "");
    // A write to its input must launch it first.
    Tensor written = random_tensor({6}, 3);
    const std::vector<double> in = values(written);
    const Results retained = mixed(written, {}, {2, &log});
    log.fails = true;
    CHECK_THROWS_WITH_AS(written.fill_(0), "mixed: it broke (in mixed, deferred and launched now)", DeviceError);
    log.fails = false;
    CHECK(values(written) == in);
    written.fill_(0);
    std::vector<double> expected = in;
    for (double& value : expected) value *= 2;
    CHECK(difference(retained.scaled, expected, near) == "");
}

TEST_CASE("operation: a failed epilogue leaves its output intact") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({2, 3}, 1);
    LaunchLog log;
    const Tensor y = mixed(x, {}, {2, &log}).scaled;
    CHECK(ops::kMaxAttributeBytes >= sizeof(Mixed));
    CHECK(difference(
              relu(y),
              [&] {
                  std::vector<double> expected = changed(x, 2, 0);
                  for (double& value : expected) value = std::max(value, 0.0);
                  return expected;
              }(),
              near) == "");
    CHECK(log.calls == 1);
    const auto without_inputs = [] {
        return ops::operation("nothing", [](const OperationViews&, const int&) { return EpilogueFused::no; }, 0,
                              {.reads = {}, .outputs = {{DType::f32, {2}}}});
    };
    CHECK_THROWS_WITH_AS(without_inputs(), "operation: expected a view that \"nothing\" reads or writes, got none",
                         ValueError);
    const auto run_twice = [&] {
        return ops::operation("twice", [](const OperationViews&, const int&) { return EpilogueFused::no; }, 0,
                              {.reads = {x.view()}, .writes = {x.view()}, .outputs = {{DType::f32, {2}}}});
    };
    CHECK_THROWS_WITH_AS(run_twice(),
                         "operation: expected memory that \"twice\" writes to be absent from its reads, got it in both",
                         ValueError);
    const auto two_outputs_batched = [&] {
        return ops::deferred_batched("several", [](std::span<const OperationViews>) {},
                                     {.reads = {x.view()}, .outputs = {{DType::f32, {2}}, {DType::f32, {2}}}});
    };
    CHECK_THROWS_WITH_AS(two_outputs_batched(),
                         "deferred_batched: expected one output of \"several\" and no writes in place, "
                         "got 2 and 0",
                         ValueError);
    const auto no_output = [&] {
        return ops::operation("blind", [](const OperationViews&, const int&) { return EpilogueFused::no; }, 0,
                              {.reads = {x.view()}, .outputs = {}});
    };
    CHECK_THROWS_WITH_AS(
        no_output(), "operation: expected 1 to 4 outputs of \"blind\", or memory that it writes, got 0", ValueError);
}

TEST_CASE("operation: two expressions over one of its outputs") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({4, 4}, 1), w = random_tensor({4, 4}, 2);
    const Values product = values(matmul(x, w));
    const auto lazy_pair = [&] {
        const ops::Expression operand(
            ops::matmul(ops::reshaped(x.view(), {1, 4, 4}), ops::reshaped(w.view(), {1, 4, 4}), {4, 4}));
        const LazyArray p = ops::make_lazy(ops::Expression::apply(Function::relu, std::array{operand}), x.device());
        const LazyArray q = ops::make_lazy(ops::Expression::apply(Function::neg, std::array{operand}), x.device());
        return std::pair{p, q};
    }();
    Values positive = product, negative = product;
    for (double& value : positive) value = std::max(value, 0.0);
    for (double& value : negative) value = -value;
    CHECK(difference(Tensor(lazy_pair.first), positive, near) == "");
    CHECK(difference(Tensor(lazy_pair.second), negative, near) == "");
}

TEST_CASE("operation: captured and replayed, including in-place writes") {
    const FusionScope fusion_on(true);
    LaunchLog log;
    Tensor sums = zeros({5, 7});
    auto step = capture([&](const Tensor& x) {
        const Results results = mixed(x, sums, {2, &log});
        return results.scaled + results.plus_one.to(DType::f32);
    });
    std::vector<double> expected(35, 0);
    for (int i = 0; i < 4; ++i) {
        const Tensor x = random_tensor({5, 7}, static_cast<std::uint64_t>(i) + 1);
        const Tensor y = step(x);
        CHECK(difference(y, changed(x, 3, 1), {1e-3, 1e-3}) == "");
        for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += values(x)[k];
    }
    CHECK(difference(sums, expected, tolerance(DType::f32, 8)) == "");
    CHECK(log.calls < 4);
}

// ---- evaluation into a given destination

TEST_CASE("evaluate_into: pending values are computed in the destination") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({3, 8}, 1), w = random_tensor({8, 5}, 2), y = random_tensor({3, 8}, 3);
    const auto cache = [](const Shape& shape) { return full(shape, 7); };
    const auto rows = [](const Tensor& tensor, std::int64_t from, std::int64_t to) {
        return slice(tensor, 0, from, to);
    };
    SUBCASE("an elementwise chain: one kernel, dense or not") {
        Tensor dense = cache({9, 8}), strided = cache({3, 20});
        CHECK(launches([&] { rows(dense, 2, 5).copy_(relu(x) * 2.0 + y); }) == 1);
        CHECK(launches([&] { slice(strided, 1, 3, 19, 2).copy_(relu(x) * 2.0 + y); }) == 1);
        const std::vector<double> expected = values(relu(x) * 2.0 + y);
        CHECK(difference(rows(dense, 2, 5), expected, near) == "");
        CHECK(difference(slice(strided, 1, 3, 19, 2), expected, near) == "");
        CHECK(values(dense)[15] == 7);
        CHECK(values(dense)[40] == 7);
        CHECK(values(strided)[4] == 7);
    }
    SUBCASE("a product with its epilogue") {
        Tensor dense = cache({9, 5}), strided = cache({3, 9});
        const std::vector<double> expected = values(relu(matmul(x, w)));
        const int separate_launches = launches([&] { materialize(matmul(x, w)); });
        CHECK(launches([&] { rows(dense, 4, 7).copy_(relu(matmul(x, w))); }) <= separate_launches + 1);
        const int plain = launches([&] { rows(dense, 4, 7).copy_(matmul(x, w)); });
        CHECK(plain == separate_launches);
        // No copy follows them.
        auto fused_step = capture([&] { (void)rows(dense, 4, 7).copy_(relu(matmul(x, w))); }),
             separate_step = capture([&] {
                 const Tensor result = relu(matmul(x, w));
                 materialize(result);
             });
        fused_step(), separate_step();
        CHECK(fused_step.command_list().commands() == separate_step.command_list().commands());
        rows(dense, 4, 7).copy_(relu(matmul(x, w)));
        slice(strided, 1, 2, 7).copy_(relu(matmul(x, w)));
        CHECK(difference(rows(dense, 4, 7), expected, tolerance(DType::f32, 8)) == "");
        CHECK(difference(slice(strided, 1, 2, 7), expected, tolerance(DType::f32, 8)) == "");
        CHECK(values(dense)[19] == 7);
        CHECK(values(dense)[35] == 7);
    }
    SUBCASE("parts of a concatenation") {
        std::vector<Tensor> parts;
        parts.push_back(relu(x));
        parts.push_back(y * 2.0);
        const std::vector<double> a = values(relu(x)), b = changed(y, 2, 0);
        Tensor both;
        CHECK(launches([&] { both = concat(std::move(parts), 0); }) == 2);
        std::vector<double> expected = a;
        expected.insert(expected.end(), b.begin(), b.end());
        CHECK(difference(both, expected, near) == "");
        const Tensor activated = relu(y);
        both = concat({activated, relu(x), activated}, 1);
        both.fill_(0);
        CHECK(values(activated) == values(relu(y)));
    }
    SUBCASE("captured") {
        Tensor cache_view = cache({6, 8});
        auto step = capture([&](const Tensor& in) {
            slice(cache_view, 0, 1, 4).copy_(in * 3.0);
            return sum(in);
        });
        for (int i = 0; i < 3; ++i) {
            const Tensor in = random_tensor({3, 8}, static_cast<std::uint64_t>(i) + 20);
            (void)step(in);
            CHECK(difference(rows(cache_view, 1, 4), changed(in, 3, 0), near) == "");
        }
        CHECK(values(cache_view)[7] == 7);
    }
    SUBCASE("errors") {
        Tensor cache_view = cache({3, 8});
        CHECK_THROWS_AS(cache_view.copy_(relu(matmul(x, w))), ShapeError);
        CHECK_THROWS_AS(cache_view.copy_(x.to(DType::i32)), TypeError);
        CHECK_THROWS_WITH_AS(ops::evaluate_into("put", LazyArray(x.view()), cache({8, 3}).view()),
                             doctest::Contains("put: expected"), ShapeError);
    }
}

TEST_CASE("evaluate_into: shared values, pending readers, and values computed from the destination") {
    const FusionScope fusion_on(true);
    const Tensor x = random_tensor({3, 8}, 1), y = random_tensor({3, 8}, 3);
    SUBCASE("shared values are unchanged") {
        Tensor cache_view = full({3, 8}, 7);
        const Tensor retained = relu(x), alias = retained.detach(), later = retained + 1.0;
        cache_view.copy_(retained);
        const std::vector<double> expected = values(relu(x));
        cache_view.fill_(1);
        CHECK(values(retained) == expected);
        CHECK(values(alias) == expected);
        std::vector<double> plus_one = expected;
        for (double& value : plus_one) value += 1;
        CHECK(difference(later, plus_one, near) == "");
        Tensor donated = sigmoid(x);
        const Tensor uses = donated * 2.0;
        const std::vector<double> doubled = changed(sigmoid(x), 2, 0);
        cache_view.copy_(std::move(donated));
        cache_view.fill_(3);
        CHECK(difference(uses, doubled, near) == "");
    }
    SUBCASE("computed from the destination itself") {
        Tensor target = random_tensor({3, 8}, 9);
        std::vector<double> expected = values(target);
        for (double& value : expected) value = value * 2 + 1;
        target.copy_(target * 2.0 + 1.0);
        CHECK(difference(target, expected, near) == "");
        Tensor square_matrix = random_tensor({8, 8}, 10);
        const std::vector<double> product = values(matmul(square_matrix, square_matrix));
        square_matrix.copy_(matmul(square_matrix, square_matrix));
        CHECK(difference(square_matrix, product, near) == "");
        // Rows move within their own memory.
        Tensor shifted = random_tensor({9, 8}, 11);
        std::vector<double> expected_shifted = values(shifted);
        const std::vector<double> shifted_before = expected_shifted;
        for (std::size_t i = 0; i < 64; ++i) expected_shifted[8 + i] = shifted_before[i] + 1;
        slice(shifted, 0, 1, 9).copy_(slice(shifted, 0, 0, 8) + 1.0);
        CHECK(difference(shifted, expected_shifted, near) == "");
    }
    SUBCASE("from the destination with other strides") {
        Tensor square = random_tensor({3, 3}, 12);
        const Values transposed = values(transpose(square));
        square.copy_(transpose(square));
        CHECK(values(square) == transposed);
        Tensor repeated = random_tensor({4}, 13);
        const double first = values(repeated)[0];
        repeated.copy_(expand(slice(repeated, 0, 0, 1), {4}));
        CHECK(values(repeated) == Values(4, first));
        Tensor row = arange(0, 8);
        slice(row, 0, 0, 8, 2).copy_(slice(row, 0, 0, 4));
        CHECK(values(row) == Values{0, 1, 1, 3, 2, 5, 3, 7});
        Tensor gathered = arange(0, 8);
        slice(gathered, 0, 0, 4).copy_(slice(gathered, 0, 0, 8, 2));
        CHECK(values(gathered) == Values{0, 2, 4, 6, 4, 5, 6, 7});
        Tensor same = random_tensor({5}, 14);
        const Values before = values(same);
        CHECK(launches([&] { same.copy_(same); }) == 0);
        CHECK(values(same) == before);
    }
    SUBCASE("pending readers of the destination read the old value") {
        Tensor target = random_tensor({3, 8}, 9);
        const std::vector<double> before = values(target);
        const Tensor reads = target + 1.0, y2 = y * 2.0;
        target.copy_(y2 + reads);
        std::vector<double> plus_one = before;
        for (double& value : plus_one) value += 1;
        CHECK(difference(reads, plus_one, near) == "");
        std::vector<double> sums = plus_one;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += 2 * values(y)[i];
        CHECK(difference(target, sums, near) == "");
    }
}
