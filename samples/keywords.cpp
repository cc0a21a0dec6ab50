// Keyword spotting from spectrograms: a small convolutional network over log-mel spectrograms (Y. Zhang et al., Hello
// edge: keyword spotting on microcontrollers, 2017) classifies eight kinds of synthetic sounds of random pitch, length,
// position, loudness and noise.
//
//     ./keywords --plot keywords.png
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "common.hpp"

using namespace samples;

namespace {

constexpr std::int64_t kRate = 8000, kSamples = 8000;
const std::vector<std::string> kNames{"rising chirp", "falling chirp", "steady tone", "two tones",
                                      "warble",       "beats",         "clicks",      "ding dong"};

/// Adds a sound of one class to one second of noise.
void draw(std::int64_t kind, data::Random& random, std::span<float> samples) {
    const auto phase_of = [](double& phase, double frequency) {
        phase += 2 * std::numbers::pi * frequency / static_cast<double>(kRate);
        return std::sin(phase);
    };
    const double length = random.uniform(0.35F, 0.8F), start = random.uniform(0, static_cast<float>(1 - length));
    const double pitch = 300 * std::pow(2.0, random.uniform(0, 2.2F));  // 300 to 1380 Hz
    const double span = random.uniform(1.4F, 2.5F);                     // pitch ratio of a chirp, and between two tones
    const double speed = random.uniform(5, 9), rate = random.uniform(8, 16);
    const double loudness = std::pow(10.0, random.uniform(-1.5F, 0));
    const double noise =
        loudness * std::pow(10.0, random.uniform(-1.0F, 0.3F));  // noise from 20 dB below the sound to 6 dB above
    double phase = random.uniform(0, 6), other = random.uniform(0, 6);
    for (std::int64_t i = 0; i < kSamples; ++i) {
        float& sample = samples[static_cast<std::size_t>(i)];
        sample = static_cast<float>(noise * static_cast<double>(random.normal()));
        const double t = static_cast<double>(i) / static_cast<double>(kRate) - start, share = t / length;
        if (t < 0 || share > 1) continue;
        double y = 0;
        switch (kind) {
            case 0:
                y = phase_of(phase, pitch * std::pow(span, share));
                break;
            case 1:
                y = phase_of(phase, pitch * std::pow(span, 1 - share));
                break;
            case 2:
                y = phase_of(phase, pitch);
                break;
            case 3:
                y = 0.6 * (phase_of(phase, pitch) + phase_of(other, pitch * span));
                break;
            case 4:
                y = phase_of(phase, pitch * (1 + 0.15 * std::sin(2 * std::numbers::pi * speed * t)));
                break;
            case 5:
                y = phase_of(phase, pitch) * (0.5 + 0.5 * std::sin(2 * std::numbers::pi * rate * t));
                break;
            case 6:
                y = 2 * std::exp(-250 * std::fmod(t, 1 / rate)) * phase_of(phase, 2 * pitch);
                break;
            default:
                y = phase_of(phase, share < 0.5 ? pitch * span : pitch) * std::exp(-3 * std::fmod(share, 0.5));
                break;
        }
        const double edge = std::min({1.0, t / 0.02, (length - t) / 0.02});  // fade at both ends to avoid clicks
        sample += static_cast<float>(loudness * edge * 1.4 * y);
    }
}

data::InMemoryDataset sounds(std::int64_t count, std::uint64_t seed, std::uint64_t part) {
    std::vector<float> all(static_cast<std::size_t>(count * kSamples));
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) {
        labels.push_back(i % static_cast<std::int64_t>(kNames.size()));
        data::Random random(seed, part, static_cast<std::uint64_t>(i), data::Purpose::user);
        draw(labels.back(), random, std::span(all).subspan(static_cast<std::size_t>(i * kSamples), kSamples));
    }
    return data::InMemoryDataset({kSamples}, std::move(all), std::move(labels),
                                 static_cast<std::int64_t>(kNames.size()), kNames);
}

/// Colour map from black over red and yellow to white.
io::Color heat(double x) {
    const auto part = [x](double from) {
        return static_cast<std::uint8_t>(255 * std::clamp((x - from) * 3, 0.0, 1.0));
    };
    return {part(0), part(1.0 / 3), part(2.0 / 3)};
}

