// Layer 2, private. Prepares expressions over views for a launch: operands, number arguments, and kernels cached by
// structure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/scope.hpp>

#include "elementwise_source.hpp"

namespace declivity::ops {

/// Collects the operands (axes not merged yet) and numbers. @param out operand 0; null if nothing is stored element by
/// element
/// @throws Unsupported if there are more inputs than a kernel takes
ElementwisePlan plan_of(const Steps& steps, const Shape& shape, const View* out,
                        Steps::Memory memory = std::pmr::get_default_resource());

/// Appends the numbers of a node: a constant, or the parameters of its function.
void append_numbers_of(const ExpressionNode& node, ElementwisePlan& plan);

/// Converts the index space to rows and columns: the axes from `inner` on must merge into one axis, the columns;
/// operand 0 of the others is the row number. Returns false, with the plan unchanged, if they do not merge.
bool merge_rows(const Shape& shape, int inner, ElementwisePlan& plan);

/// Appends the inputs, and the starting positions of random numbers.
void append_inputs(const ElementwisePlan& plan, std::pmr::vector<Argument>& arguments);
/// Appends the plan's numbers.
void append_numbers(const ElementwisePlan& plan, std::pmr::vector<Argument>& arguments);

/// Stores f32 random numbers in an f64 expression first, since a kernel contains the functions of one type only. @param
/// out the type that is stored
Expression of_one_real(const Expression& expression, const Steps& steps, DType out);

/// The layout in the form of the kernels' struct Layout: sizes, then the strides of each operand.
std::pmr::vector<std::int64_t> layout_of(const ElementwisePlan& plan,
                                         Steps::Memory memory = std::pmr::get_default_resource());

struct Number {
    alignas(8) std::array<std::byte, 8> bytes;
    std::size_t size;
};
/// The number in the memory format of `type`. @param value must fit the type, see require_fits
Number element(const Scalar& value, DType type);

/// Returns the kernel for a structure; its text is generated on first use, and printed then with DECLIVITY_LOG=kernels.
/// @param form key of everything that the text depends on besides the structure of the expression
Kernel kernel_of_structure(std::string_view form, const Steps& steps, const ElementwisePlan& plan, const Device& device,
                           const std::function<KernelSpec()>& specification);

View dense_copy(const View& view);

/// Names the functions in order of evaluation: "mul+add+relu".
std::string functions_of(const Steps& steps);
/// The work of a kernel over a merged plan that stores `out`.
Work work_of(const Steps& steps, const ElementwisePlan& plan, const View& out);

}  // namespace declivity::ops
