// Sequence-to-sequence transformer (A. Vaswani et al., Attention is all you need, 2017) that translates numbers from
// words to digits and back: "forty two thousand seven" and 42007.
//
//     ./translate --plot translate.png
#include <cmath>
#include <iostream>
#include <sstream>

#include "common.hpp"
#include "heatmap.hpp"

using namespace samples;

namespace {

constexpr std::int64_t kLength = 12, kMax = 1'000'000;

/// One vocabulary for both languages; the target text begins with a token for the direction.
const text::Vocabulary& vocabulary() {
    static const text::Vocabulary all(text::split_whitespace(
        "<pad> <digits> <words> <end> 0 1 2 3 4 5 6 7 8 9 zero one two three four five six seven eight nine ten eleven "
        "twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy "
        "eighty ninety hundred thousand"));
    return all;
}

std::vector<std::string> number_words(std::int64_t number) {
    static const std::vector<std::string>
        small = text::split_whitespace(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"),
        tens = text::split_whitespace("twenty thirty forty fifty sixty seventy eighty ninety");
    std::vector<std::string> words;
    const auto append = [&](std::int64_t part) {
        for (const std::string& word : number_words(part)) words.push_back(word);
    };
    if (number < 20) return {small[static_cast<std::size_t>(number)]};
    if (number < 100) {
        words = {tens[static_cast<std::size_t>(number / 10 - 2)]};
        if (number % 10 != 0) append(number % 10);
    } else {
        const std::int64_t unit = number < 1000 ? 100 : 1000;
        append(number / unit);
        words.emplace_back(unit == 100 ? "hundred" : "thousand");
        if (number % unit != 0) append(number % unit);
    }
    return words;
}

std::vector<std::string> number_digits(std::int64_t number) {
    std::vector<std::string> digits;
    for (const char digit : std::to_string(number)) digits.emplace_back(1, digit);
    return digits;
}

std::string join_tokens(const std::vector<std::string>& tokens, const char* between) {
    std::string all;
    for (const std::string& token : tokens) all += (all.empty() ? "" : between) + token;
    return all;
}

struct Pair {
    std::vector<std::string> source, target;
    std::string begin;
};
Pair pair_of(std::int64_t number, bool to_digits) {
    if (to_digits) return {number_words(number), number_digits(number), "<digits>"};
    return {number_digits(number), number_words(number), "<words>"};
}

/// Every tenth number of at least four digits is held out of training. Numbers of all lengths are equally frequent.
std::int64_t random_number(data::Random& random, bool held_out) {
    for (;;) {
        const double digits = 6.0 * random.uniform();
        const auto number =
            std::min<std::int64_t>(kMax - 1, static_cast<std::int64_t>(std::pow(10.0, digits)) - 1 + random.below(2));
        const bool is_held_out = number >= 1000 && number * 2654435761 % 4294967296 / 7 % 10 == 0;
        if (is_held_out == held_out) return number;
    }
}

data::FunctionDataset pairs(std::int64_t count, std::uint64_t seed, bool held_out) {
    const std::vector<data::Field> fields{{.name = "source", .dtype = DType::i64, .shape = Shape{kLength}},
                                          {.name = "target", .dtype = DType::i64, .shape = Shape{kLength}},
                                          {.name = "label", .dtype = DType::i64, .shape = Shape{kLength}}};
    return data::FunctionDataset(count, fields, [seed, held_out](std::int64_t index) {
        data::Random random(seed, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
        const Pair pair = pair_of(random_number(random, held_out), index % 2 == 0);
        const auto filled = [](std::vector<std::int64_t> ids) {
            ids.resize(kLength, 0);
            return io::HostArray::of({kLength}, ids);
        };
        const std::vector<std::int64_t> written = vocabulary().ids(pair.target);
        std::vector<std::int64_t> target{vocabulary().id(pair.begin)}, label = written;
        target.insert(target.end(), written.begin(), written.end());
        label.push_back(vocabulary().id("<end>"));
        return std::vector{filled(vocabulary().ids(pair.source)), filled(target), filled(label)};
    });
}

std::vector<std::string> translated(models::Translator& model, const Pair& pair, std::int64_t beams) {
    const auto best = model.translate(
        vocabulary().ids(pair.source), {vocabulary().id(pair.begin)},
        {.max_new_tokens = kLength - 1, .eos_token_id = {vocabulary().id("<end>")}, .num_beams = beams});
    std::vector<std::int64_t> ids = best[0].tokens;
    if (best[0].finished) ids.pop_back();
    return vocabulary().tokens(ids);
}

/// Mean attention weights of the heads of the last layer.
Heatmap attention_of(models::Translator& model, const Pair& pair) {
    const NoGrad no_grad;
    std::vector<std::string> target{pair.begin};
    target.insert(target.end(), pair.target.begin(), pair.target.end());
    const auto row = [](const std::vector<std::string>& tokens) {
        return Tensor::from(vocabulary().ids(tokens), {1, static_cast<std::int64_t>(tokens.size())});
    };
    const Tensor weights = mean(model.attention_to_source(row(pair.source), row(target)).back(), {1});
    // Row i has the attention weights that predict token i.
    std::vector<std::string> next = pair.target;
    next.emplace_back("<end>");
    return {join_tokens(pair.source, " ") + " -> " + join_tokens(pair.target, " "),
            "written",
            "read",
            next,
            pair.source,
            weights.to_vector<float>()};
}

}  // namespace

int main(int argc, char** argv) {
    std::string device, plot, save, load;
    std::int64_t epochs = 8, steps = 200, batch = 128, width = 64, layers = 2, beams = 1;
    double lr = 2e-3;
    std::uint64_t seed = 1;
    CLI::App app("Translates numbers from words to digits and back. Type numbers or words after --ask.");
    bool ask = false;
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--epochs", epochs, "epochs")->capture_default_str();
    app.add_option("--steps-per-epoch", steps, "steps per epoch")->capture_default_str();
    app.add_option("--batch", batch, "batch size")->capture_default_str();
    app.add_option("--width", width, "embedding size")->capture_default_str();
    app.add_option("--layers", layers, "number of layers of encoder and decoder each")->capture_default_str();
    app.add_option("--lr", lr, "peak learning rate")->capture_default_str();
    app.add_option("--beams", beams, "beam width; 1 takes the most likely token")->capture_default_str();
    app.add_option("--seed", seed, "random seed")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for the learning curve and the decoder's attention");
    app.add_option("--save", save, "checkpoint file to write");
    app.add_option("--load", load, "checkpoint file to resume from");
    app.add_flag("--ask", ask, "afterwards translate lines from standard input");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(seed);
        models::Translator model({.source_vocab_size = vocabulary().size(),
                                  .target_vocab_size = vocabulary().size(),
                                  .d_model = width,
                                  .nhead = 4,
                                  .num_encoder_layers = layers,
                                  .num_decoder_layers = layers,
                                  .dim_feedforward = 4 * width,
                                  .dropout = 0.1,
                                  .max_length = kLength});
        const auto loss = [](const Tensor& scores, const Tensor& label) {
            return cross_entropy(flatten(scores, 0, 1), flatten(label, 0, 1), {.ignore_index = 0});
        };
        optim::AdamW optimizer(model.parameters(), {.lr = lr, .weight_decay = 0.01});
        train::Trainer trainer(model, optimizer, train::Loss(loss),
                               {.inputs = {"source", "target"}, .target = "label"});
        if (!load.empty()) trainer.load(load);
        const std::int64_t total = epochs * steps, warm_up = std::min<std::int64_t>(200, 1 + total / 10);
        train::FitOptions options{.epochs = epochs, .batch = batch, .seed = seed, .clip_norm = 1};
        options.callbacks.push_back(std::make_shared<train::LearningRate>(
            optim::linear_warm_up(warm_up, optim::cosine(total - warm_up, 0.01)), train::LearningRate::Unit::step));
        if (!save.empty())
            options.callbacks.push_back(std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = save}));
        trainer.fit(pairs(steps * batch, seed, false), pairs(1000, seed + 1, true), options);

