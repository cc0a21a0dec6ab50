// Text classification: predicts the speaker of each line of a play with naive Bayes over word counts, a convolutional
// network (Y. Kim, 2014) and a transformer.
//
//     ./classify_text --text tinyshakespeare.txt --speakers 8 --plot confusion.png
#include <cmath>
#include <map>
#include <numeric>

#include "heatmap.hpp"
#include "text.hpp"

using namespace samples;

namespace {

constexpr std::int64_t kPadding = 0;

struct Line {
    std::string text;
    std::int64_t speaker;
    bool is_test;
};

struct Play {
    std::vector<std::string> speakers;
    std::vector<Line> lines;
};

/// Synthetic dialogue: each speaker has words of their own and words shared by all.
std::string synthetic_dialogue(std::int64_t speeches, std::uint64_t seed) {
    const std::vector<std::string> speakers{"KING", "FOOL", "GUARD", "NURSE"},
        own_words{"crown realm throne sword", "bell jest riddle cap", "wall gate torch watch",
                  "child milk cradle song"};
    const std::vector<std::string> common = text::split_whitespace("the a my your is was where never good old and not");
    data::Random random(seed, 0, 0, data::Purpose::user);
    const auto pick = [&](const std::vector<std::string>& choices) {
        return choices[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(choices.size())))];
    };
    std::string play;
    for (std::int64_t i = 0; i < speeches; ++i) {
        const auto speaker_index = static_cast<std::size_t>(random.below(4));
        play += speakers[speaker_index] + ":\n";
        for (std::int64_t line = 0; line < 2; ++line) {
            for (int word = 0; word < 7; ++word) {
                const std::size_t word_owner =
                    random.chance(0.7F) ? speaker_index : static_cast<std::size_t>(random.below(4));
                play +=
                    (random.chance(0.25F) ? pick(text::split_whitespace(own_words[word_owner])) : pick(common)) + " ";
            }
            play += "\n";
        }
        play += "\n";
    }
    return play;
}

/// The lines of the most frequent speakers. Every sixth speech of each is in the test set, so that no speech is in both
/// sets.
Play parse_play(const std::string& complete_text, std::int64_t count) {
    std::map<std::string, std::vector<std::vector<std::string>>> speeches;
    std::istringstream in(complete_text);
    std::string line, speaker;
    while (std::getline(in, line)) {
        if (line.empty()) speaker.clear();
        else if (speaker.empty() && line.back() == ':') {
            speaker = line.substr(0, line.size() - 1);
            speeches[speaker].emplace_back();
        } else if (!speaker.empty()) speeches[speaker].back().push_back(line);
    }
    std::vector<std::pair<std::size_t, std::string>> order;
    for (const auto& [name, all] : speeches) {
        std::size_t lines = 0;
        for (const auto& item : all) lines += item.size();
        order.emplace_back(lines, name);
    }
    std::ranges::sort(order, std::greater());
    if (static_cast<std::int64_t>(order.size()) < count || count < 2)
        throw ValueError("classify_text: expected at least 2 speakers, and a text with as many");
    Play play;
    for (std::int64_t i = 0; i < count; ++i) {
        play.speakers.push_back(order[static_cast<std::size_t>(i)].second);
        std::int64_t speech = 0;
        for (const auto& item : speeches[play.speakers.back()]) {
            const bool is_test = ++speech % 6 == 0;
            for (const std::string& predictions : item) play.lines.push_back({predictions, i, is_test});
        }
    }
    return play;
}

std::vector<std::string> words_of(const std::string& line) {
    std::string lower = line;
    for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return text::words(lower);
}

/// Multinomial naive Bayes with Laplace smoothing.
struct NaiveBayes {
    std::vector<std::map<std::int64_t, double>> counts;
    std::vector<double> totals, priors;
    std::int64_t words;

