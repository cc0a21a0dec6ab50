#include <declivity/ops/gather.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"
#include "radix_sort.hpp"

namespace declivity::ops {
namespace {

constexpr std::size_t kGroup = 64;  // work-items of a group on GPU-like devices

/// As the kernels' struct.
struct Sizes {
    std::int64_t rows, each, size, taken;
};

Kernel kernel_of(const char* name, DType dtype, const View& places, const char* fold = nullptr) {
    Defines defines;
    if (is_floating(dtype)) defines = storage_defines(dtype, dtype);
    else defines.set("REAL", cl_type(dtype)).set("WHOLE", 1);
    if (fold != nullptr) defines.set("FOLD", fold);
    defines.set("CPU", family_of(places.device()) == Family::cpu_like ? 1 : 0).set("PLACE", cl_type(places.dtype));
    return {places.device(), {"gather.cl", name, defines}};
}

void check_places(std::string_view function, std::string_view name, const View& places) {
    require_dense(function, name, places);
    if (places.dtype != DType::i32 && places.dtype != DType::i64)
        throw TypeError(
            fmt::format("{}: wants {} of type i32 or i64, got {}", function, name, declivity::name_of(places.dtype)));
}

void check_elements(std::string_view function, std::string_view name, const View& x, const View& places) {
    require_dense(function, name, x);
    require_same_device(function, x, places);
}

/// One element of the result, or of what is read, for each of `rows` times `taken`.
void launch_elements(const char* name, Sizes sizes, const View& x, const View& places, const View& out,
                     std::initializer_list<Argument> further = {}) {
    if (sizes.rows * sizes.taken == 0) return;
    const Device device = out.device();
    const Kernel kernel = kernel_of(name, out.dtype, places);
    const bool cpu = family_of(device) == Family::cpu_like;
    sizes.each = rows_each(device, sizes.rows, sizes.taken);
    Range range{.global = {to_size(ceil_div(sizes.rows, sizes.each)), 1, 1}, .local = {1, 1, 1}};
    if (!cpu) {
        const std::size_t group = std::min(kGroup, kernel.max_work_group());
        range = {.global = {round_up(to_size(sizes.taken * sizes.rows), group), 1, 1}, .local = {group, 1, 1}};
    }
    std::vector<Argument> arguments{sizes, x.argument(), places.argument(), out.argument()};
    arguments.insert(arguments.end(), further.begin(), further.end());
    launch(kernel, range, std::span<const Argument>(arguments));
}

/// In the kernel's REAL.
Argument missing_argument(DType dtype, double missing) {
    if (is_floating(dtype)) return real_argument(dtype, missing);
    switch (size_of(dtype)) {
        case 1:
            return std::uint8_t{0};
        case 2:
            return std::uint16_t{0};
        case 4:
            return std::uint32_t{0};
        default:
            return std::uint64_t{0};
    }
}

/// Numbers and their places, in order; those that count for nothing stand behind all others.
struct SortedKeys {
    View keys;
    std::int64_t count;  // of the numbers; `keys` may have more behind them

