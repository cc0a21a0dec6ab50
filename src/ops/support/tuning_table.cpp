#include "tuning_table.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <random>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/version.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/process.hpp"
#include "runtime/environment.hpp"
#include "runtime/json.hpp"
#include "runtime/per_device.hpp"
#include "runtime/capture.hpp"
#include "ops/engine/expression.hpp"

namespace declivity::ops {
namespace {

using declivity::detail::Json;

constexpr std::string_view kFormat = "declivity tuning 2";
constexpr double kRound = 0.005;      // seconds of a measurement
constexpr double kMaxSlowdown = 2.0;  // multiple of the best time: dropped after two calls
constexpr int kRounds = 5;

Json empty_file() { return {{"format", kFormat}, {"sections", Json::array()}}; }

/// Reads a tuning file. @throws FormatError, IoError
Json read_file(const std::filesystem::path& path) {
    constexpr declivity::detail::JsonLimits kLimits{.bytes = std::uint64_t{16} << 20, .values = std::uint64_t{1} << 20};
    Json file = declivity::detail::parse_json(path.string(), declivity::detail::read_json_text(path, kLimits), kLimits);
    if (!file.is_object() || !file.contains("format") || file["format"] != kFormat || !file.contains("sections") ||
        !file["sections"].is_array())
        throw FormatError(path.string(), 0, fmt::format("expected the format \"{}\", got another one", kFormat));
    for (const Json& section : file["sections"])
        if (!section.is_object() || !section.contains("entries") || !section["entries"].is_object() ||
            !section.contains("device") || !section["device"].is_string() || !section.contains("driver") ||
            !section["driver"].is_string() || !section.contains("library") || !section["library"].is_string())
            throw FormatError(path.string(), 0,
                              "expected sections with device, driver, library and entries, got one without them");
    return file;
}

/// Reads a tuning file; returns an empty one if it is missing or invalid.
Json read_or_empty(const std::filesystem::path& path) noexcept {
    try {
        return read_file(path);
    } catch (...) {
        return empty_file();
    }
}

Json& section_of(Json& file, const std::string& device, const std::string& driver, const std::string& library) {
    for (Json& section : file["sections"])
        if (section["device"] == device && section["driver"] == driver && section["library"] == library) return section;
    file["sections"].push_back(
        {{"device", device}, {"driver", driver}, {"library", library}, {"entries", Json::object()}});
    return file["sections"].back();
}

/// Writes a temporary file and renames it, so that others see the whole file or none.
void write_file(const std::filesystem::path& path, const Json& file) {
    std::error_code failed;
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    std::filesystem::create_directories(folder, failed);
    if (failed) throw IoError("create the folder", folder.string(), failed.value());
    const std::filesystem::path temporary = path.string() + fmt::format(".{:08x}", std::random_device()());
    {
        std::ofstream out(temporary);
        out << file.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
        if (!out.flush()) {
            out.close();
            std::error_code ignored;
            std::filesystem::remove(temporary, ignored);
            throw IoError("write", path.string(), errno != 0 ? errno : EIO);
        }
    }
    std::filesystem::rename(temporary, path, failed);
    if (!failed) return;
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw IoError("rename '" + temporary.string() + "' to", path.string(), failed.value());
}

/// Parses an entry; empty if it is invalid.
std::optional<TuningEntry> entry_of(const Json& json) {
    if (!json.is_object() || !json.contains("winner") || !json["winner"].is_string()) return std::nullopt;
    TuningEntry entry{.winner = json["winner"]};
    if (json.contains("microseconds") && json["microseconds"].is_object())
        for (const auto& [name, value] : json["microseconds"].items())
            if (value.is_number()) entry.microseconds[name] = value;
    if (json.contains("rejected") && json["rejected"].is_object())
        for (const auto& [name, value] : json["rejected"].items())
            if (value.is_string()) entry.rejected[name] = value;
    return entry;
}

Json json_of(const TuningEntry& entry) {
    Json json{{"winner", entry.winner}, {"microseconds", Json::object()}};
    for (const auto& [name, value] : entry.microseconds) json["microseconds"][name] = std::round(value * 100) / 100;
    for (const auto& [name, value] : entry.rejected) json["rejected"][name] = value;
    return json;
}

template <class T>
std::vector<T> host_copy(const View& view) {
    std::vector<T> host(static_cast<std::size_t>(view.numel()));
    read(view.buffer, static_cast<std::size_t>(view.offset) * sizeof(T), std::as_writable_bytes(std::span(host)));
    return host;
}

/// The norm of the difference relative to that of `expected`; NaN if the result has one.
template <class T>
double distance(const std::vector<T>& got, const std::vector<T>& expected) {
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double difference = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
        error += difference * difference;
        norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    }
    return error == 0 ? 0 : std::sqrt(error / norm);
}

double seconds_of(const Device& device, const Trial& trial, int calls) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) trial.run();
    device.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

