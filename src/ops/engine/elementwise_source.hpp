// Floor 2, private. Kernels made from expressions over views: what they are made of, and their text.
#pragma once

#include <string>
#include <vector>

#include <declivity/ops/expression.hpp>
#include <declivity/runtime/launch.hpp>

#include "expression_node.hpp"

namespace declivity::ops {

/// How an operand's innermost axis runs: the kernel is compiled for it.
enum class Step : char { repeat = '0', next = '1', strided = 's' };

struct Operand {
    View view;
    Strides strides;      // over the merged axes
    bool is_out = false;  // an input that is the output itself
    const Expression::Node* random =
        nullptr;      // random numbers: `view` is where seed and base lie, the strides count numbers
    int stores = -1;  // no input: the place among the nodes of what is stored there besides the whole
    [[nodiscard]] Step step() const {
        const std::int64_t inner = strides.empty() ? 0 : strides.back();
        return inner == 0 ? Step::repeat : inner == 1 ? Step::next : Step::strided;
    }
};

/// The nodes of an expression, each once, behind those that it is made from.
struct Steps {
    std::vector<const Expression::Node*> nodes;
    std::vector<int> operand;  // of each node that is a view, or random numbers: its place among the inputs

    [[nodiscard]] int find(const Expression& expression) const;
};

Steps steps_of(const Expression& expression);

/// The index space and its operands: output first, then inputs, then other outputs.
struct Plan {
    Shape sizes;
    std::vector<Operand> operands;
    std::vector<double> numbers;  // constants and parameters, in the order of the nodes
    std::vector<DType> number_types;
};

/// What kernels of cl_kernels/engine/elementwise.cl are compiled with. @param family whose form of it
KernelSpec elementwise_specification(const Steps& steps, const Plan& plan, const Device& device, Family family);

/// Of cl_kernels/engine/elementwise_reduce.cl, besides what the reduction itself defines. Results have the type of
/// operand 0.
KernelSpec elementwise_reduce_specification(const Steps& steps, const Plan& plan, const Device& device, Family family,
                                            const Defines& reduction);

/// Equal for expressions of one structure, whatever the shapes.
std::string structure_of(const Steps& steps, const Plan& plan);

/// The floating type whose maths and random numbers a kernel uses; f32 when there is none.
DType real_of(const Plan& plan);

std::string_view name_of(Distribution distribution);

/// Whether both are the same elements in the same places.
bool same_elements(const View& a, const View& b);

}  // namespace declivity::ops
