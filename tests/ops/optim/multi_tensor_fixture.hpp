// Several tensors of odd sizes between guard elements, as optimizers use them, with their values on the host.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/formula.hpp"

namespace declivity::test {

inline const std::vector<std::int64_t>& tensor_sizes() {
    static const std::vector<std::int64_t> small{1, 33, 0, 7}, all{1, 7, 4095, 4096, 4097, 0, 33, 10001, 130};
    return small_cases() ? small : all;
}

/// `roles` lists of tensors of tensor_sizes().
class TensorLists {
  public:
    static constexpr std::int64_t kGuard = 8;
    static constexpr double kGuardValue = -12345;

    TensorLists(const Device& device, DType dtype, std::size_t roles) : dtype_(dtype) {
        for (std::size_t role = 0; role < roles; ++role) {
            std::vector<ops::View> list;
            for (const std::int64_t size : tensor_sizes()) {
                guarded.push_back(ops::View::make(device, dtype, {size + 2 * kGuard}));
                ops::fill(guarded.back(), kGuardValue);
                list.push_back(ops::sliced(guarded.back(), 0, kGuard, size));
            }
            views.push_back(list);
            host.emplace_back();
            set(role, 0, 0, 1);
        }
    }

    /// Random values in [low, high) for all tensors of a role, on the device and on the host.
    void set(std::size_t role, std::uint64_t seed, double low, double high) {
        host[role].clear();
        for (std::size_t i = 0; i < views[role].size(); ++i) {
            auto values_of_one = random_values(tensor_sizes()[i], seed * 100 + i, low, high);
            if (dtype_ == DType::f32)
                for (double& value : values_of_one) value = static_cast<float>(value);
            write_elements(role, i, values_of_one);
            host[role].push_back(values_of_one);
        }
    }

    /// Fills a role on the device only.
    void fill(std::size_t role, double value) {
        for (const ops::View& view : views[role]) ops::fill(view, value);
    }

    /// Returns an empty string if a role on the device is close to `host` and all guard elements are intact.
    [[nodiscard]] std::string check(std::size_t role, const Tolerance& allowed) const {
        for (std::size_t i = 0; i < views[role].size(); ++i) {
            const std::string text = difference(Tensor(views[role][i]), host[role][i], allowed);
            if (!text.empty())
                return fmt::format("role {}, tensor {} of {} elements: {}", role, i, tensor_sizes()[i], text);
        }
        for (const ops::View& base_view : guarded) {
            const auto all = values(Tensor(base_view));
            for (std::size_t i = 0; i < all.size(); ++i) {
                const bool guard = i < kGuard || i + kGuard >= all.size();
                if (guard && all[i] != kGuardValue) return fmt::format("element {} beside a tensor was overwritten", i);
            }
        }
        return "";
    }

    std::vector<std::vector<ops::View>> views;
    std::vector<std::vector<std::vector<double>>> host;  // role, tensor, element
    std::vector<ops::View> guarded;

  private:
    void write_elements(std::size_t role, std::size_t tensor_number, const std::vector<double>& elements) {
        const ops::View& to = views[role][tensor_number];
        const auto upload_as = [&]<class T>(T) {
            const std::vector<T> converted(elements.begin(), elements.end());
            upload(to.buffer, static_cast<std::size_t>(to.offset) * sizeof(T), std::as_bytes(std::span(converted)));
        };
        if (dtype_ == DType::f64) upload_as(double{});
        else upload_as(float{});
    }
    DType dtype_;
};

/// Uninitialised, in its own memory object, at an offset of 64 bytes.
inline ops::View copy_on_device(const Device& device, DType dtype, const Shape& shape) {
    const std::size_t bytes = ops::bytes_of(shape, dtype);
    cl_int status = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(interop::context(device), CL_MEM_READ_WRITE, 64 + bytes, nullptr, &status);
    if (status != CL_SUCCESS) throw OutOfMemory(fmt::format("a buffer of {} bytes: {}", bytes, status));
    ops::View view = ops::View::make(device, dtype, shape);
    view.buffer = interop::wrap(device, memory, 64, bytes);
    clReleaseMemObject(memory);
    return view;
}

/// Learning rate and step count on the device; and the guard against non-finite losses.
inline ops::View progress_view(const Device& device, DType dtype, double rate, double steps) {
    const ops::View view = ops::View::make(device, dtype, {2});
    ops::fill(ops::sliced(view, 0, 0, 1), rate);
    ops::fill(ops::sliced(view, 0, 1, 1), steps);
    return view;
}

inline ops::View guard_view(const Device& device, double set_at = 0, double checked = 0) {
    const ops::View view = ops::View::make(device, DType::i32, {2});
    ops::fill(ops::sliced(view, 0, 0, 1), set_at);
    ops::fill(ops::sliced(view, 0, 1, 1), checked);
    return view;
}

/// Updates the first role from the numbers and the elements of all roles.
template <class Make>
ops::Formula formula_of_first(const ops::MultiTensor& tensors, DType dtype, Make&& make) {
    const ops::FormulaTrace trace("formula", tensors.device());
    std::vector<Tensor> roles;
    for (std::size_t role = 0; role < tensors.roles(); ++role) roles.emplace_back(trace.role(role, dtype));
    return {trace, {{0, make(roles, Tensor(trace.number(0, dtype)), Tensor(trace.number(1, dtype))).value()}}};
}

/// role 0 -= numbers[0] * role 1
inline void descent_step(const ops::MultiTensor& tensors, const ops::View& rates, const ops::View& guard) {
    formula_of_first(tensors, rates.dtype, [](const std::vector<Tensor>& roles, const Tensor& rate, const Tensor&) {
        return roles[0] - rate * roles[1];
    }).launch(tensors, rates, guard);
}

/// Devices with each kernel style, with tensors in one cl_mem and each in its own.
inline std::vector<Device> optimizer_devices() {
    std::vector<Device> devices;
    for (const KernelStyle style : kernel_styles())
        for (const char* mode : {"", "exact"}) {
            if (small_cases() && *mode == '\0') continue;
            const Environment pool("DECLIVITY_POOL", mode),
                kernels("DECLIVITY_KERNEL_STYLE", style == KernelStyle::simd ? "simd" : "simt");
            devices.push_back(fresh_device());
        }
    return devices;
}

}  // namespace declivity::test
