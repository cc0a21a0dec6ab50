#include <cstring>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

/// The function called by the program, if the message begins with the name of another one; otherwise "".
std::string called_by(std::string_view what) {
    const FunctionScope* function = FunctionScope::current();
    // Errors of environment variables belong to no function.
    if (function == nullptr || what.starts_with("DECLIVITY_")) return {};
    while (function->caller() != nullptr) function = function->caller();
    const bool backward = function->kind() == SpanKind::backward;
    const std::string name = fmt::format("{}{}", backward ? "backward of " : "", function->name());
    // "conv2d: expected ...", "backward of conv2d, input 1: expected ...", "backward: expected ...".
    if (what.starts_with(name) && (what.substr(name.size()).starts_with(':') || backward)) return {};
    if (backward && what.starts_with("backward: ")) return {};
    return "called by " + name;
}

std::string with_scope(const std::string& what) {
    const ScopePath path = Scope::path();
    if (const std::string_view deferred = ResumedScope::deferred(); !deferred.empty())
        return fmt::format("{} (in {}{}{}, deferred and launched now)", what, path.str(), path.empty() ? "" : "/",
                           deferred);
    const std::string caller = called_by(what);
    if (path.empty() && caller.empty()) return what;
    return fmt::format("{} ({}{}{}{})", what, caller, caller.empty() || path.empty() ? "" : ", ",
                       path.empty() ? "" : "in ", path.str());
}

}  // namespace

Error::Error(const std::string& what) : std::runtime_error(with_scope(what)) {}

// The destructors are defined here so that each exception has one vtable, and a catch in another library matches it.
Error::~Error() = default;
DeviceError::~DeviceError() = default;
ShapeError::~ShapeError() = default;
TypeError::~TypeError() = default;
ValueError::~ValueError() = default;
OutOfMemory::~OutOfMemory() = default;
FormatError::~FormatError() = default;
IoError::~IoError() = default;
Unsupported::~Unsupported() = default;

FormatError::FormatError(const std::string& file, std::uint64_t offset, const std::string& found)
    : Error(fmt::format("{}: at byte {}: {}", file, offset, found)), file_(file), offset_(offset) {}

IoError::IoError(const std::string& action, const std::string& file, int error)
    : Error(fmt::format("cannot {} '{}': {}", action, file, std::strerror(error))), file_(file) {}

}  // namespace declivity
