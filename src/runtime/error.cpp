#include <cstring>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

std::string with_scope(const std::string& what) {
    const std::string path = Scope::path();
    if (const std::string_view waiting = ResumedScope::waiting(); !waiting.empty())
        return fmt::format("{} (in {}{}{}, called before and launched now)", what, path, path.empty() ? "" : "/",
                           waiting);
    return path.empty() ? what : fmt::format("{} (in {})", what, path);
}

}  // namespace

Error::Error(const std::string& what) : std::runtime_error(with_scope(what)) {}

// The destructors stand here so that each exception has one vtable, which a catch in another library can match.
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
