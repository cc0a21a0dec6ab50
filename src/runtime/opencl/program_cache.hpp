// Layer 1, private. Compiled programs, in memory and on disk.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/launch.hpp>

#include "binary_source.hpp"
#include "device_context.hpp"
#include "opencl.hpp"

namespace declivity::detail {

struct KernelState {
    cl::Kernel kernel;
    std::string name;
    DeviceState* device = nullptr;
    std::size_t max_work_group = 0;
    /// The address space of an argument; unknown if the driver does not report it.
    enum class Space : std::uint8_t { unknown, value, global, local };
    std::vector<Space> arguments;
    std::mutex mutex;  // a cl_kernel may be set and enqueued by one thread at a time
    /// Bytes of the value arguments as set by the last launch; guarded by the mutex.
    std::vector<std::string> values;
};

class ProgramCache {
  public:
    explicit ProgramCache(const DeviceContext& device) : device_(device) {}
    /// Returns the kernel of a spec; compiled by the first caller, while other callers of the same program block.
    std::shared_ptr<KernelState> kernel(const KernelSpec& spec);
    [[nodiscard]] BinarySource& binaries() { return binaries_; }

  private:
    /// Lookup key of a kernel in each launch, without copies of the text.
    struct Key {
        std::string file, name, defines;
    };
    struct KeyHash {
        using is_transparent = void;
        std::size_t operator()(const auto& key) const {
            const auto hash = [](std::string_view text) { return std::hash<std::string_view>()(text); };
            return (hash(key.defines) * 31 + hash(key.name)) * 31 + hash(key.file);
        }
    };
    struct KeyEqual {
        using is_transparent = void;
        bool operator()(const auto& a, const auto& b) const {
            return a.defines == b.defines && a.name == b.name && a.file == b.file;
        }
    };
    struct Built {
        cl::Program program;
        std::string
            // one line per kernel loaded from a binary: a driver may report the arguments of source builds only
            arguments;
    };
    struct Entry {
        bool building = true;
        Built built;
    };
    Built program(const KernelSpec& spec);
    Built build(const KernelSpec& spec, const std::string& source);
    /// Builds a file of the library with cl_kernels/lib/builtins.clh prepended, which saves compile time; false if it
    /// is not applicable or does not compile.
    bool build_with_own_builtins(const KernelSpec& spec, const std::string& source, cl::Program& program);

    /// The maximum work-group size of the kernel.
    std::size_t max_work_group(const cl::Kernel& kernel);
    /// Returns whether the driver understates the maximum group size of kernels with a required size
    /// (driver_faults.hpp); tested once.
    bool understates_groups();

    const DeviceContext& device_;
    BinarySource binaries_;
    std::mutex query_mutex_;
    std::optional<bool> declarations_in_front_, understates_groups_;
    std::mutex mutex_;
    std::condition_variable built_;
    std::unordered_map<Key, std::shared_ptr<KernelState>, KeyHash, KeyEqual> kernels_;
    std::unordered_map<std::string, Entry> programs_;  // by file, defines
};

}  // namespace declivity::detail
