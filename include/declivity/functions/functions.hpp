// Layer 5. The catalogue of differentiable functions: all headers of functions/. The test docs.examples evaluates the
// examples in their docstrings.
#pragma once

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

/// @addtogroup functions
/// Every function checks shapes, types and devices immediately and throws ShapeError, TypeError, DeviceError or
/// ValueError with its own name in front; an undefined tensor that is not optional gives ValueError. Other errors are
/// those of the device, such as OutOfMemory. f16 and bf16 are computed in f32.
///
/// Every function of floating types is differentiable to any order: with GradOptions::create_graph gradients are
/// composed of functions of this catalogue, otherwise they have kernels of their own. No gradient flows to labels and
/// running statistics, or through comparisons, argmax, integers and memory access (Tensor::view()). An in-place write
/// is refused if a gradient would be lost.
///
/// Examples write tensors as nested brackets, f32 unless another type precedes the name.
