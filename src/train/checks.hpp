// Layer 7, private. Checks of a trainer's arguments.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include <declivity/train/trainer.hpp>

namespace declivity::train {

/// @throws ValueError if the optimizer has none of the model's parameters, which would not be trained
void require_parameters_of(const nn::Module& model, const optim::Optimizer& optimizer);

/// Type of the first parameter; f32 if there is none.
DType type_of(const nn::Module& model);

/// Outputs of the model: for a network of f16 or bf16 (`dtype`) floating-point inputs are converted to that type, and
/// outputs to f32, for loss and metrics.
Tensor outputs_of(const Model& model, DType dtype, std::vector<Tensor> inputs);

/// Label statistics of ops::add_classification, on the host.
using LabelErrors = std::array<std::int64_t, 4>;

/// Labels that may be out of range: those that the device recorded; or, for scores (N, C, ...) and an integer target
/// (N, ...), a few of those outside of [0, C). The latter synchronises.
std::vector<std::int64_t> suspect_labels(const LabelErrors& label_errors);
std::vector<std::int64_t> suspect_labels(const Tensor& scores, const Tensor& target);

/// One of the suspect labels for which the loss gives NaN or throws, whatever the scores; none if the loss ignores
/// all of them.
/// @param scores (N, C, ...), whose values do not matter; @param type of the labels
std::optional<std::int64_t> refused_label(const Loss& loss, const Tensor& scores, DType type,
                                          const std::vector<std::int64_t>& suspects);

/// Checks the labels after an evaluation. @throws ValueError if the loss rejects one of them
void require_labels(const Loss& loss, const Tensor& scores, DType type, const Tensor& label_errors);

}  // namespace declivity::train
