#include <declivity/tensor/record.hpp>

#include <algorithm>
#include <mutex>
#include <optional>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "step_notes.hpp"
#include "tensor_state.hpp"
#include "runtime/recorder.hpp"

namespace declivity {
namespace {

/// Calls without a replay between them that had to be recorded anew, until recording is given up: it costs more than a
/// plain call.
constexpr int kMostAnew = 4;
/// Plain calls in a row with inputs of another shape, until these are recorded instead: a last batch comes alone.
constexpr int kMostOthers = 2;

/// What commands may read by its memory alone: all of it, and dense.
Tensor as_input(const Tensor& x) {
    const ops::View& view = x.value().view();
    return view.dense() && view.offset == 0 && view.buffer.size() == ops::bytes_of(view.shape, view.dtype) ? x
                                                                                                           : x.clone();
}

}  // namespace

struct Recorded::State {
    State(StepFunction function, const RecordOptions& given) : step(std::move(function)), options(given) {}

    struct Input {
        Shape shape;
        DType dtype;
        Device device;
    };
    /// A result that is one of the inputs.
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    StepFunction step;
    const RecordOptions options;
    mutable std::recursive_mutex mutex;  // the step may ask
    std::vector<Input> inputs;
    Recording recording;
    std::weak_ptr<detail::StepNotes> notes;  // held by the recording
    std::vector<Tensor> results;
    std::vector<std::size_t> passed_on;  // for each result, the input that it is
    int alike = 0;                       // recordings with the same commands
    int anew = 0, others = 0;            // calls in a row
    std::optional<std::uint64_t> fingerprint;
    std::int64_t replayed = 0;
    std::string refused;

    void forget() {
        recording = {};
        results.clear();
        passed_on.clear();
        inputs.clear();
    }

    /// What comes next may be anything.
    void start_over() {
        alike = 0;
        fingerprint.reset();
    }

    void refuse(std::string why) {
        forget();
        refused = std::move(why);
    }

    /// In what these inputs are other than the recorded ones; empty when in nothing.
    [[nodiscard]] std::string difference(const std::vector<Tensor>& given) const {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            detail::require_defined("Recorded", given[i]);
            if (!(given[i].shape() == inputs[i].shape) || given[i].dtype() != inputs[i].dtype)
                return fmt::format("input {} of shape {} and type {}, got {} and {}", i, inputs[i].shape.str(),
                                   name_of(inputs[i].dtype), given[i].shape().str(), name_of(given[i].dtype()));
            if (!(given[i].device() == inputs[i].device))
                return fmt::format("input {} on '{}', got one on '{}'", i, inputs[i].device.name(),
                                   given[i].device().name());
            if (options.when_refused == WhenRefused::run && given[i].requires_grad())
                return "inputs without a gradient";
        }
        return {};
    }

    [[nodiscard]] bool valid() const {
        const auto written_down = notes.lock();
        return written_down && !recording.stale() && written_down->holds() && recording.guards_hold();
    }

    std::vector<Tensor> record(const std::vector<Tensor>& given) {
        forget();
        for (const Tensor& x : given) detail::require_defined("record", x);
        const Device device = options.device ? *options.device : given.empty() ? default_device() : given[0].device();
        if (options.when_refused == WhenRefused::run) {
            const auto unfit = [&](const Tensor& x) { return x.requires_grad() || !(x.device() == device); };
            if (std::ranges::any_of(given, unfit)) {
                refuse("an input that requires a gradient or is on another device");
                return step(given);
            }
        }
        const StepInputs fixed = step_inputs(given);
        Recorder recorder(device, fixed.buffers, options.when_refused);
        const std::uint64_t number = Recorder::current_number();
        const auto written_down = detail::StepNotes::attach(recorder);
        written_down->allows_hooks = options.hooks;
        record_guard(grad_enabled);
        for (const Tensor& x : given)
            if (x.requires_grad()) recorder.refuse("an input that requires a gradient");
        std::vector<Tensor> out = step(fixed.tensors);
        std::vector<std::size_t> from_input = inputs_among(out, fixed.tensors);
        if (Recorder::current() == &recorder) {  // nothing was refused within the step
            if (const auto why = unfit(out, from_input, fixed.buffers, *written_down); !why.empty())
                recorder.refuse(why);
        }
        if (Recorder::current() == &recorder) {
            // In the order in which a plain call's would be asked for: in f16 it matters what is rounded on the way.
            for (const Tensor& result : out)
                if (result.defined()) (void)result.value().view();
        }
        const bool ambiguous = written_down->inputs_under_other_names(number, fixed.tensors);
        const Recording made = recorder.finish();
        for (std::size_t i = 0; i < given.size(); ++i)
            if (fixed.buffers[i].version() != fixed.versions[i]) written_back(given[i], fixed.tensors[i]);
        for (std::size_t i = 0; i < out.size(); ++i)
            if (from_input[i] != kNone) out[i] = given[from_input[i]];
        if (ambiguous || recorder.incomplete()) {  // the call itself was as it should be
            start_over();
            if (++anew > kMostAnew)
                refuse(ambiguous ? "a step that uses its input under another name"
                                 : "a step whose values another thread computes");
        } else if (!made) {
            refuse(recorder.refused());
        } else {
            written_down->close();
            if (may_replay(made, *written_down)) keep(made, written_down, given, out, std::move(from_input));
        }
        return out;
    }

