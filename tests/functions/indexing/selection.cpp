// x[...] with tensors, new axes and an ellipsis: read and written.
#include <declivity/tensor/indexing.hpp>

#include <cmath>
#include <functional>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/case.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;
using catalogue::table;
using catalogue::Values;

namespace {

Tensor bool_tensor(const Values& elements, const Shape& shape) { return tensor(elements, shape, DType::boolean); }

/// x (3, 4, 5), an index, and the source of element `at` of the result.
struct Read {
    const char* name;
    std::function<Tensor(const Tensor& x)> call;
    std::function<void(Tensor& x, const TensorOrScalar& value)> write;
    Shape shape;
    std::function<Dims(const Dims& at)> from;
};

std::vector<Read> reads() {
    const Tensor rows = int64_tensor({2, -3, 2, 1}, {2, 2}), columns = int64_tensor({4, 0}, {2}),
                 i32 = int64_tensor({1, 3}, {2}).to(DType::i32);
    const std::int64_t row[] = {2, 0, 2, 1}, column[] = {4, 0}, small[] = {1, 3};
    const auto r = [=](std::int64_t i, std::int64_t j) { return row[i * 2 + j]; };
    const Tensor mask = bool_tensor({1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0}, {3, 4}),
                 line = bool_tensor({0, 1, 1, 0}, {4});
    const std::int64_t true_rows[] = {0, 0, 1, 1, 2}, true_columns[] = {0, 3, 0, 1, 2};
#define BOTH(...)                                              \
    [=](const Tensor& x) -> Tensor { return x[__VA_ARGS__]; }, \
        [=](Tensor& x, const TensorOrScalar& value) { x[__VA_ARGS__] = value; }
    return {
        {"rows",
         BOTH(rows),
         {2, 2, 4, 5},
         [=](const Dims& i) {
             return Dims{r(i[0], i[1]), i[2], i[3]};
         }},
        {"a list of one",
         BOTH({rows}),
         {2, 2, 4, 5},
         [=](const Dims& i) {
             return Dims{r(i[0], i[1]), i[2], i[3]};
         }},
        {"an i32 second axis",
         BOTH({Slice(), i32}),
         {3, 2, 5},
         [=](const Dims& i) {
             return Dims{i[0], small[i[1]], i[2]};
         }},
        {"two tensors, stretched",
         BOTH({rows, Slice(), columns}),
         {2, 2, 4},
         [=](const Dims& i) {
             return Dims{r(i[0], i[1]), i[2], column[i[1]]};
         }},
        {"two beside each other",
         BOTH({Slice(1, 3), i32, columns}),
         {2, 2},
         [=](const Dims& i) {
             return Dims{i[0] + 1, small[i[1]], column[i[1]]};
         }},
        {"an element and a tensor",
         BOTH({-1, Slice(), columns}),
         {4, 2},
         [=](const Dims& i) {
             return Dims{2, i[0], column[i[1]]};
         }},
        {"a slice with a step",
         BOTH({columns - 2, Slice(1, 4, 2)}),
         {2, 2, 5},
         [=](const Dims& i) {
             return Dims{column[i[0]] == 4 ? 2 : 1, 1 + 2 * i[1], i[2]};
         }},
        {"an ellipsis",
         BOTH({Ellipsis(), columns}),
         {3, 4, 2},
         [=](const Dims& i) {
             return Dims{i[0], i[1], column[i[2]]};
         }},
        {"an ellipsis for nothing",
         BOTH({1, Ellipsis(), 2, Slice(2)}),
         {3},
         [=](const Dims& i) {
             return Dims{1, 2, i[0] + 2};
         }},
        {"new axes",
         BOTH({NewAxis(), 1, Slice(), NewAxis()}),
         {1, 4, 1, 5},
         [=](const Dims& i) {
             return Dims{1, i[1], i[3]};
         }},
        {"a new axis and an ellipsis",
         BOTH({Ellipsis(), NewAxis(), Slice(0, 2)}),
         {3, 4, 1, 2},
         [=](const Dims& i) {
             return Dims{i[0], i[1], i[3]};
         }},
        {"a new axis between tensors",
         BOTH({rows, NewAxis(), columns}),
         {2, 2, 1, 5},
         [=](const Dims& i) {
             return Dims{r(i[0], i[1]), column[i[1]] == 4 ? 3 : 0, i[3]};
         }},
        {"a mask",
         BOTH(mask),
         {5, 5},
         [=](const Dims& i) {
             return Dims{true_rows[i[0]], true_columns[i[0]], i[1]};
         }},
        {"a mask of one axis",
         BOTH({Slice(), line}),
         {3, 2, 5},
         [=](const Dims& i) {
             return Dims{i[0], 1 + i[1], i[2]};
         }},
        {"a mask and numbers",
         BOTH({Slice(1, 3), line, columns}),
         {2, 2},
         [=](const Dims& i) {
             return Dims{i[0] + 1, 1 + i[1], column[i[1]]};
         }},
        {"a mask behind an element",
         BOTH({1, line}),
         {2, 5},
         [=](const Dims& i) {
             return Dims{1, 1 + i[0], i[1]};
         }},
    };
#undef BOTH
}

/// The case with two adjacent index tensors uses rows that are out of range for the third case's columns: the last of 4
/// columns is 3.
const Shape kShape{3, 4, 5};

std::size_t offset(const Dims& at) { return static_cast<std::size_t>((at[0] * 4 + at[1]) * 5 + at[2]); }

}  // namespace

