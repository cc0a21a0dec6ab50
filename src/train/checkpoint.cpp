// Checkpoints: one safetensors file with the tensors of model and optimizer, and the rest as JSON in its metadata.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
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

#include "io/checksum.hpp"
#include "runtime/json.hpp"
#include "trainer_state.hpp"

namespace declivity::train {
namespace {

using nlohmann::json;

constexpr const char* kKey = "declivity.checkpoint";
constexpr std::int64_t kVersion = 3;
/// Files of this version have no checksum, and sums weighted by examples.
constexpr std::int64_t kOldVersion = 2;

/// JSON has no infinities and NaN.
json json_number(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? json() : json(value > 0 ? "inf" : "-inf");
}

json to_json(const EpochMetrics& metrics) {
    json row = json::array({metrics.epoch});
    for (const auto& [name, value] : metrics) row.push_back({name, json_number(value)});
    return row;
}

/// Prefix of the tensors of a module or optimizer: "model.", or "modules.generator." of several.
std::string prefix_of(const Trainer::State& state, const char* kind, const std::string& name) {
    return state.has_model() ? name + "." : fmt::format("{}.{}.", kind, name);
}

/// Tensors of one part, without its prefix.
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
    // A callback may save before fit() has checked: a state after a failed step must not be saved.
    if (state.require_finite) state.require_finite();
    io::Safetensors content;
    for (const auto& [name, module] : state.modules)
        for (const auto& [tensor_name, tensor] : module.state_dict())
            content.arrays.emplace(prefix_of(state, "modules", name) + tensor_name, io::to_host(tensor));
    for (const auto& [name, optimizer] : state.optimizers)
        for (const auto& [tensor_name, tensor] : optimizer.state_dict())
            content.arrays.emplace(prefix_of(state, "optimizers", name) + tensor_name, io::to_host(tensor));
    for (const NamedMetric& named_metric : state.metrics)
        for (const auto& [tensor_name, tensor] : named_metric.metric->state())
            content.arrays.emplace(fmt::format("metrics.{}.{}", named_metric.name, tensor_name), io::to_host(tensor));
    content.arrays.emplace("trainer.totals", io::to_host(state.totals));
    content.arrays.emplace("trainer.sums", io::to_host(state.sums.values()));
    const Progress& progress = state.progress;
    const RandomState random = random_state(state.device);
    json history = json::array();
    for (const EpochMetrics& metrics : progress.history) history.push_back(to_json(metrics));
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
    try {
        content.metadata[kKey] = record.dump();
    } catch (const json::exception&) {
        throw ValueError("Trainer::save: expected names of modules, metrics and generators in UTF-8");
    }
    content.metadata[io::kChecksumKey] = io::checksum_of(content);
    io::write_safetensors(path, content);
}

namespace {

/// The JSON record of a checkpoint.
struct Record {
    std::int64_t version = 0;
    Progress progress;
    RandomState random;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> generators;  // seeds and positions, in the trainer's order
    Trainer::State::Run run;
    std::vector<std::string> sums;
    std::optional<bool> classification;
};

/// Reader of a checkpoint's record, which checks each value.
class RecordReader {
  public:
    /// @throws FormatError if it is not a JSON object, or nested deeper than a record
    RecordReader(std::string path, const std::string& text) : path_(std::move(path)) {
        root_ = declivity::detail::parse_json(path_, text);
        if (!root_.is_object()) fail("expected an object, got " + abbreviated(root_));
    }

    [[nodiscard]] Record read(const Trainer::State& state) const {
        Record out;
        out.version = integer(root_, "version", 0, kLargest);
        if (out.version != kVersion && out.version != kOldVersion)
            throw FormatError(
                path_, 8,
                fmt::format("expected a checkpoint of version {}, found one of version {}, which another version "
                            "of the library has written; its weights are read by io::load",
                            kVersion, out.version));
        require_names("modules", names_of(state.modules));
        require_names("optimizers", names_of(state.optimizers));
        require_names("metrics", names_of(state.metrics));
        read_generators(state, out);
        out.progress.epoch = integer(root_, "epoch", 0, kLargest);
        out.progress.batch = integer(root_, "batch", 0, kLargest);
        out.progress.step = integer(root_, "step", 0, kLargest);
        read_history(out);
        const json& random = list(root_, "random", 2);
        out.random = {unsigned_integer(random[0], "random"), unsigned_integer(random[1], "random")};
        read_run(out);
        read_sums(out);
        const json& classification = member(root_, "classification");
        if (!classification.is_null()) out.classification = boolean(classification, "classification");
        return out;
    }

  private:
    /// Limit of counts, which are added and multiplied by small numbers.
    static constexpr std::int64_t kLargest = std::int64_t{1} << 48;

    [[noreturn]] void fail(const std::string& what) const {
        throw FormatError(path_, 8, fmt::format("the record of a checkpoint is wrong: {}", what));
    }
    static std::string abbreviated(const json& value) {
        std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
        return text.size() <= 60 ? text : fmt::format("{} of {} characters", value.type_name(), text.size());
    }

