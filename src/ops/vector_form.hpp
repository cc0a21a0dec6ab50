// Floor 2, private. How vector kernels (cl_kernels/vectors.clh) are shaped for a CPU-like device.
#pragma once

#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::ops {

struct VectorForm {
    std::int64_t vector;     ///< VW: elements of a vector
    std::int64_t registers;  ///< vectors that a work-item may keep
};

/// From the device's own vector width. 512-bit vectors come with 32 registers (AVX-512); of narrower ones most processors
/// have 16.
inline VectorForm vector_form(const Device& device, DType dtype) {
    const std::int64_t width = dtype == DType::f64 ? device.info().vector_width_f64 : device.info().vector_width_f32;
    const std::int64_t most = dtype == DType::f64 ? 8 : 16;
    VectorForm form{.vector = most, .registers = 32};
    while (form.vector > 4 && form.vector > width) form.vector /= 2;
    if (form.vector < most) form.registers = 16;
    return form;
}

}  // namespace declivity::ops
