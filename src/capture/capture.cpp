#include <declivity/capture/capture.hpp>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "capture_tracker.hpp"
#include "runtime/capture.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {
namespace {

/// Consecutive captures without a replay until capturing is given up, since it costs more than a plain call.
constexpr int kMaxRecaptures = 4;

/// Returns whether commands can read it in place.
bool fits(const ops::View& view) { return view.dense(); }

/// Memory range of an input: its whole buffer unless it is dense.
BufferRange buffer_range(const ops::View& view) {
    if (!fits(view)) return view.buffer;
    return {view.buffer, static_cast<std::size_t>(view.offset) * size_of(view.dtype), view.bytes()};
}

/// Dense copy that starts `misalignment` bytes after an aligned address: kernels may have been selected by the
/// alignment of the captured input.
Tensor copy_lying_at(const Tensor& x, std::size_t misalignment) {
    const ops::View& from = x.value().view();
    const auto before = static_cast<std::int64_t>(misalignment / size_of(from.dtype));
    ops::View place = ops::View::make(x.device(), from.dtype, {before + from.numel()});
    place.offset += before;
    place.shape = from.shape;
    place.strides = dense_strides(from.shape);
    ops::copy(from, place);
    return Tensor(place);
}

std::vector<BufferRange> buffer_ranges(const std::vector<Tensor>& tensors) {
    std::vector<BufferRange> out;
    for (const Tensor& x : tensors) out.push_back(buffer_range(x.value().view()));
    return out;
}

}  // namespace

struct CapturedStep::State {
    State(StepFunction function, const CaptureOptions& given) : step(std::move(function)), options(given) {}

    struct Input {
        Shape shape;
        DType dtype;
        Device device;
        friend bool operator==(const Input&, const Input&) = default;
    };
    using Signature = std::vector<Input>;

    /// State of the step for inputs of one signature.
    struct Kept {
        Signature inputs;
        CommandList command_list = {};
        std::weak_ptr<detail::CaptureTracker> notes = {};  // owned by the command list
        std::vector<Tensor> results = {};
        std::vector<std::size_t> passed_on = {};  // for each result, the index of the input that it is
        int alike = 0;                            // consecutive captures with the same commands
        int recaptures = 0;                       // consecutive calls that were captured
        std::optional<std::uint64_t> fingerprint = {};
        std::optional<CapturedUses> uses = {};  // of the last capture, even if it was discarded
        bool copies = false;  // inputs are copied for capture: the step accesses their memory through other tensors

        void forget() {
            command_list = {};
            results.clear();
            passed_on.clear();
        }
        /// Clears what was learned from earlier captures.
        void start_over() {
            alike = 0;
            fingerprint.reset();
            uses.reset();
            copies = false;
        }
        [[nodiscard]] bool valid() const {
            const auto written_down = notes.lock();
            return written_down && !command_list.stale() && written_down->holds() && command_list.guards_hold();
        }
    };
    /// Marks a result that is not an input.
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    StepFunction step;
    const CaptureOptions options;
    mutable std::recursive_mutex mutex;     // recursive: the step may query its own state
    std::list<std::shared_ptr<Kept>> kept;  // most recently used first; the step may call reset()
    std::list<Signature> others;            // signatures seen once, which may not come again
    std::int64_t replayed = 0;
    std::string refused;
    int evicted = 0;  // captures evicted since the last replay
    bool called = false;
    bool confirms = false;  // confirm() was called: one capture of any signature is compared

    /// Guards a call of the step against recursion.
    struct Inside {
        bool& called;
        explicit Inside(bool& of) : called(of) {
            if (called)
                throw ValueError(
                    "capture: expected a call of the step after the previous one has ended, got one within it, of a "
                    "host_call or of the step itself");
            called = true;
        }
        ~Inside() { called = false; }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
    };

    /// Reason why calls are not replays.
    [[nodiscard]] std::string why_plain() const {
        if (!refused.empty() || evicted <= kMaxRecaptures) return refused;
        return fmt::format(
            "alternating inputs of more signatures (shapes, types) than the {} for which captures are kept: each call "
            "evicts the capture that a later one needs, and is captured itself (raise CaptureOptions::signatures)",
            options.signatures);
    }

    void refuse(std::string why) {
        kept.clear();
        others.clear();
        refused = std::move(why);
    }

    static Signature signature_of(const std::vector<Tensor>& given) {
        Signature out;
        for (const Tensor& x : given) out.push_back({x.shape(), x.dtype(), x.device()});
        return out;
    }

