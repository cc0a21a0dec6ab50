// The sections of `declivity doctor`. Each runs in a child process, whose findings are lines of JSON
// (doctor_process.hpp): a driver may crash or hang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <declivity/runtime/device.hpp>
#include <nlohmann/json.hpp>

namespace declivity::tools::doctor {

using Json = nlohmann::ordered_json;

enum class Status : std::uint8_t {
    right,    ///< as expected
    fact,     ///< information only
    skipped,  ///< cannot be examined here
    avoided,  ///< wrong but harmless: the library avoids or does not use it
    wrong,
};
std::string_view name_of(Status status);
Status status_of(std::string_view name);

/// Text and machine-readable numbers of a fact.
struct Fact {
    std::string text;
    Json metrics = Json::object();
};

/// A share of a section's checks.
struct Shard {
    std::size_t index = 0, count = 1;
};

/// Collects the findings of a section. An exception thrown by a check is a finding; the section continues with the next
/// check.
class DoctorRun {
  public:
    /// @param first index of the first check to run; earlier ones were done by a process that died
    /// @param shard runs the checks whose index modulo the number of shards is its index
    /// @param name_filter only checks whose names contain this text
    /// @param own_style without kernels of the other style, see check_style()
    /// @param fault for tests: "crash", "hang", "throw" or "exit" in the second check; "slow" in the first check of the
    /// other kernel style; empty: none
    DoctorRun(std::function<void(const Json&)> emit, std::size_t first, Shard shard, std::string name_filter,
              bool own_style, std::string fault)
        : emit_(std::move(emit)),
          first_(first),
          shard_(shard),
          name_filter_(std::move(name_filter)),
          own_style_(own_style),
          fault_(std::move(fault)) {}

    /// Device::best().
    [[nodiscard]] Device device() const { return Device::best(); }
    /// @param what returns a description of what is wrong, empty if all is right
    /// @param at_end what it means when the process ends within the check; may be empty
    void check(const std::string& name, const std::function<std::string()>& what, const std::string& at_end = "") {
        run_check(name, what, Status::wrong, at_end);
    }
    /// The same for a feature that the library does not need.
    void check_unused(const std::string& name, const std::function<std::string()>& what,
                      const std::string& at_end = "") {
        run_check(name, what, Status::avoided, at_end);
    }
    /// The same for kernels of a given style. The library does not need those of the other style than the device's,
    /// unless DECLIVITY_WORKAROUNDS=0. They have less time, and after a timeout the rest is skipped: some drivers
    /// compile kernels of the other style for many minutes.
    void check_style(KernelStyle style, const std::string& name, const std::function<std::string()>& what);
    void fact(const std::string& name, const std::function<Fact()>& what);
    void fact(const std::string& name, const std::string& text);
    void skip(const std::string& name, const std::string& why);
    /// A driver fault that the library avoids.
    void avoided(const std::string& name, const std::string& text);

  private:
    void run_check(const std::string& name, const std::function<std::string()>& what, Status failure_status,
                   const std::string& at_end = "");
    /// Returns whether this process runs the check.
    bool begin(const std::string& name, Status failure_status, const std::string& at_end = "");
    void end(const std::string& name, Status status, const std::string& text, const Json& metrics = Json::object());

    std::function<void(const Json&)> emit_;
    std::size_t first_, at_ = 0;
    Shard shard_;
    std::string name_filter_;
    bool own_style_, other_style_ = false;  // other_style_: the check uses kernels of the other style
    std::string fault_;
};

struct Section {
    std::string_view name, about;
    void (*run)(DoctorRun&);
    std::size_t parts = 1;   ///< max number of parallel processes that share its checks
    bool exclusive = false;  ///< must run alone: needs the device's memory, or measures time
    bool bench = false;      ///< only with --bench
};

/// In the order of execution; the first one is `device`.
std::span<const Section> sections();

/// Returns whether DECLIVITY_WORKAROUNDS=0 disables driver workarounds.
bool workarounds_off();

void examine_device(DoctorRun& run);
void examine_arithmetic(DoctorRun& run);
void examine_maths(DoctorRun& run);
void examine_groups(DoctorRun& run);
void examine_atomics(DoctorRun& run);
void examine_arguments(DoctorRun& run);
void examine_half(DoctorRun& run);
void examine_memory(DoctorRun& run);
void examine_queues(DoctorRun& run);
void examine_elementwise(DoctorRun& run);
void examine_copies(DoctorRun& run);
void examine_random(DoctorRun& run);
void examine_reduce(DoctorRun& run);
void examine_rows(DoctorRun& run);
void examine_pool2d(DoctorRun& run);
void examine_optimizers(DoctorRun& run);
void examine_matmul(DoctorRun& run);
void examine_conv2d(DoctorRun& run);
void examine_training(DoctorRun& run);
void examine_faults(DoctorRun& run);
void measure(DoctorRun& run);

}  // namespace declivity::tools::doctor
