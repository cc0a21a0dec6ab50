// Checkpoints: one safetensors file with the tensors of model and optimizer, and the rest as JSON in its metadata.
#include <cmath>

#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/trainer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "trainer_state.hpp"

namespace declivity::train {
namespace {

using nlohmann::json;

constexpr const char* kKey = "declivity.checkpoint";
constexpr int kVersion = 2;

json to_json(const EpochFigures& figures) {
    return {figures.epoch,         figures.train_loss,    figures.train_accuracy, figures.test_loss,
            figures.test_accuracy, figures.learning_rate, figures.seconds};
}

double number_or_nan(const json& value) { return value.is_null() ? NAN : value.get<double>(); }  // JSON has no NaN

EpochFigures figures_from(const json& row) {
    return {.epoch = row.at(0),
            .train_loss = number_or_nan(row.at(1)),
            .train_accuracy = number_or_nan(row.at(2)),
            .test_loss = number_or_nan(row.at(3)),
            .test_accuracy = number_or_nan(row.at(4)),
            .learning_rate = number_or_nan(row.at(5)),
            .seconds = number_or_nan(row.at(6))};
}

/// The tensors of one part, without its prefix.
StateDict part(const io::Safetensors& content, const std::string& prefix, const Device& device) {
    StateDict out;
    for (const auto& [name, array] : content.arrays)
        if (name.starts_with(prefix)) out.push_back({name.substr(prefix.size()), io::to_device(array, device)});
    return out;
}

}  // namespace

void Trainer::save(const std::filesystem::path& path) const {
    const State& state = *state_;
    io::Safetensors content;
    for (const auto& [name, tensor] : state.model.state_dict())
        content.arrays.emplace("model." + name, io::to_host(tensor));
    for (const auto& [name, tensor] : state.optimizer.state_dict())
        content.arrays.emplace("optimizer." + name, io::to_host(tensor));
    content.arrays.emplace("trainer.totals", io::to_host(state.totals));
    const Progress& progress = state.progress;
    const RandomState random = random_state(state.device);
    json history = json::array();
    for (const EpochFigures& figures : progress.history) history.push_back(to_json(figures));
    const json record{{"version", kVersion},
                      {"epoch", progress.epoch},
                      {"batch", progress.batch},
                      {"step", progress.step},
                      {"best_accuracy", progress.best_accuracy},
                      {"history", history},
                      {"random", {random.seed, random.offset}},
                      {"run", {state.run.seed, state.run.batch, state.run.examples, state.run.shuffle}}};
    content.metadata[kKey] = record.dump();
    io::write_safetensors(path, content);
}

void Trainer::load(const std::filesystem::path& path) {
    State& state = *state_;
    const io::Safetensors content = io::read_safetensors(path);
    const auto text = content.metadata.find(kKey);
    if (text == content.metadata.end())
        throw FormatError(
            path.string(), 8,
            fmt::format("wants a checkpoint, whose metadata has '{}'; found a safetensors file without", kKey));
    Progress progress;
    RandomState random;
    State::Run run;
    try {
        const json record = json::parse(text->second);
        if (record.at("version") != kVersion)
            throw FormatError(path.string(), 8,
                              fmt::format("wants a checkpoint of version {}, found version {}", kVersion,
                                          record.at("version").dump()));
        progress.epoch = record.at("epoch");
        progress.batch = record.at("batch");
        progress.step = record.at("step");
        progress.best_accuracy = record.at("best_accuracy");
        for (const json& row : record.at("history")) progress.history.push_back(figures_from(row));
        random = {record.at("random").at(0), record.at("random").at(1)};
        run = {record.at("run").at(0), record.at("run").at(1), record.at("run").at(2), record.at("run").at(3)};
    } catch (const json::exception& error) {
        throw FormatError(path.string(), 8,
                          fmt::format("wants the record of a checkpoint, found something else ({})", error.what()));
    }
    if (progress.epoch < 0 || progress.batch < 0 || progress.step < 0)
        throw FormatError(path.string(), 8,
                          "wants counts of at least 0 in the record of a checkpoint, found negative ones");
    const auto totals = part(content, "trainer.", state.device);
    if (totals.size() != 1 || !(totals[0].tensor.shape() == Shape{2}) || totals[0].tensor.dtype() != DType::f32)
        throw FormatError(path.string(), 8, "wants the tensor trainer.totals, f32 [2], found none");
    state.model.load_state_dict(part(content, "model.", state.device));
    state.optimizer.load_state_dict(part(content, "optimizer.", state.device));
    state.totals.copy_(totals[0].tensor);
    set_random_state(state.device, random);
    state.progress = std::move(progress);
    state.run = run;
}

}  // namespace declivity::train
