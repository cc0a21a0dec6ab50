// Output of a suite: a row per case, and at the end the ratios to each peer.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <declivity/runtime/device.hpp>
#include <nlohmann/json.hpp>

#include "measure.hpp"

namespace declivity::bench {

/// Peak rates of this device, measured by the suite `limits`.
struct Ceilings {
    double multiply_add_f32 = 0;  ///< floating-point operations per second; a multiply-add counts as two
    double multiply_add_f64 = 0;  ///< 0 without f64
    double copy = 0;              ///< bytes read and written per second, beyond the caches
    double launch = 0;            ///< seconds to enqueue a kernel
    double launch_waited = 0;     ///< seconds to enqueue a kernel and wait for it
};

struct Row {
    std::string name;
    double flops = 0, bytes = 0;  ///< per call; the nonzero one is the bound of the case
    std::string strategy = {};
    std::string group = {};  ///< rows of a group are summarised together; if empty, with the suite
};

class Report {
  public:
    Report(Device device, bool peers, std::optional<std::regex> filter)
        : device_(std::move(device)), peers_(peers), filter_(std::move(filter)) {}

    [[nodiscard]] const Device& device() const { return device_; }
    [[nodiscard]] bool with_peers() const { return peers_; }
    /// Returns whether the case matches --filter.
    [[nodiscard]] bool is_selected(const std::string& name) const {
        return !filter_ || std::regex_search(name, *filter_);
    }
    /// Measured at the first call.
    const Ceilings& ceilings();

    void begin(const std::string& suite);
    /// Times a case whose result has been checked, and prints it. Without --peers, peers are skipped.
    void measure(const Row& row, const Contender& ours, std::vector<Contender> peers);
    /// Reports a wrong result.
    void fail(const std::string& name, const std::string& why);
    /// Reports a number that is not a timed case.
    void note(const std::string& name, double value, const std::string& unit);
    /// Prints the geometric means of the suite.
    void end();

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] nlohmann::ordered_json json() const;

  private:
    struct Ratio {
        std::string name;
        double value;
    };
    Device device_;
    bool peers_ = false, failed_ = false;
    std::optional<std::regex> filter_;
    std::optional<Ceilings> ceilings_;
    std::string suite_;
    std::map<std::pair<std::string, std::string>, std::vector<Ratio>> ratios_;  // by group and peer
    nlohmann::ordered_json rows_ = nlohmann::ordered_json::array(), summaries_ = nlohmann::ordered_json::array();
};

/// One suite; each file suite_*.cpp defines one in static storage.
struct Suite {
    std::string name, about;
    void (*run)(Report&);
    Suite(std::string name, std::string about, void (*run)(Report&));
    static std::vector<const Suite*>& all();
};

}  // namespace declivity::bench
