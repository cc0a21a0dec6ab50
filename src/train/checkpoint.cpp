// Checkpoints: one safetensors file with the tensors of model and optimizer, and the rest as JSON in its metadata.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/trainer.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/json.hpp"
#include "trainer_state.hpp"

namespace declivity::train {
namespace {

using nlohmann::json;

constexpr const char* kKey = "declivity.checkpoint";
constexpr int kVersion = 2;

/// JSON has no numbers that are not finite.
json number(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? json() : json(value > 0 ? "inf" : "-inf");
}

double number_from(const json& value) {
    if (value.is_null()) return NAN;
    if (value.is_string()) return value == "inf" ? INFINITY : -INFINITY;
    return value.get<double>();
}

json to_json(const EpochFigures& figures) {
    json row = json::array({figures.epoch});
    for (const auto& [name, value] : figures) row.push_back({name, number(value)});
    return row;
}

EpochFigures figures_from(const json& row) {
    EpochFigures figures;
    figures.epoch = row.at(0);
    for (std::size_t i = 1; i < row.size(); ++i) figures.add(row[i].at(0), number_from(row[i].at(1)));
    return figures;
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
    std::vector<std::string> names;
    for (const Named& one : all) names.push_back(one.name);
    return names;
}

/// Where the tensors of a module or optimizer stand: "model.", or "modules.generator." of several.
std::string prefix_of(const Trainer::State& state, const char* kind, const std::string& name) {
    return state.of_model() ? name + "." : fmt::format("{}.{}.", kind, name);
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
    const FunctionScope function("Trainer::save");
    const State& state = *state_;
    io::Safetensors content;
    for (const auto& [name, module] : state.modules)
        for (const auto& [tensor_name, tensor] : module.state_dict())
            content.arrays.emplace(prefix_of(state, "modules", name) + tensor_name, io::to_host(tensor));
    for (const auto& [name, optimizer] : state.optimizers)
        for (const auto& [tensor_name, tensor] : optimizer.state_dict())
            content.arrays.emplace(prefix_of(state, "optimizers", name) + tensor_name, io::to_host(tensor));
    for (const NamedMetric& one : state.metrics)
        for (const auto& [tensor_name, tensor] : one.metric->state())
            content.arrays.emplace(fmt::format("metrics.{}.{}", one.name, tensor_name), io::to_host(tensor));
    content.arrays.emplace("trainer.totals", io::to_host(state.totals));
    content.arrays.emplace("trainer.sums", io::to_host(state.sums.values()));
    const Progress& progress = state.progress;
    const RandomState random = random_state(state.device);
    json history = json::array();
    for (const EpochFigures& figures : progress.history) history.push_back(to_json(figures));
    json generators = json::object();
    for (const auto& [name, generator] : state.generators) generators[name] = {generator.seed(), generator.position()};
    const State::Run& run = state.run;
    const json record{{"version", kVersion},
                      {"modules", names_of(state.modules)},
                      {"optimizers", names_of(state.optimizers)},
                      {"metrics", names_of(state.metrics)},
                      {"sums", state.sums.names()},
                      {"classification", state.classification ? json(*state.classification) : json()},
                      {"epoch", progress.epoch},
                      {"batch", progress.batch},
                      {"step", progress.step},
                      {"history", history},
                      {"random", {random.seed, random.offset}},
                      {"generators", generators},
                      {"run", {run.seed, run.batch, run.examples, run.accumulate, run.shuffle}}};
    content.metadata[kKey] = record.dump();
    io::write_safetensors(path, content);
}

namespace {

/// What a record says beside tensors.
struct Record {
    Progress progress;
    RandomState random;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> generators;  // seeds and positions, in the trainer's order
    Trainer::State::Run run;
    std::vector<std::string> sums;
    std::optional<bool> classification;
};

Record record_from(const json& record, const std::string& path, const Trainer::State& state) {
    if (record.at("version") != kVersion)
        throw FormatError(
            path, 8,
            fmt::format("wants a checkpoint of version {}, found one of version {}, which another version "
                        "of the library has written; its weights are read by io::load",
                        kVersion, record.at("version").dump()));
    const auto same_names = [&](const char* kind, const json& wanted) {
        if (record.at(kind) != wanted)
            throw ValueError(fmt::format("Trainer::load: wants a checkpoint with the {} {}, got {}", kind,
                                         wanted.dump(), record.at(kind).dump()));
    };
    same_names("modules", names_of(state.modules));
    same_names("optimizers", names_of(state.optimizers));
    same_names("metrics", names_of(state.metrics));
    const json& generators = record.at("generators");
    std::vector<std::string> saved;
    for (const auto& [name, place] : generators.items()) saved.push_back(name);
    std::vector<std::string> wanted = names_of(state.generators);
    std::ranges::sort(wanted);  // as the keys of an object are
    if (saved != wanted)
        throw ValueError(
            fmt::format("Trainer::load: wants a checkpoint with the generators {}, got {}", wanted, saved));
    Record out;
    out.progress.epoch = record.at("epoch");
    out.progress.batch = record.at("batch");
    out.progress.step = record.at("step");
    if (out.progress.epoch < 0 || out.progress.batch < 0 || out.progress.step < 0)
        throw FormatError(path, 8, "wants counts of at least 0 in the record of a checkpoint, found negative ones");
    for (const json& row : record.at("history")) out.progress.history.push_back(figures_from(row));
    out.random = {record.at("random").at(0), record.at("random").at(1)};
    for (const NamedGenerator& one : state.generators)
        out.generators.emplace_back(generators.at(one.name).at(0), generators.at(one.name).at(1));
    const json& run = record.at("run");
    out.run = {run.at(0), run.at(1), run.at(2), run.at(3), run.at(4)};
    out.sums = record.at("sums").get<std::vector<std::string>>();
    if (!record.at("classification").is_null()) out.classification = record.at("classification").get<bool>();
    return out;
}

/// The one tensor of this name. @throws FormatError unless it is like `like`
Tensor tensor_of(const io::Safetensors& content, const std::string& name, const Tensor& like, const std::string& path) {
    const auto found = content.arrays.find(name);
    if (found == content.arrays.end() || !(found->second.shape == like.shape()) || found->second.dtype != like.dtype())
        throw FormatError(
            path, 8,
            fmt::format("wants the tensor {}, {} {}, found {}", name, name_of(like.dtype()), like.shape().str(),
                        found == content.arrays.end()
                            ? std::string("none")
                            : fmt::format("{} {}", name_of(found->second.dtype), found->second.shape.str())));
    return io::to_device(found->second, like.device());
}

/// Modules and optimizers as they are before something is loaded into them: one that does not fit may come after others
/// that did.
class Before {
  public:
    explicit Before(const Trainer::State& state) {
        for (const NamedModule& one : state.modules) modules_.push_back(copy_of(one.module.state_dict()));
        for (const NamedOptimizer& one : state.optimizers) optimizers_.push_back(copy_of(one.optimizer.state_dict()));
    }
    void restore(const Trainer::State& state) const {
        for (std::size_t i = 0; i < modules_.size(); ++i) state.modules[i].module.load_state_dict(modules_[i]);
        for (std::size_t i = 0; i < optimizers_.size(); ++i)
            state.optimizers[i].optimizer.load_state_dict(optimizers_[i]);
    }

