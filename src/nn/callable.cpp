// The parts of a module call around `forward`: evaluation mode, hooks, observers and summaries.
#include <declivity/nn/callable.hpp>

#include <atomic>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "module_state.hpp"
#include "parameter_slot.hpp"
#include "runtime/capture.hpp"
#include "tensor/tensor_observer.hpp"
#include "unregistered_calls.hpp"

namespace declivity::nn {
namespace {

thread_local const ObserveCalls::Observer* observer = nullptr;

std::int64_t count(const std::vector<Tensor>& tensors) {
    std::int64_t total = 0;
    for (const Tensor& tensor : tensors) total += tensor.numel();
    return total;
}

std::string shapes_of(const std::vector<Tensor>& tensors) {
    std::vector<std::string> shapes;
    for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape().str());
    return fmt::format("{}", fmt::join(shapes, ", "));
}

/// Puts a module and its descendants into evaluation mode, and restores the mode of each at the end.
class EvaluationScope {
  public:
    explicit EvaluationScope(Module& module) : module_(module) {
        save_modes(module);
        module.eval();
    }
    ~EvaluationScope() { restore_modes(module_); }
    EvaluationScope(const EvaluationScope&) = delete;
    EvaluationScope& operator=(const EvaluationScope&) = delete;

  private:
    void save_modes(const Module& module) {
        modes_.push_back(module.training());
        module.for_each_child([&](const Module& child) { save_modes(child); });
    }
    /// train() applies to all descendants: restored from the outermost to the innermost.
    void restore_modes(Module& module) {
        module.train(modes_[next_++]);
        module.for_each_child([&](Module& child) { restore_modes(child); });
    }
    Module& module_;
    std::vector<bool> modes_;
    std::size_t next_ = 0;
};

/// Guards of a captured call: the mode, children, hooks and parametrizations, and whether there is an observer.
void guard_call(const detail::ModuleState& state) {
    Capture::current()->guard([token = state.lifetime(), &state, training = state.training,
                               children = state.children.size(), changes = state.changes] {
        return !token.expired() && state.training == training && state.children.size() == children &&
               state.changes == changes && observer == nullptr;
    });
}

}  // namespace

template class Callable<Tensor(Tensor)>;

ObserveCalls::ObserveCalls(Observer function)
    : observer_(std::move(function)), before_(std::exchange(observer, &observer_)) {}
ObserveCalls::~ObserveCalls() { observer = before_; }

detail::UnobservedScope::UnobservedScope() : previous_(std::exchange(observer, nullptr)) {}
detail::UnobservedScope::~UnobservedScope() { observer = static_cast<const ObserveCalls::Observer*>(previous_); }

Module::Call::Call(Module& module)
    : module_((module.require_in_place(), module)),
      scope_(module.state_->scope_name.empty() ? module.type_name() : module.state_->scope_name),
      caller_(nullptr),
      root_(nullptr) {
    detail::ModuleState& state = *module.state_;
    if (Capture::current() != nullptr) guard_call(state);
    if (!state.attributed.load(std::memory_order_relaxed)) state.attribute_to_scope();
    detail::UnregisteredCalls::enter(*this);
}

Module::Call::~Call() { detail::UnregisteredCalls::leave(*this); }

void Module::Call::require_defined(const Tensor& first) const {
    if (!first.defined())
        throw ValueError(fmt::format("{}: expected a tensor, got an undefined one", module_.type_name()));
}

void Module::Call::runs_hooks() const {
    if (const auto* const observer = declivity::detail::TensorObserver::current();
        observer != nullptr && !observer->allows_hooks())
        Capture::current()->refuse("a hook of a module", "a replay would not call it",
                                   "remove it, or set CaptureOptions::hooks if hooks only enqueue");
}

bool Module::Call::observed() noexcept { return observer != nullptr; }

void Module::Call::notify_observers(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    if (Capture* const capture = Capture::current(); capture != nullptr)
        capture->refuse("a call with an observer (nn::ObserveCalls)", "a replay would not notify it",
                        "destroy the observer before the step is captured");
    (*observer)(Scope::path(), module_, inputs, outputs);
}

int Module::Call::new_hook(Module& module, std::string_view function, bool callable) {
    module.require_in_place();
    if (!callable) throw ValueError(fmt::format("{}: expected a function, got an empty one", function));
    static std::atomic<int> last{0};  // ids are unique, so that a stale id removes no other hook
    module.note_change();
    return ++last;
}

std::string Module::summary_of(const std::vector<Tensor>& inputs, const std::function<void()>& call) {
    std::string out =
        fmt::format("{:<32} {:<16} {:<20} {:>12} {:>16}\n", "layer", "type", "output", "parameters", "multiply-adds");
    std::int64_t total = 0;
    const auto add_line = [&](const std::string& path, const Module& module, const std::vector<Tensor>& in,
                              const std::vector<Tensor>& outputs) {
        const bool has_layers = module.state_->children.size() > (module.is_parametrized() ? 1U : 0U);
        if (has_layers) return;
        const std::int64_t multiply_adds = module.multiply_adds(in, outputs);
        total += multiply_adds;
        out += fmt::format("{:<32} {:<16} {:<20} {:>12} {:>16}\n", path, module.type_name(), shapes_of(outputs),
                           count(module.parameters()), multiply_adds);
    };
    {
        const EvaluationScope evaluation(*this);  // a summary must not update running statistics
        const NoGrad no_grad;
        const ObserveCalls observe(add_line);
        call();
    }
    out += fmt::format("{:<70} {:>12} {:>16}\n",
                       fmt::format("total for {} of {}", inputs.size() == 1 ? "an input" : "inputs", shapes_of(inputs)),
                       count(parameters()), total);
    return out;
}

}  // namespace declivity::nn
