// Runs a section of `declivity doctor` in a child process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {

struct SectionReport {
    const Section* section = nullptr;
    std::vector<Json> findings;  ///< {"name", "status", "text", "figures"}, and "at" for parts
    std::string printed;         ///< output of the driver, on standard output and standard error
    double seconds = 0;          ///< of the longest part
    bool no_device = false;      ///< there is no device; the last finding says so

    [[nodiscard]] int count(Status status) const;
};

/// Runs a part of the section in child processes: if one dies, the next one resumes after the check that killed it.
/// @param arguments of the program, for the child
/// @param silence time without output after which a child is killed. Kernels of the other style, see
/// DoctorRun::check_style(), have a quarter of it each, and this long in total
/// @param begins called at the beginning of each check
SectionReport run_in_process(const Section& section, Shard shard, const std::vector<std::string>& arguments,
                             std::chrono::milliseconds silence,
                             const std::function<void(const std::string& check)>& begins);

/// Merges the parts of one section: findings in the order of the checks.
SectionReport merged(std::vector<SectionReport> parts);

/// Runs the section in this process (the child). Findings go to standard output, one per line; other output there is
/// redirected to standard error.
/// @return the exit code
int run_here(const Section& section, std::size_t first, Shard shard, const std::string& only, bool own_style,
             const std::string& fault);

}  // namespace declivity::tools::doctor
