// Layer 2, private. Formulas over lists of tensors, such as an optimizer's step: elementwise functions are traced once
// with placeholders for the elements of each list, and one kernel applies them to all elements of all tensors
// (cl_kernels/engine/formula.cl).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/lazy_array.hpp>

#include "expression_node.hpp"
#include "runtime/capture.hpp"

namespace declivity::ops {

/// While an instance lives, elementwise functions of this thread are traced; nothing is computed, and no autograd graph
/// is built.
class FormulaTrace {
  public:
    /// @param name name of the formula, for errors
    FormulaTrace(std::string_view name, const Device& device);
    ~FormulaTrace();
    FormulaTrace(const FormulaTrace&) = delete;
    FormulaTrace& operator=(const FormulaTrace&) = delete;

    /// Placeholder for the elements of the tensors of a role (MultiTensor). It has no elements: operations that need
    /// them are refused.
    [[nodiscard]] LazyArray role(std::size_t role, DType dtype) const;
    /// Placeholder for one of the numbers that the formula is launched with; of shape ().
    [[nodiscard]] LazyArray number(std::size_t index, DType dtype) const;
    /// Placeholder for a number of the tensor that contains the element: the number at index `first` plus the tensor's
    /// index (MultiTensor::set). Of shape ().
    [[nodiscard]] LazyArray tensor_number(std::size_t first, DType dtype) const;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// The trace of this thread, or null.
    static const FormulaTrace* current() noexcept;
    /// @throws ValueError since placeholders have no elements
    [[noreturn]] static void refuse_elements(std::string_view name);
    /// The same for a placeholder whose trace has ended.
    [[noreturn]] static void refuse_later();
    /// Checks an argument of a function. @throws ValueError for a value that cannot belong to the formula; to be called
    /// before shapes are compared, since placeholders represent all shapes
    void require_own(const LazyArray& value) const;

  private:
    std::string name_;
    Device device_;
    CapturePause pause_;
    const FormulaTrace* before_;
};

/// An output: the new value of the elements of a role.
struct FormulaOutput {
    std::size_t role;
    LazyArray value;
};

class Formula {
  public:
    /// @throws ValueError, naming the trace, for values that are not elementwise functions of its roles and numbers
    Formula(const FormulaTrace& trace, const std::vector<FormulaOutput>& outputs);
    ~Formula();
    Formula(Formula&&) noexcept;
    Formula& operator=(Formula&&) noexcept;

    /// Assigns each element of each output's role its new value, all computed from the old ones. Writes nothing if
    /// guard[0] is not 0.
    /// @param numbers dense, f32 or f64; @param guard i32, see finite.hpp
    void launch(const MultiTensor& tensors, const View& numbers, const View& guard) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace declivity::ops
