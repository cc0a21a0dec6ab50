#include "progress_bar.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace declivity::train::detail {
namespace {

constexpr int kWidth = 28;
constexpr std::chrono::milliseconds kRedrawInterval{100};

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
    last_redraw_ = start_ - kRedrawInterval;
}

void ProgressBar::update(std::int64_t batch, const Metrics& metrics) {
    if (quiet_ || !terminal_ || std::chrono::steady_clock::now() - last_redraw_ < kRedrawInterval) return;
    last_redraw_ = std::chrono::steady_clock::now();
    const int filled = static_cast<int>(kWidth * batch / std::max<std::int64_t>(batches_, 1));
    const double elapsed = seconds_since(start_);
    const double remaining =
        batch > 0 ? elapsed * static_cast<double>(batches_ - batch) / static_cast<double>(batch) : 0;
    std::string bar;
    for (int i = 0; i < kWidth; ++i) bar += i < filled ? "\u2588" : "\u2591";
    std::string metrics_text;
    for (const auto& [name, value] : metrics) metrics_text += fmt::format("  {} {:.4f}", name, value);
    fmt::print("\r\033[Kepoch {}/{} {} {}/{}{}  {:.0f} s left", epoch_, epochs_, bar, batch, batches_, metrics_text,
               remaining);
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
        for (const std::string& set_name : sets)
            if (set_name.size() >= set.size() && name.starts_with(set_name + "_")) set = set_name;
        if (set.empty()) continue;
        fmt::print("  {}{}{} {:.4f}", set == "train" ? "" : set, set == "train" ? "" : " ", name.substr(set.size() + 1),
                   value);
    }
    fmt::print("  {:.1f} s\n", metrics["seconds"]);
    std::fflush(stdout);
}

void ProgressBar::print_line(const std::string& text) {
    if (quiet_) return;
    clear();
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

}  // namespace declivity::train::detail
