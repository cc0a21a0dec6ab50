// Layer 5, private. Class labels: the elements that they select, by comparison with all classes.
#pragma once

#include <limits>
#include <string_view>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::detail {

inline void require_labels(std::string_view function, const Tensor& labels) {
    if (labels.dtype() != DType::i32 && labels.dtype() != DType::i64)
        throw TypeError(fmt::format("{}: expected labels of an integer type (i8 to i64, u8 to u64), got {}", function,
                                    name_of(labels.dtype())));
}

/// Returns whether labels are of an integer type without kernel support, such as those of images: convert them first.
inline bool is_narrow(const Tensor& labels) {
    return is_integer(labels.dtype()) && labels.dtype() != DType::i32 && labels.dtype() != DType::i64;
}

/// The labels with a new last axis of size 1.
inline Tensor as_column(const Tensor& labels) {
    Shape shape = labels.shape();
    shape.push_back(1);
    return reshape(labels, shape);
}

/// One-hot encoding as bool: whether each of 0, 1, ..., classes - 1, along a new last axis, is the label.
inline Tensor is_label(const Tensor& labels, std::int64_t classes) {
    return as_column(labels) == arange(0, classes, 1, {labels.dtype(), labels.device()});
}

/// x[..., label] for labels (...) and x (..., C), which broadcasts. NaN, as is its gradient, for a label outside of [0,
/// C).
inline Tensor gather_labels(const Tensor& x, const Tensor& labels) {
    const std::int64_t classes = x.size(-1);
    const Tensor out_of_range = as_column(logical_or(labels < 0, labels >= classes));
    const Tensor factor =
        where(out_of_range, full({}, std::numeric_limits<double>::quiet_NaN(), {x.dtype(), x.device()}),
              full({}, 1, {x.dtype(), x.device()}));
    return sum(where(logical_or(is_label(labels, classes), out_of_range), x * factor, 0), {-1});
}

/// (N, C, ...) as rows (N ..., C).
inline Tensor rows_of_classes(const Tensor& x) {
    Dims order{0};
    std::int64_t rows = x.size(0);
    for (int axis = 2; axis < x.rank(); ++axis) {
        order.push_back(axis);
        rows *= x.size(axis);
    }
    order.push_back(1);
    return x.rank() == 2 ? x : reshape(permute(x, order), {rows, x.size(1)});
}

/// Shape of labels for x (N, C, ...).
inline Shape without_classes(const Shape& shape) {
    Shape rest = shape;
    rest.erase(1);
    return rest;
}

/// Checks x (N, C, ...), labels (N, ...), weight (C) or undefined.
inline void require_classes(std::string_view function, std::string_view name, const Tensor& x, const Tensor& weight) {
    if (x.rank() < 2)
        throw ShapeError(fmt::format("{}: expected {} of shape (N, C, ...), got {}", function, name, x.shape().str()));
    if (x.size(1) == 0)
        throw ShapeError(
            fmt::format("{}: expected at least one class, got {} of shape {}", function, name, x.shape().str()));
    if (weight.defined()) ops::require_shape(function, "the weight", weight.shape(), {x.size(1)});
}

struct LabelLosses {
    Tensor losses;   ///< -x[label] weight[label]; 0 if the label is ignored
    Tensor weights;  ///< weight[label]; 0 if the label is ignored
    Tensor valid;    ///< bool: false if the label is ignored

    /// @param x rows (R, C) of f32 or f64; labels (R)
    LabelLosses(const Tensor& x, const Tensor& labels, const Tensor& weight, std::int64_t ignore_index) {
        const Tensor index = labels.to(DType::i64);
        valid = index != ignore_index;
        const Tensor safe = where(valid, index, 0);
        weights = weight.defined() ? where(valid, gather_labels(weight, safe), 0) : valid.to(x.dtype());
        losses = where(valid, -gather_labels(x, safe), 0);
        if (weight.defined()) losses = losses * weights;
    }
};

}  // namespace declivity::detail