    NaiveBayes(const std::vector<std::vector<std::int64_t>>& lines, const std::vector<std::int64_t>& labels,
               std::int64_t classes, std::int64_t vocabulary)
        : counts(static_cast<std::size_t>(classes)), totals(counts.size()), priors(counts.size()), words(vocabulary) {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const auto label = static_cast<std::size_t>(labels[i]);
            priors[label] += 1;
            for (const std::int64_t word : lines[i]) counts[label][word] += 1, totals[label] += 1;
        }
    }
    [[nodiscard]] std::int64_t operator()(const std::vector<std::int64_t>& line) const {
        std::size_t best = 0;
        double best_score = -1e300;
        for (std::size_t label = 0; label < counts.size(); ++label) {
            double score = std::log(priors[label]);
            for (const std::int64_t word : line) {
                const auto found = counts[label].find(word);
                score += std::log(((found == counts[label].end() ? 0 : found->second) + 1) /
                                  (totals[label] + static_cast<double>(words)));
            }
            if (score > best_score) best_score = score, best = label;
        }
        return static_cast<std::int64_t>(best);
    }
};

struct LineSets {
    std::vector<std::vector<std::int64_t>> train, test;
    std::vector<std::int64_t> train_labels, test_labels;
};

double accuracy_of(const std::vector<std::int64_t>& predictions, const std::vector<std::int64_t>& labels) {
    double right = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) right += predictions[i] == labels[i] ? 1 : 0;
    return right / static_cast<double>(predictions.size());
}

struct Training {
    std::int64_t epochs, batch;
    double lr;
    std::uint64_t seed;
};

/// Trains the model and returns its predictions for the test lines.
std::vector<std::int64_t> predictions_of(nn::Layer& model, const LineSets& sets, const Training& options) {
    const text::SequenceDataset train(sets.train, sets.train_labels), test(sets.test, sets.test_labels);
    const data::Collate collate = data::pad({.values = {{"tokens", kPadding}}, .multiple = 8});
    optim::AdamW optimizer(model.parameters(), {.lr = options.lr, .weight_decay = 1});
    train::Trainer trainer(model, optimizer, nn::CrossEntropyLoss({.label_smoothing = 0.1}),
                           {.inputs = {"tokens"}, .target = "label"});
    trainer.fit(train, test,
                {.epochs = options.epochs,
                 .batch = options.batch,
                 .seed = options.seed,
                 .collate = collate,
                 .sampler = std::make_shared<data::BucketSampler>(train.lengths()),
                 .clip_norm = 1});
    const NoGrad no_grad;
    model.eval();
    std::vector<std::int64_t> predictions;
    for (const data::Batch& batch : data::Loader(test, {.batch = options.batch, .collate = collate}))
        for (const std::int64_t label : argmax(model(batch["tokens"]), 1).to_vector<std::int64_t>())
            predictions.push_back(label);
    return predictions;
}

}  // namespace

