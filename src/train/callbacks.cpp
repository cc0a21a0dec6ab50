#include <declivity/train/callbacks.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/png.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/train/plot.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::train {
namespace {

/// Checked before the first epoch, when the names of sets are known, but not those of their metrics.
void require_set_of(std::string_view callback, const std::string& metric, const Trainer& trainer) {
    std::vector<std::string> sets{"train"};
    sets.insert(sets.end(), trainer.validation_sets().begin(), trainer.validation_sets().end());
    if (metric == "seconds" || metric.ends_with("learning_rate") ||
        std::ranges::any_of(sets, [&](const std::string& set) { return metric.starts_with(set + "_"); }))
        return;
    for (std::string& set : sets) set += "_...";
    throw ValueError(fmt::format("{}: expected a metric of this training ({}, learning_rate, seconds), got '{}'",
                                 callback, fmt::join(sets, ", "), metric));
}

double metric_of(std::string_view callback, const EpochMetrics& metrics, const std::string& name) {
    if (metrics.has(name)) return metrics[name];
    std::vector<std::string> names;
    for (const auto& [other, value] : metrics) names.push_back(other);
    throw ValueError(fmt::format("{}: expected the name of a metric, one of {}, got '{}'", callback, names, name));
}

}  // namespace

Checkpoint::Checkpoint(CheckpointOptions options) : options_(std::move(options)) {
    if (options_.monitor.metric.empty()) options_.monitor.metric = options_.monitor.figure;
    if (options_.every_steps < 0 || (options_.every_steps > 0 && options_.last.empty()))
        throw ValueError(
            fmt::format("Checkpoint: expected every_steps of at least 0, and a path as `last` with it, got {}",
                        options_.every_steps));
}

void Checkpoint::on_begin(Trainer& trainer) {
    if (!options_.best.empty()) require_set_of("Checkpoint (monitor of best)", options_.monitor.metric, trainer);
}

void Checkpoint::after_step(Trainer& trainer) {
    if (options_.every_steps == 0 || trainer.progress().step % options_.every_steps != 0) return;
    trainer.save(options_.last);
    saved_step_ = trainer.progress().step;
}

void Checkpoint::after_epoch(Trainer& trainer, const EpochMetrics& metrics) {
    if (!options_.last.empty()) {
        trainer.save(options_.last);
        saved_step_ = trainer.progress().step;
    }
    if (options_.best.empty()) return;
    const double value = metric_of("Checkpoint (monitor of best)", metrics, options_.monitor.metric);
    // The history includes the best of earlier runs.
    const bool best = std::ranges::all_of(trainer.progress().history, [&](const EpochMetrics& other) {
        return other.epoch == metrics.epoch || !other.has(options_.monitor.metric) ||
               std::isnan(other[options_.monitor.metric]) ||
               options_.monitor.is_better(value, other[options_.monitor.metric]);
    });
    if (best && !std::isnan(value)) trainer.save(options_.best);
}

void Checkpoint::on_end(Trainer& trainer) {
    if (!options_.last.empty() && saved_step_ != trainer.progress().step) trainer.save(options_.last);
}

void LearningRate::on_begin(Trainer& trainer) {
    const auto matches_name = [this](const NamedOptimizer& named_optimizer) {
        return named_optimizer.name == optimizer_;
    };
    if (!optimizer_.empty() && std::ranges::none_of(trainer.optimizers(), matches_name))
        throw ValueError(fmt::format("LearningRate: expected an optimizer of the trainer, got '{}'", optimizer_));
}

void LearningRate::before_step(Trainer& trainer) {
    const Progress& progress = trainer.progress();
    for (const auto& [name, optimizer] : trainer.optimizers())
        if (optimizer_.empty() || optimizer_ == name)
            optim::apply(schedule_, unit_ == Unit::step ? progress.step : progress.epoch, optimizer);
}

EarlyStopping::EarlyStopping(std::int64_t patience, double margin, Monitor monitor)
    : patience_(patience), margin_(margin), monitor_(std::move(monitor)) {
    if (monitor_.metric.empty()) monitor_.metric = monitor_.figure;
    if (patience < 1)
        throw ValueError(fmt::format("EarlyStopping: expected a patience of at least 1 epoch, got {}", patience));
}

void EarlyStopping::on_begin(Trainer& trainer) { require_set_of("EarlyStopping", monitor_.metric, trainer); }

void EarlyStopping::after_epoch(Trainer& trainer, const EpochMetrics& metrics) {
    (void)metric_of("EarlyStopping", metrics, monitor_.metric);
    // Counted over the history, so that a resumed training stops at the same epoch as an uninterrupted one.
    double best = monitor_.better == Monitor::Better::lower ? INFINITY : -INFINITY;
    std::int64_t best_epoch = 0;
    for (const EpochMetrics& other : trainer.progress().history)
        if (other.has(monitor_.metric) && monitor_.is_better(other[monitor_.metric], best, margin_)) {
            best = other[monitor_.metric];
            best_epoch = other.epoch;
        }
    if (metrics.epoch - best_epoch >= patience_) trainer.stop();
}

namespace {

/// Values of all epochs, in order.
std::vector<std::string> names_in(const std::vector<EpochMetrics>& history) {
    std::vector<std::string> names;
    for (const EpochMetrics& row : history)
        for (const auto& [name, value] : row)
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    return names;
}

Series series_of(const std::vector<EpochMetrics>& history, const std::string& metric, std::string name) {
    Series out{std::move(name), {}, {}};
    for (const EpochMetrics& row : history) {
        out.x.push_back(static_cast<double>(row.epoch));
        out.y.push_back(row.has(metric) ? row[metric] : NAN);
    }
    return out;
}

}  // namespace

void CsvLog::after_epoch(Trainer& trainer, const EpochMetrics&) {
    const auto& history = trainer.progress().history;
    const std::vector<std::string> names = names_in(history);
    std::string text = "epoch";
    for (const std::string& name : names) text += "," + name;
    text += "\n";
    for (const EpochMetrics& row : history) {
        text += std::to_string(row.epoch);
        for (const std::string& name : names) text += row.has(name) ? fmt::format(",{}", row[name]) : ",";
        text += "\n";
    }
    io::write_file(path_, std::as_bytes(std::span(text)));
}

void LearningCurvePicture::on_begin(Trainer& trainer) {
    for (const auto* metrics : {&options_.losses, &options_.accuracies})
        for (const std::string& metric : *metrics) require_set_of("LearningCurvePicture", metric, trainer);
}

void LearningCurvePicture::after_epoch(Trainer& trainer, const EpochMetrics& metrics) {
    const auto& history = trainer.progress().history;
    LearningCurve curve{.title = options_.title};
    const auto draw = [&](const std::vector<std::string>& selected, const std::string& end, std::vector<Series>& into) {
        for (const std::string& metric : selected) {
            (void)metric_of("LearningCurvePicture", metrics, metric);
            into.push_back(series_of(history, metric, metric));
        }
        if (!selected.empty()) return;
        for (const std::string& name : names_in(history))
            if (name.ends_with("_" + end))
                into.push_back(series_of(history, name, name.substr(0, name.size() - end.size() - 1)));
    };
    draw(options_.losses, "loss", curve.losses);
    draw(options_.accuracies, "accuracy", curve.accuracies);
    if (!options_.losses.empty()) curve.losses_label = "";
    if (!options_.accuracies.empty()) curve.accuracies_label = "";
    io::write_png(path_, learning_curve(curve));
}

}  // namespace declivity::train
