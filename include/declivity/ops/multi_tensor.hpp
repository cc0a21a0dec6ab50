// Layer 2. Kernels over many tensors at once: an optimizer's step over all parameters is a few launches, not hundreds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/scope.hpp>

namespace declivity::ops {

/// Some tensors seen by one kernel: `roles` lists of views (parameters, gradients, ...), 8 at most, of which the i-th
/// of each have the same number of elements. All are dense and on one device, and those of a role are of one type.
///
/// Pooled tensors share few cl_mem, so the kernel takes these and a table of places in them. The table lives
/// on the device and is sent again only when a tensor moved.
///
/// A kernel for it is declared as (cl_kernels/lib/multi_tensor.clh):
///     __kernel void name(MULTI_TENSOR_PARAMETERS(roles), <further parameters>)
class DECLIVITY_API MultiTensor {
  public:
    explicit MultiTensor(std::size_t roles);
    ~MultiTensor();
    MultiTensor(MultiTensor&&) noexcept;
    MultiTensor& operator=(MultiTensor&&) noexcept;

    /// Says which tensors the next launches are about.
    /// @param lists one list of views a role
    /// @param numbers a number at least 0 for each tensor, by which a kernel finds what belongs to a whole tensor
    /// (MULTI_TENSOR_NUMBER), such as its step count; their positions in the lists where it is empty
    void set(const std::vector<std::vector<View>>& lists, const std::vector<std::int64_t>& numbers = {});
    /// One launch; more where the tensors lie in more than eight cl_mem.
    void launch(const KernelSpec& spec, std::span<const Argument> further) const;
    /// The same. @param make gives the kernel for work-groups of so many work-items
    void launch(const std::function<Kernel(std::size_t items)>& make, std::span<const Argument> further) const;
    /// Lets go of the tensors, so that gradients can be freed; the table stays for the next time.
    void release();
    /// Pieces into which the tensors are cut; a kernel may write one number for each (a partial sum).
    [[nodiscard]] std::int64_t pieces() const;
    /// The number of each tensor, i64 [tensors], on the device: a part of the table.
    /// @throws ValueError before the first set()
    [[nodiscard]] View numbers() const;
    /// Of a kernel that does `flops` for each element of a role, and reads or writes `accesses` elements.
    [[nodiscard]] Work work(double flops, double accesses) const;
    [[nodiscard]] std::size_t roles() const;
    /// @throws ValueError before the first set()
    [[nodiscard]] Device device() const;
    /// Of the first role.
    [[nodiscard]] DType dtype() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Lets go of the tensors at the end of a scope, after an error as well.
class ReleaseTensors {
  public:
    explicit ReleaseTensors(MultiTensor& tensors) noexcept : tensors_(tensors) {}
    ReleaseTensors(const ReleaseTensors&) = delete;
    ReleaseTensors& operator=(const ReleaseTensors&) = delete;
    ~ReleaseTensors() { tensors_.release(); }

  private:
    MultiTensor& tensors_;
};

}  // namespace declivity::ops
