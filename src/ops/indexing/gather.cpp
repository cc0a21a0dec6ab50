#include <declivity/ops/gather.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>

#include "ops/support/index_operands.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Layout of the kernels' struct; must match cl_kernels/indexing/gather.cl.
struct Sizes {
    std::int64_t outer, taken, size, inner, each;
};

/// Type of a move: an element, or several adjacent ones.
struct Unit {
    std::int64_t bytes;
    const char *type, *fill_value;
};
constexpr Unit kUnits[] = {{16, "uint4", "((uint4)(low, high, low, high))"},
                           {8, "ulong", "((ulong)high << 32 | low)"},
                           {4, "uint", "low"},
                           {2, "ushort", "((ushort)low)"},
                           {1, "uchar", "((uchar)low)"}};

/// The bits of a number in the given type, repeated to 8 bytes; 0 in integer types.
std::uint64_t bits_of(DType dtype, double number) {
    constexpr std::uint64_t everywhere = 0x0001000100010001;
    switch (dtype) {
        case DType::f64:
            return std::bit_cast<std::uint64_t>(number);
        case DType::f32:
            return std::bit_cast<std::uint32_t>(static_cast<float>(number)) * 0x0000000100000001U;
        case DType::f16:
            return float16(number).bits * everywhere;
        case DType::bf16:
            return bfloat16(number).bits * everywhere;
        default:
            return 0;
    }
}

void launch_gather(const char* name, Sizes sizes, const Unit& unit, const View& x, const View& indices, const View& out,
                   double fill_value) {
    const Device device = out.device();
    const bool simd = is_simd(device);
    Defines defines;
    defines.set(form_macro(simd), 1).set("INDEX_TYPE", cl_type(indices.dtype));
    defines.set("UNIT", unit.type).set("FILL_VALUE", unit.fill_value);
    const Kernel kernel(device, {"gather.cl", name, defines});
    const std::int64_t pairs = sizes.outer * sizes.taken;
    sizes.each = rows_each(device, pairs, sizes.inner);
    Range range{.global = {to_size(ceil_div(pairs, sizes.each)), 1, 1}, .local = {1, 1, 1}};
    if (!simd) {
        const std::size_t group = item_group(kernel);
        range = {.global = {round_up(to_size(pairs * sizes.inner), group), 1, 1}, .local = {group, 1, 1}};
    }
    const auto units_of = [&](const View& view) {
        const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
        return BufferArgument{view.buffer, view.offset * bytes / unit.bytes, to_size(unit.bytes)};
    };
    const std::uint64_t bits = bits_of(out.dtype, fill_value);
    launch(kernel, range,
           {sizes, units_of(x), indices.argument(), units_of(out), static_cast<std::uint32_t>(bits),
            static_cast<std::uint32_t>(bits >> 32)});
}

}  // namespace

void gather(std::string_view function, const View& x, const View& indices, const View& out, double fill_value) {
    require_indices(function, "the indices", indices);
    require_elements(function, "x", x, indices);
    require_elements(function, "out", out, indices);
    require_alike(function, "x", x, "out", out);
    if (x.rank() == 2 && indices.rank() == 2 && out.rank() == 2) {
        const auto rows = [](const View& view) { return reshaped(view, {view.shape[0], view.shape[1], 1}); };
        return gather(function, rows(x), rows(indices), rows(out), fill_value);
    }
    require_rank(function, "x", x, 3, "outer, size, inner");
    require_rank(function, "the indices", indices, 3, "outer, taken, inner");
    require_shape(function, "the indices", indices, {x.shape[0], indices.shape[1], x.shape[2]});
    require_shape(function, "out", out, indices.shape);
    if (out.numel() == 0) return;
    if (x.numel() == 0) return fill(out, is_floating(out.dtype) ? fill_value : 0);
    const WorkScope work("gather", work_each(0, out, out, indices));
    const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
    const Unit* unit = std::ranges::find(kUnits, bytes, &Unit::bytes);
    launch_gather("gather", {x.shape[0], indices.shape[1], x.shape[1], x.shape[2], 1}, *unit, x, indices, out,
                  fill_value);
}

void gather_rows(std::string_view function, const View& table, const View& indices, const View& out,
                 double fill_value) {
    require_indices(function, "the indices", indices);
    require_elements(function, "the table", table, indices);
    require_elements(function, "out", out, indices);
    require_alike(function, "the table", table, "out", out);
    require_rank(function, "the table", table, 2, "V, D");
    require_rank(function, "the indices", indices, 1, "N");
    require_shape(function, "out", out, {indices.shape[0], table.shape[1]});
    if (out.numel() == 0) return;
    if (table.numel() == 0) return fill(out, is_floating(out.dtype) ? fill_value : 0);
    const WorkScope work("gather_rows", work_each(0, out, out, indices));
    // The widest type that divides the length and the offset of whole rows.
    const auto bytes = static_cast<std::int64_t>(size_of(table.dtype));
    const std::int64_t row = table.shape[1] * bytes, starts = table.offset * bytes | out.offset * bytes | row;
    const Unit* unit = std::ranges::find_if(kUnits, [&](const Unit& item) { return starts % item.bytes == 0; });
    const Sizes sizes{1, indices.shape[0], table.shape[0], row / unit->bytes, 1};
    launch_gather(sizes.inner == 1 ? "gather" : "gather_rows", sizes, *unit, table, indices, out, fill_value);
}

}  // namespace declivity::ops
