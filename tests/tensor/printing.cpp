// Printing of tensors: a header line, then the values in NumPy's format.
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// The text below the first line.
std::string body(const Tensor& x) {
    const std::string text = x.str();
    return text.substr(text.find('\n') + 1);
}

std::string head(const Tensor& x) {
    const std::string text = x.str();
    return text.substr(0, text.find('\n'));
}

Tensor counted(const Shape& shape) {
    return reshape(arange(0, static_cast<double>(shape.numel()), 1, {DType::i32}), shape);
}

}  // namespace

TEST_CASE("printing: type, shape and device, and requires_grad") {
    const std::string name = "'" + device().name() + "'";
    Tensor x = zeros({2, 3});
    CHECK(head(x) == "Tensor(f32, [2, 3], " + name + ")");
    CHECK(head(x.set_requires_grad()) == "Tensor(f32, [2, 3], " + name + ", requires_grad)");
    CHECK(head(x * 2) == "Tensor(f32, [2, 3], " + name + ", requires_grad)");
    CHECK(head(x.detach()) == "Tensor(f32, [2, 3], " + name + ")");
    CHECK(head(zeros({}, {DType::i64})) == "Tensor(i64, [], " + name + ")");
    CHECK(head(zeros({0}, {DType::boolean})) == "Tensor(bool, [0], " + name + ")");
    CHECK(Tensor().str() == "Tensor(undefined)");
    std::ostringstream out;
    out << tensor({1, 2}, {2});
    CHECK(out.str() == "Tensor(f32, [2], " + name + ")\n[1.0000, 2.0000]");
}

TEST_CASE("printing: floating values, aligned") {
    CHECK(body(tensor({1.5}, {})) == "1.5000");
    CHECK(body(tensor({1, -2.5, 100}, {3})) == "[  1.0000,  -2.5000, 100.0000]");
    CHECK(body(tensor({1, 2, 3, -4}, {2, 2})) ==
          "[[ 1.0000,  2.0000],\n"
          " [ 3.0000, -4.0000]]");
    CHECK(body(tensor({NAN, INFINITY, -INFINITY, 1}, {4})) == "[   nan,    inf,   -inf, 1.0000]");
    CHECK(body(tensor({NAN, NAN}, {2})) == "[nan, nan]");
    CHECK(body(tensor({-NAN, 1}, {2})) ==
          "[   nan, 1.0000]");  // like sqrt(-1) on some devices: the sign of a NaN is not printed
    CHECK(body(tensor({0, 0}, {2})) == "[0.0000, 0.0000]");
    // In exponential form if four decimals do not suffice.
    CHECK(body(tensor({1e-5, 1}, {2})) == "[1.0000e-05, 1.0000e+00]");
    CHECK(body(tensor({1e8, -1}, {2})) == "[ 1.0000e+08, -1.0000e+00]");
    CHECK(body(tensor({0, 1e-10}, {2})) == "[0.0000e+00, 1.0000e-10]");
    CHECK(body(tensor({1e-3, 2e4}, {2})) == "[1.0000e-03, 2.0000e+04]");
    CHECK(body(tensor({NAN, 1e9}, {2})) == "[       nan, 1.0000e+09]");
    if (device().info().fp64) {
        CHECK(body(tensor({1e300, 0.1}, {2}, DType::f64)) == "[1.0000e+300,  1.0000e-01]");
        CHECK(body(tensor({-0.25}, {1, 1}, DType::f64)) == "[[-0.2500]]");
    }
}

TEST_CASE("printing: integers and bools") {
    CHECK(body(tensor({1, -20, 300}, {3}, DType::i32)) == "[  1, -20, 300]");
    CHECK(body(tensor({-128, 65}, {2}, DType::i8)) == "[-128,   65]");
    CHECK(body(tensor({255, 65}, {2}, DType::u8)) == "[255,  65]");
    CHECK(body(Tensor::from<std::int64_t>({std::numeric_limits<std::int64_t>::min()}, {1})) ==
          "[-9223372036854775808]");
    CHECK(body(Tensor::from<bool>({true, false}, {2})) == "[ true, false]");
    CHECK(body(Tensor::from<bool>({true}, {})) == "true");
    CHECK(body(tensor({-7}, {}, DType::i64)) == "-7");
}

