// Handwritten digit classification: two convolutions and a dense layer, trained with Adam and a cosine schedule.
#include "common.hpp"

using namespace declivity;

int main(int argc, char** argv) {
    CLI::App app("Trains a small convolutional network on MNIST (IDX files, plain or gzip), or on synthetic digits.");
    samples::Flags flags{.epochs = 3, .batch = 128, .lr = 2e-3};
    flags.add_to(app);
    flags.add_dtype_to(app);
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        samples::Sets sets;
        if (flags.data.empty()) {
            std::puts("no --data: using synthetic digits instead of MNIST");
            sets = {std::make_shared<data::SyntheticDigits>(20000, 1),
                    std::make_shared<data::SyntheticDigits>(2000, 2)};
        } else {
            sets = {data::load_mnist(flags.data, data::Split::train), data::load_mnist(flags.data, data::Split::test)};
        }
        sets.train = samples::limited(sets.train, flags.limit);
        nn::Sequential model(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::MaxPool2d(2),   //
                             nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),  //
                             nn::Flatten(), nn::Linear(64 * 5 * 5, 10));
        model.to(flags.dtype);
        optim::Adam optimizer(model.parameters(), {.lr = flags.lr});
        const auto normal = data::normalize({0.1307F}, {0.3081F});
        const std::int64_t steps = flags.epochs * ((sets.train->size() + flags.batch - 1) / flags.batch);
        train::FitOptions options{.train_transform = normal, .test_transform = normal};
        options.callbacks.push_back(
            std::make_shared<train::LearningRate>(optim::cosine(steps), train::LearningRate::Unit::step));
        return samples::train_and_report(flags, model, optimizer, sets, options, "mnist");
    });
}