    /// Returns whether an uncaptured signature has been seen before, and marks it as seen.
    bool came_before(const Signature& signature) {
        if (const auto found = std::ranges::find(others, signature); found != others.end()) {
            others.erase(found);
            return true;
        }
        others.push_front(signature);
        if (std::ssize(others) > options.signatures) others.pop_back();
        return false;
    }

    /// Entry of a signature, marked as most recently used; a new one evicts the least recently used.
    std::shared_ptr<Kept> of(const Signature& signature) {
        auto found = std::ranges::find(kept, signature, &inputs_of);
        if (found == kept.end()) {
            if (std::ssize(kept) == options.signatures) {
                kept.pop_back();
                ++evicted;
            }
            found = kept.insert(kept.begin(), std::make_shared<Kept>(Kept{.inputs = signature}));
        }
        kept.splice(kept.begin(), kept, found);
        return kept.front();
    }
    static const Signature& inputs_of(const std::shared_ptr<Kept>& one) { return one->inputs; }

    std::vector<Tensor> capture(const std::vector<Tensor>& given, const Signature& signature) {
        const std::shared_ptr<Kept> kept_here = of(signature);
        Kept& own = *kept_here;
        const Device device = options.device ? *options.device : given.empty() ? default_device() : given[0].device();
        if (options.when_refused == WhenRefused::run) {
            const auto unfit = [&](const Tensor& x) { return x.requires_grad() || !(x.device() == device); };
            if (std::ranges::any_of(given, unfit)) {
                refuse(
                    "an input that requires a gradient or is on another device (detach() it, or copy it to the "
                    "device of the step)");
                return step(given);
            }
        }
        const std::vector<BufferRange> places = buffer_ranges(given);
        if (own.uses && !own.uses->apart(places)) return plain(given);
        own.forget();
        // Discarded afterwards: a trial capture to learn how the step uses inputs that must be copied, valid only if it
        // does not write to them.
        const bool draft =
            !own.uses && (CapturedUses::overlap(places) ||
                          !std::ranges::all_of(given, [](const Tensor& x) { return fits(x.value().view()); }));
        const StepInputs fixed = step_inputs(given, draft, own.copies);
        Capture capture(device, fixed.places, options.when_refused);
        const std::uint64_t number = Capture::current_number();
        const auto written_down = detail::CaptureTracker::attach(capture);
        written_down->hooks_allowed = options.hooks;
        written_down->given = fixed.tensors;
        capture_guard(grad_enabled);
        for (const Tensor& x : given)
            if (x.requires_grad())
                capture.refuse("an input that requires a gradient", "a replay builds no graph that leads back to it",
                               "detach() it, or make it a tensor from before the step");
        std::vector<Tensor> out = step(fixed.tensors);
        if (const auto undefined = std::ranges::find(out, false, &Tensor::defined); undefined != out.end())
            throw ValueError(fmt::format("capture: expected defined tensors from the step, got an undefined one at {}",
                                         undefined - out.begin()));
        std::vector<std::size_t> from_input = inputs_among(out, fixed.tensors);
        if (Capture::current() == &capture) {  // nothing was refused within the step
            if (const auto found = unfit(out, from_input, fixed.buffers, *written_down))
                capture.refuse(found->what, found->since, found->instead);
        }
        if (Capture::current() == &capture) {
            // Evaluated in the order of a plain call: in f16 the result depends on what is rounded in between.
            for (const Tensor& result : out) (void)result.value().view();
        }
        written_down->given = {};
        const bool other_names = draft || written_down->inputs_aliased(number, fixed.tensors);
        const bool ambiguous = other_names || (capture.needs_whole_inputs() && !own.copies);
        const CapturedUses uses = capture.uses(other_names);
        const CommandList made = capture.finish();
        for (std::size_t i = 0; i < given.size(); ++i)
            if (fixed.buffers[i].version() != fixed.versions[i]) written_back(given[i], fixed.tensors[i]);
        for (std::size_t i = 0; i < out.size(); ++i)
            if (from_input[i] != kNone) out[i] = given[from_input[i]];
        settle(own, capture, made, written_down, uses, ambiguous);
        if (own.command_list) own.results = out, own.passed_on = std::move(from_input);
        return out;
    }

