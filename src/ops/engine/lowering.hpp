// Layer 2, private. Fuses pending values into one kernel.
#pragma once

#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

#include "expression_node.hpp"
#include "lazy_array_state.hpp"
#include "ops/support/scratch.hpp"
#include "launch_lock.hpp"

namespace declivity::ops {

/// Lowers an expression to one over views, and possibly the first output of one pending operation. The launch lock must
/// be held.
class Lowering {
  public:
    /// @param lock the launch lock, which is held
    explicit Lowering(LaunchLock& lock) : lock_(lock) {}

    /// @param result the value to be stored: an operation may fuse the rest as its epilogue, and the kernel may store
    /// intermediate values. Null: neither is allowed
    Expression run(const Expression& expression, const LazyArrayState* result);

    /// An intermediate value that the kernel stores as an additional output.
    struct Stored {
        std::shared_ptr<LazyArrayState> state;
        Expression lowered;
    };
    [[nodiscard]] std::vector<Stored> take_stored() { return std::move(stored_); }

    /// Returns whether the expression depends on an output of a pending operation.
    bool above_operation(const Expression& expression);

    /// The operation output that the lowered expression refers to, or null.
    [[nodiscard]] LazyArrayState* operation_within() const { return operation_; }

  private:
    /// A pending value with the number of references from the kernel to be generated.
    struct Reference {
        LazyArrayState* state;
        long count;
        bool below_operation;  // depends on an output of an operation
    };

    /// A leaf that refers to an output of an operation: number of expressions that own it, and how many of them were
    /// visited here. The others may belong to other kernels.
    struct Leaf {
        const ExpressionNode* node;
        LazyArrayState* state;
        long uses, counted_uses;
    };

    /// Thrown if the lock was yielded meanwhile: other threads may have computed what was inspected.
    struct RestartLowering {};
    void reset() noexcept;
    void wait_if_busy(const LazyArrayState& state);
    Expression compute(LazyArrayState& state);
    Reference* find(const LazyArrayState* state);
    bool is_shared(const Reference& reference) const;
    void count_use(const Expression& leaf);
    bool gather(const Expression& expression);
    bool launch_operations(const Expression& expression, const LazyArrayState* result);
    Expression lower(const Expression& expression);
    Expression lower(const Expression& expression, const ExpressionNode& node);
    Expression lower(LazyArrayState& state);
    Expression inline_value(LazyArrayState& state);

    LaunchLock& lock_;
    std::uint64_t yields_ = 0;  // of the lock at the start
    Scratch<2048> scratch_;
    std::pmr::vector<Reference> references_{scratch_.memory()};
    std::pmr::vector<Leaf> leaves_{scratch_.memory()};
    std::pmr::vector<std::pair<const ExpressionNode*, bool>> seen_{
        scratch_.memory()};  // true: depends on an output of an operation
    std::pmr::vector<std::pair<const ExpressionNode*, Expression>> nodes_{scratch_.memory()};
    std::pmr::vector<std::pair<const LazyArrayState*, Expression>> values_{scratch_.memory()};
    LazyArrayState* operation_ = nullptr;
    const LazyArrayState* result_ = nullptr;
    int room_ = 0;
    std::vector<Stored> stored_;
};

}  // namespace declivity::ops
