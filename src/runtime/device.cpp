#include <declivity/runtime/device.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device_registry.hpp"
#include "device_state.hpp"
#include "environment.hpp"
#include "process_profile.hpp"

namespace declivity {
namespace detail {
namespace {

KernelStyle kernel_style_of(const DeviceInfo& info) {
    if (const auto& wanted = environment().style.get()) return *wanted;
    switch (info.type) {
        case DeviceType::gpu:
            return KernelStyle::simt;
        // A driver that forms vectors of adjacent work-items, as on a GPU: it reports no native vector width, and how
        // many work-items run in lockstep.
        case DeviceType::cpu:
            return info.vector_width_f32 <= 1 && info.work_items_in_step > 1 ? KernelStyle::simt : KernelStyle::simd;
        default:
            return info.dedicated_local_memory ? KernelStyle::simt : KernelStyle::simd;
    }
}

/// Default limit in bytes of the derived cache.
std::uint64_t packed_weights_limit(const DeviceInfo& info) {
    const MemoryShare& given = environment().packed_weights.get();
    if (given.bytes) return *given.bytes;
    const std::uint64_t memory =
        std::min(info.global_memory, environment().memory_limit.get().value_or(~std::uint64_t{0}));
    return static_cast<std::uint64_t>(given.share * static_cast<double>(memory));
}

constinit std::atomic<DeviceState*> last_opened{nullptr};

// Lists devices and platforms through the C API: to get a version, each CLHPP copy queries the device and does not
// check the result.

/// Returns whether a query succeeded. A device may not support it; after a lack of resources it may succeed the next
/// time, so that error is thrown.
bool answered(cl_int status, const char* function) {
    if (passes(status)) throw cl::Error(status, function);
    return status == CL_SUCCESS;
}

/// Queries a device; 0 if it does not support the query.
template <class T>
T query(cl_device_id device, cl_device_info what) {
    T value{};
    return answered(clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo") ? value : T{};
}

/// The same for a string, by clGetDeviceInfo or clGetPlatformInfo.
template <class Get>
std::string text_of(Get&& get, const char* function) {
    std::size_t size = 0;
    if (!answered(get(0, nullptr, &size), function)) return {};
    std::string text(size, '\0');
    if (!answered(get(size, text.data(), nullptr), function)) return {};
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

std::string query_text(cl_device_id device, cl_device_info what) {
    return text_of(
        [&](std::size_t room, void* to, std::size_t* size) { return clGetDeviceInfo(device, what, room, to, size); },
        "clGetDeviceInfo");
}

std::vector<cl_platform_id> platforms() {
    // ICD loaders report the absence of platforms either by a special status or by a count of 0.
    cl_uint count = 0;
    cl_int status = clGetPlatformIDs(0, nullptr, &count);
    if (status == CL_PLATFORM_NOT_FOUND_KHR || (status == CL_SUCCESS && count == 0)) return {};
    std::vector<cl_platform_id> found(count);
    if (status == CL_SUCCESS) status = clGetPlatformIDs(count, found.data(), nullptr);
    if (status != CL_SUCCESS) throw_status(status, "list of OpenCL platforms", "this machine");
    return found;
}

/// A platform without devices (a driver without its card) returns CL_DEVICE_NOT_FOUND.
std::vector<cl_device_id> devices_of(cl_platform_id platform) {
    cl_uint count = 0;
    if (!answered(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count), "clGetDeviceIDs")) return {};
    std::vector<cl_device_id> found(count);
    if (count == 0 ||
        !answered(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, found.data(), nullptr), "clGetDeviceIDs"))
        return {};
    return found;
}

}  // namespace

DeviceInfo describe(cl_platform_id platform, cl_device_id device, std::string id) {
    DeviceInfo info;
    info.id = std::move(id);
    info.name = query_text(device, CL_DEVICE_NAME);
    info.vendor = query_text(device, CL_DEVICE_VENDOR);
    info.platform =
        text_of([&](std::size_t room, void* to,
                    std::size_t* size) { return clGetPlatformInfo(platform, CL_PLATFORM_NAME, room, to, size); },
                "clGetPlatformInfo");
    info.version = query_text(device, CL_DEVICE_VERSION);
    info.driver = query_text(device, CL_DRIVER_VERSION);
    const auto type = query<cl_device_type>(device, CL_DEVICE_TYPE);
    info.type = (type & CL_DEVICE_TYPE_GPU)           ? DeviceType::gpu
                : (type & CL_DEVICE_TYPE_CPU)         ? DeviceType::cpu
                : (type & CL_DEVICE_TYPE_ACCELERATOR) ? DeviceType::accelerator
                                                      : DeviceType::other;
    info.compute_units = query<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info.vector_width_f32 = query<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    info.vector_width_f64 = query<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE);
    info.work_items_in_step = query<std::size_t>(device, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
    info.global_memory = query<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info.max_allocation = query<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info.local_memory = query<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
    info.dedicated_local_memory = query<cl_device_local_mem_type>(device, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
    info.unified_memory = query<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    info.max_work_group = query<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    std::vector<std::size_t> items(std::max<cl_uint>(3, query<cl_uint>(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)));
    if (answered(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, items.size() * sizeof items[0], items.data(),
                                 nullptr),
                 "clGetDeviceInfo"))
        std::copy_n(items.begin(), 3, info.max_work_items.begin());
    info.alignment = query<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    const std::string extensions = query_text(device, CL_DEVICE_EXTENSIONS);
    for (std::size_t start = 0; start < extensions.size();) {
        const std::size_t end = std::min(extensions.find(' ', start), extensions.size());
        if (end > start) info.extensions.push_back(extensions.substr(start, end - start));
        start = end + 1;
    }
    const auto has = [&](std::string_view name) {
        return std::ranges::find(info.extensions, name) != info.extensions.end();
    };
    info.fp64 = has("cl_khr_fp64");
    info.fp16 = has("cl_khr_fp16");
    info.subgroups = has("cl_khr_subgroups") || has("cl_intel_subgroups");
    info.int64_atomics = has("cl_khr_int64_base_atomics");
    info.command_buffers = has("cl_khr_command_buffer");
    return info;
}

cl::CommandQueue make_queue(const cl::Context& context, cl_device_id device, const DeviceInfo& info,
                            cl_command_queue_properties properties) {
    cl_int status = CL_SUCCESS;
    cl_command_queue queue = nullptr;
    if (info.version.starts_with("OpenCL 1.")) {
        queue = clCreateCommandQueue(context(), device, properties, &status);
    } else {
        const std::array<cl_queue_properties, 3> list{CL_QUEUE_PROPERTIES, properties, 0};
        queue = clCreateCommandQueueWithProperties(context(), device, list.data(), &status);
    }
    if (status != CL_SUCCESS) throw cl::Error(status, "clCreateCommandQueue");
    return cl::CommandQueue(queue);
}

DeviceState::DeviceState(cl_device_id handle, cl::Context with, cl::CommandQueue queue, DeviceInfo described)
    : device(handle),
      context(std::move(with)),
      info(std::move(described)),
      style(kernel_style_of(info)),
      compute(std::move(queue)),
      pool(*this),
      derived(packed_weights_limit(info)),
      staging(*this, info.unified_memory),
      programs(*this) {
    checked("make the copy queue", info.name,
            [&] { transfer = make_queue(context, device, info, CL_QUEUE_PROFILING_ENABLE); });
    profile_process(*this);
    opened_before_ = last_opened.load();
    while (!last_opened.compare_exchange_weak(opened_before_, this)) {
    }
}

void DeviceState::finish_all(bool certain) noexcept {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + (certain ? std::chrono::seconds(60) : std::chrono::seconds(5));
    const auto in_time = [&](auto&& done) {
        while (!done()) {
            if (Clock::now() > end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    };
    for (DeviceState* device = last_opened.load(); device != nullptr; device = device->opened_before_) {
        // Another thread may be enqueueing, and enqueueing may compile.
        if (!in_time([&] { return device->enqueuing_.load() == 0; })) return;
        for (const cl::CommandQueue* queue : {&device->transfer, &device->compute}) {
            if (certain) {
                wait_for(*queue);
                continue;
            }
            cl_event last = nullptr;
            if (clEnqueueMarkerWithWaitList((*queue)(), 0, nullptr, &last) != CL_SUCCESS ||
                clFlush((*queue)()) != CL_SUCCESS)
                continue;
            (void)in_time([&] {
                cl_int status = CL_COMPLETE;
                return clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) !=
                           CL_SUCCESS ||
                       status <= CL_COMPLETE;
            });
        }
    }
}

void DeviceState::throw_refused(int status, std::string_view what) const {
    const MemoryStats metrics = pool.metrics();
    throw_status(status,
                 status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES
                     ? fmt::format("{} (pool: {} bytes in use, {} cached, peak {}, device memory {})", what,
                                   metrics.in_use, metrics.cached, metrics.peak, info.global_memory)
                     : std::string(what),
                 info.name);
}

cl::Event DeviceState::compute_marker() {
    cl::Event event;
    refuse_after_fork("marker");
    const Enqueuing enqueuing(*this);
    checked("marker", info.name, [&] { compute.enqueueMarkerWithWaitList(nullptr, &event); });
    // Another queue may depend on it: an event that was never flushed does not complete.
    checked("flush", info.name, [&] { compute.flush(); });
    return event;
}

std::size_t next_per_device() noexcept {
    static std::atomic<std::size_t> next{0};
    return next.fetch_add(1);
}

std::atomic<void*>& place_per_device(const Device& device, std::size_t number) noexcept {
    return device.state().per_device_slots[number];
}

cl_int finish_queue(const cl::CommandQueue& queue) noexcept {
    // A marker after all commands of the in-order queue; enqueued twice, since a driver with this fault may signal a
    // marker before the commands batched with it.
    cl_int marked = CL_SUCCESS;
    for (int i = 0; i < 2 && marked == CL_SUCCESS; ++i) {
        cl_event last = nullptr;
        marked = clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &last);
        if (marked != CL_SUCCESS) break;
        marked = clWaitForEvents(1, &last);
        clReleaseEvent(last);
    }
    const cl_int finished = clFinish(queue());
    return finished != CL_SUCCESS ? finished : marked;
}

void DeviceState::wait_for(const cl::CommandQueue& queue) noexcept { (void)finish_queue(queue); }

void DeviceState::finish(const cl::CommandQueue& queue, std::string_view what) const {
    refuse_after_fork(what);
    if (const cl_int status = finish_queue(queue); status != CL_SUCCESS)
        throw_status(status, std::string(what), info.name);
}

void DeviceState::finish() {
    finish(transfer, "wait for the copy queue");
    finish(compute, "wait for the compute queue");
    watch_exit_again();
}

Registry& Registry::instance() {
    static auto* registry = new Registry;  // never destroyed, see device_state.hpp
    return *registry;
}

const std::vector<Registry::Found>& Registry::devices() {
    refuse_after_fork("list of OpenCL devices");
    watch_forks();
    const std::scoped_lock lock(mutex_);
    if (searched_) {
        watch_exit();
        return found_;
    }
    // All or nothing: a failed search is repeated by the next call.
    std::vector<Found> found;
    checked("list of OpenCL devices", "this machine", [&] {
        const std::vector<cl_platform_id> all = platforms();
        for (std::size_t p = 0; p < all.size(); ++p) {
            const std::vector<cl_device_id> devices = devices_of(all[p]);
            for (std::size_t d = 0; d < devices.size(); ++d)
                found.push_back({devices[d], describe(all[p], devices[d], fmt::format("{}:{}", p, d)), nullptr});
        }
    });
    found_ = std::move(found);
    searched_ = true;
    watch_exit();  // after the hooks that drivers registered when they were loaded
    return found_;
}

DeviceState& Registry::state(std::size_t index) {
    devices();
    const std::scoped_lock lock(mutex_);
    Found& found = found_.at(index);
    if (found.state == nullptr) {
        checked("make a context and a queue", found.info.name, [&] {
            cl_int status = CL_SUCCESS;
            cl::Context context(clCreateContext(nullptr, 1, &found.device, nullptr, nullptr, &status));
            if (status != CL_SUCCESS) throw cl::Error(status, "clCreateContext");
            cl::CommandQueue queue = make_queue(context, found.device, found.info, CL_QUEUE_PROFILING_ENABLE);
            found.state = new DeviceState(found.device, std::move(context), std::move(queue), found.info);
        });
    }
    return *found.state;
}

}  // namespace detail

namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

[[noreturn]] void throw_no_device() {
    throw DeviceError(
        "no OpenCL device found: this machine has no OpenCL driver, or its ICD loader does not see one. Install one: "
        "pocl-opencl-icd runs on any CPU (Debian, Ubuntu: apt install pocl-opencl-icd; Fedora, Arch: pocl); for a GPU "
        "the vendor's driver (intel-opencl-icd, rocm-opencl-icd or mesa-opencl-icd, nvidia-opencl-icd). `clinfo -l` "
        "lists what the loader sees, /etc/OpenCL/vendors what it looks for");
}

/// @param asked the source of the request, for the message
Device find(std::string_view asked, std::string_view what) {
    auto& registry = detail::Registry::instance();
    const auto& found = registry.devices();
    if (found.empty()) throw_no_device();
    const std::string wanted = lower(what);
    const auto matches = [&](const DeviceInfo& info) {
        if (wanted == "gpu") return info.type == DeviceType::gpu;
        if (wanted == "cpu") return info.type == DeviceType::cpu;
        return wanted == info.id || (!wanted.empty() && lower(info.name).find(wanted) != std::string::npos);
    };
    for (std::size_t i = 0; i < found.size(); ++i)
        if (matches(found[i].info)) return Device(&registry.state(i));
    std::vector<std::string> names;
    for (const auto& match : found) names.push_back(fmt::format("{} '{}'", match.info.id, match.info.name));
    throw DeviceError(fmt::format("{}: expected \"gpu\", \"cpu\", an id or part of a name, got \"{}\"; there is {}",
                                  asked, what, fmt::join(names, ", ")));
}

}  // namespace

