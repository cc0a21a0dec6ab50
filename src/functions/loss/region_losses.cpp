// Losses of regions: probability maps, and boxes.
#include <array>
#include <cmath>
#include <numbers>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

/// (N, C, ...) as (N, C, rest).
Tensor as_regions(std::string_view function, const Tensor& x) {
    if (x.rank() < 2)
        throw ShapeError(fmt::format("{}: expected x of shape (N, C, ...), got {}", function, x.shape().str()));
    std::int64_t rest = 1;
    for (int axis = 2; axis < x.rank(); ++axis) rest *= x.size(axis);
    return reshape(x, {x.size(0), x.size(1), rest});
}

/// x1, y1, x2, y2 along the last axis.
struct Boxes {
    Tensor x1, y1, x2, y2;

    explicit Boxes(const Tensor& boxes)
        : x1(select(boxes, -1, 0)), y1(select(boxes, -1, 1)), x2(select(boxes, -1, 2)), y2(select(boxes, -1, 3)) {}
    Boxes(Tensor left, Tensor top, Tensor right, Tensor bottom)
        : x1(std::move(left)), y1(std::move(top)), x2(std::move(right)), y2(std::move(bottom)) {}
    [[nodiscard]] Tensor width() const { return x2 - x1; }
    [[nodiscard]] Tensor height() const { return y2 - y1; }
    [[nodiscard]] Tensor area() const { return width() * height(); }
};

Boxes intersect(const Boxes& a, const Boxes& b) {
    return {maximum(a.x1, b.x1), maximum(a.y1, b.y1), minimum(a.x2, b.x2), minimum(a.y2, b.y2)};
}
Boxes enclose(const Boxes& a, const Boxes& b) {
    return {minimum(a.x1, b.x1), minimum(a.y1, b.y1), maximum(a.x2, b.x2), maximum(a.y2, b.y2)};
}

void require_boxes(std::string_view function, std::string_view name, const Tensor& boxes) {
    if (boxes.rank() < 1 || boxes.rank() > 2 || boxes.size(-1) != 4)
        throw ShapeError(
            fmt::format("{}: expected {} of shape (N, 4) or (4), got {}", function, name, boxes.shape().str()));
}

/// Common terms of the losses of box pairs.
struct BoxPair {
    DType type;
    Boxes a, b;
    Tensor intersection, union_area;  // areas

    BoxPair(std::string_view function, const Tensor& boxes1, const Tensor& boxes2)
        : type(checked(function, boxes1, boxes2)), a(upcast(boxes1)), b(upcast(boxes2)) {
        const Boxes common = intersect(a, b);
        const Tensor overlap = logical_and(common.x2 > common.x1, common.y2 > common.y1);
        intersection = where(overlap, common.area(), 0);
        union_area = a.area() + b.area() - intersection;
    }
    /// 1 - iou + the normalised distance of the centres.
    [[nodiscard]] Tensor distance_loss(double eps) const {
        const Boxes enclosing = enclose(a, b);
        const Tensor centre_distance =
            square((a.x1 + a.x2 - b.x1 - b.x2) * 0.5) + square((a.y1 + a.y2 - b.y1 - b.y2) * 0.5);
        return 1 - iou(eps) + centre_distance / (square(enclosing.width()) + square(enclosing.height()) + eps);
    }
    [[nodiscard]] Tensor iou(double eps) const { return intersection / (union_area + eps); }

  private:
    static DType checked(std::string_view function, const Tensor& boxes1, const Tensor& boxes2) {
        require_boxes(function, "boxes1", boxes1);
        ops::require_shape(function, "boxes2", boxes2.shape(), boxes1.shape());
        return detail::loss_type(function, "boxes1", boxes1, {boxes2});
    }
};

/// The mean of no boxes is 0, like torchvision's.
Tensor reduced(const Tensor& losses, Reduction reduction, DType type) {
    const bool no_boxes = reduction == Reduction::mean && losses.numel() == 0;
    return detail::reduced(losses, no_boxes ? Reduction::sum : reduction).to(type);
}

}  // namespace

