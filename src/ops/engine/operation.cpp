// Launches operations: when, and with which operands.
#include <declivity/ops/operation.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "runtime/per_thread.hpp"
#include "in_flight_launch.hpp"
#include "expression_node.hpp"
#include "fusion.hpp"
#include "reduced_precision.hpp"
#include "operation_state.hpp"
#include "lazy_array_state.hpp"
#include "runtime/capture.hpp"
#include "lazy_array.hpp"

namespace declivity::ops {
namespace {

Device device_of(std::string_view name, const std::vector<View>& reads, const std::vector<View>& writes,
                 const LazyArray& prologue) {
    if (prologue) return prologue.device();
    for (const auto* views : {&reads, &writes})
        for (const View& view : *views)
            if (view.buffer) return view.device();
    throw ValueError(fmt::format("operation: expected a view that \"{}\" reads or writes, got none", name));
}

bool has_16bit_float(const std::vector<View>& reads, const std::vector<View>& writes,
                     const std::vector<OperationOutput>& outputs) {
    const auto half = [](const View& view) { return view.buffer && is_16bit_float(view.dtype); };
    return std::ranges::any_of(reads, half) || std::ranges::any_of(writes, half) ||
           std::ranges::any_of(outputs, [](const OperationOutput& output) { return is_16bit_float(output.dtype); });
}

/// Pending operations of this thread for batched launches.
std::vector<std::weak_ptr<Operation>>& pending_batched() {
    return declivity::detail::PerThread<std::vector<std::weak_ptr<Operation>>, BatchedLaunch>::get();
}

/// The pending operation of this thread, deferred so that an epilogue may be fused.
std::weak_ptr<Operation>& pending_operation() {
    return declivity::detail::PerThread<std::weak_ptr<Operation>, Operation>::get();
}

/// One operation at a time is pending, so that the device is busy and memory is not retained for long. One that fails
/// stays pending for its users.
void launch_pending_operation() {
    if (const auto pending = std::exchange(pending_operation(), {}).lock()) pending->launch();
}

}  // namespace

OperationViews::OperationViews(std::span<const View> ins, std::vector<View> written, std::vector<View> outs,
                               Epilogue epilogue, LazyArray prologue)
    : ins_(ins),
      written_(std::move(written)),
      outs_(std::move(outs)),
      epilogue_(std::move(epilogue)),
      prologue_(std::move(prologue)) {}

const View& OperationViews::in(std::size_t index) const {
    if (index >= ins_.size())
        throw ValueError(fmt::format("OperationViews::in: expected an index below {}, got {}", ins_.size(), index));
    return ins_[index];
}

View Operation::WeakView::view() const {
    View out = layout;
    out.buffer = buffer_of(memory.lock());
    return out;
}

Operation::Operation(std::string_view name, const std::optional<OperationCall>& call, BatchedLaunch batched_launch,
                     OperationOperands operands)
    : name_(name),
      call_(call),
      batched_launch_(batched_launch),
      reads_(std::move(operands.reads)),
      outputs_(std::move(operands.outputs)),
      prologue_(std::move(operands.prologue)),
      fuses_output_cast_(operands.fuses_output_cast),
      upcasts_to_f32_(operands.upcasts_to_f32 && has_16bit_float(reads_, operands.writes, outputs_)),
      device_(device_of(name, reads_, operands.writes, prologue_)) {
    if (outputs_.size() > kMaxOutputs || (outputs_.empty() && operands.writes.empty()))
        throw ValueError(fmt::format("operation: expected 1 to {} outputs of \"{}\", or memory that it writes, got {}",
                                     kMaxOutputs, name, outputs_.size()));
    for (const View& view : operands.writes) {
        // A buffer owns its writers, which own the buffers they read.
        if (view.buffer && std::ranges::any_of(reads_, [&](const View& read) { return read.buffer == view.buffer; }))
            throw ValueError(fmt::format(
                "operation: expected memory that \"{}\" writes to be absent from its reads, got it in both", name));
        writes_.emplace_back(view);
    }
}

OperationResults Operation::make_results() {
    OperationResults results;
    results_.reserve(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
        auto state = std::make_shared<LazyArrayState>(device_, outputs_[i].dtype, outputs_[i].shape);
        state->operation = shared_from_this();
        state->output = i;
        results_.emplace_back(state);
        results[i] = lazy_array_of(std::move(state));
    }
    return results;
}

std::size_t Operation::bytes() const {
    std::size_t bytes = 0;
    for (const View& view : reads_) bytes += view.buffer ? bytes_of(view.shape, view.dtype) : 0;
    return bytes;
}

OperationViews Operation::views(const std::optional<View>& destination, const Epilogue& epilogue) const {
    std::vector<View> written, outs;
    written.reserve(writes_.size());
    outs.reserve(outputs_.size());
    for (const WeakView& weak : writes_) written.push_back(weak.view());
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
        if (i == 0 && destination) outs.push_back(*destination);
        else if (outputs_[i].optional && results_[i].expired()) outs.emplace_back();
        else outs.push_back(View::make(device_, outputs_[i].dtype, outputs_[i].shape));
    }
    return {reads_, std::move(written), std::move(outs), epilogue, prologue_};
}

