#include "row_fusion.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "in_flight_launch.hpp"
#include "elementwise_plan.hpp"
#include "epilogue.hpp"
#include "fusion.hpp"
#include "lowering.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/sharing.hpp"
#include "lazy_array.hpp"

namespace declivity::ops {
namespace {

using Node = ExpressionNode;
using Kind = Node::Kind;

// Below the limits of an elementwise kernel (expression_node.hpp), since row kernels have further arguments.
constexpr int kMaxRowInputs = 6, kMaxRowNumbers = 10;
constexpr std::int64_t kSimtCachedBytes = 16384;  // bytes of local memory for the rows of a work-group

std::int64_t row_length(const Shape& shape, int inner) {
    std::int64_t n = 1;
    for (int axis = inner; axis < shape.rank(); ++axis) n *= shape[axis];
    return n;
}

/// Returns whether a simt work-group has local memory for its rows. Without it, elements are recomputed at each read.
bool caches_rows(const Device& device, DType dtype, std::int64_t rows, std::int64_t n) {
    const RowGroup group = row_group(rows, n, false, kSimtGroup);
    return group.rows * n <= block_elements(device, dtype, kSimtCachedBytes) - static_cast<std::int64_t>(group.items());
}

/// Elements of a row from which on its functions are worth a loop of their own in simd kernels. Below, the gain of an
/// elementwise kernel, which treats many rows as one, exceeds the cost of storing them (measured on two cores of an AMD
/// Zen 4).
constexpr std::int64_t kMinRow = 48, kMinCostlyRow = 128;

/// Decides when functions before and after a row operator are fused into its kernel.
struct Profitable {
    static bool row(std::int64_t n, bool costly) { return n >= (costly ? kMinCostlyRow : kMinRow); }
    /// simt kernels compute several times what they do not cache.
    static bool prologue(const Device& device, DType dtype, std::int64_t rows, std::int64_t n, bool costly) {
        if (is_simd(device)) return row(n, costly);
        return !costly || caches_rows(device, dtype, rows, n);
    }
    /// f64 exponentials and similar functions are calls that leave no registers on GPUs.
    static bool epilogue(const Device& device, DType dtype, std::int64_t n, bool costly) {
        if (is_simd(device)) return row(n, costly);
        return !costly || dtype != DType::f64;
    }
};

// ---- when the operation is created

/// Expands the expression down to pending operations, and lists those it refers to.
Expression expand_to_operations(const Expression& expression, std::vector<LazyArrayState*>& operations) {
    return with_leaves(expression, [&](const Node& leaf) -> Expression {
        if (leaf.kind != Kind::value) return {};
        LazyArrayState& state = *state_of(leaf.source);
        if (state.computed.load(std::memory_order_acquire)) return Expression(state.view);
        if (!state.is_opaque()) return expand_to_operations(state.expression, operations);
        if (std::ranges::find(operations, &state) == operations.end()) operations.push_back(&state);
        return Expression::operator_result(state.dtype, state.shape);
    });
}

/// Launches the operations below a pending value. Returns false if one of them fuses all that follows it.
bool launch_below(const LazyArrayState& x) {
    std::vector<LazyArrayState*> operations;
    const Epilogue whole = epilogue_of(expand_to_operations(x.expression, operations));
    if (operations.empty()) return true;
    const LazyArrayState& first = *operations.front();
    if (x.dtype != DType::f32 || operations.size() > 1) return false;
    if (first.fuses_epilogue() && first.shape == x.shape && first.dtype == x.dtype) {
        const View like{
            .buffer = {}, .offset = 0, .dtype = x.dtype, .shape = x.shape, .strides = dense_strides(x.shape)};
        if (kernel_epilogue(whole, like, EpilogueTarget::product) ||
            kernel_epilogue(whole, like, EpilogueTarget::convolution))
            return false;
    }
    operations.front()->compute();
    return true;
}

}  // namespace

RowInput row_input(LazyArray x, int inner) {
    LazyArray before_cast;  // before a cast, which then produces the row
    if (is_16bit_float(x.dtype())) {
        before_cast = x;
        x = make_lazy(Expression::cast(before_cast, compute_type(before_cast.dtype())), before_cast.device());
    }
    const auto elements = [&] { return RowInput{dense_copy_if_needed((before_cast ? before_cast : x).view()), {}}; };
    if (x.computed() || !fuses()) return elements();
    declivity::detail::refuse_after_fork("a pending value");
    const std::scoped_lock lock(launch_lock(x.device()));
    compute_older(Expression(x));
    LazyArrayState& state = *state_of(x);
    if (x.computed() || state.is_opaque() || !launch_below(state)) return elements();
    const Measure cost = measure(state.expression);
    const std::int64_t n = row_length(state.shape, inner);
    if (n == 0 || state.shape.numel() == 0 || cost.inputs > kMaxRowInputs || cost.numbers > kMaxRowNumbers ||
        !Profitable::prologue(state.device, state.dtype, state.shape.numel() / n, n, cost.costly))
        return elements();
    return {View(), std::move(x)};
}

// ---- when it is launched

namespace {

/// Handles of the operation and of its views.
constexpr long kHandles = 2;

/// Lowers a pending value to an expression over views; empty if it is computed.
Expression lower_prologue(const LazyArray& pending) {
    if (!pending || pending.computed()) return {};
    const LazyArrayState& state = *state_of(pending);
    LaunchLock& launching = launch_lock(state.device);
    if (state.is_opaque() || Lowering(launching).above_operation(state.expression)) return {};
    const Expression whole = state.expression;  // another thread may compute the value if the lock is yielded
    Expression over = Lowering(launching).run(whole, nullptr);
    return pending.computed() ? Expression() : over;
}

struct Fusion {
    Steps steps;
    ElementwisePlan plan;
};

/// Empty if a row kernel cannot fuse them. @param dtype of the rows
std::optional<Fusion> fusion_of(const Expression& prologue, const Expression& epilogue, const Shape& shape, int inner,
                                DType dtype, const Device& device) {
    if (!prologue && !epilogue) return std::nullopt;
    const Measure before = measure(prologue), behind = measure(epilogue);
    Steps steps = steps_of_rows(prologue, epilogue);
    const int inputs = steps.operand.empty() ? 0 : std::ranges::max(steps.operand) + 1;
    if (inputs > kMaxRowInputs || std::ssize(steps.nodes) > kMaxNodes) return std::nullopt;
    for (const Node* node : steps.nodes)
        if (is_floating(node->dtype) && compute_type(node->dtype) != dtype) return std::nullopt;
    const std::int64_t n = row_length(shape, inner);
    if (prologue && !Profitable::prologue(device, dtype, shape.numel() / n, n, before.costly)) return std::nullopt;
    if (epilogue && !Profitable::epilogue(device, dtype, n, behind.costly)) return std::nullopt;
    ElementwisePlan plan = plan_of(steps, shape, nullptr);
    plan.operands[0].view.dtype = dtype;
    if (plan.numbers.size() > kMaxRowNumbers || !merge_rows(shape, inner, plan)) return std::nullopt;
    return Fusion{std::move(steps), std::move(plan)};
}

/// Registers the operation in flight as a reader of the inputs of its prologue.
class ReadsPrologue {
  public:
    ReadsPrologue(const Device& device, const Expression& prologue)
        : operation_(prologue ? InFlightLaunch::last(launch_lock(device)) : nullptr) {
        if (operation_ != nullptr) operation_->will_read(&prologue);
    }
    ~ReadsPrologue() {
        if (operation_ != nullptr) operation_->will_read(nullptr);
    }
    ReadsPrologue(const ReadsPrologue&) = delete;
    ReadsPrologue& operator=(const ReadsPrologue&) = delete;

