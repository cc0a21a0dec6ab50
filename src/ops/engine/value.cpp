// When values are computed, and how many of them by one kernel.
#include <declivity/ops/value.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/per_thread.hpp>
#include <declivity/runtime/recording.hpp>
#include <declivity/runtime/scope.hpp>

#include "expression_node.hpp"
#include "fusion.hpp"
#include "partial_sums.hpp"
#include "runtime/environment.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {

using Node = Expression::Node;
using Kind = Node::Kind;

namespace {

/// What an expression costs, values within it that are not computed included. Counted as if nothing were shared.
struct Measure {
    int inputs = 0, nodes = 0, numbers = 0;
    bool costly = false;  // functions such as exp, more expensive than to store their result

    Measure& operator+=(const Measure& other) {
        inputs += other.inputs;
        nodes += other.nodes;
        numbers += other.numbers;
        costly = costly || other.costly;
        return *this;
    }
};

}  // namespace

std::recursive_mutex& values_mutex() {
    static auto* mutex = new std::recursive_mutex;
    return *mutex;
}

struct Value::State final : PendingLaunch, std::enable_shared_from_this<Value::State> {
    State(const Device& on, DType type, const Shape& size) : device(on), dtype(type), shape(size) {}

    const Device device;
    const DType dtype;
    const Shape shape;
    const std::string scope = Scope::path();  // of the call, for errors
    const std::uint64_t recorder =
        Recorder::current_number();  // that was at work when it was made; what is older is no part of a recording
    std::atomic<bool> computed{false};
    View view = {};                       // when computed
    std::uint64_t version = 0;            // of its memory, then
    Expression expression = {};           // until then
    OperatorLaunch operator_launch = {};  // or this
    std::optional<View> partials = {};    // whose sum it is, which can be launched together with others
    Measure measure = {};                 // of the expression
    bool inlined = false;                 // a kernel computed it without storing it
    std::vector<std::weak_ptr<PendingLaunch>> readers =
        {};  // values to be made from it, until it has memory that knows them

    [[nodiscard]] bool is_operator() const { return operator_launch != nullptr; }
    void launch() override { compute(); }
    [[nodiscard]] bool pending() const noexcept override { return !computed.load(std::memory_order_acquire); }
    void compute();

  private:
    void compute_sums();
    void computed_as(const View& result) {
        view = result;
        version = view.buffer.version();
        for (const auto& reader : readers)
            if (!reader.expired()) view.buffer.add_reader(reader);
        readers.clear();
        computed.store(true, std::memory_order_release);
        // Destroyed last: they may be all that is left of other values.
        const Expression done = std::exchange(expression, {});
        const OperatorLaunch launched = std::exchange(operator_launch, {});
        const std::optional<View> summed = std::exchange(partials, {});
    }
};

