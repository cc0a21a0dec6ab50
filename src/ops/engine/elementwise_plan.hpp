// Layer 2, private. Expressions over views made ready for a launch: operands, numbers, and kernels that are kept by
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

/// Operands, not merged yet, and numbers. @param out operand 0; null when nothing is stored element by element
/// @throws Unsupported when there are more inputs than a kernel takes
Plan plan_of(const Steps& steps, const Shape& shape, const View* out,
             Steps::Memory memory = std::pmr::get_default_resource());

/// Adds the numbers of a node: a constant, or the parameters of its function.
void append_numbers_of(const ExpressionNode& node, Plan& plan);

/// The index space with the axes from `inner` on as columns, which must become one axis; the others, of whose rows
/// operand 0 is the number, as rows. False: they do not, and the plan is as it was.
bool merge_rows(const Shape& shape, int inner, Plan& plan);

/// Adds the inputs, and where random numbers begin.
void append_inputs(const Plan& plan, std::pmr::vector<Argument>& arguments);
/// Adds the plan's numbers.
void append_numbers(const Plan& plan, std::pmr::vector<Argument>& arguments);

/// Random numbers of f32 among f64 are stored, since a kernel has the functions for one of the two. @param out the type
/// that is stored
Expression of_one_real(const Expression& expression, const Steps& steps, DType out);

/// As the struct Layout of the kernels: sizes, then strides of each operand.
std::pmr::vector<std::int64_t> layout_of(const Plan& plan, Steps::Memory memory = std::pmr::get_default_resource());

struct Number {
    alignas(8) std::array<std::byte, 8> bytes;
    std::size_t size;
};
/// As it lies in memory. @param value fits the type, see require_fits
Number element(const Scalar& value, DType type);

/// The kernel for a structure; its text is made the first time. DECLIVITY_LOG=kernels prints it then.
/// @param form whatever the text depends on besides the structure of the expression
Kernel kernel_of_structure(std::string_view form, const Steps& steps, const Plan& plan, const Device& device,
                           const std::function<KernelSpec()>& specification);

View dense_copy(const View& view);

/// "mul+add+relu": the functions, in the order in which they are computed.
std::string functions_of(const Steps& steps);
/// Of a kernel over a merged plan, that stores `out`.
Work work_of(const Steps& steps, const Plan& plan, const View& out);

}  // namespace declivity::ops
