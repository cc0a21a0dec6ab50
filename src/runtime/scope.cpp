#include <declivity/runtime/scope.hpp>

#include <declivity/runtime/per_thread.hpp>

#include "spans.hpp"

namespace declivity {
namespace {

std::string& current() { return detail::PerThread<std::string, Scope>::get(); }

thread_local const std::shared_ptr<detail::OperatorRun>* at_operator = nullptr;
thread_local std::string_view put_off;

std::int64_t begin_if_profiled() { return detail::SpanRecorder::on() ? detail::now_ns() : 0; }

}  // namespace

Scope::Scope(std::string_view name) : length_before_(current().size()), begin_(begin_if_profiled()) {
    if (!current().empty()) current() += '/';
    current() += name;
}

Scope::~Scope() {
    if (begin_ != 0) {
        const std::size_t first = length_before_ == 0 ? 0 : length_before_ + 1;  // behind the '/'
        detail::SpanRecorder::instance().add(std::string_view(current()).substr(first), SpanKind::module, begin_);
    }
    current().resize(length_before_);
}

bool profiling() noexcept { return detail::SpanRecorder::on(); }

std::string Scope::path() { return current(); }

ResumedScope::ResumedScope(const std::string& path, std::string_view waiting)
    : before_(current()), waiting_before_(put_off) {
    current() = path;
    put_off = waiting;
}

ResumedScope::~ResumedScope() {
    current().swap(before_);
    put_off = waiting_before_;
}

std::string_view ResumedScope::waiting() noexcept { return put_off; }

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
