// Floor 2. Values: elements that are there, or that are computed as soon as somebody needs them. What Tensors stand
// for.
//
// Elementwise results stay expressions until then, so that a chain of functions becomes one kernel; the result of an
// operator (matmul, convolution) waits for the functions that follow it, so that they become its epilogue.
// DECLIVITY_FUSION=0 computes each value as it is made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <declivity/ops/expression.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Launches an operator into `out`, with `epilogue` over its result.
using OperatorLaunch = std::function<void(const View& out, const Epilogue& epilogue)>;

/// A shared handle. Thread-safe.
class DECLIVITY_API Value {
  public:
    /// None.
    Value() = default;
    /// Elements that are there.
    Value(const View& view);  // NOLINT: a view is a value
    /// Those of an expression over views and other values of one device.
    /// @throws Unsupported when it has more views than a kernel takes inputs
    Value(const Expression& expression, const Device& device);
    /// The result of an operator over `operands`, which are checked already. Until it is launched nobody else may write
    /// them without Buffer::launch_readers().
    static Value of_operator(const Device& device, DType dtype, const Shape& shape, std::span<const View> operands,
                             OperatorLaunch launch);

    /// The sum of partials (k, elements of `shape`) over k. When it is needed, all such sums of this thread are
    /// launched together; so they are when their partials hold much memory.
    static Value of_sum(const View& partials, const Shape& shape);

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    [[nodiscard]] DType dtype() const;
    [[nodiscard]] Device device() const;
    /// Whether the elements are there, as far as later commands of the compute queue see.
    [[nodiscard]] bool computed() const;
    /// Whether it is of_sum(), and not computed yet.
    [[nodiscard]] bool waits_for_sum() const;
    /// The elements; computes them first, in memory of their own.
    [[nodiscard]] const View& view() const;
    /// Buffer::version() of the elements when they had just been computed.
    [[nodiscard]] std::uint64_t first_version() const;
    /// Recorder::current_number() when it was made.
    [[nodiscard]] std::uint64_t recorder() const;
    /// How many handles share it, expressions of values that are not computed included.
    [[nodiscard]] long use_count() const noexcept { return state_.use_count(); }

    struct State;
    [[nodiscard]] State* state() const noexcept { return state_.get(); }

  private:
    std::shared_ptr<State> state_;
};

/// Whether values are computed only when they are needed: DECLIVITY_FUSION is not 0.
DECLIVITY_API bool fuses();

}  // namespace declivity::ops
