// Layer 1, private. Environment variables, which the README lists: all of them in one struct, parsed once, when the
// first is needed. One that is empty counts as unset, but where said otherwise. What is not understood is an error
// where the variable is first needed, never a value by default.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>

namespace declivity::detail {

/// What a variable says, or what is wrong with it.
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
    /// Whether it can be understood.
    [[nodiscard]] bool is_valid() const noexcept { return wrong_.empty(); }
    /// @throws ValueError naming the variable, what it wants and what it got
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
    Setting<std::optional<KernelStyle>> style;           // DECLIVITY_FAMILY: cpu, gpu
    Setting<std::optional<Staging>> staging;             // DECLIVITY_STAGING: plain, pinned
    Setting<bool> exact_pool;                            // DECLIVITY_POOL: exact
    Setting<std::optional<std::uint64_t>> memory_limit;  // DECLIVITY_MEMORY_LIMIT: bytes, or with K, M or G behind
    Setting<MemoryShare> packed_weights;                 // DECLIVITY_PACKED_WEIGHTS: bytes as above, or as in 25%
    Setting<bool> fusion{true};                          // DECLIVITY_FUSION: 0, 1
    Setting<bool> winograd{true};                        // DECLIVITY_WINOGRAD
    Setting<bool> workarounds{true};                     // DECLIVITY_WORKAROUNDS
    Setting<bool> tune;                                  // DECLIVITY_TUNE
    std::string conv2d, matmul;                          // DECLIVITY_CONV2D, DECLIVITY_MATMUL: a strategy
    Setting<bool> log_kernels;                           // DECLIVITY_LOG: kernels
    std::string profile;                                 // DECLIVITY_PROFILE: a file
    Setting<std::filesystem::path> dumped_kernels;       // DECLIVITY_DUMP_KERNELS: a folder that exists
    Setting<std::filesystem::path> kernel_folder;        // DECLIVITY_KERNEL_DIR: a folder that exists
    /// Where compiled programs and measurements are kept: DECLIVITY_CACHE_DIR, where an empty one means nowhere, or a
    /// folder of the user's. Empty: nowhere.
    std::filesystem::path cache_folder;
    std::filesystem::path tuning_file;  // DECLIVITY_TUNING_FILE, or in the cache folder; empty: nowhere
};

/// What it was when it was first asked for.
const Environment& environment();
/// For tests and tools, which change variables of their own process: parses them anew. What was taken from the one
/// before stays as it was.
DECLIVITY_API void parse_environment_again();

}  // namespace declivity::detail
