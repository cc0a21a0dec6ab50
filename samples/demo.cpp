// Trains a small convolutional network on synthetic digits and plots its learning curve and predictions.
#include "common.hpp"

using namespace declivity;

namespace {

/// Plots the learning curve after the last epoch.
struct Curve : train::Callback {
    io::Image8 image;
    void after_epoch(train::Trainer& trainer, const train::EpochMetrics&) override {
        image = samples::curve_of(trainer, "synthetic digits");
    }
};

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Trains a small convolutional network on synthetic digits; "
        "writes the learning curve and its predictions to a PNG file.");
    samples::Flags flags{.epochs = 4, .batch = 64, .lr = 2e-3, .plot = "demo.png"};
    flags.add_to(app);
    flags.add_dtype_to(app);
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        std::puts("generating 12000 digits ...");
        const samples::Sets sets{samples::limited(std::make_shared<data::SyntheticDigits>(10000, 1), flags.limit),
                                 std::make_shared<data::SyntheticDigits>(2000, 2)};
        nn::Sequential model(nn::Conv2d(1, 16, 3), nn::ReLU(), nn::MaxPool2d(2),   //
                             nn::Conv2d(16, 32, 3), nn::ReLU(), nn::MaxPool2d(2),  //
                             nn::Flatten(), nn::Linear(32 * 5 * 5, 10));
        model.to(flags.dtype);
        optim::Adam optimizer(model.parameters(), {.lr = flags.lr});
        const std::string plot = std::exchange(flags.plot, "");
        const auto curve = std::make_shared<Curve>();
        const int status = samples::train_and_report(flags, model, optimizer, sets, {.callbacks = {curve}}, "");

        // Predictions for the first test digits.
        const samples::DatasetPointer first = data::take(sets.test, 60);
        train::Trainer trainer(model, optimizer);
        const auto answers = argmax(trainer.predict(*first)).to_vector<std::int64_t>();
        std::vector<train::Prediction> predictions;
        for (std::int64_t i = 0; i < first->size(); ++i) {
            const data::Example digit = first->example(i);
            predictions.push_back({io::Image8::from_planes(digit["image"].as<float>(), digit["image"].shape),
                                   std::to_string(answers[static_cast<std::size_t>(i)]),
                                   std::to_string(digit["label"].as<std::int64_t>()[0])});
        }
        const io::Image8 grid = train::prediction_grid(predictions, 12, "test digits: predicted (actual)");
        io::write_png(plot, curve->image.width > 0 ? samples::stacked(curve->image, grid) : grid);
        std::fprintf(stderr, "wrote %s\n", plot.c_str());
        return status;
    });
}
