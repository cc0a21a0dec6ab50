// Generates the text of kernels from expressions. The frame is cl_kernels/engine/elementwise.cl; this file generates
// the signature and one block of arithmetic for each node.
#include "elementwise_source.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "continuity.hpp"
#include "ops/support/vector_form.hpp"

namespace declivity::ops {
namespace {

using Node = ExpressionNode;

constexpr std::size_t kFormulaRoles = 8;
constexpr std::string_view kTile =
    "512";  // columns whose random numbers are generated at a time, so that they stay in the L1 cache

/// Appends the inputs of an expression, then the expression itself.
void add(const Expression& expression, Steps& steps) {
    if (!expression || std::ranges::find(steps.nodes, expression.node().get()) != steps.nodes.end()) return;
    for (const Expression& input : expression.node()->inputs) add(input, steps);
    steps.nodes.push_back(expression.node().get());
}

}  // namespace

int Steps::find(const Expression& expression, std::size_t from) const {
    const auto first = nodes.begin() + static_cast<std::ptrdiff_t>(from);
    return static_cast<int>(std::find(first, nodes.end(), expression.node().get()) - nodes.begin());
}

namespace {

/// Assigns operand indices to the nodes.
Steps with_operands(Steps steps) {
    std::pmr::vector<const Node*> inputs(steps.nodes.get_allocator());
    inputs.reserve(kMaxInputs);
    steps.operand.reserve(steps.nodes.size());
    for (const Node* node : steps.nodes) {
        if (node->kind != Node::Kind::view && node->kind != Node::Kind::random) {
            steps.operand.push_back(-1);
            continue;
        }
        const auto same = std::ranges::find_if(inputs, [&](const Node* input) {
            return node->kind == Node::Kind::view && input->kind == Node::Kind::view &&
                   same_elements(input->view, node->view);
        });
        steps.operand.push_back(static_cast<int>(same - inputs.begin()));
        if (same == inputs.end()) inputs.push_back(node);
    }
    return steps;
}

}  // namespace

Steps steps_of(const Expression& expression, Steps::Memory memory) {
    Steps steps(memory);
    steps.nodes.reserve(kMaxNodes);
    add(expression, steps);
    return with_operands(std::move(steps));
}

Steps steps_of(std::span<const Expression> expressions) {
    Steps steps(std::pmr::get_default_resource());
    for (const Expression& expression : expressions) add(expression, steps);
    return with_operands(std::move(steps));
}

Steps steps_of_rows(const Expression& prologue, const Expression& epilogue) {
    Steps steps(std::pmr::get_default_resource()), epilogue_steps = steps;
    add(prologue, steps);
    steps.before = steps.nodes.size();
    steps.of_rows = true;
    add(epilogue, epilogue_steps);
    steps.nodes.insert(steps.nodes.end(), epilogue_steps.nodes.begin(), epilogue_steps.nodes.end());
    return with_operands(std::move(steps));
}

std::string_view name_of(Distribution distribution) {
    static constexpr std::array<std::string_view, 3> kNames{"uniform", "normal", "bernoulli"};
    return kNames[static_cast<std::size_t>(distribution)];
}

DType real_of(const ElementwisePlan& plan) {
    for (const Operand& operand : plan.operands)
        if ((operand.random != nullptr ? operand.random->dtype : operand.view.dtype) == DType::f64) return DType::f64;
    return DType::f32;
}

bool same_elements(const View& a, const View& b) {
    return a.buffer == b.buffer && a.offset == b.offset && a.dtype == b.dtype && a.shape == b.shape &&
           a.strides == b.strides;
}

namespace {

struct Generated {
    std::string body;
    std::string rows, tiles;  // statements for random numbers, before the elements of a row and of a tile
    std::string elements;     // of a formula: values computed per element
    int numbers = 0;
    bool copies = false;             // elements are copied unchanged, with all their bits
    bool reduced_precision = false;  // needs cl_kernels/lib/storage.clh
    bool divides = false;            // needs cl_kernels/lib/division.clh
    bool special = false;            // needs cl_kernels/lib/special.clh

