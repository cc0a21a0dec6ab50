// Layer 2, private. Kernels made from expressions over views: what they are made of, and their text.
#pragma once

#include <string>
#include <memory_resource>
#include <span>
#include <vector>

#include <declivity/runtime/launch.hpp>

#include "expression_node.hpp"
#include "expression.hpp"

namespace declivity::ops {

/// How an operand's innermost axis runs: the kernel is compiled for it.
enum class Step : char { repeat = '0', next = '1', strided = 's' };

struct Operand {
    View view;
    Strides strides;      // over the merged axes
    bool is_out = false;  // an input that is the output itself
    const ExpressionNode* random =
        nullptr;      // random numbers: `view` is where seed and base lie, the strides count numbers
    int stores = -1;  // no input: the place among the nodes of what is stored there besides the whole
    [[nodiscard]] Step step() const {
        const std::int64_t inner = strides.empty() ? 0 : strides.back();
        return inner == 0 ? Step::repeat : inner == 1 ? Step::next : Step::strided;
    }
};

/// The nodes of an expression, each once, behind those that it is made from.
struct Steps {
    using Memory = std::pmr::memory_resource*;
    explicit Steps(Memory memory) : nodes(memory), operand(memory) {}

    std::pmr::vector<const ExpressionNode*> nodes;
    std::pmr::vector<int> operand;  // of each node that is a view, or random numbers: its place among the inputs
    // Of rows (row_fusion.hpp): how many of the nodes are what a row is made from. The others are what follows its
    // results; they repeat nodes that both have, since each part is a loop of its own.
    std::size_t before = 0;
    bool of_rows = false;

    /// @param from the first node that it may be
    [[nodiscard]] int find(const Expression& expression, std::size_t from = 0) const;
    /// Where the part starts to which a node belongs.
    [[nodiscard]] std::size_t start_of(std::size_t at) const { return at < before ? 0 : before; }
};

Steps steps_of(const Expression& expression, Steps::Memory memory = std::pmr::get_default_resource());
/// Of several, whose parts in common come once.
Steps steps_of(std::span<const Expression> expressions);
/// @param prologue what rows are made from; @param epilogue what follows their results; either may be empty
Steps steps_of_rows(const Expression& prologue, const Expression& epilogue);

/// The index space and its operands: output first, then inputs, then other outputs.
struct Plan {
    explicit Plan(Steps::Memory memory) : operands(memory), numbers(memory), number_types(memory) {}

    Shape sizes;
    std::pmr::vector<Operand> operands;
    std::pmr::vector<Scalar> numbers;  // constants and parameters, in the order of the nodes
    std::pmr::vector<DType> number_types;
};

/// What kernels of cl_kernels/engine/elementwise.cl are compiled with. @param family whose form of it
KernelSpec elementwise_specification(const Steps& steps, const Plan& plan, const Device& device, KernelStyle style);

/// Of cl_kernels/engine/elementwise_reduce.cl, besides what the reduction itself defines. Results have the type of
/// operand 0.
KernelSpec elementwise_reduce_specification(const Steps& steps, const Plan& plan, const Device& device,
                                            KernelStyle style, const Defines& reduction);

/// What kernels that include cl_kernels/lib/row_program.clh are compiled with. @param out what they store
Defines row_defines(const Steps& steps, const Plan& plan, const Device& device, KernelStyle style, DType out);

/// Of cl_kernels/engine/formula.cl (formula.hpp): leaves say by their offset what they stand for.
constexpr int formula_role(std::size_t role) { return static_cast<int>(role); }
constexpr int formula_number(std::size_t which) { return 100 + static_cast<int>(which); }
constexpr int formula_tensor_number(std::size_t first) { return 1000 + static_cast<int>(first); }
struct StoredRole {
    std::size_t role;
    std::size_t at;  ///< among the nodes
    DType dtype;
};
KernelSpec formula_specification(const Steps& steps, const Plan& plan, const Device& device, KernelStyle style,
                                 std::span<const StoredRole> stored);

/// Equal for expressions of one structure, whatever the shapes.
void append_structure(const Steps& steps, const Plan& plan, std::string& key);

/// The floating type whose maths and random numbers a kernel uses; f32 when there is none.
DType real_of(const Plan& plan);

std::string_view name_of(Distribution distribution);

/// Whether both are the same elements in the same places.
bool same_elements(const View& a, const View& b);

}  // namespace declivity::ops