  private:
    static StateDict copy_of(const StateDict& from) {
        StateDict out;
        for (const auto& [name, tensor] : from) out.push_back({name, tensor.clone()});
        return out;
    }
    std::vector<StateDict> modules_, optimizers_;
};

}  // namespace

void Trainer::load(const std::filesystem::path& path) {
    const FunctionScope function("Trainer::load");
    State& state = *state_;
    const io::Safetensors content = io::read_safetensors(path);
    const auto text = content.metadata.find(kKey);
    if (text == content.metadata.end())
        throw FormatError(
            path.string(), 8,
            fmt::format("wants a checkpoint, whose metadata has '{}'; found a safetensors file without", kKey));
    Record record;
    try {
        record = record_from(detail::parse_json(path.string(), text->second), path.string(), state);
    } catch (const json::exception& error) {
        throw FormatError(path.string(), 8,
                          fmt::format("wants the record of a checkpoint, found something else ({})", error.what()));
    }
    const Tensor totals = tensor_of(content, "trainer.totals", state.totals, path.string());
    const Tensor sums = tensor_of(content, "trainer.sums", state.sums.values(), path.string());
    std::vector<std::pair<Tensor, Tensor>> metrics;  // states, and what they become
    for (const NamedMetric& one : state.metrics)
        for (const auto& [name, tensor] : one.metric->state())
            metrics.emplace_back(
                tensor, tensor_of(content, fmt::format("metrics.{}.{}", one.name, name), tensor, path.string()));
    const Before before(state);
    try {
        for (const auto& [name, module] : state.modules)
            module.load_state_dict(part(content, prefix_of(state, "modules", name), state.device));
        for (const auto& [name, optimizer] : state.optimizers)
            optimizer.load_state_dict(part(content, prefix_of(state, "optimizers", name), state.device));
    } catch (...) {
        before.restore(state);
        throw;
    }
    for (auto& [tensor, value] : metrics) tensor.copy_(value);
    state.totals.copy_(totals);
    Tensor(state.sums.values()).copy_(sums);
    state.sums.set_names(std::move(record.sums));
    state.classification = record.classification;
    set_random_state(state.device, record.random);
    for (std::size_t i = 0; i < state.generators.size(); ++i)
        state.generators[i].generator.manual_seed(record.generators[i].first).set_position(record.generators[i].second);
    state.progress = std::move(record.progress);
    state.run = record.run;
}

}  // namespace declivity::train
