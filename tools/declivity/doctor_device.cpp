// Device properties.
#include <declivity/runtime/interop.hpp>  // before the names of OpenCL

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ops/support/work_split.hpp>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

template <class T>
T query(cl_device_id device, cl_device_info what) {
    T value{};
    return clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

std::string query_text(cl_device_id device, cl_device_info what) {
    std::size_t size = 0;
    if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
    std::string text(size, '\0');
    if (clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

std::string_view type_of(DeviceType type) {
    return type == DeviceType::cpu           ? "CPU"
           : type == DeviceType::gpu         ? "GPU"
           : type == DeviceType::accelerator ? "accelerator"
                                             : "other";
}

std::string size_of(std::uint64_t bytes) {
    if (bytes >= std::uint64_t{1} << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
    return bytes >= std::uint64_t{1} << 20 ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20)
                                           : fmt::format("{} KiB", bytes >> 10);
}

std::string floats_of(cl_device_fp_config config) {
    const std::array<std::pair<cl_device_fp_config, const char*>, 6> parts{
        {{CL_FP_DENORM, "denormals"},
         {CL_FP_INF_NAN, "infinity and NaN"},
         {CL_FP_ROUND_TO_NEAREST, "rounding to nearest"},
         {CL_FP_ROUND_TO_ZERO, "to zero"},
         {CL_FP_FMA, "fma"},
         {CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, "exact division"}}};
    std::string out;
    for (const auto& [bit, name] : parts)
        if (config & bit) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
    return out.empty() ? "nothing reported" : out;
}

std::string why_kernel_style(const DeviceInfo& info) {
    for (const char* variable : {"DECLIVITY_KERNEL_STYLE", "DECLIVITY_FAMILY"})
        if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
            return fmt::format("set by {}", variable);
    if (info.type == DeviceType::gpu) return "the device type is GPU";
    if (info.type == DeviceType::cpu)
        return info.vector_width_f32 <= 1 && info.work_items_in_step > 1
                   ? fmt::format("a CPU whose driver vectorises over {} work-items", info.work_items_in_step)
                   : "the device type is CPU";
    return info.dedicated_local_memory ? "dedicated local memory" : "local memory is in global memory";
}

cl_device_fp_config float_config(cl_device_id id) { return query<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG); }

/// All known properties in machine-readable form.
Json figures_of(const Device& device) {
    const DeviceInfo& info = device.info();
    const cl_device_id id = interop::device_id(device);
    return Json{{"id", info.id},
                {"name", info.name},
                {"vendor", info.vendor},
                {"platform", info.platform},
                {"version", info.version},
                {"driver", info.driver},
                {"OpenCL C", query_text(id, CL_DEVICE_OPENCL_C_VERSION)},
                {"type", type_of(info.type)},
                {"kernel_style", device.kernel_style() == KernelStyle::simd ? "simd" : "simt"},
                {"compute units", info.compute_units},
                {"clock MHz", query<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY)},
                {"vector width f32", info.vector_width_f32},
                {"vector width f64", info.vector_width_f64},
                {"memory", info.global_memory},
                {"largest allocation", info.max_allocation},
                {"unified memory", info.unified_memory},
                {"local memory", info.local_memory},
                {"local memory of its own", info.dedicated_local_memory},
                {"largest work-group", info.max_work_group},
                {"largest work-items", info.max_work_items},
                {"work-items in step", info.work_items_in_step},
                {"alignment", info.alignment},
                {"bytes of arguments", query<std::size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE)},
                {"address bits", query<cl_uint>(id, CL_DEVICE_ADDRESS_BITS)},
                {"fp64", info.fp64},
                {"fp16", info.fp16},
                {"subgroups", info.subgroups},
                {"int64 atomics", info.int64_atomics},
                {"command buffers", info.command_buffers},
                {"single fp config", static_cast<std::uint64_t>(float_config(id))},
                {"extensions", info.extensions}};
}

