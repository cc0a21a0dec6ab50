// Floor 3. The catalogue of differentiable functions.
//
// Elementwise functions broadcast as NumPy does. Every function checks shapes, types and devices at once and throws
// ShapeError, TypeError, DeviceError or ValueError with its own name in front. All but convolution and pooling take f16
// and bf16: in f32 arithmetic.
//
// Every function of floating numbers is differentiable. To any order (GradOptions::create_graph): +, - and * of tensors
// and numbers, division by a number, matmul, linear, the shape functions, sum, mean, global_avg_pool2d, dropout, and
// Tensor::clone() and to(). All others once: a backward through their gradient is refused. No gradient flows to labels
// and running statistics, or through comparisons, argmax, whole numbers and what is read as memory (Tensor::view()). A
// write in place is refused where a gradient would be lost.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/ops/expression.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

using ops::Function;

// ---- elementwise: one line each, all of them made from ops/elementwise_table.def. They take handles by value and let
//   go of them, so that what
// a chain such as relu(conv2d(x, w)) has only on its way need not be stored.

/// Any function of the table, with its inputs and parameters. How the functions below are made, and how to reach a
/// new row of the table.
/// @param called what errors call it, where that is not the name in the table
DECLIVITY_API Tensor elementwise(Function function, const std::vector<Tensor>& inputs,
                                 const std::vector<double>& parameters = {}, std::string_view called = {});

