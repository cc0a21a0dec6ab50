// Layer 5. Graph capture: a function of tensors is called once, and later calls replay its commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/runtime/command_list.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup capture
/// @{

/// Maps inputs to results.
using StepFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct CaptureOptions {
    /// Behaviour for a step that cannot be captured: an error, or plain calls.
    WhenRefused when_refused = WhenRefused::fail;
    /// Number of consecutive calls to capture, whose commands must be identical before the next call is a replay. 1
    /// assumes that the step does the same each time; more detect a step that depends on its call count, which is then
    /// called plainly, unless the calls differ only in the tensors they work on.
    int warmup_captures = 1;
    /// Number of input signatures (shapes, types) to keep captures for, each with memory of its own; the least recently
    /// used one is evicted. With WhenRefused::run, the first call with a new signature, when others were captured
    /// before, is a plain call, since it may be the only one.
    int signatures = 4;
    /// Device of the step; if not set, that of the first input, or the default device.
    std::optional<Device> device = {};
    /// True if the tensor hooks called by the step only enqueue work, which a replay repeats without calling them. If
    /// false, a step that calls a hook is not captured.
    bool hooks = true;
    /// Deprecated name of warmup_captures, which it overrides if set.
    std::optional<int> recordings = {};
};

/// A captured step: the kernels of a call with their arguments set, and memory of their own.
///
/// The first call runs the function, as does the first with inputs of other shapes or types. Later calls with the same
/// signature replay its commands: kernels read the new inputs in place if these are dense, and write to the same
/// memory, so the results are the same tensors each time, with new elements. Random numbers advance as in plain calls,
/// and the elements are bit-identical to those of plain calls (for inputs that are not dense, such as transposed ones,
/// to those of a call with their clone()). The function and its hooks are not called: host-side effects (a counter, a
/// print) happen once, and host-side decisions (a branch, a number that becomes a kernel argument) are made once.
/// Modules and optimizers of the library register what they depend on, such as train() or eval() and dropout's
/// probability, as guards: a replay checks them first, and captures again if one has changed. Use capture_guard() for
/// values of your own.
///
/// A step works on tensors that outlive it: parameters, running statistics, optimizer state, anything written in place.
/// State that C++ variables carry from one call to the next must be written in place as well (copy_, add_). Gradients
/// that a step leaves in leaves are, like results, the same tensors after each call: one that is kept (Tensor g =
/// w.grad()) is overwritten by the next call, unless it is a clone().
///
/// The function is called and captured again when a tensor that it used received other elements by assign(), has
/// changed requires_grad or its hooks, or has another gradient than the one the step accumulated into; when weights
/// that kernels were prepared for were written; when a guard has changed; and when the device ran out of memory and the
/// capture released its own. A call whose inputs overlap each other, or tensors that the step writes, is a plain call.
///
/// Not capturable: reading elements (item, to_vector, print), making tensors of host data, moving tensors to another
/// device; results, inputs and gradients that require a gradient; results and gradients in the memory of an input;
/// in-place writes under a graph to tensors from before the step.
///
/// Movable; concurrent calls of one object are serialised. A moved-from object throws ValueError.
class DECLIVITY_API CapturedStep {
  public:
    explicit CapturedStep(StepFunction step, const CaptureOptions& options = {});
    ~CapturedStep();
    CapturedStep(CapturedStep&&) noexcept;
    CapturedStep& operator=(CapturedStep&&) noexcept;

    /// Calls, captures or replays the step.
    /// @throws Unsupported during a first call, naming what cannot be captured, unless WhenRefused::run; ValueError
    /// when the number of inputs changes, or the step returns an undefined tensor; any exception of the step
    std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);

    /// True if calls with the inputs of the last capture are replays.
    [[nodiscard]] bool replays() const;
    /// Number of calls that were replays.
    [[nodiscard]] std::int64_t replayed() const;
    /// Reason why calls are plain calls, or why each call is captured again since CaptureOptions::signatures is too
    /// small; empty otherwise.
    [[nodiscard]] std::string refused() const;
    /// The captured commands; empty before the first call, and if it was refused.
    [[nodiscard]] CommandList command_list() const;
    [[deprecated("CapturedStep::command_list")]] [[nodiscard]] CommandList recording() const { return command_list(); }
    /// Verifies the capture: the next call that would be a replay is captured again. If its commands are identical,
    /// replays continue; if not, as many calls as at the beginning are captured, for each input signature.
    void confirm();
    /// Discards all captures: the next call captures. For a step that would do something else now, for example after a
    /// module changed between train() and eval().
    void reset();

  private:
    void require_in_place() const;

    struct State;
    std::unique_ptr<State> state_;
};

