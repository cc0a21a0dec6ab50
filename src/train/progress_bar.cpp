#include "progress_bar.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace declivity::train::detail {
namespace {

constexpr int kWidth = 28;
constexpr std::chrono::milliseconds kPause{100};

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ProgressBar::ProgressBar(bool quiet) : quiet_(quiet), terminal_(isatty(STDOUT_FILENO) == 1) {}

void ProgressBar::start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t batches) {
    epoch_ = epoch;
    epochs_ = epochs;
    batches_ = batches;
    start_ = std::chrono::steady_clock::now();
    last_ = start_ - kPause;
}

void ProgressBar::update(std::int64_t batch, const Metrics& metrics) {
    if (quiet_ || !terminal_ || std::chrono::steady_clock::now() - last_ < kPause) return;
    last_ = std::chrono::steady_clock::now();
    const int filled = static_cast<int>(kWidth * batch / std::max<std::int64_t>(batches_, 1));
    const double passed = seconds_since(start_);
    const double left = batch > 0 ? passed * static_cast<double>(batches_ - batch) / static_cast<double>(batch) : 0;
    std::string bar;
    for (int i = 0; i < kWidth; ++i) bar += i < filled ? "\u2588" : "\u2591";
    std::string shown;
    for (const auto& [name, value] : metrics) shown += fmt::format("  {} {:.4f}", name, value);
    fmt::print("\r\033[Kepoch {}/{} {} {}/{}{}  {:.0f} s left", epoch_, epochs_, bar, batch, batches_, shown, left);
    std::fflush(stdout);
    drawn_ = true;
}

void ProgressBar::clear() {
    if (drawn_) fmt::print("\r\033[K");
    drawn_ = false;
}

void ProgressBar::end_epoch(const EpochMetrics& metrics, const std::vector<std::string>& sets) {
    if (quiet_) return;
    clear();
    fmt::print("epoch {}/{}", metrics.epoch, epochs_);
    for (const auto& [name, value] : metrics) {
        std::string_view set;  // the longest matching name
        for (const std::string& one : sets)
            if (one.size() >= set.size() && name.starts_with(one + "_")) set = one;
        if (set.empty()) continue;
        fmt::print("  {}{}{} {:.4f}", set == "train" ? "" : set, set == "train" ? "" : " ", name.substr(set.size() + 1),
                   value);
    }
    fmt::print("  {:.1f} s\n", metrics["seconds"]);
    std::fflush(stdout);
}

void ProgressBar::note(const std::string& text) {
    if (quiet_) return;
    clear();
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

}  // namespace declivity::train::detail
