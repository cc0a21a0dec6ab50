// Memory: many buffers, and one larger than 4 GiB.
#include <declivity/runtime/interop.hpp>  // before the names of OpenCL

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr std::uint64_t kBeyondBytes =
    (std::uint64_t{4} << 30) + (std::uint64_t{64} << 20);  // bytes: more than 32 bits can count
constexpr std::uint64_t kShare = 3;  // at most this fraction (1 / kShare) of the free memory is used

/// Free memory of this machine in bytes; empty if unknown.
std::optional<std::uint64_t> free_host_memory() {
    std::optional<std::uint64_t> left;
    std::ifstream all("/proc/meminfo");
    for (std::string name; all >> name;) {
        std::uint64_t kib = 0;
        if (name == "MemAvailable:" && all >> kib) left = kib << 10;
        all.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    // Limit of a container.
    std::uint64_t limit_bytes = 0, used = 0;
    if (std::ifstream limit("/sys/fs/cgroup/memory.max"), now("/sys/fs/cgroup/memory.current");
        left && limit >> limit_bytes && now >> used)
        left = std::min(*left, limit_bytes > used ? limit_bytes - used : 0);
    return left;
}

/// Bytes that may be allocated on a device, and how the limit was determined.
std::pair<std::uint64_t, std::string> allowance(const Device& device) {
    const DeviceInfo& info = device.info();
    const auto gib = [](std::uint64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30); };
    if (info.type == DeviceType::cpu || info.unified_memory) {
        const auto left = free_host_memory();
        if (!left) return {0, "the free memory of this machine is unknown"};
        return {*left / kShare,
                fmt::format("{} of this machine's memory are free, of which a third may be used", gib(*left))};
    }
    constexpr cl_device_info free_memory_amd =
        0x4039;  // CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: KiB in total, and of the largest block
    std::array<std::size_t, 2> kib{};
    if (clGetDeviceInfo(interop::device_id(device), free_memory_amd, sizeof kib, kib.data(), nullptr) == CL_SUCCESS &&
        kib[0] > 0) {
        const std::uint64_t left = std::uint64_t{kib[0]} << 10;
        return {left / kShare,
                fmt::format("{} of the device's memory are free, of which a third may be used", gib(left))};
    }
    return {info.global_memory / kShare,
            fmt::format("the device has {}, of which a third may be used", gib(info.global_memory))};
}

/// A buffer larger than 4 GiB: writes on both sides of the 4 GiB boundary are read back by other means.
std::string beyond_32_bits(const Device& device, const Buffer& large) {
    const Kernel write(device, {"doctor_memory.cl", "doctor_write"}),
        gather(device, {"doctor_memory.cl", "doctor_gather"});
    const std::int64_t count = 1024, elements = static_cast<std::int64_t>(kBeyondBytes / 4),
                       step = (elements - 16) / count,
                       border = std::int64_t{1} << 30;  // index of the element at byte 2^32
    const auto expected = [&](std::uint32_t seed) {
        std::vector<std::uint32_t> out;
        for (std::int64_t i = 0; i < count; ++i) out.push_back(seed + static_cast<std::uint32_t>(i) * 2654435761U);
        return out;
    };
    const Buffer small(device, static_cast<std::size_t>(count) * 4);
    const auto work_items = static_cast<std::size_t>(count);
    // Strided over the whole buffer, then densely after the boundary.
    launch(write, {{work_items}}, {BufferArgument{large, 5, 4}, step, std::uint32_t{17}});
    launch(gather, {{work_items}}, {BufferArgument{large, 5, 4}, step, argument<std::uint32_t>(small)});
    std::string wrong = first_difference(to_host<std::uint32_t>(small, work_items), expected(17));
    if (!wrong.empty()) return "written and read by kernels, whole buffer: " + wrong;
    launch(write, {{work_items}}, {BufferArgument{large, border - 512, 4}, std::int64_t{1}, std::uint32_t{99}});
    std::vector<std::uint32_t> dense(work_items);
    read(large, static_cast<std::size_t>(border - 512) * 4, std::as_writable_bytes(std::span(dense)));
    wrong = first_difference(dense, expected(99));
    if (!wrong.empty()) return "written by a kernel and read by the host across the boundary: " + wrong;
    // The memory 2^32 bytes before must not have been overwritten.
    const auto uploaded = expected(5), before = expected(6);
    const std::size_t far_offset = static_cast<std::size_t>(border + 4099) * 4;
    upload(large, 4099 * 4, std::as_bytes(std::span(before)));
    upload(large, far_offset, std::as_bytes(std::span(uploaded)));
    launch(gather, {{work_items}},
           {BufferArgument{large, border + 4099, 4}, std::int64_t{1}, argument<std::uint32_t>(small)});
    wrong = first_difference(to_host<std::uint32_t>(small, work_items), uploaded);
    if (!wrong.empty()) return "written by the host after the boundary and read by a kernel: " + wrong;
    std::vector<std::uint32_t> low_part(work_items);
    read(large, 4099 * 4, std::as_writable_bytes(std::span(low_part)));
    wrong = first_difference(low_part, before);
    if (!wrong.empty()) return "2^32 bytes before the written part: " + wrong;
    const std::uint32_t pattern = 0xabcdef12;
    fill(large, far_offset + 4096, 4096, std::as_bytes(std::span(&pattern, 1)));
    copy(large, far_offset + 4096, large, 1 << 20, 4096);
    copy(large, 1 << 20, small, 0, 4096);
    wrong =
        first_difference(to_host<std::uint32_t>(small, work_items), std::vector<std::uint32_t>(work_items, pattern));
    return wrong.empty() ? "" : "filled after the boundary and copied before it: " + wrong;
}

}  // namespace

void examine_memory(DoctorRun& e) {
    const Device device = e.device();
    e.check("buffers of many sizes at once, each with its own contents", [&]() -> std::string {
        std::vector<Buffer> buffers;
        std::vector<std::vector<std::uint8_t>> contents;
        for (const std::size_t size : {1, 3, 64, 65, 1000, 4096, 4097, 65537, 1000003, 5, 16777259, 333})
            for (int i = 0; i < 3; ++i) {
                contents.push_back(any_bits<std::uint8_t>(size, size + static_cast<std::size_t>(i)));
                buffers.push_back(to_device(device, contents.back()));
            }
        for (std::size_t i = 0; i < buffers.size(); ++i)
            if (to_host<std::uint8_t>(buffers[i], contents[i].size()) != contents[i])
                return fmt::format("the buffer of {} bytes has other contents", contents[i].size());
        return {};
    });
    const auto [allowed, why] = allowance(device);
    const std::string name = "one buffer of more than 4 GiB: offsets beyond 2^32 bytes";
    if (device.info().max_allocation < kBeyondBytes)
        return e.skip(name, fmt::format("the device allows {} bytes per allocation", device.info().max_allocation));
    if (allowed < kBeyondBytes) return e.skip(name, why);
    std::optional<Buffer> large;
    try {
        large.emplace(device, kBeyondBytes);
    } catch (const OutOfMemory& error) {
        return e.skip(name, fmt::format("could not be allocated: {}", error.what()));
    }
    e.check(name, [&] { return beyond_32_bits(device, *large); });
}

}  // namespace declivity::tools::doctor
