// Includes every public header except runtime/interop.hpp, which includes the OpenCL headers, and the operators on
// views in ops/, on which functions.hpp is built.
#pragma once

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/data/batch.hpp>
#include <declivity/data/cifar10.hpp>
#include <declivity/data/collate.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/dataset_ref.hpp>
#include <declivity/data/example.hpp>
#include <declivity/data/idx.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/data/random.hpp>
#include <declivity/data/sampler.hpp>
#include <declivity/data/synthetic_digits.hpp>
#include <declivity/data/transforms.hpp>
#include <declivity/export.hpp>
#include <declivity/functions/activation.hpp>
#include <declivity/functions/arrangement.hpp>
#include <declivity/functions/attention.hpp>
#include <declivity/functions/audio.hpp>
#include <declivity/functions/complex.hpp>
#include <declivity/functions/conv.hpp>
#include <declivity/functions/conv_nd.hpp>
#include <declivity/functions/dropout.hpp>
#include <declivity/functions/elementwise.hpp>
#include <declivity/functions/embedding.hpp>
#include <declivity/functions/fft.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/indexing.hpp>
#include <declivity/functions/linalg.hpp>
#include <declivity/functions/loss.hpp>
#include <declivity/functions/math.hpp>
#include <declivity/functions/matmul.hpp>
#include <declivity/functions/norm.hpp>
#include <declivity/functions/padding.hpp>
#include <declivity/functions/pool.hpp>
#include <declivity/functions/pool_nd.hpp>
#include <declivity/functions/products.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/functions/recurrent.hpp>
#include <declivity/functions/reduce.hpp>
#include <declivity/functions/resize.hpp>
#include <declivity/functions/scan.hpp>
#include <declivity/functions/shape.hpp>
#include <declivity/functions/signal.hpp>
#include <declivity/functions/softmax.hpp>
#include <declivity/functions/sort.hpp>
#include <declivity/functions/statistics.hpp>
#include <declivity/functions/vision.hpp>
#include <declivity/io/atomic_file.hpp>
#include <declivity/io/canvas.hpp>
#include <declivity/io/gguf.hpp>
#include <declivity/io/gzip_file.hpp>
#include <declivity/io/host_array.hpp>
#include <declivity/io/image.hpp>
#include <declivity/io/input_file.hpp>
#include <declivity/io/lora.hpp>
#include <declivity/io/png.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/io/safetensors_reader.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/models/bert.hpp>
#include <declivity/models/causal_lm.hpp>
#include <declivity/models/config.hpp>
#include <declivity/models/generate.hpp>
#include <declivity/models/gpt2.hpp>
#include <declivity/models/keywords.hpp>
#include <declivity/models/llama.hpp>
#include <declivity/models/ranking_loss.hpp>
#include <declivity/models/recommend.hpp>
#include <declivity/models/text_classifier.hpp>
#include <declivity/models/translator.hpp>
#include <declivity/models/vit.hpp>
#include <declivity/nn/activation.hpp>
#include <declivity/nn/attention.hpp>
#include <declivity/nn/audio.hpp>
#include <declivity/nn/batch_norm.hpp>
#include <declivity/nn/bilinear.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/nn/conv1d.hpp>
#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/conv_nd.hpp>
#include <declivity/nn/conv_transpose2d.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/functional.hpp>
#include <declivity/nn/fuse.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/nn/kv_cache.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/lora.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/nn/lstm_cell.hpp>
#include <declivity/nn/module.hpp>
#include <declivity/nn/module_list.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/nn/normalization.hpp>
#include <declivity/nn/padding.hpp>
#include <declivity/nn/parameter.hpp>
#include <declivity/nn/parametrize.hpp>
#include <declivity/nn/pool2d.hpp>
#include <declivity/nn/pool_nd.hpp>
#include <declivity/nn/recurrent.hpp>
#include <declivity/nn/replicate.hpp>
#include <declivity/nn/sequential.hpp>
#include <declivity/nn/spectral_norm.hpp>
#include <declivity/nn/transformer.hpp>
#include <declivity/nn/upsample.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/fft.hpp>
#include <declivity/ops/function.hpp>
#include <declivity/ops/half.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/ops/scalar.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/ops/tuning.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/optim/adadelta.hpp>
#include <declivity/optim/adagrad.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/clip_grad.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/optim/radam.hpp>
#include <declivity/optim/rmsprop.hpp>
#include <declivity/optim/schedule.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/ceilings.hpp>
#include <declivity/runtime/command_list.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/driver_faults.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/default_device.hpp>
#include <declivity/tensor/function_call.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/grad_mode.hpp>
#include <declivity/tensor/indexing.hpp>
#include <declivity/tensor/spatial.hpp>
#include <declivity/tensor/state_dict.hpp>
#include <declivity/tensor/tensor.hpp>
#include <declivity/tensor/tensors_of.hpp>
#include <declivity/text/corpus.hpp>
#include <declivity/text/encoding.hpp>
#include <declivity/text/generation.hpp>
#include <declivity/text/metrics.hpp>
#include <declivity/text/ngram.hpp>
#include <declivity/text/sequence_dataset.hpp>
#include <declivity/text/tokenizer.hpp>
#include <declivity/text/vocabulary.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/epoch_metrics.hpp>
#include <declivity/train/loss_value.hpp>
#include <declivity/train/metric.hpp>
#include <declivity/train/metrics.hpp>
#include <declivity/train/plot.hpp>
#include <declivity/train/step.hpp>
#include <declivity/train/trainer.hpp>
#include <declivity/version.hpp>

