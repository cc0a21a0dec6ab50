// Shared by the training samples: command line, data sets for a run without downloads, and the training loop.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <declivity/declivity.hpp>

namespace samples {

using namespace declivity;

/// The flags common to all training samples, with each sample's defaults.
struct Flags {
    std::string data = {};
    std::string device = {};
    std::int64_t epochs = 3;
    std::int64_t batch = 64;
    double lr = 1e-3;
    std::uint64_t seed = 1;
    std::string save = {};
    std::int64_t save_every = 0;
    std::string load = {};
    bool evaluate = false;
    std::int64_t limit = 0;
    std::string plot = {};
    DType dtype = DType::f32;

    void add_to(CLI::App& app) {
        app.add_option("--data", data, "folder of the data set (default: synthetic digits)");
        app.add_option("--device", device,
                       "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
        app.add_option("--epochs", epochs, "total epochs, including those before --load")->capture_default_str();
        app.add_option("--batch", batch, "batch size")->capture_default_str();
        app.add_option("--lr", lr, "learning rate")->capture_default_str();
        app.add_option("--seed", seed, "random seed")->capture_default_str();
        app.add_option("--save", save, "checkpoint file to write");
        app.add_option("--save-every", save_every, "also write the checkpoint every this many steps");
        app.add_option("--load", load, "checkpoint file to resume from");
        app.add_flag("--evaluate", evaluate, "only evaluate the checkpoint of --load");
        app.add_option("--limit", limit, "use only this many training examples");
        app.add_option("--plot", plot, "PNG file for the learning curve");
    }

    /// Adds --dtype, for samples whose model uses flags.dtype.
    void add_dtype_to(CLI::App& app) {
        const std::map<std::string, DType> types{{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}};
        app.add_option("--dtype", dtype, "type of parameters and activations: f32, bf16 or f16")
            ->transform(CLI::CheckedTransformer(types))
            ->default_str("f32");
    }

    /// Must be called before any tensor is created.
    void apply() const {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(seed);
    }
};

using DatasetPointer = std::shared_ptr<const data::Dataset>;

struct Sets {
    DatasetPointer train, test;
};

inline DatasetPointer limited(DatasetPointer dataset, std::int64_t limit) {
    return limit > 0 && limit < dataset->size() ? data::take(dataset, limit) : dataset;
}

/// Coloured synthetic digits, 3 x 32 x 32, as a substitute for CIFAR-10.
class ColouredDigits : public data::ClassificationDataset {
  public:
    ColouredDigits(std::int64_t count, std::uint64_t seed) : digits_(count, seed), seed_(seed) {}
    [[nodiscard]] std::int64_t size() const override { return digits_.size(); }
    [[nodiscard]] Shape shape() const override { return {3, 32, 32}; }
    [[nodiscard]] std::int64_t classes() const override { return 10; }

  private:
    void do_features(std::int64_t index, std::span<float> features) const override {
        std::vector<float> grey(28 * 28);
        digits_.read(index, grey);
        data::Random random(seed_, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
        for (std::size_t channel = 0; channel < 3; ++channel) {
            const float paper = random.uniform(0, 0.4F), ink = random.uniform(paper + 0.3F, 1);
            for (std::size_t y = 0; y < 32; ++y)
                for (std::size_t x = 0; x < 32; ++x) {
                    const bool inside = y >= 2 && y < 30 && x >= 2 && x < 30;
                    const float cover = inside ? grey[(y - 2) * 28 + x - 2] : 0;
                    features[(channel * 32 + y) * 32 + x] = paper + cover * (ink - paper);
                }
        }
    }
    [[nodiscard]] std::int64_t do_label(std::int64_t index) const override { return digits_.label(index); }

    data::SyntheticDigits digits_;
    std::uint64_t seed_;
};

inline Sets cifar10_or_digits(const Flags& flags) {
    Sets sets;
    if (flags.data.empty()) {
        std::puts("no --data: using coloured synthetic digits instead of CIFAR-10");
        sets = {std::make_shared<ColouredDigits>(10000, 1), std::make_shared<ColouredDigits>(2000, 2)};
    } else {
        sets = {data::load_cifar10(flags.data, data::Split::train), data::load_cifar10(flags.data, data::Split::test)};
    }
    sets.train = limited(sets.train, flags.limit);
    return sets;
}

/// Plots the losses of all epochs, and the accuracies if the trainer reports them.
inline io::Image8 curve_of(const train::Trainer& trainer, const std::string& title) {
    train::LearningCurve curve{.title = title};
    const auto append = [](std::vector<train::Series>& all, const std::string& name, std::int64_t epoch, double value) {
        auto found = std::ranges::find(all, name, &train::Series::name);
        if (found == all.end()) found = all.insert(all.end(), {.name = name, .x = {}, .y = {}});
        found->x.push_back(static_cast<double>(epoch));
        found->y.push_back(value);
    };
    for (const train::EpochMetrics& row : trainer.progress().history)
        for (const auto& [name, value] : row)
            for (auto& [series, end] : {std::pair(&curve.losses, "_loss"), std::pair(&curve.accuracies, "_accuracy")})
                if (name.ends_with(end)) append(*series, name.substr(0, name.rfind('_')), row.epoch, value);
    return train::learning_curve(curve);
}

/// Stacks two images vertically.
inline io::Image8 stacked(const io::Image8& above, const io::Image8& below) {
    io::Canvas canvas(std::max(above.width, below.width), above.height + below.height, {255, 255, 255});
    canvas.draw(0, 0, above);
    canvas.draw(0, above.height, below);
    return canvas.image();
}

/// Trains or evaluates according to the flags. The last line printed is "test accuracy: 0.9912".
inline int train_and_report(const Flags& flags, nn::Layer& model, optim::Optimizer& optimizer, const Sets& sets,
                            train::FitOptions options, const std::string& title) {
    Shape input = *sets.train->fields()[0].shape;
    input.insert(0, 1);
    std::printf("%s\n%s", default_device().name().c_str(), model.summary(input).c_str());
    train::Trainer trainer(model, optimizer);
    if (!flags.load.empty()) trainer.load(flags.load);
    bool complete = true;
    if (!flags.evaluate) {
        options.epochs = flags.epochs;
        options.batch = flags.batch;
        options.seed = flags.seed;
        if (!flags.save.empty())
            options.callbacks.push_back(std::make_shared<train::Checkpoint>(
                train::CheckpointOptions{.last = flags.save, .every_steps = flags.save_every}));
        if (!flags.plot.empty())
            options.callbacks.push_back(std::make_shared<train::LearningCurvePicture>(flags.plot, title));
        complete = trainer.fit(*sets.train, *sets.test, options);
    }
    const train::Evaluation evaluation = trainer.evaluate(*sets.test, {.transform = options.test_transform});
    std::printf("peak memory: %.1f MB\n", static_cast<double>(default_device().memory().peak) / 1e6);
    std::printf("test accuracy: %.4f\n", evaluation["accuracy"]);
    return complete ? 0 : 130;  // exit code of a process ended by Ctrl-C
}

/// Runs a sample's main function; an exception becomes an error message and an exit code.
template <class Main>
int guarded(Main&& main) {
    try {
        return main();
    } catch (const CLI::Error&) {
        throw;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}

}  // namespace samples
