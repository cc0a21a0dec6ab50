#include "panels.hpp"

#include <declivity/runtime/launch.hpp>

#include "ops/support/vector_form.hpp"

namespace declivity::ops {
namespace {

// K_PER_ITEM and PANELS_PER_ITEM, for panels with contiguous elements, and for operands contiguous along k: some
// kilobytes of a row.
constexpr std::int64_t kKPerItemAcross = 32, kPanelsPerItemAcross = 8, kKPerItemAlong = 256, kPanelsPerItemAlong = 1;

// Values of UNIT_STRIDE in cl_kernels/matmul/panels.cl.
constexpr std::int64_t kAlongPanel = 1, kAlongK = 2;

}  // namespace

View pack_panels(const View& operand, int across, int along, std::int64_t width) {
    const std::int64_t count = operand.shape[across], k = operand.shape[along], panels = ceil_div(count, width);
    const std::int64_t matrices = operand.strides[0] == 0 ? 1 : operand.shape[0];
    const View packed = View::make(operand.device(), compute_type(operand.dtype), {matrices, panels * k * width});
    const std::int64_t unit_stride = operand.strides[across] == 1 || count == 1 ? kAlongPanel
                                     : operand.strides[along] == 1 || k == 1    ? kAlongK
                                                                                : 0;
    const std::int64_t step = unit_stride == kAlongPanel ? kKPerItemAcross : kKPerItemAlong,
                       each = unit_stride == kAlongPanel ? kPanelsPerItemAcross : kPanelsPerItemAlong;
    Defines defines = storage_defines(operand.dtype, packed.dtype);
    defines.set("VW", vector_form(operand.device(), operand.dtype).vector);
    defines.set("PANEL_WIDTH", width)
        .set("K_PER_ITEM", step)
        .set("PANELS_PER_ITEM", each)
        .set("UNIT_STRIDE", unit_stride);
    const Kernel kernel(operand.device(), {"panels.cl", "pack_panels", defines});
    const auto groups = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    launch(kernel, {{groups(ceil_div(panels, each)), groups(ceil_div(k, step)), groups(matrices)}, {1, 1, 1}},
           {count, k, operand.argument(), operand.strides[0], operand.strides[across], operand.strides[along],
            packed.argument()});
    return packed;
}

}  // namespace declivity::ops
