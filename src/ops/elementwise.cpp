// Makes kernels from expressions and launches them. The frame of the kernel is cl_kernels/elementwise.cl; what stands
// here is the signature, one block of arithmetic a node, and how the index space is cut.
#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include <declivity/ops/expression.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "expression_node.hpp"
#include "index_space.hpp"
#include "permute.hpp"
#include "vector_form.hpp"

namespace declivity::ops {
namespace {

using Node = Expression::Node;

constexpr int kMaxInputs = 8;
constexpr std::size_t kKernelCopy = 1 << 20;  // bytes of a copy that are worth a kernel on CPU-like devices
constexpr std::int64_t kCpuChunk = 8192;  // elements a work-item loops over on CPU-like devices: long enough to hide its start
constexpr std::size_t kGpuGroup = 256;
constexpr std::int64_t kMostGroups = 65535;  // in the second dimension: more, and some GPUs refuse the launch

/// How an operand's innermost axis runs: the kernel is compiled for it.
enum class Step : char { repeat = '0', next = '1', strided = 's' };

struct Operand {
    View view;
    Strides strides;     // over the merged axes
    bool is_out = false; // an input that is the output itself
    [[nodiscard]] Step step() const {
        const std::int64_t inner = strides.empty() ? 0 : strides.back();
        return inner == 0 ? Step::repeat : inner == 1 ? Step::next : Step::strided;
    }
};

/// The index space and its operands: output first.
struct Plan {
    Shape sizes;
    std::vector<Operand> operands;
    std::vector<double> numbers;        // constants and parameters, in order of appearance
    std::vector<DType> number_types;
};

bool same_elements(const View& a, const View& b) {
    return a.buffer == b.buffer && a.offset == b.offset && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

View dense_copy(const View& view) {
    View out = View::make(view.device(), view.dtype, view.shape);
    copy(view, out);
    return out;
}

void collect(const Expression& expression, const View& out, Plan& plan) {
    if (!expression) return;
    const Node& node = *expression.node();
    switch (node.kind) {
        case Node::Kind::view: {
            View view = expanded("elementwise", node.view, out.shape);
            const bool is_out = same_elements(view, out);
            // Elements that another work-item overwrites must be read before.
            if (!is_out && may_overlap(view, out)) view = expanded("elementwise", dense_copy(node.view), out.shape);
            plan.operands.push_back({view, view.strides, is_out});
            break;
        }
        case Node::Kind::operator_result:
            throw ValueError("evaluate: an expression with operator_result() serves only as an Epilogue");
        case Node::Kind::constant:
            plan.numbers.push_back(node.value);
            plan.number_types.push_back(node.dtype);
            break;
        default:
            for (const Expression& input : node.inputs) collect(input, out, plan);
            for (const double parameter : node.parameters) {
                plan.numbers.push_back(parameter);
                plan.number_types.push_back(compute_type(working_type(node)));
            }
    }
}

void merge(const Shape& shape, Plan& plan) {
    IndexSpace space{shape, {}};
    for (const Operand& operand : plan.operands) space.strides.push_back(operand.strides);
    space = merge_axes(space);
    plan.sizes = space.sizes;
    for (std::size_t i = 0; i < plan.operands.size(); ++i) plan.operands[i].strides = space.strides[i];
    // An output of one element still is written, not repeated.
    if (plan.operands[0].strides.back() == 0) plan.operands[0].strides[plan.sizes.rank() - 1] = 1;
}

// ---- generation

struct Generated {
    std::string body;
    int values = 0, inputs = 0, numbers = 0;
    bool copies = false;  // elements go from memory to memory, with all their bits
    bool halves = false;  // cl_kernels/storage.clh is needed

    /// An element of a half type as the float to compute with, and a float as such an element.
    std::string loaded(DType type, const std::string& element) { return is_half(type) ? called("from", type, element) : element; }
    std::string stored(DType type, const std::string& value) { return is_half(type) ? called("to", type, value) : value; }

  private:
    std::string called(std::string_view way, DType type, const std::string& value) {
        halves = true;
        return fmt::format("{}_{}({})", way, name_of(type), value);
    }
};

/// What values of a type are called in arithmetic.
std::string_view arithmetic_type(DType type) { return cl_type(compute_type(type)); }

/// Table text with the literals C(...) and the type T of this node filled in.
std::string specialise(std::string_view text, DType type) {
    std::string out;
    const std::string literal = fmt::format("C_{}(", arithmetic_type(type));
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool starts_word = i == 0 || (std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0 && text[i - 1] != '_');
        if (starts_word && text.substr(i, 2) == "C(") {
            out += literal;
            ++i;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// A value of another type, named `from`, converted.
std::string converted(const std::string& from, DType from_type, DType to) {
    const std::string_view type = arithmetic_type(to);
    if (to == DType::boolean) return fmt::format("{} != 0", from);
    // What C leaves open, numbers that the integer cannot hold, is settled: the nearest it can hold, 0 for NaN (which
    // OpenCL asks of convert_sat too, but not every implementation gives).
    if (is_floating(from_type) && !is_floating(to)) return fmt::format("{1} == {1} ? convert_{0}_sat({1}) : 0", type, from);
    // Rounding to f32 first could end on the wrong side of a tie.
    if (from_type == DType::f64 && is_half(to)) return fmt::format("narrow_to_odd({})", from);
    return fmt::format("({})({})", type, from);
}

/// Emits the statements of a node and gives the name of its value.
std::string generate(const Expression& expression, Generated& code, bool root = false) {
    const Node& node = *expression.node();
    const std::string_view type = arithmetic_type(node.dtype);
    if (node.kind == Node::Kind::view) {
        code.copies = root;
        const std::string element = fmt::format("in{0}[i * STEP{0}]", code.inputs++);
        return root ? element : code.loaded(node.dtype, element);
    }
    if (node.kind == Node::Kind::constant) return fmt::format("n{}", code.numbers++);
    std::vector<std::string> names;
    for (const Expression& input : node.inputs) names.push_back(input ? generate(input, code) : "");
    const int value = code.values++;
    if (node.kind == Node::Kind::cast) {
        // The result is rounded when it is stored, anything between as if it were.
        const std::string text = converted(names[0], node.inputs[0].dtype(), node.dtype);
        code.body += fmt::format(" const {} v{} = {};", type, value, root ? text : code.loaded(node.dtype, code.stored(node.dtype, text)));
        return fmt::format("v{}", value);
    }
    const FunctionInfo& row = info(node.function);
    const bool gradient = node.kind == Node::Kind::gradient;
    code.body += fmt::format(" {} v{}; {{", type, value);
    const auto local = [&](char name, std::size_t index) {
        if (node.inputs[index]) code.body += fmt::format(" const {} {} = {};", arithmetic_type(node.inputs[index].dtype()), name, names[index]);
    };
    const std::size_t first = gradient ? 1 : 0;
    if (gradient) local('g', 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(row.inputs); ++i)
        local(row.inputs == 1 ? 'x' : static_cast<char>('a' + i), first + i);
    if (gradient) local('y', node.inputs.size() - 1);
    for (std::size_t i = 0; i < node.parameters.size(); ++i)
        code.body += fmt::format(" const {} {} = n{};", arithmetic_type(working_type(node)), static_cast<char>('p' + i), code.numbers++);
    const std::string_view text = gradient ? row.gradient[static_cast<std::size_t>(node.input)] : row.value;
    code.body += fmt::format(" v{} = {}; }}", value, specialise(text, working_type(node)));
    return fmt::format("v{}", value);
}

/// The floating type whose vector maths the kernel uses; float when there is none.
DType real_of(const Plan& plan) {
    for (const Operand& operand : plan.operands)
        if (operand.view.dtype == DType::f64) return DType::f64;
    return DType::f32;
}

/// Compilers choose half of the device's vectors for loops, which suits loops that wait for memory, not maths.
std::string vectorise(const Generated& code, const Plan& plan, const Device& device) {
    // f64 maths are calls, of which no compiler makes vectors.
    const bool maths = code.body.find("d_") != std::string::npos && real_of(plan) == DType::f32;
    if (!maths || device.family() != Family::cpu_like) return {};
    return fmt::format("_Pragma(\"clang loop vectorize_width({})\")", vector_form(device, DType::f32).vector);
}

KernelSpec specification(const Expression& expression, const Plan& plan, const Device& device) {
    Generated code;
    std::string result = generate(expression, code, true);
    const View& out = plan.operands[0].view;
    if (out.dtype == DType::boolean) result = fmt::format("({}) != 0", result);
    else if (!code.copies) result = code.stored(out.dtype, result);
    Defines defines = real_defines(real_of(plan));
    if (code.halves) defines.set("HALVES", 1);
    defines.set("RANK", plan.sizes.rank()).set("OPERANDS", static_cast<std::int64_t>(plan.operands.size()));
    defines.set("OUT", cl_type(out.dtype));
    std::string parameters, rows;
    const auto step = [](const Operand& operand, std::size_t index) {
        return operand.step() == Step::strided ? fmt::format("layout.stride[{}][RANK - 1]", index) : std::string(1, static_cast<char>(operand.step()));
    };
    defines.set("STEP_OUT", step(plan.operands[0], 0));
    for (std::size_t i = 1; i < plan.operands.size(); ++i) {
        const Operand& operand = plan.operands[i];
        const std::size_t input = i - 1;
        defines.set(fmt::format("STEP{}", input), step(operand, i));
        if (operand.is_out) {
            rows += fmt::format(" __global const OUT* in{} = out;", input);  // one restrict pointer: the compiler knows they are one
            continue;
        }
        parameters += fmt::format(", __global const {0}* restrict in{1}_base, const long in{1}_offset", cl_type(operand.view.dtype), input);
        rows += fmt::format(" __global const {0}* in{1} = in{1}_base + in{1}_offset + ROW_OFFSET({2});", cl_type(operand.view.dtype), input, i);
    }
    for (std::size_t i = 0; i < plan.numbers.size(); ++i) parameters += fmt::format(", const {} n{}", arithmetic_type(plan.number_types[i]), i);
    defines.set("VECTORISE", vectorise(code, plan, device));
    defines.set("INPUT_PARAMETERS", parameters).set("INPUT_ROWS", rows).set("BODY", code.body);
    defines.set("RESULT", result);
    return {"elementwise.cl", "elementwise", std::move(defines)};
}

void add_structure(const Expression& expression, std::string& key) {
    if (!expression) {
        key += '-';
        return;
    }
    const Node& node = *expression.node();
    key += static_cast<char>('a' + static_cast<int>(node.kind));
    key += static_cast<char>('0' + static_cast<int>(node.dtype));
    key += static_cast<char>(static_cast<int>(node.function) + 1);
    key += static_cast<char>('0' + node.input);
    for (const Expression& input : node.inputs) add_structure(input, key);
}

/// Kernels by structure: text is generated once, later calls find the kernel by a short key.
Kernel kernel_for(const Expression& expression, const Plan& plan, const Device& device) {
    static auto* mutex = new std::mutex;
    static auto* kernels = new std::unordered_map<std::string, Kernel>;
    const auto* address = &device.state();
    std::string key(reinterpret_cast<const char*>(&address), sizeof address);
    key += static_cast<char>('0' + plan.sizes.rank());
    for (const Operand& operand : plan.operands) {
        key += operand.is_out ? 'o' : static_cast<char>(operand.step());
        key += static_cast<char>('0' + static_cast<int>(operand.view.dtype));
    }
    add_structure(expression, key);
    {
        const std::scoped_lock lock(*mutex);
        if (const auto found = kernels->find(key); found != kernels->end()) return found->second;
    }
    Kernel kernel(device, specification(expression, plan, device));
    const std::scoped_lock lock(*mutex);
    return kernels->emplace(std::move(key), std::move(kernel)).first->second;
}

// ---- launch

/// As the struct Layout of the kernel: sizes, then strides of each operand.
std::vector<std::int64_t> layout_of(const Plan& plan) {
    std::vector<std::int64_t> layout(static_cast<std::size_t>(Dims::kMaxRank) * (1 + plan.operands.size()), 0);
    for (int axis = 0; axis < plan.sizes.rank(); ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        layout[at] = plan.sizes[axis];
        for (std::size_t i = 0; i < plan.operands.size(); ++i)
            layout[(i + 1) * Dims::kMaxRank + at] = plan.operands[i].strides[axis];
    }
    return layout;
}

struct Number {
    alignas(8) std::array<std::byte, 8> bytes;
    std::size_t size;
};

/// As it lies in memory. @param value fits the type, see require_fits
Number element(double value, DType type) {
    Number out{};
    const auto put = [&](auto converted) {
        std::copy_n(reinterpret_cast<const std::byte*>(&converted), sizeof converted, out.bytes.begin());
        out.size = sizeof converted;
    };
    switch (type) {
        case DType::f32: put(static_cast<float>(value)); break;
        case DType::f64: put(value); break;
        case DType::i8: put(static_cast<std::int8_t>(value)); break;
        case DType::u8: put(static_cast<std::uint8_t>(value)); break;
        case DType::boolean: put(static_cast<std::uint8_t>(value != 0)); break;
        case DType::i32: put(static_cast<std::int32_t>(value)); break;
        case DType::i64: put(static_cast<std::int64_t>(value)); break;
        case DType::f16: put(float16(value)); break;
        case DType::bf16: put(bfloat16(value)); break;
    }
    return out;
}

/// The same number as a kernel's argument.
Number number(double value, DType type) {
    if (type == DType::f16) return element(float16(value), DType::f32);
    if (type == DType::bf16) return element(bfloat16(value), DType::f32);
    return element(value, type);
}

}  // namespace

void evaluate(const Expression& expression, const View& out) {
    if (expression.dtype() != out.dtype)
        throw TypeError(fmt::format("evaluate: wants an output of type {}, got {}", name_of(expression.dtype()), name_of(out.dtype)));
    if (out.numel() == 0) return;
    for (int axis = 0; axis < out.rank(); ++axis)
        if (out.shape[axis] != 1 && out.strides[axis] == 0)
            throw ShapeError(fmt::format("evaluate: wants an output each of whose elements lies in one place, got shape {} with strides {} "
                                         "(write to a clone() of an expanded tensor)", out.shape.str(), out.strides.str()));
    if (const Node& node = *expression.node(); node.kind == Node::Kind::view) {
        require_same_device("evaluate", out, node.view);
        if (const View from = expanded("elementwise", node.view, out.shape); !may_overlap(from, out) && permuted_copy(from, out)) return;
    }
    Plan plan;
    plan.operands.push_back({out, out.strides});
    collect(expression, out, plan);
    if (plan.operands.size() > kMaxInputs + 1)
        throw Unsupported(fmt::format("evaluate: wants an expression of at most {} inputs, got {}", kMaxInputs, plan.operands.size() - 1));
    for (std::size_t i = 1; i < plan.operands.size(); ++i) require_same_device("evaluate", out, plan.operands[i].view);
    merge(out.shape, plan);

    const Device device = out.device();
    const Kernel kernel = kernel_for(expression, plan, device);
    const std::int64_t columns = plan.sizes.back();
    const std::int64_t rows = plan.sizes.numel() / columns;
    const bool cpu = device.family() == Family::cpu_like;
    const std::int64_t chunk = cpu ? std::min(columns, kCpuChunk) : 1;
    std::int64_t rows_each = cpu ? std::max<std::int64_t>(1, kCpuChunk / columns) : 1;
    Range range;
    range.global = {static_cast<std::size_t>(ceil_div(columns, chunk)), static_cast<std::size_t>(ceil_div(rows, rows_each)), 1};
    range.local = {1, 1, 1};
    if (!cpu) {
        // Short rows share a group, so that few work-items idle behind the end of a row.
        std::size_t wide = 1;
        const std::size_t group = std::min(kGpuGroup, kernel.max_work_group());
        while (wide * 2 <= group && wide < static_cast<std::size_t>(columns)) wide *= 2;
        std::size_t tall = 1;
        while (wide * tall * 2 <= group && tall < static_cast<std::size_t>(rows)) tall *= 2;
        range.local = {wide, tall, 1};
        rows_each = ceil_div(rows, static_cast<std::int64_t>(tall) * kMostGroups);
        range.global = {round_up(range.global[0], wide), round_up(static_cast<std::size_t>(ceil_div(rows, rows_each)), tall), 1};
    }
    const auto layout = layout_of(plan);
    const auto chunk_argument = static_cast<std::int32_t>(chunk);
    std::vector<BufferArgument> buffers;
    for (const Operand& operand : plan.operands) buffers.push_back({&operand.view.buffer, operand.view.offset, size_of(operand.view.dtype)});
    std::vector<Number> numbers;
    for (std::size_t i = 0; i < plan.numbers.size(); ++i) numbers.push_back(number(plan.numbers[i], plan.number_types[i]));

    std::vector<Argument> arguments{RawArgument{layout.data(), layout.size() * sizeof(std::int64_t)}, rows, columns, rows_each,
                                    chunk_argument, buffers[0]};
    for (std::size_t i = 1; i < buffers.size(); ++i)
        if (!plan.operands[i].is_out) arguments.emplace_back(buffers[i]);
    for (const Number& one : numbers) arguments.emplace_back(RawArgument{one.bytes.data(), one.size});
    launch(kernel, range, std::span<const Argument>(arguments));
}

View evaluate(const Expression& expression, const Device& device) {
    View out = View::make(device, expression.dtype(), expression.shape());
    evaluate(expression, out);
    return out;
}

void copy(const View& from, const View& to) {
    require_shape("copy", "the source", from, to.shape);
    require_alike("copy", "source", from, "destination", to);
    if (from.numel() == 0 || same_elements(from, to)) return;
    if (from.dense() && to.dense()) {
        if (may_overlap(from, to)) return copy(dense_copy(from), to);
        // A CPU driver copies by one core, a kernel by all.
        if (from.device().family() == Family::cpu_like && from.bytes() >= kKernelCopy) return evaluate(Expression(from), to);
        const std::size_t unit = size_of(from.dtype);
        declivity::copy(from.buffer, static_cast<std::size_t>(from.offset) * unit, to.buffer, static_cast<std::size_t>(to.offset) * unit, from.bytes());
        return;
    }
    evaluate(Expression(from), to);
}

View dense_copy_if_needed(const View& view) {
    return view.dense() ? view : dense_copy(view);
}

void fill(const View& view, double value) {
    require_fits("fill", value, view.dtype);
    const Number pattern = element(value, view.dtype);
    if (view.dense()) {
        declivity::fill(view.buffer, static_cast<std::size_t>(view.offset) * pattern.size, view.bytes(), std::span(pattern.bytes).first(pattern.size));
        return;
    }
    evaluate(Expression::constant(value, view.dtype), view);
}

namespace {
Expression with_result(const Expression& expression, const View& result) {
    if (!expression) return expression;
    const Node& node = *expression.node();
    if (node.kind == Node::Kind::operator_result) return Expression(result);
    if (node.kind == Node::Kind::cast) return Expression::cast(with_result(node.inputs[0], result), node.dtype);
    std::vector<Expression> inputs;
    for (const Expression& input : node.inputs) inputs.push_back(with_result(input, result));
    if (node.kind == Node::Kind::gradient)
        return Expression::gradient(node.function, node.input, inputs.front(), std::span(inputs).subspan(1, inputs.size() - 2), inputs.back(), node.parameters);
    if (node.kind != Node::Kind::apply) return expression;
    return Expression::apply(node.function, inputs, node.parameters);
}
}  // namespace

void apply_epilogue(const Epilogue& epilogue, const View& out) {
    if (epilogue.tail) evaluate(with_result(epilogue.tail, out), out);
}

}  // namespace declivity::ops
