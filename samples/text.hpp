// Shared by the language model samples: a text data set, and training of a next-token model on windows of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common.hpp"

namespace samples {

/// Synthetic play from a small grammar, for a run without --text.
inline std::string synthetic_play(std::int64_t lines, std::uint64_t seed) {
    const std::vector<std::string> speakers{"FIRST GUARD", "SECOND GUARD", "QUEEN", "FOOL"},
        subjects{"the king", "my lord", "a crow", "this crown", "your horse"},
        verbs{"sleeps", "laughs", "waits", "is lost", "comes home"},
        places{"in the tower", "by the river", "before dawn", "under the hill"};
    data::Random random(seed, 0, 0, data::Purpose::user);
    const auto pick = [&](const std::vector<std::string>& choices) {
        return choices[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(choices.size())))];
    };
    std::string play;
    for (std::int64_t i = 0; i < lines; ++i) {
        play += pick(speakers) + ":\n";
        for (std::int64_t remaining = 1 + random.below(2); remaining > 0; --remaining)
            play += pick(subjects) + " " + pick(verbs) + (random.chance(0.5F) ? " " + pick(places) : "") + ".\n";
        play += "\n";
    }
    return play;
}

/// Reads a text file.
inline std::string text_of(const std::string& path) {
    const std::vector<std::byte> bytes = io::read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Tokens of a text: the first nine tenths for training, the rest for validation.
struct TextSets {
    text::Tokenizer tokenizer;
    std::vector<std::int64_t> train, test;
};

inline TextSets characters_of(const std::string& path) {
    std::string complete_text;
    if (path.empty()) {
        std::puts("no --text: using a synthetic play");
        complete_text = synthetic_play(2000, 1);
    } else {
        complete_text = text_of(path);
    }
    TextSets sets{text::train_character({complete_text}), {}, {}};
    std::vector<std::int64_t> ids = sets.tokenizer.ids(complete_text);
    const auto train_end = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 10 * 9);
    sets.train.assign(ids.begin(), train_end);
    sets.test.assign(train_end, ids.end());
    std::printf("%zu tokens, vocabulary of %lld\n", ids.size(), static_cast<long long>(sets.tokenizer.vocab_size()));
    return sets;
}

/// Cross entropy of scores (N, T, tokens) and targets (N, T), in nats per token.
inline Tensor token_loss(const Tensor& scores, const Tensor& target) {
    return cross_entropy(flatten(scores, 0, 1), flatten(target, 0, 1));
}

inline std::int64_t parameter_count(const std::vector<Tensor>& parameters) {
    std::int64_t total = 0;
    for (const Tensor& parameter : parameters) total += parameter.numel();
    return total;
}

struct LanguageFlags {
    std::string text = {}, device = {}, save = {}, load = {}, plot = {};
    std::int64_t length = 64, batch = 32, epochs = 5, steps = 100, generate = 500;
    double lr = 1e-3, temperature = 0.8;
    std::uint64_t seed = 1;

    void add_to(CLI::App& app) {
        app.add_option("--text", text, "training text file (default: a synthetic play)");
        app.add_option("--device", device,
                       "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
        app.add_option("--length", length, "context length in tokens")->capture_default_str();
        app.add_option("--batch", batch, "batch size in windows")->capture_default_str();
        app.add_option("--epochs", epochs, "total epochs, including those before --load")->capture_default_str();
        app.add_option("--steps-per-epoch", steps, "steps per epoch")->capture_default_str();
        app.add_option("--lr", lr, "peak learning rate")->capture_default_str();
        app.add_option("--seed", seed, "random seed")->capture_default_str();
        app.add_option("--generate", generate, "number of tokens to generate at the end")->capture_default_str();
        app.add_option("--temperature", temperature, "sampling temperature; 0 takes the most likely token")
            ->capture_default_str();
        app.add_option("--save", save, "checkpoint file to write");
        app.add_option("--load", load, "checkpoint file to resume from");
        app.add_option("--plot", plot, "PNG file for the learning curve");
    }

    void apply() const {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(seed);
    }
};

/// Trains a model from tokens (N, T) to scores (N, T, tokens) with AdamW; returns the validation loss in nats per
/// token.
inline double train_language_model(const train::Model& model, const TextSets& sets, const LanguageFlags& flags,
                                   const std::string& title) {
    const text::WindowDataset train(sets.train, {.length = flags.length, .stride = 1}),
        test(sets.test, {.length = flags.length});
    optim::AdamW optimizer(model.module().parameters(), {.lr = flags.lr, .weight_decay = 0.1});
    train::Trainer trainer(model, optimizer, train::Loss(token_loss));
    if (!flags.load.empty()) trainer.load(flags.load);
    const std::int64_t total = flags.epochs * flags.steps, warm_up = std::min<std::int64_t>(100, 1 + total / 10);
    train::FitOptions options{.epochs = flags.epochs,
                              .batch = flags.batch,
                              .seed = flags.seed,
                              .sampler = std::make_shared<data::RandomSampler>(
                                  data::RandomSamplerOptions{.replacement = true, .count = flags.steps * flags.batch}),
                              .clip_norm = 1,
                              .capture = true};
    options.callbacks.push_back(std::make_shared<train::LearningRate>(
        optim::linear_warm_up(warm_up, optim::cosine(total - warm_up, 0.1)), train::LearningRate::Unit::step));
    if (!flags.save.empty())
        options.callbacks.push_back(std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = flags.save}));
    if (!flags.plot.empty())
        options.callbacks.push_back(std::make_shared<train::LearningCurvePicture>(flags.plot, title));
    trainer.fit(train, test, options);
    return trainer.evaluate(test, {.batch = flags.batch})["loss"];
}

}  // namespace samples
