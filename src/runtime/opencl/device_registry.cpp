#include "device_registry.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/process.hpp"
#include "device_query.hpp"
#include "device_state.hpp"
#include "runtime/process_profile.hpp"

namespace declivity::detail {

Registry& Registry::instance() {
    static auto* registry = new Registry;  // never destroyed, see device_state.hpp
    return *registry;
}

const std::vector<Registry::RegisteredDevice>& Registry::devices() {
    refuse_after_fork("list of OpenCL devices");
    watch_forks();
    const std::scoped_lock lock(mutex_);
    if (searched_) {
        watch_exit(DeviceState::finish_all);
        return devices_;
    }
    // All or nothing: a failed search is repeated by the next call.
    std::vector<RegisteredDevice> found;
    checked("list of OpenCL devices", "this machine", [&] {
        const std::vector<cl_platform_id> all = platforms();
        for (std::size_t p = 0; p < all.size(); ++p) {
            const std::vector<cl_device_id> devices = devices_of(all[p]);
            for (std::size_t d = 0; d < devices.size(); ++d)
                found.push_back({devices[d], describe(all[p], devices[d], fmt::format("{}:{}", p, d)), nullptr});
        }
    });
    devices_ = std::move(found);
    searched_ = true;
    watch_exit(DeviceState::finish_all);  // after the hooks that drivers registered when they were loaded
    return devices_;
}

DeviceState& Registry::state(std::size_t index) {
    devices();
    const std::scoped_lock lock(mutex_);
    RegisteredDevice& entry = devices_.at(index);
    if (entry.state == nullptr) {
        checked("make a context and a queue", entry.info.name, [&] {
            cl_int status = CL_SUCCESS;
            cl::Context context(clCreateContext(nullptr, 1, &entry.device, nullptr, nullptr, &status));
            if (status != CL_SUCCESS) throw cl::Error(status, "clCreateContext");
            cl::CommandQueue queue = make_queue(context, entry.device, entry.info, CL_QUEUE_PROFILING_ENABLE);
            entry.state = new DeviceState(entry.device, std::move(context), std::move(queue), entry.info);
            profile_process(*entry.state);
        });
    }
    return *entry.state;
}

}  // namespace declivity::detail
