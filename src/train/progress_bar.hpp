// Layer 7, private. Progress output of a training.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/train/trainer.hpp>

namespace declivity::train::detail {

/// A progress bar that is redrawn on a terminal; otherwise only a line at the end of each epoch.
class ProgressBar {
  public:
    explicit ProgressBar(bool quiet);
    void start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t batches);
    /// @param metrics of the epoch so far, as last read from the device
    void update(std::int64_t batch, const Metrics& metrics);
    /// @param sets prefixes of the metrics' names: "train" is not printed
    void end_epoch(const EpochMetrics& metrics, const std::vector<std::string>& sets);
    /// Clears an unfinished bar and prints a line.
    void print_line(const std::string& text);

  private:
    void clear();
    bool quiet_, terminal_, drawn_ = false;
    std::int64_t epoch_ = 0, epochs_ = 0, batches_ = 0;
    std::chrono::steady_clock::time_point start_, last_redraw_;
};

}  // namespace declivity::train::detail
