// Layer 2, private. Kernels generated from expressions over views: their parts and their text.
#pragma once

#include <string>
#include <memory_resource>
#include <span>
#include <vector>

#include <declivity/runtime/launch.hpp>

#include "expression_node.hpp"
#include "expression.hpp"

namespace declivity::ops {

/// The stride of an operand's innermost axis, a compile-time property of the kernel.
enum class Step : char { repeat = '0', next = '1', strided = 's' };

struct Operand {
    View view;
    Strides strides;      // over the merged axes
    bool is_out = false;  // an input that is the output itself
    const ExpressionNode* random =
        nullptr;      // random numbers: `view` is the location of seed and base, the strides count numbers
    int stores = -1;  // an additional output: index of the node that is stored there
    [[nodiscard]] Step step() const {
        const std::int64_t inner = strides.empty() ? 0 : strides.back();
        return inner == 0 ? Step::repeat : inner == 1 ? Step::next : Step::strided;
    }
};

/// The nodes of an expression in topological order, each once.
struct Steps {
    using Memory = std::pmr::memory_resource*;
    explicit Steps(Memory memory) : nodes(memory), operand(memory) {}

    std::pmr::vector<const ExpressionNode*> nodes;
    std::pmr::vector<int> operand;  // for each view or random node: the index among the inputs
    // For row kernels (row_fusion.hpp): number of nodes that belong to the prologue; the others belong to the epilogue.
    // Common nodes are duplicated, since each part is a loop of its own.
    std::size_t before = 0;
    bool of_rows = false;

    /// @param from the first candidate node
    [[nodiscard]] int find(const Expression& expression, std::size_t from = 0) const;
    /// Returns the start of the part to which a node belongs.
    [[nodiscard]] std::size_t start_of(std::size_t at) const { return at < before ? 0 : before; }
};

Steps steps_of(const Expression& expression, Steps::Memory memory = std::pmr::get_default_resource());
/// The nodes of several expressions; common parts occur once.
Steps steps_of(std::span<const Expression> expressions);
/// @param prologue computes the rows; @param epilogue follows their results; either may be empty
Steps steps_of_rows(const Expression& prologue, const Expression& epilogue);

/// The index space and its operands: first the output, then the inputs, then additional outputs.
struct ElementwisePlan {
    explicit ElementwisePlan(Steps::Memory memory) : operands(memory), numbers(memory), number_types(memory) {}

    Shape sizes;
    std::pmr::vector<Operand> operands;
    std::pmr::vector<Scalar> numbers;  // constants and parameters, in the order of the nodes
    std::pmr::vector<DType> number_types;
};

/// Compile options of cl_kernels/engine/elementwise.cl. @param style the kernel style
KernelSpec elementwise_specification(const Steps& steps, const ElementwisePlan& plan, const Device& device,
                                     KernelStyle style);

/// Compile options of cl_kernels/engine/elementwise_reduce.cl, in addition to those of the reduction itself. Results
/// have the type of operand 0.
KernelSpec elementwise_reduce_specification(const Steps& steps, const ElementwisePlan& plan, const Device& device,
                                            KernelStyle style, const Defines& reduction);

/// Defines of kernels that include cl_kernels/lib/row_program.clh. @param out the stored type
Defines row_defines(const Steps& steps, const ElementwisePlan& plan, const Device& device, KernelStyle style,
                    DType out);

/// Constants of cl_kernels/engine/formula.cl (formula.hpp): the offset of a leaf encodes what it represents.
constexpr int formula_role(std::size_t role) { return static_cast<int>(role); }
constexpr int formula_number(std::size_t index) { return 100 + static_cast<int>(index); }
constexpr int formula_tensor_number(std::size_t first) { return 1000 + static_cast<int>(first); }
struct StoredRole {
    std::size_t role;
    std::size_t at;  ///< index of the node
    DType dtype;
};
KernelSpec formula_specification(const Steps& steps, const ElementwisePlan& plan, const Device& device,
                                 KernelStyle style, std::span<const StoredRole> stored);

/// Appends a key that is equal for expressions of one structure, whatever the shapes.
void append_structure(const Steps& steps, const ElementwisePlan& plan, std::string& key);

/// The floating-point type whose maths and random functions a kernel uses; f32 if there is none.
DType real_of(const ElementwisePlan& plan);

std::string_view name_of(Distribution distribution);

/// Returns whether both views refer to the same elements in the same layout.
bool same_elements(const View& a, const View& b);

}  // namespace declivity::ops