    [[nodiscard]] const json& member(const json& object, const char* name) const {
        const auto found = object.find(name);
        if (found == object.end()) fail(fmt::format("expected '{}', got none", name));
        return *found;
    }
    [[nodiscard]] const json& list(const json& object, const char* name) const {
        const json& value = member(object, name);
        if (!value.is_array()) fail(fmt::format("expected a list as '{}', got {}", name, abbreviated(value)));
        return value;
    }
    [[nodiscard]] const json& list(const json& object, const char* name, std::size_t size) const {
        const json& value = list(object, name);
        if (value.size() != size)
            fail(fmt::format("expected a list of {} as '{}', got {}", size, name, abbreviated(value)));
        return value;
    }
    [[nodiscard]] std::int64_t integer(const json& value, std::string_view name, std::int64_t min_value,
                                       std::int64_t max_value) const {
        // Numbers above 2^63 are unsigned.
        const bool fits =
            value.is_number_integer() &&
            (!value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kLargest));
        if (!fits || value.get<std::int64_t>() < min_value || value.get<std::int64_t>() > max_value)
            fail(fmt::format("expected an integer in [{}, {}] as '{}', got {}", min_value, max_value, name,
                             abbreviated(value)));
        return value.get<std::int64_t>();
    }
    [[nodiscard]] std::int64_t integer(const json& object, const char* name, std::int64_t min_value,
                                       std::int64_t max_value) const {
        return integer(member(object, name), std::string_view(name), min_value, max_value);
    }
    [[nodiscard]] std::uint64_t unsigned_integer(const json& value, std::string_view name) const {
        if (!value.is_number_unsigned())
            fail(fmt::format("expected non-negative 64-bit integers as '{}', got {}", name, abbreviated(value)));
        return value.get<std::uint64_t>();
    }
    [[nodiscard]] bool boolean(const json& value, std::string_view name) const {
        if (!value.is_boolean()) fail(fmt::format("expected true or false as '{}', got {}", name, abbreviated(value)));
        return value.get<bool>();
    }
    [[nodiscard]] std::string text(const json& value, std::string_view name) const {
        if (!value.is_string()) fail(fmt::format("expected strings as '{}', got {}", name, abbreviated(value)));
        return value.get<std::string>();
    }
    [[nodiscard]] double metric(const json& value) const {
        if (value.is_null()) return NAN;
        if (value == "inf") return INFINITY;
        if (value == "-inf") return -INFINITY;
        if (!value.is_number())
            fail(fmt::format("expected a number, null, \"inf\" or \"-inf\" as a metric of 'history', got {}",
                             abbreviated(value)));
        return value.get<double>();
    }

    void require_names(const char* kind, const std::vector<std::string>& expected) const {
        std::vector<std::string> saved;
        for (const json& name : list(root_, kind)) saved.push_back(text(name, kind));
        if (saved != expected)
            throw ValueError(fmt::format("Trainer::load: expected a checkpoint with the {} {}, got {}{}", kind,
                                         json(expected).dump(-1, ' ', false, json::error_handler_t::replace),
                                         abbreviated(member(root_, kind)), in_file()));
    }
    [[nodiscard]] std::string in_file() const { return fmt::format(" in '{}'", path_); }

    void read_generators(const Trainer::State& state, Record& out) const {
        const json& generators = member(root_, "generators");
        if (!generators.is_object())
            fail(fmt::format("expected an object as 'generators', got {}", abbreviated(generators)));
        std::vector<std::string> saved;
        for (const auto& [name, position] : generators.items()) saved.push_back(name);
        std::vector<std::string> expected = names_of(state.generators);
        std::ranges::sort(expected);  // in the order of JSON object keys
        if (saved != expected)
            throw ValueError(fmt::format("Trainer::load: expected a checkpoint with the generators {}, got {}{}",
                                         expected, saved, in_file()));
        for (const NamedGenerator& generator : state.generators) {
            const json& position = list(generators, generator.name.c_str(), 2);
            out.generators.emplace_back(unsigned_integer(position[0], generator.name),
                                        unsigned_integer(position[1], generator.name));
        }
    }

    void read_history(Record& out) const {
        const json& history = list(root_, "history");
        for (const json& row : history) {
            EpochMetrics metrics;
            if (!row.is_array() || row.empty())
                fail(fmt::format("expected an epoch and its metrics in 'history', got {}", abbreviated(row)));
            metrics.epoch = integer(row[0], std::string_view("an epoch of history"), 1, out.progress.epoch);
            if (!out.progress.history.empty() && metrics.epoch <= out.progress.history.back().epoch)
                fail(fmt::format("expected the epochs of 'history' in order, got {} after {}", metrics.epoch,
                                 out.progress.history.back().epoch));
            for (std::size_t i = 1; i < row.size(); ++i) {
                if (!row[i].is_array() || row[i].size() != 2)
                    fail(fmt::format("expected names with a number each in 'history', got {}", abbreviated(row[i])));
                std::string name = text(row[i][0], "history");
                if (name.empty() || metrics.has(name))
                    fail(fmt::format("expected each metric of 'history' once, got '{}' twice", name));
                metrics.add(std::move(name), metric(row[i][1]));
            }
            out.progress.history.push_back(std::move(metrics));
        }
    }

