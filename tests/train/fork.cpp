// fork(): before the first use of a device parent and child work; afterwards the child gets errors, and never hangs.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/child.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_faults.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

#include "runtime/capture.hpp"

using namespace declivity;

namespace {

int in_forked_child = 0;

enum class End { exit, at_once };

/// Runs `body` in a forked child, which ends by exit(), with all static destructors, or by _exit().
/// @return its exit code, or 128 + the signal that ended it: a hang is a failure
int forked(const std::function<int()>& body, End end = End::exit) {
    std::fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(600);
        in_forked_child = 1;
        const int code = body();
        if (end == End::at_once) _exit(code);
        std::exit(code);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

// For LeakSanitizer: memory referenced by threads of the parent is lost in a child without these threads.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return in_forked_child; }

namespace {

bool is_rejected(const std::function<void()>& call) {
    try {
        call();
    } catch (const DeviceError& error) {
        if (std::string(error.what()).find("fork before the first use") != std::string::npos) return true;
        std::fprintf(stderr, "other words: %s\n", error.what());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "another exception: %s\n", error.what());
    }
    return false;
}

}  // namespace

TEST_CASE("fork: before the first use, child process" * doctest::skip()) {
    const auto train = [] {
        Tensor w = test::random_tensor({3, 3}, 1).set_requires_grad();
        sum(square(matmul(w, w))).backward();
        return w.grad().to_vector<float>().size() == 9 ? 0 : 1;
    };
    CHECK(forked(train) == 0);
    CHECK(forked(train) == 0);
    CHECK(!after_fork());
    CHECK(train() == 0);
    CHECK(forked([] { return after_fork() ? 0 : 1; }) == 0);
    // Grandchildren of a child that used no device, although their parent did, work as well.
    CHECK(forked([&] { return forked([] { return after_fork() ? 0 : 1; }); }) == 0);
}

TEST_CASE("fork: before the first use of a device it works, in the parent and in the child") {
    const auto result = test::run_child("fork: before the first use, child process", {});
    INFO(result.output);
    CHECK(result.code == 0);
}

TEST_CASE("fork: afterwards each use is refused with a message, and destructors are silent") {
    const Device device = test::device();
    static Tensor in_static_storage = relu(test::random_tensor({5}, 1)) + 1.0;  // destroyed in the child as well
    Tensor w = test::random_tensor({4, 4}, 1).set_requires_grad();
    const Tensor x = test::random_tensor({4, 4}, 2), pending = exp(x) + 1.0, product = matmul(x, w),
                 loss = sum(square(matmul(product, w)));
    const Tensor image = test::random_tensor({1, 1, 5, 5}, 1), window = test::random_tensor({1, 1, 3, 3}, 1);
    (void)test::values(x);
    nn::Sequential model(nn::Conv2d(1, 2, 3), nn::ReLU());
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Buffer buffer(device, 100);
    Buffer ahead(device, 100, BufferUse::transfer);
    std::vector<std::byte> bytes(100);
    const Event event = upload_async(ahead, 0, bytes);
    const Kernel kernel(device,
                        {.file = "arange.cl", .name = "arange", .defines = {{"OUT", "float"}, {"COMPUTE", "float"}}});
    data::SyntheticDigits digits(64, 1);
    data::LoaderOptions options;
    options.batch = 16;
    options.threads = 2;
    auto loader = std::make_unique<data::Loader>(digits, options);
    loader->start(0);
    auto profiler = std::make_unique<Profiler>(device);
    auto captured = capture([](const Tensor& in) { return in * 2.0; });
    const Tensor doubled = captured(x);
    (void)captured(x);
    const CommandList command_list = captured.command_list();

    const std::vector<std::pair<const char*, std::function<void()>>> uses{
        {"all", [] { (void)Device::all(); }},
        {"best", [] { (void)Device::best(); }},
        {"select", [] { (void)Device::select("cpu"); }},
        {"zeros", [] { (void)zeros({3}); }},
        {"uniform", [&] { (void)uniform({3}, 0, 1, {.device = device}); }},
        {"seed", [] { manual_seed(3); }},
        {"read", [&] { (void)x.to_vector<float>(); }},
        {"read what waits", [&] { (void)pending.to_vector<float>(); }},
        {"view",
         [&] {
             (void)(pending.value().computed() ? zeros({1}) : pending).view();
         }},  // with DECLIVITY_FUSION=0 it is not pending
        {"expression", [&] { (void)(x + 1.0); }},
        {"operator", [&] { (void)matmul(x, x).view(); }},
        {"conv2d", [&] { (void)conv2d(image, window).view(); }},
        {"backward", [&] { loss.backward(); }},
        {"grad", [&] { (void)w.grad(); }},  // locks that other threads may have held
        {"zero_grad", [&] { w.zero_grad(); }},
        {"model", [&] { (void)model(image).view(); }},
        {"fill_", [&] { Tensor(x).fill_(3.0); }},
        {"copy_", [&] { Tensor(x).copy_(pending); }},
        {"buffer", [&] { (void)Buffer(device, 10); }},
        {"upload", [&] { upload(buffer, 0, bytes); }},
        {"upload_async", [&] { (void)upload_async(ahead, 0, bytes); }},
        {"download", [&] { (void)download(buffer, 0, bytes); }},
        {"fill", [&] { fill(buffer, 0, 100, std::vector<std::byte>(4)); }},
        {"copy", [&] { copy(buffer, 0, buffer, 50, 10); }},
        {"wait", [&] { event.wait(); }},
        {"done", [&] { (void)event.done(); }},
        {"marker", [&] { (void)Queue::compute(device).marker(); }},
        {"wait_for", [&] { Queue::compute(device).wait_for(event); }},
        {"flush", [&] { Queue::compute(device).flush(); }},
        {"finish", [&] { Queue::compute(device).finish(); }},
        {"synchronize", [&] { device.synchronize(); }},
        {"memory", [&] { (void)device.memory(); }},
        {"memory by scope", [&] { (void)device.memory_by_scope(); }},
        {"move to scope", [&] { buffer.move_to_scope(ScopePath("elsewhere")); }},
        {"chain", [&] { (void)sum(pending * 2.0); }},
        {"checkpoint", [&] { (void)checkpoint([](const Tensor& in) { return in * 2.0; }, x); }},
        {"recorded", [&] { (void)captured(x); }},
        {"replays", [&] { (void)captured.replays(); }},
        {"reset", [&] { captured.reset(); }},
        {"replay", [&] { command_list.replay(); }},
        {"replace", [&] { command_list.replace(0, buffer); }},
        {"recorder", [&] { (void)Capture(device).finish(); }},
        {"release_cached_memory", [&] { device.release_cached_memory(); }},
        {"kernel", [&] { (void)Kernel(device, {.file = "arange.cl", .name = "arange"}); }},
        {"launch",
         [&] {
             launch(kernel, {}, {std::int64_t{1}, BufferArgument{buffer, 0, 4}, 1.0F, 1.0F});
         }},
        {"rows", [&] { (void)profiler->rows(); }},
        {"profiler", [&] { (void)Profiler(device); }},
        {"next", [&] { (void)loader->next(); }},
        {"start", [&] { loader->start(1); }},
        {"wrap", [&] { (void)interop::wrap(interop::context(device), interop::compute_queue(device)); }},
    };
    const auto calls = [&] {
        int number = 0;
        for (const auto& [name, use] : uses) {
            ++number;
            const long before = test::opencl_call_count();
            if (!is_rejected(use)) {
                std::fprintf(stderr, "not refused: %s\n", name);
                return number;
            }
            if (test::opencl_call_count() != before) return 100;  // the driver was called
        }
        return 0;
    };
    // A driver may wait at exit() for commands in flight at the fork, forever.
    device.synchronize();
    CHECK(forked(calls) == 0);
    // Objects that are destroyed in the child before it ends.
    CHECK(forked([&] {
              const long before = test::opencl_call_count();
              loader.reset();
              profiler.reset();
              w = Tensor();
              in_static_storage = Tensor();
              buffer = Buffer();
              ahead = Buffer();
              return test::opencl_call_count() == before ? 0 : 1;
          }) == 0);
    // A grandchild, and a child of another thread.
    CHECK(forked([&] { return forked(calls); }) == 0);
    int thread_result = 1;
    std::thread([&] { thread_result = forked(calls); }).join();
    CHECK(thread_result == 0);
    // The parent is not affected.
    CHECK(!after_fork());
    CHECK(loader->next().has_value());
    (void)exp(x).view();
    CHECK(!profiler->rows().empty());
    loss.backward();
    CHECK(w.grad().to_vector<float>().size() == 16);
}

TEST_CASE("fork: while other threads train, the child gets errors and ends") {
#ifdef __SANITIZE_ADDRESS__
    test::skip("AddressSanitizer's allocator may be locked by another thread when a process forks");
    return;
#endif
    (void)zeros({3}).to_vector<float>();  // initialised by now
    std::atomic<bool> stop = false;
    const auto train = [&] {
        while (!stop) {
            Tensor w = test::random_tensor({16, 16}, 1).set_requires_grad();
            sum(square(matmul(exp(w), w))).backward();
            (void)w.grad().to_vector<float>();
        }
    };
    std::thread first(train), second(train);
    // Driver locks that other threads held at the fork stay locked in the child, and destructors of its static objects
    // take some of them.
    int wrong = 0;
    for (int round = 0; round < 20; ++round)
        wrong +=
            forked(
                [&] {
                    return is_rejected([] { (void)zeros({3}); }) && is_rejected([] { (void)Device::best(); }) ? 0 : 1;
                },
                End::at_once) != 0;
    stop = true;
    first.join();
    second.join();
    CHECK(wrong == 0);
}

TEST_CASE("fork: exec in the child works") {
    (void)zeros({3}).to_vector<float>();
    const auto result = test::run_child("fork: before the first use, child process", {});
    INFO(result.output);
    CHECK(result.code == 0);
}