  private:
    InFlightLaunch* operation_;
};

/// Launches the kernel without fusion.
void launch_plain(const View& x, const View& out, int inner, const RowKernel& own) {
    const Device device = x.device();
    const std::int64_t n = row_length(x.shape, inner), rows = x.numel() / n;
    const WorkScope work(own.shown_as, work_each(own.flops, x, out));
    std::vector<Argument> first = own.arguments;
    first.insert(first.end(), {Argument(rows), Argument(n)});
    launch_rows({device, {own.file, own.name, own.defines}}, row_grid(device, x.dtype, rows, n), first,
                {x.argument(), out.argument()});
}

/// @param x used without a prologue; @param stored additional output for the prologue's result, if any
void launch_fused(const Fusion& fusion, const View& x, const View& stored, const View& out, DType dtype,
                  const Device& device, const RowKernel& own) {
    const auto& [steps, plan] = fusion;
    const KernelStyle style = kernel_style_of(device);
    const bool simd = style == KernelStyle::simd, prologue = steps.before > 0;
    const std::int64_t n = plan.sizes.back(), rows = plan.sizes.numel() / n;
    const bool cached = !simd && prologue && caches_rows(device, dtype, rows, n);
    const std::string form = fmt::format("{} {} {} {} {} {} {} ", own.name, own.defines.text(), static_cast<int>(style),
                                         steps.before, bool(stored.buffer), cached, static_cast<int>(out.dtype));
    const Kernel kernel = kernel_of_structure(form, steps, plan, device, [&] {
        Defines defines = row_defines(steps, plan, device, style, out.dtype);
        defines.set("FUSED", 1).set("STORE_ROW", stored.buffer ? 1 : 0).set("CACHE_ROW", cached ? 1 : 0);
        return KernelSpec{own.file, own.name, defines.append(own.defines)};
    });
    const RowGrid grid = row_grid(device, dtype, rows, n);
    const auto layout = layout_of(plan);
    std::vector<Argument> first = own.arguments;
    std::pmr::vector<Argument> rest;
    first.insert(first.end(), {Argument(RawArgument{layout.data(), layout.size() * sizeof(std::int64_t)}),
                               Argument(rows), Argument(n)});
    View row;  // for each work-item, padded to a whole vector
    if (simd && (own.needs_row || (prologue && !stored.buffer)))
        row = View::make(device, dtype, {static_cast<std::int64_t>(grid.simd_global[0]), n + vector_lanes(dtype)});
    if (!simd)
        rest.emplace_back(
            LocalMemory{to_size(cached ? row_group(rows, n, false, kernel).rows * n : 1) * size_of(dtype)});
    rest.insert(rest.end(), {Argument(or_else(x, out)), Argument(or_else(stored, out))});
    if (simd) rest.emplace_back(or_else(row, out));
    rest.emplace_back(out.argument());
    append_inputs(plan, rest);
    append_numbers(plan, rest);
    const bool shown = profiling();
    Work work = shown ? work_of(steps, plan, out) : Work{};
    work.flops += own.flops * static_cast<double>(out.numel());
    work.bytes += shown ? (x.buffer ? bytes_of(x) : 0) + (stored.buffer ? bytes_of(stored) : 0) : 0;
    const std::string functions = shown ? fmt::format("{}+{}", own.shown_as, functions_of(steps)) : "";
    const WorkScope scope(functions, work);
    launch_rows(kernel, grid, first, rest);
}

}  // namespace

EpilogueFused launch_row_kernel(const OperationViews& views, int inner, const RowKernel& own) {
    const View& out = views.out(0);
    const LazyArray& pending = views.prologue();
    const DType dtype = pending ? pending.dtype() : views.in(0).dtype;
    const Device device = pending ? pending.device() : views.in(0).device();
    const Expression epilogue = expression_of(views.epilogue());
    if (out.numel() == 0) return EpilogueFused::yes;
    const Expression prologue = lower_prologue(pending);
    const ReadsPrologue reads(device, prologue);
    const bool row_is_shared = prologue && is_shared(pending, kHandles);
    for (const auto& [before, behind] :
         {std::pair{prologue, epilogue}, std::pair{prologue, Expression()}, std::pair{Expression(), epilogue}}) {
        if (!behind && out.dtype != dtype) continue;
        const auto fusion = fusion_of(before, behind, out.shape, inner, dtype, device);
        if (!fusion) continue;
        const View x = before ? View() : pending ? dense_copy_if_needed(pending.view()) : views.in(0);
        View stored;
        if (before && row_is_shared) {
            const ResumedScope of_row(state_of(pending)->scope);
            stored = View::make(device, dtype, out.shape);
        }
        launch_fused(*fusion, x, stored, out, dtype, device, own);
        if (stored.buffer && !pending.computed()) state_of(pending)->computed_as(stored);
        return behind || !epilogue ? EpilogueFused::yes : EpilogueFused::no;
    }
    const View x = pending ? dense_copy_if_needed(pending.view()) : views.in(0);
    if (out.dtype == dtype) {
        launch_plain(x, out, inner, own);
        return EpilogueFused::no;
    }
    const View exact = View::make(device, dtype, out.shape);
    launch_plain(x, exact, inner, own);
    evaluate(with_result(epilogue, exact), out);
    return EpilogueFused::yes;
}

}  // namespace declivity::ops
