// Layer 1. OpenCL devices: enumeration, properties, and the Device handle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>

namespace declivity {

namespace detail {
class DeviceState;
struct StateAccess;
}  // namespace detail

/// @addtogroup runtime
/// @{

enum class DeviceType : std::uint8_t { cpu, gpu, accelerator, other };

/// Properties reported by a device, or determined by a small test.
struct DeviceInfo {
    std::string id;  ///< "platform:device", as accepted by DECLIVITY_DEVICE
    std::string name, vendor, platform, version, driver;
    DeviceType type = DeviceType::other;
    unsigned compute_units = 0;
    unsigned vector_width_f32 = 1, vector_width_f64 = 0;  ///< preferred vector width in elements
    std::size_t work_items_in_step = 0;  ///< preferred multiple of the work-group size; 0 if not reported
    std::uint64_t global_memory = 0;     ///< bytes
    std::uint64_t max_allocation = 0;    ///< bytes of the largest single buffer
    std::uint64_t local_memory = 0;      ///< bytes per work-group
    bool dedicated_local_memory = false;
    bool unified_memory = false;     ///< device memory is host memory
    std::size_t max_work_group = 0;  ///< work-items
    std::array<std::size_t, 3> max_work_items{};
    std::size_t alignment = 0;  ///< alignment of sub-buffers in bytes
    bool fp64 = false, fp16 = false, subgroups = false, int64_atomics = false, command_buffers = false;
    std::vector<std::string> extensions;
};

/// Statistics of the memory pool, in bytes.
struct MemoryStats {
    std::uint64_t in_use = 0;          ///< allocated
    std::uint64_t cached = 0;          ///< reserved from the device and free for the next allocation
    std::uint64_t peak = 0;            ///< maximum of `in_use` so far
    std::uint64_t packed_weights = 0;  ///< part of `in_use`: copies of weights that are packed for kernels
};

/// Bytes in use that were allocated within a scope: the path of a module, "optimizer", or "" outside of any scope.
struct ScopeMemory {
    std::string scope = {};
    std::uint64_t bytes = 0;
    std::int64_t blocks = 0;
};

/// Kernel style of a device: `simd` kernels use few work-items that loop over contiguous memory (CPU-style), `simt`
/// kernels use many work-items and local memory. GPUs are simt, and so are CPU devices whose drivers vectorise across
/// work-items; DECLIVITY_KERNEL_STYLE=simd or simt overrides it.
enum class KernelStyle : std::uint8_t {
    simd,
    simt,
    cpu_like [[deprecated("KernelStyle::simd")]] = simd,
    gpu_like [[deprecated("KernelStyle::simt")]] = simt
};

/// Properties by which kernels are chosen: queried or determined by a small test, never inferred from a name.
struct DeviceTraits {
    KernelStyle kernel_style = KernelStyle::simd;
    /// Work-items that run in lockstep (warp, wavefront, subgroup), as the device reports them; 0: unknown.
    std::size_t subgroup_size = 0;
    unsigned vector_width_f32 = 1, vector_width_f64 = 0;  ///< native vector width in elements; f64 0: no f64
    /// Bytes of local memory that the kernels of a work-group can use: what the device reports, less 1 KiB that drivers
    /// take for arguments of their own.
    std::size_t local_memory = 0;
    /// True if there are matrix units that OpenCL C can use; none: unknown.
    std::optional<bool> matrix_units = std::nullopt;
};

/// A cheap handle to one OpenCL device. The underlying state (context, queues, memory pool, compiled programs) is
/// created on first use and lives as long as the process, so handles, tensors and buffers may be destroyed in any
/// order. A device may be used by several threads.
class DECLIVITY_API Device {
  public:
    /// The device named by DECLIVITY_DEVICE, otherwise the first GPU, otherwise an accelerator, otherwise a CPU.
    /// @throws DeviceError naming the package that provides an OpenCL platform if there is none
    static Device best();
    /// All devices of all platforms; empty if there are none.
    static std::vector<Device> all();
    /// @param what "gpu", "cpu", "platform:device" as in "1:0", or a case-insensitive part of a name
    /// @throws DeviceError listing the available devices if none matches
    static Device select(std::string_view what);

    [[nodiscard]] const DeviceInfo& info() const;
    [[nodiscard]] const std::string& name() const { return info().name; }
    [[nodiscard]] const DeviceTraits& traits() const;
    /// Determined from device properties (type, local memory); DECLIVITY_KERNEL_STYLE=simd or simt overrides it.
    [[nodiscard]] KernelStyle kernel_style() const { return traits().kernel_style; }
    [[deprecated("Device::kernel_style")]] [[nodiscard]] KernelStyle family() const { return kernel_style(); }
    [[nodiscard]] MemoryStats memory() const;
    /// Memory in use by scope, largest first. Memory saved for the gradients of a layer counts for that layer.
    [[nodiscard]] std::vector<ScopeMemory> memory_by_scope() const;
    /// Resets `peak` to the current `in_use`.
    void reset_peak_memory() const;
    /// Returns cached memory to the device, including packed weights, which are packed again on demand.
    void release_cached_memory() const;
    /// Limit of packed weights in bytes: when gradients are disabled, kernels keep at most one copy of each weight in
    /// the layout that they read. Default: a quarter of the device's memory, or DECLIVITY_PACKED_WEIGHTS; 0 disables
    /// packing. Packed weights are dropped before an allocation fails.
    [[nodiscard]] std::uint64_t packed_weights_limit() const;
    void set_packed_weights_limit(std::uint64_t bytes) const;
    /// Blocks until all enqueued work has finished.
    void synchronize() const;

    friend bool operator==(const Device& a, const Device& b) noexcept { return a.state_ == b.state_; }

  private:
    friend struct detail::StateAccess;
    explicit Device(detail::DeviceState* state) : state_(state) {}
    detail::DeviceState* state_;
};

/// Table of memory() and memory_by_scope(). Parameters are attributed to a module after its first call.
DECLIVITY_API std::string memory_summary(const Device& device);

// ---- deprecated names of version 0.1

using Family [[deprecated("KernelStyle")]] = KernelStyle;
using MemoryFigures [[deprecated("MemoryStats")]] = MemoryStats;

/// @}

}  // namespace declivity
