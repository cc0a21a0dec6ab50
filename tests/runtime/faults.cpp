// no-oclgrind: it is about drivers that fail, not about kernels
//
// Failing OpenCL calls during device enumeration, opening and compilation, and commands that fail asynchronously.
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/profiler.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <runtime/opencl/device_state.hpp>
#include <tests/support/child.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_faults.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/temp_folder.hpp>

#include "runtime/opencl/block.hpp"
#include "runtime/access.hpp"

using namespace declivity;
using test::OpenClFault;

namespace {

/// Fails each OpenCL call of `call` once.
/// @param call returns what is wrong with the outcome, or ""
/// @return the number of failed calls, and what was wrong
std::pair<int, std::string> refuse_each(
    const std::function<std::string()>& call, const std::function<void()>& prepare = [] {}) {
    int errors = 0;
    for (long number = 0;; ++number) {
        prepare();
        const OpenClFault fault(number);
        std::string wrong;
        try {
            wrong = call();
        } catch (const DeviceError&) {
            ++errors;
        } catch (const OutOfMemory&) {
            ++errors;
        } catch (const std::exception& error) {
            wrong = fmt::format("neither a DeviceError nor an OutOfMemory: {}", error.what());
        }
        if (wrong != "")
            return {errors, fmt::format("call {} ({}, status {}): {}", number, fault.function(), fault.code(), wrong)};
        if (fault.function().empty()) return {errors, ""};
    }
}

const std::vector<std::byte> kBytes(10000, std::byte{42});

std::string sent_and_read(const Device& device) {
    const Buffer near(device, kBytes.size()), ahead(device, kBytes.size(), BufferUse::transfer);
    upload(near, 0, kBytes);
    upload_async(ahead, 0, kBytes).wait();
    std::vector<std::byte> back(kBytes.size());
    read(near, 0, back);
    if (back != kBytes) return "other bytes came back";
    read(ahead, 0, back);
    return back == kBytes ? "" : "other bytes came back from the batch";
}

/// Loads or compiles a kernel and runs it; returns whether its results are correct.
bool scales(const Device& device, const KernelSpec& spec) {
    const std::vector<float> in{1, 2, 3};
    std::vector<float> out(3);
    const Buffer from(device, 12), to(device, 12);
    upload(from, 0, std::as_bytes(std::span(in)));
    const std::int64_t n = 3;
    launch(Kernel(device, spec), {.global = 3}, {n, BufferArgument{from, 0, 4}, BufferArgument{to, 0, 4}, 2.0F});
    read(to, 0, std::as_writable_bytes(std::span(out)));
    return out == std::vector{2.5F, 4.5F, 6.5F};
}

}  // namespace

TEST_CASE("faults: finding devices, child process" * doctest::skip()) {
    const auto [errors, wrong] = refuse_each([]() -> std::string {
        const std::vector<Device> all = Device::all();  // the first successful search is cached
        if (all.empty()) return "no devices";
        const DeviceInfo& info = all.front().info();
        const bool complete = !info.name.empty() && !info.platform.empty() && !info.version.empty() &&
                              info.max_work_group > 0 && info.max_work_items[2] > 0 && info.global_memory > 0 &&
                              !info.extensions.empty();
        return complete ? "" : "a device without " + info.name;
    });
    CHECK(wrong == "");
    CHECK(errors > 20);
    CHECK(sent_and_read(Device::best()) == "");
}

TEST_CASE("faults: each call during device enumeration") {
    const auto result = test::run_child("faults: finding devices, child process", {});
    INFO(result.output);
    CHECK(result.code == 0);
}

TEST_CASE("faults: each call while a device is opened and first written and read") {
    for (const char* staging : {"pinned", "plain"}) {
        const test::Environment staging_variable("DECLIVITY_STAGING", staging);
        const test::OpenClHandles before = test::opencl_handles();
        const Device like = test::device();
        cl_command_queue queue = nullptr;
        const auto [errors, wrong] = refuse_each(
            [&]() -> std::string {
                const Device device = interop::wrap(interop::context(like), queue);
                const std::string result = sent_and_read(device);
                return device.memory().in_use == 0 ? result : "memory is not given back";
            },
            [&] {
                queue = test::make_queue(interop::context(like), interop::device_id(like), CL_QUEUE_PROFILING_ENABLE);
            });
        CHECK(wrong == "");
        CHECK(errors > 20);
        CHECK((test::opencl_handles() - before).kernels == 0);
    }
}

TEST_CASE("faults: a device whose first write or read failed works afterwards") {
    for (const char* staging : {"pinned", "plain"}) {
        const test::Environment staging_variable("DECLIVITY_STAGING", staging);
        for (long number = 0;; ++number) {
            CAPTURE(number);
            const Device device = test::fresh_device();
            std::string failed_function;
            {
                const OpenClFault fault(number);
                try {
                    sent_and_read(device);
                } catch (const Error&) {
                }
                failed_function = fault.function();
            }
            CHECK(device.memory().in_use == 0);
            CHECK(sent_and_read(device) == "");
            CHECK_NOTHROW(device.release_cached_memory());
            CHECK(device.memory().cached == 0);
            if (failed_function.empty()) break;
        }
    }
}