    /// Decides what to do with a finished capture.
    void settle(Kept& own, const Capture& capture, const CommandList& made,
                const std::shared_ptr<detail::CaptureTracker>& written_down, const CapturedUses& uses, bool ambiguous) {
        if (!capture.refused().empty()) {
            refuse(capture.refused());
        } else if (ambiguous || capture.incomplete()) {  // the call itself was as it should be
            const bool copied = own.copies;
            own.start_over();
            if (ambiguous && !copied) {
                own.uses = uses;
                own.copies = true;
            } else if (++own.recaptures > kMaxRecaptures) {
                refuse(ambiguous ? "a step that accesses the memory of its input through another tensor"
                                 : "a step whose values are computed by another thread");
            }
        } else {
            written_down->close();
            if (may_replay(own, made, *written_down)) {
                ++own.alike;
                own.fingerprint = made.fingerprint();
                own.command_list = made;
                own.uses = uses;
                own.notes = written_down;
            }
        }
    }

    /// Inputs passed to the step while it is captured.
    struct StepInputs {
        std::vector<Tensor> tensors;
        std::vector<Buffer> buffers;
        std::vector<BufferRange> places;
        std::vector<std::uint64_t> versions;  // versions of the buffers before the step
    };

    /// @param as_they_lie use inputs in place even if they are not dense
    static StepInputs step_inputs(const std::vector<Tensor>& given, bool as_they_lie, bool copied) {
        StepInputs out;
        for (const Tensor& x : given) {
            ops::View view = x.value().view();
            // Commands identify inputs by their memory.
            const bool is_first = std::ranges::find(out.buffers, view.buffer) == out.buffers.end();
            if (!as_they_lie && (copied || !is_first || !fits(view))) view = x.clone().value().view();
            out.tensors.emplace_back(ops::LazyArray(
                // a new tensor, so that uses of the original tensor within the step are distinguished from the input
                view));
            out.buffers.push_back(view.buffer);
            out.places.push_back(buffer_range(view));
        }
        for (const Buffer& buffer : out.buffers) out.versions.push_back(buffer.version());
        return out;
    }

    /// For each result the index of the input that it is, or kNone.
    static std::vector<std::size_t> inputs_among(const std::vector<Tensor>& results,
                                                 const std::vector<Tensor>& inputs) {
        std::vector<std::size_t> from_input(results.size(), kNone);
        for (std::size_t i = 0; i < results.size(); ++i)
            if (const auto same = std::ranges::find(inputs, results[i].state(), &Tensor::state); same != inputs.end())
                from_input[i] = static_cast<std::size_t>(same - inputs.begin());
        return from_input;
    }

    /// Returns whether a capture may be replayed; refuses the step if it never can be.
    bool may_replay(Kept& own, const CommandList& made, const detail::CaptureTracker& written_down) {
        if (written_down.assigned()) {
            constexpr auto* why = "assign() to a tensor from before the step";
            if (options.when_refused == WhenRefused::fail)
                throw Unsupported(fmt::format("capture: {} cannot be captured; write its elements by copy_()", why));
            refuse(why);
            return false;
        }
        if (own.fingerprint && made.fingerprint() != *own.fingerprint) {
            own.alike = 0;
            for (const auto& kept_item : kept)
                if (kept_item.get() != &own) kept_item->start_over();
            if (++own.recaptures > kMaxRecaptures) {
                refuse("a step whose commands differ from call to call");
                return false;
            }
        }
        return true;
    }

