// Layer 1, private. Fetches the binaries of new programs from the driver.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

#include <declivity/runtime/device.hpp>

#include "opencl.hpp"
#include "runtime/binary_store.hpp"

namespace declivity::detail {

/// Describes how a device's driver serves program binaries. Some drivers have them at hand. Others (PoCL) recompile
/// every kernel of a program for generic work-group sizes when the binary is requested, which takes longer than a
/// binary saves; those have a disk cache of their own. The kind is measured at the first request; a note in the cache
/// folder passes it on to later processes.
class BinarySource {
  public:
    enum class Kind : std::uint8_t { unknown, at_hand, compiled };

    explicit BinarySource(Kind kind = Kind::unknown) : kind_(kind) {}
    [[nodiscard]] Kind kind() const { return kind_; }
    /// For tests, which cannot choose their driver.
    void set_kind(Kind kind) { kind_ = kind; }

    /// Stores the binary of a program that was built for `device` in `build_time`, unless the driver compiles on
    /// request. None of its kernels may have been launched yet: PoCL 3.1 crashes when the binary is requested while one
    /// runs.
    /// @param behind  data appended to the binary
    void save(const cl::Program& program, cl_device_id device, const DeviceInfo& info, const BinaryStore& store,
              std::chrono::duration<double> build_time, std::string_view behind = {});

  private:
    std::atomic<Kind> kind_;
};

}  // namespace declivity::detail
