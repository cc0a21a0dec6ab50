// Layer 6. State dicts to and from safetensors files.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <declivity/io/safetensors.hpp>
#include <declivity/tensor/state_dict.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Writes a state dict as a standard safetensors file. Synchronises.
/// @throws ValueError for a duplicate name or an undefined tensor; IoError, with the old file unchanged
DECLIVITY_API void save(const std::filesystem::path& path, const StateDict& state,
                        const std::map<std::string, std::string>& metadata = {});
/// Loads a safetensors file to a device. @throws FormatError, IoError, OutOfMemory
DECLIVITY_API StateDict load(const std::filesystem::path& path, const std::optional<Device>& device = std::nullopt);

/// Copies a tensor to the host. Synchronises.
DECLIVITY_API HostArray to_host(const Tensor& tensor);
/// Copies an array to a device, the default one if none is given.
DECLIVITY_API Tensor to_device(const HostArray& array, const std::optional<Device>& device = std::nullopt);

/// @}

}  // namespace declivity::io
