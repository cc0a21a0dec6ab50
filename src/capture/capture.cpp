#include <declivity/capture/capture.hpp>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "capture_tracker.hpp"
#include "runtime/capture.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

/// Consecutive captures without a replay until capturing is given up, since it costs more than a plain call.
constexpr int kMaxRecaptures = 4;

/// Returns whether commands can read it in place.
bool is_dense(const ops::View& view) { return view.dense(); }

/// Memory range of an input: its whole buffer unless it is dense.
BufferRange buffer_range(const ops::View& view) {
    if (!is_dense(view)) return view.buffer;
    return {view.buffer, static_cast<std::size_t>(view.offset) * size_of(view.dtype), view.bytes()};
}

/// Dense copy that starts `misalignment` bytes after an aligned address: kernels may have been selected by the
/// alignment of the captured input.
Tensor copy_with_misalignment(const Tensor& x, std::size_t misalignment) {
    const ops::View& from = x.value().view();
    const auto offset = static_cast<std::int64_t>(misalignment / size_of(from.dtype));
    ops::View view = ops::View::make(x.device(), from.dtype, {offset + from.numel()});
    view.offset += offset;
    view.shape = from.shape;
    view.strides = dense_strides(from.shape);
    ops::copy(from, view);
    return Tensor(view);
}

std::vector<BufferRange> buffer_ranges(const std::vector<Tensor>& tensors) {
    std::vector<BufferRange> out;
    for (const Tensor& x : tensors) out.push_back(buffer_range(x.value().view()));
    return out;
}

}  // namespace

struct CapturedStep::State {
    State(StepFunction function, const CaptureOptions& capture_options)
        : step(std::move(function)), options(capture_options) {}

    struct Input {
        Shape shape;
        DType dtype;
        Device device;
        friend bool operator==(const Input&, const Input&) = default;
    };
    using Signature = std::vector<Input>;

    /// State of the step for inputs of one signature.
    struct Entry {
        Signature inputs;
        CommandList command_list = {};
        std::weak_ptr<detail::CaptureTracker> tracker = {};  // owned by the command list
        std::vector<Tensor> results = {};
        std::vector<std::size_t> result_inputs = {};  // for each result, the index of the input that it is
        int matching_captures = 0;                    // consecutive captures with the same commands
        int recaptures = 0;                           // consecutive calls that were captured
        std::optional<std::uint64_t> fingerprint = {};
        std::optional<CapturedUses> uses = {};  // of the last capture, even if it was discarded
        bool copies = false;  // inputs are copied for capture: the step accesses their memory through other tensors

        void discard() {
            command_list = {};
            results.clear();
            result_inputs.clear();
        }
        /// Clears what was learned from earlier captures.
        void restart_warmup() {
            matching_captures = 0;
            fingerprint.reset();
            uses.reset();
            copies = false;
        }
        [[nodiscard]] bool can_replay() const {
            const auto live_tracker = tracker.lock();
            return live_tracker && !command_list.stale() && live_tracker->is_unchanged() && command_list.guards_hold();
        }
    };
    /// Marks a result that is not an input.
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    StepFunction step;
    const CaptureOptions options;
    mutable std::recursive_mutex mutex;         // recursive: the step may query its own state
    std::list<std::shared_ptr<Entry>> entries;  // most recently used first; the step may call reset()
    std::list<Signature> seen_once;             // signatures seen once, which may not come again
    std::int64_t replayed = 0;
    std::string refused;
    int evicted = 0;  // captures evicted since the last replay
    bool running = false;
    bool compares_next = false;  // confirm() was called: one capture of any signature is compared

    /// Guards a call of the step against recursion.
    struct RecursionGuard {
        bool& running;
        explicit RecursionGuard(bool& flag) : running(flag) {
            if (running)
                throw ValueError(
                    "capture: expected a call of the step after the previous one has ended, got one within it, of a "
                    "host_call or of the step itself");
            running = true;
        }
        ~RecursionGuard() { running = false; }
        RecursionGuard(const RecursionGuard&) = delete;
        RecursionGuard& operator=(const RecursionGuard&) = delete;
    };

