// What the sections of `declivity doctor` are made of. Each runs in a process of its own, whose findings are lines of
// JSON (doctor_process.hpp): a driver may crash or hang.
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
    right,    ///< as it should be
    fact,     ///< nothing to judge
    skipped,  ///< cannot be examined here
    avoided,  ///< wrong, and of no harm: the library does without it
    wrong,
};
std::string_view name_of(Status status);
Status status_of(std::string_view name);

/// What a fact says, in words and in figures.
struct Fact {
    std::string text;
    Json metrics = Json::object();
};

/// A share of a section's checks.
struct Part {
    std::size_t number = 0, of = 1;
};

/// Where a section says what it finds. An exception out of a check is a finding, and the next check goes on.
class Examination {
  public:
    /// @param first checks before this one were done by a process that died in one
    /// @param part of the checks those whose number is this one modulo its number of parts
    /// @param only checks that have these words in their names
    /// @param own_form without kernels in the form for the other family, see check_form()
    /// @param fault for tests: "crash", "hang", "throw" or "exit" in the second check; "slow" in the first one of the
    /// other family's form; empty: none
    Examination(std::function<void(const Json&)> say, std::size_t first, Part part, std::string only, bool own_form,
                std::string fault)
        : say_(std::move(say)),
          first_(first),
          part_(part),
          only_(std::move(only)),
          own_form_(own_form),
          fault_(std::move(fault)) {}

    /// Device::best().
    [[nodiscard]] Device device() const { return Device::best(); }
    /// @param what gives what is wrong, nothing where all is right
    /// @param at_end what it means when the process ends within it; empty: that is said without a meaning
    void check(const std::string& name, const std::function<std::string()>& what, const std::string& at_end = "") {
        judge(name, what, Status::wrong, at_end);
    }
    /// The same of what the library does not need.
    void check_unused(const std::string& name, const std::function<std::string()>& what,
                      const std::string& at_end = "") {
        judge(name, what, Status::avoided, at_end);
    }
    /// The same of kernels in the form for a family: of those for the other one than the device's the library has no
    /// need, unless DECLIVITY_WORKAROUNDS=0. So they get less time, and once one takes longer the others are left out:
    /// some drivers take many minutes to compile what they are not meant to get.
    void check_form(KernelStyle style, const std::string& name, const std::function<std::string()>& what);
    void fact(const std::string& name, const std::function<Fact()>& what);
    void fact(const std::string& name, const std::string& text);
    void skip(const std::string& name, const std::string& why);
    /// A fault of the driver's that the library avoids.
    void avoided(const std::string& name, const std::string& text);

  private:
    void judge(const std::string& name, const std::function<std::string()>& what, Status otherwise,
               const std::string& at_end = "");
    /// Whether it is to be done here.
    bool begin(const std::string& name, Status otherwise, const std::string& at_end = "");
    void end(const std::string& name, Status status, const std::string& text, const Json& metrics = Json::object());

    std::function<void(const Json&)> say_;
    std::size_t first_, at_ = 0;
    Part part_;
    std::string only_;
    bool own_form_, other_form_ = false;  // whether the check is one of the other family's form
    std::string fault_;
};

struct Section {
    std::string_view name, about;
    void (*run)(Examination&);
    std::size_t parts = 1;  ///< processes that share its checks, where several run at once
    bool alone = false;     ///< while nothing else runs: it needs the device's memory, or measures time
    bool bench = false;     ///< with --bench only
};

/// In the order in which they run; the first one is `device`.
std::span<const Section> sections();

/// Whether DECLIVITY_WORKAROUNDS=0 takes back what the library does about faults of drivers.
bool workarounds_off();

void examine_device(Examination& examination);
void examine_arithmetic(Examination& examination);
void examine_maths(Examination& examination);
void examine_groups(Examination& examination);
void examine_atomics(Examination& examination);
void examine_arguments(Examination& examination);
void examine_half(Examination& examination);
void examine_memory(Examination& examination);
void examine_queues(Examination& examination);
void examine_elementwise(Examination& examination);
void examine_copies(Examination& examination);
void examine_random(Examination& examination);
void examine_reduce(Examination& examination);
void examine_rows(Examination& examination);
void examine_pool2d(Examination& examination);
void examine_optimizers(Examination& examination);
void examine_matmul(Examination& examination);
void examine_conv2d(Examination& examination);
void examine_training(Examination& examination);
void examine_faults(Examination& examination);
void measure(Examination& examination);

}  // namespace declivity::tools::doctor