void describe(DoctorRun& e, const Device& device) {
    const DeviceInfo& info = device.info();
    const cl_device_id id = interop::device_id(device);
    const bool cpu = device.kernel_style() == KernelStyle::simd;
    e.fact("platform, driver", fmt::format("{}; {}; {}; {}", info.platform, info.version, info.driver,
                                           query_text(id, CL_DEVICE_OPENCL_C_VERSION)));
    e.fact("kernel style", fmt::format("{}: {}", cpu ? "simd" : "simt", why_kernel_style(info)));
    e.fact("compute units", fmt::format("{} at {} MHz, vectors of {} floats and {} doubles", info.compute_units,
                                        query<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY), info.vector_width_f32,
                                        info.vector_width_f64));
    e.fact("memory", fmt::format("{}, at most {} per allocation, {}; sub-buffers aligned to {} bytes",
                                 size_of(info.global_memory), size_of(info.max_allocation),
                                 info.unified_memory ? "shared with the host" : "dedicated", info.alignment));
    e.fact("work-groups", fmt::format("at most {} work-items, {}; {} of local memory, {}", info.max_work_group,
                                      fmt::join(info.max_work_items, " x "), size_of(info.local_memory),
                                      info.dedicated_local_memory ? "dedicated" : "in global memory"));
    e.fact("f32", floats_of(float_config(id)));
}

void describe_extensions(DoctorRun& e, const DeviceInfo& info) {
    const auto has = [&](std::string_view name) {
        return std::ranges::find(info.extensions, name) != info.extensions.end();
    };
    std::string supported, unsupported;
    for (const char* name :
         {"cl_khr_fp64", "cl_khr_fp16", "cl_khr_int64_base_atomics", "cl_khr_subgroups", "cl_khr_subgroup_shuffle",
          "cl_intel_subgroups", "cl_khr_command_buffer", "cl_khr_integer_dot_product", "cl_khr_il_program"}) {
        std::string& list = has(name) ? supported : unsupported;
        list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    }
    e.fact("extensions", fmt::format("with {}; without {}", supported.empty() ? "none of the relevant ones" : supported,
                                     unsupported.empty() ? "none of the relevant ones" : unsupported));
}

/// The library's requirements.
void examine_what_is_needed(DoctorRun& e, const Device& device) {
    const DeviceInfo& info = device.info();
    const cl_device_id id = interop::device_id(device);
    e.check("OpenCL 1.2 or later", [&] {
        return info.version.starts_with("OpenCL 1.0") || info.version.starts_with("OpenCL 1.1") ? info.version : "";
    });
    e.check("compiler, little-endian, infinities, NaN and rounding to nearest", [&]() -> std::string {
        const cl_device_fp_config floats = float_config(id);
        if (query<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) == 0) return "the driver has no compiler";
        if (query<cl_bool>(id, CL_DEVICE_ENDIAN_LITTLE) == 0) return "the device is big-endian";
        return (floats & CL_FP_INF_NAN) != 0 && (floats & CL_FP_ROUND_TO_NEAREST) != 0
                   ? ""
                   : fmt::format("f32 supports: {}", floats_of(floats));
    });
    e.check("1024 bytes of arguments, 32 KiB of local memory, 16 bytes of alignment", [&] {
        const auto parameters = query<std::size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE);
        std::string wrong;
        if (parameters < 1024) wrong += fmt::format("{} bytes of arguments; ", parameters);
        if (info.local_memory < 32 << 10) wrong += fmt::format("{} bytes of local memory; ", info.local_memory);
        if (info.alignment < 16) wrong += fmt::format("sub-buffers are aligned to {} bytes; ", info.alignment);
        return wrong;
    });
}

}  // namespace

void examine_device(DoctorRun& e) {
    const Device device = e.device();
    const DeviceInfo& info = device.info();
    e.fact("device", [&] {
        return Fact{fmt::format("{}, {} ({}), a {}", info.id, info.name, info.vendor, type_of(info.type)),
                    {{"device", figures_of(device)}}};
    });
    describe(e, device);
    describe_extensions(e, info);
    examine_what_is_needed(e, device);
}

}  // namespace declivity::tools::doctor