TEST_CASE("selection: rows by index and elements by mask, read and written") {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}), rows = int64_tensor({1, 0, 1}, {3});
    CHECK(values(x[rows]) == Values{4, 5, 6, 1, 2, 3, 4, 5, 6});
    CHECK(values(x[x > 4]) == Values{5, 6});
    CHECK(values(x[{Slice(), int64_tensor({2, 0}, {2})}]) == Values{3, 1, 6, 4});
    Tensor y = x.clone();
    y[y > 4] = 0;
    CHECK(values(y) == Values{1, 2, 3, 4, 0, 0});
    y[int64_tensor({1}, {1})] = tensor({7, 8, 9}, {3});
    CHECK(values(y) == Values{1, 2, 3, 7, 8, 9});
}

TEST_CASE("selection: elements, dense and strided") {
    const Tensor x = random_tensor(kShape, 1);
    const Values all = values(x);
    for (const Read& read : reads()) {
        CAPTURE(read.name);
        if (std::string(read.name) == "a new axis between tensors") continue;  // see below
        const Values expected = table(read.shape, [&](const Dims& at) { return all[offset(read.from(at))]; });
        for (const Tensor& from :
             {x, permute(permute(x, {2, 0, 1}).clone(), {1, 2, 0}), x.to(DType::i32).to(DType::f32)}) {
            const Tensor y = read.call(from);
            CHECK(y.shape() == read.shape);
            if (&from == &x) CHECK(values(y) == expected);
        }
        CHECK(values(read.call(permute(permute(x, {2, 0, 1}).clone(), {1, 2, 0}))) == expected);
    }
}

TEST_CASE("selection: writes of numbers and tensors") {
    const Tensor before = random_tensor(kShape, 1);
    for (const Read& read : reads()) {
        CAPTURE(read.name);
        if (std::string(read.name) == "a new axis between tensors") continue;
        for (const bool number : {true, false}) {
            CAPTURE(number);
            Values expected = values(before);
            const Tensor values_to_write = random_tensor(read.shape, 2);
            const Values all = values(values_to_write);
            std::size_t i = 0;
            for_each_index(read.shape, [&](const Dims& at) {
                expected[offset(read.from(at))] = number ? 2.5 : all[i];
                ++i;
            });
            Tensor x = before.clone();
            number ? read.write(x, 2.5) : read.write(x, values_to_write);
            CHECK(values(x) == expected);
        }
        // A row of values is broadcast.
        Values expected = values(before);
        const Tensor row = random_tensor({read.shape.back()}, 3);
        const Values all = values(row);
        for_each_index(read.shape, [&](const Dims& at) {
            expected[offset(read.from(at))] = all[static_cast<std::size_t>(at.back())];
        });
        Tensor x = before.clone();
        read.write(x, row);
        CHECK(values(x) == expected);
    }
}

TEST_CASE("selection: += and similar operators, and other operands") {
    const Tensor before = random_tensor({4, 3}, 1), rows = int64_tensor({2, 0}, {2}), mask = before > 0.0;
    Tensor x = before.clone();
    x[rows] += 1.5;
    x[rows] *= 2.0;
    x[{Slice(), 1}] -= 1.0;
    x[mask] /= 4.0;
    Values expected = values(before);
    for (std::size_t i = 0; i < 12; ++i) {
        const double previous = expected[i];
        if (i / 3 == 2 || i / 3 == 0) expected[i] = (expected[i] + 1.5) * 2;
        if (i % 3 == 1) expected[i] -= 1;
        if (previous > 0) expected[i] /= 4;
    }
    CHECK(difference(x, expected, tolerance(DType::f32, 1)) == "");
    // Selections as operands of operators and functions.
    CHECK(values(before[rows] * 2.0) == values(index_select(before, 0, rows) * 2.0));
    CHECK(values(before[rows] + before[{Slice(0, 2)}]) ==
          values(index_select(before, 0, rows) + slice(before, 0, 0, 2)));
    CHECK(values(where(before[rows] > 0.0, before[rows], 0)) == values(relu(index_select(before, 0, rows))));
    // One selection from another, with a selected index.
    Tensor y = before.clone();
    y[rows] = before[int64_tensor({1, 3}, {2})];
    CHECK(values(y[2]) == values(before[1]));
    CHECK(values(y[0]) == values(before[3]));
    const Tensor order = int64_tensor({3, 1, 0, 2}, {4});
    CHECK(values(before[order[int64_tensor({1}, {1})]]) == values(before[int64_tensor({1}, {1})]));
    // Selections of views write the base; another type is converted.
    Tensor z = before.clone();
    z[1][int64_tensor({2, 0}, {2})] = int64_tensor({7, 8}, {2});
    CHECK(values(z[1])[2] == 7);
    CHECK(values(z[1])[0] == 8);
    z[Slice(2, 4)][mask[Slice(2, 4)]] = 0;
    for (std::size_t i = 6; i < 12; ++i) CHECK(values(z)[i] == (values(before)[i] > 0 ? 0 : values(before)[i]));
}

