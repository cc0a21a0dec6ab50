// Layer 1. OpenCL devices: which there are, what each can do, and the handle through which all work goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>

namespace declivity {

namespace detail {
class DeviceState;
}

enum class DeviceType : std::uint8_t { cpu, gpu, accelerator, other };

/// What a device says of itself, or what a small test showed.
struct DeviceInfo {
    std::string id;  ///< "platform:device", as DECLIVITY_DEVICE takes it
    std::string name, vendor, platform, version, driver;
    DeviceType type = DeviceType::other;
    unsigned compute_units = 0;
    unsigned vector_width_f32 = 1, vector_width_f64 = 0;  ///< elements of the device's own vectors
    std::size_t work_items_in_step = 0;  ///< whose multiples a work-group should have; 0 where the device does not say
    std::uint64_t global_memory = 0;     ///< bytes
    std::uint64_t max_allocation = 0;    ///< bytes of the largest single buffer
    std::uint64_t local_memory = 0;      ///< bytes a work-group
    bool dedicated_local_memory = false;
    bool unified_memory = false;     ///< device memory is host memory
    std::size_t max_work_group = 0;  ///< work-items
    std::array<std::size_t, 3> max_work_items{};
    std::size_t alignment = 0;  ///< bytes to which parts of a buffer are aligned
    bool fp64 = false, fp16 = false, subgroups = false, int64_atomics = false, command_buffers = false;
    std::vector<std::string> extensions;
};

/// Bytes of device memory that the pool holds.
struct MemoryStats {
    std::uint64_t in_use = 0;          ///< handed out
    std::uint64_t cached = 0;          ///< taken from the device, free for the next request
    std::uint64_t peak = 0;            ///< largest `in_use` so far
    std::uint64_t packed_weights = 0;  ///< of `in_use`, copies of weights that are packed for kernels
};

/// Bytes in use that were asked for within a scope: the path of a module, "optimizer", or "" for what is outside of
/// all.
struct ScopeMemory {
    std::string scope = {};
    std::uint64_t bytes = 0;
    std::int64_t blocks = 0;
};

/// How kernels are shaped for a device: `simd` ones want few work-items that loop over contiguous memory,
/// `simt` ones want many work-items and local memory. GPUs are simt, and so are CPU devices whose drivers make
/// vectors of neighbouring work-items; DECLIVITY_FAMILY=cpu or gpu overrides it.
enum class KernelStyle : std::uint8_t { simd, simt };

/// A cheap handle to one OpenCL device. The object behind it (context, queues, memory pool, compiled programs) is
/// made on first use and lives as long as the process, so handles, tensors and buffers may be destroyed in any
/// order. Several threads may use one device.
class DECLIVITY_API Device {
  public:
    /// The device named by DECLIVITY_DEVICE, otherwise the first GPU, otherwise an accelerator, otherwise a CPU.
    /// @throws DeviceError that says which package brings an OpenCL platform when there is none
    static Device best();
    /// Every device of every platform; empty when there is none.
    static std::vector<Device> all();
    /// @param what "gpu", "cpu", "platform:device" as in "1:0", or part of a name, without regard to case
    /// @throws DeviceError listing the devices that exist when none fits
    static Device select(std::string_view what);

    [[nodiscard]] const DeviceInfo& info() const;
    [[nodiscard]] const std::string& name() const { return info().name; }
    /// By what the device says of itself (type, local memory); DECLIVITY_FAMILY=cpu or gpu overrides it.
    [[nodiscard]] KernelStyle style() const;
    [[nodiscard]] MemoryStats memory() const;
    /// What is in use, by scope, the most first. What a layer's gradients need counts as the layer's.
    [[nodiscard]] std::vector<ScopeMemory> memory_by_scope() const;
    /// Sets `peak` back to what is in use now.
    void reset_peak_memory() const;
    /// Gives cached memory back to the device, that of packed weights too, which are made again when they are needed.
    void release_cached_memory() const;
    /// Bytes that packed weights may take: where no gradients are recorded, kernels keep a copy of a weight in the
    /// order in which they read it, one of each weight at most. By default a quarter of the device's memory, or what
    /// DECLIVITY_PACKED_WEIGHTS says; 0: none. They are dropped before an allocation fails.
    [[nodiscard]] std::uint64_t packed_weights_limit() const;
    void set_packed_weights_limit(std::uint64_t bytes) const;
    /// Waits until everything enqueued so far has run.
    void synchronize() const;

    friend bool operator==(const Device& a, const Device& b) noexcept { return a.state_ == b.state_; }

    /// For the layer below only.
    explicit Device(detail::DeviceState* state) : state_(state) {}
    [[nodiscard]] detail::DeviceState& state() const noexcept { return *state_; }

  private:
    detail::DeviceState* state_;
};

/// The figures of memory() and the rows of memory_by_scope() as a table. Parameters belong to a module once it was
/// called.
DECLIVITY_API std::string memory_summary(const Device& device);

}  // namespace declivity
