// Layer 2, private. What kernels of products do to each element of their result before it is stored
// (cl_kernels/lib/epilogue.clh).
#pragma once

#include <array>
#include <optional>
#include <memory_resource>
#include <vector>

#include "real_arguments.hpp"
#include "ops/support/scratch.hpp"
#include "expression.hpp"

namespace declivity::ops {

/// activation(alpha * element + bias[column] + beta * residual), or its gradient there; of a convolution
/// activation(alpha * element * scale[channel] + shift[channel] + beta * residual).
struct KernelEpilogue {
    double alpha = 1, beta = 1;
    std::optional<View> bias = {};               ///< numbers side by side, one for each column
    std::optional<View> scale = {}, shift = {};  ///< numbers side by side, one for each channel
    std::optional<View> residual = {};           ///< dense, of the shape of the result
    std::optional<Function> activation = {};
    std::array<double, 2> parameters{};  ///< of the activation
    /// What the activation's gradient is made from besides, x or y, dense, of the shape of the result: then the sum is
    /// that of the activation's result, and what comes out that of its input.
    std::optional<View> saved = {};

    [[nodiscard]] bool empty() const { return alpha == 1 && !bias && !scale && !shift && !residual && !activation; }
};

/// Whose result an epilogue follows: that of a convolution has channels, that of a product columns.
enum class EpilogueOf : bool { product, convolution };

/// An epilogue as one that kernels know; nothing when it is something else.
std::optional<KernelEpilogue> kernel_epilogue(const Epilogue& epilogue, const View& out,
                                              EpilogueOf of = EpilogueOf::product);

/// ACTIVATION or ACTIVATION_GRADIENT, for kernels that include epilogue.clh.
void set_activation(Defines& defines, const KernelEpilogue& epilogue);

/// EPILOGUE and these, for kernels that include epilogue_stored.clh: nothing for an empty epilogue.
void set_epilogue_stored(Defines& defines, const KernelEpilogue& epilogue);

/// The arguments of such kernels, EPILOGUE_PARAMETERS.
class EpilogueArguments {
  public:
    /// @param any a view that stands where there is nothing
    EpilogueArguments(const KernelEpilogue& epilogue, const View& any);

    /// Flags, as the kernels name them.
    [[nodiscard]] std::int32_t flags() const { return flags_; }
    /// `first`, then these.
    [[nodiscard]] std::pmr::vector<Argument> behind(std::initializer_list<Argument> first) const&;
    std::pmr::vector<Argument> behind(std::initializer_list<Argument> first) && = delete;  // it lies in scratch_
    /// The same, but only `first` of an empty epilogue: for kernels that include epilogue_stored.clh.
    [[nodiscard]] std::pmr::vector<Argument> if_any_behind(std::initializer_list<Argument> first) const&;
    std::pmr::vector<Argument> if_any_behind(std::initializer_list<Argument> first) && = delete;

  private:
    static constexpr std::size_t kMax = 10, kMaxFirst = 16;

    mutable Scratch<(2 * kMax + kMaxFirst) * sizeof(Argument)> scratch_;  // of lists that are used once
    bool empty_;
    std::int32_t flags_;
    std::pmr::vector<Argument> all_{scratch_.memory()};
};

}  // namespace declivity::ops
