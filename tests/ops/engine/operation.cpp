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
struct Told {
    int calls = 0;
    bool fails = false;
    std::vector<bool> wanted = {};
};

/// out 0 = x * factor, out 1 (of another type) = x + 1, written 0 += x.
struct Mixed {
    double factor;
    Told* told;
    bool fuses_epilogue = false;
};

EpilogueFused launch_mixed(const OperationViews& views, const Mixed& mixed) {
    ++mixed.told->calls;
    if (mixed.told->fails) throw DeviceError("mixed: it broke", -5);
    const View &x = views.in(0), &sums = views.written(0);
    mixed.told->wanted = {views.out(0).buffer ? true : false, sums.buffer ? true : false};
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
    const FusionScope on(true);
    const Tensor x = random_tensor({3, 37}, 1), other = random_tensor({3, 37}, 2);
    for (const bool takes : {false, true}) {
        CAPTURE(takes);
        Told told;
        const auto [scaled, plus_one] = [&] {
            Results made = mixed(x, {}, {2, &told, takes});
            return std::pair{std::move(made.scaled) * 3.0 + other, made.plus_one};
        }();
        CHECK(told.calls == 0);
        std::vector<double> wanted = changed(x, 6, 0);
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += values(other)[i];
        CHECK(difference(scaled, wanted, near) == "");
        CHECK(plus_one.value().computed());
        CHECK(difference(plus_one, changed(x, 1, 1), {1e-3, 1e-3}) == "");
        CHECK(told.calls == 1);
        // The second output first, broadcast by an expression and as its only input.
        const Results again = mixed(x, {}, {2, &told, takes});
        const Tensor mean = sum(again.plus_one.to(DType::f32) * again.scaled, {1});
        std::vector<double> rows(3);
        for (std::size_t i = 0; i < 111; ++i) rows[i / 37] += (values(x)[i] + 1) * values(x)[i] * 2;
        CHECK(difference(mean, rows, {0.02, 0.01}) == "");
        CHECK(told.calls == 2);
    }
    const FusionScope off(false);
    Told told;
    const Results now = mixed(x, {}, {2, &told});
    CHECK(told.calls == 1);
    CHECK(difference(now.scaled, changed(x, 2, 0), near) == "");
}

TEST_CASE("operation: unreferenced outputs are not computed") {
    const FusionScope on(true);
    const Tensor x = random_tensor({50}, 1), sums = random_tensor({50}, 2);
    Told told;
    const std::vector<double> before = values(sums);
    (void)mixed(x, {}, {2, &told});
    {
        const Tensor plus_one = mixed(x, {}, {2, &told}).plus_one;
        CHECK(told.calls == 0);
        need(plus_one);
        CHECK(told.calls == 1);
        CHECK(told.wanted == std::vector<bool>{false, false});
    }
    // But in-place writes happen, even without a referenced output.
    (void)mixed(x, sums, {2, &told});
    CHECK(told.calls == 1);
    std::vector<double> wanted = before;
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += values(x)[i];
    CHECK(difference(sums, wanted, near) == "");
    CHECK(told.calls == 2);
    CHECK(told.wanted == std::vector<bool>{false, true});
    // Unless the written tensor is gone, too; and if it is gone when an output is needed.
    (void)mixed(x, random_tensor({50}, 3), {2, &told});
    CHECK(told.calls == 2);
    const Tensor scaled = mixed(x, random_tensor({50}, 3), {2, &told}).scaled;
    CHECK(difference(scaled, changed(x, 2, 0), near) == "");
    CHECK(told.wanted == std::vector<bool>{true, false});
}

TEST_CASE("operation: in-place writes happen in order") {
    const FusionScope on(true);
    Tensor x = random_tensor({4, 11}, 1), sums = zeros({4, 11});
    Told told;
    const std::vector<double> in = values(x);
    const auto version = sums.view().buffer.version();
    const Tensor earlier = sums + 5.0;  // reads the old value
    const Results made = mixed(x, sums, {3, &told});
    CHECK(sums.view().buffer.version() > version);
    x.fill_(100);  // written after the call
    (void)mixed(x, sums, {3, &told});
    const Tensor later = sums * 2.0;
    CHECK(values(earlier) == std::vector<double>(44, 5));
    CHECK(difference(
              made.scaled,
              [&] {
                  std::vector<double> wanted = in;
                  for (double& value : wanted) value *= 3;
                  return wanted;
              }(),
              near) == "");
    std::vector<double> wanted = in;
    for (double& value : wanted) value = (value + 100) * 2;
    CHECK(difference(later, wanted, tolerance(DType::f32, 4, 200)) == "");
    CHECK(told.calls == 2);
    // Saved tensors detect the write.
    Tensor weight = random_tensor({4, 11}, 5);
    weight.set_requires_grad();
    const Tensor loss = sum(weight * sums);
    (void)mixed(x, sums, {3, &told});
    CHECK_THROWS_AS(loss.backward(), ValueError);
}

