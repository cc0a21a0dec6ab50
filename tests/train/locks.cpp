// Locking: no lock is held while a kernel compiles, devices share none, and readers do not block launches.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <CL/cl.h>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/default_device.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/blocked_build.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/trace.hpp>
#include <tests/support/values.hpp>

#include "runtime/opencl/device_state.hpp"
#include "ops/engine/launch_lock.hpp"

using namespace declivity;
using ops::launch_lock;
using ops::LaunchLock;

namespace {

using Floats = std::vector<float>;

Floats elements(const Tensor& tensor) { return tensor.to_vector<float>(); }

/// An expression with a structure new to this process, so that it is compiled.
Tensor unique_expression(Tensor x) {
    static std::atomic<int> number{0};
    for (int bits = ++number + 64; bits > 0; bits /= 2) x = bits % 2 == 0 ? x + 1.0 : x * 0.5;
    return x;
}
Floats unique_expression(Floats x, int number) {
    for (int bits = number + 64; bits > 0; bits /= 2)
        for (float& value : x) value = bits % 2 == 0 ? value + 1 : value * 0.5F;
    return x;
}

/// A network and its optimizer; each step uses random numbers, all kinds of lazy values, and accumulated gradients.
class LockedTraining {
  public:
    explicit LockedTraining(const Device& device)
        : on_(device),
          model_(nn::Linear(12, 16, {.device = device}), nn::ReLU(), nn::Dropout(0.2),
                 nn::Linear(16, 4, {.device = device})),
          optimizer_(model_.parameters(), {.lr = 0.01}),
          x_(test::random_tensor({8, 12}, 3).to(device)),
          labels_(Tensor::from(std::vector<std::int32_t>{0, 1, 2, 3, 3, 2, 1, 0}, {8}, device)) {}

    float step() {
        const DefaultDevice scope(on_);
        optimizer_.zero_grad();
        Tensor loss = cross_entropy(model_(x_) + normal({8, 4}) * 0.01, labels_);
        loss.backward();
        const Tensor mean_square = mean(square(softmax(model_(x_))));
        mean_square.backward();  // into existing gradients
        optimizer_.step();
        return loss.item<float>();
    }

  private:
    Device on_;
    nn::Sequential model_;
    optim::Adam optimizer_;
    Tensor x_, labels_;
};

/// Calls `work` in a thread while another thread is blocked in the compiler, and waits for it, or until it waits for
/// the other.
/// @return whether it completed
bool completes_meanwhile(const Device& device, const auto& work) {
    LaunchLock& lock = launch_lock(device);
    const std::uint64_t before = lock.contended();
    std::atomic<bool> done{false};
    bool passed = true;
    {
        const test::BlockedBuild build;
        std::thread compiles([&] { (void)elements(unique_expression(ones({5, 7}, {.device = device}))); });
        build.wait();
        std::thread other([&] {
            work();
            done = true;
        });
        while (!done && lock.contended() == before) std::this_thread::yield();
        passed = done;
        build.release();
        compiles.join();
        other.join();
    }
    return passed;
}

/// An event that the test completes.
class UserEvent {
  public:
    explicit UserEvent(const Device& device) {
        cl_int status = CL_SUCCESS;
        event_ = clCreateUserEvent(interop::context(device), &status);
        REQUIRE(status == CL_SUCCESS);
    }
    ~UserEvent() {
        set();
        clReleaseEvent(event_);
    }
    UserEvent(const UserEvent&) = delete;
    UserEvent& operator=(const UserEvent&) = delete;
    /// Commands of the queue wait for the event.
    void block(cl_command_queue queue) const {
        REQUIRE(clEnqueueBarrierWithWaitList(queue, 1, &event_, nullptr) == CL_SUCCESS);
        REQUIRE(clFlush(queue) == CL_SUCCESS);
    }
    void set() {
        if (!set_) clSetUserEventStatus(event_, CL_COMPLETE);
        set_ = true;
    }

  private:
    cl_event event_ = nullptr;
    bool set_ = false;
};

}  // namespace

TEST_CASE("locks: while a kernel compiles, other threads run steps on the same device and on another") {
    if (test::small_cases()) return;  // one thread only
    const Device device = test::device(), other_device = test::fresh_device();
    LockedTraining first(device), second(other_device);
    first.step(), second.step();
    CHECK(completes_meanwhile(device, [&] { first.step(); }));
    const std::uint64_t before = launch_lock(other_device).contended();
    CHECK(completes_meanwhile(device, [&] {
        for (int i = 0; i < 3; ++i) second.step();
    }));
    CHECK(launch_lock(other_device).contended() == before);
    CHECK(completes_meanwhile(device, [&] {
        (void)elements(unique_expression(ones({3, 3}, {.device = device})));
    }));  // another compilation
}

