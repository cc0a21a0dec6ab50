#include <declivity/runtime/device.hpp>

#include <algorithm>
#include <cctype>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "process.hpp"
#include "environment.hpp"
#include "opencl/device_registry.hpp"
#include "opencl/device_state.hpp"
#include "access.hpp"

namespace declivity {
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
        if (matches(found[i].info)) return device_of(registry.state(i));
    std::vector<std::string> names;
    for (const auto& match : found) names.push_back(fmt::format("{} '{}'", match.info.id, match.info.name));
    throw DeviceError(fmt::format("{}: expected \"gpu\", \"cpu\", an id or part of a name, got \"{}\"; there is {}",
                                  asked, what, fmt::join(names, ", ")));
}

}  // namespace

std::vector<Device> Device::all() {
    auto& registry = detail::Registry::instance();
    std::vector<Device> devices;
    for (std::size_t i = 0; i < registry.devices().size(); ++i) devices.push_back(device_of(registry.state(i)));
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
            if (found[i].info.type == type) return device_of(registry.state(i));
    return device_of(registry.state(0));
}

Device Device::select(std::string_view what) { return find("Device::select", what); }

const DeviceInfo& Device::info() const { return state_->context.info; }
const DeviceTraits& Device::traits() const { return state_->context.traits; }
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
    state_->queues.finish();
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
