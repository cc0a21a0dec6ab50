// Layer 1. Exceptions. Every message names the function, what it expected and what it got.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <declivity/export.hpp>

namespace declivity {

/// @addtogroup runtime
/// @{

/// Base class of all exceptions of the library. The message ends with the open scopes (runtime/scope.hpp), if any.
class DECLIVITY_API Error : public std::runtime_error {
  public:
    explicit Error(const std::string& what);
    ~Error() override;
};

/// An OpenCL error, a kernel build error, no device, or tensors on different devices.
class DECLIVITY_API DeviceError : public Error {
  public:
    /// @param code the OpenCL status (CL_... is negative), 0 if the error did not come from an OpenCL call
    explicit DeviceError(const std::string& what, int code = 0) : Error(what), code_(code) {}
    ~DeviceError() override;
    /// The OpenCL status, 0 if the error did not come from an OpenCL call.
    [[nodiscard]] int code() const noexcept { return code_; }

  private:
    int code_;
};

/// Incompatible shapes, ranks, axes or index ranges.
class DECLIVITY_API ShapeError : public Error {
  public:
    using Error::Error;
    ~ShapeError() override;
};

/// Incompatible element types.
class DECLIVITY_API TypeError : public Error {
  public:
    using Error::Error;
    ~TypeError() override;
};

/// An argument out of range (a negative stride, a probability of 2), or a call in an invalid state.
class DECLIVITY_API ValueError : public Error {
  public:
    using Error::Error;
    ~ValueError() override;
};

/// Out of device memory, after all cached memory was released. Contains the statistics of the pool.
class DECLIVITY_API OutOfMemory : public Error {
  public:
    using Error::Error;
    ~OutOfMemory() override;
};

/// A file with invalid contents.
class DECLIVITY_API FormatError : public Error {
  public:
    /// @param file path of the file
    /// @param offset position in bytes of the first error
    /// @param found what was found there, and what was expected
    FormatError(const std::string& file, std::uint64_t offset, const std::string& found);
    ~FormatError() override;
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  private:
    std::string file_;
    std::uint64_t offset_;
};

/// An operating system error on opening, reading, writing or renaming a file (missing, no permission, disk full).
class DECLIVITY_API IoError : public Error {
  public:
    /// @param action attempted operation ("open", "write 4096 bytes to")
    /// @param error the errno value
    IoError(const std::string& action, const std::string& file, int error);
    ~IoError() override;
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

  private:
    std::string file_;
};

/// The device or the library does not support it (double precision without cl_khr_fp64, a gradient of a gradient).
class DECLIVITY_API Unsupported : public Error {
  public:
    using Error::Error;
    ~Unsupported() override;
};

/// @}

}  // namespace declivity
