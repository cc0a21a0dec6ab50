// Training steps and inference of whole networks. bench/peers/beside_pytorch.py compares them with PyTorch.
#include <chrono>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "measure.hpp"
#include "nets.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

/// Host time of a call on an idle device, until the call returns: median.
double host_microseconds(const std::function<void()>& call, const std::function<void()>& wait) {
    constexpr int kCalls = 41;
    std::vector<double> times;
    for (int i = 0; i < kCalls; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        call();
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
        wait();
    }
    return median(times);
}

void run(Report& report) {
    report.begin("train");
    const Device device = report.device();
    const auto wait = [device] { device.synchronize(); };
    for (const Net& net : nets()) {
        const std::string name = fmt::format("{} batch {}", net.name, net.batch);
        if (!report.is_selected(name)) continue;
        Training training(net, net.batch);
        const auto images_per_second = [&](const Times& times) {
            return static_cast<double>(net.batch) / times.seconds;
        };
        report.note(name + " training",
                    images_per_second(compare({"ours", [&](int) { training.step(); }, wait}, {}, 9).ours), "images/s");
        report.note(name + " inference",
                    images_per_second(compare({"ours", [&](int) { training.infer(); }, wait}, {}, 9).ours), "images/s");
        report.note(name + " captured training",
                    images_per_second(compare({"ours", [&](int) { training.captured_step(); }, wait}, {}, 9).ours),
                    "images/s");
        report.note(name + " captured inference",
                    images_per_second(compare({"ours", [&](int) { training.captured_infer(); }, wait}, {}, 9).ours),
                    "images/s");
        report.note(name + " host", host_microseconds([&] { training.step(); }, wait), "us/step");
        report.note(name + " captured host", host_microseconds([&] { training.captured_step(); }, wait), "us/step");
    }
    report.end();
}

const Suite suite("train", "training steps and inference of mnist, cifar10 and ResNet-20", run);

}  // namespace
}  // namespace declivity::bench
