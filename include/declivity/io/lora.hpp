// Layer 6. Files of low-rank adapters (nn/lora.hpp), in the format of the Python package PEFT.
#pragma once

#include <filesystem>

#include <declivity/nn/lora.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Writes only the adapters of a model: adapter_model.safetensors, with names such as
/// "base_model.model.layers.0.q_proj.lora_A.weight", and adapter_config.json, with their options.
/// @throws ValueError for a model without adapters, or with adapters of different r or options, which one file cannot
/// represent; IoError
DECLIVITY_API void save_lora(const nn::Module& model, const std::filesystem::path& folder);

/// Loads adapters written by save_lora() or PEFT. A model without adapters gets those of adapter_config.json; a model
/// with adapters must have the same ones, of the same rank and not merged, and takes over lora_alpha, lora_dropout and
/// use_rslora of the file. Everything is read and validated before the model is changed: a call that throws leaves it
/// unchanged.
/// @throws FormatError, IoError; ValueError, ShapeError, TypeError, naming the file, if they do not match the model
DECLIVITY_API void load_lora(nn::Module& model, const std::filesystem::path& folder);

/// @}

}  // namespace declivity::io
