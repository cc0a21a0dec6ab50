// Creation of identity matrices, evenly spaced numbers, indices of triangles.
#include <algorithm>
#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/ragged.hpp"
#include "ops/support/int32_range.hpp"

namespace declivity {
namespace {

void require_steps(const char* name, std::int64_t steps) {
    if (steps < 0) throw ValueError(fmt::format("{}: expected at least 0 steps, got {}", name, steps));
}

/// Computed from both ends, like PyTorch, so that both are exact and the sequence is symmetric.
Tensor make_linspace(double start, double end, std::int64_t steps, const TensorOptions& options) {
    const Tensor position = arange(0, steps, 1, options);
    const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
    const auto half = static_cast<double>(steps / 2), last = static_cast<double>(steps - 1);
    if (steps < 2) return position + start;
    return where(position < half, position * step + start, end - (last - position) * step);
}

/// start + i (end - start) / (steps - 1), rounded towards 0, in integer arithmetic, so that nothing else is rounded.
Tensor make_integer_linspace(std::int64_t start, std::int64_t end, std::int64_t steps, const TensorOptions& options) {
    const std::int64_t n = std::max<std::int64_t>(1, steps - 1);
    const double largest = std::max(std::abs(static_cast<double>(start)), std::abs(static_cast<double>(end)));
    if (!(3 * largest * static_cast<double>(n) < 0x1p62))
        throw ValueError(
            fmt::format("linspace: expected integer bounds that, times the steps, fit into 62 bits, got {} to {} "
                        "in {} steps",
                        start, end, steps));
    const Tensor product = arange(0, steps, 1, {DType::i64, options.device}) * (end - start) + start * n;
    return where(product < 0, -floor_divide(-product, n), floor_divide(product, n)).to(options.dtype);
}

struct Triangle {
    Tensor counts, first;  // per row: number of elements, and the column of the first
};

Tensor indices_of(const Triangle& triangle, std::int64_t total, const TensorOptions& options) {
    const auto [row, position] = detail::ragged_indices(triangle.counts, total);
    return stack({row, position + index_select(triangle.first, 0, row)}).to(options.dtype);
}

void require_triangle(const char* name, std::int64_t rows, std::int64_t columns, const TensorOptions& options) {
    ops::check_int32_range(name, "sizes", {rows, columns});
    if (rows < 0 || columns < 0)
        throw ValueError(fmt::format("{}: expected sizes of at least 0, got {} and {}", name, rows, columns));
    if (options.dtype != DType::i64 && options.dtype != DType::i32)
        throw TypeError(fmt::format("{}: expected i64 or i32, got {}", name, name_of(options.dtype)));
}

}  // namespace

Tensor eye(std::int64_t n, std::int64_t m, const TensorOptions& options) {
    const FunctionCall call("eye", {}, {{"n", n}, {"m", m}, {"dtype", options.dtype}});
    if (n < 0 || m < -1) throw ValueError(fmt::format("eye: expected sizes of at least 0, got {} and {}", n, m));
    const TensorOptions index_options{DType::i64, options.device};
    const Tensor rows = arange(0, n, 1, index_options), columns = arange(0, m < 0 ? n : m, 1, index_options);
    return call.result((reshape(rows, {n, 1}) == columns).to(options.dtype));
}

Tensor linspace(Scalar start, Scalar end, std::int64_t steps, const TensorOptions& options) {
    const FunctionCall call("linspace", {},
                            {{"start", start}, {"end", end}, {"steps", steps}, {"dtype", options.dtype}});
    require_steps("linspace", steps);
    if (options.dtype == DType::boolean) throw TypeError("linspace: expected a numeric type, got bool");
    if (is_floating(options.dtype)) {
        const TensorOptions compute_options{compute_type(options.dtype), options.device};
        return call.result(make_linspace(start.to_double(), end.to_double(), steps, compute_options).to(options.dtype));
    }
    for (const Scalar& bound : {start, end})
        if (!(std::abs(bound.to_double()) < 0x1p62))
            throw ValueError(fmt::format("linspace: expected bounds representable in {}, got {}",
                                         name_of(options.dtype), bound.str()));
    const auto from = start.to<std::int64_t>(), to = end.to<std::int64_t>();
    for (const std::int64_t bound : {from, to})
        if (!Scalar(bound).fits(options.dtype))
            throw ValueError(
                fmt::format("linspace: expected bounds representable in {}, got {}", name_of(options.dtype), bound));
    return call.result(make_integer_linspace(from, to, steps, options));
}

Tensor logspace(Scalar start, Scalar end, std::int64_t steps, double base, const TensorOptions& options) {
    const FunctionCall call(
        "logspace", {}, {{"start", start}, {"end", end}, {"steps", steps}, {"base", base}, {"dtype", options.dtype}});
    require_steps("logspace", steps);
    if (!is_floating(options.dtype))
        throw TypeError(fmt::format("logspace: expected a floating type, got {}", name_of(options.dtype)));
    const TensorOptions compute_options{compute_type(options.dtype), options.device};
    return call.result(
        pow(base, make_linspace(start.to_double(), end.to_double(), steps, compute_options)).to(options.dtype));
}

Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, const TensorOptions& options) {
    const FunctionCall call("tril_indices", {},
                            {{"rows", rows}, {"columns", columns}, {"offset", offset}, {"dtype", options.dtype}});
    require_triangle("tril_indices", rows, columns, options);
    const std::int64_t diagonal = std::clamp(offset, -rows, columns);  // beyond that, nothing changes
    std::int64_t total = 0;
    for (std::int64_t row = 0; row < rows; ++row) total += std::clamp<std::int64_t>(row + diagonal + 1, 0, columns);
    const Tensor counts = clamp(arange(0, rows, 1, {DType::i64, options.device}) + (diagonal + 1), 0, columns);
    return call.result(indices_of({counts, zeros_like(counts)}, total, options));
}

Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, const TensorOptions& options) {
    const FunctionCall call("triu_indices", {},
                            {{"rows", rows}, {"columns", columns}, {"offset", offset}, {"dtype", options.dtype}});
    require_triangle("triu_indices", rows, columns, options);
    const std::int64_t diagonal = std::clamp(offset, -rows, columns);  // beyond that, nothing changes
    std::int64_t total = 0;
    for (std::int64_t row = 0; row < rows; ++row)
        total += columns - std::clamp<std::int64_t>(row + diagonal, 0, columns);
    const Tensor first = clamp(arange(0, rows, 1, {DType::i64, options.device}) + diagonal, 0, columns);
    return call.result(indices_of({columns - first, first}, total, options));
}

}  // namespace declivity
