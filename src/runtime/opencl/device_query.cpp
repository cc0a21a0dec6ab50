#include "device_query.hpp"

#include <algorithm>
#include <string_view>

namespace declivity::detail {
namespace {

// Lists devices and platforms through the C API: to get a version, each CLHPP copy queries the device and does not
// check the result.

/// Returns whether a query succeeded. A device may not support it; after a lack of resources it may succeed the next
/// time, so that error is thrown.
bool answered(cl_int status, const char* function) {
    if (is_transient(status)) throw cl::Error(status, function);
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

}  // namespace

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

// A platform without devices returns CL_DEVICE_NOT_FOUND.
std::vector<cl_device_id> devices_of(cl_platform_id platform) {
    cl_uint count = 0;
    if (!answered(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count), "clGetDeviceIDs")) return {};
    std::vector<cl_device_id> found(count);
    if (count == 0 ||
        !answered(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, found.data(), nullptr), "clGetDeviceIDs"))
        return {};
    return found;
}

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

}  // namespace declivity::detail