        // Exact matches on held-out numbers.
        data::Random random(seed + 2, 0, 0, data::Purpose::user);
        constexpr int kTests = 200;
        double right[2] = {};
        for (const bool to_digits : {true, false})
            for (int i = 0; i < kTests; ++i) {
                const Pair pair = pair_of(random_number(random, true), to_digits);
                const std::vector<std::string> got = translated(model, pair, beams);
                right[to_digits ? 0 : 1] += got == pair.target ? 1.0 / kTests : 0.0;
                if (i < 4)
                    std::printf("%s -> %s%s\n", join_tokens(pair.source, to_digits ? " " : "").c_str(),
                                join_tokens(got, to_digits ? "" : " ").c_str(), got == pair.target ? "" : "   (wrong)");
            }
        if (!plot.empty()) {
            io::write_png(plot, stacked(curve_of(trainer, "nats per token"),
                                        draw_heatmap(attention_of(model, pair_of(418'305, true)))));
            std::printf("wrote %s\n", plot.c_str());
        }
        std::printf("unseen numbers right: to digits %.3f, to words %.3f\n", right[0], right[1]);
        std::string line;
        while (ask && std::getline(std::cin, line)) {
            std::vector<std::string> source = text::split_whitespace(line);
            const bool to_digits = line.find_first_of("0123456789") == std::string::npos;
            if (!to_digits) source = text::characters(line);
            if (source.empty() || !std::ranges::all_of(source, [](auto& item) { return vocabulary().has(item); }))
                std::puts("expected digits, or words such as: forty two thousand seven");
            else
                std::puts(join_tokens(translated(model, {source, {}, to_digits ? "<digits>" : "<words>"}, beams),
                                      to_digits ? "" : " ")
                              .c_str());
        }
        return 0;
    });
}
