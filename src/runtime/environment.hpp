// Layer 1, private. Environment variables (docs/reference/environment.md), parsed once into one struct at first use. An
// empty variable counts as unset unless stated otherwise. An invalid value is an error where the variable is first
// used, never a default.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>

namespace declivity::detail {

/// The value of a variable, or the error message if it is invalid.
template <class T>
class Setting {
  public:
    Setting() = default;
    Setting(T value) : value_(std::move(value)) {}  // NOLINT: a value is a setting
    static Setting wrong(std::string what) {
        Setting out;
        out.wrong_ = std::move(what);
        return out;
    }
    /// Returns whether the value is valid.
    [[nodiscard]] bool is_valid() const noexcept { return wrong_.empty(); }
    /// @throws ValueError naming the variable, the expected form and the value
    [[nodiscard]] const T& get() const {
        if (!wrong_.empty()) throw ValueError(wrong_);
        return value_;
    }

  private:
    T value_{};
    std::string wrong_;
};

/// A number of bytes, or a share of the device's memory.
struct MemoryShare {
    double share = 0;
    std::optional<std::uint64_t> bytes = {};
};

enum class Staging : std::uint8_t { plain, pinned };

struct Environment {
    std::string device;                                  // DECLIVITY_DEVICE
    Setting<std::optional<KernelStyle>> style;           // DECLIVITY_KERNEL_STYLE: simd, simt
    Setting<std::optional<Staging>> staging;             // DECLIVITY_STAGING: plain, pinned
    Setting<bool> exact_pool;                            // DECLIVITY_POOL: exact
    Setting<std::optional<std::uint64_t>> memory_limit;  // DECLIVITY_MEMORY_LIMIT: bytes, as 500M or 2G
    Setting<MemoryShare> packed_weights;            // DECLIVITY_PACKED_WEIGHTS: bytes as above, or a share such as 25%
    Setting<bool> fusion{true};                     // DECLIVITY_FUSION: 0, 1
    Setting<bool> winograd{true};                   // DECLIVITY_WINOGRAD
    Setting<bool> workarounds{true};                // DECLIVITY_WORKAROUNDS
    Setting<bool> tune;                             // DECLIVITY_TUNE
    std::string conv2d, matmul;                     // DECLIVITY_CONV2D, DECLIVITY_MATMUL: name of a strategy
    Setting<bool> log_kernels;                      // DECLIVITY_LOG: kernels
    std::string profile;                            // DECLIVITY_PROFILE: a file
    Setting<std::filesystem::path> dumped_kernels;  // DECLIVITY_DUMP_KERNELS: a folder that exists
    Setting<std::filesystem::path> kernel_folder;   // DECLIVITY_KERNEL_DIR: a folder that exists
    /// Folder of the program and tuning caches: DECLIVITY_CACHE_DIR (empty: disabled), or a folder in the user's home.
    /// Empty: disabled.
    std::filesystem::path cache_folder;
    std::filesystem::path tuning_file;  // DECLIVITY_TUNING_FILE, or a file in the cache folder; empty: disabled
    std::string driver_options;         // POCL_EXTRA_BUILD_FLAGS, which PoCL adds to the options of each program
};

/// The environment at the time of the first call.
const Environment& environment();
/// For tests and tools that change variables of their own process: parses them again. Values already taken from the
/// previous environment do not change.
DECLIVITY_API void reload_environment();

}  // namespace declivity::detail