namespace {

Measure measure(const Expression& expression) {
    if (!expression) return {};
    const Node& node = *expression.node();
    switch (node.kind) {
        case Kind::view:
            return {.inputs = 1};
        case Kind::value: {
            const Value::State& state = *node.source.state();
            return state.computed.load(std::memory_order_acquire) || state.is_operator() ? Measure{.inputs = 1}
                                                                                         : state.measure;
        }
        case Kind::constant:
            return {.numbers = 1};
        case Kind::operator_result:
            return {.inputs = 1};
        case Kind::random:
            return {.inputs = 1,
                    .nodes = 1,
                    .numbers = static_cast<int>(node.parameters.size()) + 1,
                    .costly = true};  // its first block is a number
        default:
            break;
    }
    Measure all{.nodes = 1, .numbers = static_cast<int>(node.parameters.size())};
    for (const Expression& input : node.inputs) all += measure(input);
    const auto costs = [](std::string_view text) { return text.find("d_") != std::string_view::npos; };
    if (node.kind == Kind::apply) all.costly = all.costly || costs(info(node.function).value);
    if (node.kind == Kind::gradient)
        all.costly = all.costly || costs(info(node.function).gradient[static_cast<std::size_t>(node.input)]);
    return all;
}

bool fits(const Measure& measure) {
    return measure.inputs <= kMostInputs && measure.nodes <= kMostNodes && measure.numbers <= kMostNumbers;
}

/// Calls visit(state) for each leaf of the expression itself that is a value.
template <class Visit>
void for_each_value(const Expression& expression, Visit&& visit) {
    if (!expression) return;
    const Node& node = *expression.node();
    if (node.kind == Kind::value) visit(*node.source.state());
    for (const Expression& input : node.inputs) for_each_value(input, visit);
}

template <class Visit>
void for_each_view(const Expression& expression, Visit&& visit) {
    if (!expression) return;
    const Node& node = *expression.node();
    if (node.kind == Kind::view) visit(node.view);
    if (node.kind == Kind::value && node.source.computed()) visit(node.source.view());
    for (const Expression& input : node.inputs) for_each_view(input, visit);
}

/// Values from before a recording are not for its kernels to compute, over and over.
void compute_older(const Expression& expression) {
    const std::uint64_t recorder = Recorder::current_number();
    if (recorder == 0) return;
    for_each_value(expression, [&](Value::State& state) {
        if (state.recorder != recorder) state.compute();
    });
}

/// Makes an expression one over views, and perhaps the result of one operator that is not launched yet.
class Lowering {
  public:
    /// @param result as what the whole is stored: an operator may take the rest as its epilogue, and the kernel may
    /// store what is on the way. Null: none may
    Expression run(const Expression& expression, const Value::State* result) {
        while (!settle_operators(expression, result)) references_.clear(), seen_.clear();
        result_ = result;
        room_ = std::clamp(kMostInputs - measure(expression).inputs, 0, static_cast<int>(kMostAlso));
        return lower(expression);
    }

    /// A value that the kernel is to store on the way.
    struct Stored {
        std::shared_ptr<Value::State> state;
        Expression lowered;
    };
    [[nodiscard]] const std::vector<Stored>& stored() const { return stored_; }

    /// Whether the result of an operator that is not launched is below.
    bool above_operator(const Expression& expression) { return gather(expression); }

    /// The operator whose result the expression mentions, or null.
    [[nodiscard]] Value::State* operator_within() const { return operator_; }

  private:
    /// Of a value that is not computed: how often what is to become one kernel refers to it.
    struct Reference {
        Value::State* state;
        long count;
        bool below_operator;  // it is made from the result of an operator
    };

    Reference* find(const Value::State* state) {
        const auto found = std::ranges::find(references_, state, &Reference::state);
        return found == references_.end() ? nullptr : &*found;
    }

    /// Somebody beside this kernel refers to it.
    bool is_shared(const Reference& reference) const {
        return reference.state->weak_from_this().use_count() > reference.count;
    }

    /// Counts references, of what is below first. @return whether the result of an operator is among them
    bool gather(const Expression& expression) {
        if (!expression) return false;
        const Node& node = *expression.node();
        for (const auto& [seen, below] : seen_)
            if (seen == &node) return below;
        bool below = false;
        if (node.kind == Kind::value && !node.source.computed()) {
            Value::State& state = *node.source.state();
            if (Reference* known = find(&state)) {
                ++known->count;
                below = known->below_operator;
            } else {
                below = state.is_operator() || gather(state.expression);
                references_.push_back({&state, 1, below});
            }
        }
        for (const Expression& input : node.inputs) below = gather(input) || below;
        seen_.emplace_back(&node, below);
        return below;
    }

    /// Launches operators that cannot take what follows as their epilogue. False: something was computed, so that all
    /// is to be looked at anew.
    bool settle_operators(const Expression& expression, const Value::State* result) {
        gather(expression);
        Value::State* first = nullptr;
        int operators = 0;
        for (const Reference& reference : references_) {
            if (!reference.below_operator) continue;
            const Value::State& state = *reference.state;
            const bool fits = result != nullptr && state.shape == result->shape && state.dtype == result->dtype;
            // Where others want what lies between the operator and here, that is where its epilogue ends.
            if (is_shared(reference) || (state.is_operator() && !fits)) {
                reference.state->compute();
                return false;
            }
            if (!state.is_operator()) continue;
            if (++operators == 1) first = reference.state;
        }
        if (operators > 1) {
            first->compute();
            return false;
        }
        operator_ = first;
        return true;
    }