    /// Reason why calls are not replays.
    [[nodiscard]] std::string plain_call_reason() const {
        if (!refused.empty() || evicted <= kMaxRecaptures) return refused;
        return fmt::format(
            "alternating inputs of more signatures (shapes, types) than the {} for which captures are kept: each call "
            "evicts the capture that a later one needs, and is captured itself (raise CaptureOptions::signatures)",
            options.signatures);
    }

    void refuse(std::string why) {
        entries.clear();
        seen_once.clear();
        refused = std::move(why);
    }

    static Signature signature_of(const std::vector<Tensor>& inputs) {
        Signature out;
        for (const Tensor& x : inputs) out.push_back({x.shape(), x.dtype(), x.device()});
        return out;
    }

    /// Returns whether an uncaptured signature has been seen before, and marks it as seen.
    bool seen_before(const Signature& signature) {
        if (const auto found = std::ranges::find(seen_once, signature); found != seen_once.end()) {
            seen_once.erase(found);
            return true;
        }
        seen_once.push_front(signature);
        if (std::ssize(seen_once) > options.signatures) seen_once.pop_back();
        return false;
    }

    /// Entry of a signature, marked as most recently used; a new one evicts the least recently used.
    std::shared_ptr<Entry> entry_of(const Signature& signature) {
        auto found = std::ranges::find(entries, signature, &inputs_of);
        if (found == entries.end()) {
            if (std::ssize(entries) == options.signatures) {
                entries.pop_back();
                ++evicted;
            }
            found = entries.insert(entries.begin(), std::make_shared<Entry>(Entry{.inputs = signature}));
        }
        entries.splice(entries.begin(), entries, found);
        return entries.front();
    }
    static const Signature& inputs_of(const std::shared_ptr<Entry>& entry) { return entry->inputs; }

    std::vector<Tensor> capture(const std::vector<Tensor>& inputs, const Signature& signature) {
        const std::shared_ptr<Entry> shared_entry = entry_of(signature);
        Entry& entry = *shared_entry;
        const Device device = options.device ? *options.device : inputs.empty() ? default_device() : inputs[0].device();
        if (options.when_refused == WhenRefused::run) {
            const auto is_unsupported = [&](const Tensor& x) { return x.requires_grad() || !(x.device() == device); };
            if (std::ranges::any_of(inputs, is_unsupported)) {
                refuse(
                    "an input that requires a gradient or is on another device (detach() it, or copy it to the "
                    "device of the step)");
                return step(inputs);
            }
        }
        const std::vector<BufferRange> ranges = buffer_ranges(inputs);
        if (entry.uses && !entry.uses->aliases_safely(ranges)) return plain(inputs);
        entry.discard();
        // Discarded afterwards: a trial capture to learn how the step uses inputs that must be copied, valid only if it
        // does not write to them.
        const bool trial =
            !entry.uses && (CapturedUses::overlap(ranges) ||
                            !std::ranges::all_of(inputs, [](const Tensor& x) { return is_dense(x.value().view()); }));
        const StepInputs captured_inputs = step_inputs(inputs, trial, entry.copies);
        Capture capture(device, captured_inputs.ranges, options.when_refused);
        const std::uint64_t number = Capture::current_number();
        const auto tracker = detail::CaptureTracker::attach(capture);
        tracker->hooks_allowed = options.hooks;
        tracker->step_inputs = captured_inputs.tensors;
        capture_guard(grad_enabled);
        for (const Tensor& x : inputs)
            if (x.requires_grad())
                capture.refuse("an input that requires a gradient", "a replay builds no graph that leads back to it",
                               "detach() it, or make it a tensor from before the step");
        std::vector<Tensor> out = step(captured_inputs.tensors);
        if (const auto undefined = std::ranges::find(out, false, &Tensor::defined); undefined != out.end())
            throw ValueError(fmt::format("capture: expected defined tensors from the step, got an undefined one at {}",
                                         undefined - out.begin()));
        std::vector<std::size_t> from_input = inputs_among(out, captured_inputs.tensors);
        if (Capture::current() == &capture) {  // nothing was refused within the step
            if (const auto refusal = find_refusal(out, from_input, captured_inputs.buffers, *tracker))
                capture.refuse(refusal->operation, refusal->reason, refusal->remedy);
        }
        if (Capture::current() == &capture) {
            // Evaluated in the order of a plain call: in f16 the result depends on what is rounded in between.
            for (const Tensor& result : out) (void)result.value().view();
        }
        tracker->step_inputs = {};
        const bool aliased = trial || tracker->inputs_aliased(number, captured_inputs.tensors);
        const bool ambiguous = aliased || (capture.needs_whole_inputs() && !entry.copies);
        const CapturedUses uses = capture.uses(aliased);
        const CommandList command_list = capture.finish();
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (captured_inputs.buffers[i].version() != captured_inputs.versions[i])
                copy_back(inputs[i], captured_inputs.tensors[i]);
        for (std::size_t i = 0; i < out.size(); ++i)
            if (from_input[i] != kNone) out[i] = inputs[from_input[i]];
        use_or_discard(entry, capture, command_list, tracker, uses, ambiguous);
        if (entry.command_list) entry.results = out, entry.result_inputs = std::move(from_input);
        return out;
    }

