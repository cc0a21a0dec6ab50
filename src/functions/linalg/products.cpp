// Products composed of matmul, multiplications and sums.
#include <declivity/functions/products.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::in_f32;
using detail::upcast;

namespace {

void require_same(const char* name, const Tensor& a, const Tensor& b, const char* what_a = "a",
                  const char* what_b = "b") {
    ops::require_alike(name, what_a, a.dtype(), a.device(), what_b, b.dtype(), b.device());
}

void require_ranks(const char* name, const Tensor& a, int rank_a, const Tensor& b, int rank_b, const char* expected) {
    bool fits = a.rank() == rank_a && b.rank() == rank_b;
    if (fits && a.rank() > 0) fits = rank_b >= 2 ? a.size(-1) == b.size(-2) : a.size(-1) == b.size(0);
    if (fits && rank_a == 3) fits = a.size(0) == b.size(0);
    if (!fits)
        throw ShapeError(fmt::format("{}: expected {}, got {} x {}", name, expected, a.shape().str(), b.shape().str()));
    require_same(name, a, b);
}

bool is_zero(const Scalar& number) { return number.to_double() == 0; }
bool is_one(const Scalar& number) { return number.to_double() == 1; }

Tensor scaled(const char* name, const Tensor& x, const Scalar& factor) {
    if (is_one(factor)) return x;
    if (!is_floating(x.dtype()) && factor.is_floating())
        throw TypeError(fmt::format("{}: expected integers as beta and alpha for {}, got {}", name, name_of(x.dtype()),
                                    factor.to_double()));
    return x * factor;
}

/// beta x + alpha product; f16 and bf16 are rounded to `type` at the end.
Tensor added(const char* name, const Tensor& input, const Tensor& product, DType type, const AddmmOptions& options) {
    ops::require_alike(name, "x", input.dtype(), input.device(), "the product", type, product.device());
    const Tensor x = upcast(input);
    bool fits = x.rank() <= product.rank();
    for (int axis = 1; fits && axis <= x.rank(); ++axis)
        fits = x.shape()[-axis] == 1 || x.shape()[-axis] == product.shape()[-axis];
    if (!fits)
        throw ShapeError(fmt::format("{}: expected an x that broadcasts to the product {}, got {}", name,
                                     product.shape().str(), x.shape().str()));
    const Tensor right = scaled(name, product, options.alpha);
    if (is_zero(options.beta)) return right.to(type);
    return (scaled(name, x, options.beta) + right).to(type);
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
    const FunctionCall call("mm", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    require_ranks("mm", a, 2, b, 2, "(M, K) x (K, N)");
    return call.result(matmul(a, b));
}

Tensor bmm(const Tensor& a, const Tensor& b) {
    const FunctionCall call("bmm", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    require_ranks("bmm", a, 3, b, 3, "(B, M, K) x (B, K, N)");
    return call.result(matmul(a, b));
}

Tensor mv(const Tensor& a, const Tensor& vector) {
    const FunctionCall call("mv", {{"a", a}, {"vector", vector}});
    call.require_defined({"a", "vector"});
    require_ranks("mv", a, 2, vector, 1, "(M, K) x (K)");
    return call.result(matmul(a, vector));
}

Tensor dot(const Tensor& a, const Tensor& b) {
    const FunctionCall call("dot", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    require_ranks("dot", a, 1, b, 1, "(N) x (N)");
    return call.result(matmul(a, b));
}

Tensor vdot(const Tensor& a, const Tensor& b) {
    const FunctionCall call("vdot", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    require_ranks("vdot", a, 1, b, 1, "(N) x (N)");
    return call.result(dot(a, b));
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
    const FunctionCall call("addmm", {{"x", x}, {"a", a}, {"b", b}},
                            {{"beta", options.beta}, {"alpha", options.alpha}});
    call.require_defined({"x", "a", "b"});
    require_ranks("addmm", a, 2, b, 2, "(M, K) x (K, N)");
    return call.result(added("addmm", x, matmul(upcast(a), upcast(b)), a.dtype(), options));
}

Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
    const FunctionCall call("baddbmm", {{"x", x}, {"a", a}, {"b", b}},
                            {{"beta", options.beta}, {"alpha", options.alpha}});
    call.require_defined({"x", "a", "b"});
    require_ranks("baddbmm", a, 3, b, 3, "(B, M, K) x (B, K, N)");
    return call.result(added("baddbmm", x, matmul(upcast(a), upcast(b)), a.dtype(), options));
}

Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
    const FunctionCall call("addbmm", {{"x", x}, {"a", a}, {"b", b}},
                            {{"beta", options.beta}, {"alpha", options.alpha}});
    call.require_defined({"x", "a", "b"});
    require_ranks("addbmm", a, 3, b, 3, "(B, M, K) x (B, K, N)");
    // The sum over the batch is part of the sum over K.
    const std::int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
    const Tensor product =
        matmul(reshape(permute(upcast(a), {1, 0, 2}), {m, batch * k}), reshape(upcast(b), {batch * k, n}));
    return call.result(added("addbmm", x, product, a.dtype(), options));
}

Tensor addmv(const Tensor& x, const Tensor& a, const Tensor& vector, const AddmmOptions& options) {
    const FunctionCall call("addmv", {{"x", x}, {"a", a}, {"vector", vector}},
                            {{"beta", options.beta}, {"alpha", options.alpha}});
    call.require_defined({"x", "a", "vector"});
    require_ranks("addmv", a, 2, vector, 1, "(M, K) x (K)");
    return call.result(added("addmv", x, matmul(upcast(a), upcast(vector)), a.dtype(), options));
}

Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
    const FunctionCall call("addr", {{"x", x}, {"a", a}, {"b", b}}, {{"beta", options.beta}, {"alpha", options.alpha}});
    call.require_defined({"x", "a", "b"});
    ops::require_rank("addr", "a", a.shape(), 1, "M");
    ops::require_rank("addr", "b", b.shape(), 1, "N");
    require_same("addr", a, b);
    return call.result(added("addr", x, unsqueeze(upcast(a), 1) * upcast(b), a.dtype(), options));
}

Tensor outer(const Tensor& a, const Tensor& b) {
    const FunctionCall call("outer", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    ops::require_rank("outer", "a", a.shape(), 1, "M");
    ops::require_rank("outer", "b", b.shape(), 1, "N");
    return call.result(unsqueeze(a, 1) * b);
}

Tensor inner(const Tensor& a, const Tensor& b) {
    const FunctionCall call("inner", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    require_same("inner", a, b);
    if (a.rank() == 0 || b.rank() == 0) return call.result(a * b);
    if (a.size(-1) != b.size(-1))
        throw ShapeError(
            fmt::format("inner: expected last axes of the same size, got {} and {}", a.shape().str(), b.shape().str()));
    return call.result(tensordot(a, b, Dims{-1}, Dims{-1}));
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& axes_a, const Dims& axes_b) {
    const FunctionCall call("tensordot", {{"a", a}, {"b", b}}, {{"axes_a", axes_a}, {"axes_b", axes_b}});
    call.require_defined({"a", "b"});
    require_same("tensordot", a, b);
    if (axes_a.rank() != axes_b.rank())
        throw ValueError(
            fmt::format("tensordot: expected as many axes of a as of b, got {} and {}", axes_a.str(), axes_b.str()));
    Tensor left = a, right = b;
    const DType type = a.dtype();
    std::vector<bool> reduced_a(static_cast<std::size_t>(a.rank())), reduced_b(static_cast<std::size_t>(b.rank()));
    Dims reduced_axes_a, reduced_axes_b;
    std::int64_t k = 1;
    for (int i = 0; i < axes_a.rank(); ++i) {
        const int axis_a = normalize_axis("tensordot", axes_a[i], a.rank());
        const int axis_b = normalize_axis("tensordot", axes_b[i], b.rank());
        if (reduced_a[static_cast<std::size_t>(axis_a)] || reduced_b[static_cast<std::size_t>(axis_b)])
            throw ValueError(
                fmt::format("tensordot: expected each axis once, got {} and {}", axes_a.str(), axes_b.str()));
        reduced_a[static_cast<std::size_t>(axis_a)] = reduced_b[static_cast<std::size_t>(axis_b)] = true;
        const std::int64_t size_a = left.size(axis_a), size_b = right.size(axis_b);
        if (size_a != size_b && size_a != 1 && size_b != 1)
            throw ShapeError(fmt::format("tensordot: expected axes of the same size, got axis {} of {} and {} of {}",
                                         axis_a, a.shape().str(), axis_b, b.shape().str()));
        // If one of the sizes is 1, the other axis is summed directly.
        if (size_a != size_b) left = upcast(left), right = upcast(right);
        if (size_a == 1 && size_b != 1) right = sum(right, {axis_b}, true).to(right.dtype());
        if (size_b == 1 && size_a != 1) left = sum(left, {axis_a}, true).to(left.dtype());
        k *= left.size(axis_a);
        reduced_axes_a.push_back(axis_a);
        reduced_axes_b.push_back(axis_b);
    }
    Dims order_a, order_b = reduced_axes_b;
    Shape shape;
    std::int64_t m = 1, n = 1;
    for (int axis = 0; axis < a.rank(); ++axis) {
        if (reduced_a[static_cast<std::size_t>(axis)]) continue;
        order_a.push_back(axis);
        shape.push_back(a.size(axis));
        m *= a.size(axis);
    }
    for (const std::int64_t axis : reduced_axes_a) order_a.push_back(axis);
    for (int axis = 0; axis < b.rank(); ++axis) {
        if (reduced_b[static_cast<std::size_t>(axis)]) continue;
        order_b.push_back(axis);
        shape.push_back(b.size(axis));
        n *= b.size(axis);
    }
    return call.result(
        reshape(matmul(reshape(permute(left, order_a), {m, k}), reshape(permute(right, order_b), {k, n})), shape)
            .to(type));
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes) {
    const FunctionCall call("tensordot", {{"a", a}, {"b", b}}, {{"axes", axes}});
    call.require_defined({"a", "b"});
    if (axes < 0 || axes > a.rank() || axes > b.rank())
        throw ValueError(fmt::format("tensordot: expected 0 to {} axes of {} and {}, got {}",
                                     std::min(a.rank(), b.rank()), a.shape().str(), b.shape().str(), axes));
    Dims axes_a, axes_b;
    for (std::int64_t i = 0; i < axes; ++i) {
        axes_a.push_back(a.rank() - axes + i);
        axes_b.push_back(i);
    }
    return call.result(tensordot(a, b, axes_a, axes_b));
}

Tensor kron(const Tensor& a, const Tensor& b) {
    const FunctionCall call("kron", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    const int rank = std::max(a.rank(), b.rank());
    if (rank > Dims::kMaxRank / 2)
        throw ShapeError(fmt::format("kron: expected at most {} axes, got {} and {}", Dims::kMaxRank / 2,
                                     a.shape().str(), b.shape().str()));
    Shape shape_a, shape_b, result;
    for (int axis = 0; axis < rank; ++axis) {
        const std::int64_t left = axis < rank - a.rank() ? 1 : a.size(axis - rank + a.rank());
        const std::int64_t right = axis < rank - b.rank() ? 1 : b.size(axis - rank + b.rank());
        shape_a.push_back(left);
        shape_a.push_back(1);
        shape_b.push_back(1);
        shape_b.push_back(right);
        result.push_back(left * right);
    }
    return call.result(reshape(reshape(a, shape_a) * reshape(b, shape_b), result));
}

Tensor trace(const Tensor& x) {
    const FunctionCall call("trace", {{"x", x}});
    call.require_defined({"x"});
    ops::require_rank("trace", "x", x.shape(), 2, "M, N");
    return call.result(sum(diagonal(x)));
}

Tensor chain_matmul(const std::vector<Tensor>& matrices) {
    const FunctionCall call("chain_matmul", {{"matrices", std::span<const Tensor>(matrices)}});
    if (matrices.empty()) throw ValueError("chain_matmul: expected at least one matrix, got none");
    call.require_defined({"matrices"});
    const std::size_t count = matrices.size();
    std::vector<Tensor> operands = matrices;
    const bool row = count > 1 && operands.front().rank() == 1, column = count > 1 && operands.back().rank() == 1;
    if (row) operands.front() = unsqueeze(operands.front(), 0);
    if (column) operands.back() = unsqueeze(operands.back(), 1);
    for (std::size_t i = 0; i < count; ++i) {
        ops::require_rank("chain_matmul", "each", operands[i].shape(), 2, "M, N");
        if (i > 0 && operands[i - 1].size(1) != operands[i].size(0))
            throw ShapeError(fmt::format("chain_matmul: expected matrices of fitting sizes, got {} x {}",
                                         operands[i - 1].shape().str(), operands[i].shape().str()));
        require_same("chain_matmul", operands[0], operands[i], "the first matrix", "another");
    }
    const DType type = operands[0].dtype();
    if (count > 2)
        for (Tensor& operand : operands) operand = upcast(operand);
    // Matrix chain ordering by dynamic programming (Cormen et al., 14.2).
    std::vector<std::vector<double>> cost(count, std::vector<double>(count, 0));
    std::vector<std::vector<std::size_t>> cut(count, std::vector<std::size_t>(count, 0));
    for (std::size_t length = 1; length < count; ++length)
        for (std::size_t first = 0; first + length < count; ++first) {
            const std::size_t last = first + length;
            double best = std::numeric_limits<double>::infinity();
            for (std::size_t split = first; split < last; ++split) {
                const double total = cost[first][split] + cost[split + 1][last] +
                                     static_cast<double>(operands[first].size(0)) *
                                         static_cast<double>(operands[split].size(1)) *
                                         static_cast<double>(operands[last].size(1));
                if (total < best) best = total, cut[first][last] = split;
            }
            cost[first][last] = best;
        }
    const auto product = [&](const auto& self, std::size_t first, std::size_t last) -> Tensor {
        if (first == last) return operands[first];
        const std::size_t split = cut[first][last];
        return matmul(self(self, first, split), self(self, split + 1, last));
    };
    Tensor result = product(product, 0, count - 1);
    if (column) result = squeeze(result, {1});
    if (row) result = squeeze(result, {0});
    return call.result(result.to(type));
}

Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis) {
    const FunctionCall call("cross", {{"a", a}, {"b", b}}, {{"axis", axis}});
    call.require_defined({"a", "b"});
    require_same("cross", a, b);
    const Shape shape = broadcast_shapes("cross", a.shape(), b.shape());
    if (a.rank() != b.rank())
        throw ShapeError(
            fmt::format("cross: expected as many axes of a as of b, got {} and {}", a.shape().str(), b.shape().str()));
    const int along = normalize_axis("cross", axis, shape.rank());
    if (a.size(along) != 3 || b.size(along) != 3)
        throw ShapeError(
            fmt::format("cross: expected size 3 along axis {}, got {} and {}", axis, a.shape().str(), b.shape().str()));
    const auto rolled = [&](const Tensor& x, std::int64_t shift) {
        return concat({slice(x, along, shift, 3), slice(x, along, 0, shift)}, along);
    };
    const auto product = [&](const Tensor& u, const Tensor& v) {
        return rolled(u, 1) * rolled(v, 2) - rolled(u, 2) * rolled(v, 1);
    };
    return call.result(in_f32(a.dtype(), product, a, b));
}

Tensor vander(const Tensor& x, std::int64_t columns, bool increasing) {
    const FunctionCall call("vander", {{"x", x}}, {{"columns", columns}, {"increasing", increasing}});
    call.require_defined({"x"});
    if (x.rank() == 0) throw ShapeError("vander: expected x of shape (..., N), got a tensor without axes");
    if (columns < -1) throw ValueError(fmt::format("vander: expected a number of columns, or -1, got {}", columns));
    const std::int64_t count = columns == -1 ? x.size(-1) : columns;
    const Tensor base = is_floating(x.dtype()) ? x : x.to(DType::i64);
    Shape shape = x.shape();
    shape.push_back(std::min<std::int64_t>(count, 1));
    const Tensor first = ones(shape, {base.dtype(), base.device()});
    if (count <= 1) return call.result(first);
    shape[-1] = count - 1;
    const Tensor powers = concat({first, cumprod(expand(unsqueeze(base, -1), shape), -1)}, -1);
    return call.result(increasing ? powers : flip(powers, {-1}));
}

Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis) {
    const FunctionCall call("vecdot", {{"a", a}, {"b", b}}, {{"axis", axis}});
    call.require_defined({"a", "b"});
    require_same("vecdot", a, b);
    const Shape shape = broadcast_shapes("vecdot", a.shape(), b.shape());
    const int along = normalize_axis("vecdot", axis, shape.rank());
    return call.result(sum(upcast(a) * upcast(b), {along}).to(a.dtype()));
}

}  // namespace declivity