    static Expression computed(Value::State& state) {
        state.compute();
        return Expression(state.view);
    }

    Expression lower(const Expression& expression) {
        if (!expression) return {};
        for (const auto& [from, to] : nodes_)
            if (from == expression.node().get()) return to;
        const Node& node = *expression.node();
        const Expression made = node.kind == Kind::value ? lower(*node.source.state()) : lower(expression, node);
        nodes_.emplace_back(&node, made);
        return made;
    }

    Expression lower(const Expression& expression, const Node& node) {
        std::vector<Expression> inputs;
        bool changed = false;
        for (const Expression& input : node.inputs) {
            // Small values that stretch would be computed over and over.
            const bool stretches = input && input.node()->kind == Kind::value && !(input.shape() == node.shape);
            inputs.push_back(stretches ? computed(*input.node()->source.state()) : lower(input));
            changed = changed || inputs.back().node() != input.node();
        }
        return changed ? with_inputs(node, std::move(inputs)) : expression;
    }

    Expression lower(Value::State& state) {
        for (const auto& [from, to] : values_)
            if (from == &state) return to;
        const Expression made = inlined(state);
        values_.emplace_back(&state, made);
        return made;
    }

    Expression inlined(Value::State& state) {
        if (state.computed.load(std::memory_order_acquire)) return Expression(state.view);
        if (&state == operator_) return Expression::operator_result(state.dtype, state.shape);
        // Who else refers to it will perhaps never ask for it: then it need not be stored. But two kernels that compute
        // it are one too many.
        const bool store = is_shared(*find(&state)) && (state.inlined || state.measure.costly);
        const bool has_room =
            result_ != nullptr && operator_ == nullptr && std::ssize(stored_) < room_ && state.shape == result_->shape;
        if (store && !has_room) return computed(state);
        state.inlined = true;
        Expression made = lower(state.expression);
        if (store && std::ssize(stored_) == room_) return computed(state);  // what it is made from took the room
        if (store) stored_.push_back({state.shared_from_this(), made});
        return made;
    }

    std::vector<Reference> references_;
    std::vector<std::pair<const Node*, bool>> seen_;  // with whether the result of an operator is below
    std::vector<std::pair<const Node*, Expression>> nodes_;
    std::vector<std::pair<const Value::State*, Expression>> values_;
    Value::State* operator_ = nullptr;
    const Value::State* result_ = nullptr;
    int room_ = 0;
    std::vector<Stored> stored_;
};

}  // namespace

void Value::State::compute() {
    if (computed.load(std::memory_order_acquire)) return;
    declivity::detail::refuse_after_fork("a value that waits");
    const std::scoped_lock lock(values_mutex());
    if (computed.load(std::memory_order_acquire)) return;
    const RecordingOf recording(recorder);
    if (partials) return compute_sums();
    const ResumedScope resumed(scope);
    if (is_operator()) {
        const View out = View::make(device, dtype, shape);
        operator_launch(out, {});
        return computed_as(out);
    }
    std::optional<Lowering> lowering(std::in_place);
    Expression lowered = lowering->run(expression, this);
    if (const State* with = lowering->operator_within()) {
        const View out = View::make(device, dtype, shape);
        const ResumedScope of_operator(with->scope);
        with->operator_launch(out, {lowered});
        return computed_as(out);
    }
    const std::vector<Lowering::Stored> stored = lowering->stored();
    lowering.reset();
    if (may_reuse_memory(lowered, dtype, shape)) {
        // What waited below goes, so that the handles that are left tell who else is there; whoever writes finds this
        // value in its place.
        if (lowered.node() != expression.node())
            for_each_view(lowered, [&](const View& input) { input.buffer.add_reader(weak_from_this()); });
        const Expression below = std::exchange(expression, lowered);
    }
    std::vector<AlsoStored> also;
    std::vector<State*> made;
    for (const auto& [state, part] : stored) {
        if (state->computed.load(std::memory_order_acquire) || !is_part_of(lowered, part)) continue;
        const ResumedScope of_state(state->scope);
        also.push_back({part, View::make(device, state->dtype, state->shape)});
        made.push_back(state.get());
    }
    const std::optional<View> reused =
        memory_to_reuse(lowered, 2, dtype, shape, this);  // one handle here, one in `expression`
    const View out = reused ? *reused : View::make(device, dtype, shape);
    if (reused) out.buffer.move_to_scope(scope);
    evaluate(lowered, out, also);
    if (reused) out.buffer.mark_written();
    for (std::size_t i = 0; i < made.size(); ++i) made[i]->computed_as(also[i].to);
    computed_as(out);
}