TEST_CASE("locks: other threads wait for the in-flight launch of a thread that compiles") {
    if (test::small_cases()) return;
    const Device device = test::device();
    LaunchLock& lock = launch_lock(device);
    const Floats start = elements(test::random_tensor({6, 150}, 5));
    // A function of `x` in a thread that compiles, concurrent work of others, and whether these have to wait.
    const auto meanwhile = [&](const auto& make, const auto& concurrent) {
        Tensor x = Tensor::from(start, {6, 150}, device);
        const Tensor result = make(x);
        Floats got;
        const std::uint64_t before = lock.contended();
        std::atomic<bool> done{false};
        bool has_waited = false;
        {
            const test::BlockedBuild build;
            std::thread compiles([&] { got = elements(result); });
            build.wait();
            std::thread other([&] {
                concurrent(x, result);
                done = true;
            });
            while (!done && lock.contended() == before) std::this_thread::yield();
            has_waited = !done;
            build.release();
            compiles.join();
            other.join();
        }
        return std::pair{got, has_waited};
    };
    int number = 1;
    // The numbers of unique_expression() are consecutive in this process; the first call determines the number of this
    // test.
    const Floats probe = elements(unique_expression(Tensor::from(Floats{1}, {1}, device)));
    while (unique_expression(Floats{1}, number) != probe) ++number;

    SUBCASE("a write to its input") {
        Tensor seen;
        const auto [got, has_waited] = meanwhile([](const Tensor& x) { return unique_expression(x); },
                                                 [&](Tensor& x, const Tensor&) { x.add_(1.0), seen = x; });
        CHECK(has_waited);
        CHECK(got == unique_expression(start, number + 1));
        Floats written = start;
        for (float& element : written) element += 1;
        CHECK(elements(seen) == written);
    }
    SUBCASE("the value itself, and its results") {
        Floats seen;
        const auto [got, has_waited] = meanwhile([](const Tensor& x) { return unique_expression(x); },
                                                 [&](Tensor&, const Tensor& result) { seen = elements(result * 2.0); });
        CHECK(has_waited);
        Floats expected = unique_expression(start, number + 1);
        CHECK(got == expected);
        for (float& element : expected) element *= 2;
        CHECK(seen == expected);
    }
    SUBCASE("but not its input, which others may continue to use and write") {
        Tensor between;
        Floats seen;
        const auto [got, has_waited] = meanwhile(
            [&](const Tensor& x) {
                between = x * 3.0;
                return unique_expression(between);
            },
            [&](Tensor&, const Tensor&) { seen = elements(between); });
        CHECK_FALSE(has_waited);
        Floats tripled = start;
        for (float& element : tripled) element *= 3;
        CHECK(seen == tripled);
        CHECK(got == unique_expression(tripled, number + 1));
    }
    SUBCASE("row operators, whose kernel reads their input") {
        Tensor seen, scaled;
        Floats rows;
        const auto [got, has_waited] = meanwhile(
            [&](const Tensor& x) {
                scaled = unique_expression(x);
                return softmax(scaled, -1);
            },
            [&](Tensor& x, const Tensor&) { rows = elements(scaled), x.mul_(0.0), seen = x; });
        (void)has_waited;  // whether the rows are fused depends on the device
        CHECK(rows == unique_expression(start, number + 1));
        const Floats expected = elements(softmax(Tensor::from(rows, {6, 150}, device), -1));
        CHECK(test::difference({got.begin(), got.end()}, {expected.begin(), expected.end()}, {1e-6, 1e-6}) == "");
        CHECK(elements(seen) == Floats(start.size(), 0.0F));
    }
}

TEST_CASE("locks: threads that share values and release the lock at every launch get the results of a single thread") {
    const auto run_alone = [&](std::uint64_t seed) {
        Tensor x = test::random_tensor({20, 20}, seed).set_requires_grad();
        const Tensor shared = exp(x) * 0.1, product = matmul(shared, x);
        const Tensor rows = softmax(product * 0.5 + shared, -1), sums = relu(product) + shared;
        const Tensor filtered = conv2d(reshape(sums, {1, 1, 20, 20}), reshape(slice(x, 0, 0, 1), {1, 1, 4, 5}) * 0.3);
        sum(square(rows) * sums).backward();
        return std::vector{elements(filtered), elements(rows), elements(x.grad()), elements(sums - product)};
    };
    std::vector<std::vector<Floats>> expected;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) expected.push_back(run_alone(seed));
    const LaunchLock::YieldOnLaunch yield_on_launch;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) CHECK(run_alone(seed) == expected[seed - 1]);
    for (const std::string& fault : test::run_in_threads(4, [&](int number) -> std::string {
             for (int round = 0; round < 5; ++round)
                 if (const auto at = static_cast<std::size_t>((number + round) % 3); run_alone(at + 1) != expected[at])
                     return "other values";
             return "";
         }))
        CHECK(fault == "");
    for (int round = 0; round < 20; ++round) {
        Tensor x = test::random_tensor({20, 20}, 1);
        const Tensor shared = exp(x) * 0.1, product = matmul(shared, x);
        const Tensor sums = relu(product) + shared, rows = softmax(sums * 0.5 + product, -1);
        std::vector<std::vector<Floats>> got(4);
        for (const std::string& fault : test::run_in_threads(4, [&](int number) -> std::string {
                 auto& own_results = got[static_cast<std::size_t>(number)];
                 if (number == 3) x.mul_(0.0);  // pending results have the elements from before
                 own_results.push_back(elements(number % 2 == 0 ? sums + product : rows + shared));
                 own_results.push_back(elements(number % 2 == 0 ? rows + shared : sums + product));
                 return "";
             }))
            CHECK(fault == "");
        const Tensor again = test::random_tensor({20, 20}, 1), e = exp(again) * 0.1, p = matmul(e, again);
        const Tensor s = relu(p) + e, r = softmax(s * 0.5 + p, -1);
        const Floats a = elements(s + p), b = elements(r + e);
        for (std::size_t i = 0; i < 4; ++i) {
            const auto check_close = [](const Floats& x1, const Floats& x2) {
                return test::difference({x1.begin(), x1.end()}, {x2.begin(), x2.end()}, {1e-5, 1e-5});
            };
            CHECK(check_close(got[i][0], i % 2 == 0 ? a : b) == "");
            CHECK(check_close(got[i][1], i % 2 == 0 ? b : a) == "");
        }
    }
}

