// Layer 2, private. Makes one kernel of values that wait.
#pragma once

#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

#include "expression_node.hpp"
#include "lazy_array_state.hpp"
#include "ops/support/scratch.hpp"
#include "runtime/launch_lock.hpp"

namespace declivity::ops {

/// Makes an expression one over views, and perhaps the first output of one operation that is not launched yet. With the
/// values' lock held.
class Lowering {
  public:
    /// @param lock the values' lock, which is held
    explicit Lowering(declivity::detail::LaunchLock& lock) : lock_(lock) {}

    /// @param result as what the whole is stored: an operation may take the rest as its epilogue, and the kernel may
    /// store what is on the way. Null: none may
    Expression run(const Expression& expression, const LazyArrayState* result);

    /// A value that the kernel is to store on the way.
    struct Stored {
        std::shared_ptr<LazyArrayState> state;
        Expression lowered;
    };
    [[nodiscard]] std::vector<Stored> take_stored() { return std::move(stored_); }

    /// Whether an output of an operation that is not launched is below.
    bool above_operation(const Expression& expression);

    /// The operation's output that the expression mentions, or null.
    [[nodiscard]] LazyArrayState* operation_within() const { return operation_; }

  private:
    /// Of a value that is not computed: how often what is to become one kernel refers to it.
    struct Reference {
        LazyArrayState* state;
        long count;
        bool below_operation;  // it is made from an output of an operation
    };

    /// A leaf that stands for an output of an operation: how many expressions hold it, and in how many of them it was
    /// met here. Others may make kernels of their own of it.
    struct Leaf {
        const ExpressionNode* node;
        LazyArrayState* state;
        long uses, met;
    };

    /// Thrown where the lock was let go of on the way: other threads may have computed what was looked at.
    struct RestartLowering {};
    void forget() noexcept;
    void wait_if_busy(const LazyArrayState& state);
    Expression computed(LazyArrayState& state);
    Reference* find(const LazyArrayState* state);
    bool is_shared(const Reference& reference) const;
    void meet(const Expression& leaf);
    bool gather(const Expression& expression);
    bool settle_operations(const Expression& expression, const LazyArrayState* result);
    Expression lower(const Expression& expression);
    Expression lower(const Expression& expression, const ExpressionNode& node);
    Expression lower(LazyArrayState& state);
    Expression inlined(LazyArrayState& state);

    declivity::detail::LaunchLock& lock_;
    std::uint64_t yields_ = 0;  // of the lock, when it began
    Scratch<2048> scratch_;
    std::pmr::vector<Reference> references_{scratch_.memory()};
    std::pmr::vector<Leaf> leaves_{scratch_.memory()};
    std::pmr::vector<std::pair<const ExpressionNode*, bool>> seen_{
        scratch_.memory()};  // with whether an output of an operation is below
    std::pmr::vector<std::pair<const ExpressionNode*, Expression>> nodes_{scratch_.memory()};
    std::pmr::vector<std::pair<const LazyArrayState*, Expression>> values_{scratch_.memory()};
    LazyArrayState* operation_ = nullptr;
    const LazyArrayState* result_ = nullptr;
    int room_ = 0;
    std::vector<Stored> stored_;
};

}  // namespace declivity::ops
