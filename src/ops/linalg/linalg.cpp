#include <declivity/ops/linalg.hpp>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/driver_faults.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMaxGroup = 256;        // work-items of a matrix, simt
constexpr std::int64_t kMaxItemsPerPair = 32;  // work-items per pair of rows

void check(std::string_view function, std::string_view name, const View& a) {
    if (a.dtype != DType::f32 && a.dtype != DType::f64)
        throw TypeError(fmt::format("{}: expected f32 or f64 as {}, got {}", function, name, name_of(a.dtype)));
    require_rank(function, name, a, 3, "batch, rows, columns");
    require_dense(function, name, a);
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    if (a.shape[1] >= limit || a.shape[2] >= limit)
        throw ShapeError(fmt::format("{}: expected fewer than 2^31 rows and columns, got {}", function, a.shape.str()));
}

void check_square(std::string_view function, std::string_view name, const View& a) {
    check(function, name, a);
    require_shape(function, name, a, {a.shape[0], a.shape[1], a.shape[1]});
}

Defines defines_of(DType dtype, std::size_t group) {
    Defines defines = real_defines(dtype);
    defines.set("T", cl_type(dtype)).set("LANES", vector_lanes(dtype));
    return defines.set("GROUP", static_cast<std::int64_t>(group));
}

/// Work-items for matrices of n rows or columns.
std::size_t group_for(const Device& device, std::int64_t n) {
    if (is_simd(device)) return 1;
    return to_size(std::clamp<std::int64_t>(power_of_two_up_to(std::max<std::int64_t>(1, 4 * n)), 32, kMaxGroup));
}

GroupKernel kernel_for(const View& a, std::int64_t n, std::string_view file, std::string_view name) {
    const Device device = a.device();
    return kernel_of_group(device, group_for(device, n), [&](std::size_t group) {
        return Kernel(device, {std::string(file), std::string(name), defines_of(a.dtype, group)});
    });
}

Range group_per_matrix(const View& a, std::size_t group) {
    return {.global = {to_size(a.shape[0]) * group, 1, 1}, .local = {group, 1, 1}};
}

/// The work, of about `each` multiplications and additions for each matrix.
Work work_of(double each, const View& a, const View& other) {
    return {.flops = each * static_cast<double>(a.shape[0]),
            .bytes = bytes_of(a) + bytes_of(other),
            .f64 = a.dtype == DType::f64};
}

double cube(double rows, double columns) { return rows * columns * std::min(rows, columns); }
double cube_of(const View& a) { return cube(static_cast<double>(a.shape[1]), static_cast<double>(a.shape[2])); }

/// Returns whether the matrices are empty; results of one number for each matrix are then 0.
bool is_empty(const View& a, const View& each) {
    if (a.numel() > 0) return false;
    if (each.buffer && each.numel() > 0) fill(each, 0);
    return true;
}

/// Checks that the driver supports loops of about `iterations` steps, divided over the work-items of a group
/// (limited_loops).
/// @throws Unsupported
void check_loop_limit(std::string_view function, const View& a, double iterations, std::size_t group) {
    constexpr double limit = 65535;
    if (iterations / static_cast<double>(group) <= limit || is_simd(a.device())) return;
    if (!has_fault(a.device(), driver_fault("limited_loops"))) return;
    throw Unsupported(
        fmt::format("{}: expected a driver without a loop limit, got {}, where the loops of a kernel end after "
                    "65535 iterations, and matrices of {} x {}, which need more; use smaller ones, or another device",
                    function, a.device().info().name, a.shape[1], a.shape[2]));
}

struct NoAttributes {};