    /// Decides what to do with a finished capture.
    void use_or_discard(Entry& entry, const Capture& capture, const CommandList& command_list,
                        const std::shared_ptr<detail::CaptureTracker>& tracker, const CapturedUses& uses,
                        bool ambiguous) {
        if (!capture.refused().empty()) {
            refuse(capture.refused());
        } else if (ambiguous || capture.incomplete()) {  // the call itself was as it should be
            const bool had_copies = entry.copies;
            entry.restart_warmup();
            if (ambiguous && !had_copies) {
                entry.uses = uses;
                entry.copies = true;
            } else if (++entry.recaptures > kMaxRecaptures) {
                refuse(ambiguous ? "a step that accesses the memory of its input through another tensor"
                                 : "a step whose values are computed by another thread");
            }
        } else {
            tracker->close();
            if (may_replay(entry, command_list, *tracker)) {
                ++entry.matching_captures;
                entry.fingerprint = command_list.fingerprint();
                entry.command_list = command_list;
                entry.uses = uses;
                entry.tracker = tracker;
            }
        }
    }

    /// Inputs passed to the step while it is captured.
    struct StepInputs {
        std::vector<Tensor> tensors;
        std::vector<Buffer> buffers;
        std::vector<BufferRange> ranges;
        std::vector<std::uint64_t> versions;  // versions of the buffers before the step
    };

    /// @param in_place use inputs in place even if they are not dense
    static StepInputs step_inputs(const std::vector<Tensor>& inputs, bool in_place, bool force_copy) {
        StepInputs out;
        for (const Tensor& x : inputs) {
            ops::View view = x.value().view();
            // Commands identify inputs by their memory.
            const bool is_first = std::ranges::find(out.buffers, view.buffer) == out.buffers.end();
            if (!in_place && (force_copy || !is_first || !is_dense(view))) view = x.clone().value().view();
            out.tensors.emplace_back(ops::LazyArray(
                // a new tensor, so that uses of the original tensor within the step are distinguished from the input
                view));
            out.buffers.push_back(view.buffer);
            out.ranges.push_back(buffer_range(view));
        }
        for (const Buffer& buffer : out.buffers) out.versions.push_back(buffer.version());
        return out;
    }

    /// For each result the index of the input that it is, or kNone.
    static std::vector<std::size_t> inputs_among(const std::vector<Tensor>& results,
                                                 const std::vector<Tensor>& inputs) {
        std::vector<std::size_t> from_input(results.size(), kNone);
        for (std::size_t i = 0; i < results.size(); ++i)
            if (const auto same = std::ranges::find(inputs, state_of(results[i]),
                                                    [](const Tensor& input) { return state_of(input); });
                same != inputs.end())
                from_input[i] = static_cast<std::size_t>(same - inputs.begin());
        return from_input;
    }

