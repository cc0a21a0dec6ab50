// Layer 5. Figures: what an epoch or an evaluation came to, by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::train {

/// Names with a number each, in order.
class DECLIVITY_API Metrics {
  public:
    using Entry = std::pair<std::string, double>;

    /// @throws ValueError naming those there are
    [[nodiscard]] double operator[](std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const noexcept;
    /// @throws ValueError for a name that is there
    void add(std::string name, double value);
    [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
    [[nodiscard]] auto end() const noexcept { return entries_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  private:
    std::vector<Entry> entries_;
};

/// What an epoch came to: "train_loss" and the other figures of the training; "test_loss" and so on for each validation
/// set; "learning_rate", where there are several optimizers "<optimizer>_learning_rate"; "seconds" of training, without
/// the evaluation. Losses, and what a step reports, are means weighted by what the loss of each batch was divided by
/// (see LossValue), NaN where nothing counted; accuracies are in [0, 1], over the labels that the loss does not ignore.
struct EpochMetrics : Metrics {
    std::int64_t epoch = 0;  ///< from 1
};

/// What an evaluation came to: "loss", "accuracy", or what the trainer's metrics and steps are called.
struct Evaluation : Metrics {
    std::int64_t examples = 0;
};

/// Which figure is watched, and what is better.
struct Monitor {
    enum class Better : std::uint8_t { lower, higher };
    std::string figure;
    Better better = Better::lower;

    [[nodiscard]] bool is_better(double value, double than, double margin = 0) const noexcept {
        return better == Better::lower ? value < than - margin : value > than + margin;
    }
};

}  // namespace declivity::train