/// Returns read(), a host value that a captured step depends on. During capture in this thread the value becomes a
/// guard: `read` is called before each replay, and if it returns another value the step is called and captured again.
///
///     Tensor loss = cross_entropy(model(x), labels) * capture_guard([&] { return temperature; });
///
/// @param read a function without arguments whose result can be copied and compared. It is kept as long as the capture:
/// what it refers to must live as long (nn::Module::guarded() ensures that)
template <class Read>
auto capture_guard(Read read) {
    auto value = read();
    if (is_capturing()) add_capture_guard([read, value]() mutable { return static_cast<bool>(read() == value); });
    return value;
}

/// Calls a host function at this point of a step, and again in each replay: to log, to choose a learning rate, to
/// exchange gradients with other processes. The commands before it are enqueued by then, the later ones are not; it
/// synchronises if it needs to. It may read tensors, those of `reads` included, and write in place (fill_, copy_) to
/// tensors from before the step, which the later commands see. It runs in the thread that calls the step, under no lock
/// but the step's own. Inputs differ between calls: pass a clone(). It must sample random numbers from a Generator of
/// its own. An exception ends the call of the step: later commands are not enqueued, and leaves keep their current
/// gradients.
///
///     host_call({loss}, [loss] { log(loss.item<float>()); });
///
/// @param reads tensors of the step that it reads: they are computed before. It must read no others that the step made
/// @throws Unsupported for an input among `reads`, and if it samples from a generator of the step; ValueError for an
/// empty function and an undefined tensor, and if it calls its own step
DECLIVITY_API void host_call(const std::vector<Tensor>& reads, const std::function<void()>& call);

/// A step without inputs and results, called as `step()`.
class DECLIVITY_API CapturedAction : public CapturedStep {
  public:
    using CapturedStep::CapturedStep;
    void operator()() { CapturedStep::operator()({}); }
};

/// A step from one tensor to one, called as `y = step(x)`.
class DECLIVITY_API CapturedFunction : public CapturedStep {
  public:
    using CapturedStep::CapturedStep;
    Tensor operator()(const Tensor& x) { return CapturedStep::operator()({x}).at(0); }
};

/// Makes a captured step of a function of several tensors, of one (such as a module in evaluation mode), or of none:
///
///     auto step = capture([&] {
///         optimizer.zero_grad();
///         cross_entropy(model(x), labels).backward();
///         optimizer.step();
///     });
///     for (int i = 0; i < 1000; ++i) step();
///
/// Does not call it yet.
template <class Function>
auto capture(Function step, const CaptureOptions& options = {}) {
    if constexpr (std::is_invocable_r_v<std::vector<Tensor>, Function&, const std::vector<Tensor>&>) {
        return CapturedStep(std::move(step), options);
    } else if constexpr (std::is_invocable_v<Function&>) {
        return CapturedAction(
            [step = std::move(step)](const std::vector<Tensor>&) mutable { return step(), std::vector<Tensor>{}; },
            options);
    } else if constexpr (std::is_invocable_r_v<Tensor, Function&, const Tensor&>) {
        return CapturedFunction(
            [step = std::move(step)](const std::vector<Tensor>& in) mutable {
                return std::vector{Tensor(step(in.at(0)))};
            },
            options);
    } else {
        static_assert(std::is_invocable_v<Function&>,
                      "capture: expected a function of no tensors, of one tensor that returns one, or of a "
                      "const std::vector<Tensor>& that returns a vector");
    }
}

// ---- deprecated names of version 0.1

using RecordOptions [[deprecated("CaptureOptions")]] = CaptureOptions;
using Recorded [[deprecated("CapturedStep")]] = CapturedStep;
using RecordedAction [[deprecated("CapturedAction")]] = CapturedAction;
using RecordedFunction [[deprecated("CapturedFunction")]] = CapturedFunction;
template <class Function>
[[deprecated("capture")]] auto record(Function step, const CaptureOptions& options = {}) {
    return capture(std::move(step), options);
}
template <class Read>
[[deprecated("capture_guard")]] auto record_guard(Read read) {
    return capture_guard(std::move(read));
}

/// @}

}  // namespace declivity