inline Tensor operator+(Tensor a, Tensor b) {
    return elementwise(Function::add, {std::move(a), std::move(b)}, {}, "operator+");
}
inline Tensor operator-(Tensor a, Tensor b) {
    return elementwise(Function::sub, {std::move(a), std::move(b)}, {}, "operator-");
}
inline Tensor operator*(Tensor a, Tensor b) {
    return elementwise(Function::mul, {std::move(a), std::move(b)}, {}, "operator*");
}
inline Tensor operator/(Tensor a, Tensor b) {
    return elementwise(Function::div, {std::move(a), std::move(b)}, {}, "operator/");
}
inline Tensor operator+(Tensor x, double p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
inline Tensor operator+(double p, Tensor x) {
    return elementwise(Function::add_scalar, {std::move(x)}, {p}, "operator+");
}
inline Tensor operator-(Tensor x, double p) {
    return elementwise(Function::add_scalar, {std::move(x)}, {-p}, "operator-");
}
inline Tensor operator*(Tensor x, double p) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
inline Tensor operator*(double p, Tensor x) {
    return elementwise(Function::mul_scalar, {std::move(x)}, {p}, "operator*");
}
/// x times 1 / p; of integers only where 1 / p is whole. @throws TypeError otherwise
DECLIVITY_API Tensor operator/(Tensor x, double p);
inline Tensor operator-(Tensor x) { return elementwise(Function::neg, {std::move(x)}, {}, "operator-"); }
inline Tensor operator-(double p, Tensor x) {
    return elementwise(Function::add_scalar, {-std::move(x)}, {p}, "operator-");
}
inline Tensor operator/(double p, Tensor x) {
    return elementwise(Function::mul_scalar, {elementwise(Function::reciprocal, {std::move(x)}, {}, "operator/")}, {p},
                       "operator/");
}

inline Tensor pow(Tensor a, Tensor b) { return elementwise(Function::pow, {std::move(a), std::move(b)}); }
inline Tensor pow(Tensor x, double exponent) {
    return elementwise(Function::pow_scalar, {std::move(x)}, {exponent}, "pow");
}
/// NaN wins; where both are equal, each gets half the gradient.
inline Tensor minimum(Tensor a, Tensor b) {
    return elementwise(Function::min, {std::move(a), std::move(b)}, {}, "minimum");
}
inline Tensor maximum(Tensor a, Tensor b) {
    return elementwise(Function::max, {std::move(a), std::move(b)}, {}, "maximum");
}
inline Tensor neg(Tensor x) { return elementwise(Function::neg, {std::move(x)}); }
inline Tensor abs(Tensor x) { return elementwise(Function::abs, {std::move(x)}); }
inline Tensor square(Tensor x) { return elementwise(Function::square, {std::move(x)}); }
inline Tensor sqrt(Tensor x) { return elementwise(Function::sqrt, {std::move(x)}); }
inline Tensor reciprocal(Tensor x) { return elementwise(Function::reciprocal, {std::move(x)}); }
inline Tensor exp(Tensor x) { return elementwise(Function::exp, {std::move(x)}); }
inline Tensor log(Tensor x) { return elementwise(Function::log, {std::move(x)}); }
inline Tensor tanh(Tensor x) { return elementwise(Function::tanh, {std::move(x)}); }
inline Tensor sigmoid(Tensor x) { return elementwise(Function::sigmoid, {std::move(x)}); }
inline Tensor relu(Tensor x) { return elementwise(Function::relu, {std::move(x)}); }
inline Tensor leaky_relu(Tensor x, double negative_slope = 0.01) {
    return elementwise(Function::leaky_relu, {std::move(x)}, {negative_slope});
}
/// x * Phi(x) with the normal distribution function Phi (Hendrycks, Gimpel 2016), not the tanh approximation.
inline Tensor gelu(Tensor x) { return elementwise(Function::gelu, {std::move(x)}); }
/// x * sigmoid(x), also called swish.
inline Tensor silu(Tensor x) { return elementwise(Function::silu, {std::move(x)}); }
/// min(max(x, low), high).
inline Tensor clamp(Tensor x, double low, double high) {
    return elementwise(Function::clamp, {std::move(x)}, {low, high});
}
inline Tensor equal(Tensor a, Tensor b) { return elementwise(Function::equal, {std::move(a), std::move(b)}); }
inline Tensor not_equal(Tensor a, Tensor b) { return elementwise(Function::not_equal, {std::move(a), std::move(b)}); }
inline Tensor less(Tensor a, Tensor b) { return elementwise(Function::less, {std::move(a), std::move(b)}); }
inline Tensor less_equal(Tensor a, Tensor b) { return elementwise(Function::less_equal, {std::move(a), std::move(b)}); }
inline Tensor greater(Tensor a, Tensor b) { return elementwise(Function::greater, {std::move(a), std::move(b)}); }
inline Tensor greater_equal(Tensor a, Tensor b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)});
}
// The same by their short names.
inline Tensor eq(Tensor a, Tensor b) { return elementwise(Function::equal, {std::move(a), std::move(b)}, {}, "eq"); }
inline Tensor ne(Tensor a, Tensor b) {
    return elementwise(Function::not_equal, {std::move(a), std::move(b)}, {}, "ne");
}
inline Tensor lt(Tensor a, Tensor b) { return elementwise(Function::less, {std::move(a), std::move(b)}, {}, "lt"); }
inline Tensor le(Tensor a, Tensor b) {
    return elementwise(Function::less_equal, {std::move(a), std::move(b)}, {}, "le");
}
inline Tensor gt(Tensor a, Tensor b) { return elementwise(Function::greater, {std::move(a), std::move(b)}, {}, "gt"); }
inline Tensor ge(Tensor a, Tensor b) {
    return elementwise(Function::greater_equal, {std::move(a), std::move(b)}, {}, "ge");
}
/// Where `condition` (bool) holds the element of a, elsewhere that of b.
inline Tensor where(Tensor condition, Tensor a, Tensor b) {
    return elementwise(Function::where, {std::move(condition), std::move(a), std::move(b)});
}

// ---- shape: no data moves, except where a dense copy is needed

/// Another shape of as many elements; one size may be -1 and is computed.
DECLIVITY_API Tensor reshape(const Tensor& x, const Shape& shape);
/// Joins the axes from `first` on: (N, C, H, W) becomes (N, C*H*W).
DECLIVITY_API Tensor flatten(const Tensor& x, std::int64_t first = 1);
/// Axis i of the result is axis order[i] of x.
DECLIVITY_API Tensor permute(const Tensor& x, const Dims& order);
/// Exchanges two axes.
DECLIVITY_API Tensor transpose(const Tensor& x, std::int64_t axis_a = -2, std::int64_t axis_b = -1);
/// Elements start, start + step, ... before `end` of one axis. Negative start and end count from the end.
DECLIVITY_API Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end,
                           std::int64_t step = 1);