namespace {

/// The sums of this thread that wait for company.
std::vector<std::weak_ptr<Value::State>>& waiting_sums() {
    return declivity::detail::PerThread<std::vector<std::weak_ptr<Value::State>>, PartialSum>::get();
}

}  // namespace

void Value::State::compute_sums() {
    std::vector<std::shared_ptr<State>> all{shared_from_this()};
    auto& waiting = waiting_sums();
    std::erase_if(waiting, [](const auto& one) { return one.expired(); });
    for (const auto& one : waiting)
        if (auto other = one.lock(); other && other.get() != this && other->partials && other->dtype == dtype &&
                                     other->device == device && other->recorder == recorder)
            all.push_back(std::move(other));
    std::vector<PartialSum> sums;
    for (const auto& one : all) {
        const ResumedScope resumed(one->scope);  // whose memory it is
        sums.push_back({*one->partials, View::make(device, dtype, one->shape)});
    }
    add_up(sums, family_of(device));
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->computed_as(sums[i].result);
    std::erase_if(waiting, [](const auto& one) {
        const auto other = one.lock();
        return !other || !other->partials;
    });
}

bool fits_one_kernel(const Expression& expression) { return fits(measure(expression)); }

bool launch_chain(const Value& value, const std::function<bool(const Expression&)>& launch) {
    if (value.computed()) return false;
    declivity::detail::refuse_after_fork("a value that waits");
    const std::scoped_lock lock(values_mutex());
    const Expression whole(value);
    compute_older(whole);
    if (value.computed() || value.state()->is_operator() || Lowering().above_operator(whole)) return false;
    const Expression lowered = Lowering().run(whole, nullptr);
    return lowered.node()->kind != Kind::view && launch(lowered);
}

Expression over_views(const Expression& expression) {
    bool has_values = false;
    for_each_value(expression, [&](Value::State&) { has_values = true; });
    if (!has_values) return expression;
    declivity::detail::refuse_after_fork("a value that waits");
    const std::scoped_lock lock(values_mutex());
    compute_older(expression);
    return Lowering().run(expression, nullptr);
}

// ---- Value

namespace {

std::atomic<bool>& fusion() {
    static std::atomic<bool> on{declivity::detail::environment_switch("DECLIVITY_FUSION", true)};
    return on;
}

/// The value that makes an expression largest, or null.
Value::State* largest_within(const Expression& expression) {
    Value::State* largest = nullptr;
    for_each_value(expression, [&](Value::State& state) {
        if (state.computed.load(std::memory_order_acquire) || state.is_operator()) return;
        if (largest == nullptr || state.measure.nodes > largest->measure.nodes) largest = &state;
    });
    return largest;
}

/// The operator of this thread that is not launched, since something may follow it.
std::weak_ptr<Value::State>& waiting_operator() {
    return declivity::detail::PerThread<std::weak_ptr<Value::State>, Value>::get();
}

}  // namespace

bool fuses() { return fusion().load(std::memory_order_relaxed); }