    /// Converts a 16-bit float element to float for arithmetic, and back.
    std::string loaded(DType type, const std::string& element) {
        return is_16bit_float(type) ? conversion("from", type, element) : element;
    }
    std::string stored(DType type, const std::string& value) {
        return is_16bit_float(type) ? conversion("to", type, value) : value;
    }
    /// Rounds a value as if it had been stored.
    std::string rounded(DType type, const std::string& value) {
        return is_16bit_float(type) ? conversion("rounded", type, value) : value;
    }

    void set_headers(Defines& defines) const {
        if (reduced_precision) defines.set("REDUCED_PRECISION", 1);
        if (special) defines.set("SPECIAL", 1);
        if (divides) defines.set("DIVISION", 1);
    }

  private:
    std::string conversion(std::string_view function, DType type, const std::string& value) {
        reduced_precision = true;
        return fmt::format("{}_{}({})", function, name_of(type), value);
    }
};

/// The OpenCL C type that values of a type are computed in.
std::string_view arithmetic_type(DType type) { return cl_type(compute_type(type)); }

/// Fills the literals C(...) and the type T of this node into text of the table.
std::string specialise(std::string_view text, DType type) {
    std::string out;
    const std::string literal = fmt::format("C_{}(", arithmetic_type(type));
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool starts_word =
            i == 0 || (std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0 && text[i - 1] != '_');
        if (starts_word && text.substr(i, 2) == "C(") {
            out += literal;
            ++i;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// The type for arithmetic that may overflow: compilers treat overflow of signed integers, and of types promoted to
/// int, as impossible, and would optimise comparisons and widening on that basis. Empty if no overflow is possible.
std::string_view wrapping_type(Function function, DType type) {
    constexpr std::array wrapping_functions{Function::add,        Function::sub, Function::mul, Function::add_scalar,
                                            Function::mul_scalar, Function::neg, Function::abs, Function::square};
    if (std::ranges::find(wrapping_functions, function) == wrapping_functions.end()) return {};
    if (type == DType::i64) return "ulong";
    return type == DType::i32 || type == DType::i16 || type == DType::u16 ? "uint" : "";
}

/// Converts a bool to the byte that is stored (for the reason see cl_kernels/lib/math.clh).
std::string stored_truth(const std::string& value) { return fmt::format("D_TRUTH(({}) != 0)", value); }

/// Converts a value, named `from`, to another type.
std::string converted(const std::string& from, DType from_type, DType to) {
    const std::string_view type = arithmetic_type(to);
    if (to == DType::boolean) return fmt::format("{} != 0", from);
    // Values out of the range of the integer type, undefined in C, are saturated, and NaN gives 0 (required of
    // convert_sat by OpenCL, but not implemented everywhere).
    if (is_floating(from_type) && !is_floating(to))
        return fmt::format("convert_{0}_sat({1} == {1} ? {1} : 0)", type, from);
    // Rounding to f32 first could break a tie to the wrong side.
    if (from_type == DType::f64 && is_16bit_float(to)) return fmt::format("narrow_to_odd({})", from);
    return fmt::format("({})({})", type, from);
}

/// Returns whether an f16 or bf16 value has digits that are lost when it is stored.
bool exceeds_type(const Node& node) {
    if (!is_16bit_float(node.dtype)) return false;
    if (node.kind == Node::Kind::random) return node.distribution != Distribution::bernoulli;
    return node.kind == Node::Kind::apply || node.kind == Node::Kind::gradient ||
           node.kind == Node::Kind::operator_result;
}

/// Returns whether a node is an f16 or bf16 constant. Functions use it with full precision; as a tensor, cast or
/// reduced, it is rounded to its type.
bool is_number(const Node& node) { return is_16bit_float(node.dtype) && node.kind == Node::Kind::constant; }

/// Returns whether a node's result can depend on more than the last digit of its input `i`.
bool rounds_input(const Node& node, std::size_t i) {
    if (node.kind == Node::Kind::cast) return true;
    // A quotient jumps where the divisor is 0.
    if (node.kind == Node::Kind::apply)
        return !is_continuous(node.function) && (node.function != Function::div || i == 1);
    return i > 0 && !is_continuous_gradient(node.function, node.input);
}

/// Emits the use of random numbers and their source: a block for each tile if elements are contiguous and a work-item
/// computes many; otherwise one number for each element, or for each row.
void generate_random(const Node& node, int input, const Operand& operand, bool tiled, Generated& code,
                     std::string& name) {
    std::string numbers;
    for (std::size_t i = 0; i < 3; ++i)
        numbers += i < node.parameters.size() ? fmt::format(", n{}", code.numbers++) : ", 0";
    const auto call = [&](std::string_view suffix, std::string_view first) {
        return fmt::format("random_{0}{1}block{2}, key{2}, in{2}{3}{4})", name_of(node.distribution), suffix, input,
                           first, numbers);
    };
    std::string value = fmt::format("r{}", input);
    if (operand.step() == Step::repeat) {
        code.rows += fmt::format(" const REAL r{} = {};", input, call("(", ""));
    } else if (operand.step() == Step::next && tiled) {
        code.tiles += fmt::format(" REAL r{0}[TILE + 2 * D_RANDOM_COUNT]; const int s{0} = {1};", input,
                                  call(fmt::format("_run(r{}, ", input), " + from, tile_columns"));
        value = fmt::format("r{0}[s{0} + (i - from)]", input);
    } else {
        value = call("(", fmt::format(" + i * STEP{}", input));
    }
    code.body += fmt::format(" const {} {} = {};", arithmetic_type(node.dtype), name, value);
}

/// Emits the statements of a node. @param names of the values of all nodes, appended in order
void generate(const Steps& steps, const ElementwisePlan& plan, bool tiled, std::size_t at,
              std::vector<std::string>& names, Generated& code) {
    const Node& node = *steps.nodes[at];
    const bool root = at + 1 == steps.nodes.size() || at + 1 == steps.before;
    const std::string_view type = arithmetic_type(node.dtype);
    if (node.kind == Node::Kind::view) {
        code.copies = root;
        const std::string element = fmt::format("in{0}[i * STEP{0}]", steps.operand[at]);
        if (root) {
            names[at] = element;
            return;
        }
        names[at] = fmt::format("x{}", at);
        code.body += fmt::format(" const {} {} = {};", type, names[at], code.loaded(node.dtype, element));
        return;
    }
    if (node.kind == Node::Kind::random) {
        names[at] = fmt::format("x{}", at);
        return generate_random(node, steps.operand[at], plan.operands[static_cast<std::size_t>(steps.operand[at]) + 1],
                               tiled, code, names[at]);
    }
    if (node.kind == Node::Kind::constant) {
        names[at] = fmt::format("n{}", code.numbers++);
        return;
    }
    if (node.kind == Node::Kind::operator_result) {
        names[at] = "result";
        return;
    }
    names[at] = fmt::format("v{}", at);
    const auto name_of_input = [&](std::size_t i) {
        const auto input = static_cast<std::size_t>(steps.find(node.inputs[i], steps.start_of(at)));
        const Node& from = *steps.nodes[input];
        const bool rounds =
            rounds_input(node, i) && (exceeds_type(from) || (node.kind == Node::Kind::cast && is_number(from)));
        return rounds ? code.rounded(steps.nodes[input]->dtype, names[input]) : names[input];
    };
    if (node.kind == Node::Kind::cast) {
        // The result is rounded when it is stored; intermediate values are rounded as if they were.
        const DType from = node.inputs[0].dtype();
        const std::string text = root && from == DType::boolean && size_of(node.dtype) == 1
                                     ? stored_truth(name_of_input(0))
                                     : converted(name_of_input(0), from, node.dtype);
        code.body += fmt::format(" const {} {} = {};", type, names[at], root ? text : code.rounded(node.dtype, text));
        return;
    }
    const FunctionInfo& row = info(node.function);
    const bool gradient = node.kind == Node::Kind::gradient;
    const std::string_view wrapping = wrapping_type(node.function, working_type(node));
    const auto local_type = [wrapping](DType of) { return wrapping.empty() ? arithmetic_type(of) : wrapping; };
    code.body += fmt::format(" {} {}; {{", type, names[at]);
    // Functions must give the same bits in every kernel: compilers such as NVIDIA's may fuse a product and a sum, even
    // across statements.
    if (is_floating(working_type(node))) code.body += " _Pragma(\"OPENCL FP_CONTRACT OFF\")";
    const auto local = [&](char name, std::size_t index) {
        if (node.inputs[index])
            code.body +=
                fmt::format(" const {} {} = {};", local_type(node.inputs[index].dtype()), name, name_of_input(index));
    };
    const std::size_t first = gradient ? 1 : 0;
    if (gradient) local('g', 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(row.inputs); ++i)
        local(row.inputs == 1 ? 'x' : static_cast<char>('a' + i), first + i);
    if (gradient) local('y', node.inputs.size() - 1);
    for (std::size_t i = 0; i < node.parameters.size(); ++i)
        code.body += fmt::format(" const {} {} = n{};", local_type(working_type(node)), static_cast<char>('p' + i),
                                 code.numbers++);
    const std::string_view text = gradient ? row.gradient[static_cast<std::size_t>(node.input)] : row.value;
    code.divides = code.divides || row.divides;
    code.special = code.special || row.special;
    if (!wrapping.empty() && node.function == Function::abs)
        code.body += fmt::format(" {0} = ({1})(({1})x < {2} ? -x : x); }}", names[at], type,
                                 specialise("C(0.0)", working_type(node)));
    else if (!wrapping.empty()) code.body += fmt::format(" {} = ({})({}); }}", names[at], type, text);
    else code.body += fmt::format(" {} = {}; }}", names[at], specialise(text, working_type(node)));
}

/// Stores the value of a node as an additional output. Its users read the stored value.
void generate_store(DType type, int index, std::size_t at, std::vector<std::string>& names, Generated& code) {
    const std::string stored = type == DType::boolean ? stored_truth(names[at]) : code.stored(type, names[at]);
    if (!is_16bit_float(type)) {
        code.body += fmt::format(" extra{0}[i * STEP_EXTRA{0}] = {1};", index, stored);
        return;
    }
    code.body += fmt::format(" const ushort h{1} = {2}; extra{0}[i * STEP_EXTRA{0}] = h{1}; const float w{1} = {3};",
                             index, at, stored, code.loaded(type, fmt::format("h{}", at)));
    names[at] = fmt::format("w{}", at);
}

/// The stride between columns.
std::string step_of(const Operand& operand, std::size_t index) {
    return operand.step() == Step::strided ? fmt::format("STRIDE({}, RANK - 1)", index)
                                           : std::string(1, static_cast<char>(operand.step()));
}

/// Compilers vectorise loops with half of the device's vector width, which suits memory-bound loops but not maths.
std::string vectorise(const Generated& code, const ElementwisePlan& plan, const Device& device, KernelStyle style) {
    // f64 maths are function calls, which compilers do not vectorise.
    const bool has_maths = (code.special || code.body.find("d_") != std::string::npos) && real_of(plan) == DType::f32;
    if (!has_maths || style != KernelStyle::simd) return {};
    return fmt::format("_Pragma(\"clang loop vectorize_width({})\")", vector_form(device, DType::f32).vector);
}

}  // namespace

namespace {

struct Kernels {
    Generated code;
    std::string result;  // name of the root's value
    Defines defines;     // without the store of the result
};

/// Emits the nodes from `first` up to `end`. @return the name of the last node's value
std::string generate(const Steps& steps, const ElementwisePlan& plan, const Device& device, KernelStyle style,
                     std::size_t first, std::size_t end, Generated& code) {
    std::vector<std::string> names(steps.nodes.size());
    const bool tiled = style == KernelStyle::simd;
    for (std::size_t at = first; at < end; ++at) {
        require_supported(device, steps.nodes[at]->dtype);
        generate(steps, plan, tiled, at, names, code);
        for (std::size_t i = 1; i < plan.operands.size(); ++i)
            if (plan.operands[i].stores == static_cast<int>(at))
                generate_store(steps.nodes[at]->dtype, static_cast<int>(i) - 1, at, names, code);
    }
    return end > first ? names[end - 1] : "";
}

/// Declares the kernel's operands. @param random statements after those of a row
/// @param forwards_arguments true if all operands are passed on to a function that does the work
Defines operand_defines(const ElementwisePlan& plan, const std::string& random, bool forwards_arguments) {
    Defines defines = real_defines(real_of(plan));
    defines.set("RANK", plan.sizes.rank()).set("OPERANDS", static_cast<std::int64_t>(plan.operands.size()));
    std::string parameters, arguments, rows;
    for (std::size_t i = 1; i < plan.operands.size(); ++i) {
        const Operand& operand = plan.operands[i];
        const std::size_t input = i - 1;
        if (operand.stores >= 0) {
            defines.set(fmt::format("STEP_EXTRA{}", input), step_of(operand, i));
            parameters += fmt::format(", __global {0}* restrict extra{1}_base, const long extra{1}_offset",
                                      cl_type(operand.view.dtype), input);
            arguments += fmt::format(", extra{0}_base, extra{0}_offset", input);
            rows += fmt::format(" __global {0}* extra{1} = extra{1}_base + extra{1}_offset + ROW_OFFSET({2});",
                                cl_type(operand.view.dtype), input, i);
            continue;
        }
        defines.set(fmt::format("STEP{}", input), step_of(operand, i));
        if (operand.is_out) {
            rows += fmt::format(" __global const OUT* in{} = out;",
                                input);  // a single restrict pointer, so that the compiler knows that both are the same
            continue;
        }
        parameters += fmt::format(", __global const {0}* restrict in{1}_base, const long in{1}_offset",
                                  cl_type(operand.view.dtype), input);
        arguments += fmt::format(", in{0}_base, in{0}_offset", input);
        if (operand.random != nullptr) {
            parameters += fmt::format(", const long in{}_first", input);
            arguments += fmt::format(", in{}_first", input);
            rows += fmt::format(
                " const long in{0} = ROW_OFFSET({1}) + in{0}_first % D_RANDOM_COUNT; const ulong key{0} = "
                "(ulong)in{0}_base[in{0}_offset], block{0} = (ulong)(in{0}_base[in{0}_offset + 1] + in{0}_first / "
                "D_RANDOM_COUNT);",
                input, i);
            continue;
        }
        rows += fmt::format(" __global const {0}* in{1} = in{1}_base + in{1}_offset + ROW_OFFSET({2});",
                            cl_type(operand.view.dtype), input, i);
    }
    for (std::size_t i = 0; i < plan.numbers.size(); ++i) {
        parameters += fmt::format(", const {} n{}", arithmetic_type(plan.number_types[i]), i);
        arguments += fmt::format(", n{}", i);
    }
    defines.set("INPUT_PARAMETERS", parameters).set("INPUT_ROWS_CODE", rows + random);
    if (std::ranges::any_of(plan.operands, [](const Operand& operand) { return operand.random != nullptr; }))
        defines.set("RANDOM", 1);
    if (forwards_arguments) defines.set("INPUT_ARGUMENTS", arguments);
    return defines;
}

/// @param tile columns of a tile
Kernels generate(const Steps& steps, const ElementwisePlan& plan, const Device& device, KernelStyle style,
                 std::string_view tile) {
    Generated code;
    const std::string result = generate(steps, plan, device, style, 0, steps.nodes.size(), code);
    Defines defines = operand_defines(plan, code.rows, false);
    defines.set("VECTORISE_PRAGMA", vectorise(code, plan, device, style)).set("ELEMENT_CODE", code.body);
    if (!code.tiles.empty()) defines.set("RANDOM_TILE_CODE", code.tiles).set("TILE", tile);
    return {std::move(code), result, std::move(defines)};
}

}  // namespace

KernelSpec elementwise_specification(const Steps& steps, const ElementwisePlan& plan, const Device& device,
                                     KernelStyle style) {
    auto [code, result, defines] = generate(steps, plan, device, style, kTile);
    const View& out = plan.operands[0].view;
    if (out.dtype == DType::boolean) result = stored_truth(result);
    else if (!code.copies) result = code.stored(out.dtype, result);
    code.set_headers(defines);
    if (style == KernelStyle::simt) defines.set("SIMT", 1);
    defines.set("OUT", cl_type(out.dtype)).set("STEP_OUT", step_of(plan.operands[0], 0)).set("RESULT", result);
    return {"elementwise.cl", "elementwise", std::move(defines)};
}

KernelSpec elementwise_reduce_specification(const Steps& steps, const ElementwisePlan& plan, const Device& device,
                                            KernelStyle style, const Defines& reduction) {
    auto [code, result, defines] = generate(steps, plan, device, style, "BLOCK");
    if (steps.nodes.back()->dtype == DType::boolean) result = fmt::format("({}) != 0", result);
    else if (exceeds_type(*steps.nodes.back()) || is_number(*steps.nodes.back()))
        result = code.rounded(steps.nodes.back()->dtype, result);
    code.set_headers(defines);
    defines.set("RESULT", fmt::format("({})({})", cl_type(plan.operands[0].view.dtype), result)).append(reduction);
    return {"elementwise_reduce.cl", "elementwise_reduce", std::move(defines)};
}

KernelSpec formula_specification(const Steps& steps, const ElementwisePlan& plan, const Device& device,
                                 KernelStyle style, std::span<const StoredRole> stored) {
    Generated code;
    std::string scalar_code, parameters, arguments, constant_parameters, constant_arguments;
    std::vector<std::string> names(steps.nodes.size());
    std::vector<DType> roles(kFormulaRoles, DType::boolean);  // only those used; none if unused
    const auto use = [&](std::size_t role, DType dtype) {
        if (roles[role] != DType::boolean) return;
        roles[role] = dtype;
        parameters += fmt::format(", __global {}* restrict r{}", cl_type(dtype), role);
        arguments += fmt::format(", MULTI_TENSOR_POINTER_OF({}, {})", cl_type(dtype), role);
    };
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
        const Node& node = *steps.nodes[at];
        if (node.kind == Node::Kind::view && node.shape.empty()) {
            names[at] = node.view.offset >= formula_tensor_number(0)
                            ? fmt::format("scalars[{} + tensor]", node.view.offset - formula_tensor_number(0))
                            : fmt::format("scalars[{}]", node.view.offset - formula_number(0));
            continue;
        }
        if (node.kind == Node::Kind::view) {
            use(static_cast<std::size_t>(node.view.offset), node.dtype);
            scalar_code += fmt::format(" __global const {}* in{} = r{};", cl_type(node.dtype), steps.operand[at],
                                       node.view.offset);
        }
        require_supported(device, node.dtype);
        generate(steps, plan, false, at, names, code);
        // Values that depend on numbers only are computed once.
        (node.shape.empty() ? scalar_code : code.elements) += std::exchange(code.body, {});
    }
    for (const StoredRole& stored_role : stored) {
        use(stored_role.role, stored_role.dtype);
        code.elements +=
            fmt::format(" r{}[i] = {};", stored_role.role, code.stored(stored_role.dtype, names[stored_role.at]));
    }
    for (std::size_t i = 0; i < plan.numbers.size(); ++i) {
        constant_parameters += fmt::format(", const {} n{}", arithmetic_type(plan.number_types[i]), i);
        constant_arguments += fmt::format(", n{}", i);
    }
    Defines defines = real_defines(real_of(plan));
    for (std::size_t i = 1; i < plan.operands.size(); ++i)
        if (!plan.operands[i].strides.empty()) defines.set(fmt::format("STEP{}", i - 1), 1);
    code.body = code.elements;
    defines.set("RANK", 1)
        .set("OPERANDS", 1)
        .set("FORMULA_SCALAR_CODE", scalar_code)
        .set("FORMULA_ELEMENT_CODE", code.body);
    defines.set("FORMULA_ROLES", parameters).set("FORMULA_POINTERS", arguments);
    defines.set("FORMULA_CONSTANTS", constant_parameters).set("FORMULA_CONSTANT_ARGUMENTS", constant_arguments);
    defines.set("FORMULA_VECTORISE_PRAGMA", vectorise(code, plan, device, style));
    code.set_headers(defines);
    return {"formula.cl", "formula", std::move(defines)};
}

Defines row_defines(const Steps& steps, const ElementwisePlan& plan, const Device& device, KernelStyle style,
                    DType out) {
    Generated prologue, epilogue;
    const std::string element = generate(steps, plan, device, style, 0, steps.before, prologue);
    epilogue.numbers = prologue.numbers;
    std::string result = generate(steps, plan, device, style, steps.before, steps.nodes.size(), epilogue);
    if (result.empty()) result = "result";
    if (out == DType::boolean) result = stored_truth(result);
    else result = epilogue.stored(out, result);
    Defines defines = operand_defines(plan, prologue.rows + epilogue.rows, true);
    if (steps.before > 0)
        defines.set("ROW_PROLOGUE_CODE", prologue.body)
            .set("ROW_PROLOGUE_RESULT", element)
            .set("ROW_PROLOGUE_RANDOM_CODE", prologue.tiles)
            .set("ROW_PROLOGUE_VECTORISE_PRAGMA", vectorise(prologue, plan, device, style));
    defines.set("ROW_EPILOGUE_CODE", epilogue.body)
        .set("ROW_EPILOGUE_RESULT", result)
        .set("ROW_EPILOGUE_RANDOM_CODE", epilogue.tiles);
    defines.set("ROW_EPILOGUE_VECTORISE_PRAGMA", vectorise(epilogue, plan, device, style)).set("OUT", cl_type(out));
    epilogue.reduced_precision = epilogue.reduced_precision || prologue.reduced_precision;
    epilogue.divides = epilogue.divides || prologue.divides;
    epilogue.special = epilogue.special || prologue.special;
    epilogue.set_headers(defines);
    return defines;
}

void append_structure(const Steps& steps, const ElementwisePlan& plan, std::string& key) {
    key += static_cast<char>('0' + plan.sizes.rank());
    for (const Operand& operand : plan.operands) {
        if (operand.stores >= 0) key += {'e', static_cast<char>('0' + operand.stores)};
        if (operand.is_out) key += 'o';
        key += static_cast<char>(operand.step());
        key += static_cast<char>('0' + static_cast<int>(operand.view.dtype));
    }
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
        const Node& node = *steps.nodes[at];
        key += static_cast<char>('a' + static_cast<int>(node.kind));
        key += static_cast<char>('0' + static_cast<int>(node.dtype));
        if (steps.operand[at] >= 0) key += static_cast<char>('0' + steps.operand[at]);
        if (node.kind == Node::Kind::random) key += static_cast<char>('0' + static_cast<int>(node.distribution));
        if (node.kind == Node::Kind::apply || node.kind == Node::Kind::gradient) {
            key += static_cast<char>(static_cast<int>(node.function) + 1);
            key += static_cast<char>('0' + node.input);
        }
        for (const Expression& input : node.inputs)
            key += input ? static_cast<char>('0' + steps.find(input, steps.start_of(at))) : '-';
        key += ';';
    }
}

}  // namespace declivity::ops
