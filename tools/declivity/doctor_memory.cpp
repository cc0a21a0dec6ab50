// Memory, copies, and the order of commands.
#include <declivity/runtime/interop.hpp>  // before the names of OpenCL

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr std::uint64_t kBeyond =
    (std::uint64_t{4} << 30) + (std::uint64_t{64} << 20);  // bytes: some more than 32 bits count
constexpr std::uint64_t kShare = 3;                        // of free memory at most a third is taken

/// Bytes that this machine has left; none where that is not known.
std::optional<std::uint64_t> free_host_memory() {
    std::optional<std::uint64_t> left;
    std::ifstream all("/proc/meminfo");
    for (std::string name; all >> name;) {
        std::uint64_t kib = 0;
        if (name == "MemAvailable:" && all >> kib) left = kib << 10;
        all.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    // What a container may take.
    std::uint64_t most = 0, used = 0;
    if (std::ifstream limit("/sys/fs/cgroup/memory.max"), now("/sys/fs/cgroup/memory.current");
        left && limit >> most && now >> used)
        left = std::min(*left, most > used ? most - used : 0);
    return left;
}

/// Bytes that may be taken of a device's memory, and how that is known.
std::pair<std::uint64_t, std::string> allowance(const Device& device) {
    const DeviceInfo& info = device.info();
    const auto gib = [](std::uint64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30); };
    if (info.type == DeviceType::cpu || info.unified_memory) {
        const auto left = free_host_memory();
        if (!left) return {0, "how much memory of this machine is free is not known"};
        return {*left / kShare,
                fmt::format("{} of this machine's memory are free, of which a third may be taken", gib(*left))};
    }
    constexpr cl_device_info free_memory_amd =
        0x4039;  // CL_DEVICE_GLOBAL_FREE_MEMORY_AMD: KiB in all, and of the largest block
    std::array<std::size_t, 2> kib{};
    if (clGetDeviceInfo(interop::device_id(device), free_memory_amd, sizeof kib, kib.data(), nullptr) == CL_SUCCESS &&
        kib[0] > 0) {
        const std::uint64_t left = std::uint64_t{kib[0]} << 10;
        return {left / kShare,
                fmt::format("{} of the device's memory are free, of which a third may be taken", gib(left))};
    }
    return {info.global_memory / kShare,
            fmt::format("the device has {}, of which a third may be taken", gib(info.global_memory))};
}

/// A buffer that passes 4 GiB: what is written on both sides of the border is read by other ways.
std::string beyond_32_bits(const Device& device, const Buffer& large) {
    const Kernel write(device, {"doctor_memory.cl", "doctor_write"}),
        gather(device, {"doctor_memory.cl", "doctor_gather"});
    const std::int64_t count = 1024, elements = static_cast<std::int64_t>(kBeyond / 4), step = (elements - 16) / count,
                       border = std::int64_t{1} << 30;  // element at byte 2^32
    const auto wanted = [&](std::uint32_t seed) {
        std::vector<std::uint32_t> out;
        for (std::int64_t i = 0; i < count; ++i) out.push_back(seed + static_cast<std::uint32_t>(i) * 2654435761U);
        return out;
    };
    const Buffer few(device, static_cast<std::size_t>(count) * 4);
    const auto items = static_cast<std::size_t>(count);
    // All over the buffer by steps, then densely behind the border.
    launch(write, {{items}}, {BufferArgument{large, 5, 4}, step, std::uint32_t{17}});
    launch(gather, {{items}}, {BufferArgument{large, 5, 4}, step, argument<std::uint32_t>(few)});
    std::string wrong = first_difference(to_host<std::uint32_t>(few, items), wanted(17));
    if (!wrong.empty()) return "written and read by kernels, all over: " + wrong;
    launch(write, {{items}}, {BufferArgument{large, border - 512, 4}, std::int64_t{1}, std::uint32_t{99}});
    std::vector<std::uint32_t> dense(items);
    read(large, static_cast<std::size_t>(border - 512) * 4, std::as_writable_bytes(std::span(dense)));
    wrong = first_difference(dense, wanted(99));
    if (!wrong.empty()) return "written by a kernel and read by the host across the border: " + wrong;
    // What lies 2^32 bytes before must not have been hit.
    const auto sent = wanted(5), before = wanted(6);
    const std::size_t far = static_cast<std::size_t>(border + 4099) * 4;
    upload(large, 4099 * 4, std::as_bytes(std::span(before)));
    upload(large, far, std::as_bytes(std::span(sent)));
    launch(gather, {{items}}, {BufferArgument{large, border + 4099, 4}, std::int64_t{1}, argument<std::uint32_t>(few)});
    wrong = first_difference(to_host<std::uint32_t>(few, items), sent);
    if (!wrong.empty()) return "written by the host behind the border and read by a kernel: " + wrong;
    std::vector<std::uint32_t> near(items);
    read(large, 4099 * 4, std::as_writable_bytes(std::span(near)));
    wrong = first_difference(near, before);
    if (!wrong.empty()) return "2^32 bytes before what was written: " + wrong;
    const std::uint32_t pattern = 0xabcdef12;
    fill(large, far + 4096, 4096, std::as_bytes(std::span(&pattern, 1)));
    copy(large, far + 4096, large, 1 << 20, 4096);
    copy(large, 1 << 20, few, 0, 4096);
    wrong = first_difference(to_host<std::uint32_t>(few, items), std::vector<std::uint32_t>(items, pattern));
    return wrong.empty() ? "" : "filled behind the border and copied before it: " + wrong;
}

}  // namespace

