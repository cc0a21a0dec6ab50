// Layer 2. Epilogues: what follows an operation within its kernel.
#pragma once

#include <memory>
#include <utility>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

struct ExpressionNode;

/// The elementwise functions that are applied to each element of an operation's result before it is stored. Opaque: the
/// engine makes it, and operators on views take it or leave it. Empty: nothing.
class Epilogue {
  public:
    Epilogue() = default;
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

    /// For layer 2 itself: an expression of operator_result().
    explicit Epilogue(std::shared_ptr<const ExpressionNode> node) : node_(std::move(node)) {}
    [[nodiscard]] const std::shared_ptr<const ExpressionNode>& node() const noexcept { return node_; }

  private:
    std::shared_ptr<const ExpressionNode> node_;
};

/// Applies an epilogue to a result that is stored already; for kernels that cannot do so on the way.
DECLIVITY_API void apply_epilogue(const Epilogue& epilogue, const View& out);

}  // namespace declivity::ops