// Groups of the documentation: one for each folder, of functions for each header, of modules for each subject.

/// @defgroup tensor Tensors
/// Tensors, their types, creation, basic indexing, random numbers and gradients. Layer 3.

/// @defgroup functions Functions of tensors
/// The catalogue of differentiable functions, by subject. Layer 5.

/// @defgroup autograd Automatic differentiation
/// Backward passes, gradients of any order, custom functions and checkpoints. Layer 4.

/// @defgroup capture Graph capture
/// Steps that are recorded once and replayed. Layer 5.

/// @defgroup nn Modules of neural networks
/// Modules with parameters, by subject. Layer 6.

/// @defgroup nn_module Modules, containers and parameters
/// @ingroup nn

/// @defgroup nn_linear Linear layers
/// @ingroup nn

/// @defgroup nn_conv Convolution layers
/// @ingroup nn

/// @defgroup nn_pool Pooling and upsampling layers
/// @ingroup nn

/// @defgroup nn_norm Normalisation layers
/// @ingroup nn

/// @defgroup nn_activation Activations, and functions as layers
/// @ingroup nn

/// @defgroup nn_attention Attention and transformers
/// @ingroup nn

/// @defgroup nn_recurrent Recurrent layers
/// @ingroup nn

/// @defgroup nn_embedding Embedding layers
/// @ingroup nn

/// @defgroup nn_dropout Dropout layers
/// @ingroup nn

/// @defgroup nn_padding Padding layers
/// @ingroup nn

/// @defgroup nn_audio Spectrograms as layers
/// @ingroup nn

/// @defgroup nn_loss Losses as modules
/// @ingroup nn

/// @defgroup optim Optimizers and learning rate schedules
/// Optimizers, gradient clipping and learning rate schedules. Layer 6.

/// @defgroup data Data sets and loaders
/// Data sets, samplers, transforms, batches and loaders. Layer 7.

/// @defgroup train Training
/// The trainer, its callbacks and metrics. Layer 7.

/// @defgroup models Models
/// Language models with the weights of Hugging Face, classifiers, translation and recommenders. Layer 7.

/// @defgroup text Text
/// Tokenizers, vocabularies, data sets of sequences, text generation and metrics. Layer 7.

/// @defgroup io Files
/// Formats of weights, arrays and images. Layer 6.

/// @defgroup ops Operators on views
/// Operators without gradients, on which the functions are built, and element types. Layer 2.

/// @defgroup runtime Devices, memory and errors
/// OpenCL devices, memory, kernels, errors and profiling. Layer 1.