/// Spectrograms of the first sounds with their predictions, and the confusion matrix.
io::Image8 picture(const std::vector<float>& mels, const Shape& shape, const std::vector<std::int64_t>& predictions,
                   const data::InMemoryDataset& test, const std::vector<std::int64_t>& counts) {
    constexpr int kSounds = 16, kScale = 2, kMargin = 16, kCell = 46;
    const int bands = static_cast<int>(shape[1]), frames = static_cast<int>(shape[2]);
    const int column_width = frames * kScale + kMargin, row_height = bands * kScale + 34;
    const auto classes = static_cast<int>(kNames.size());
    const int matrix = kMargin + 4 * column_width, label_width = 110;
    io::Canvas canvas(matrix + label_width + classes * kCell + kMargin,
                      kMargin + 30 + std::max(4 * row_height, classes * kCell + 140), {255, 255, 255});
    canvas.text(kMargin, kMargin, "Test sounds and their predictions", {40, 40, 40});
    for (int i = 0; i < kSounds; ++i) {
        const int left = kMargin + i % 4 * column_width, top = kMargin + 24 + i / 4 * row_height;
        const auto first = mels.begin() + static_cast<std::ptrdiff_t>(i) * bands * frames;
        const auto [low, high] = std::minmax_element(first, first + bands * frames);
        for (int band = 0; band < bands; ++band)
            for (int frame = 0; frame < frames; ++frame) {
                const float value = first[band * frames + frame];
                canvas.fill_rect(left + frame * kScale, top + (bands - 1 - band) * kScale, kScale, kScale,
                                 heat(std::clamp((value - *low) / (*high - *low) * 1.4 - 0.4, 0.0, 1.0)));
            }
        const std::int64_t label_index = test.label(i), predicted = predictions[static_cast<std::size_t>(i)];
        std::string label = kNames[static_cast<std::size_t>(predicted)];
        if (predicted != label_index) label += " (" + kNames[static_cast<std::size_t>(label_index)] + ")";
        canvas.text(left, top + bands * kScale + 6, label,
                    predicted == label_index ? io::Color{20, 130, 60} : io::Color{200, 30, 30});
    }
    canvas.text(matrix, kMargin, "Predicted (columns) against actual sound (rows)", {40, 40, 40});
    for (int row = 0; row < classes; ++row) {
        const int top = kMargin + 24 + row * kCell;
        canvas.text(matrix, top + kCell / 2 - 4, kNames[static_cast<std::size_t>(row)], {40, 40, 40});
        canvas.text_upwards(
            matrix + label_width + row * kCell + kCell / 2 - 4,
            kMargin + 32 + classes * kCell + io::Canvas::text_width(kNames[static_cast<std::size_t>(row)]),
            kNames[static_cast<std::size_t>(row)], {40, 40, 40});
        std::int64_t total = 0;
        for (int column = 0; column < classes; ++column)
            total += counts[static_cast<std::size_t>(row * classes + column)];
        for (int column = 0; column < classes; ++column) {
            const std::int64_t count = counts[static_cast<std::size_t>(row * classes + column)];
            const double share = static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, total));
            const auto light = static_cast<std::uint8_t>(255 - 215 * std::sqrt(share));
            canvas.fill_rect(matrix + label_width + column * kCell, top, kCell - 1, kCell - 1, {light, light, 255});
            if (count > 0)
                canvas.text(matrix + label_width + column * kCell + 12, top + kCell / 2 - 4, std::to_string(count),
                            share > 0.4 ? io::Color{255, 255, 255} : io::Color{40, 40, 40});
        }
    }
    return canvas.image();
}

}  // namespace

int main(int argc, char** argv) {
    std::string device, plot;
    std::int64_t epochs = 10, batch = 64, examples = 4000, test_count = 1600;
    double lr = 4e-3;
    std::uint64_t seed = 1;
    CLI::App app("Keyword spotting: classifies synthetic sounds by their spectrograms.");
    app.add_option("--examples", examples, "number of training sounds")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--tested", test_count, "number of test sounds")
        ->check(CLI::Range(16, 100000))
        ->capture_default_str();
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--epochs", epochs, "epochs")->capture_default_str();
    app.add_option("--batch", batch, "batch size")->capture_default_str();
    app.add_option("--lr", lr, "learning rate")->capture_default_str();
    app.add_option("--seed", seed, "random seed")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for spectrograms and the confusion matrix");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(seed);
        const data::InMemoryDataset train = sounds(examples, seed, 0), test = sounds(test_count, seed, 1);
        const auto classes = static_cast<std::int64_t>(kNames.size());
        models::KeywordCNN model(
            {.classes = classes, .sample_rate = kRate, .n_fft = 256, .hop_length = 80, .channels = 32, .blocks = 3});
        std::printf("%s\n%s", default_device().name().c_str(), model.summary({1, kSamples}).c_str());
        optim::AdamW optimizer(model.parameters(), {.lr = lr, .weight_decay = 0.01});
        const auto matrix = std::make_shared<train::ConfusionMatrix>(classes);
        train::Trainer trainer(model, optimizer, nn::CrossEntropyLoss(), {.metrics = {{"accuracy", matrix}}});
        trainer.fit(train, test,
                    {.epochs = epochs,
                     .batch = batch,
                     .seed = seed,
                     .callbacks = {std::make_shared<train::LearningRate>(optim::cosine(epochs, 0.02),
                                                                         train::LearningRate::Unit::epoch)}});
        const double accuracy = trainer.evaluate(test)["accuracy"];
        const std::vector<std::int64_t> counts = matrix->counts();
        for (std::int64_t kind = 0; kind < classes; ++kind) {
            std::int64_t total = 0;
            for (std::int64_t predicted = 0; predicted < classes; ++predicted)
                total += counts[static_cast<std::size_t>(kind * classes + predicted)];
            std::printf("  %-14s %.3f of %lld\n", kNames[static_cast<std::size_t>(kind)].c_str(),
                        static_cast<double>(counts[static_cast<std::size_t>(kind * classes + kind)]) /
                            static_cast<double>(total),
                        static_cast<long long>(total));
        }
        if (!plot.empty()) {
            const NoGrad no_grad;
            std::vector<float> samples(16 * kSamples);
            for (std::int64_t i = 0; i < 16; ++i)
                test.read(i, std::span(samples).subspan(static_cast<std::size_t>(i * kSamples), kSamples));
            model.eval();
            const Tensor x = Tensor::from(samples, {16, kSamples}), mels = model.features(x);
            io::write_png(plot, picture(mels.to_vector<float>(), mels.shape(),
                                        argmax(model(x), 1).to_vector<std::int64_t>(), test, counts));
        }
        std::printf("test accuracy: %.4f\n", accuracy);
        return 0;
    });
}