std::vector<Device> Device::all() {
    auto& registry = detail::Registry::instance();
    std::vector<Device> devices;
    for (std::size_t i = 0; i < registry.devices().size(); ++i) devices.emplace_back(&registry.state(i));
    return devices;
}

Device Device::best() {
    if (const std::string& wanted = detail::environment().device; !wanted.empty())
        return find("DECLIVITY_DEVICE", wanted);
    auto& registry = detail::Registry::instance();
    const auto& found = registry.devices();
    if (found.empty()) throw_no_device();
    for (const DeviceType type : {DeviceType::gpu, DeviceType::accelerator, DeviceType::cpu})
        for (std::size_t i = 0; i < found.size(); ++i)
            if (found[i].info.type == type) return Device(&registry.state(i));
    return Device(&registry.state(0));
}

Device Device::select(std::string_view what) { return find("Device::select", what); }

const DeviceInfo& Device::info() const { return state_->info; }
KernelStyle Device::kernel_style() const { return state_->style; }
MemoryStats Device::memory() const {
    detail::refuse_after_fork("Device::memory");
    MemoryStats metrics = state_->pool.metrics();
    metrics.packed_weights = state_->derived.bytes();
    return metrics;
}
std::vector<ScopeMemory> Device::memory_by_scope() const {
    detail::refuse_after_fork("Device::memory_by_scope");
    return state_->pool.by_scope();
}
void Device::reset_peak_memory() const {
    detail::refuse_after_fork("Device::reset_peak_memory");
    state_->pool.reset_peak();
}
void Device::release_cached_memory() const {
    state_->derived.clear();
    state_->pool.release_cached();
}
std::uint64_t Device::packed_weights_limit() const { return state_->derived.limit(); }
void Device::set_packed_weights_limit(std::uint64_t bytes) const { state_->derived.set_limit(bytes); }
void Device::synchronize() const {
    const Span span("synchronize", SpanKind::wait);
    state_->finish();
}

