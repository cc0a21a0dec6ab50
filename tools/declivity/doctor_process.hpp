// A section of `declivity doctor` in a process of its own.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {

struct SectionReport {
    const Section* section = nullptr;
    std::vector<Json> findings;  ///< {"name", "status", "text", "figures"}, and of parts "at"
    std::string printed;         ///< by the driver, on standard output and standard error
    double seconds = 0;          ///< of parts the longest one's
    bool no_device = false;      ///< there is none; the last finding says so

    [[nodiscard]] int count(Status status) const;
};

/// Runs a part of it in child processes: a second one goes on behind the check in which the first one died, and so
/// forth.
/// @param arguments of the program, for the child
/// @param silence after which a child that says nothing is ended. Checks of kernels that the device is not given, see
/// Examination::check_form(), have a quarter of it each, and this long in all
/// @param begins is told of each check that begins
SectionReport run_apart(const Section& section, Part part, const std::vector<std::string>& arguments,
                        std::chrono::milliseconds silence, const std::function<void(const std::string& check)>& begins);

/// The parts of one section together: findings in the order of the checks.
SectionReport merged(std::vector<SectionReport> parts);

/// Runs it here: what the child does. Findings go to standard output, a line each; what others print there goes to
/// standard error.
/// @return the exit code
int run_here(const Section& section, std::size_t first, Part part, const std::string& only, bool own_form,
             const std::string& fault);

}  // namespace declivity::tools::doctor
