// Layer 2, private. What was measured on a device, and how strategies are measured. See <declivity/ops/tuning.hpp>.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <declivity/ops/tuning.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// What was measured for one bucket of shapes.
struct TuningEntry {
    std::string winner;
    std::map<std::string, double> microseconds = {};   ///< by strategy, those that were right
    std::map<std::string, std::string> rejected = {};  ///< and why
};

/// The results of one device. Thread-safe.
class TuningTable {
  public:
    /// Read from the file on first use.
    static TuningTable& of(const Device& device);

    [[nodiscard]] std::optional<TuningEntry> find(const std::string& key) const;
    /// Of an entry, no more than its winner.
    [[nodiscard]] std::optional<std::string> winner(const std::string& key) const;
    /// Keeps an entry, here and in the file.
    void put(const std::string& key, const TuningEntry& entry);
    /// Another number whenever an entry changes, so that choices made from the table can be remembered; 0 while it is
    /// empty. Takes no lock.
    [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
    /// Forgets everything and reads the file again.
    void reload();

    explicit TuningTable(const Device& device);

  private:
    std::string device_, driver_;
    mutable std::mutex mutex_;
    std::map<std::string, TuningEntry, std::less<>> entries_;
    std::set<std::string> own_;  // keys of what this process measured
    std::uint64_t changes_ = 0;
    std::atomic<std::uint64_t> generation_ = 0;
};

/// DECLIVITY_TUNE=1.
bool tunes_on_use();

/// One way to compute a result.
struct Trial {
    std::string name;
    std::function<void()> run;
};

/// Runs all trials, which write `out`; the last one is the plain one, to which the others are compared. Wrong ones are
/// rejected, slow ones dropped early.
TuningEntry measure(const View& out, std::span<const Trial> trials);

/// A line for each strategy of an entry, the fastest first.
std::string describe(const TuningEntry& entry);

/// The nearest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ...
std::int64_t bucket(std::int64_t value);

/// Dense memory filled with uniform random numbers from [-1, 1), without touching the device's generator.
View random_operand(const Device& device, DType dtype, const Shape& shape);

}  // namespace declivity::ops
