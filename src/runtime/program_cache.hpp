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
#include "opencl.hpp"

namespace declivity::detail {

struct KernelState {
    cl::Kernel kernel;
    std::string name;
    DeviceState* device = nullptr;
    std::size_t max_work_group = 0;
    /// What each argument is; unknown where the driver does not tell.
    enum class Space : std::uint8_t { unknown, value, global, local };
    std::vector<Space> arguments;
    std::mutex mutex;  // a cl_kernel may be set and enqueued by one thread at a time
    /// Bytes of the arguments that are numbers or structs, as the last launch set them; guarded by it.
    std::vector<std::string> values;
};

class ProgramCache {
  public:
    explicit ProgramCache(DeviceState& device) : device_(device) {}
    /// The kernel of a spec; compiled by the first caller, awaited by others that want the same program meanwhile.
    std::shared_ptr<KernelState> kernel(const KernelSpec& spec);
    [[nodiscard]] BinarySource& binaries() { return binaries_; }

  private:
    /// What a kernel is found by at each launch, without copies of the text.
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
            // a line for each kernel, of those whose binary was read: a driver may know of the source's only
            arguments;
    };
    struct Entry {
        bool building = true;
        Built built;
    };
    Built program(const KernelSpec& spec);
    Built build(const KernelSpec& spec, const std::string& source);
    /// Builds a file of the library's behind cl_kernels/lib/builtins.clh, where that saves time; false where it does
    /// not build so.
    bool build_with_own_builtins(const KernelSpec& spec, const std::string& source, cl::Program& program);

    /// Most work-items that a group of the kernel may have.
    std::size_t max_work_group(const cl::Kernel& kernel);
    /// Whether the driver says less than is true of kernels that state their group's size (driver_faults.hpp); asks
    /// once.
    bool understates_groups();

    DeviceState& device_;
    BinarySource binaries_;
    std::mutex asked_mutex_;
    std::optional<bool> declarations_in_front_, understates_groups_;
    std::mutex mutex_;
    std::condition_variable built_;
    std::unordered_map<Key, std::shared_ptr<KernelState>, KeyHash, KeyEqual> kernels_;
    std::unordered_map<std::string, Entry> programs_;  // by file, defines
};

/// The whole text of a kernel file, #include lines replaced by what they name.
/// @throws DeviceError when the file or something it includes does not exist
std::string kernel_source(const std::string& file);

/// DECLIVITY_DUMP_KERNELS: writes the kernel's whole program, with the options in its first lines, into the folder that
/// it names.
/// @throws ValueError when the folder does not exist, or cannot be written to
void dump_kernel(const KernelSpec& spec);

/// Options every program is built with.
extern const char* const kBuildOptions;

}  // namespace declivity::detail
