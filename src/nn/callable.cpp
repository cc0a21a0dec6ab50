// The parts of a module call around `forward`: evaluation mode, hooks, observers and summaries.
#include <declivity/nn/callable.hpp>

#include <atomic>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace

template class Callable<Tensor(Tensor)>;

ObserveCalls::ObserveCalls(Observer function)
    : observer_(std::move(function)), before_(std::exchange(observer, &observer_)) {}
ObserveCalls::~ObserveCalls() { observer = before_; }

detail::UnobservedScope::UnobservedScope() : previous_(std::exchange(observer, nullptr)) {}
detail::UnobservedScope::~UnobservedScope() { observer = static_cast<const ObserveCalls::Observer*>(previous_); }

Module::Call::Call(Module& module)
    : module_((module.require_in_place(), module)),
      scope_(module.scope_name_.empty() ? module.type_name() : module.scope_name_),
      caller_(nullptr),
      root_(nullptr) {
    if (Capture::current() != nullptr) module.guard_call();
    if (!std::atomic_ref(module.placed_).load(std::memory_order_relaxed)) module.place();
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

void Module::Call::tell(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    if (Capture* const capture = Capture::current(); capture != nullptr)
        capture->refuse("a call with an observer (nn::ObserveCalls)", "a replay would not notify it",
                        "destroy the observer before the step is captured");
    (*observer)(Scope::path(), module_, inputs, outputs);
}

/// Guards of a captured call: the mode, children, hooks and parametrisations, and whether there is an observer.
void Module::guard_call() const {
    Capture::current()->guard(
        [token = lifetime_token_.watch(), this, training = training_, children = children_.size(), changes = changes_] {
            return !token.expired() && training_ == training && children_.size() == children && changes_ == changes &&
                   observer == nullptr;
        });
}

void Module::guard_children() const {
    Capture* const capture = Capture::current();
    if (capture == nullptr) return;
    capture->guard([token = lifetime_token_.watch(), this, children = children_.size(), changes = changes_] {
        return !token.expired() && children_.size() == children && changes_ == changes;
    });
}

void Module::place() {
    const auto move = [](const Tensor& tensor) { tensor.value().view().buffer.move_to_scope(Scope::path()); };
    for (const OwnParameter& parameter : parameters_) move(parameter.slot->tensor);
    for (const NamedTensor& buffer : buffers_) move(buffer.tensor);
    std::atomic_ref(placed_).store(true, std::memory_order_relaxed);  // several threads may call a module
}

int Module::new_hook(std::string_view function, bool callable) {
    require_in_place();
    if (!callable) throw ValueError(fmt::format("{}: expected a function, got an empty one", function));
    static std::atomic<int> last{0};  // ids are unique, so that a stale id removes no other hook
    note_change();
    return ++last;
}

std::string Module::summary_of(const std::vector<Tensor>& inputs, const std::function<void()>& call) {
    std::string out =
        fmt::format("{:<32} {:<16} {:<20} {:>12} {:>16}\n", "layer", "type", "output", "parameters", "multiply-adds");
    std::int64_t total = 0;
    const auto add_line = [&](const std::string& path, const Module& module, const std::vector<Tensor>& in,
                              const std::vector<Tensor>& outputs) {
        const bool has_layers = module.children_.size() > (module.is_parametrized() ? 1U : 0U);
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
