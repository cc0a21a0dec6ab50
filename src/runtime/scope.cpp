#include <declivity/runtime/scope.hpp>

#include <utility>

#include "per_thread.hpp"
#include "spans.hpp"

namespace declivity {
namespace {

struct Open {
    std::string text;
    ScopePath path;  // cached text, created on first use
};
Open& open_scopes() { return detail::PerThread<Open, Scope>::get(); }

constinit thread_local const FunctionScope* innermost_function = nullptr;
thread_local const std::shared_ptr<detail::OperatorRun>* at_operator = nullptr;
thread_local std::string_view put_off;
constinit thread_local const FunctionScope* suspended = nullptr;  // the outermost operator, for deferred operations

std::int64_t begin_if_profiled() { return detail::SpanRecorder::on() ? detail::now_ns() : 0; }

}  // namespace

ScopePath::ScopePath(std::string_view text)
    : text_(text.empty() ? nullptr : std::make_shared<const std::string>(text)) {}

const std::string& ScopePath::str() const noexcept {
    static const auto* const none = new std::string;  // never destroyed: static objects may still query it
    return text_ ? *text_ : *none;
}

Scope::Scope(std::string_view name) : begin_(begin_if_profiled()) {
    Open& open = open_scopes();
    length_before_ = open.text.size();
    path_before_ = std::exchange(open.path, {});
    if (!open.text.empty()) open.text += '/';
    open.text += name;
}

Scope::~Scope() {
    Open& open = open_scopes();
    if (begin_ != 0) {
        const std::size_t first = length_before_ == 0 ? 0 : length_before_ + 1;  // after the '/'
        detail::SpanRecorder::instance().add(std::string_view(open.text).substr(first), SpanKind::module, begin_);
    }
    open.text.resize(length_before_);
    open.path = std::move(path_before_);
}

bool profiling() noexcept { return detail::SpanRecorder::on(); }

ScopePath Scope::path() {
    Open& open = open_scopes();
    if (open.path.empty() && !open.text.empty()) open.path = ScopePath(open.text);
    return open.path;
}

ResumedScope::ResumedScope(const ScopePath& path, std::string_view deferred)
    : before_(Scope::path()),
      waiting_before_(std::exchange(put_off, deferred)),
      function_before_(std::exchange(innermost_function, nullptr)) {
    if (suspended == nullptr) suspended = function_before_;
    Open& open = open_scopes();
    open.text = path.str();
    open.path = path;
}

ResumedScope::~ResumedScope() {
    Open& open = open_scopes();
    open.text = before_.str();
    open.path = std::move(before_);
    put_off = waiting_before_;
    innermost_function = function_before_;
    if (suspended == function_before_) suspended = nullptr;
}

std::string_view ResumedScope::deferred() noexcept { return put_off; }

namespace detail {
const FunctionScope* suspended_function() noexcept;  // declared in process.cpp
const FunctionScope* suspended_function() noexcept { return suspended; }
}  // namespace detail

FunctionScope::FunctionScope(std::string_view name, SpanKind kind)
    : name_(name), kind_(kind), caller_(std::exchange(innermost_function, this)), span_(name, kind) {}
FunctionScope::~FunctionScope() { innermost_function = caller_; }
const FunctionScope* FunctionScope::current() noexcept { return innermost_function; }

Span::Span(std::string_view name, SpanKind kind) : name_(name), begin_(begin_if_profiled()), kind_(kind) {}

Span::~Span() {
    if (begin_ != 0) detail::SpanRecorder::instance().add(name_, kind_, begin_);
}

WorkScope::WorkScope(std::string_view name, const Work& work) : span_(name, SpanKind::operator_) {
    if (!detail::SpanRecorder::on() || at_operator != nullptr) return;
    run_ = std::make_shared<detail::OperatorRun>();
    run_->name = name;
    run_->work = work;
    at_operator = &run_;
}

WorkScope::~WorkScope() {
    if (!run_) return;
    run_->closed.store(true, std::memory_order_release);
    at_operator = nullptr;
}

namespace detail {

const std::shared_ptr<OperatorRun>& current_operator() {
    static const auto* none = new std::shared_ptr<OperatorRun>;
    return at_operator != nullptr ? *at_operator : *none;
}

}  // namespace detail
}  // namespace declivity
