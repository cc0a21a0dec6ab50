// Process exit while the device is busy: with programs that were never compiled before, so that the driver's compiler
// is running, too.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/child.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// Some steps without a wait.
void train_network() {
    nn::Linear model(8, 3);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    for (int i = 0; i < 3; ++i) {
        optimizer.zero_grad();
        sum(square(model(uniform({4, 8})))).backward();
        optimizer.step();
    }
    std::puts("done");
}

/// A child process with its own empty caches, including the driver's for PoCL.
struct Run {
    test::TempFolder folder;
    test::Child child;
    explicit Run(const std::string& mode)
        : child("exit: child process",
                {{"DECLIVITY_TEST_HOW", mode},
                 {"DECLIVITY_CACHE_DIR", (folder.path() / "programs").string()},
                 {"POCL_CACHE_DIR", (folder.path() / "driver").string()},
                 // LLVM, in PoCL, gives a compiler thread a signal stack, which AddressSanitizer would mistake for its
                 // own.
                 {"ASAN_OPTIONS", test::environment_variable("ASAN_OPTIONS") + ":use_sigaltstack=0"}}) {}
};

struct ThreadEnd {
    int failed = 0;
    std::string last;  ///< output of the last failure
};

/// Runs `count` children, two at a time.
ThreadEnd thread_end(const std::string& mode, int count) {
    std::deque<std::unique_ptr<Run>> running;
    ThreadEnd all;
    for (int i = 0; i < count || !running.empty();) {
        if (i < count && running.size() < 2) {
            running.push_back(std::make_unique<Run>(mode));
            ++i;
            continue;
        }
        const auto result = running.front()->child.finish();
        running.pop_front();
        if (result.code == 0 && result.output.find("done") != std::string::npos) continue;
        ++all.failed;
        all.last = std::to_string(result.code) + ": " + result.output;
    }
    return all;
}

void run(const std::string& mode, int count) {
    const ThreadEnd all = thread_end(mode, count);
    CAPTURE(mode);
    INFO("the last failure: " << all.last);
    CHECK(all.failed == 0);
}

/// Ends the process in a callback of the driver.
void exit_in_callback(cl_command_queue queue) {
    std::fflush(stdout);
    cl_event event = nullptr;
    REQUIRE(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event) == CL_SUCCESS);
    const auto end = [](cl_event, cl_int, void*) { std::exit(0); };
    REQUIRE(clSetEventCallback(event, CL_COMPLETE, end, nullptr) == CL_SUCCESS);
    clFlush(queue);
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// The same without the library: some kernels of plain OpenCL on the first device of the first platform.
void exit_in_callback_without_library() {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    cl_int status = CL_SUCCESS;
    REQUIRE(clGetPlatformIDs(1, &platform, nullptr) == CL_SUCCESS);
    REQUIRE(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) == CL_SUCCESS);
    cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    REQUIRE(status == CL_SUCCESS);
    cl_command_queue queue = test::make_queue(context, device, 0);
    const char* source = "__kernel void count(__global int* x) { x[get_global_id(0)] += 1; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
    REQUIRE(status == CL_SUCCESS);
    REQUIRE(clBuildProgram(program, 1, &device, "", nullptr, nullptr) == CL_SUCCESS);
    cl_kernel kernel = clCreateKernel(program, "count", &status);
    constexpr std::size_t global_size = 64;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, global_size * sizeof(cl_int), nullptr, &status);
    REQUIRE(status == CL_SUCCESS);
    REQUIRE(clSetKernelArg(kernel, 0, sizeof memory, static_cast<void*>(&memory)) == CL_SUCCESS);
    for (int i = 0; i < 100; ++i)
        clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global_size, nullptr, 0, nullptr, nullptr);
    std::puts("done");
    exit_in_callback(queue);
}

/// Computes after main() has returned, with work from another thread.
struct LateObject {
    Tensor x;
    ~LateObject() {
        if (!x.defined()) return;
        try {
            test::values(exp(x) * 3.0);
            _exit(4);
        } catch (const DeviceError& error) {
            if (std::string(error.what()).find("before main() ends") == std::string::npos) _exit(5);
            std::fprintf(stderr, "%s\n", error.what());
            if (!std::string(error.what()).starts_with("to_vector: expected a process")) _exit(7);
        }
        if (test::values(x).size() != 8) _exit(6);
    }
};

}  // namespace

TEST_CASE("exit: child process" * doctest::skip()) {
    alarm(300);  // a hang is a failure
    const std::string mode = test::environment_variable("DECLIVITY_TEST_HOW");
    CHECK(mode != "");
    if (mode == "main") train_network();
    if (mode == "late") {
        static LateObject late_object;  // created after the device
        late_object.x = uniform({8});
        test::values(late_object.x);
        train_network();
    }
    if (mode == "ended thread") std::thread(train_network).join();
    if (mode == "living thread") {
        static std::atomic<bool> ready{false};
        std::thread([] {
            train_network();
            ready = true;
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }).detach();
        while (!ready) std::this_thread::yield();
    }
    if (mode == "exit in another thread") {
        train_network();
        std::thread([] { std::exit(0); }).join();
    }
    if (mode == "exit in a callback") {
        train_network();
        exit_in_callback(interop::compute_queue(default_device()));
    }
    if (mode == "exit in a callback, without the library") {
        alarm(60);
        exit_in_callback_without_library();
    }
}

TEST_CASE("exit: processes that never waited for their device, with empty caches") {
    // A race that shows once in a hundred processes needs all of them, and each one compiles everything.
    run("main", test::all_cases() ? 100 : 16);
}

TEST_CASE("exit: any thread may work, and any thread may end the process") {
    for (const char* mode : {"late", "ended thread", "living thread", "exit in another thread"}) run(mode, 4);
}

TEST_CASE("exit: a callback of the driver may end the process") {
    if (thread_end("exit in a callback, without the library", 1).failed > 0)
        return test::skip("this driver hangs where a callback of its own ends the process, without the library, too");
    run("exit in a callback", 1);
}
