// Damaged or malicious checkpoints: each is refused by an error that names the file, and nothing has changed.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/metrics.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <tests/support/values.hpp>
#include "io/checksum.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;
using nlohmann::json;

namespace {

constexpr const char* kRecord = "declivity.checkpoint";

struct CheckpointTraining {
    nn::Sequential model;
    optim::Adam optimizer;
    Generator generator{3};
    train::Trainer trainer;

    explicit CheckpointTraining(std::uint64_t seed, bool generators = true)
        : model((manual_seed(seed), nn::Linear(4, 3))),
          optimizer(model.parameters(), {.lr = 0.01}),
          trainer(model, optimizer, nn::CrossEntropyLoss(),
                  {.metrics = {{"accuracy", std::make_shared<train::Accuracy>()}},
                   .generators = generators ? std::vector<train::NamedGenerator>{{"own", generator}}
                                            : std::vector<train::NamedGenerator>()}) {}

    std::vector<double> state() const {
        std::vector<double> all;
        for (const auto& [name, tensor] : model.state_dict())
            for (const double value : test::values(tensor)) all.push_back(value);
        for (const auto& [name, tensor] : optimizer.state_dict())
            for (const double value : test::values(tensor)) all.push_back(value);
        const train::Progress& progress = trainer.progress();
        for (const std::int64_t count : {progress.epoch, progress.batch, progress.step})
            all.push_back(static_cast<double>(count));
        for (const auto& epoch : progress.history)
            for (const auto& [name, value] : epoch) all.push_back(value);
        all.push_back(static_cast<double>(random_state(default_device()).offset));
        all.push_back(static_cast<double>(generator.seed()));
        return all;
    }
};

data::TensorDataset points(std::int64_t count) {
    std::vector<float> x;
    std::vector<std::int64_t> label;
    for (std::int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < 4; ++k) x.push_back(static_cast<float>((i * 7 + k * 3) % 11) / 11);
        label.push_back(i % 3);
    }
    return data::TensorDataset({{"x", io::HostArray::of({count, 4}, x)}, {"label", io::HostArray::of({count}, label)}});
}

struct StopAt : train::Callback {
    std::int64_t step;
    explicit StopAt(std::int64_t at) : step(at) {}
    void after_step(train::Trainer& trainer) override {
        if (trainer.progress().step == step) trainer.stop();
    }
};

/// Stops in the middle of its second epoch.
void train_some(CheckpointTraining& training) {
    training.trainer.fit(points(20),
                         {.epochs = 2, .batch = 4, .callbacks = {std::make_shared<StopAt>(7)}, .quiet = true});
}

std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("checkpoint file: a flipped bit is refused, wherever it is, and nothing has changed") {
    const test::TempFolder folder;
    const auto good = folder.path() / "good.safetensors", bad = folder.path() / "bad.safetensors";
    CheckpointTraining training(1);
    train_some(training);
    training.trainer.save(good);
    const std::string bytes = bytes_of(good);
    CheckpointTraining other(2);
    const auto before = other.state();
    std::size_t loaded = 0;
    for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 13) {
        std::string flipped = bytes;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
        write(bad, flipped);
        try {
            other.trainer.load(bad);
            ++loaded;
        } catch (const FormatError& error) {
            if (error.file() != bad.string()) ++loaded;
        }
    }
    CHECK(loaded == 0);
    CHECK(other.state() == before);
    // In the elements only: io::load, which reads the weights of a checkpoint, detects it as well.
    std::string flipped = bytes;
    flipped[bytes.size() - 5] ^= 1;
    write(bad, flipped);
    CHECK_THROWS_WITH_AS((void)io::load(bad), doctest::Contains("the file is damaged: expected content with checksum"),
                         FormatError);
    other.trainer.load(good);
    CHECK(other.state() == training.state());
}

