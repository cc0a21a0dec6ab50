// Layer 2, private. A formula over lists of tensors, such as an optimizer's step: elementwise functions are called once
// of what stands for an element of each list, and one kernel computes them for all elements of all tensors
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

/// While one lives, elementwise functions of this thread are noted, and nothing is computed or recorded.
class FormulaTrace {
  public:
    /// @param name whose formula it is, for errors
    FormulaTrace(std::string_view name, const Device& device);
    ~FormulaTrace();
    FormulaTrace(const FormulaTrace&) = delete;
    FormulaTrace& operator=(const FormulaTrace&) = delete;

    /// Stands for the elements of the tensors of a role (MultiTensor). Has no elements: whoever wants them is refused.
    [[nodiscard]] LazyArray role(std::size_t role, DType dtype) const;
    /// Stands for one of the numbers that the formula is launched with; without axes.
    [[nodiscard]] LazyArray number(std::size_t which, DType dtype) const;
    /// Stands for a number of the tensor that an element is of: of the numbers that the formula is launched with,
    /// `first` plus the tensor's number (MultiTensor::set). Without axes.
    [[nodiscard]] LazyArray tensor_number(std::size_t first, DType dtype) const;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// That of this thread, or null.
    static const FormulaTrace* current() noexcept;
    /// @throws ValueError since a formula has no elements
    [[noreturn]] static void refuse_elements(std::string_view name);
    /// The same for one whose trace is over.
    [[noreturn]] static void refuse_later();
    /// For what a function is given. @throws ValueError for what clearly belongs to no formula: it must be told before
    /// shapes are compared, since those here stand for all others
    void require_own(const LazyArray& value) const;

  private:
    std::string name_;
    Device device_;
    CapturePause pause_;
    const FormulaTrace* before_;
};

/// What becomes of the elements of a role.
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

    /// Each element of each output's role takes its new value, all made from those before. Nothing is written while
    /// guard[0] is not 0.
    /// @param numbers dense, f32 or f64; @param guard i32, see finite.hpp
    void launch(const MultiTensor& tensors, const View& numbers, const View& guard) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace declivity::ops