EpilogueFused Operation::run(const std::optional<View>& destination, const Epilogue& epilogue, LaunchReason reason) {
    if (!pending()) return EpilogueFused::yes;
    declivity::detail::refuse_after_fork("a pending value");
    LaunchLock& launching = launch_lock(device_);
    const auto self = shared_from_this();  // its outputs release it
    const std::scoped_lock lock(launching);
    while (launching.wait_for(this)) {
    }
    if (!pending()) return EpilogueFused::yes;
    InFlightLaunch in_flight(launching, *this);
    const CaptureScope capture_scope(capture_);
    if (batched_launch_ == nullptr) return run_alone(destination, epilogue, reason);
    run_batched(destination, in_flight);
    return EpilogueFused::no;
}

EpilogueFused Operation::run_alone(const std::optional<View>& destination, const Epilogue& epilogue,
                                   LaunchReason reason) {
    const ResumedScope resumed(scope_, reason == LaunchReason::dependency ? name_ : std::string_view());
    const OperationViews all = views(destination, epilogue);
    const EpilogueFused fused = upcasts_to_f32_ ? run_upcast(all) : (*call_)(all);
    done(all, destination.has_value());
    return fused;
}

EpilogueFused Operation::run_upcast(const OperationViews& views) const {
    std::vector<View> ins, written, outs;
    for (const View& view : reads_) ins.push_back(upcast(view));
    for (std::size_t i = 0; i < writes_.size(); ++i) written.push_back(upcast(views.written(i)));
    const auto rounds = [&](std::size_t i) { return views.out(i).buffer && is_16bit_float(outputs_[i].dtype); };
    const bool first_rounded = !outputs_.empty() && rounds(0);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
        outs.push_back(rounds(i) && !(i == 0 && fuses_output_cast_) ? View::make(device_, DType::f32, outputs_[i].shape)
                                                                    : views.out(i));
    Epilogue epilogue = views.epilogue();
    if (first_rounded) {
        const Expression rounded =
            Expression::cast(Expression::operator_result(DType::f32, outputs_[0].shape), outputs_[0].dtype);
        epilogue = epilogue_of(epilogue ? with_result(expression_of(epilogue), rounded) : rounded);
    }
    const EpilogueFused fused =
        (*call_)({ins, written, outs, first_rounded && !fuses_output_cast_ ? Epilogue() : epilogue, views.prologue()});
    for (std::size_t i = first_rounded ? 1 : 0; i < outputs_.size(); ++i)
        if (rounds(i)) evaluate(Expression::cast(outs[i], outputs_[i].dtype), views.out(i));
    for (std::size_t i = 0; i < writes_.size(); ++i)
        if (const View& view = views.written(i); view.buffer && is_16bit_float(view.dtype))
            evaluate(Expression::cast(written[i], view.dtype), view);
    if (!first_rounded) return fused;
    if (!fuses_output_cast_ || fused == EpilogueFused::no)
        evaluate(with_result(expression_of(epilogue), outs[0]), views.out(0));
    return EpilogueFused::yes;
}

