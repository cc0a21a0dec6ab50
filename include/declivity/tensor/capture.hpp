// Layer 3. Recorded steps: a function of tensors that is called once, and from then on enqueued as a list of commands.
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

/// From inputs to results.
using StepFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct CaptureOptions {
    /// What becomes of a step that cannot be recorded: an error, or a plain call.
    WhenRefused when_refused = WhenRefused::fail;
    /// So many calls are recorded, one after the other, until their commands are the same and the next call is a
    /// replay. 1 takes it on trust that the step does the same each time; more find out about a step that counts its
    /// calls, which is then called plainly, unless all that differs is which tensors it works on.
    int command_lists = 1;
    /// Of so many kinds of inputs (shapes, types) recordings are kept side by side, each with memory of its own. One
    /// more takes the place of the one that was not used for longest. With WhenRefused::run, inputs of a kind that
    /// comes for the first time, when others were recorded before, are a plain call: they may come alone.
    int signatures = 4;
    /// Of the step; that of the first input if there is one, else the default device, when not set.
    std::optional<Device> device = {};
    /// Whether the hooks of tensors that the step comes to do no more than to enqueue, which a replay does without
    /// calling them. If not, a step that comes to one is not recorded.
    bool hooks = true;
};

/// A step, and what it came to when it was called: its kernels with their arguments set, in memory of their own.
///
/// The first call runs the function, and so does the first with inputs of other shapes or types. Calls with inputs of
/// the same ones enqueue its commands again: kernels read the new inputs, where they lie if these are dense, and write
/// what the first call wrote, so the results are the same tensors each time, with other elements. Random numbers go on
/// as they would in plain calls, and the elements are those of plain calls to the bit (for inputs that lie dense; of
/// others, such as transposed ones, those of a call with their clone()). The function itself is not called, nor are the
/// hooks that it came to: what they do beside launching (a counter, a print) happens once, and what they decide on the
/// host (a branch, a number that becomes an argument of a kernel) is decided once. Modules and optimizers of the
/// library register what they decide by, such as train() or eval() and dropout's probability, as guards: a replay looks
/// at them first, and where one has changed the function is called and recorded anew. A step's own go through
/// capture_guard().
///
/// A step works on tensors that outlive it: parameters, running statistics, an optimizer's moments, whatever is written
/// in place. What a variable of C++ is to carry from one call to the next must be written in place, too (copy_, add_).
/// Gradients that a step leaves in leaves are those after each call; they are the same tensors each time, as results
/// are: whoever keeps one (Tensor g = w.grad()) sees it overwritten by the next call, unless it is a clone().
///
/// The function is called again, and recorded anew, when a tensor that it used was given other elements by assign(),
/// now requires a gradient or no longer does, has other hooks, or has a gradient other than the one that the step added
/// to, when weights that kernels were prepared for were written, when a guard has changed, and when the device had run
/// out of memory and the recording had given up its own. A call whose inputs lie over one another, or in tensors of the
/// step, where it writes, is a plain call.
///
/// What cannot be recorded: to read elements (item, to_vector, print), to make tensors of host data, to take tensors to
/// another device, results, inputs and gradients that require a gradient, results and gradients that lie in the memory
/// of an input, writes in place under a graph to tensors that were there before the step.
///
/// Movable; calls of one object from several threads wait for each other. One that was moved from throws ValueError.
class DECLIVITY_API CapturedStep {
  public:
    explicit CapturedStep(StepFunction step, const CaptureOptions& options = {});
    ~CapturedStep();
    CapturedStep(CapturedStep&&) noexcept;
    CapturedStep& operator=(CapturedStep&&) noexcept;

    /// @throws Unsupported in the middle of a first call, saying what cannot be recorded, not with WhenRefused::run;
    /// ValueError when the number of inputs changes, or the step returns an undefined tensor; whatever the step throws
    std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);

    /// Whether calls with the inputs of the last recording are replays.
    [[nodiscard]] bool replays() const;
    /// Calls that were replays.
    [[nodiscard]] std::int64_t replayed() const;
    /// Why calls are plain ones, or one after the other is recorded since CaptureOptions::signatures is too small, in
    /// words; empty while neither is so.
    [[nodiscard]] std::string refused() const;
    /// The commands; empty before the first call, and where it was refused.
    [[nodiscard]] CommandList command_list() const;
    /// The next call that would be a replay is recorded again, and if its commands are those of before, replays go on;
    /// if not, as many calls are recorded as at the beginning, with inputs of each kind.
    void confirm();
    /// Forgets all: the next call records. For a step that would do something else now, such as one of a module between
    /// train() and eval().
    void reset();

  private:
    void require_in_place() const;

    struct State;
    std::unique_ptr<State> state_;
};

/// What `read` gives: a value of the host that a recorded step depends on. While a step is recorded on this thread the
/// value becomes a guard of the recording: `read` is called before each replay, and where it gives another value the
/// step is called and recorded anew.
///
///     Tensor loss = cross_entropy(model(x), labels) * capture_guard([&] { return temperature; });
///
/// @param read a function without arguments, of something that can be copied and compared. It is kept as long as the
/// recording: what it refers to must
/// live as long. Modules have guarded(), which looks after that.
template <class Read>
auto capture_guard(Read read) {
    auto value = read();
    if (is_capturing()) add_capture_guard([read, value]() mutable { return static_cast<bool>(read() == value); });
    return value;
}

/// Calls `call` at its place in a step, and again in each replay: for what the host has to do between commands, to log,
/// to choose a learning rate, to exchange gradients with other processes. The commands before it are enqueued then and
/// those behind it are not; to wait for them is up to it: it may read tensors, those of `reads` among them, and write
/// to tensors from before the step in place (fill_, copy_), which the commands behind it see. It is called by the
/// thread that calls the step, under no lock but the step's own. Inputs are others in each call: it reads a clone() of
/// one. Random numbers it draws from a Generator of its own. What it throws ends the call of the step there: later
/// commands are not enqueued, leaves keep the gradients that they have.
///
///     host_call({loss}, [loss] { log(loss.item<float>()); });
///
/// @param reads tensors of the step that it reads: they are computed before. It must read no others that the step made
/// @throws Unsupported for an input among `reads`, and where it draws from a generator that the step draws from;
/// ValueError for an empty function and an undefined tensor, and where it calls its own step
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

/// Of a function of several tensors, of one (such as a module in evaluation mode), or of none:
///
///     auto step = capture([&] {
///         optimizer.zero_grad();
///         cross_entropy(model(x), labels).backward();
///         optimizer.step();
///     });
///     for (int i = 0; i < 1000; ++i) step();
///
/// Nothing is called yet.
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
                      "record: expected a function of no tensors, of one that gives one, or of a const "
                      "std::vector<Tensor>& that gives a vector");
    }
}

}  // namespace declivity
