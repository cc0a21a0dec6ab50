// Draws digits, trains a small convolutional network on them, and shows what it learned.
#include "common.hpp"

using namespace declivity;

int main(int argc, char** argv) {
    CLI::App app(
        "Trains a small convolutional network on digits that the library draws itself; writes demo.png files.");
    samples::Flags flags{.epochs = 4, .batch = 64, .lr = 2e-3};
    flags.add_to(app);
    flags.add_dtype_to(app);
    std::string folder = ".";
    app.add_option("--out", folder, "folder for the pictures")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        std::puts("drawing 12000 digits ...");
        const samples::Sets sets{samples::limited(std::make_shared<data::DrawnDigits>(10000, 1), flags.limit),
                                 std::make_shared<data::DrawnDigits>(2000, 2)};
        nn::Sequential model(nn::Conv2d(1, 16, 3), nn::ReLU(), nn::MaxPool2d(2),   //
                             nn::Conv2d(16, 32, 3), nn::ReLU(), nn::MaxPool2d(2),  //
                             nn::Flatten(), nn::Linear(32 * 5 * 5, 10));
        model.to(flags.dtype);
        optim::Adam optimizer(model.parameters(), {.lr = flags.lr});
        flags.curve = folder + "/demo_curve.png";
        const int status = samples::train_and_report(flags, model, optimizer, sets, {}, "drawn digits");

        // What the network says of the first test digits.
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
        const std::string grid = folder + "/demo_digits.png";
        io::write_png(grid, train::prediction_grid(predictions, 12,
                                                   "test digits: what the network says (and what it should say)"));
        std::fprintf(stderr, "wrote %s and %s\n", flags.curve.c_str(), grid.c_str());
        return status;
    });
}
