// LeNet (LeCun et al. 1998) with ReLU and max pooling on CIFAR-10: SGD with momentum and a decaying learning rate.
#include "common.hpp"

using namespace declivity;

int main(int argc, char** argv) {
    CLI::App app("Trains LeNet on CIFAR-10 (binary version), or on coloured synthetic digits.");
    samples::Flags flags{.epochs = 20, .batch = 64, .lr = 0.01};
    flags.add_to(app);
    flags.add_dtype_to(app);
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        const samples::Sets sets = samples::cifar10_or_digits(flags);
        nn::Sequential model(nn::Conv2d(3, 6, 5), nn::ReLU(), nn::MaxPool2d(2),   //
                             nn::Conv2d(6, 16, 5), nn::ReLU(), nn::MaxPool2d(2),  //
                             nn::Flatten(), nn::Linear(16 * 5 * 5, 120), nn::ReLU(), nn::Linear(120, 84), nn::ReLU(),
                             nn::Linear(84, 10));
        model.to(flags.dtype);
        optim::SGD optimizer(model.parameters(), {.lr = flags.lr, .momentum = 0.9, .weight_decay = 5e-4});
        const auto normal = data::normalize({0.492F, 0.483F, 0.448F}, {0.246F, 0.243F, 0.261F});
        train::FitOptions options{.train_transform = normal, .test_transform = normal};
        options.callbacks.push_back(
            std::make_shared<train::LearningRate>(optim::step_decay(5, 0.5), train::LearningRate::Unit::epoch));
        return samples::train_and_report(flags, model, optimizer, sets, options, "lenet_cifar10");
    });
}