void Operation::done(const OperationViews& views, bool first_output_elsewhere) {
    const std::vector<View> read = std::exchange(reads_, {});  // destroyed last: they may be the last references
    const LazyArray prologue = std::exchange(prologue_, {});
    launched_.store(true, std::memory_order_release);
    for (std::size_t i = first_output_elsewhere ? 1 : 0; i < outputs_.size(); ++i)
        if (const auto state = results_[i].lock(); state && views.out(i).buffer) state->computed_as(views.out(i));
    for (std::size_t i = 0; i < writes_.size(); ++i) views.written(i).buffer.write_enqueued();
    for (std::size_t i = 0; i < writes_.size(); ++i) try {
            launch_writers(views.written(i).buffer);  // releases this one
        } catch (const Error&) {
            // The error of another writer, which stays pending and reports it to its own users.
        }
}

bool Operation::batches_with(const Operation& other) const {
    return other.pending() && other.batched_launch_ == batched_launch_ &&
           other.outputs_[0].dtype == outputs_[0].dtype && other.device_ == device_ && other.capture_ == capture_;
}

void Operation::run_batched(const std::optional<View>& destination, InFlightLaunch& in_flight) {
    std::vector<std::shared_ptr<Operation>> all{shared_from_this()};
    auto& deferred = pending_batched();
    for (const auto& item : deferred)
        if (auto other = item.lock(); other && other.get() != this && batches_with(*other))
            all.push_back(std::move(other));
    in_flight.batches_with(&all);
    std::vector<OperationViews> each;
    for (const auto& item : all) {
        const ResumedScope resumed(item->scope_, item->name_);  // memory is attributed to its scope
        each.push_back(item->views(item.get() == this ? destination : std::nullopt, {}));
    }
    batched_launch_(each);
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->done(each[i], i == 0 && destination.has_value());
    std::erase_if(deferred, [](const auto& item) {
        const auto other = item.lock();
        return !other || !other->pending();
    });
}

OperationResults operation(std::string_view name, const OperationCall& call, OperationOperands operands) {
    declivity::detail::refuse_after_fork(name);
    const std::vector<View> writes = operands.writes;
    for (const View& view : operands.reads) launch_writers(view.buffer);
    for (const View& view : writes) {
        launch_writers(view.buffer);
        launch_readers(view.buffer);
    }
    const auto created = std::make_shared<Operation>(name, call, nullptr, std::move(operands));
    OperationResults results = created->make_results();
    launch_pending_operation();
    if (!fuses()) {
        created->launch();
    } else {
        if (Capture* const capture = Capture::current()) capture->launch_at_end(created);
        // Another thread may launch it as soon as the first operand lists it as a reader.
        const std::scoped_lock lock(launch_lock(created->device()));
        for (const View& view : created->reads()) add_reader(view.buffer, created);
        if (const LazyArray& prologue = created->prologue()) {
            if (prologue.computed()) add_reader(state_of(prologue)->view.buffer, created);
            else state_of(prologue)->readers.push_back(created);
        }
        for (const View& view : writes)
            if (view.buffer) add_writer(view.buffer, created);
        pending_operation() = created;
    }
    for (const View& view : writes)
        if (view.buffer) view.buffer.bump_version();
    return results;
}

LazyArray deferred_batched(std::string_view name, BatchedLaunch launch, OperationOperands operands) {
    constexpr std::size_t max_pending = 8 << 20;  // bytes
    declivity::detail::refuse_after_fork(name);
    if (operands.outputs.size() != 1 || !operands.writes.empty())
        throw ValueError(
            fmt::format("deferred_batched: expected one output of \"{}\" and no writes in "
                        "place, got {} and {}",
                        name, operands.outputs.size(), operands.writes.size()));
    const std::vector<View> reads = operands.reads;
    for (const View& view : reads) launch_writers(view.buffer);
    const auto created = std::make_shared<Operation>(name, std::nullopt, launch, std::move(operands));
    const OperationResults results = created->make_results();
    for (const View& view : reads) add_reader(view.buffer, created);
    if (Capture* const capture = Capture::current()) capture->launch_at_end(created);
    const std::scoped_lock lock(launch_lock(created->device()));
    std::erase_if(pending_batched(), [](const auto& item) { return item.expired(); });
    pending_batched().push_back(created);
    std::size_t bytes = 0;
    for (const auto& item : pending_batched())
        if (const auto other = item.lock(); other && other->pending()) bytes += other->bytes();
    if (!fuses() || bytes > max_pending) created->launch();
    return results[0];
}

}  // namespace declivity::ops