TEST_CASE("operation: a failed launch stays pending, and its error names it") {
    const FusionScope on(true);
    const Tensor x = random_tensor({6}, 1), w = random_tensor({6, 6}, 2);
    Told told{.fails = true};
    const Tensor y = [&] {
        const Scope scope("layer");
        return mixed(x, {}, {2, &told}).scaled * 2.0;
    }();
    // Another call, which launches it as a deferred operation, throws its error, and can be repeated.
    CHECK_THROWS_WITH_AS((void)matmul(w, w), "mixed: it broke (in layer/mixed, deferred and launched now)",
                         DeviceError);
    CHECK(told.calls == 1);
    CHECK(values(matmul(w, w)).size() == 36);
    CHECK(told.calls == 1);
    std::string said;
    {
        const Scope elsewhere("elsewhere");
        try {
            (void)values(y);
        } catch (const DeviceError& error) {
            said = error.what();
        }
        CHECK(Scope::path() == "elsewhere");
    }
    CHECK(said == "mixed: it broke (in layer)");
    CHECK(told.calls == 2);
    told.fails = false;
    CHECK(difference(y, changed(x, 4, 0), near) == "");
    // A write to its input must launch it first.
    Tensor written = random_tensor({6}, 3);
    const std::vector<double> in = values(written);
    const Results held = mixed(written, {}, {2, &told});
    told.fails = true;
    CHECK_THROWS_WITH_AS(written.fill_(0), "mixed: it broke (in mixed, deferred and launched now)", DeviceError);
    told.fails = false;
    CHECK(values(written) == in);
    written.fill_(0);
    std::vector<double> wanted = in;
    for (double& value : wanted) value *= 2;
    CHECK(difference(held.scaled, wanted, near) == "");
}