FusionScope::FusionScope(bool on) : before_(fusion().exchange(on)) {}
FusionScope::~FusionScope() { fusion().store(before_); }

Value::Value(const View& view) : state_(std::make_shared<State>(view.device(), view.dtype, view.shape)) {
    state_->view = view;
    state_->version = view.buffer.version();
    state_->computed.store(true, std::memory_order_release);
}

Value::Value(const Expression& expression, const Device& device)
    : state_(std::make_shared<State>(device, expression.dtype(), expression.shape())) {
    declivity::detail::refuse_after_fork("an elementwise function");
    const std::scoped_lock lock(values_mutex());
    compute_older(expression);
    Measure whole = measure(expression);
    for (State* largest; !fits(whole) && (largest = largest_within(expression)) != nullptr; whole = measure(expression))
        largest->compute();
    state_->expression = expression;
    state_->measure = whole;
    for_each_view(expression, [](const View& view) { view.buffer.launch_writers(); });
    if (!fuses() || !fits(whole)) {
        state_->compute();
        return;
    }
    if (Recorder* const recorder = Recorder::current()) recorder->launch_at_end(state_);
    for_each_view(expression, [&](const View& view) { view.buffer.add_reader(state_); });
    for_each_value(expression, [&](State& state) {
        if (!state.computed.load(std::memory_order_acquire)) state.readers.push_back(state_);
    });
}

Value Value::of_operator(const Device& device, DType dtype, const Shape& shape, std::span<const View> operands,
                         OperatorLaunch launch) {
    Value made;
    made.state_ = std::make_shared<State>(device, dtype, shape);
    made.state_->operator_launch = std::move(launch);
    // One at a time waits, so that the device has work, and memory is not held for long.
    // If that fails, it is tried again when somebody needs it.
    if (const auto waiting = std::exchange(waiting_operator(), {}).lock()) waiting->compute();
    if (!fuses()) {
        made.state_->compute();
        return made;
    }
    if (Recorder* const recorder = Recorder::current()) recorder->launch_at_end(made.state_);
    for (const View& operand : operands) operand.buffer.add_reader(made.state_);
    waiting_operator() = made.state_;
    return made;
}

Value Value::of_sum(const View& partials, const Shape& shape) {
    constexpr std::size_t most_waiting = 8 << 20;  // bytes
    declivity::detail::refuse_after_fork("a value that waits");
    Value made;
    made.state_ = std::make_shared<State>(partials.device(), partials.dtype, shape);
    made.state_->partials = partials;
    made.state_->operator_launch = [partials](const View& out, const Epilogue& epilogue) {
        add_up(std::array{PartialSum{partials, out}}, family_of(out.device()));
        apply_epilogue(epilogue, out);
    };
    if (Recorder* const recorder = Recorder::current()) recorder->launch_at_end(made.state_);
    const std::scoped_lock lock(values_mutex());
    waiting_sums().push_back(made.state_);
    std::size_t bytes = 0;
    for (const auto& one : waiting_sums())
        if (const auto state = one.lock(); state && state->partials)
            bytes += bytes_of(state->partials->shape, state->dtype);
    if (!fuses() || bytes > most_waiting) made.state_->compute();
    return made;
}

const Shape& Value::shape() const { return state_->shape; }
DType Value::dtype() const { return state_->dtype; }
Device Value::device() const { return state_->device; }
bool Value::computed() const { return state_->computed.load(std::memory_order_acquire); }

bool Value::waits_for_sum() const {
    if (computed()) return false;
    declivity::detail::refuse_after_fork("a value that waits");
    const std::scoped_lock lock(values_mutex());
    return state_->partials.has_value();
}

const View& Value::view() const {
    state_->compute();
    state_->view.buffer.launch_writers();
    return state_->view;
}

std::uint64_t Value::recorder() const { return state_->recorder; }

std::uint64_t Value::first_version() const {
    state_->compute();
    return state_->version;
}

}  // namespace declivity::ops
