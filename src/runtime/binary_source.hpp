// Layer 1, private. Binaries of new programs, asked from their driver.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

#include <declivity/runtime/device.hpp>

#include "binary_store.hpp"
#include "opencl.hpp"

namespace declivity::detail {

/// A device's driver, as far as binaries go. Some have them at hand. Others compile every kernel of a program once more
/// to give them out, for work-groups of any size (PoCL), which takes longer than a binary saves; those keep what they
/// compile on disk themselves. Which kind a driver is shows when it is asked; a note in the cache folder tells the next
/// process.
class BinarySource {
  public:
    enum class Kind : std::uint8_t { unknown, at_hand, compiled };

    explicit BinarySource(Kind kind = Kind::unknown) : kind_(kind) {}
    [[nodiscard]] Kind kind() const { return kind_; }
    /// For tests, which cannot choose their driver.
    void set_kind(Kind kind) { kind_ = kind; }

    /// Stores the binary of a program that was built for `device` in `build_time`, unless the driver compiles them.
    /// None of its kernels may have been launched: PoCL 3.1 ends the process when it is asked while one runs.
    /// @param behind  goes behind the binary
    void save(const cl::Program& program, cl_device_id device, const DeviceInfo& info, const BinaryStore& store,
              std::chrono::duration<double> build_time, std::string_view behind = {});

  private:
    std::atomic<Kind> kind_;
};

}  // namespace declivity::detail
