#include <declivity/train/callbacks.hpp>

#include <algorithm>
#include <cmath>

#include <declivity/io/atomic_file.hpp>
#include <declivity/io/png.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/train/plot.hpp>
#include <fmt/format.h>

namespace declivity::train {

Checkpoint::Checkpoint(CheckpointOptions options) : options_(std::move(options)) {
    if (options_.every_steps < 0 || (options_.every_steps > 0 && options_.last.empty()))
        throw ValueError(fmt::format(
            "Checkpoint: wants every_steps of at least 0, and a path as `last` with it, got {}", options_.every_steps));
}

void Checkpoint::after_step(Trainer& trainer) {
    if (options_.every_steps == 0 || trainer.progress().step % options_.every_steps != 0) return;
    trainer.save(options_.last);
    saved_step_ = trainer.progress().step;
}

void Checkpoint::after_epoch(Trainer& trainer, const EpochFigures& figures) {
    if (!options_.last.empty()) {
        trainer.save(options_.last);
        saved_step_ = trainer.progress().step;
    }
    // The history knows the best of earlier runs, too.
    const auto& history = trainer.progress().history;
    const bool best = std::ranges::all_of(history, [&](const EpochFigures& other) {
        return other.epoch == figures.epoch || other.test_accuracy < figures.test_accuracy;
    });
    if (!options_.best.empty() && best && !std::isnan(figures.test_accuracy)) trainer.save(options_.best);
}

void Checkpoint::on_end(Trainer& trainer) {
    if (!options_.last.empty() && saved_step_ != trainer.progress().step) trainer.save(options_.last);
}

void LearningRate::before_step(Trainer& trainer) {
    const Progress& progress = trainer.progress();
    optim::apply(schedule_, unit_ == Unit::step ? progress.step : progress.epoch, trainer.optimizer());
}

EarlyStopping::EarlyStopping(std::int64_t patience, double margin) : patience_(patience), margin_(margin) {
    if (patience < 1)
        throw ValueError(fmt::format("EarlyStopping: wants a patience of at least 1 epoch, got {}", patience));
}

void EarlyStopping::after_epoch(Trainer& trainer, const EpochFigures& figures) {
    // Counted over the history, so that a resumed training stops where an unbroken one does.
    double best = INFINITY;
    std::int64_t best_epoch = 0;
    for (const EpochFigures& other : trainer.progress().history)
        if (other.test_loss < best - margin_) {
            best = other.test_loss;
            best_epoch = other.epoch;
        }
    if (figures.epoch - best_epoch >= patience_) trainer.stop();
}

void CsvLog::after_epoch(Trainer& trainer, const EpochFigures&) {
    std::string text = "epoch,train_loss,train_accuracy,test_loss,test_accuracy,learning_rate,seconds\n";
    for (const EpochFigures& row : trainer.progress().history)
        text += fmt::format("{},{},{},{},{},{},{}\n", row.epoch, row.train_loss, row.train_accuracy, row.test_loss,
                            row.test_accuracy, row.learning_rate, row.seconds);
    io::write_file(path_, std::as_bytes(std::span(text)));
}

void LearningCurvePicture::after_epoch(Trainer& trainer, const EpochFigures&) {
    Series train_loss{"train", {}, {}}, test_loss{"test", {}, {}}, train_accuracy{"train", {}, {}},
        test_accuracy{"test", {}, {}};
    for (const EpochFigures& row : trainer.progress().history) {
        const auto add = [&](Series& series, double value) {
            series.x.push_back(static_cast<double>(row.epoch));
            series.y.push_back(value);
        };
        add(train_loss, row.train_loss);
        add(test_loss, row.test_loss);
        add(train_accuracy, row.train_accuracy);
        add(test_accuracy, row.test_accuracy);
    }
    io::write_png(path_, learning_curve({.title = title_,
                                         .losses = {train_loss, test_loss},
                                         .accuracies = {train_accuracy, test_accuracy}}));
}

}  // namespace declivity::train