int main(int argc, char** argv) {
    std::string file, device, plot;
    std::int64_t speakers = 8;
    Training options{.epochs = 16, .batch = 64, .lr = 1e-3, .seed = 1};
    CLI::App app("Predicts the speaker of each line of a play.");
    app.add_option("--text", file, "play with a line 'NAME:' before each speech (default: a synthetic dialogue)");
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--speakers", speakers, "number of speakers: those with the most lines")->capture_default_str();
    app.add_option("--epochs", options.epochs, "epochs")->capture_default_str();
    app.add_option("--batch", options.batch, "batch size in lines")->capture_default_str();
    app.add_option("--lr", options.lr, "learning rate")->capture_default_str();
    app.add_option("--seed", options.seed, "random seed")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for the confusion matrix");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(options.seed);
        std::string complete_text;
        if (file.empty()) {
            std::puts("no --text: using a synthetic dialogue");
            complete_text = synthetic_dialogue(1500, 1);
            speakers = std::min<std::int64_t>(speakers, 4);
        } else {
            complete_text = text_of(file);
        }
        const Play play = parse_play(complete_text, speakers);
        std::vector<std::string> corpus;
        for (const Line& line : play.lines)
            if (!line.is_test) corpus.push_back(line.text);
        const auto vocabulary =
            text::Vocabulary::of(corpus, [](std::string_view line) { return words_of(std::string(line)); },
                                 {.specials = {"<pad>", "<unk>"}, .unk_token = "<unk>", .min_frequency = 2});
        LineSets sets;
        std::vector<std::string> test_lines;
        std::vector<double> count(play.speakers.size());
        for (const Line& line : play.lines) {
            std::vector<std::int64_t> ids = vocabulary.ids(words_of(line.text));
            if (ids.empty()) continue;
            if (line.is_test) test_lines.push_back(line.text), count[static_cast<std::size_t>(line.speaker)] += 1;
            (line.is_test ? sets.test : sets.train).push_back(std::move(ids));
            (line.is_test ? sets.test_labels : sets.train_labels).push_back(line.speaker);
        }
        std::printf("%zu training lines, %zu test lines; %lld words; %zu speakers\n", sets.train.size(),
                    sets.test.size(), static_cast<long long>(vocabulary.size()), play.speakers.size());
        std::size_t longest = 1;
        for (const auto* lines : {&sets.train, &sets.test})
            for (const auto& line : *lines) longest = std::max(longest, line.size());

        const double largest_class = *std::ranges::max_element(count) / static_cast<double>(sets.test.size());
        const NaiveBayes bayes(sets.train, sets.train_labels, speakers, vocabulary.size());
        std::vector<std::int64_t> bayes_predictions;
        for (const auto& line : sets.test) bayes_predictions.push_back(bayes(line));
        models::TextCNN cnn({.vocab_size = vocabulary.size(), .num_classes = speakers, .filter_sizes = {1, 2, 3}});
        const std::vector<std::int64_t> cnn_predictions = predictions_of(cnn, sets, options);
        models::TransformerClassifier transformer({.vocab_size = vocabulary.size(),
                                                   .num_classes = speakers,
                                                   .d_model = 64,
                                                   .num_layers = 2,
                                                   .dim_feedforward = 256,
                                                   .dropout = 0.3,
                                                   .max_length = static_cast<std::int64_t>(longest + 8)});
        const std::vector<std::int64_t> transformer_predictions = predictions_of(transformer, sets, options);

        std::puts("");
        for (std::size_t i = 0; i < test_lines.size(); i += test_lines.size() / 12 + 1)
            std::printf("%-60s predicted %s%s\n", test_lines[i].c_str(),
                        play.speakers[static_cast<std::size_t>(cnn_predictions[i])].c_str(),
                        cnn_predictions[i] == sets.test_labels[i]
                            ? ""
                            : (", actual " + play.speakers[static_cast<std::size_t>(sets.test_labels[i])]).c_str());
        if (!plot.empty()) {
            std::vector<float> table(play.speakers.size() * play.speakers.size());
            for (std::size_t i = 0; i < cnn_predictions.size(); ++i)
                table[static_cast<std::size_t>(sets.test_labels[i] * speakers + cnn_predictions[i])] +=
                    static_cast<float>(1 / count[static_cast<std::size_t>(sets.test_labels[i])]);
            io::write_png(plot, draw_heatmap({"Convolutions: confusion matrix, rows normalised", "speaker", "predicted",
                                              play.speakers, play.speakers, table}));
            std::printf("wrote %s\n", plot.c_str());
        }
        std::printf("\ntest accuracy: always the same %.4f, naive Bayes %.4f, convolutions %.4f, transformer %.4f\n",
                    largest_class, accuracy_of(bayes_predictions, sets.test_labels),
                    accuracy_of(cnn_predictions, sets.test_labels),
                    accuracy_of(transformer_predictions, sets.test_labels));
        return 0;
    });
}
