// Layer 4. Files of low-rank adapters (nn/lora.hpp), as the Python package PEFT has them.
#pragma once

#include <filesystem>

#include <declivity/nn/lora.hpp>

namespace declivity::io {

/// Writes the adapters of a model alone: adapter_model.safetensors, with names such as
/// "base_model.model.layers.0.q_proj.lora_A.weight", and adapter_config.json, with their options.
/// @throws ValueError for a model without adapters, or with adapters of several r or options, which one file cannot
///         hold; IoError
DECLIVITY_API void save_lora(const nn::Module& model, const std::filesystem::path& folder);

/// Reads adapters that save_lora() or PEFT wrote. A model without adapters gets those of adapter_config.json; one that
/// has some must have the same, of the same rank and not merged, and takes lora_alpha, lora_dropout and use_rslora of
/// the file. Everything is read and compared before the model is changed: a call that throws leaves it as it was.
/// @throws FormatError, IoError; ValueError, ShapeError, TypeError, naming the file, where they do not fit the model
DECLIVITY_API void load_lora(nn::Module& model, const std::filesystem::path& folder);

}  // namespace declivity::io