std::string memory_summary(const Device& device) {
    const MemoryStats metrics = device.memory();
    std::string out = fmt::format("memory of '{}': {} in use, {} cached, {} peak\n", device.name(),
                                  detail::readable_bytes(metrics.in_use), detail::readable_bytes(metrics.cached),
                                  detail::readable_bytes(metrics.peak));
    const auto scopes = device.memory_by_scope();
    std::size_t width = 6;
    std::uint64_t all = 0;  // other threads may have allocated since the statistics were read
    for (const ScopeMemory& scope : scopes) all += scope.bytes;
    for (const ScopeMemory& scope_memory : scopes)
        width = std::max(width, scope_memory.scope.empty() ? std::string_view("outside of modules").size()
                                                           : scope_memory.scope.size());
    out += fmt::format("{:<{}}  {:>10}  {:>7}  {:>5}\n", "module", width, "in use", "blocks", "%");
    for (const ScopeMemory& scope_memory : scopes)
        out += fmt::format("{:<{}}  {:>10}  {:>7}  {:>5.1f}\n",
                           scope_memory.scope.empty() ? "outside of modules" : scope_memory.scope, width,
                           detail::readable_bytes(scope_memory.bytes), scope_memory.blocks,
                           100 * static_cast<double>(scope_memory.bytes) / static_cast<double>(all));
    return out;
}

}  // namespace declivity
