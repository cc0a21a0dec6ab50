// no-oclgrind: it needs devices of two platforms
// Devices of two platforms (two drivers) in one process: each trains as if it were alone, at the same time.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/default_device.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/trace.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/launch_lock.hpp"

using namespace declivity;

namespace {

std::optional<std::pair<Device, Device>> devices_of_two_platforms() {
    const auto all = Device::all();
    for (const Device& other : all)
        if (other.info().platform != all.front().info().platform) return std::pair{all.front(), other};
    return std::nullopt;
}

class Training {
  public:
    explicit Training(const Device& device)
        : on_(device),
          model_(nn::Conv2d(1, 4, 3, {.device = device}), nn::ReLU(), nn::Flatten(),
                 nn::Linear(4 * 8 * 8, 5, {.device = device})),
          optimizer_(model_.parameters(), {.lr = 0.01}),
          x_(test::random_tensor({8, 1, 10, 10}, 3).to(device)),
          labels_(Tensor::from(std::vector<std::int32_t>{0, 1, 2, 3, 4, 2, 1, 0}, {8}, device)) {
        const NoGrad none;
        std::uint64_t seed = 0;
        for (Tensor& parameter : model_.parameters())
            parameter.copy_((test::random_tensor(parameter.shape(), ++seed) * 0.3).to(device));
    }

    void step() {
        const DefaultDevice scope(on_);
        optimizer_.zero_grad();
        cross_entropy(model_(x_), labels_).backward();
        optimizer_.step();
    }
    [[nodiscard]] std::vector<float> elements() const {
        return model_.parameters().front().to(DType::f32).to_vector<float>();
    }

  private:
    Device on_;
    nn::Sequential model_;
    optim::Adam optimizer_;
    Tensor x_, labels_;
};

struct Interval {
    double begin, end;
};

std::vector<Interval> intervals(const std::vector<test::Json>& events, const std::string& name) {
    std::vector<Interval> out;
    for (const test::Json& event : events) {
        if (!name.empty() && event.at("name") != name) continue;
        const double begin = event.at("ts").get<double>();
        out.push_back({begin, begin + event.at("dur").get<double>()});
    }
    return out;
}

std::ptrdiff_t during(const std::vector<Interval>& intervals_a, const std::vector<Interval>& intervals_b) {
    return std::ranges::count_if(intervals_a, [&](const Interval& interval) {
        return std::ranges::any_of(intervals_b, [&](const Interval& other) {
            return interval.begin < other.end && other.begin < interval.end;
        });
    });
}

}  // namespace

TEST_CASE("two platforms: devices run steps concurrently from two threads, and neither thread waits for the other") {
    const auto devices = devices_of_two_platforms();
    if (!devices) {
        test::skip("all devices are of one platform");
        return;
    }
    const auto& [device, other_device] = *devices;
    CAPTURE(device.name());
    CAPTURE(other_device.name());
    constexpr int kSteps = 60;
    std::vector<float> separate[2];
    for (const bool second : {false, true}) {
        Training training(second ? other_device : device);
        for (int i = 0; i < kSteps; ++i) training.step();
        separate[second ? 1 : 0] = training.elements();
    }
    Training first(device), second(other_device);
    const std::uint64_t device_before = ops::launch_lock(device).contended(),
                        other_before = ops::launch_lock(other_device).contended();
    Profiler profiler(other_device);
    std::atomic<int> ready{0};
    const auto steps = [&](Training& training, const char* name) {
        ++ready;
        while (ready < 2) std::this_thread::yield();
        for (int i = 0; i < kSteps; ++i) {
            const Span span(name);
            training.step();
        }
        (void)training.elements();
    };
    std::thread thread([&] { steps(first, "step of the one"); });
    steps(second, "step of the other");
    thread.join();
    CHECK(ops::launch_lock(device).contended() == device_before);
    CHECK(ops::launch_lock(other_device).contended() == other_before);

    const test::Json trace = test::trace_of(profiler);
    const auto all = test::events(trace, "X");
    const auto first_intervals = intervals(all, "step of the one"),
               second_intervals = intervals(all, "step of the other"),
               kernels = intervals(test::events(trace, "X", "kernel"), "");
    REQUIRE(first_intervals.size() == kSteps);
    REQUIRE(second_intervals.size() == kSteps);
    REQUIRE(!kernels.empty());
    // If one blocked the other, their steps would alternate.
    MESSAGE(during(first_intervals, second_intervals), " steps of the first and ",
            during(second_intervals, first_intervals), " of the second overlap, and ", during(kernels, first_intervals),
            " of ", kernels.size(), " kernels of the other ran concurrently");
    CHECK(during(first_intervals, second_intervals) > 0);
    CHECK(during(second_intervals, first_intervals) > 0);
    CHECK(during(kernels, first_intervals) > 0);

    CHECK(first.elements() == separate[0]);
    CHECK(second.elements() == separate[1]);
}
