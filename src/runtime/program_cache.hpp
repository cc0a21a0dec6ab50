// Floor 1, private. Compiled programs, in memory and on disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <declivity/runtime/launch.hpp>

#include "binary_saver.hpp"
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
};

class ProgramCache {
  public:
    explicit ProgramCache(DeviceState& device) : device_(device) {}
    /// The kernel of a spec; compiled by the first caller, awaited by others that want the same program meanwhile.
    std::shared_ptr<KernelState> kernel(const KernelSpec& spec);

  private:
    struct Entry {
        bool building = true;
        cl::Program program;
    };
    cl::Program program(const KernelSpec& spec);
    cl::Program build(const KernelSpec& spec, const std::string& source);

    DeviceState& device_;
    std::atomic<BinarySaver::Driver> driver_ = BinarySaver::Driver::unknown;
    std::mutex mutex_;
    std::condition_variable built_;
    std::unordered_map<std::string, std::shared_ptr<KernelState>> kernels_;  // by file, defines, name
    std::unordered_map<std::string, Entry> programs_;                        // by file, defines
};

/// The whole text of a kernel file, #include lines replaced by what they name.
/// @throws DeviceError when the file or something it includes does not exist
std::string kernel_source(const std::string& file);

/// Options every program is built with.
extern const char* const kBuildOptions;

}  // namespace declivity::detail
