// Layer 1. The exceptions of the library. Every message names the function that was called, what it wants
// and what it got.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <declivity/export.hpp>

namespace declivity {

/// Base of everything the library throws on purpose. The message closes with the open scopes (runtime/scope.hpp), if
/// any.
class DECLIVITY_API Error : public std::runtime_error {
  public:
    explicit Error(const std::string& what);
    ~Error() override;
};

/// OpenCL refused a call, a kernel did not build, there is no device, or tensors live on different devices.
class DECLIVITY_API DeviceError : public Error {
  public:
    /// @param code the OpenCL status (CL_... is negative), 0 when no OpenCL call was at fault
    explicit DeviceError(const std::string& what, int code = 0) : Error(what), code_(code) {}
    ~DeviceError() override;
    /// The OpenCL status, 0 when no OpenCL call was at fault.
    [[nodiscard]] int code() const noexcept { return code_; }

  private:
    int code_;
};

/// Shapes, ranks, axes or index ranges that do not fit.
class DECLIVITY_API ShapeError : public Error {
  public:
    using Error::Error;
    ~ShapeError() override;
};

/// Element types that do not fit.
class DECLIVITY_API TypeError : public Error {
  public:
    using Error::Error;
    ~TypeError() override;
};

/// A parameter outside its range (a negative stride, a probability of 2), or a call in the wrong state.
class DECLIVITY_API ValueError : public Error {
  public:
    using Error::Error;
    ~ValueError() override;
};

/// The device has no room left, even after all cached memory was given back. Carries the pool's figures.
class DECLIVITY_API OutOfMemory : public Error {
  public:
    using Error::Error;
    ~OutOfMemory() override;
};

/// A file whose content is not what it should be.
class DECLIVITY_API FormatError : public Error {
  public:
    /// @param file path of the file; @param offset position in bytes of the first thing that is wrong
    /// @param found what stands there, and what was wanted
    FormatError(const std::string& file, std::uint64_t offset, const std::string& found);
    ~FormatError() override;
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  private:
    std::string file_;
    std::uint64_t offset_;
};

/// The operating system refused to open, read, write or rename a file (missing, no permission, disk full).
class DECLIVITY_API IoError : public Error {
  public:
    /// @param action what was tried ("open", "write 4096 bytes to"); @param error the errno value
    IoError(const std::string& action, const std::string& file, int error);
    ~IoError() override;
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

  private:
    std::string file_;
};

/// The device or the library cannot do this (double precision without cl_khr_fp64, a gradient of a gradient).
class DECLIVITY_API Unsupported : public Error {
  public:
    using Error::Error;
    ~Unsupported() override;
};

}  // namespace declivity
