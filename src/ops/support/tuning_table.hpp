// Layer 2, private. The tuning cache: measurements of strategies on a device. See <declivity/ops/tuning.hpp>.
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

/// Measurements for one bucket of shapes.
struct TuningEntry {
    std::string winner;
    std::map<std::string, double> microseconds = {};   ///< by strategy, of those with a correct result
    std::map<std::string, std::string> rejected = {};  ///< with the reason
};

/// The tuning table of one device. Thread-safe.
class TuningTable {
  public:
    /// Read from the file on first use.
    static TuningTable& of(const Device& device);

    [[nodiscard]] std::optional<TuningEntry> find(const std::string& key) const;
    /// The winner of an entry.
    [[nodiscard]] std::optional<std::string> winner(const std::string& key) const;
    /// Stores an entry in the table and in the file.
    void put(const std::string& key, const TuningEntry& entry);
    /// Changes whenever an entry changes, so that choices made from the table can be cached; 0 while the table is
    /// empty. Takes no lock.
    [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
    /// Clears the table and reads the file again.
    void reload();

    explicit TuningTable(const Device& device);

  private:
    std::string device_, driver_;
    mutable std::mutex mutex_;
    std::map<std::string, TuningEntry, std::less<>> entries_;
    std::set<std::string> own_;  // keys measured by this process
    std::uint64_t changes_ = 0;
    std::atomic<std::uint64_t> generation_ = 0;
};

/// DECLIVITY_TUNE=1.
bool tunes_on_use();

/// One implementation to be measured.
struct Trial {
    std::string name;
    std::function<void()> run;
};

/// Runs all trials, which write `out`; the last one is the reference that the others are compared to. Wrong ones are
/// rejected, slow ones dropped early.
TuningEntry measure(const View& out, std::span<const Trial> trials);

/// One line for each strategy of an entry, the fastest first.
std::string describe(const TuningEntry& entry);

/// Rounds to the nearest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ...
std::int64_t bucket(std::int64_t value);

/// Returns dense memory filled with uniform random numbers from [-1, 1), without using the device's generator.
View random_operand(const Device& device, DType dtype, const Shape& shape);

}  // namespace declivity::ops