TEST_CASE("selection: gradients of reads and writes") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const Tensor rows = int64_tensor({2, -3, 2}, {3}), mask = bool_tensor({1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, {3, 4});
    const std::vector<std::function<Tensor(const std::vector<Tensor>&)>> calls{
        [=](const std::vector<Tensor>& in) { return Tensor(in[0][rows]); },
        [=](const std::vector<Tensor>& in) { return Tensor(in[0][mask]); },
        [=](const std::vector<Tensor>& in) {
            return Tensor(in[0][{Ellipsis(), NewAxis(), int64_tensor({1, 1}, {2})}]);
        },
        [=](const std::vector<Tensor>& in) {
            Tensor x = in[0] * 2.0;
            x[{Slice(), int64_tensor({3, 0}, {2})}] = square(in[1]);
            return x * x;
        },
        [=](const std::vector<Tensor>& in) {
            Tensor x = in[0] * 2.0;
            x[mask] = 3.0;
            x[{0, NewAxis(), int64_tensor({2}, {1})}] *= in[1][0][0][0];
            return x * x;
        },
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
        CAPTURE(i);
        GradientCheckOptions options;
        if (i < 3) options.skip = {1};
        const std::vector<Tensor> inputs{random_tensor({3, 4, 2}, 1, DType::f64),
                                         random_tensor({3, 2, 2}, 2, DType::f64)};
        CHECK(gradient_difference(calls[i], inputs, options) == "");
    }
}

TEST_CASE("selection: in a captured step, except those whose size depends on data") {
    const Tensor rows = int64_tensor({2, 0}, {2}), others = int64_tensor({1, 3}, {2}),
                 mask = bool_tensor({1, 0, 1, 0}, {4});
    auto step = capture([=](const Tensor& x) {
        Tensor y = x * 2.0;
        y[rows] = x[others];
        y[mask] = -1.0;
        y[{Ellipsis(), NewAxis(), 1}] += 1.0;
        return y;
    });
    for (int turn = 0; turn < 3; ++turn) {
        const Tensor x = random_tensor({4, 3}, static_cast<std::uint64_t>(turn));
        const Values in = values(x), out = values(step(x));
        for (std::size_t i = 0; i < 12; ++i) {
            double expected = 2 * in[i];
            if (i / 3 == 2) expected = in[3 + i % 3];
            if (i / 3 == 0) expected = in[9 + i % 3];
            if (i / 3 == 0 || i / 3 == 2) expected = -1;
            if (i % 3 == 1) expected += 1;
            CHECK(out[i] == doctest::Approx(expected));
        }
    }
}

TEST_CASE("selection: errors") {
    const Tensor x = random_tensor({3, 4}, 1), rows = int64_tensor({0, 1}, {2}), none;
    CHECK_THROWS_WITH_AS((void)Tensor(x[{rows, 0, 0}]),
                         "operator[]: expected at most one index for each axis of [3, 4], got 3", ShapeError);
    CHECK_THROWS_WITH_AS((void)Tensor(x[{Ellipsis(), 0, Ellipsis()}]),
                         "operator[]: expected at most one Ellipsis(), got several", ShapeError);
    CHECK_THROWS_WITH_AS((void)Tensor(x[x]), "operator[]: expected index tensors of integers or bool, got f32",
                         TypeError);
    CHECK_THROWS_AS((void)Tensor(x[none]), ValueError);
    CHECK_THROWS_AS((void)Tensor(none[rows]), ValueError);
    CHECK_THROWS_AS((void)Tensor(x[{rows, 4}]), ShapeError);
    CHECK_THROWS_AS((void)Tensor(x[bool_tensor({1, 0}, {2})]), ShapeError);
    Tensor y = x.clone();
    CHECK_THROWS_WITH_AS((y[bool_tensor({1, 0}, {2})] = 0),
                         "operator[]=: expected a bool tensor that fits axes 0 to 0 of [3, 4], got [2]", ShapeError);
    CHECK_THROWS_AS((y[rows] = zeros({3, 4})), ShapeError);
    CHECK(values(y) == values(x));
}