    /// What the step is given while it is recorded.
    struct StepInputs {
        std::vector<Tensor> tensors;
        std::vector<Buffer> buffers;
        std::vector<std::uint64_t> versions;  // of the buffers before the step
    };

    static StepInputs step_inputs(const std::vector<Tensor>& given) {
        StepInputs out;
        for (const Tensor& x : given) {
            ops::View view = as_input(x).value().view();
            // Commands tell inputs by their memory.
            if (std::ranges::find(out.buffers, view.buffer) != out.buffers.end()) view = x.clone().value().view();
            out.tensors.emplace_back(ops::Value(
                // by a value of its own, so that the tensor itself, if the step uses it, is told from the input
                view));
            out.buffers.push_back(view.buffer);
        }
        for (const Buffer& buffer : out.buffers) out.versions.push_back(buffer.version());
        return out;
    }

    /// For each result the input that it is, or kNone.
    static std::vector<std::size_t> inputs_among(const std::vector<Tensor>& results,
                                                 const std::vector<Tensor>& inputs) {
        std::vector<std::size_t> from_input(results.size(), kNone);
        for (std::size_t i = 0; i < results.size(); ++i)
            if (const auto same = std::ranges::find(inputs, results[i].state(), &Tensor::state);
                results[i].defined() && same != inputs.end())
                from_input[i] = static_cast<std::size_t>(same - inputs.begin());
        return from_input;
    }

    /// Whether a recording that was made may stand for the calls to come; what forbids it for good is refused.
    bool may_replay(const Recording& made, const detail::StepNotes& written_down) {
        if (written_down.assigned()) {
            constexpr auto* why = "assign() to a tensor that was there before the step";
            if (options.when_refused == WhenRefused::fail)
                throw Unsupported(fmt::format("record: {} cannot be recorded; write its elements by copy_()", why));
            refuse(why);
            return false;
        }
        if (fingerprint && made.fingerprint() != *fingerprint) {
            alike = 0;
            if (++anew > kMostAnew) {
                refuse("a step whose commands are others from call to call");
                return false;
            }
        }
        return true;
    }

    void keep(const Recording& made, const std::shared_ptr<detail::StepNotes>& written_down,
              const std::vector<Tensor>& given, const std::vector<Tensor>& out, std::vector<std::size_t> from_input) {
        ++alike;
        fingerprint = made.fingerprint();
        recording = made;
        notes = written_down;
        results = out;
        passed_on = std::move(from_input);
        for (const Tensor& x : given) inputs.push_back({x.shape(), x.dtype(), x.device()});
    }