    struct Unfit {
        const char *what, *since, *instead;
    };
    /// Results or gradients that a replay cannot reproduce.
    static std::optional<Unfit> unfit(const std::vector<Tensor>& out, const std::vector<std::size_t>& from_input,
                                      const std::vector<Buffer>& buffers, const detail::CaptureTracker& notes) {
        constexpr const char* of_first_call = "its graph is that of the first call, and a replay builds none";
        constexpr const char* of_input = "the inputs of the next call are in other memory";
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i].requires_grad() && !out[i].is_leaf())
                return Unfit{"a result that requires a gradient", of_first_call,
                             "call backward within the step, or detach() it"};
            if (from_input[i] == kNone && out[i].value().computed() &&
                std::ranges::find(buffers, out[i].value().view().buffer) != buffers.end())
                return Unfit{"a result that shares the memory of an input", of_input, "clone() it"};
        }
        if (notes.leaves_graph())
            return Unfit{"a gradient that requires a gradient", of_first_call,
                         "use it within the step and call zero_grad() afterwards, or omit create_graph"};
        if (notes.leaves_gradient_in(buffers))
            return Unfit{"a gradient that shares the memory of an input", of_input, "clone() it"};
        return {};
    }

    /// Copies back what a step wrote in place to a copy of an input.
    static void written_back(const Tensor& to, const Tensor& from) {
        if (to.value().view().buffer == from.value().view().buffer) return;
        const NoGrad no_grad;
        Tensor(to).copy_(from);
    }

    /// A call that is neither captured nor a replay.
    std::vector<Tensor> plain(const std::vector<Tensor>& given) {
        for (std::size_t i = 0; i < given.size(); ++i)
            if (options.when_refused == WhenRefused::fail && given[i].requires_grad())
                throw Unsupported(
                    fmt::format("CapturedStep: expected inputs that require no gradient, got one for input {}", i));
        return step(given);
    }

    std::vector<Tensor> replay(const Kept& own, const std::vector<Tensor>& given) {
        if (std::ranges::any_of(given, &Tensor::requires_grad) || !own.uses->apart(buffer_ranges(given)))
            return plain(given);
        std::vector<Tensor> read;
        std::vector<std::uint64_t> versions;
        for (std::size_t i = 0; i < given.size(); ++i) {
            Tensor x = given[i];
            if (!fits(x.value().view()) || !own.command_list.serves(i, buffer_range(x.value().view())))
                x = copy_lying_at(x, own.command_list.misalignment(i));
            own.command_list.replace(i, buffer_range(x.value().view()));
            versions.push_back(x.value().view().buffer.version());
            read.push_back(std::move(x));
        }
        const auto written_down = own.notes.lock();
        own.command_list.replay();
        for (std::size_t i = 0; i < given.size(); ++i)
            if (read[i].value().view().buffer.version() != versions[i]) written_back(given[i], read[i]);
        if (written_down) written_down->restore();
        ++replayed;
        evicted = 0;
        std::vector<Tensor> out = own.results;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (own.passed_on[i] != kNone) out[i] = given[own.passed_on[i]];
        return out;
    }

    std::vector<Tensor> call(const std::vector<Tensor>& given) {
        const Inside inside(called);
        if (Capture::current() != nullptr || !refused.empty()) return step(given);  // part of the enclosing capture
        for (const Tensor& x : given) detail::require_defined("Recorded", x);
        if (!kept.empty() && given.size() != kept.front()->inputs.size())
            throw ValueError(
                fmt::format("CapturedStep: expected {} inputs, got {}", kept.front()->inputs.size(), given.size()));
        const Signature signature = signature_of(given);
        if (std::ranges::find(kept, signature, &inputs_of) == kept.end()) {
            if (options.when_refused == WhenRefused::run && !kept.empty() &&
                (std::ranges::any_of(given, &Tensor::requires_grad) || !came_before(signature)))
                return step(given);
            try {
                return capture(given, signature);
            } catch (...) {
                std::erase_if(kept, [&](const auto& kept_item) { return kept_item->inputs == signature; });
                throw;
            }
        }
        const std::shared_ptr<Kept> kept_here = of(signature);
        Kept& own = *kept_here;
        if (options.when_refused == WhenRefused::run && std::ranges::any_of(given, &Tensor::requires_grad))
            return step(given);
        if (own.command_list && own.alike >= options.warmup_captures && std::exchange(confirms, false))
            own.alike = options.warmup_captures - 1;
        if (!own.command_list || own.alike < options.warmup_captures) return capture(given, signature);
        if (own.valid()) try {
                auto out = replay(own, given);
                own.recaptures = 0;
                return out;
            } catch (const StaleCapture&) {
                if (!own.command_list.stale()) throw;  // by another thread since the check
            }
        if (++own.recaptures > kMaxRecaptures) {
            refuse("a step that changes, from call to call, the weights or guards that its kernels depend on");
            return step(given);
        }
        own.start_over();
        return capture(given, signature);
    }
};

void host_call(const std::vector<Tensor>& reads, const std::function<void()>& call) {
    for (const Tensor& read : reads) {
        detail::require_defined("host_call", read);
        const auto* const notes = detail::CaptureTracker::current();
        if (notes != nullptr && notes->of_input(*Capture::current(), read.value()))
            Capture::current()->refuse("a host_call that reads an input", "which is a different tensor in each call",
                                       "read a clone() instead");
        (void)read.value().view();
    }
    host_call(call);
}

CapturedStep::CapturedStep(StepFunction step, const CaptureOptions& given) {
    CaptureOptions options = given;
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
    if (state_->kept.empty()) return false;
    const State::Kept& last = *state_->kept.front();
    return last.command_list && last.alike >= state_->options.warmup_captures && last.valid();
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
    return state_->why_plain();
}

CommandList CapturedStep::command_list() const {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->kept.empty() ? CommandList() : state_->kept.front()->command_list;
}

void CapturedStep::reset() {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->kept.clear();
    state_->others.clear();
    state_->refused.clear();
    state_->evicted = 0;
}

void CapturedStep::confirm() {
    detail::refuse_after_fork("a captured step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->confirms = true;
}

}  // namespace declivity
