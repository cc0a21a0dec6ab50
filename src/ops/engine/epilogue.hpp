// Layer 2, private. Epilogues of matrix product and convolution kernels, applied to each result element before it is
// stored (cl_kernels/lib/epilogue.clh).
#pragma once

#include <array>
#include <optional>
#include <memory_resource>
#include <vector>

#include "real_arguments.hpp"
#include "ops/support/scratch.hpp"
#include "expression.hpp"

namespace declivity::ops {

/// activation(alpha * element + bias[column] + beta * residual), or its gradient there; for convolutions
/// activation(alpha * element * scale[channel] + shift[channel] + beta * residual).
struct KernelEpilogue {
    double alpha = 1, beta = 1;
    std::optional<View> bias = {};               ///< contiguous, one number for each column
    std::optional<View> scale = {}, shift = {};  ///< contiguous, one number for each channel
    std::optional<View> residual = {};           ///< dense, of the result's shape
    std::optional<Function> activation = {};
    std::array<double, 2> parameters{};  ///< of the activation
    /// The saved operand of the activation's gradient, x or y, dense, of the result's shape: then the sum is the
    /// gradient of the activation's result, and the epilogue's result that of its input.
    std::optional<View> saved = {};

    [[nodiscard]] bool empty() const { return alpha == 1 && !bias && !scale && !shift && !residual && !activation; }
};

/// Operator of the epilogue: a convolution's result has channels, a product's columns.
enum class EpilogueTarget : bool { product, convolution };

/// Converts an epilogue to the form that kernels support; empty if it is not supported.
std::optional<KernelEpilogue> kernel_epilogue(const Epilogue& epilogue, const View& out,
                                              EpilogueTarget target = EpilogueTarget::product);

/// Defines ACTIVATION or ACTIVATION_GRADIENT for kernels that include epilogue.clh.
void set_activation(Defines& defines, const KernelEpilogue& epilogue);

/// Defines EPILOGUE and the above for kernels that include epilogue_stored.clh: nothing for an empty epilogue.
void set_epilogue_stored(Defines& defines, const KernelEpilogue& epilogue);

/// Arguments EPILOGUE_PARAMETERS of such kernels.
class EpilogueArguments {
  public:
    /// @param any a placeholder for absent views
    EpilogueArguments(const KernelEpilogue& epilogue, const View& any);

    /// Flags, as named in the kernels.
    [[nodiscard]] std::int32_t flags() const { return flags_; }
    /// Returns `first` followed by the epilogue's arguments.
    [[nodiscard]] std::pmr::vector<Argument> append_to(std::initializer_list<Argument> first) const&;
    std::pmr::vector<Argument> append_to(std::initializer_list<Argument> first) && = delete;  // allocated in scratch_
    /// The same, but only `first` for an empty epilogue: for kernels that include epilogue_stored.clh.
    [[nodiscard]] std::pmr::vector<Argument> append_to_if_any(std::initializer_list<Argument> first) const&;
    std::pmr::vector<Argument> append_to_if_any(std::initializer_list<Argument> first) && = delete;

  private:
    static constexpr std::size_t kMax = 10, kMaxFirst = 16;

    mutable Scratch<(2 * kMax + kMaxFirst) * sizeof(Argument)> scratch_;  // short-lived argument lists
    bool empty_;
    std::int32_t flags_;
    std::pmr::vector<Argument> all_{scratch_.memory()};
};

}  // namespace declivity::ops
