#include "radix_sort.hpp"

#include <algorithm>
#include <vector>

#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMinChunk = 4096;  // minimum elements of a row for a work-item, simd
constexpr std::int64_t kPerItem = 8;      // elements per work-item, simt
constexpr int kDigits = 16;               // of a pass, simt

/// Layout of the kernels' struct; must match cl_kernels/sort/radix_sort.cl.
struct Sizes {
    std::int64_t n, k, chunks, each;
};

/// Unsigned type of the sort keys of elements of type `dtype`.
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

bool is_signed_integer(DType dtype) {
    return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

Defines defines_of(DType dtype, bool descending, bool simd) {
    Defines defines = dtype == DType::f64 ? real_defines(dtype) : Defines();
    const DType key = key_type(dtype);
    defines.set("T", cl_type(dtype))
        .set("KEY", cl_type(key))
        .set("KEY_BITS", static_cast<std::int64_t>(8 * size_of(key)))
        .set("DESCENDING", descending ? 1 : 0)
        .set(form_macro(simd), 1)
        .set("PER_ITEM", kPerItem);
    if (is_floating(dtype)) defines.set("FLOATING", 1);
    if (is_signed_integer(dtype)) defines.set("SIGNED", 1);
    if (dtype == DType::f64) defines.set("AS_KEY", "as_ulong").set("INFINITY_BITS", "0x7ff0000000000000ul");
    else if (is_floating(dtype)) defines.set("AS_KEY", "as_uint").set("INFINITY_BITS", "0x7f800000u");
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

void radix_sort(const View& x, bool descending, const View& values, const View& indices) {
    const Device device = x.device();
    const std::int64_t rows = x.shape[0], n = x.shape[1];
    const bool simd = is_simd(device);
    const DType key = key_type(x.dtype);
    const int bits = simd ? 8 : 4, passes = static_cast<int>(8 * size_of(key)) / bits;

    const auto kernel_of = [&](const char* name, bool first, bool last) {
        Defines defines = defines_of(x.dtype, descending, simd);
        defines.set("FIRST_PASS", first ? 1 : 0).set("LAST_PASS", last ? 1 : 0);
        return Kernel(device, {"radix_sort.cl", name, defines});
    };
    std::size_t lanes = 1;
    if (!simd) {
        std::size_t max_lanes = 256;
        for (const char* name : {"radix_count", "radix_offsets", "radix_place"})
            max_lanes = std::min(max_lanes, kernel_of(name, false, false).max_work_group());
        // Counters of all digits for each work-item, and sums.
        while (max_lanes > 1 && (kDigits + 1) * max_lanes * sizeof(std::uint32_t) > device.traits().local_memory / 2)
            max_lanes /= 2;
        lanes = std::max<std::size_t>(kDigits, to_size(power_of_two_up_to(static_cast<std::int64_t>(max_lanes))));
    }
    Sizes sizes{n, values.shape[1], 1, n};
    if (!simd) {
        sizes.each = static_cast<std::int64_t>(lanes) * kPerItem;
        sizes.chunks = ceil_div(n, sizes.each);
    } else {
        const auto units = static_cast<std::int64_t>(device.info().compute_units);
        sizes.chunks = std::clamp<std::int64_t>(ceil_div(2 * units, rows), 1, std::max<std::int64_t>(1, n / kMinChunk));
        sizes.each = ceil_div(n, sizes.chunks);
        sizes.chunks = ceil_div(n, sizes.each);
    }
    const View counts = View::make(device, DType::u32, {rows * sizes.chunks * (simd ? 256 : kDigits)});
    View keys[2], key_indices[2];
    for (int i = 0; i < std::min(2, passes - 1); ++i) {
        keys[i] = View::make(device, key, {rows, n});
        key_indices[i] = View::make(device, DType::u32, {rows, n});
    }
    const View current_buffer = View::make(device, DType::u8, {passes, rows});
    const Range range{.global = {to_size(sizes.chunks) * lanes, to_size(rows)}, .local = {lanes, 1}};
    for (int pass = 0; pass < passes; ++pass) {
        const bool first = pass == 0, last = pass + 1 == passes;
        const std::int32_t shift = pass * bits;
        // Placeholder for an absent operand, which the pass does not access.
        const auto or_counts = [&](const View& view) { return or_else(view, counts); };
        std::vector<Argument> count{sizes,
                                    shift,
                                    x.argument(),
                                    counts.argument(),
                                    current_buffer.argument(),
                                    or_counts(keys[0]),
                                    or_counts(keys[1])};
        std::vector<Argument> place = count;
        place.insert(place.end(),
                     {or_counts(key_indices[0]), or_counts(key_indices[1]), values.argument(), indices.argument()});
        if (!simd) count.emplace_back(LocalMemory{kDigits * sizeof(std::uint32_t)});
        launch(kernel_of("radix_count", first, last), range, count);
        if (!simd)
            launch(kernel_of("radix_offsets", first, last), {.global = {to_size(rows) * lanes}, .local = {lanes}},
                   {sizes.chunks, counts.argument(), LocalMemory{lanes * sizeof(std::uint32_t)}});
        if (!simd) {
            place.emplace_back(LocalMemory{kDigits * lanes * sizeof(std::uint32_t)});
            place.emplace_back(LocalMemory{lanes * sizeof(std::uint32_t)});
        }
        launch(kernel_of("radix_place", first, last), range, place);
    }
}

}  // namespace declivity::ops