    /// Why what a step gives or leaves cannot be given again by a replay; empty when it can.
    static std::string unfit(const std::vector<Tensor>& out, const std::vector<std::size_t>& from_input,
                             const std::vector<Buffer>& buffers, const detail::StepNotes& notes) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (!out[i].defined()) continue;
            if (out[i].requires_grad() && !out[i].is_leaf())
                return "a result that requires a gradient (call backward within the step, or detach() it)";
            if (from_input[i] == kNone && out[i].value().computed() &&
                std::ranges::find(buffers, out[i].value().view().buffer) != buffers.end())
                return "a result that lies in the memory of an input (clone() it)";
        }
        if (notes.leaves_graph()) return "a gradient that requires a gradient";
        if (notes.leaves_gradient_in(buffers)) return "a gradient that lies in the memory of an input (clone() it)";
        return {};
    }

    /// What a step wrote to an input in place, when that was not the memory that it was given.
    static void written_back(const Tensor& to, const Tensor& from) {
        if (to.value().view().buffer == from.value().view().buffer) return;
        const NoGrad no_grad;
        Tensor(to).copy_(from);
    }

    std::vector<Tensor> replay(const std::vector<Tensor>& given) {
        std::vector<Tensor> read;
        std::vector<std::uint64_t> versions;
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (given[i].requires_grad())
                throw Unsupported(
                    fmt::format("Recorded: wants inputs that require no gradient, got one for input {}", i));
            Tensor x = as_input(given[i]);
            if (!recording.serves(i, x.value().view().buffer)) x = x.clone();
            recording.replace(i, x.value().view().buffer);
            versions.push_back(x.value().view().buffer.version());
            read.push_back(std::move(x));
        }
        const auto written_down = notes.lock();
        recording.replay();
        for (std::size_t i = 0; i < given.size(); ++i)
            if (read[i].value().view().buffer.version() != versions[i]) written_back(given[i], read[i]);
        if (written_down) written_down->restore();
        ++replayed;
        std::vector<Tensor> out = results;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (passed_on[i] != kNone) out[i] = given[passed_on[i]];
        return out;
    }

    std::vector<Tensor> call(const std::vector<Tensor>& given) {
        if (Recorder::current() != nullptr || !refused.empty()) return step(given);  // a part of what is recorded there
        if (!recording) return record(given);
        if (given.size() != inputs.size())
            throw ValueError(fmt::format("Recorded: wants {} inputs, got {}", inputs.size(), given.size()));
        if (const std::string other = difference(given); !other.empty()) {
            if (options.when_refused == WhenRefused::fail)
                throw ShapeError(fmt::format("Recorded: wants {}; reset() records anew", other));
            if (++others < kMostOthers || std::ranges::any_of(given, &Tensor::requires_grad)) return step(given);
            start_over();
            return record(given);
        }
        others = 0;
        if (alike < options.recordings) return record(given);
        if (valid()) try {
                auto out = replay(given);
                anew = 0;
                return out;
            } catch (const ValueError&) {
                if (!recording.stale()) throw;  // by another thread, since it was asked
            }
        if (++anew > kMostAnew) {
            refuse("a step that changes, from call to call, what its kernels were prepared for");
            return step(given);
        }
        start_over();
        return record(given);
    }
};

Recorded::Recorded(StepFunction step, const RecordOptions& options) {
    if (!step) throw ValueError("record: wants a function, got an empty one");
    if (options.recordings < 1)
        throw ValueError(fmt::format("record: wants at least 1 recording, got {}", options.recordings));
    state_ = std::make_unique<State>(std::move(step), options);
}
Recorded::~Recorded() = default;
void Recorded::require_in_place() const {
    if (!state_) throw ValueError("Recorded: wants a step, got one that was moved from");
}
Recorded::Recorded(Recorded&&) noexcept = default;
Recorded& Recorded::operator=(Recorded&&) noexcept = default;

std::vector<Tensor> Recorded::operator()(const std::vector<Tensor>& inputs) {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->call(inputs);
}

bool Recorded::replays() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->recording && state_->alike >= state_->options.recordings && state_->valid();
}

std::int64_t Recorded::replayed() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->replayed;
}

std::string Recorded::refused() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->refused;
}

Recording Recorded::recording() const {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    return state_->recording;
}

void Recorded::reset() {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->forget();
    state_->start_over();
    state_->anew = state_->others = 0;
    state_->refused.clear();
}

void Recorded::confirm() {
    detail::refuse_after_fork("a recorded step");
    require_in_place();
    const std::scoped_lock lock(state_->mutex);
    state_->alike = std::min(state_->alike, state_->options.recordings - 1);
}

}  // namespace declivity