TEST_CASE("locks: a trace shows a device running steps while a thread of another compiles") {
    if (test::small_cases()) return;
    const Device device = test::device(), other_device = test::fresh_device();
    LockedTraining first(device), second(other_device);
    first.step(), second.step();
    Profiler profiler(other_device);
    {
        const test::BlockedBuild build;
        std::thread compiles([&] {
            const Span span("compiles on the one");
            (void)elements(unique_expression(ones({5, 7}, {.device = device})));
        });
        build.wait();
        std::thread steps([&] {
            const Span span("steps on the other");
            for (int i = 0; i < 3; ++i) second.step();
        });
        steps.join();
        build.release();
        compiles.join();
    }
    const test::Json trace = test::trace_of(profiler);
    double begin = 0, end = 0, kernels = 0;
    for (const test::Json& event : test::events(trace, "X"))
        if (event.at("name") == "compiles on the one")
            begin = event.at("ts").get<double>(), end = begin + event.at("dur").get<double>();
    CHECK(end > begin);
    for (const test::Json& event : test::events(trace, "X")) {
        if (event.at("name") != "steps on the other" && event.value("cat", "") != "kernel") continue;
        kernels += event.value("cat", "") == "kernel" ? 1 : 0;
        CHECK(event.at("ts").get<double>() >= begin);
        CHECK(event.at("ts").get<double>() + event.at("dur").get<double>() <= end);
    }
    CHECK(kernels > 10);
}

TEST_CASE("locks: a reader that waits for the device blocks no launches") {
    if (test::small_cases()) return;
    const Device device = test::device(), other = test::fresh_device();
    LockedTraining on_device(device), on_other(other);
    on_device.step(), on_other.step();
    const Tensor x = test::random_tensor({300, 100}, 1).to(device);
    UserEvent event(device);
    event.block(interop::compute_queue(device));
    Floats got;
    std::thread reads([&] { got = elements(x * 2.0); });
    for (int i = 0; i < 3; ++i) on_other.step();  // another device
    Tensor y = relu(x - 1.0);
    (void)y.view();  // and on this one: launched, although nothing runs yet
    event.set();
    reads.join();
    Floats expected = elements(x);
    for (float& value : expected) value *= 2;
    CHECK(got == expected);
}

TEST_CASE("downloads: long ones use the transfer queue, and the compute queue continues") {
    const Device device = test::device();
    Tensor large = test::random_tensor({200, 100}, 2).to(device);
    const Floats before = elements(large);
    (void)elements(large * 0.0 + 1.0);
    UserEvent event(device);
    std::vector<float> to(before.size());
    const ops::View& view = large.view();
    event.block(state_of(device).queues.transfer());  // its commands do not start
    const Event read = download(view.buffer, 0, std::as_writable_bytes(std::span(to)));
    CHECK_FALSE(read.done());
    // Later work completes, and short reads are not blocked.
    CHECK(sum(large * 0.0 + 1.0).item<float>() == 20000.0F);
    CHECK_FALSE(read.done());
    // An in-place write waits for the read on the device, not on the host.
    large.mul_(0.0);
    const Event written = Queue::compute(device).marker();
    CHECK_FALSE(read.done());
    CHECK_FALSE(written.done());
    event.set();
    read.wait();
    CHECK(to == before);
    CHECK(elements(large) == Floats(before.size(), 0.0F));
}

TEST_CASE("default device: that of a thread overrides that of the process") {
    const Device device = test::device(), other_device = test::fresh_device();
    const Device before = default_device();
    {
        const DefaultDevice scope(other_device);
        CHECK(default_device() == other_device);
        CHECK(ones({2}).device() == other_device);
        {
            const DefaultDevice inner(device);
            CHECK(zeros({2}).device() == device);
        }
        CHECK(uniform({2}).device() == other_device);
        for (const std::string& fault : test::run_in_threads(1, [&](int) -> std::string {
                 return test::small_cases() || default_device() == before ? "" : "another thread's";
             }))
            CHECK(fault == "");
        set_default_device(device);  // of the process: this thread keeps its own
        CHECK(default_device() == other_device);
    }
    CHECK(default_device() == device);
    set_default_device(before);
}
