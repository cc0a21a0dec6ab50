// Layer 1, private. Texts of kernels.
#pragma once

#include <string>

#include <declivity/runtime/launch.hpp>

namespace declivity::detail {

/// Returns the full text of a kernel file with #include lines expanded.
/// @throws DeviceError if the file or an included one does not exist
std::string kernel_source(const std::string& file);

/// DECLIVITY_DUMP_KERNELS: writes the kernel's expanded program, with the options in its first lines, to that folder.
/// @throws ValueError if the folder does not exist or is not writable
void dump_kernel(const KernelSpec& spec);

/// Build options of every program.
extern const char* const kBuildOptions;

}  // namespace declivity::detail