void examine_memory(Examination& e) {
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
                return fmt::format("the one of {} bytes holds something else", contents[i].size());
        return {};
    });
    const auto [allowed, why] = allowance(device);
    const std::string name = "one buffer of more than 4 GiB: offsets beyond 2^32 bytes";
    if (device.info().max_allocation < kBeyond)
        return e.skip(name, fmt::format("the device allows {} bytes at once", device.info().max_allocation));
    if (allowed < kBeyond) return e.skip(name, why);
    std::optional<Buffer> large;
    try {
        large.emplace(device, kBeyond);
    } catch (const OutOfMemory& error) {
        return e.skip(name, fmt::format("could not be had: {}", error.what()));
    }
    e.check(name, [&] { return beyond_32_bits(device, *large); });
}

namespace {

void require(cl_int status, const char* what) {
    if (status != CL_SUCCESS) throw DeviceError(fmt::format("{}: status {}", what, status), status);
}

template <class Handle, cl_int (*Release)(Handle)>
struct Owned {
    Handle handle = nullptr;
    Owned() = default;
    explicit Owned(Handle of) : handle(of) {}
    ~Owned() {
        if (handle != nullptr) Release(handle);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
};
using Memory = Owned<cl_mem, clReleaseMemObject>;
using RawEvent = Owned<cl_event, clReleaseEvent>;

cl_mem create(const Device& device, cl_mem_flags flags, std::size_t bytes) {
    cl_int status = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(interop::context(device), flags, bytes, nullptr, &status);
    require(status, "clCreateBuffer");
    return memory;
}

/// The chain of steps that doctor_step computes, on the host.
struct Chain {
    std::vector<std::uint32_t> x;
    void step(std::uint32_t factor, std::uint32_t added) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = factor * x[i] + static_cast<std::uint32_t>(i) + added;
    }
};

}  // namespace

