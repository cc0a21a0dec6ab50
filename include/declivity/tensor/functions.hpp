// Layer 3. The catalogue of differentiable functions: all headers of functions/.
//
// Every function checks shapes, types and devices immediately and throws ShapeError, TypeError, DeviceError or
// ValueError with its own name in front. f16 and bf16 are computed in f32.
//
// Every function of floating types is differentiable to any order: with GradOptions::create_graph gradients are
// composed of functions of this catalogue, otherwise they have kernels of their own. No gradient flows to labels and
// running statistics, or through comparisons, argmax, integers and memory access (Tensor::view()). An in-place write is
// refused if a gradient would be lost.
#pragma once

#include <declivity/tensor/functions/activation.hpp>
#include <declivity/tensor/functions/arrangement.hpp>
#include <declivity/tensor/functions/attention.hpp>
#include <declivity/tensor/functions/audio.hpp>
#include <declivity/tensor/functions/complex.hpp>
#include <declivity/tensor/functions/conv.hpp>
#include <declivity/tensor/functions/conv_nd.hpp>
#include <declivity/tensor/functions/dropout.hpp>
#include <declivity/tensor/functions/elementwise.hpp>
#include <declivity/tensor/functions/embedding.hpp>
#include <declivity/tensor/functions/fft.hpp>
#include <declivity/tensor/functions/indexing.hpp>
#include <declivity/tensor/functions/linalg.hpp>
#include <declivity/tensor/functions/loss.hpp>
#include <declivity/tensor/functions/math.hpp>
#include <declivity/tensor/functions/matmul.hpp>
#include <declivity/tensor/functions/norm.hpp>
#include <declivity/tensor/functions/padding.hpp>
#include <declivity/tensor/functions/pool.hpp>
#include <declivity/tensor/functions/pool_nd.hpp>
#include <declivity/tensor/functions/products.hpp>
#include <declivity/tensor/functions/recurrent.hpp>
#include <declivity/tensor/functions/reduce.hpp>
#include <declivity/tensor/functions/resize.hpp>
#include <declivity/tensor/functions/scan.hpp>
#include <declivity/tensor/functions/shape.hpp>
#include <declivity/tensor/functions/signal.hpp>
#include <declivity/tensor/functions/softmax.hpp>
#include <declivity/tensor/functions/sort.hpp>
#include <declivity/tensor/functions/statistics.hpp>
#include <declivity/tensor/functions/vision.hpp>
