#include <declivity/runtime/scope.hpp>

namespace declivity {
namespace {

std::string& current() {
    thread_local std::string path;
    return path;
}

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