TEST_CASE("faults: each call while a kernel is compiled, stored on disk, and loaded from there") {
    // Both a user's file and a library file, which is built after its own declarations where that saves time.
    const auto folder_of_kernels = test::source_folder() / "runtime";
    const test::Environment library("DECLIVITY_KERNEL_DIR", folder_of_kernels.string());
    for (const std::string& file : {(folder_of_kernels / "kernels.cl").string(), std::string("kernels.cl")}) {
        const KernelSpec spec{.file = file, .name = "scale", .defines = {{"ADDED", "0.25f"}}};
        for (const bool on_disk : {false, true}) {
            CAPTURE(on_disk);
            const test::TempFolder folder;
            const test::Environment cache("DECLIVITY_CACHE_DIR", on_disk ? folder.path().string() : "");
            for (long number = 0;; ++number) {
                CAPTURE(number);
                if (on_disk && number % 2 == 0) std::filesystem::remove_all(folder.path());
                const test::OpenClHandles before = test::opencl_handles();
                const Device device = test::fresh_device();
                state_of(device).programs.binaries().set_kind(detail::BinarySource::Kind::at_hand);
                std::string failed_function;
                {
                    const OpenClFault fault(number);
                    try {
                        const bool right = scales(device, spec);
                        CHECK(right);
                    } catch (const DeviceError& error) {
                        CHECK(std::string(error.what()).find(device.name()) != std::string::npos);
                    } catch (const OutOfMemory&) {
                    }
                    failed_function = fault.function();
                }
                CHECK(scales(device, spec));
                const test::OpenClHandles more = test::opencl_handles() - before;
                CHECK(more.kernels == 1);
                CHECK(more.programs == 1);
                if (failed_function.empty()) break;
            }
        }
    }
}

TEST_CASE("faults: an asynchronous failure is an error of the next wait") {
    const Device device = test::device();
    const Buffer buffer(device, 100);
    std::vector<std::byte> back(100);
    for (const bool wait_fails : {true, false}) {
        CAPTURE(wait_fails);
        upload(buffer, 0, std::vector(100, std::byte{3}));
        {
            const test::FailedCommands failed(CL_OUT_OF_RESOURCES, wait_fails);
            for (const std::function<void()>& call : std::vector<std::function<void()>>{
                     [&] { read(buffer, 0, back); }, [&] { download(buffer, 0, back).wait(); },
                     [&] { Queue::compute(device).marker().wait(); },
                     [&] { (void)Queue::compute(device).marker().done(); }}) {
                try {
                    call();
                    FAIL("nothing was thrown");
                } catch (const DeviceError& error) {
                    CHECK(error.code() == CL_OUT_OF_RESOURCES);
                    CHECK(std::string(error.what()).find("CL_OUT_OF_RESOURCES") != std::string::npos);
                    CHECK(std::string(error.what()).find(device.name()) != std::string::npos);
                }
            }
            // Calls that need no result continue to work.
            upload(buffer, 0, std::vector(100, std::byte{4}));
            CHECK_NOTHROW(Queue::compute(device).flush());
        }
        read(buffer, 0, back);
        CHECK(back == std::vector(100, std::byte{4}));
    }
}

TEST_CASE("faults: a profile omits failed commands, and timestamps that were unavailable are queried again") {
    const Device device = test::device();
    const Buffer buffer(device, 100);
    Profiler profiler(device);
    upload(buffer, 0, std::vector(100, std::byte{3}));
    {
        const test::FailingFunction times("clGetEventProfilingInfo");
        CHECK_THROWS_AS((void)profiler.rows(), DeviceError);
    }
    REQUIRE(profiler.rows().size() == 1);
    CHECK(profiler.rows()[0].calls == 1);
    upload(buffer, 0, std::vector(100, std::byte{3}));
    {
        const test::FailedCommands failed(CL_OUT_OF_RESOURCES, false);
        CHECK(profiler.rows()[0].calls == 1);
    }
}

TEST_CASE("faults: the memory of a batch is reused even if the time of its last read is unknown") {
    const Device device = test::fresh_device();
    for (const char* function : {"clEnqueueMarkerWithWaitList", "clFlush"}) {
        std::optional<Buffer> batch(std::in_place, device, 100, BufferUse::transfer);
        upload_async(*batch, 0, std::vector(100, std::byte{1})).wait();
        {
            const test::FailingFunction failing(function);
            batch.reset();
        }
        CHECK(device.memory().in_use == 0);
        const long cached = static_cast<long>(device.memory().cached);
        batch.emplace(device, 100, BufferUse::transfer);
        CHECK(static_cast<long>(device.memory().cached + device.memory().in_use) == cached);
        CHECK(block_of(*batch).readers_done() != nullptr);
        {
            const test::FailingFunction failing(function);
            batch.reset();
        }
        device.release_cached_memory();
        CHECK(device.memory().cached == 0);
    }
}
