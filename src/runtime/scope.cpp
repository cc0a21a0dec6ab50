#include <declivity/runtime/scope.hpp>

#include <declivity/runtime/per_thread.hpp>

namespace declivity {
namespace {

std::string& current() { return detail::PerThread<std::string, Scope>::get(); }

}  // namespace

Scope::Scope(std::string_view name) : length_before_(current().size()) {
    if (!current().empty()) current() += '/';
    current() += name;
}

Scope::~Scope() { current().resize(length_before_); }

std::string Scope::path() { return current(); }

ResumedScope::ResumedScope(const std::string& path) : before_(current()) { current() = path; }
ResumedScope::~ResumedScope() { current().swap(before_); }

}  // namespace declivity
