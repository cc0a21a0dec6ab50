// Layer 7. Named metrics of an epoch or an evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/export.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

/// Ordered list of named values.
class DECLIVITY_API Metrics {
  public:
    using Entry = std::pair<std::string, double>;

    /// @throws ValueError listing the available names if there is none
    [[nodiscard]] double operator[](std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const noexcept;
    /// @throws ValueError for a duplicate name
    void add(std::string name, double value);
    [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
    [[nodiscard]] auto end() const noexcept { return entries_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  private:
    std::vector<Entry> entries_;
};

/// Metrics of an epoch: "train_loss" and the other training metrics; "test_loss" etc. for each validation set;
/// "learning_rate", or "<optimizer>_learning_rate" if there are several optimizers; "seconds" of training, excluding
/// evaluation. Losses and reported values are means weighted by the divisor of each batch's loss (see LossValue), NaN
/// if the total weight is 0; accuracies are in [0, 1], over the labels that the loss does not ignore.
struct EpochMetrics : Metrics {
    std::int64_t epoch = 0;  ///< from 1
};

/// Metrics of an evaluation: "loss", "accuracy", or the names of the trainer's metrics and of reported values.
struct Evaluation : Metrics {
    std::int64_t examples = 0;
};

/// A monitored metric, and whether lower or higher is better.
struct Monitor {
    enum class Better : std::uint8_t { lower, higher };
    std::string metric;
    Better better = Better::lower;
    std::string figure = {};  ///< deprecated name of metric, used if that is empty

    [[nodiscard]] bool is_better(double value, double than, double margin = 0) const noexcept {
        return better == Better::lower ? value < than - margin : value > than + margin;
    }
};

// ---- deprecated names of version 0.1

using Figures [[deprecated("train::Metrics")]] = Metrics;
using EpochFigures [[deprecated("train::EpochMetrics")]] = EpochMetrics;

/// @}

}  // namespace declivity::train
