// Image classification with two padded convolutions and two dense layers: Adam with a cosine schedule, random crops and
// flips.
#include "common.hpp"

using namespace declivity;

int main(int argc, char** argv) {
    CLI::App app("Trains a small convolutional network on CIFAR-10 (binary version), or on coloured synthetic digits.");
    samples::Flags flags{.epochs = 15, .batch = 64, .lr = 1e-3};
    flags.add_to(app);
    flags.add_dtype_to(app);
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        const samples::Sets sets = samples::cifar10_or_digits(flags);
        nn::Sequential model(nn::Conv2d(3, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),   //
                             nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),  //
                             nn::Flatten(), nn::Linear(64 * 8 * 8, 128), nn::ReLU(), nn::Linear(128, 10));
        model.to(flags.dtype);
        optim::Adam optimizer(model.parameters(), {.lr = flags.lr});
        const auto normal = data::normalize({0.492F, 0.483F, 0.448F}, {0.246F, 0.243F, 0.261F});
        // Flips are for CIFAR-10 only: a mirrored digit is no longer the same digit.
        const auto flip = data::random_horizontal_flip(flags.data.empty() ? 0.0F : 0.5F);
        const std::int64_t steps = flags.epochs * ((sets.train->size() + flags.batch - 1) / flags.batch);
        train::FitOptions options{.train_transform = data::compose({data::random_crop(32, 32, 4), flip, normal}),
                                  .test_transform = normal};
        options.callbacks.push_back(
            std::make_shared<train::LearningRate>(optim::cosine(steps), train::LearningRate::Unit::step));
        return samples::train_and_report(flags, model, optimizer, sets, options, "cifar10");
    });
}
