// Evaluation of lazy arrays: when they are computed, and how many by one kernel.
#include <declivity/ops/copy.hpp>
#include "runtime/process.hpp"
#include "lazy_array.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>

#include "in_flight_launch.hpp"
#include "expression_node.hpp"
#include "formula.hpp"
#include "fusion.hpp"
#include "lowering.hpp"
#include "operation_state.hpp"
#include "lazy_array_state.hpp"
#include "runtime/environment.hpp"
#include "runtime/capture.hpp"
#include "ops/support/sharing.hpp"

namespace declivity::ops {

void compute_older(const Expression& expression) {
    const std::uint64_t capture = Capture::current_number();
    if (capture == 0) return;
    for_each_value(expression, [&](LazyArrayState& state) {
        if (state.capture != capture) state.compute();
    });
}

void LazyArrayState::computed_as(const View& result) {
    view = result;
    version = view.buffer.version();
    for (const auto& reader : readers)
        if (!reader.expired()) add_reader(view.buffer, reader);
    readers.clear();
    computed.store(true, std::memory_order_release);
    // Destroyed last: they may be the last references to other values.
    const Expression done = std::exchange(expression, {});
    const std::shared_ptr<Operation> launched = std::exchange(operation, {});
    const LazyArray base_array = std::exchange(base, {});
}

void refuse_in_formula() {
    if (const FormulaTrace* const trace = FormulaTrace::current()) FormulaTrace::refuse_elements(trace->name());
}

void LazyArrayState::compute(const std::optional<View>& destination) {
    if (computed.load(std::memory_order_acquire)) return;
    declivity::detail::refuse_after_fork("a pending value");
    LaunchLock& launching = launch_lock(device);
    std::shared_ptr<LazyArrayState> self;  // other threads may release theirs while this thread blocks
    const std::scoped_lock lock(launching);
    if (launching.busy(this)) self = shared_from_this();
    while (launching.wait_for(this)) {
    }
    if (computed.load(std::memory_order_acquire)) return;
    if (placeholder >= 0) {
        refuse_in_formula();
        FormulaTrace::refuse_later();
    }
    InFlightLaunch in_flight(launching, *this);
    if (base) {
        state_of(base)->compute();
        View result = view;
        result.buffer = state_of(base)->view.buffer;
        result.offset += state_of(base)->view.offset;
        return computed_as(result);
    }
    if (operation) {
        if (!destination || output != 0 || !destination->dense()) return (void)operation->run(std::nullopt, {});
        (void)operation->run(destination, {});
        return computed_as(*destination);
    }
    const CaptureScope capture_scope(capture);
    const ResumedScope resumed(scope);
    std::optional<Lowering> lowering(std::in_place, launching);
    const bool strided_destination =
        destination && !destination->dense();  // operations and additional outputs need a dense result
    const Expression lowered = lowering->run(expression, strided_destination ? nullptr : this);
    in_flight.will_read(&lowered);
    if (LazyArrayState* const with = lowering->operation_within())
        return compute_with_epilogue(*with, lowered, destination);
    const std::vector<Lowering::Stored> stored = lowering->take_stored();
    lowering.reset();
    const bool may_reuse = !destination && may_reuse_memory(lowered, dtype, shape);
    if (may_reuse) {
        // The pending values below are released, so that the remaining handles show whether an input is shared; writers
        // find this value as a reader instead.
        if (lowered.node() != expression.node())
            for_each_view(lowered, [&](const View& input) { add_reader(input.buffer, weak_from_this()); });
        const Expression below = std::exchange(expression, lowered);
    }
    std::vector<ExtraOutput> extra_outputs;
    std::vector<LazyArrayState*> created;
    for (const auto& [state, part] : stored) {
        if (state->computed.load(std::memory_order_acquire) || !is_part_of(lowered, part)) continue;
        const ResumedScope of_state(state->scope);
        extra_outputs.push_back({part, View::make(device, state->dtype, state->shape)});
        created.push_back(state.get());
    }
    const std::optional<View> reused =
        may_reuse ? find_donatable_input(lowered, 2, dtype, shape, this)  // one handle here, one in `expression`
                  : std::nullopt;
    const View out = destination ? *destination : reused ? *reused : View::make(device, dtype, shape);
    if (reused) out.buffer.move_to_scope(scope);
    evaluate(lowered, out, extra_outputs);
    if (reused) out.buffer.bump_version();
    for (std::size_t i = 0; i < created.size(); ++i)
        if (!created[i]->computed.load(std::memory_order_acquire)) created[i]->computed_as(extra_outputs[i].to);
    computed_as(out);
}

void LazyArrayState::compute_with_epilogue(LazyArrayState& first, const Expression& epilogue,
                                           const std::optional<View>& destination) {
    const View out = destination ? *destination : View::make(device, dtype, shape);
    if (first.operation->run(out, epilogue_of(epilogue)) == EpilogueFused::no) {
        try {
            apply_epilogue(epilogue_of(epilogue), out);
        } catch (...) {
            first.computed_as(out);  // so that it is not computed again
            throw;
        }
    }
    computed_as(out);
}

bool has_values(const Expression& expression) {
    bool any = false;
    for_each_value(expression, [&](LazyArrayState&) { any = true; });
    return any;
}

bool fits_one_kernel(const Expression& expression) { return fits(measure(expression)); }

bool launch_chain(const LazyArray& value, const std::function<bool(const Expression&)>& launch) {
    if (value.computed()) return false;
    declivity::detail::refuse_after_fork("a pending value");
    LaunchLock& launching = launch_lock(value.device());
    const std::scoped_lock lock(launching);
    const Expression chain(value);
    compute_older(chain);
    if (value.computed() || state_of(value)->is_opaque() || Lowering(launching).above_operation(chain)) return false;
    const Expression lowered = Lowering(launching).run(chain, nullptr);
    InFlightLaunch in_flight(launching, *state_of(value));
    in_flight.will_read(&lowered);
    return lowered.node()->kind != ExpressionNode::Kind::view && launch(lowered);
}

Expression over_views(const Expression& expression) {
    LazyArrayState* any = nullptr;
    for_each_value(expression, [&](LazyArrayState& state) { any = &state; });
    if (any == nullptr) return expression;
    declivity::detail::refuse_after_fork("a pending value");
    LaunchLock& launching = launch_lock(any->device);
    const std::scoped_lock lock(launching);
    compute_older(expression);
    return Lowering(launching).run(expression, nullptr);
}

// ---- LazyArray

namespace {

std::atomic<bool>& fusion() {
    static std::atomic<bool> on{declivity::detail::environment().fusion.get()};
    return on;
}

/// The pending value with the largest expression, or null.
LazyArrayState* largest_within(const Expression& expression) {
    LazyArrayState* largest = nullptr;
    for_each_value(expression, [&](LazyArrayState& state) {
        if (state.computed.load(std::memory_order_acquire) || state.is_opaque()) return;
        if (largest == nullptr || state.measure.nodes > largest->measure.nodes) largest = &state;
    });
    return largest;
}

}  // namespace

bool fuses() { return fusion().load(std::memory_order_relaxed); }

FusionScope::FusionScope(bool on) : before_(fusion().exchange(on)) {}
FusionScope::~FusionScope() { fusion().store(before_); }

LazyArray::LazyArray(const View& view)
    : state_(std::make_shared<LazyArrayState>(view.device(), view.dtype, view.shape)) {
    state_->view = view;
    state_->version = view.buffer.version();
    state_->computed.store(true, std::memory_order_release);
}

LazyArray make_lazy(const Expression& expression, const Device& device) {
    const auto state = std::make_shared<LazyArrayState>(device, expression.dtype(), expression.shape());
    LazyArray value = lazy_array_of(state);
    declivity::detail::refuse_after_fork("an elementwise function");
    // Without pending inputs no shared state is accessed, so no lock is needed.
    std::unique_lock lock(launch_lock(device), std::defer_lock);
    if (has_values(expression)) lock.lock();
    compute_older(expression);
    const bool computes = FormulaTrace::current() == nullptr;
    Measure expression_measure = measure(expression);
    for (LazyArrayState* largest;
         computes && !fits(expression_measure) && (largest = largest_within(expression)) != nullptr;
         expression_measure = measure(expression))
        largest->compute();
    state->expression = expression;
    state->measure = expression_measure;
    if (expression.node()->kind == ExpressionNode::Kind::constant) state->constant = expression.node()->value;
    for_each_view(expression, [](const View& view) { launch_writers(view.buffer); });
    if (computes && (!fuses() || !fits(expression_measure))) {
        state->compute();
        return value;
    }
    if (Capture* const capture = Capture::current()) capture->launch_at_end(state);
    for_each_view(expression, [&](const View& view) { add_reader(view.buffer, state); });
    for_each_value(expression, [&](LazyArrayState& leaf) {
        if (leaf.computed.load(std::memory_order_acquire)) return;
        // The memory that may be written is that of the base.
        LazyArrayState& owner = leaf.base ? *state_of(leaf.base) : leaf;
        if (owner.computed.load(std::memory_order_acquire)) add_reader(owner.view.buffer, state);
        else owner.readers.push_back(state);
    });
    return value;
}

namespace {

/// Layout in the base's memory, which will be dense.
View layout_of(const LazyArrayState& state) {
    if (state.base) return state.view;
    return {
        .buffer = {}, .offset = 0, .dtype = state.dtype, .shape = state.shape, .strides = dense_strides(state.shape)};
}

LazyArray with_layout(const LazyArray& base, const View& layout) {
    auto created = std::make_shared<LazyArrayState>(base.device(), layout.dtype, layout.shape);
    created->base = state_of(base)->base ? state_of(base)->base : base;
    created->view = layout;
    return lazy_array_of(std::move(created));
}

}  // namespace

LazyArray view_of(const LazyArray& x, const std::function<View(const View&)>& change) {
    refuse_in_formula();
    if (x.computed()) return change(x.view());
    declivity::detail::refuse_after_fork("a pending value");
    const std::scoped_lock lock(launch_lock(x.device()));
    return x.computed() ? LazyArray(change(x.view())) : with_layout(x, change(layout_of(*state_of(x))));
}

LazyArray reshaped(const LazyArray& x, const Shape& shape) {
    refuse_in_formula();
    if (!x.computed()) {
        declivity::detail::refuse_after_fork("a pending value");
        const std::scoped_lock lock(launch_lock(x.device()));
        if (!x.computed())
            if (const View layout = layout_of(*state_of(x)); layout.dense())
                return with_layout(x, reshaped(layout, shape));
    }
    return reshaped(dense_copy_if_needed(x.view()), shape);
}

const Shape& LazyArray::shape() const { return state_->shape; }
DType LazyArray::dtype() const { return state_->dtype; }
Device LazyArray::device() const { return state_->device; }
bool LazyArray::computed() const { return state_->computed.load(std::memory_order_acquire); }

bool is_batched(const LazyArray& value) {
    if (value.computed()) return false;
    declivity::detail::refuse_after_fork("a pending value");
    const std::scoped_lock lock(launch_lock(value.device()));
    return state_of(value)->operation && state_of(value)->operation->is_batched();
}

const View& LazyArray::view() const {
    state_->compute();
    launch_writers(state_->view.buffer);
    return state_->view;
}

std::uint64_t capture_of(const LazyArray& value) { return state_of(value)->capture; }

std::uint64_t first_version(const LazyArray& value) {
    state_of(value)->compute();
    return state_of(value)->version;
}

void evaluate_into(std::string_view function, LazyArray value, const View& destination) {
    require_shape(function, "the value", value.shape(), destination.shape);
    require_alike(function, "the value", value.dtype(), value.device(), "the destination", destination.dtype,
                  destination.device());
    launch_writers(destination.buffer);
    launch_readers(destination.buffer);
    const BufferWrite write(destination.buffer);  // also if a following step fails
    if (!is_shared(value)) state_of(value)->compute(destination);
    copy(value.view(), destination);  // does nothing if the elements are there already
}

}  // namespace declivity::ops
