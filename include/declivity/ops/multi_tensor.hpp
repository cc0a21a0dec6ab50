// Layer 2. Multi-tensor kernels: an optimizer step over all parameters takes a few launches, not hundreds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/scope.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// A set of tensors processed by one kernel: `roles` lists of views (parameters, gradients, ...), 8 at most; the i-th
/// tensors of all roles have the same number of elements. All are dense and on one device; a role has one type.
///
/// Pooled tensors share few cl_mem, so the kernel takes these and a table of offsets into them. The table is in device
/// memory and is uploaded again only when a tensor moved.
///
/// A kernel for it is declared as (cl_kernels/lib/multi_tensor.clh):
///     __kernel void name(MULTI_TENSOR_PARAMETERS, <further parameters>)
class DECLIVITY_API MultiTensor {
  public:
    explicit MultiTensor(std::size_t roles);
    ~MultiTensor();
    MultiTensor(MultiTensor&&) noexcept;
    MultiTensor& operator=(MultiTensor&&) noexcept;

    /// Sets the tensors of the next launches.
    /// @param lists one list of views per role
    /// @param indices an index >= 0 for each tensor, with which a kernel reads per-tensor data
    /// (MULTI_TENSOR_INDEX) such as its step count; if empty, the positions in the lists
    void set(const std::vector<std::vector<View>>& lists, const std::vector<std::int64_t>& indices = {});
    /// Launches a kernel once; several times if the tensors are in more than eight cl_mem.
    void launch(const KernelSpec& spec, std::span<const Argument> further) const;
    /// Launches the kernel that `make` returns for a work-group size. @param make called with the number of work-items
    void launch(const std::function<Kernel(std::size_t items)>& make, std::span<const Argument> further) const;
    /// Releases the tensors, so that gradients can be freed; the table is kept for reuse.
    void release();
    /// Number of pieces into which the tensors are divided; a kernel may write one number for each (a partial sum).
    [[nodiscard]] std::int64_t pieces() const;
    /// Index of each tensor, i64 [tensors], on the device: a part of the table.
    /// @throws ValueError before the first set()
    [[nodiscard]] View indices() const;
    [[deprecated("MultiTensor::indices")]] [[nodiscard]] View numbers() const { return indices(); }
    /// Work of a kernel with `flops` operations and `accesses` elements read or written for each element of a role.
    [[nodiscard]] Work work(double flops, double accesses) const;
    [[nodiscard]] std::size_t roles() const;
    /// @throws ValueError before the first set()
    [[nodiscard]] Device device() const;
    /// Type of the first role.
    [[nodiscard]] DType dtype() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Releases the tensors at the end of a scope, also after an exception.
class ReleaseTensors {
  public:
    explicit ReleaseTensors(MultiTensor& tensors) noexcept : tensors_(tensors) {}
    ReleaseTensors(const ReleaseTensors&) = delete;
    ReleaseTensors& operator=(const ReleaseTensors&) = delete;
    ~ReleaseTensors() { tensors_.release(); }

  private:
    MultiTensor& tensors_;
};

/// @}

}  // namespace declivity::ops