/// Repeats axes of size 1.
DECLIVITY_API Tensor expand(const Tensor& x, const Shape& shape);
/// Joins along an existing axis.
DECLIVITY_API Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis);
/// The same, by its short name.
DECLIVITY_API Tensor cat(const std::vector<Tensor>& parts, std::int64_t axis = 0);
/// Adds `before[i]` and `after[i]` elements of `value` around axis i.
DECLIVITY_API Tensor pad(const Tensor& x, const Dims& before, const Dims& after, double value = 0);

// ---- reductions, over all axes when none are given

DECLIVITY_API Tensor sum(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor mean(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Largest element; several equal ones share the gradient.
DECLIVITY_API Tensor max(Tensor x, const Dims& axes = {}, bool keep_axes = false);
DECLIVITY_API Tensor min(Tensor x, const Dims& axes = {}, bool keep_axes = false);
/// Position (i64) of the first largest element along one axis.
DECLIVITY_API Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keep_axis = false);

// ---- softmax and losses

DECLIVITY_API Tensor softmax(const Tensor& x, std::int64_t axis = -1);
DECLIVITY_API Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);

enum class Reduction : std::uint8_t { mean, sum, none };

struct CrossEntropyOptions {
    Reduction reduction = Reduction::mean;
    double label_smoothing =
        0;  ///< in [0, 1): share of the target spread evenly over all classes (Szegedy et al. 2016, section 7)
    std::int64_t ignore_label = -100;  ///< rows with this label count for nothing
};
/// -log softmax(logits)[label]: logits (N, C), labels (N) of i32 or i64 in [0, C). A label outside of it makes the
/// loss NaN; the trainer says which it was.
DECLIVITY_API Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options = {});
/// (x - target)^2.
DECLIVITY_API Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// Binary cross entropy of sigmoid(logits) against targets in [0, 1], computed without overflow.
DECLIVITY_API Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean);

// ---- linear algebra

/// (..., M, K) x (..., K, N) -> (..., M, N); the axes in front broadcast. A vector counts as a row on the left and as
/// a column on the right, and its axis is dropped from the result.
DECLIVITY_API Tensor matmul(const Tensor& a, const Tensor& b);
/// x W^T + bias: x (..., in), weight (out, in), bias (out) or undefined.
DECLIVITY_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// ---- images

struct Conv2dOptions {
    Size2 stride = 1;   ///< vertical, horizontal
    Size2 padding = 0;  ///< zeros on both sides
    Size2 dilation = 1;
    std::int64_t groups = 1;  ///< input channel group i feeds output channel group i only
};
/// x (N, C, H, W), weight (O, C / groups, R, S), bias (O) or undefined -> (N, O, P, Q) with
/// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1. A cross-correlation: the filter is not flipped.
DECLIVITY_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const Conv2dOptions& options = {});

struct Pool2dOptions {
    Size2 window = 2;
    Size2 stride = 0;           ///< 0: as the window
    Size2 padding = 0;          ///< at most half the window
    bool count_padding = true;  ///< avg_pool2d: padded zeros count in the average
};
/// Largest of each window; ties go to the first.
DECLIVITY_API Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
DECLIVITY_API Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// Mean over H and W: (N, C, H, W) -> (N, C, 1, 1).
DECLIVITY_API Tensor global_avg_pool2d(const Tensor& x);

// ---- normalisation and regularisation

struct BatchNormOptions {
    bool training = true;   ///< normalise by the batch and update the running statistics; otherwise use these
    double momentum = 0.1;  ///< running = (1 - momentum) * running + momentum * batch
    double epsilon = 1e-5;
};
/// Normalises each channel (axis 1) of x (N, C, ...) and applies weight and bias (C) (Ioffe, Szegedy 2015). The
/// running statistics (C), variance with Bessel's correction, are updated in place.
DECLIVITY_API Tensor batch_norm(Tensor x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                const Tensor& running_variance, const BatchNormOptions& options = {});
/// Sets elements to 0 with this probability and divides the others by 1 - probability (Srivastava et al. 2014).
DECLIVITY_API Tensor dropout(const Tensor& x, double probability = 0.5);

}  // namespace declivity
