// A small network on synthetic digits: the loss falls as in a reference run.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ops/support/work_split.hpp>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr int kSteps = 12;
constexpr std::int64_t kBatch = 32;

/// Losses of the reference run on PoCL 3.1; other devices agree to some digits, since sums have another order.
constexpr std::array<double, kSteps> kReferenceLosses{2.3214405, 2.2915354, 2.301683,  2.253202,  2.2447238, 2.1987705,
                                                      2.0296493, 2.1036317, 1.9350274, 1.8447168, 1.7440691, 1.7871574};
constexpr double kAllowed = 2e-3;  // relative tolerance

struct Network {
    nn::Sequential model{nn::Conv2d(1, 8, 3, {.padding = 1, .bias = false}),
                         nn::BatchNorm2d(8),
                         nn::ReLU(),
                         nn::MaxPool2d(2),
                         nn::Conv2d(8, 16, 3),
                         nn::ReLU(),
                         nn::AvgPool2d(2),
                         nn::Flatten(),
                         nn::Linear(16 * 6 * 6, 32),
                         nn::GELU(),
                         nn::Dropout(0.1),
                         nn::Linear(32, 10)};
    optim::Adam optimizer{model.parameters(), {.lr = 3e-3}};

    Tensor step(const Tensor& images, const Tensor& labels) {
        optimizer.zero_grad();
        const Tensor loss = cross_entropy(model(images), labels);
        loss.backward();
        optimizer.step();
        return loss.detach();
    }
};

struct Batch {
    Tensor images, labels;
};

Batch batch(int number) {
    const data::SyntheticDigits digits(kBatch, 42, static_cast<std::uint64_t>(number) * kBatch);
    std::vector<float> pixels(static_cast<std::size_t>(kBatch) * data::kDigitSize * data::kDigitSize);
    std::vector<std::int64_t> labels;
    const std::size_t pixels_per_image = pixels.size() / static_cast<std::size_t>(kBatch);
    for (std::int64_t i = 0; i < kBatch; ++i) {
        digits.read(i, std::span(pixels).subspan(static_cast<std::size_t>(i) * pixels_per_image, pixels_per_image));
        labels.push_back(digits.label(i));
    }
    return {Tensor::from(pixels, {kBatch, 1, data::kDigitSize, data::kDigitSize}), Tensor::from(labels, {kBatch})};
}

/// Losses of the training steps; with `captured`, of a captured and replayed step.
std::vector<float> train(bool captured) {
    manual_seed(7);
    Network network;
    const auto step = [&](const std::vector<Tensor>& inputs) {
        return std::vector<Tensor>{network.step(inputs[0], inputs[1])};
    };
    CapturedStep replay(step);
    std::vector<float> losses;
    for (int i = 0; i < kSteps; ++i) {
        const Batch example = batch(i % 6);
        losses.push_back(
            (captured ? replay({example.images, example.labels}) : step({example.images, example.labels}))[0]
                .item<float>());
    }
    return losses;
}

}  // namespace

void examine_training(DoctorRun& e) {
    for (const KernelStyle style : {KernelStyle::simd, KernelStyle::simt}) {
        const std::string kernels = style == KernelStyle::simd ? "simd kernels" : "simt kernels";
        e.check_style(style, fmt::format("the loss falls as in a reference run, {}", kernels), [&]() -> std::string {
            const ops::KernelStyleScope scope(style);
            const auto losses = train(false);
            if (!(losses.back() < 0.8F * losses.front()))
                return fmt::format("it does not fall: {}", fmt::join(losses, ", "));
            for (std::size_t i = 0; i < losses.size(); ++i)
                if (!(std::abs(losses[i] - kReferenceLosses[i]) <= kAllowed * kReferenceLosses[i]))
                    return fmt::format("in step {} it is {}, expected {}; all: {}", i, losses[i], kReferenceLosses[i],
                                       fmt::join(losses, ", "));
            return {};
        });
        e.check_style(style, fmt::format("captured and replayed steps are identical bit for bit, {}", kernels),
                      [&]() -> std::string {
                          const ops::KernelStyleScope scope(style);
                          const auto plain = train(false), captured = train(true);
                          return plain == captured ? ""
                                                   : fmt::format("{} eagerly, {} replayed", fmt::join(plain, ", "),
                                                                 fmt::join(captured, ", "));
                      });
    }
}

}  // namespace declivity::tools::doctor