TEST_CASE("checkpoint file: each number and string is checked, and the error names the file") {
    const test::TempFolder folder;
    const auto good = folder.path() / "good.safetensors", bad = folder.path() / "bad.safetensors";
    CheckpointTraining training(1);
    train_some(training);
    training.trainer.save(good);
    const io::Safetensors content = io::read_safetensors(good);
    CheckpointTraining other(2);
    const auto before = other.state();
    const auto refused_text = [&](const std::string& text) {
        io::Safetensors changed = content;
        changed.metadata[kRecord] = text;
        changed.metadata[io::kChecksumKey] = io::checksum_of(changed);
        io::write_safetensors(bad, changed);
        std::string message;
        try {
            other.trainer.load(bad);
        } catch (const FormatError& error) {
            message = error.what();
        } catch (const ValueError& error) {
            message = error.what();
        }
        CAPTURE(text.substr(0, 200));
        CHECK(message.find(bad.string()) != std::string::npos);
        CHECK(other.state() == before);
        return message;
    };
    const json record = json::parse(content.metadata.at(kRecord));
    const auto error_after = [&](const std::function<void(json&)>& change) {
        json changed = record;
        change(changed);
        return refused_text(changed.dump());
    };
    const std::vector<json> no_counts{1e300, 1.5,     -1,   9223372036854775807LL, 18446744073709551615ULL,
                                      "5",   nullptr, true, json::array(),         json::object()};
    for (const char* name : {"epoch", "batch", "step", "version"})
        for (const json& value : no_counts) error_after([&](json& changed) { changed[name] = value; });
    for (int i = 0; i < 4; ++i)
        for (const json& value : no_counts)
            if (i > 0 || value != json(9223372036854775807LL))
                if (i > 0 || value != json(18446744073709551615ULL))
                    error_after([&](json& changed) { changed["run"][static_cast<std::size_t>(i)] = value; });
    for (const json& value : {json("foo"), json(true), json::array(), json("nan")}) {
        const std::string message = error_after([&](json& changed) { changed["history"][0][1][1] = value; });
        CHECK(message.find("expected a number, null") != std::string::npos);
    }
    for (const json& value : no_counts) {
        if (value.is_number_unsigned() || value == json(9223372036854775807LL)) continue;  // seeds and positions
        error_after([&](json& changed) { changed["random"][1] = value; });
        error_after([&](json& changed) { changed["generators"]["own"][0] = value; });
    }
    error_after([](json& changed) { changed["history"][0][0] = 0; });
    error_after([](json& changed) { changed["history"][0][0] = 2; });  // one epoch is complete
    error_after([](json& changed) { changed["history"].push_back(changed["history"][0]); });
    error_after([](json& changed) { changed["history"][0].push_back(changed["history"][0][1]); });
    error_after([](json& changed) { changed["history"][0][1][0] = 5; });
    error_after([](json& changed) { changed["history"] = "none"; });
    error_after([](json& changed) { changed["classification"] = 1; });
    error_after([](json& changed) { changed["run"].push_back(1); });
    error_after([](json& changed) { changed["random"] = {1}; });
    error_after([](json& changed) { changed["sums"] = {"a,b"}; });
    error_after([](json& changed) { changed["sums"] = {"a", "a"}; });
    error_after([](json& changed) { changed["sums"] = {1}; });
    error_after([](json& changed) { changed["modules"] = {"other"}; });
    error_after([](json& changed) { changed["generators"] = {{"other", {1, 2}}}; });
    for (const auto& [name, value] : record.items()) error_after([&](json& changed) { changed.erase(name); });
    const std::string too_many = error_after([](json& changed) {
        changed["sums"] = json::array();
        for (int i = 0; i < 65; ++i) changed["sums"].push_back("metric" + std::to_string(i));
    });
    CHECK(too_many.find("expected at most 64 names as 'sums', got 65") != std::string::npos);
    const std::string deep(80'000, '[');
    CHECK(refused_text(deep + std::string(80'000, ']')).find("nested deeper than") != std::string::npos);
    std::string inner = content.metadata.at(kRecord);
    inner.replace(inner.find("\"epoch\":") + 8, 1, deep + std::string(80'000, ']'));
    refused_text(inner);
    for (const char* text : {"", "5", "[]", "null", "{", "\"text\""}) refused_text(text);
    // Without its checksum it is not a checkpoint of this version.
    io::Safetensors changed = content;
    changed.metadata.erase(io::kChecksumKey);
    io::write_safetensors(bad, changed);
    CHECK_THROWS_WITH_AS(other.trainer.load(bad), doctest::Contains("a checkpoint has a checksum"), FormatError);
}

TEST_CASE("checkpoint file: the previous version, without a checksum, loads and training continues") {
    const test::TempFolder folder;
    const auto file = folder.path() / "old.safetensors";
    CheckpointTraining unbroken(1);
    unbroken.trainer.fit(points(20), {.epochs = 2, .batch = 4, .quiet = true});
    CheckpointTraining interrupted(1);
    train_some(interrupted);
    interrupted.trainer.save(file);
    io::Safetensors content = io::read_safetensors(file);
    json record = json::parse(content.metadata.at(kRecord));
    record["version"] = 2;
    content.metadata = {{kRecord, record.dump()}};
    io::HostArray& totals = content.arrays.at("trainer.totals");
    const auto values = totals.as<float>();
    totals = io::HostArray::of({2}, std::vector<float>{values[0], values[1]});
    io::write_safetensors(file, content);
    CheckpointTraining resumed(2);
    resumed.trainer.load(file);
    resumed.trainer.fit(points(20), {.epochs = 2, .batch = 4, .quiet = true});
    const auto &got = resumed.trainer.progress().history[1], &expected = unbroken.trainer.progress().history[1];
    for (const char* name : {"train_loss", "train_accuracy"}) CHECK(got[name] == expected[name]);
    CHECK(test::values(resumed.model.parameters()[0]) == test::values(unbroken.model.parameters()[0]));
}

TEST_CASE("checkpoint file: a name in invalid UTF-8 is refused") {
    const test::TempFolder folder;
    nn::Linear model(4, 3);
    optim::Adam optimizer(model.parameters());
    train::Trainer trainer({.modules = {{"caf\xe9", model}}, .optimizers = {{"adam", optimizer}}},
                           [](train::Step&, const data::Batch&) {});
    CHECK_THROWS_AS(trainer.save(folder.path() / "a.safetensors"), ValueError);
    CHECK(std::filesystem::is_empty(folder.path()));
}