    /// Returns whether a capture may be replayed; refuses the step if it never can be.
    bool may_replay(Entry& entry, const CommandList& command_list, const detail::CaptureTracker& tracker) {
        if (tracker.assigned()) {
            constexpr auto* why = "assign() to a tensor from before the step";
            if (options.when_refused == WhenRefused::fail)
                throw Unsupported(fmt::format("capture: {} cannot be captured; write its elements by copy_()", why));
            refuse(why);
            return false;
        }
        if (entry.fingerprint && command_list.fingerprint() != *entry.fingerprint) {
            entry.matching_captures = 0;
            for (const auto& other_entry : entries)
                if (other_entry.get() != &entry) other_entry->restart_warmup();
            if (++entry.recaptures > kMaxRecaptures) {
                refuse("a step whose commands differ from call to call");
                return false;
            }
        }
        return true;
    }

    struct Refusal {
        const char *operation, *reason, *remedy;
    };
    /// Results or gradients that a replay cannot reproduce.
    static std::optional<Refusal> find_refusal(const std::vector<Tensor>& out,
                                               const std::vector<std::size_t>& from_input,
                                               const std::vector<Buffer>& buffers,
                                               const detail::CaptureTracker& tracker) {
        constexpr const char* graph_reason = "its graph is that of the first call, and a replay builds none";
        constexpr const char* input_reason = "the inputs of the next call are in other memory";
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i].requires_grad() && !out[i].is_leaf())
                return Refusal{"a result that requires a gradient", graph_reason,
                               "call backward within the step, or detach() it"};
            if (from_input[i] == kNone && out[i].value().computed() &&
                std::ranges::find(buffers, out[i].value().view().buffer) != buffers.end())
                return Refusal{"a result that shares the memory of an input", input_reason, "clone() it"};
        }
        if (tracker.leaves_graph())
            return Refusal{"a gradient that requires a gradient", graph_reason,
                           "use it within the step and call zero_grad() afterwards, or omit create_graph"};
        if (tracker.leaves_gradient_in(buffers))
            return Refusal{"a gradient that shares the memory of an input", input_reason, "clone() it"};
        return {};
    }

    /// Copies back what a step wrote in place to a copy of an input.
    static void copy_back(const Tensor& to, const Tensor& from) {
        if (to.value().view().buffer == from.value().view().buffer) return;
        const NoGrad no_grad;
        Tensor(to).copy_(from);
    }

    /// A call that is neither captured nor a replay.
    std::vector<Tensor> plain(const std::vector<Tensor>& inputs) {
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (options.when_refused == WhenRefused::fail && inputs[i].requires_grad())
                throw Unsupported(
                    fmt::format("CapturedStep: expected inputs that require no gradient, got one for input {}", i));
        return step(inputs);
    }

    std::vector<Tensor> replay(const Entry& entry, const std::vector<Tensor>& inputs) {
        if (std::ranges::any_of(inputs, &Tensor::requires_grad) || !entry.uses->aliases_safely(buffer_ranges(inputs)))
            return plain(inputs);
        std::vector<Tensor> replay_inputs;
        std::vector<std::uint64_t> versions;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            Tensor x = inputs[i];
            if (!is_dense(x.value().view()) || !entry.command_list.is_compatible(i, buffer_range(x.value().view())))
                x = copy_with_misalignment(x, entry.command_list.misalignment(i));
            entry.command_list.replace(i, buffer_range(x.value().view()));
            versions.push_back(x.value().view().buffer.version());
            replay_inputs.push_back(std::move(x));
        }
        const auto tracker = entry.tracker.lock();
        entry.command_list.replay();
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (replay_inputs[i].value().view().buffer.version() != versions[i]) copy_back(inputs[i], replay_inputs[i]);
        if (tracker) tracker->restore();
        ++replayed;
        evicted = 0;
        std::vector<Tensor> out = entry.results;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (entry.result_inputs[i] != kNone) out[i] = inputs[entry.result_inputs[i]];
        return out;
    }

    std::vector<Tensor> call(const std::vector<Tensor>& inputs) {
        const RecursionGuard recursion_guard(running);
        if (Capture::current() != nullptr || !refused.empty()) return step(inputs);  // part of the enclosing capture
        for (const Tensor& x : inputs) detail::require_defined("CapturedStep", x);
        if (!entries.empty() && inputs.size() != entries.front()->inputs.size())
            throw ValueError(
                fmt::format("CapturedStep: expected {} inputs, got {}", entries.front()->inputs.size(), inputs.size()));
        const Signature signature = signature_of(inputs);
        if (std::ranges::find(entries, signature, &inputs_of) == entries.end()) {
            if (options.when_refused == WhenRefused::run && !entries.empty() &&
                (std::ranges::any_of(inputs, &Tensor::requires_grad) || !seen_before(signature)))
                return step(inputs);
            try {
                return capture(inputs, signature);
            } catch (...) {
                std::erase_if(entries, [&](const auto& item) { return item->inputs == signature; });
                throw;
            }
        }
        const std::shared_ptr<Entry> shared_entry = entry_of(signature);
        Entry& entry = *shared_entry;
        if (options.when_refused == WhenRefused::run && std::ranges::any_of(inputs, &Tensor::requires_grad))
            return step(inputs);
        if (entry.command_list && entry.matching_captures >= options.warmup_captures &&
            std::exchange(compares_next, false))
            entry.matching_captures = options.warmup_captures - 1;
        if (!entry.command_list || entry.matching_captures < options.warmup_captures) return capture(inputs, signature);
        if (entry.can_replay()) try {
                auto out = replay(entry, inputs);
                entry.recaptures = 0;
                return out;
            } catch (const StaleCapture&) {
                if (!entry.command_list.stale()) throw;  // by another thread since the check
            }
        if (++entry.recaptures > kMaxRecaptures) {
            refuse("a step that changes, from call to call, the weights or guards that its kernels depend on");
            return step(inputs);
        }
        entry.restart_warmup();
        return capture(inputs, signature);
    }
};

