// Layer 5, private. Mistakes in what a trainer is given.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include <declivity/train/trainer.hpp>

namespace declivity::train {

/// @throws ValueError when the optimizer holds none of the model's parameters, which would learn nothing
void require_parameters_of(const nn::Module& model, const optim::Optimizer& optimizer);

/// Of the first parameter; f32 where there is none.
DType type_of(const nn::Module& model);

/// The model's outputs: a network of f16 or bf16 (`dtype`) gets its floating inputs so, and gives its outputs in f32,
/// for loss and figures.
Tensor outputs_of(const Model& model, DType dtype, std::vector<Tensor> inputs);

/// What ops::add_classification notes of labels, on the host.
using NotedLabels = std::array<std::int64_t, 4>;

/// Labels that may be no classes: those that were noted; or, of scores (N, C, ...) and a target (N, ...) of integers,
/// what lies outside of [0, C), a few of it. The latter waits.
std::vector<std::int64_t> suspects(const NotedLabels& noted);
std::vector<std::int64_t> suspects(const Tensor& scores, const Tensor& target);

/// Of these labels one that the loss refuses: it gives no number for it, whatever the scores. None where all are labels
/// that the loss is told to ignore.
/// @param scores (N, C, ...), whose values do not matter; @param type of the labels
std::optional<std::int64_t> refused_label(const Loss& loss, const Tensor& scores, DType type,
                                          const std::vector<std::int64_t>& suspected);

/// The same after an evaluation. @throws ValueError when one of them is such a label
void require_labels(const Loss& loss, const Tensor& scores, DType type, const Tensor& noted);

}  // namespace declivity::train