EpilogueFused launch_cholesky(const OperationViews& views, const NoAttributes&) {
    const View& a = views.in(0);
    if (is_empty(a, views.out(1))) return EpilogueFused::no;
    const WorkScope work("cholesky", work_of(cube_of(a) / 3, a, views.out(0)));
    const auto [kernel, group] = kernel_for(a, a.shape[1], "cholesky.cl", "cholesky");
    check_loop_limit("linalg::cholesky", a, cube_of(a) / 2, group);
    launch(kernel, group_per_matrix(a, group),
           {narrow(a.shape[1]), a.argument(), views.out(0).argument(), views.out(1).argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_triangular_solve(const OperationViews& views, const TriangularSolve& options) {
    const View &a = views.in(0), &b = views.in(1);
    if (b.numel() == 0) return EpilogueFused::no;
    const std::int64_t n = b.shape[1], k = b.shape[2];
    const Device device = a.device();
    const WorkScope work("triangular_solve", work_of(static_cast<double>(n * n * k), a, b));
    const bool simd = is_simd(device);
    // Work-items share nothing; GROUP only selects vectors of columns (1) or single columns (2).
    Defines defines = defines_of(a.dtype, simd ? 1 : 2);
    defines.set("UPPER", options.upper ? 1 : 0)
        .set("TRANSPOSED", options.transposed ? 1 : 0)
        .set("UNIT_DIAGONAL", options.unit ? 1 : 0);
    const Kernel kernel(device, {"triangular_solve.cl", "triangular_solve", defines});
    const std::int64_t blocks = simd ? ceil_div(k, vector_lanes(a.dtype)) : k;
    const std::size_t limit = simd ? 1 : item_group(kernel);
    const std::size_t group = std::min(limit, to_size(power_of_two_up_to(2 * blocks - 1)));
    launch(kernel, {.global = {round_up(to_size(blocks), group), to_size(b.shape[0]), 1}, .local = {group, 1, 1}},
           {narrow(n), k, a.argument(), b.argument(), views.out(0).argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_lu(const OperationViews& views, const NoAttributes&) {
    const View& a = views.in(0);
    if (a.numel() == 0) {
        // The permutation is the identity.
        const View& rows = views.out(2);
        for (std::int64_t i = 0; i < rows.shape[1] && rows.numel() > 0; ++i)
            fill(sliced(rows, 1, i, 1), static_cast<std::int64_t>(i));
        (void)is_empty(a, views.out(3));
        return EpilogueFused::no;
    }
    const WorkScope work("lu_factor", work_of(cube_of(a) * 2 / 3, a, views.out(0)));
    const auto [kernel, group] = kernel_for(a, std::max(a.shape[1], a.shape[2]), "lu.cl", "lu_factor");
    check_loop_limit("linalg::lu_factor", a, cube_of(a) * 3 / 4, group);
    launch(kernel, group_per_matrix(a, group),
           {narrow(a.shape[1]), narrow(a.shape[2]), local_memory(static_cast<std::int64_t>(group), a.dtype),
            LocalMemory{group * sizeof(std::int32_t)}, a.argument(), views.out(0).argument(), views.out(1).argument(),
            views.out(2).argument(), views.out(3).argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_lu_rows(const OperationViews& views, const NoAttributes&) {
    const View &pivots = views.in(0), &rows = views.out(0);
    if (rows.numel() == 0) return EpilogueFused::no;
    const WorkScope work("lu_factor", work_each(0, pivots, rows));
    const Kernel kernel(rows.device(), {"lu.cl", "lu_permutation", defines_of(DType::f32, 1)});
    launch(kernel, {.global = {to_size(rows.shape[0]), 1, 1}, .local = {1, 1, 1}},
           {narrow(rows.shape[1]), narrow(pivots.shape[1]), or_else(pivots, rows), rows.argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_qr_factor(const OperationViews& views, const NoAttributes&) {
    const View& a = views.in(0);
    if (a.numel() == 0) return EpilogueFused::no;
    const WorkScope work("qr", work_of(cube_of(a) * 2, a, views.out(0)));
    const auto [kernel, group] = kernel_for(a, std::max(a.shape[1], a.shape[2]), "qr.cl", "qr_factor");
    check_loop_limit("linalg::qr", a, cube_of(a) * 3 / 2, group);
    launch(kernel, group_per_matrix(a, group),
           {narrow(a.shape[1]), narrow(a.shape[2]), local_memory(static_cast<std::int64_t>(group), a.dtype),
            a.argument(), views.out(0).argument(), views.out(1).argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_qr_form(const OperationViews& views, const NoAttributes&) {
    const View &work_view = views.in(0), &q = views.out(0);
    if (q.numel() == 0) return EpilogueFused::no;
    if (work_view.numel() == 0) {  // no reflections
        fill(q, 0);
        for (std::int64_t i = 0; i < std::min(q.shape[1], q.shape[2]); ++i)
            fill(sliced(sliced(q, 1, i, 1), 2, i, 1), 1);
        return EpilogueFused::no;
    }
    const WorkScope work("qr", work_of(cube_of(q) * 2, work_view, q));
    const auto [kernel, group] = kernel_for(work_view, q.shape[2], "qr.cl", "qr_form");
    check_loop_limit("linalg::qr", q, cube_of(q) * 3 / 2, group);
    launch(kernel, group_per_matrix(work_view, group),
           {narrow(work_view.shape[1]), narrow(work_view.shape[2]), narrow(q.shape[2]), work_view.argument(),
            views.in(1).argument(), q.argument()});
    return EpilogueFused::no;
}

struct Jacobi {
    bool symmetric, upper, vectors;
};

/// Computes values, and with `vectors` v, and u of matrices that are not symmetric.
EpilogueFused launch_jacobi(const OperationViews& views, const Jacobi& jacobi) {
    const View &a = views.in(0), &values = views.out(0);
    if (a.numel() == 0) {
        // Matrices without columns have no vectors; any vectors are valid right vectors of matrices without rows.
        return EpilogueFused::no;
    }
    const Device device = a.device();
    const std::int64_t n = a.shape[1], m = a.shape[2], pairs = ceil_div(n, 2);
    const WorkScope work(jacobi.symmetric ? "eigh" : "svd", work_of(cube_of(a) * 60, a, values));
    const bool needs_vectors = jacobi.vectors || jacobi.symmetric;
    const View g = View::make(device, a.dtype, a.shape), unsorted = View::make(device, a.dtype, values.shape);
    const View v = needs_vectors ? View::make(device, a.dtype, {a.shape[0], n, n}) : unsorted;
    const std::size_t max_group = group_for(device, pairs * 2);
    const auto [kernel, group] = kernel_of_group(device, max_group, [&](std::size_t items) {
        const std::int64_t items_per_pair =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(items) / power_of_two_up_to(2 * pairs - 1), 1,
                                     std::min(kMaxItemsPerPair, static_cast<std::int64_t>(items)));
        Defines defines = defines_of(a.dtype, items);
        defines.set("SYMMETRIC", jacobi.symmetric ? 1 : 0).set("UPPER", jacobi.upper ? 1 : 0);
        defines.set("VECTORS", jacobi.vectors ? 1 : 0).set("ITEMS_PER_PAIR", items_per_pair);
        return Kernel(device, {"jacobi.cl", "jacobi", defines});
    });
    // Sixteen sweeps over all pairs, six products or rotations of rows each.
    check_loop_limit(jacobi.symmetric ? "linalg::eigh" : "linalg::svd", a, cube_of(a) * 48, group);
    const View& right = jacobi.vectors ? views.out(1) : unsorted;
    const View& left = jacobi.vectors && !jacobi.symmetric ? views.out(2) : unsorted;
    launch(kernel, group_per_matrix(a, group),
           {narrow(m), narrow(n), local_memory(3 * static_cast<std::int64_t>(group), a.dtype), a.argument(),
            g.argument(), v.argument(), unsorted.argument(), values.argument(), left.argument(), right.argument()});
    return EpilogueFused::no;
}

struct MatrixStrides {
    std::int64_t batch, row, column;
};
MatrixStrides strides_of(const View& view) { return {view.strides[0], view.strides[1], view.strides[2]}; }

EpilogueFused launch_integer_matmul(const OperationViews& views, const NoAttributes&) {
    const View &a = views.in(0), &b = views.in(1), &out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    const std::int64_t m = a.shape[1], k = a.shape[2], n = b.shape[2];
    const Device device = a.device();
    const bool simd = is_simd(device);
    const WorkScope work("matmul", work_each(2.0 * static_cast<double>(k), out, a, b));
    const std::int64_t columns = simd ? 16 : 1;
    Defines defines;
    defines.set("T", cl_type(a.dtype)).set("COLUMNS", columns).set("SUM", size_of(a.dtype) == 8 ? "ulong" : "uint");
    const Kernel kernel(device, {"matmul_integer.cl", "matmul_integer", defines});
    const std::size_t group = simd ? 1 : item_group(kernel);
    launch(kernel,
           {.global = {round_up(to_size(ceil_div(n, columns)), group), to_size(m), to_size(out.shape[0])},
            .local = {group, 1, 1}},
           {n, k, strides_of(a), strides_of(b), a.argument(), b.argument(), out.argument()});
    return EpilogueFused::no;
}

}  // namespace

CholeskyResults cholesky(const View& a) {
    check_square("cholesky", "a", a);
    const OperationResults results =
        operation("cholesky", launch_cholesky, NoAttributes{},
                  {.reads = {a}, .outputs = {{a.dtype, a.shape}, {DType::i32, {a.shape[0]}}}});
    return {results[0], results[1]};
}

LazyArray triangular_solve(const View& a, const View& b, const TriangularSolve& options) {
    check_square("triangular_solve", "a", a);
    check("triangular_solve", "b", b);
    require_alike("triangular_solve", "a", a, "b", b);
    require_shape("triangular_solve", "b", b, {a.shape[0], a.shape[1], b.shape[2]});
    return operation("triangular_solve", launch_triangular_solve, options,
                     {.reads = {a, b}, .outputs = {{b.dtype, b.shape}}})[0];
}

LuResults lu_factor(const View& a) {
    check("lu_factor", "a", a);
    const std::int64_t batch = a.shape[0], m = a.shape[1], n = a.shape[2];
    const OperationResults results = operation("lu_factor", launch_lu, NoAttributes{},
                                               {.reads = {a},
                                                .outputs = {{a.dtype, a.shape},
                                                            {DType::i32, {batch, std::min(m, n)}},
                                                            {DType::i32, {batch, m}},
                                                            {DType::i32, {batch}}}});
    return {results[0], results[1], results[2], results[3]};
}

LazyArray lu_permutation(const View& pivots, std::int64_t m) {
    require_rank("lu_permutation", "pivots", pivots, 2, "batch, k");
    require_dense("lu_permutation", "pivots", pivots);
    if (pivots.dtype != DType::i32 || pivots.shape[1] > m)
        throw ValueError(fmt::format("lu_permutation: expected at most {} pivots of i32, got {} of {}", m,
                                     pivots.shape[1], name_of(pivots.dtype)));
    return operation("lu_permutation", launch_lu_rows, NoAttributes{},
                     {.reads = {pivots}, .outputs = {{DType::i32, {pivots.shape[0], m}}}})[0];
}

QrResults qr_factor(const View& a) {
    check("qr", "a", a);
    const std::int64_t batch = a.shape[0], steps = std::min(a.shape[1], a.shape[2]);
    const OperationResults results =
        operation("qr", launch_qr_factor, NoAttributes{},
                  {.reads = {a}, .outputs = {{a.dtype, a.shape}, {a.dtype, {batch, steps}}}});
    return {results[0], results[1]};
}

LazyArray qr_form(const View& work, const View& taus, std::int64_t columns) {
    check("qr", "work", work);
    require_dense("qr", "taus", taus);
    const std::int64_t steps = std::min(work.shape[1], work.shape[2]);
    require_alike("qr", "work", work, "taus", taus);
    require_shape("qr", "taus", taus, {work.shape[0], steps});
    if (columns < steps || columns > work.shape[1])
        throw ValueError(fmt::format("qr: expected {} to {} columns, got {}", steps, work.shape[1], columns));
    return operation("qr", launch_qr_form, NoAttributes{},
                     {.reads = {work, taus}, .outputs = {{work.dtype, {work.shape[0], work.shape[1], columns}}}})[0];
}

EigenResults eigh(const View& a, bool upper, bool vectors) {
    check_square("eigh", "a", a);
    std::vector<OperationOutput> outputs{{a.dtype, {a.shape[0], a.shape[1]}}};
    if (vectors) outputs.push_back({a.dtype, a.shape});
    const OperationResults results =
        operation("eigh", launch_jacobi, Jacobi{true, upper, vectors}, {.reads = {a}, .outputs = outputs});
    return {results[0], results[1]};
}

SvdResults svd(const View& columns, bool vectors) {
    check("svd", "the columns", columns);
    const std::int64_t batch = columns.shape[0], n = columns.shape[1];
    if (n > columns.shape[2])
        throw ShapeError(
            fmt::format("svd: expected no more columns than rows, got (batch, columns, rows) {}", columns.shape.str()));
    std::vector<OperationOutput> outputs{{columns.dtype, {batch, n}}};
    if (vectors) {
        outputs.push_back({columns.dtype, {batch, n, n}});
        outputs.push_back({columns.dtype, columns.shape});
    }
    const OperationResults results =
        operation("svd", launch_jacobi, Jacobi{false, false, vectors}, {.reads = {columns}, .outputs = outputs});
    return {results[0], results[2], results[1]};
}

LazyArray integer_matmul(const View& a, const View& b) {
    if (is_floating(a.dtype) || a.dtype == DType::boolean)
        throw TypeError(fmt::format("matmul: expected integers as a, got {}", name_of(a.dtype)));
    require_alike("matmul", "a", a, "b", b);
    require_rank("matmul", "a", a, 3, "batch, M, K");
    require_rank("matmul", "b", b, 3, "batch, K, N");
    require_shape("matmul", "b", b, {a.shape[0], a.shape[2], b.shape[2]});
    return operation("matmul", launch_integer_matmul, NoAttributes{},
                     {.reads = {a, b}, .outputs = {{a.dtype, {a.shape[0], a.shape[1], b.shape[2]}}}})[0];
}

}  // namespace declivity::ops
