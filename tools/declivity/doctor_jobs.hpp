// Sections of `declivity doctor`, several processes at a time: most of their time goes into compiling kernels, which a
// driver does on one core.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "doctor_process.hpp"

namespace declivity::tools::doctor {

/// Processes at once where the user says nothing: a core each, 8 at most.
std::size_t default_jobs();

/// Runs the sections; those that must run alone first, and the bench last.
/// @param arguments of the program, for the children; @param silence see run_apart()
/// @param begins is told of each check that begins; one call at a time
/// @param ended is told of each section, in the order of `sections`; false ends the whole behind the first one
/// @throws whatever run_apart() does
void run_sections(const std::vector<const Section*>& sections, const std::vector<std::string>& arguments,
                  std::chrono::milliseconds silence, std::size_t jobs,
                  const std::function<void(const Section& section, const std::string& check)>& begins,
                  const std::function<bool(SectionReport report)>& ended);

}  // namespace declivity::tools::doctor
