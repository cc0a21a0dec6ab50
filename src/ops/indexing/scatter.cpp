#include <declivity/ops/scatter.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/sort/radix_sort.hpp"
#include "ops/support/index_operands.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kSimdNeighbours = 64;  // minimum columns of a work-item

Kernel kernel_of(const char* name, DType dtype, const View& indices, const char* fold = nullptr) {
    Defines defines;
    if (is_floating(dtype)) defines = storage_defines(dtype, dtype);
    else defines.set("REAL", cl_type(dtype)).set("INTEGER", 1);
    if (fold != nullptr) defines.set("FOLD", fold);
    defines.set(form_macro(is_simd(indices.device())), 1).set("INDEX_TYPE", cl_type(indices.dtype));
    return {indices.device(), {"scatter.cl", name, defines}};
}

/// Sorted indices of rows with their positions; indices out of range come last.
struct SortedKeys {
    View keys;
    std::int64_t count;  // of the indices; `keys` may be padded

    SortedKeys(const View& indices, std::int64_t size) : count(indices.shape[0]) {
        keys = View::make(indices.device(), DType::u64, {1, count});
        if (radix_sort_is_profitable(keys, count)) {
            const View unsorted = View::make(indices.device(), DType::u64, {1, count});
            make_keys(indices, size, unsorted);
            radix_sort(unsorted, false, keys, View::make(indices.device(), DType::i64, {1, count}));
            return;
        }
        std::int64_t padded = 1;
        while (padded < count) padded *= 2;
        keys = View::make(indices.device(), DType::u64, {1, padded});
        make_keys(indices, size, keys);
        const Kernel sort = kernel_of("sort_keys", DType::f32, indices);
        for (std::int64_t block = 2; block <= padded; block *= 2)
            for (std::int64_t distance = block / 2; distance >= 1; distance /= 2)
                launch(sort, items(sort, padded / 2), {padded / 2, block, distance, keys.argument()});
    }
    void make_keys(const View& indices, std::int64_t size, const View& to) const {
        const Kernel kernel = kernel_of("number_keys", DType::f32, indices);
        const std::int64_t key_count = to.numel();
        launch(kernel, items(kernel, key_count), {count, key_count, size, indices.argument(), to.argument()});
    }
    static Range items(const Kernel& kernel, std::int64_t item_count) {
        const std::size_t group = is_simd(kernel.device()) ? 1 : item_group(kernel);
        return {.global = {round_up(to_size(item_count), group), 1, 1}, .local = {group, 1, 1}};
    }
};

/// Layout of the kernels' struct; must match cl_kernels/indexing/scatter.cl.
struct Owned {
    std::int64_t count, taken, size, owned, chunk;
};

/// simd: each row index is owned by one of as many work-items as there are compute units; or, if the table is small
/// compared with the input, each work-item builds a table from a chunk of the rows.
struct Owners {
    Owned sizes;
    std::int64_t chunks = 1;
    Range range;

    Owners(const Device& device, std::int64_t count, std::int64_t taken, std::int64_t size, bool tables)
        : sizes{count, taken, size, size, count} {
        const std::int64_t units =
            std::min<std::int64_t>(device.info().compute_units, std::max<std::int64_t>(1, count * taken / kSimdWork));
        if (tables && size * units <= count) sizes.chunk = ceil_div(count, units);
        else sizes.owned = ceil_div(size, units);
        chunks = ceil_div(count, sizes.chunk);
        range = {.global = {to_size(ceil_div(size, sizes.owned)), to_size(chunks)}, .local = {1, 1}};
    }
};

/// The last arguments of a kernel: the initial values of the sums, or x, which is not read.
struct Base {
    const View& view;
    std::int32_t has_base;

    Base(const View* base, const View& x) : view(base != nullptr ? *base : x), has_base(base != nullptr ? 1 : 0) {}
};

