#include "panels.hpp"

#include <declivity/runtime/launch.hpp>

#include "ops/support/vector_form.hpp"

namespace declivity::ops {
namespace {

// PACK_STEP and PACK_EACH, for panels with contiguous elements, and for operands contiguous along k: some kilobytes of
// a row.
constexpr std::int64_t kPackStepAcross = 32, kPackEachAcross = 8, kPackStepAlong = 256, kPackEachAlong = 1;

}  // namespace

View pack_panels(const View& operand, int across, int along, std::int64_t width) {
    const std::int64_t count = operand.shape[across], k = operand.shape[along], panels = ceil_div(count, width);
    const std::int64_t matrices = operand.strides[0] == 0 ? 1 : operand.shape[0];
    const View packed = View::make(operand.device(), compute_type(operand.dtype), {matrices, panels * k * width});
    const std::int64_t unit = operand.strides[across] == 1 || count == 1 ? 1
                              : operand.strides[along] == 1 || k == 1    ? 2
                                                                         : 0;
    const std::int64_t step = unit == 1 ? kPackStepAcross : kPackStepAlong,
                       each = unit == 1 ? kPackEachAcross : kPackEachAlong;
    Defines defines = storage_defines(operand.dtype, packed.dtype);
    defines.set("VW", vector_form(operand.device(), operand.dtype).vector);
    defines.set("PACK", width).set("PACK_STEP", step).set("PACK_EACH", each).set("UNIT", unit);
    const Kernel kernel(operand.device(), {"panels.cl", "pack_panels", defines});
    const auto groups = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel, {{groups(ceil_div(panels, each)), groups(ceil_div(k, step)), groups(matrices)}, {1, 1, 1}},
           {count, k, operand.argument(), operand.strides[0], operand.strides[across], operand.strides[along],
            packed.argument()});
    return packed;
}

}  // namespace declivity::ops
