// Layer 2. Epilogues: elementwise functions fused to the end of an operation's kernel.
#pragma once

#include <memory>
#include <utility>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

struct ExpressionNode;

/// Elementwise functions that are applied to each element of an operation's result before it is stored. Opaque: the
/// engine constructs it, and operators on views either apply it or leave it to the engine. Empty: identity.
class Epilogue {
  public:
    Epilogue() = default;
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

    /// For layer 2 only: an expression of operator_result().
    explicit Epilogue(std::shared_ptr<const ExpressionNode> node) : node_(std::move(node)) {}
    [[nodiscard]] const std::shared_ptr<const ExpressionNode>& node() const noexcept { return node_; }

  private:
    std::shared_ptr<const ExpressionNode> node_;
};

/// Applies an epilogue to a stored result, for kernels that cannot fuse it.
DECLIVITY_API void apply_epilogue(const Epilogue& epilogue, const View& out);

/// @}

}  // namespace declivity::ops