TEST_CASE("operation: a failed epilogue leaves its output intact") {
    const FusionScope on(true);
    const Tensor x = random_tensor({2, 3}, 1);
    Told told;
    const Tensor y = mixed(x, {}, {2, &told}).scaled;
    CHECK(ops::kMaxAttributeBytes >= sizeof(Mixed));
    CHECK(difference(
              relu(y),
              [&] {
                  std::vector<double> wanted = changed(x, 2, 0);
                  for (double& value : wanted) value = std::max(value, 0.0);
                  return wanted;
              }(),
              near) == "");
    CHECK(told.calls == 1);
    const auto nothing = [] {
        return ops::operation("nothing", [](const OperationViews&, const int&) { return EpilogueFused::no; }, 0,
                              {.reads = {}, .outputs = {{DType::f32, {2}}}});
    };
    CHECK_THROWS_WITH_AS(nothing(), "operation: expected a view that \"nothing\" reads or writes, got none",
                         ValueError);
    const auto twice = [&] {
        return ops::operation("twice", [](const OperationViews&, const int&) { return EpilogueFused::no; }, 0,
                              {.reads = {x.view()}, .writes = {x.view()}, .outputs = {{DType::f32, {2}}}});
    };
    CHECK_THROWS_WITH_AS(twice(),
                         "operation: expected memory that \"twice\" writes to be absent from its reads, got it in both",
                         ValueError);
    const auto company = [&] {
        return ops::deferred_batched("several", [](std::span<const OperationViews>) {},
                                     {.reads = {x.view()}, .outputs = {{DType::f32, {2}}, {DType::f32, {2}}}});
    };
    CHECK_THROWS_WITH_AS(company(),
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
    const FusionScope on(true);
    const Tensor x = random_tensor({4, 4}, 1), w = random_tensor({4, 4}, 2);
    const Values product = values(matmul(x, w));
    const auto made = [&] {
        const ops::Expression of(
            ops::matmul(ops::reshaped(x.view(), {1, 4, 4}), ops::reshaped(w.view(), {1, 4, 4}), {4, 4}));
        const LazyArray p = ops::make_lazy(ops::Expression::apply(Function::relu, std::array{of}), x.device());
        const LazyArray q = ops::make_lazy(ops::Expression::apply(Function::neg, std::array{of}), x.device());
        return std::pair{p, q};
    }();
    Values positive = product, negative = product;
    for (double& value : positive) value = std::max(value, 0.0);
    for (double& value : negative) value = -value;
    CHECK(difference(Tensor(made.first), positive, near) == "");
    CHECK(difference(Tensor(made.second), negative, near) == "");
}

TEST_CASE("operation: captured and replayed, including in-place writes") {
    const FusionScope on(true);
    Told told;
    Tensor sums = zeros({5, 7});
    auto step = capture([&](const Tensor& x) {
        const Results made = mixed(x, sums, {2, &told});
        return made.scaled + made.plus_one.to(DType::f32);
    });
    std::vector<double> wanted(35, 0);
    for (int i = 0; i < 4; ++i) {
        const Tensor x = random_tensor({5, 7}, static_cast<std::uint64_t>(i) + 1);
        const Tensor y = step(x);
        CHECK(difference(y, changed(x, 3, 1), {1e-3, 1e-3}) == "");
        for (std::size_t k = 0; k < wanted.size(); ++k) wanted[k] += values(x)[k];
    }
    CHECK(difference(sums, wanted, tolerance(DType::f32, 8)) == "");
    CHECK(told.calls < 4);
}

// ---- evaluation into a given destination

TEST_CASE("evaluate_into: pending values are computed in the destination") {
    const FusionScope on(true);
    const Tensor x = random_tensor({3, 8}, 1), w = random_tensor({8, 5}, 2), y = random_tensor({3, 8}, 3);
    const auto cache = [](const Shape& shape) { return full(shape, 7); };
    const auto rows = [](const Tensor& tensor, std::int64_t from, std::int64_t to) {
        return slice(tensor, 0, from, to);
    };
    SUBCASE("an elementwise chain: one kernel, dense or not") {
        Tensor dense = cache({9, 8}), strided = cache({3, 20});
        CHECK(launches([&] { rows(dense, 2, 5).copy_(relu(x) * 2.0 + y); }) == 1);
        CHECK(launches([&] { slice(strided, 1, 3, 19, 2).copy_(relu(x) * 2.0 + y); }) == 1);
        const std::vector<double> wanted = values(relu(x) * 2.0 + y);
        CHECK(difference(rows(dense, 2, 5), wanted, near) == "");
        CHECK(difference(slice(strided, 1, 3, 19, 2), wanted, near) == "");
        CHECK(values(dense)[15] == 7);
        CHECK(values(dense)[40] == 7);
        CHECK(values(strided)[4] == 7);
    }
    SUBCASE("a product with its epilogue") {
        Tensor dense = cache({9, 5}), strided = cache({3, 9});
        const std::vector<double> wanted = values(relu(matmul(x, w)));
        const int apart = launches([&] { need(matmul(x, w)); });
        CHECK(launches([&] { rows(dense, 4, 7).copy_(relu(matmul(x, w))); }) <= apart + 1);
        const int plain = launches([&] { rows(dense, 4, 7).copy_(matmul(x, w)); });
        CHECK(plain == apart);
        // And no copy after them.
        auto whole = capture([&] { (void)rows(dense, 4, 7).copy_(relu(matmul(x, w))); }),
             alone = capture([&] {
                 const Tensor result = relu(matmul(x, w));
                 need(result);
             });
        whole(), alone();
        CHECK(whole.command_list().commands() == alone.command_list().commands());
        rows(dense, 4, 7).copy_(relu(matmul(x, w)));
        slice(strided, 1, 2, 7).copy_(relu(matmul(x, w)));
        CHECK(difference(rows(dense, 4, 7), wanted, tolerance(DType::f32, 8)) == "");
        CHECK(difference(slice(strided, 1, 2, 7), wanted, tolerance(DType::f32, 8)) == "");
        CHECK(values(dense)[19] == 7);
        CHECK(values(dense)[35] == 7);
    }
    SUBCASE("shared values are unchanged") {
        Tensor place = cache({3, 8});
        const Tensor held = relu(x), alias = held.detach(), later = held + 1.0;
        place.copy_(held);
        const std::vector<double> wanted = values(relu(x));
        place.fill_(1);
        CHECK(values(held) == wanted);
        CHECK(values(alias) == wanted);
        std::vector<double> plus_one = wanted;
        for (double& value : plus_one) value += 1;
        CHECK(difference(later, plus_one, near) == "");
        Tensor given = sigmoid(x);
        const Tensor uses = given * 2.0;
        const std::vector<double> twice = changed(sigmoid(x), 2, 0);
        place.copy_(std::move(given));
        place.fill_(3);
        CHECK(difference(uses, twice, near) == "");
    }
    SUBCASE("computed from the destination itself") {
        Tensor place = random_tensor({3, 8}, 9);
        std::vector<double> wanted = values(place);
        for (double& value : wanted) value = value * 2 + 1;
        place.copy_(place * 2.0 + 1.0);
        CHECK(difference(place, wanted, near) == "");
        Tensor square_matrix = random_tensor({8, 8}, 10);
        const std::vector<double> product = values(matmul(square_matrix, square_matrix));
        square_matrix.copy_(matmul(square_matrix, square_matrix));
        CHECK(difference(square_matrix, product, near) == "");
        // Rows move within their own memory.
        Tensor shifted = random_tensor({9, 8}, 11);
        std::vector<double> moved = values(shifted);
        const std::vector<double> old = moved;
        for (std::size_t i = 0; i < 64; ++i) moved[8 + i] = old[i] + 1;
        rows(shifted, 1, 9).copy_(rows(shifted, 0, 8) + 1.0);
        CHECK(difference(shifted, moved, near) == "");
    }
    SUBCASE("from the destination with other strides") {
        Tensor turned = random_tensor({3, 3}, 12);
        const Values transposed = values(transpose(turned));
        turned.copy_(transpose(turned));
        CHECK(values(turned) == transposed);
        Tensor repeated = random_tensor({4}, 13);
        const double first = values(repeated)[0];
        repeated.copy_(expand(slice(repeated, 0, 0, 1), {4}));
        CHECK(values(repeated) == Values(4, first));
        Tensor spread = arange(0, 8);
        slice(spread, 0, 0, 8, 2).copy_(slice(spread, 0, 0, 4));
        CHECK(values(spread) == Values{0, 1, 1, 3, 2, 5, 3, 7});
        Tensor gathered = arange(0, 8);
        slice(gathered, 0, 0, 4).copy_(slice(gathered, 0, 0, 8, 2));
        CHECK(values(gathered) == Values{0, 2, 4, 6, 4, 5, 6, 7});
        Tensor same = random_tensor({5}, 14);
        const Values before = values(same);
        CHECK(launches([&] { same.copy_(same); }) == 0);
        CHECK(values(same) == before);
    }
    SUBCASE("pending readers of the destination read the old value") {
        Tensor place = random_tensor({3, 8}, 9);
        const std::vector<double> before = values(place);
        const Tensor reads = place + 1.0, y2 = y * 2.0;
        place.copy_(y2 + reads);
        std::vector<double> plus_one = before;
        for (double& value : plus_one) value += 1;
        CHECK(difference(reads, plus_one, near) == "");
        std::vector<double> sums = plus_one;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += 2 * values(y)[i];
        CHECK(difference(place, sums, near) == "");
    }
    SUBCASE("parts of a concatenation") {
        std::vector<Tensor> parts;
        parts.push_back(relu(x));
        parts.push_back(y * 2.0);
        const std::vector<double> a = values(relu(x)), b = changed(y, 2, 0);
        Tensor both;
        CHECK(launches([&] { both = concat(std::move(parts), 0); }) == 2);
        std::vector<double> wanted = a;
        wanted.insert(wanted.end(), b.begin(), b.end());
        CHECK(difference(both, wanted, near) == "");
        const Tensor held = relu(y);
        both = concat({held, relu(x), held}, 1);
        both.fill_(0);
        CHECK(values(held) == values(relu(y)));
    }
    SUBCASE("captured") {
        Tensor place = cache({6, 8});
        auto step = capture([&](const Tensor& in) {
            slice(place, 0, 1, 4).copy_(in * 3.0);
            return sum(in);
        });
        for (int i = 0; i < 3; ++i) {
            const Tensor in = random_tensor({3, 8}, static_cast<std::uint64_t>(i) + 20);
            (void)step(in);
            CHECK(difference(rows(place, 1, 4), changed(in, 3, 0), near) == "");
        }
        CHECK(values(place)[7] == 7);
    }
    SUBCASE("errors") {
        Tensor place = cache({3, 8});
        CHECK_THROWS_AS(place.copy_(relu(matmul(x, w))), ShapeError);
        CHECK_THROWS_AS(place.copy_(x.to(DType::i32)), TypeError);
        CHECK_THROWS_WITH_AS(ops::evaluate_into("put", LazyArray(x.view()), cache({8, 3}).view()),
                             doctest::Contains("put: expected"), ShapeError);
    }
}