template <class T>
TuningEntry measure_as(const View& out, std::span<const Trial> trials, double allowed) {
    const Device device = out.device();
    TuningEntry entry;
    const Trial& plain = trials.back();
    plain.run();
    const std::vector<T> expected = host_copy<T>(out);
    struct Runner {
        const Trial* trial;
        int calls;
        double min_seconds;  // the minimum, since other load only adds time
    };
    std::vector<Runner> runners;
    double best = std::numeric_limits<double>::infinity();
    for (const Trial& trial : trials) {
        try {
            fill(out, std::numeric_limits<double>::quiet_NaN());
            trial.run();
            const double error_norm = distance(host_copy<T>(out), expected);
            if (!(error_norm <= allowed)) {
                entry.rejected[trial.name] =
                    fmt::format("wrong: an error of {:.2g} relative to the norm, {:.0e} allowed", error_norm, allowed);
                continue;
            }
            const double seconds = seconds_of(device, trial, 1);
            best = std::min(best, seconds);
            runners.push_back(
                {&trial, static_cast<int>(std::clamp(kRound / std::max(seconds, 1e-7), 1.0, 1000.0)), seconds});
        } catch (const DeviceError& error) {  // the driver cannot build or run it
            entry.rejected[trial.name] = error.what();
        }
    }
    // A single call may have been disturbed, so slow candidates get a second one.
    for (Runner& runner : runners)
        if (runner.min_seconds >= kMaxSlowdown * best)
            runner.min_seconds = std::min(runner.min_seconds, seconds_of(device, *runner.trial, 1));
    std::vector<Runner*> candidates;
    for (Runner& runner : runners)
        if (runner.min_seconds < kMaxSlowdown * best) candidates.push_back(&runner);
    for (Runner* runner : candidates)
        runner->min_seconds = std::numeric_limits<double>::infinity();  // single calls include synchronisation
    for (int round = 0; round < kRounds; ++round)
        for (Runner* runner : candidates)
            runner->min_seconds = std::min(runner->min_seconds, seconds_of(device, *runner->trial, runner->calls));
    for (const Runner& runner : runners) entry.microseconds[runner.trial->name] = runner.min_seconds * 1e6;
    if (!candidates.empty())
        entry.winner = (*std::ranges::min_element(candidates, {}, [](const Runner* runner) {
                           return runner->min_seconds;
                       }))->trial->name;
    return entry;
}

}  // namespace

TuningTable::TuningTable(const Device& device) : device_(device.name()), driver_(device.info().driver) { reload(); }

TuningTable& TuningTable::of(const Device& device) {
    declivity::detail::refuse_after_fork("tuning");
    return declivity::detail::per_device<TuningTable>(device);
}

void TuningTable::reload() {
    const std::scoped_lock lock(mutex_);
    entries_.clear();
    own_.clear();
    generation_.store(0, std::memory_order_release);
    const std::filesystem::path path = tuning_file();
    if (path.empty()) return;
    const Json file = read_or_empty(path);
    for (const Json& section : file["sections"]) {
        if (section["device"] != device_ || section["driver"] != driver_ || section["library"] != kVersion) continue;
        for (const auto& [key, value] : section["entries"].items())
            if (auto entry = entry_of(value)) entries_[key] = std::move(*entry);
    }
    if (!entries_.empty()) generation_.store(++changes_, std::memory_order_release);
}