    void read_run(Record& out) const {
        const json& run = list(root_, "run", 5);
        constexpr std::string_view name = "run";
        out.run.seed = unsigned_integer(run[0], name);
        out.run.batch = integer(run[1], name, 0, kLargest);
        out.run.examples = integer(run[2], name, 0, kLargest);
        out.run.accumulate = integer(run[3], name, 1, kLargest);
        out.run.shuffle = boolean(run[4], name);
        // A trainer saved before its first fit has none.
        if (out.progress.batch > 0 && (out.run.batch < 1 || out.run.examples < 1 || out.progress.step < 1))
            fail(
                fmt::format("expected a batch size, examples and steps above 0 in the middle of an epoch, got {}, {} "
                            "and {}",
                            out.run.batch, out.run.examples, out.progress.step));
    }

    void read_sums(Record& out) const {
        const json& sums = list(root_, "sums");
        if (std::cmp_greater(sums.size(), Sums::kMax))
            fail(fmt::format("expected at most {} names as 'sums', got {}", Sums::kMax, sums.size()));
        for (const json& name : sums) {
            out.sums.push_back(text(name, "sums"));
            if (!Sums::is_name(out.sums.back()) || std::ranges::count(out.sums, out.sums.back()) > 1)
                fail(fmt::format("expected names of metrics as 'sums', each once, got {}", abbreviated(name)));
        }
    }

    std::string path_;
    json root_;
};

/// The one tensor of this name. @throws FormatError unless its type and shape are those of `like`
Tensor tensor_of(const io::Safetensors& content, const std::string& name, const Tensor& like, const std::string& path) {
    const auto found = content.arrays.find(name);
    if (found == content.arrays.end() || !(found->second.shape == like.shape()) || found->second.dtype != like.dtype())
        throw FormatError(
            path, 8,
            fmt::format("expected the tensor {}, {} {}, found {}", name, name_of(like.dtype()), like.shape().str(),
                        found == content.arrays.end()
                            ? std::string("none")
                            : fmt::format("{} {}", name_of(found->second.dtype), found->second.shape.str())));
    return io::to_device(found->second, like.device());
}

/// Totals of a checkpoint of an earlier version, which has losses and correct answers, weighted by examples.
Tensor old_totals(const io::Safetensors& content, const Trainer::State& state, const Record& record,
                  const std::string& path) {
    const Tensor two = zeros({2}, {DType::f32, state.device});
    const std::vector<float> saved = tensor_of(content, "trainer.totals", two, path).to_vector<float>();
    const double examples = std::min(static_cast<double>(record.progress.batch) * static_cast<double>(record.run.batch),
                                     static_cast<double>(record.run.examples));
    const auto example_count = static_cast<float>(examples);
    return Tensor::from<float>({saved[0], saved[1], example_count, example_count}, {4}, state.device);
}

/// State of modules and optimizers before loading, to restore it if a later part fails.
class SavedState {
  public:
    explicit SavedState(const Trainer::State& state) {
        for (const NamedModule& named_module : state.modules)
            modules_.push_back(copy_of(named_module.module.state_dict()));
        for (const NamedOptimizer& named_optimizer : state.optimizers)
            optimizers_.push_back(copy_of(named_optimizer.optimizer.state_dict()));
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
            fmt::format("expected a checkpoint, whose metadata has '{}'; found a safetensors file without", kKey));
    Record record = RecordReader(path.string(), text->second).read(state);
    if (record.version != kOldVersion && !content.metadata.contains(io::kChecksumKey))
        throw FormatError(path.string(), 8,
                          fmt::format("the file is damaged: a checkpoint has a checksum, '{}'", io::kChecksumKey));
    const Tensor totals = record.version == kOldVersion
                              ? old_totals(content, state, record, path.string())
                              : tensor_of(content, "trainer.totals", state.totals, path.string());
    const Tensor sums = tensor_of(content, "trainer.sums", state.sums.values(), path.string());
    std::vector<std::pair<Tensor, Tensor>> metrics;  // states, and the tensors that they are copied to
    for (const NamedMetric& named_metric : state.metrics)
        for (const auto& [name, tensor] : named_metric.metric->state())
            metrics.emplace_back(tensor, tensor_of(content, fmt::format("metrics.{}.{}", named_metric.name, name),
                                                   tensor, path.string()));
    const SavedState previous_state(state);
    try {
        for (const auto& [name, module] : state.modules)
            module.load_state_dict(part(content, prefix_of(state, "modules", name), state.device));
        for (const auto& [name, optimizer] : state.optimizers)
            optimizer.load_state_dict(part(content, prefix_of(state, "optimizers", name), state.device));
    } catch (...) {
        previous_state.restore(state);
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