/// The output of the sums: `out` itself, or temporary tables for 16-bit floats or several chunks.
View tables_for(const View& out, std::int64_t chunks) {
    if (!is_16bit_float(out.dtype) && chunks == 1) return out;
    return View::make(out.device(), is_16bit_float(out.dtype) ? DType::f32 : out.dtype, {chunks, out.numel()});
}

void add_tables(const View& tables, const View& indices, const View& out, const Base& base) {
    if (tables.buffer == out.buffer) return;
    const std::int64_t chunks = tables.shape[0], each = rows_each(out.device(), out.numel(), chunks);
    launch(kernel_of("add_tables", out.dtype, indices),
           {.global = {to_size(ceil_div(out.numel(), each))}, .local = {1}},
           {out.numel(), each, chunks, tables.argument(), out.argument(), base.view.argument(), base.has_base});
}

void sum_owned(const View* base, const View& x, const View& indices, const View& out) {
    const Owners owners(x.device(), x.shape[0], x.shape[1], out.shape[0], true);
    const View tables = tables_for(out, owners.chunks);
    // Added once: in the only table, or when the tables are added.
    const Base before(base, x), none(nullptr, x);
    const Base& first = owners.chunks == 1 ? before : none;
    launch(kernel_of("sum_owned", x.dtype, indices), owners.range,
           {owners.sizes, indices.argument(), x.argument(), tables.argument(), first.view.argument(), first.has_base});
    add_tables(tables, indices, out, owners.chunks == 1 ? none : before);
}

/// Sums by sorted indices into `out`, added to its contents if `has_base`.
void fold_sorted(Fold fold, const View& x, const View& indices, const View& out, bool has_base) {
    const SortedKeys sorted(indices, out.shape[0]);
    constexpr std::array<const char*, 4> folds{"ADDED", "MULTIPLIED", "LARGER", "SMALLER"};
    const Kernel kernel = kernel_of("fold_sorted", x.dtype, indices, folds[static_cast<std::size_t>(fold)]);
    launch(kernel, SortedKeys::items(kernel, x.numel()),
           {x.shape[1], x.shape[0], sorted.keys.argument(), x.argument(), out.argument(), has_base ? 1 : 0});
}

/// Layout of the kernels' struct; must match cl_kernels/indexing/scatter.cl.
struct Along {
    std::int64_t outer, taken, size, inner, rows, owned, columns;
};

/// simd: blocks of the result, for about as many work-items as there are compute units.
struct Blocks {
    Along sizes;
    Range range;

    Blocks(const Device& device, const View& indices, const View& out)
        : sizes{out.shape[0], indices.shape[1], out.shape[1], out.shape[2], 1, out.shape[1], out.shape[2]} {
        const std::int64_t work = indices.numel() + out.numel();
        const std::int64_t units =
            std::min<std::int64_t>(device.info().compute_units, std::max<std::int64_t>(1, work / kSimdWork));
        const std::int64_t parts = ceil_div(units, sizes.outer);
        if (parts == 1) sizes.rows = rows_each(device, sizes.outer, work / sizes.outer);
        else if (sizes.inner >= parts * kSimdNeighbours) sizes.columns = ceil_div(sizes.inner, parts);
        else sizes.owned = ceil_div(sizes.size, parts);
        range = {.global = {to_size(ceil_div(sizes.size, sizes.owned)), to_size(ceil_div(sizes.inner, sizes.columns)),
                            to_size(ceil_div(sizes.outer, sizes.rows))},
                 .local = {1, 1, 1}};
    }
};

/// Flat indices into `out`, or -1.
View flat_indices_of(const View& indices, const View& out) {
    View flat_indices = View::make(out.device(), DType::i64, {indices.numel()});
    const Kernel kernel = kernel_of("along_numbers", DType::f32, indices);
    const Along sizes{out.shape[0], indices.shape[1], out.shape[1], out.shape[2], 1, 1, 1};
    launch(kernel, SortedKeys::items(kernel, indices.numel()), {sizes, indices.argument(), flat_indices.argument()});
    return flat_indices;
}

