#include "tests/support/devices.hpp"

#include <stdexcept>

#include <tests/support/skip.hpp>

#include <runtime/opencl/device_state.hpp>
#include <runtime/environment.hpp>

namespace declivity::test {

Device device() { return Device::best(); }

Device fresh_device() {
    const Device like = device();
    cl_command_queue queue = make_queue(interop::context(like), interop::device_id(like), CL_QUEUE_PROFILING_ENABLE);
    if (queue == nullptr) throw std::runtime_error("no further command queue");
    const cl::CommandQueue owned(queue);  // wrap() retains it, and may throw
    return interop::wrap(interop::context(like), queue);
}

cl_command_queue make_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties) try {
    char version[128] = {};
    if (clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, nullptr) != CL_SUCCESS) return nullptr;
    DeviceInfo info;
    info.version = version;
    const cl::CommandQueue queue = detail::make_queue(cl::Context(context, true), device, info, properties);
    clRetainCommandQueue(queue());
    return queue();
} catch (const cl::Error&) {
    return nullptr;
}

namespace {

void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) setenv(name.c_str(), value->c_str(), 1);
    else unsetenv(name.c_str());
    declivity::detail::reload_environment();
}

}  // namespace

Environment::Environment(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) before_ = old;
    set(name_, value);
}

Environment::~Environment() { set(name_, before_); }

std::vector<DType> floats() {
    static const bool fp64 = [] {
        const bool has = device().info().fp64;
        if (!has) skip("f64: the device has no double precision");
        return has;
    }();
    return fp64 ? std::vector{DType::f32, DType::f64} : std::vector{DType::f32};
}

DType widest() { return floats().back(); }

std::vector<KernelStyle> kernel_styles() {
    static const bool both = [] {
        const Environment own("DECLIVITY_KERNEL_STYLE", std::nullopt);
        const bool can = device().info().type != DeviceType::cpu || fresh_device().kernel_style() == KernelStyle::simd;
        if (!can) skip("simd kernels: this CPU's driver needs simt kernels");
        return can;
    }();
    return both ? std::vector{KernelStyle::simd, KernelStyle::simt} : std::vector{KernelStyle::simt};
}

bool has_kernel_style(KernelStyle style) { return style == KernelStyle::simt || kernel_styles().size() == 2; }

bool on_oclgrind() { return device().info().name.find("Oclgrind") != std::string::npos; }

}  // namespace declivity::test
