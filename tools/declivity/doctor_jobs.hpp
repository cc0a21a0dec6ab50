// Runs sections of `declivity doctor` in parallel processes: most of their time is kernel compilation, which drivers do
// on one core.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "doctor_process.hpp"

namespace declivity::tools::doctor {

/// Default number of processes: one per core, at most 8.
std::size_t default_jobs();

/// Runs the sections; those that must run alone first, and the benchmark last.
/// @param arguments of the program, for the child processes
/// @param silence see run_in_process()
/// @param begins called at the beginning of each check, one call at a time
/// @param ended called for each section, in the order of `sections`; returning false stops after the first one
/// @throws the exceptions of run_in_process()
void run_sections(const std::vector<const Section*>& sections, const std::vector<std::string>& arguments,
                  std::chrono::milliseconds silence, std::size_t jobs,
                  const std::function<void(const Section& section, const std::string& check)>& begins,
                  const std::function<bool(SectionReport report)>& ended);

}  // namespace declivity::tools::doctor