    SortedKeys(const View& numbers, std::int64_t size) : count(numbers.shape[0]) {
        keys = View::make(numbers.device(), DType::u64, {1, count});
        if (radix_sort_pays(keys, count)) {
            const View unsorted = View::make(numbers.device(), DType::u64, {1, count});
            make_keys(numbers, size, unsorted);
            radix_sort(unsorted, false, keys, View::make(numbers.device(), DType::i64, {1, count}));
            return;
        }
        std::int64_t padded = 1;
        while (padded < count) padded *= 2;
        keys = View::make(numbers.device(), DType::u64, {1, padded});
        make_keys(numbers, size, keys);
        const Kernel sort = kernel_of("sort_keys", DType::f32, numbers);
        for (std::int64_t block = 2; block <= padded; block *= 2)
            for (std::int64_t reach = block / 2; reach >= 1; reach /= 2)
                launch(sort, items(sort, padded / 2), {padded / 2, block, reach, keys.argument()});
    }
    void make_keys(const View& numbers, std::int64_t size, const View& to) const {
        const Kernel number = kernel_of("number_keys", DType::f32, numbers);
        const std::int64_t all = to.numel();
        launch(number, items(number, all), {count, all, size, numbers.argument(), to.argument()});
    }
    static Range items(const Kernel& kernel, std::int64_t wanted) {
        const std::size_t group = family_of(kernel.device()) == Family::cpu_like ? 1 : kGroup;
        const std::size_t local = std::min(group, kernel.max_work_group());
        return {.global = {round_up(to_size(wanted), local), 1, 1}, .local = {local, 1, 1}};
    }
};

/// As the kernels' struct.
struct Owned {
    std::int64_t count, taken, size, owned, chunk;
};

/// CPU-like devices: each number belongs to one of as many work-items as there are compute units; or, for tables that
/// are small beside what they are made from, each work-item makes one of its own from a chunk of the rows.
struct Owners {
    Owned sizes;
    std::int64_t chunks = 1;
    Range range;

    Owners(const Device& device, std::int64_t count, std::int64_t taken, std::int64_t size, bool tables)
        : sizes{count, taken, size, size, count} {
        const std::int64_t units =
            std::min<std::int64_t>(device.info().compute_units, std::max<std::int64_t>(1, count * taken / kCpuWork));
        if (tables && size * units <= count) sizes.chunk = ceil_div(count, units);
        else sizes.owned = ceil_div(size, units);
        chunks = ceil_div(count, sizes.chunk);
        range = {.global = {to_size(ceil_div(size, sizes.owned)), to_size(chunks)}, .local = {1, 1}};
    }
};

void sum_owned(const View& x, const View& numbers, const View& out) {
    const Device device = x.device();
    const Owners owners(device, x.shape[0], x.shape[1], out.shape[0], true);
    const bool narrow = is_half(x.dtype);
    View tables = out;
    if (narrow || owners.chunks > 1)
        tables = View::make(device, narrow ? DType::f32 : x.dtype, {owners.chunks, out.numel()});
    launch(kernel_of("sum_owned", x.dtype, numbers), owners.range,
           {owners.sizes, numbers.argument(), x.argument(), tables.argument()});
    if (tables.buffer == out.buffer) return;
    const std::int64_t each = rows_each(device, out.numel(), owners.chunks);
    launch(kernel_of("add_tables", x.dtype, numbers), {.global = {to_size(ceil_div(out.numel(), each))}, .local = {1}},
           {out.numel(), each, owners.chunks, tables.argument(), out.argument()});
}

void require_countable(std::string_view function, std::int64_t indices, std::int64_t rows) {
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
    if (indices > most || rows > most)
        throw ShapeError(
            fmt::format("{}: wants fewer than 2^31 indices and rows, got {} and {}", function, indices, rows));
}

}  // namespace

void gather(std::string_view function, const View& x, const View& places, const View& out) {
    check_places(function, "the places", places);
    check_elements(function, "x", x, places);
    check_elements(function, "out", out, places);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 2, "rows, size");
    require_rank(function, "the places", places, 2, "rows, taken");
    require_shape(function, "the places", places, {x.shape[0], places.shape[1]});
    require_shape(function, "out", out, places.shape);
    const WorkScope work("gather", work_each(0, out, out, places));
    launch_elements("gather", {out.shape[0], 1, x.shape[1], out.shape[1]}, x, places, out);
}

void scatter(std::string_view function, const View& x, const View& places, const View& out) {
    check_places(function, "the places", places);
    check_elements(function, "x", x, places);
    check_elements(function, "out", out, places);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 2, "rows, taken");
    require_rank(function, "out", out, 2, "rows, size");
    require_shape(function, "the places", places, x.shape);
    require_shape(function, "out", out, {x.shape[0], out.shape[1]});
    const WorkScope work("scatter", work_each(0, x, out, places));
    fill(out, 0);
    launch_elements("scatter", {x.shape[0], 1, out.shape[1], x.shape[1]}, x, places, out);
}

