#include <declivity/tensor/capture.hpp>

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
#include "tensor_state.hpp"
#include "runtime/capture.hpp"

namespace declivity {
namespace {

/// Calls without a replay between them that had to be recorded anew, until recording is given up: it costs more than a
/// plain call.
constexpr int kMaxAnew = 4;

/// Whether commands may read it where it lies.
bool fits(const ops::View& view) { return view.dense(); }

/// Where an input lies: somewhere in its buffer, if it is not dense.
BufferRange place_of(const ops::View& view) {
    if (!fits(view)) return view.buffer;
    return {view.buffer, static_cast<std::size_t>(view.offset) * size_of(view.dtype), view.bytes()};
}

/// A dense copy that begins `misalignment` bytes behind a multiple of what memory is aligned to: commands may have been
/// chosen by where the input of the recording lies.
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

std::vector<BufferRange> places_of(const std::vector<Tensor>& tensors) {
    std::vector<BufferRange> out;
    for (const Tensor& x : tensors) out.push_back(place_of(x.value().view()));
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

    /// What the step came to with inputs of one signature.
    struct Kept {
        Signature inputs;
        CommandList command_list = {};
        std::weak_ptr<detail::CaptureTracker> notes = {};  // held by the recording
        std::vector<Tensor> results = {};
        std::vector<std::size_t> passed_on = {};  // for each result, the input that it is
        int alike = 0;                            // recordings with the same commands
        int anew = 0;                             // calls in a row that were recorded
        std::optional<std::uint64_t> fingerprint = {};
        std::optional<CapturedUses> uses = {};  // by the last recording, also if that was not kept
        bool copies = false;  // inputs are copied to record: the step knows their memory by other names

        void forget() {
            command_list = {};
            results.clear();
            passed_on.clear();
        }
        /// What comes next may be anything.
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
    /// A result that is one of the inputs.
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    StepFunction step;
    const CaptureOptions options;
    mutable std::recursive_mutex mutex;     // the step may ask
    std::list<std::shared_ptr<Kept>> kept;  // the last used first; the step may call reset()
    std::list<Signature> others;            // of calls that came once, and may come alone
    std::int64_t replayed = 0;
    std::string refused;
    int thrown_out = 0;  // recordings that made room for others, since the last replay
    bool called = false;
    bool confirms = false;  // confirm() was called: one recording is compared, for all

    /// A call of the step.
    struct Inside {
        bool& called;
        explicit Inside(bool& of) : called(of) {
            if (called)
                throw ValueError(
                    "record: expected a call of the step after the previous one has ended, got one within it, of a "
                    "host_call or of the step itself");
            called = true;
        }
        ~Inside() { called = false; }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
    };

    /// Why calls are not replays.
    [[nodiscard]] std::string why_plain() const {
        if (!refused.empty() || thrown_out <= kMaxAnew) return refused;
        return fmt::format(
            "inputs of more kinds (shapes, types) in turn than the {} that recordings are kept of: each call throws "
            "out "
            "the recording that a later one needs, and is recorded itself (raise CaptureOptions::signatures)",
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

    /// Whether a signature that was not recorded came before; from now on it did.
    bool came_before(const Signature& signature) {
        if (const auto found = std::ranges::find(others, signature); found != others.end()) {
            others.erase(found);
            return true;
        }
        others.push_front(signature);
        if (std::ssize(others) > options.signatures) others.pop_back();
        return false;
    }

    /// That of a signature, which counts as used now; a new one in the place of the one that was not used for longest.
    std::shared_ptr<Kept> of(const Signature& signature) {
        auto found = std::ranges::find(kept, signature, &inputs_of);
        if (found == kept.end()) {
            if (std::ssize(kept) == options.signatures) {
                kept.pop_back();
                ++thrown_out;
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
        const std::vector<BufferRange> places = places_of(given);
        if (own.uses && !own.uses->apart(places)) return plain(given);
        own.forget();
        // Not kept: what the step does with inputs that must be copied, which is right only if it does not write there.
        const bool draft =
            !own.uses && (CapturedUses::overlap(places) ||
                          !std::ranges::all_of(given, [](const Tensor& x) { return fits(x.value().view()); }));
        const StepInputs fixed = step_inputs(given, draft, own.copies);
        Capture capture(device, fixed.places, options.when_refused);
        const std::uint64_t number = Capture::current_number();
        const auto written_down = detail::CaptureTracker::attach(capture);
        written_down->allows_hooks = options.hooks;
        written_down->given = fixed.tensors;
        capture_guard(grad_enabled);
        for (const Tensor& x : given)
            if (x.requires_grad())
                capture.refuse("an input that requires a gradient", "a replay builds no graph that leads back to it",
                               "detach() it, or make it a tensor from before the step");
        std::vector<Tensor> out = step(fixed.tensors);
        if (const auto undefined = std::ranges::find(out, false, &Tensor::defined); undefined != out.end())
            throw ValueError(fmt::format("record: expected defined tensors from the step, got an undefined one at {}",
                                         undefined - out.begin()));
        std::vector<std::size_t> from_input = inputs_among(out, fixed.tensors);
        if (Capture::current() == &capture) {  // nothing was refused within the step
            if (const auto found = unfit(out, from_input, fixed.buffers, *written_down))
                capture.refuse(found->what, found->since, found->instead);
        }
        if (Capture::current() == &capture) {
            // In the order in which a plain call's would be asked for: in f16 it matters what is rounded on the way.
            for (const Tensor& result : out) (void)result.value().view();
        }
        written_down->given = {};
        const bool other_names = draft || written_down->inputs_under_other_names(number, fixed.tensors);
        const bool ambiguous = other_names || (capture.wants_whole_inputs() && !own.copies);
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

    /// What becomes of a call that was recorded.
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
            } else if (++own.anew > kMaxAnew) {
                refuse(ambiguous ? "a step that uses its input under another name"
                                 : "a step whose values another thread computes");
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

    /// What the step is given while it is recorded.
    struct StepInputs {
        std::vector<Tensor> tensors;
        std::vector<Buffer> buffers;
        std::vector<BufferRange> places;
        std::vector<std::uint64_t> versions;  // of the buffers before the step
    };

    /// @param as_they_lie however that is
    static StepInputs step_inputs(const std::vector<Tensor>& given, bool as_they_lie, bool copied) {
        StepInputs out;
        for (const Tensor& x : given) {
            ops::View view = x.value().view();
            // Commands tell inputs by their memory.
            const bool told = std::ranges::find(out.buffers, view.buffer) == out.buffers.end();
            if (!as_they_lie && (copied || !told || !fits(view))) view = x.clone().value().view();
            out.tensors.emplace_back(ops::LazyArray(
                // by a value of its own, so that the tensor itself, if the step uses it, is told from the input
                view));
            out.buffers.push_back(view.buffer);
            out.places.push_back(place_of(view));
        }
        for (const Buffer& buffer : out.buffers) out.versions.push_back(buffer.version());
        return out;
    }

    /// For each result the input that it is, or kNone.
    static std::vector<std::size_t> inputs_among(const std::vector<Tensor>& results,
                                                 const std::vector<Tensor>& inputs) {
        std::vector<std::size_t> from_input(results.size(), kNone);
        for (std::size_t i = 0; i < results.size(); ++i)
            if (const auto same = std::ranges::find(inputs, results[i].state(), &Tensor::state); same != inputs.end())
                from_input[i] = static_cast<std::size_t>(same - inputs.begin());
        return from_input;
    }

    /// Whether a recording that was made may stand for the calls to come; what forbids it for good is refused.
    bool may_replay(Kept& own, const CommandList& made, const detail::CaptureTracker& written_down) {
        if (written_down.assigned()) {
            constexpr auto* why = "assign() to a tensor that was there before the step";
            if (options.when_refused == WhenRefused::fail)
                throw Unsupported(fmt::format("record: {} cannot be recorded; write its elements by copy_()", why));
            refuse(why);
            return false;
        }
        if (own.fingerprint && made.fingerprint() != *own.fingerprint) {
            own.alike = 0;
            for (const auto& kept_item : kept)
                if (kept_item.get() != &own) kept_item->start_over();
            if (++own.anew > kMaxAnew) {
                refuse("a step whose commands are others from call to call");
                return false;
            }
        }
        return true;
    }

    struct Unfit {
        const char *what, *since, *instead;
    };
    /// What a step gives or leaves that cannot be given again by a replay.
    static std::optional<Unfit> unfit(const std::vector<Tensor>& out, const std::vector<std::size_t>& from_input,
                                      const std::vector<Buffer>& buffers, const detail::CaptureTracker& notes) {
        constexpr const char* of_first_call = "its graph is that of the first call, and a replay builds none";
        constexpr const char* of_input = "the inputs of the next call lie in other memory";
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i].requires_grad() && !out[i].is_leaf())
                return Unfit{"a result that requires a gradient", of_first_call,
                             "call backward within the step, or detach() it"};
            if (from_input[i] == kNone && out[i].value().computed() &&
                std::ranges::find(buffers, out[i].value().view().buffer) != buffers.end())
                return Unfit{"a result that lies in the memory of an input", of_input, "clone() it"};
        }
        if (notes.leaves_graph())
            return Unfit{"a gradient that requires a gradient", of_first_call,
                         "use it within the step and zero_grad() behind that, or leave create_graph out"};
        if (notes.leaves_gradient_in(buffers))
            return Unfit{"a gradient that lies in the memory of an input", of_input, "clone() it"};
        return {};
    }

    /// What a step wrote to an input in place, when that was not the memory that it was given.
    static void written_back(const Tensor& to, const Tensor& from) {
        if (to.value().view().buffer == from.value().view().buffer) return;
        const NoGrad no_grad;
        Tensor(to).copy_(from);
    }

    /// A call that neither is recorded nor a replay.
    std::vector<Tensor> plain(const std::vector<Tensor>& given) {
        for (std::size_t i = 0; i < given.size(); ++i)
            if (options.when_refused == WhenRefused::fail && given[i].requires_grad())
                throw Unsupported(
                    fmt::format("Recorded: expected inputs that require no gradient, got one for input {}", i));
        return step(given);
    }

    std::vector<Tensor> replay(const Kept& own, const std::vector<Tensor>& given) {
        if (std::ranges::any_of(given, &Tensor::requires_grad) || !own.uses->apart(places_of(given)))
            return plain(given);
        std::vector<Tensor> read;
        std::vector<std::uint64_t> versions;
        for (std::size_t i = 0; i < given.size(); ++i) {
            Tensor x = given[i];
            if (!fits(x.value().view()) || !own.command_list.serves(i, place_of(x.value().view())))
                x = copy_lying_at(x, own.command_list.misalignment(i));
            own.command_list.replace(i, place_of(x.value().view()));
            versions.push_back(x.value().view().buffer.version());
            read.push_back(std::move(x));
        }
        const auto written_down = own.notes.lock();
        own.command_list.replay();
        for (std::size_t i = 0; i < given.size(); ++i)
            if (read[i].value().view().buffer.version() != versions[i]) written_back(given[i], read[i]);
        if (written_down) written_down->restore();
        ++replayed;
        thrown_out = 0;
        std::vector<Tensor> out = own.results;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (own.passed_on[i] != kNone) out[i] = given[own.passed_on[i]];
        return out;
    }

    std::vector<Tensor> call(const std::vector<Tensor>& given) {
        const Inside inside(called);
        if (Capture::current() != nullptr || !refused.empty()) return step(given);  // a part of what is recorded there
        for (const Tensor& x : given) detail::require_defined("Recorded", x);
        if (!kept.empty() && given.size() != kept.front()->inputs.size())
            throw ValueError(
                fmt::format("Recorded: expected {} inputs, got {}", kept.front()->inputs.size(), given.size()));
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
        if (own.command_list && own.alike >= options.command_lists && std::exchange(confirms, false))
            own.alike = options.command_lists - 1;
        if (!own.command_list || own.alike < options.command_lists) return capture(given, signature);
        if (own.valid()) try {
                auto out = replay(own, given);
                own.anew = 0;
                return out;
            } catch (const StaleCapture&) {
                if (!own.command_list.stale()) throw;  // by another thread, since it was asked
            }
        if (++own.anew > kMaxAnew) {
            refuse("a step that changes, from call to call, what its kernels were prepared for");
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
            Capture::current()->refuse("a host_call that reads an input", "that is another tensor in each call",
                                       "let it read a clone()");
        (void)read.value().view();
    }
    host_call(call);
}

CapturedStep::CapturedStep(StepFunction step, const CaptureOptions& options) {
    if (!step) throw ValueError("record: expected a function, got an empty one");
    if (options.command_lists < 1)
        throw ValueError(fmt::format("record: expected at least 1 recording, got {}", options.command_lists));
    if (options.signatures < 1)
        throw ValueError(fmt::format("record: expected room for at least 1 signature, got {}", options.signatures));
    state_ = std::make_unique<State>(std::move(step), options);
}
CapturedStep::~CapturedStep() = default;
void CapturedStep::require_in_place() const {
    if (!state_) throw ValueError("Recorded: expected a step, got one that was moved from");
}
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&&) noexcept = default;

std::vector<Tensor> CapturedStep::operator()(const std::vector<Tensor>& inputs) {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->call(inputs);
}

bool CapturedStep::replays() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    if (state_->kept.empty()) return false;
    const State::Kept& last = *state_->kept.front();
    return last.command_list && last.alike >= state_->options.command_lists && last.valid();
}

std::int64_t CapturedStep::replayed() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->replayed;
}

std::string CapturedStep::refused() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->why_plain();
}

CommandList CapturedStep::command_list() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->kept.empty() ? CommandList() : state_->kept.front()->command_list;
}

void CapturedStep::reset() {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->kept.clear();
    state_->others.clear();
    state_->refused.clear();
    state_->thrown_out = 0;
}

void CapturedStep::confirm() {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->confirms = true;
}

}  // namespace declivity