std::optional<TuningEntry> TuningTable::find(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> TuningTable::winner(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional(found->second.winner);
}

void TuningTable::put(const std::string& key, const TuningEntry& entry) {
    const std::scoped_lock lock(mutex_);
    entries_[key] = entry;
    own_.insert(key);
    generation_.store(++changes_, std::memory_order_release);
    const std::filesystem::path path = tuning_file();
    if (path.empty()) return;
    try {
        // Other processes may have written meanwhile: their entries are kept. Of two concurrent writes one loses its
        // entry until its next write.
        Json file = read_or_empty(path);
        Json& entries = section_of(file, device_, driver_, std::string(kVersion))["entries"];
        for (const std::string& own_key : own_) entries[own_key] = json_of(entries_[own_key]);
        write_file(path, file);
    } catch (...) {
        // The file is not writable: the result is used by this process only.
    }
}

std::filesystem::path tuning_file() { return declivity::detail::environment().tuning_file; }

void merge_tuning(const std::vector<std::filesystem::path>& sources, const std::filesystem::path& target) {
    const FunctionScope function("merge_tuning");
    std::error_code failed;
    Json all = std::filesystem::exists(target, failed) ? read_file(target) : empty_file();
    if (failed) throw IoError("open", target.string(), failed.value());
    using Key = std::array<std::string, 3>;
    const auto key_of = [](const Json& section) {
        return Key{section["device"], section["driver"], section["library"]};
    };
    std::map<Key, std::size_t> section_of_key;
    Json& sections = all["sections"];
    for (std::size_t i = 0; i < sections.size(); ++i) section_of_key.try_emplace(key_of(sections[i]), i);
    for (const std::filesystem::path& source : sources) {
        const Json file = read_file(source);
        for (const Json& section : file["sections"]) {
            const auto [entry_position, is_new] = section_of_key.try_emplace(key_of(section), sections.size());
            if (is_new) {
                sections.push_back(section);
                sections.back()["entries"] = Json::object();
            }
            Json& entries = sections[entry_position->second]["entries"];
            for (const auto& [key, value] : section["entries"].items())
                if (entry_of(value)) entries[key] = value;
        }
    }
    write_file(target, all);
}

bool tunes_on_use() { return declivity::detail::environment().tune.get(); }

TuningEntry measure(const View& out, std::span<const Trial> trials) {
    const CapturePause once;
    switch (out.dtype) {
        case DType::f64:
            return measure_as<double>(out, trials, 1e-10);
        case DType::f16:
            return measure_as<float16>(out, trials, 1e-3);
        case DType::bf16:
            return measure_as<bfloat16>(out, trials, 1e-2);
        default:
            return measure_as<float>(out, trials, 1e-4);
    }
}

std::string describe(const TuningEntry& entry) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, time] : entry.microseconds) order.emplace_back(time, name);
    std::ranges::sort(order);
    std::string text;
    for (const auto& [time, name] : order)
        text += fmt::format("  {:<24} {:>10.1f} us{}\n", name, time, name == entry.winner ? "  fastest" : "");
    for (const auto& [name, reason] : entry.rejected) text += fmt::format("  {:<24} {}\n", name, reason);
    return text;
}

std::int64_t bucket(std::int64_t value) {
    if (value <= 4) return value;
    std::int64_t power = 4;
    while (power * 2 <= value) power *= 2;
    const std::int64_t half = power + power / 2;
    if (value < (power + half) / 2) return power;
    return value < (half + 2 * power) / 2 ? half : 2 * power;
}

View random_operand(const Device& device, DType dtype, const Shape& shape) {
    const View state = View::make(device, DType::i64, {2}), operand = View::make(device, compute_type(dtype), shape);
    fill(state, 20);
    random_uniform(operand, -1, 1, {state, 0});
    return evaluate(Expression::cast(operand, dtype), device);
}

}  // namespace declivity::ops
