#include "radix_sort.hpp"

#include <algorithm>
#include <vector>

#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMinChunk = 4096;  // minimum elements of a row for a work-item, simd
constexpr std::int64_t kItems = 8;        // elements of a work-item, simt
constexpr int kDigits = 16;               // of a pass, simt

/// Layout of the kernels' struct; must match cl_kernels/sort/radix_sort.cl.
struct Sizes {
    std::int64_t n, k, chunks, each;
};

/// The unsigned type of its sort keys.
DType key_type(DType dtype) {
    switch (size_of(dtype)) {
        case 1:
            return DType::u8;
        case 2:
            return DType::u16;
        case 4:
            return DType::u32;
        default:
            return DType::u64;
    }
}

int kind_of(DType dtype) {
    if (is_floating(dtype)) return 2;
    return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64 ? 1 : 0;
}

Defines defines_of(DType dtype, bool falling, bool grouped) {
    Defines defines = dtype == DType::f64 ? real_defines(dtype) : Defines();
    const DType key = key_type(dtype);
    defines.set("T", cl_type(dtype))
        .set("KEY", cl_type(key))
        .set("KEY_BITS", static_cast<std::int64_t>(8 * size_of(key)))
        .set("KIND", kind_of(dtype))
        .set("FALLING", falling ? 1 : 0)
        .set("GROUPED", grouped ? 1 : 0)
        .set("ITEMS", kItems);
    if (dtype == DType::f64) defines.set("AS_KEY", "as_ulong").set("NAN_ABOVE", "0x7ff0000000000000ul");
    else if (is_floating(dtype)) defines.set("AS_KEY", "as_uint").set("NAN_ABOVE", "0x7f800000u");
    return defines;
}

}  // namespace

bool radix_sort_is_profitable(const View& x, std::int64_t k) {
    const std::int64_t n = x.shape[1];
    if (is_16bit_float(x.dtype) || n >= std::int64_t{1} << 31) return false;
    // The alternative is a heap of k, or k passes of a group over the row.
    if (is_simd(x.device())) return n >= 128 && k >= n / 16;
    return n >= 512 && k >= 16;
}

void radix_sort(const View& x, bool falling, const View& values, const View& places) {
    const Device device = x.device();
    const std::int64_t rows = x.shape[0], n = x.shape[1];
    const bool grouped = !is_simd(device);
    const DType key = key_type(x.dtype);
    const int bits = grouped ? 4 : 8, passes = static_cast<int>(8 * size_of(key)) / bits;

    const auto kernel_of = [&](const char* name, bool first, bool last) {
        Defines defines = defines_of(x.dtype, falling, grouped);
        defines.set("FIRST", first ? 1 : 0).set("LAST", last ? 1 : 0);
        return Kernel(device, {"radix_sort.cl", name, defines});
    };
    std::size_t lanes = 1;
    if (grouped) {
        std::size_t most = 256;
        for (const char* name : {"radix_count", "radix_offsets", "radix_place"})
            most = std::min(most, kernel_of(name, false, false).max_work_group());
        // Counters of all digits for each work-item, and sums.
        while (most > 1 && (kDigits + 1) * most * sizeof(std::uint32_t) > device.info().local_memory / 2) most /= 2;
        lanes = std::max<std::size_t>(kDigits, to_size(power_of_two_up_to(static_cast<std::int64_t>(most))));
    }
    Sizes sizes{n, values.shape[1], 1, n};
    if (grouped) {
        sizes.each = static_cast<std::int64_t>(lanes) * kItems;
        sizes.chunks = ceil_div(n, sizes.each);
    } else {
        const auto units = static_cast<std::int64_t>(device.info().compute_units);
        sizes.chunks = std::clamp<std::int64_t>(ceil_div(2 * units, rows), 1, std::max<std::int64_t>(1, n / kMinChunk));
        sizes.each = ceil_div(n, sizes.chunks);
        sizes.chunks = ceil_div(n, sizes.each);
    }
    const View counts = View::make(device, DType::u32, {rows * sizes.chunks * (grouped ? kDigits : 256)});
    View keys[2], from[2];
    for (int i = 0; i < std::min(2, passes - 1); ++i) {
        keys[i] = View::make(device, key, {rows, n});
        from[i] = View::make(device, DType::u32, {rows, n});
    }
    const View held = View::make(device, DType::u8, {passes, rows});
    const Range range{.global = {to_size(sizes.chunks) * lanes, to_size(rows)}, .local = {lanes, 1}};
    for (int pass = 0; pass < passes; ++pass) {
        const bool first = pass == 0, last = pass + 1 == passes;
        const std::int32_t shift = pass * bits;
        // Placeholder for an absent operand, which the pass does not access.
        const auto or_counts = [&](const View& view) { return or_else(view, counts); };
        std::vector<Argument> count{
            sizes, shift, x.argument(), counts.argument(), held.argument(), or_counts(keys[0]), or_counts(keys[1])};
        std::vector<Argument> place = count;
        place.insert(place.end(), {or_counts(from[0]), or_counts(from[1]), values.argument(), places.argument()});
        if (grouped) count.emplace_back(LocalMemory{kDigits * sizeof(std::uint32_t)});
        launch(kernel_of("radix_count", first, last), range, count);
        if (grouped)
            launch(kernel_of("radix_offsets", first, last), {.global = {to_size(rows) * lanes}, .local = {lanes}},
                   {sizes.chunks, counts.argument(), LocalMemory{lanes * sizeof(std::uint32_t)}});
        if (grouped) {
            place.emplace_back(LocalMemory{kDigits * lanes * sizeof(std::uint32_t)});
            place.emplace_back(LocalMemory{lanes * sizeof(std::uint32_t)});
        }
        launch(kernel_of("radix_place", first, last), range, place);
    }
}

}  // namespace declivity::ops