void gather_rows(std::string_view function, const View& table, const View& numbers, const View& out, double missing) {
    check_places(function, "the indices", numbers);
    check_elements(function, "the table", table, numbers);
    check_elements(function, "out", out, numbers);
    require_alike(function, "the table", table, "out", out);
    require_rank(function, "the table", table, 2, "V, D");
    require_rank(function, "the indices", numbers, 1, "N");
    require_shape(function, "out", out, {numbers.shape[0], table.shape[1]});
    const WorkScope work("gather_rows", work_each(0, out, out, numbers));
    launch_elements("gather_rows", {out.shape[0], 1, table.shape[0], out.shape[1]}, table, numbers, out,
                    {missing_argument(table.dtype, missing)});
}

void fold_rows(std::string_view function, Fold fold, const View& x, const View& numbers, const View& out) {
    check_places(function, "the indices", numbers);
    check_elements(function, "x", x, numbers);
    check_elements(function, "out", out, numbers);
    require_alike(function, "x", x, "out", out);
    require_rank(function, "x", x, 2, "N, D");
    require_rank(function, "the indices", numbers, 1, "N");
    require_rank(function, "out", out, 2, "V, D");
    require_shape(function, "x", x, {numbers.shape[0], out.shape[1]});
    if (x.dtype == DType::boolean)
        throw TypeError(fmt::format("{}: wants numbers as x, got bool (convert with .to(DType::i64))", function));
    const std::int64_t count = x.shape[0], taken = x.shape[1];
    require_countable(function, count, out.shape[0]);
    const WorkScope work("fold_rows", work_each(1, x, out, numbers));
    const bool empty = x.numel() == 0 || out.numel() == 0;
    if (!empty && fold == Fold::sum && family_of(x.device()) == Family::cpu_like) return sum_owned(x, numbers, out);
    fill(out, 0);
    if (empty) return;
    const SortedKeys sorted(numbers, out.shape[0]);
    constexpr std::array<const char*, 4> folds{"ADDED", "MULTIPLIED", "LARGER", "SMALLER"};
    const Kernel kernel = kernel_of("fold_sorted", x.dtype, numbers, folds[static_cast<std::size_t>(fold)]);
    launch(kernel, SortedKeys::items(kernel, taken * count),
           {taken, count, sorted.keys.argument(), x.argument(), out.argument()});
}

void sum_rows(std::string_view function, const View& x, const View& numbers, const View& out) {
    fold_rows(function, Fold::sum, x, numbers, out);
}

void last_rows(std::string_view function, const View& numbers, const View& out) {
    check_places(function, "the indices", numbers);
    check_elements(function, "out", out, numbers);
    require_rank(function, "the indices", numbers, 1, "N");
    require_rank(function, "out", out, 1, "V");
    if (out.dtype != DType::i64) throw TypeError(fmt::format("{}: wants an out of i64", function));
    require_countable(function, numbers.shape[0], out.shape[0]);
    const WorkScope work("last_rows", work_each(0, numbers, out, out));
    if (family_of(out.device()) == Family::cpu_like && numbers.numel() * out.numel() > 0) {
        const Owners owners(out.device(), numbers.shape[0], 1, out.shape[0], false);
        launch(kernel_of("last_owned", DType::i64, numbers), owners.range,
               {owners.sizes, numbers.argument(), out.argument()});
        return;
    }
    fill(out, -1);
    if (numbers.numel() == 0 || out.numel() == 0) return;
    const SortedKeys sorted(numbers, out.shape[0]);
    const Kernel kernel = kernel_of("last_sorted", DType::i64, numbers);
    launch(kernel, SortedKeys::items(kernel, sorted.count), {sorted.count, sorted.keys.argument(), out.argument()});
}

}  // namespace declivity::ops