void examine_queues(Examination& e) {
    const Device device = e.device();
    const cl_command_queue queue = interop::compute_queue(device);
    const auto step_kernel = [&] { return Kernel(device, {"doctor_queues.cl", "doctor_step"}); };
    e.check("kernels run in the order in which they were enqueued, with the arguments of that time", [&] {
        const Kernel kernel = step_kernel();
        Chain chain{any_bits<std::uint32_t>(10007, 1)};
        const Buffer x = to_device(device, chain.x);
        for (std::uint32_t i = 0; i < 200; ++i) {
            launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 2 * i + 3, i * i});
            chain.step(2 * i + 3, i * i);
        }
        return first_difference(to_host<std::uint32_t>(x, chain.x.size()), chain.x);
    });
    e.check("kernels, uploads, copies and reads take turns in one queue", [&]() -> std::string {
        const Kernel kernel = step_kernel();
        Chain chain{any_bits<std::uint32_t>(5003, 2)};
        const std::size_t bytes = chain.x.size() * 4;
        const Buffer x = to_device(device, chain.x), y(device, bytes);
        std::vector<std::vector<std::uint32_t>> seen(20, std::vector<std::uint32_t>(chain.x.size())), wanted;
        std::vector<Event> events;
        for (std::uint32_t i = 0; i < 20; ++i) {
            launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 5U, i});
            chain.step(5, i);
            copy(x, 0, y, 0, bytes);
            upload(x, 8, std::as_bytes(std::span(&i, 1)));
            chain.x[2] = i;
            events.push_back(download(i % 2 == 0 ? x : y, 0, std::as_writable_bytes(std::span(seen[i]))));
            wanted.push_back(chain.x);
            if (i % 2 == 1) wanted.back()[2] = 0;
        }
        for (const Event& event : events) event.wait();
        for (std::size_t i = 0; i < 20; ++i) {
            if (i % 2 == 1) seen[i][2] = 0;
            if (const std::string wrong = first_difference(seen[i], wanted[i]); !wrong.empty())
                return fmt::format("in round {}: {}", i, wrong);
        }
        return {};
    });
    e.check("two queues: the copy queue's uploads are there when the compute queue waits for their events",
            [&]() -> std::string {
                const Kernel kernel = step_kernel();
                for (std::uint32_t round = 0; round < 20; ++round) {
                    Chain chain{any_bits<std::uint32_t>(300007, round)};
                    const Buffer x(device, chain.x.size() * 4, BufferUse::transfer);
                    const Event ready = upload_ahead(x, 0, std::as_bytes(std::span(chain.x)));
                    Queue::compute(device).wait_for(ready);
                    launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 3U, round});
                    chain.step(3, round);
                    if (const std::string wrong = first_difference(to_host<std::uint32_t>(x, chain.x.size()), chain.x);
                        !wrong.empty())
                        return fmt::format("in round {}: {}", round, wrong);
                }
                return {};
            });
    /// A fill whose event is waited for.
    const auto filled = [&](const Buffer& x) {
        RawEvent event;
        const std::uint32_t zero = 0;
        const auto raw = interop::raw(x);
        require(clEnqueueFillBuffer(queue, raw.memory, &zero, 4, raw.offset, raw.size, 0, nullptr, &event.handle),
                "clEnqueueFillBuffer");
        require(clWaitForEvents(1, &event.handle), "clWaitForEvents");
        return std::exchange(event.handle, nullptr);
    };
    e.check("an event of work that was enqueued is done after a wait", [&]() -> std::string {
        const Kernel kernel = step_kernel();
        const Buffer x = to_device(device, any_bits<std::uint32_t>(100000, 3));
        for (std::uint32_t i = 0; i < 10; ++i) launch(kernel, {{100000}}, {argument<std::uint32_t>(x), 3U, i});
        const Event marker = Queue::compute(device).marker();
        marker.wait();
        if (!marker.done()) return "a marker that was waited for is not done";
        const RawEvent event(filled(x));
        cl_int status = CL_QUEUED;
        require(clGetEventInfo(event.handle, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
                "clGetEventInfo");
        return status == CL_COMPLETE ? "" : fmt::format("a command that was waited for has status {}", status);
    });
    e.check_unused(
        "times of events go forward, as long as a command may take (profiles show them)", [&]() -> std::string {
            const Buffer x(device, 16 << 20);
            const auto begin = std::chrono::steady_clock::now();
            const RawEvent event(filled(x));
            const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            std::array<cl_ulong, 4> times{};
            for (cl_uint i = 0; i < 4; ++i)
                require(clGetEventProfilingInfo(event.handle, CL_PROFILING_COMMAND_QUEUED + i, sizeof times[i],
                                                &times[i], nullptr),
                        "clGetEventProfilingInfo");
            const bool forward = times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3],
                       moves = times[3] - times[2] > 1000;
            const bool fits = static_cast<double>(times[3] - times[2]) * 1e-9 <= 2 * seconds + 1e-3;
            return forward && moves && fits
                       ? ""
                       : fmt::format(
                             "queued {}, submitted {}, started {}, ended {} ns, of a fill of 16 MiB that took {} s",
                             times[0], times[1], times[2], times[3], seconds);
        });
    e.check("copies of odd sizes at odd places, within the device and to and from the host", [&]() -> std::string {
        auto host = any_bits<std::uint8_t>(100003, 4);
        const Buffer x = to_device(device, host), y(device, host.size());
        copy(x, 0, y, 0, host.size());
        std::mt19937 engine(6);
        for (int i = 0; i < 200; ++i) {
            const std::size_t bytes = 1 + engine() % (i % 10 == 0 ? 40000 : 300),
                              from = engine() % (host.size() - bytes), to = engine() % (host.size() - bytes);
            if (i % 3 == 0) {
                const auto sent = any_bits<std::uint8_t>(bytes, static_cast<std::uint64_t>(i));
                upload(y, to, std::as_bytes(std::span(sent)));
                std::copy(sent.begin(), sent.end(), host.begin() + static_cast<std::ptrdiff_t>(to));
            } else if (i % 3 == 1) {
                const std::vector<std::uint8_t> part(host.begin() + static_cast<std::ptrdiff_t>(from),
                                                     host.begin() + static_cast<std::ptrdiff_t>(from + bytes));
                copy(y, from, x, to, bytes);
                copy(x, to, y, to, bytes);
                std::copy(part.begin(), part.end(), host.begin() + static_cast<std::ptrdiff_t>(to));
            } else {
                std::vector<std::uint8_t> got(bytes);
                read(y, from, std::as_writable_bytes(std::span(got)));
                if (!std::equal(got.begin(), got.end(), host.begin() + static_cast<std::ptrdiff_t>(from)))
                    return fmt::format("{} bytes from {} on are not what they were", bytes, from);
            }
        }
        return first_difference(to_host<std::uint8_t>(y, host.size()), host);
    });
    e.check("fills of 1 to 16 bytes, in the middle of a buffer", [&]() -> std::string {
        for (const std::size_t size : {1, 2, 4, 8, 16}) {
            auto host = any_bits<std::uint8_t>(4096, size);
            const Buffer x = to_device(device, host);
            const auto pattern = any_bits<std::uint8_t>(size, 40 + size);
            const std::size_t offset = 5 * size, bytes = 77 * size;
            fill(x, offset, bytes, std::as_bytes(std::span(pattern)));
            for (std::size_t i = 0; i < bytes; ++i) host[offset + i] = pattern[i % size];
            if (const std::string wrong = first_difference(to_host<std::uint8_t>(x, host.size()), host); !wrong.empty())
                return fmt::format("a pattern of {} bytes: {}", size, wrong);
        }
        return {};
    });
    e.check("mapped memory: what the host writes kernels see, and the other way", [&]() -> std::string {
        const Kernel kernel = step_kernel();
        Chain chain{any_bits<std::uint32_t>(20011, 8)};
        const std::size_t bytes = chain.x.size() * 4;
        const Memory memory(create(device, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes));
        const Buffer x = interop::wrap(device, memory.handle, 0, bytes);
        for (std::uint32_t round = 0; round < 3; ++round) {
            cl_int status = CL_SUCCESS;
            void* mapped = clEnqueueMapBuffer(queue, memory.handle, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes,
                                              0, nullptr, nullptr, &status);
            require(status, "clEnqueueMapBuffer");
            std::copy(chain.x.begin(), chain.x.end(), static_cast<std::uint32_t*>(mapped));
            require(clEnqueueUnmapMemObject(queue, memory.handle, mapped, 0, nullptr, nullptr),
                    "clEnqueueUnmapMemObject");
            launch(kernel, {{chain.x.size()}}, {argument<std::uint32_t>(x), 7U, round});
            chain.step(7, round);
            const std::size_t part = 400;  // bytes: a map need not begin where the buffer does
            mapped = clEnqueueMapBuffer(queue, memory.handle, CL_TRUE, CL_MAP_READ, part, bytes - part, 0, nullptr,
                                        nullptr, &status);
            require(status, "clEnqueueMapBuffer");
            const auto* read_back = static_cast<const std::uint32_t*>(mapped);
            const std::vector<std::uint32_t> got(read_back, read_back + chain.x.size() - part / 4),
                wanted(chain.x.begin() + static_cast<std::ptrdiff_t>(part / 4), chain.x.end());
            require(clEnqueueUnmapMemObject(queue, memory.handle, mapped, 0, nullptr, nullptr),
                    "clEnqueueUnmapMemObject");
            if (const std::string wrong = first_difference(got, wanted); !wrong.empty())
                return fmt::format("in round {}: {}", round, wrong);
        }
        device.synchronize();
        return {};
    });
}

}  // namespace declivity::tools::doctor
