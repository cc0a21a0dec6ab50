// Training steps and inference of whole networks. bench/peers/beside_pytorch.py sets them beside PyTorch.
#include <fmt/format.h>

#include "nets.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

void run(Report& report) {
    report.begin("train");
    const Device device = report.device();
    const auto wait = [device] { device.synchronize(); };
    for (const Net& net : nets()) {
        const std::string name = fmt::format("{} batch {}", net.name, net.batch);
        if (!report.wants(name)) continue;
        Training training(net, net.batch);
        const auto images_per_second = [&](const Times& times) { return static_cast<double>(net.batch) / times.seconds; };
        report.note(name + " training", images_per_second(compare({"ours", [&](int) { training.step(); }, wait}, {}, 9).ours), "images/s");
        report.note(name + " inference", images_per_second(compare({"ours", [&](int) { training.infer(); }, wait}, {}, 9).ours), "images/s");
    }
    report.end();
}

const Suite suite("train", "training steps and inference of mnist, cifar10 and ResNet-20", run);

}  // namespace
}  // namespace declivity::bench
