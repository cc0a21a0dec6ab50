#include <declivity/tensor/function_call.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity {
namespace {

constinit thread_local const FunctionCall* innermost = nullptr;
constinit thread_local CallObserver* observer = nullptr;

/// Suspends the observer, which is not notified of calls that it makes itself.
struct Unobserved {
    CallObserver* const suspended = std::exchange(observer, nullptr);
    Unobserved() = default;
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;
    ~Unobserved() { observer = suspended; }
};

struct Printer {
    std::string operator()(bool value) const { return value ? "True" : "False"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    /// With a decimal point, to distinguish it from an integer.
    std::string operator()(double value) const {
        const std::string text = fmt::format("{}", value);
        return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(std::string_view value) const { return fmt::format("'{}'", value); }
    template <class T>
    std::string operator()(std::span<const T> values) const {
        std::vector<std::string> texts;
        for (const T& value : values) texts.push_back((*this)(value));
        return fmt::format("({}{})", fmt::join(texts, ", "), values.size() == 1 ? "," : "");
    }
};

}  // namespace

std::string CallAttribute::str() const { return std::visit(Printer(), value); }

FunctionCall::FunctionCall(std::string_view name, std::string_view alias, std::span<const CallInput> inputs,
                           std::span<const CallAttribute> attributes)
    : name_(name),
      input_count_(inputs.size()),
      attribute_count_(attributes.size()),
      caller_(innermost),
      observed_(observer != nullptr),
      scope_(alias) {
    if (inputs.size() > kMaxInputs || attributes.size() > kMaxAttributes)
        throw ValueError(fmt::format("FunctionCall: expected at most {} inputs and {} attributes of {}, got {} and {}",
                                     kMaxInputs, kMaxAttributes, name, inputs.size(), attributes.size()));
    std::uninitialized_copy(inputs.begin(), inputs.end(), inputs_.begin());
    std::uninitialized_copy(attributes.begin(), attributes.end(), attributes_.begin());
    innermost = this;
    if (!observed_) return;
    try {
        const Unobserved unobserved;
        for (CallObserver* receiver = unobserved.suspended; receiver != nullptr; receiver = receiver->before_)
            receiver->called(*this);
    } catch (...) {
        innermost = caller_;
        throw;
    }
}

FunctionCall::~FunctionCall() { innermost = caller_; }

void FunctionCall::notify_observers(std::span<const Tensor> results) const {
    const Unobserved unobserved;
    for (CallObserver* receiver = unobserved.suspended; receiver != nullptr; receiver = receiver->before_)
        receiver->returned(*this, results);
}

void FunctionCall::require_defined(std::initializer_list<std::string_view> names) const {
    for (const CallInput& input : inputs())
        for (std::size_t i = 0; i < input.tensors.size(); ++i) {
            if (input.tensors[i].defined() || std::ranges::find(names, input.name) == names.end()) continue;
            std::string which = input_count_ == 1 ? std::string() : fmt::format(" as {}", input.name);
            if (input.tensors.size() > 1) which = fmt::format(" as {}[{}]", input.name, i);
            throw ValueError(fmt::format("{}: expected a tensor{}, got an undefined one", scope_.name(), which));
        }
}

CallObserver::CallObserver() : before_(std::exchange(observer, this)) {}
CallObserver::~CallObserver() { observer = before_; }

}  // namespace declivity