void host_call(const std::vector<Tensor>& reads, const std::function<void()>& call) {
    for (const Tensor& tensor : reads) {
        detail::require_defined("host_call", tensor);
        const auto* const tracker = detail::CaptureTracker::current();
        if (tracker != nullptr && tracker->is_input(*Capture::current(), tensor.value()))
            Capture::current()->refuse("a host_call that reads an input", "which is a different tensor in each call",
                                       "read a clone() instead");
        (void)tensor.value().view();
    }
    host_call(call);
}

CapturedStep::CapturedStep(StepFunction step, const CaptureOptions& capture_options) {
    CaptureOptions options = capture_options;
    if (options.recordings) options.warmup_captures = *options.recordings;
    if (!step) throw ValueError("capture: expected a function, got an empty one");
    if (options.warmup_captures < 1)
        throw ValueError(fmt::format("capture: expected at least 1 capture, got {}", options.warmup_captures));
    if (options.signatures < 1)
        throw ValueError(fmt::format("capture: expected room for at least 1 signature, got {}", options.signatures));
    state_ = std::make_unique<State>(std::move(step), options);
}
CapturedStep::~CapturedStep() = default;
void CapturedStep::require_in_place() const {
    if (!state_) throw ValueError("CapturedStep: expected a step, got one that was moved from");
}
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&&) noexcept = default;

std::vector<Tensor> CapturedStep::operator()(const std::vector<Tensor>& inputs) {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->call(inputs);
}

bool CapturedStep::replays() const {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    if (state_->entries.empty()) return false;
    const State::Entry& last = *state_->entries.front();
    return last.command_list && last.matching_captures >= state_->options.warmup_captures && last.can_replay();
}

std::int64_t CapturedStep::replayed() const {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->replayed;
}

std::string CapturedStep::refused() const {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->plain_call_reason();
}

CommandList CapturedStep::command_list() const {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->entries.empty() ? CommandList() : state_->entries.front()->command_list;
}

void CapturedStep::reset() {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->entries.clear();
    state_->seen_once.clear();
    state_->refused.clear();
    state_->evicted = 0;
}

void CapturedStep::confirm() {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->compares_next = true;
}

}  // namespace declivity