TEST_CASE("printing: empty tensors") {
    CHECK(body(zeros({0})) == "[]");
    CHECK(body(zeros({2, 0})) == "[]");
    CHECK(body(zeros({0, 3})) == "[]");
    CHECK(body(zeros({100000, 0, 5})) == "[]");
}

TEST_CASE("printing: several axes, with an additional empty line for each") {
    CHECK(body(counted({2, 2, 2})) ==
          "[[[0, 1],\n"
          "  [2, 3]],\n"
          "\n"
          " [[4, 5],\n"
          "  [6, 7]]]");
    CHECK(body(counted({2, 1, 2, 1})) ==
          "[[[[0],\n"
          "   [1]]],\n"
          "\n"
          "\n"
          " [[[2],\n"
          "   [3]]]]");
    // In index order, not in memory order.
    CHECK(body(transpose(counted({2, 3}))) ==
          "[[0, 3],\n"
          " [1, 4],\n"
          " [2, 5]]");
    CHECK(body(expand(counted({1}), {3})) == "[0, 0, 0]");
}

TEST_CASE("printing: three elements at both ends of long axes") {
    const std::string thousand = body(counted({1000}));
    CHECK(thousand.find("...") == std::string::npos);
    CHECK(thousand.size() == 1000 * 5);
    CHECK(body(counted({1001})) == "[   0,    1,    2, ...,  998,  999, 1000]");
    CHECK(body(counted({3, 400})) ==
          "[[   0,    1,    2, ...,  397,  398,  399],\n"
          " [ 400,  401,  402, ...,  797,  798,  799],\n"
          " [ 800,  801,  802, ..., 1197, 1198, 1199]]");
    CHECK(body(counted({600, 2})) ==
          "[[   0,    1],\n"
          " [   2,    3],\n"
          " [   4,    5],\n"
          " ...,\n"
          " [1194, 1195],\n"
          " [1196, 1197],\n"
          " [1198, 1199]]");
    CHECK(body(counted({7, 2, 100})) ==
          "[[[   0,    1,    2, ...,   97,   98,   99],\n"
          "  [ 100,  101,  102, ...,  197,  198,  199]],\n"
          "\n"
          " [[ 200,  201,  202, ...,  297,  298,  299],\n"
          "  [ 300,  301,  302, ...,  397,  398,  399]],\n"
          "\n"
          " [[ 400,  401,  402, ...,  497,  498,  499],\n"
          "  [ 500,  501,  502, ...,  597,  598,  599]],\n"
          "\n"
          " ...,\n"
          "\n"
          " [[ 800,  801,  802, ...,  897,  898,  899],\n"
          "  [ 900,  901,  902, ...,  997,  998,  999]],\n"
          "\n"
          " [[1000, 1001, 1002, ..., 1097, 1098, 1099],\n"
          "  [1100, 1101, 1102, ..., 1197, 1198, 1199]],\n"
          "\n"
          " [[1200, 1201, 1202, ..., 1297, 1298, 1299],\n"
          "  [1300, 1301, 1302, ..., 1397, 1398, 1399]]]");
    // Up to six are printed completely.
    for (const std::int64_t rows : {4, 5, 6}) {
        const std::string text = body(counted({rows, 300}));
        CHECK(std::ranges::count(text, '\n') == rows - 1);
        CHECK(text.find("...,\n") == std::string::npos);
    }
    // Width and format depend on the printed elements.
    Tensor x = full({2000}, 1);
    slice(x, 0, 1000, 1001).fill_(1e20);
    CHECK(body(x) == "[1.0000, 1.0000, 1.0000, ..., 1.0000, 1.0000, 1.0000]");
    for (const DType dtype : {DType::i8, DType::u8, DType::i64})
        CHECK(body(full({1500}, 7, {dtype})) == "[7, 7, 7, ..., 7, 7, 7]");
    CHECK(body(ones({1500}, {DType::boolean})) == "[true, true, true, ..., true, true, true]");
}