void check_along(std::string_view function, const View* base, const View& x, const View& indices, const View& out) {
    require_indices(function, "the indices", indices);
    require_elements(function, "x", x, indices);
    require_elements(function, "out", out, indices);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "out", out, 3, "outer, size, inner");
    require_rank(function, "the indices", indices, 3, "outer, taken, inner");
    require_shape(function, "the indices", indices, {out.shape[0], indices.shape[1], out.shape[2]});
    require_shape(function, "x", x, indices.shape);
    if (base == nullptr) return;
    require_elements(function, "the base", *base, indices);
    require_alike(function, "the base", *base, "out", out);
    require_shape(function, "the base", *base, out.shape);
}

void require_countable(std::string_view function, std::int64_t indices, std::int64_t rows) {
    constexpr std::int64_t max_count = (std::int64_t{1} << 31) - 1;
    if (indices > max_count || rows > max_count)
        throw ShapeError(
            fmt::format("{}: expected fewer than 2^31 indices and rows, got {} and {}", function, indices, rows));
}

void require_numeric(std::string_view function, const View& x) {
    if (x.dtype == DType::boolean)
        throw TypeError(fmt::format("{}: expected numbers as x, got bool (convert with .to(DType::i64))", function));
}

/// Initialises a result into which elements are accumulated.
void begin(const View* base, const View& out) {
    if (base != nullptr) copy(*base, out);
    else fill(out, 0);
}

/// Sums, or other folds; `base` for sums only.
void fold_onto(std::string_view function, Fold fold, const View* base, const View& x, const View& indices,
               const View& out) {
    require_indices(function, "the indices", indices);
    require_elements(function, "x", x, indices);
    require_elements(function, "out", out, indices);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 2, "N, D");
    require_rank(function, "the indices", indices, 1, "N");
    require_rank(function, "out", out, 2, "V, D");
    require_shape(function, "x", x, {indices.shape[0], out.shape[1]});
    if (base != nullptr) {
        require_elements(function, "the base", *base, indices);
        require_alike(function, "the base", *base, "out", out);
        require_shape(function, "the base", *base, out.shape);
    }
    require_numeric(function, x);
    require_countable(function, x.shape[0], out.shape[0]);
    const WorkScope work("fold_rows", work_each(1, x, out, indices));
    const bool empty = x.numel() == 0 || out.numel() == 0;
    if (!empty && fold == Fold::sum && is_simd(x.device())) return sum_owned(base, x, indices, out);
    begin(base, out);
    if (!empty) fold_sorted(fold, x, indices, out, base != nullptr);
}

}  // namespace

void scatter(std::string_view function, const View& x, const View& indices, const View& out) {
    require_indices(function, "the indices", indices);
    require_elements(function, "x", x, indices);
    require_elements(function, "out", out, indices);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 2, "rows, taken");
    require_rank(function, "out", out, 2, "rows, size");
    require_shape(function, "the indices", indices, x.shape);
    require_shape(function, "out", out, {x.shape[0], out.shape[1]});
    const WorkScope work("scatter", work_each(0, x, out, indices));
    fill(out, 0);
    struct {
        std::int64_t rows, each, size, taken;
    } sizes{x.shape[0], 1, out.shape[1], x.shape[1]};
    if (x.numel() == 0) return;
    const Kernel kernel = kernel_of("scatter", x.dtype, indices);
    Range range = SortedKeys::items(kernel, x.numel());
    if (is_simd(x.device())) {
        sizes.each = rows_each(x.device(), sizes.rows, sizes.taken);
        range.global[0] = to_size(ceil_div(sizes.rows, sizes.each));
    }
    launch(kernel, range, {sizes, x.argument(), indices.argument(), out.argument()});
}