Tensor dice_loss(const Tensor& x, const Tensor& target, double smooth, Reduction reduction) {
    const FunctionCall call("dice_loss", {{"x", x}, {"target", target}},
                            {{"smooth", smooth}, {"reduction", reduction}});
    call.require_defined({"x", "target"});
    const DType type = detail::pair_type("dice_loss", x, target);
    const Tensor p = upcast(as_regions("dice_loss", x)), t = as_regions("dice_loss", target).to(compute_type(type));
    const Tensor losses = 1 - (2 * sum(p * t, {2}) + smooth) / (sum(p, {2}) + sum(t, {2}) + smooth);
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor tversky_loss(const Tensor& x, const Tensor& target, const TverskyLossOptions& options) {
    const FunctionCall call("tversky_loss", {{"x", x}, {"target", target}},
                            {{"alpha", options.alpha},
                             {"beta", options.beta},
                             {"smooth", options.smooth},
                             {"reduction", options.reduction}});
    call.require_defined({"x", "target"});
    for (const double weight : {options.alpha, options.beta})
        if (!(weight >= 0 && std::isfinite(weight)))
            throw ValueError(fmt::format("tversky_loss: expected alpha and beta of at least 0, got {} and {}",
                                         options.alpha, options.beta));
    const DType type = detail::pair_type("tversky_loss", x, target);
    const Tensor p = upcast(as_regions("tversky_loss", x)),
                 t = as_regions("tversky_loss", target).to(compute_type(type));
    const Tensor hits = sum(p * t, {2}) + options.smooth;
    const Tensor missed = options.alpha * sum(p * (1 - t), {2}) + options.beta * sum((1 - p) * t, {2});
    return call.result(detail::reduced(1 - hits / (hits + missed), options.reduction).to(type));
}

Tensor box_iou(const Tensor& boxes1, const Tensor& boxes2) {
    const FunctionCall call("box_iou", {{"boxes1", boxes1}, {"boxes2", boxes2}});
    call.require_defined({"boxes1", "boxes2"});
    for (const auto& [name, boxes] : {std::pair<const char*, const Tensor&>{"boxes1", boxes1}, {"boxes2", boxes2}})
        if (boxes.rank() != 2 || boxes.size(1) != 4)
            throw ShapeError(fmt::format("box_iou: expected {} of shape (N, 4), got {}", name, boxes.shape().str()));
    const DType type = detail::loss_type("box_iou", "boxes1", boxes1, {boxes2});
    const Boxes a(reshape(upcast(boxes1), {boxes1.size(0), 1, 4})), b(upcast(boxes2));
    const Boxes common = intersect(a, b);
    const Tensor intersection = detail::at_least_zero(common.width()) * detail::at_least_zero(common.height());
    return call.result((intersection / (a.area() + b.area() - intersection)).to(type));
}

Tensor generalized_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2, Reduction reduction, double eps) {
    const FunctionCall call("generalized_box_iou_loss", {{"boxes1", boxes1}, {"boxes2", boxes2}},
                            {{"reduction", reduction}, {"eps", eps}});
    call.require_defined({"boxes1", "boxes2"});
    const BoxPair pair("generalized_box_iou_loss", boxes1, boxes2);
    const Tensor enclosing = enclose(pair.a, pair.b).area();
    const Tensor losses = 1 - pair.iou(eps) + (enclosing - pair.union_area) / (enclosing + eps);
    return call.result(reduced(losses, reduction, pair.type));
}

Tensor distance_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2, Reduction reduction, double eps) {
    const FunctionCall call("distance_box_iou_loss", {{"boxes1", boxes1}, {"boxes2", boxes2}},
                            {{"reduction", reduction}, {"eps", eps}});
    call.require_defined({"boxes1", "boxes2"});
    const BoxPair pair("distance_box_iou_loss", boxes1, boxes2);
    return call.result(reduced(pair.distance_loss(eps), reduction, pair.type));
}

Tensor complete_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2, Reduction reduction, double eps) {
    const FunctionCall call("complete_box_iou_loss", {{"boxes1", boxes1}, {"boxes2", boxes2}},
                            {{"reduction", reduction}, {"eps", eps}});
    call.require_defined({"boxes1", "boxes2"});
    const BoxPair pair("complete_box_iou_loss", boxes1, boxes2);
    const Tensor angle = atan(pair.b.width() / pair.b.height()) - atan(pair.a.width() / pair.a.height());
    const Tensor v = square(angle) * (4 / (std::numbers::pi * std::numbers::pi));
    const Tensor alpha = (v / (1 - pair.iou(eps) + v + eps)).detach();
    return call.result(reduced(pair.distance_loss(eps) + alpha * v, reduction, pair.type));
}

}  // namespace declivity