void scatter_add(std::string_view function, const View* base, const View& x, const View& indices, const View& out) {
    check_along(function, base, x, indices, out);
    require_numeric(function, x);
    const WorkScope work("scatter_add", work_each(1, x, out, indices));
    if (out.numel() == 0) return;
    if (x.numel() == 0) return begin(base, out);
    const bool one_axis = out.shape[0] == 1 && out.shape[2] == 1;
    if (is_simd(x.device())) {
        const View flat_indices = reshaped(indices, {indices.numel()}), column = reshaped(x, {x.numel(), 1});
        const View to = reshaped(out, {out.numel(), 1});
        if (one_axis) return sum_owned(base, column, flat_indices, to);
        const Blocks blocks(x.device(), indices, out);
        const View tables = tables_for(out, 1);
        const Base before(base, x);
        launch(kernel_of("sum_along", x.dtype, indices), blocks.range,
               {blocks.sizes, indices.argument(), x.argument(), tables.argument(), before.view.argument(),
                before.has_base});
        return add_tables(tables, indices, out, {nullptr, x});
    }
    require_countable(function, x.numel(), out.numel());
    begin(base, out);
    fold_sorted(Fold::sum, reshaped(x, {x.numel(), 1}), flat_indices_of(indices, out), reshaped(out, {out.numel(), 1}),
                base != nullptr);
}

void scatter_last(std::string_view function, const View& base, const View& x, const View& indices, const View& out) {
    check_along(function, &base, x, indices, out);
    const WorkScope work("scatter_last", work_each(0, x, out, indices));
    if (out.numel() == 0) return;
    if (x.numel() == 0) return copy(base, out);
    if (is_simd(x.device())) {
        const Blocks blocks(x.device(), indices, out);
        return launch(kernel_of("write_along", x.dtype, indices), blocks.range,
                      {blocks.sizes, indices.argument(), x.argument(), out.argument(), base.argument(), 1});
    }
    require_countable(function, x.numel(), out.numel());
    copy(base, out);
    const View flat_indices = flat_indices_of(indices, out);
    const SortedKeys sorted(flat_indices, out.numel());
    const Kernel kernel = kernel_of("write_sorted", x.dtype, flat_indices);
    launch(kernel, SortedKeys::items(kernel, sorted.count),
           {sorted.count, sorted.keys.argument(), x.argument(), out.argument()});
}

void fold_rows(std::string_view function, Fold fold, const View& x, const View& indices, const View& out) {
    fold_onto(function, fold, nullptr, x, indices, out);
}

void sum_rows(std::string_view function, const View& x, const View& indices, const View& out, const View* base) {
    fold_onto(function, Fold::sum, base, x, indices, out);
}

void last_rows(std::string_view function, const View& indices, const View& out) {
    require_indices(function, "the indices", indices);
    require_elements(function, "out", out, indices);
    require_rank(function, "the indices", indices, 1, "N");
    require_rank(function, "out", out, 1, "V");
    if (out.dtype != DType::i64) throw TypeError(fmt::format("{}: expected an out of i64", function));
    require_countable(function, indices.shape[0], out.shape[0]);
    const WorkScope work("last_rows", work_each(0, indices, out, out));
    if (is_simd(out.device()) && indices.numel() * out.numel() > 0) {
        const Owners owners(out.device(), indices.shape[0], 1, out.shape[0], false);
        launch(kernel_of("last_owned", DType::i64, indices), owners.range,
               {owners.sizes, indices.argument(), out.argument()});
        return;
    }
    fill(out, -1);
    if (indices.numel() == 0 || out.numel() == 0) return;
    const SortedKeys sorted(indices, out.shape[0]);
    const Kernel kernel = kernel_of("last_sorted", DType::i64, indices);
    launch(kernel, SortedKeys::items(kernel, sorted.count), {sorted.count, sorted.keys.argument(), out.argument()});
}

}  // namespace declivity::ops
