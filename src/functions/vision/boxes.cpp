// Boxes: areas, conversions, and non-maximum suppression.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/vision.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "autograd/decomposition.hpp"
#include "functions/support/flat_indices.hpp"

namespace declivity {
namespace {

void require_corners(const char* function, const Tensor& boxes) {
    if (boxes.rank() < 1 || boxes.size(-1) != 4)
        throw ShapeError(fmt::format("{}: expected boxes of shape (..., 4), got {}", function, boxes.shape().str()));
    if (boxes.dtype() == DType::boolean)
        throw TypeError(fmt::format("{}: expected boxes of a numeric type, got bool", function));
}

/// Non-maximum suppression on the host, in the type of the boxes, whose rounding decides at the threshold.
template <class T>
std::vector<std::int64_t> nms_on_host(const Tensor& boxes, const Tensor& scores,
                                      const std::vector<std::int64_t>& classes, double threshold) {
    const std::vector<T> corners = boxes.to_vector<T>(), score_values = scores.to_vector<T>();
    std::vector<std::int64_t> order(score_values.size()), kept;
    std::iota(order.begin(), order.end(), 0);
    const auto as_index = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    // NaN is treated as the largest.
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
        const T score_a = score_values[as_index(a)], score_b = score_values[as_index(b)];
        return (score_a != score_a) != (score_b != score_b) ? score_a != score_a : score_a > score_b;
    });
    const auto area = [&](const T* box) { return (box[2] - box[0]) * (box[3] - box[1]); };
    std::vector<char> removed(score_values.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (removed[as_index(order[i])] != 0) continue;
        kept.push_back(order[i]);
        const T* box = &corners[4 * as_index(order[i])];
        for (std::size_t j = i + 1; j < order.size(); ++j) {
            if (removed[as_index(order[j])] != 0) continue;
            if (!classes.empty() && classes[as_index(order[i])] != classes[as_index(order[j])]) continue;
            const T* other_box = &corners[4 * as_index(order[j])];
            const T width = std::max(T(0), std::min(box[2], other_box[2]) - std::max(box[0], other_box[0]));
            const T height = std::max(T(0), std::min(box[3], other_box[3]) - std::max(box[1], other_box[1]));
            const T intersection = width * height, iou = intersection / (area(box) + area(other_box) - intersection);
            if (static_cast<double>(iou) > threshold) removed[as_index(order[j])] = 1;
        }
    }
    return kept;
}

/// @param classes undefined: all boxes have the same class
Tensor suppressed(const char* name, const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                  double threshold) {
    ops::require_real(name, "boxes", boxes.dtype());
    if (boxes.rank() != 2 || boxes.size(1) != 4)
        throw ShapeError(fmt::format("{}: expected boxes of shape (N, 4), got {}", name, boxes.shape().str()));
    ops::require_shape(name, "scores", scores.shape(), {boxes.size(0)});
    ops::require_alike(name, "boxes", boxes.dtype(), boxes.device(), "scores", scores.dtype(), scores.device());
    std::vector<std::int64_t> class_values;
    if (classes.defined()) {
        detail::require_index(name, classes, boxes);
        ops::require_shape(name, "classes", classes.shape(), {boxes.size(0)});
        class_values = classes.to(DType::i64).to_vector<std::int64_t>();
    }
    const DType type = compute_type(boxes.dtype());
    const Tensor corners = boxes.detach().to(type), score_values = scores.detach().to(type);
    const auto kept = type == DType::f64 ? nms_on_host<double>(corners, score_values, class_values, threshold)
                                         : nms_on_host<float>(corners, score_values, class_values, threshold);
    return Tensor::from(kept, {static_cast<std::int64_t>(kept.size())}, boxes.device());
}

}  // namespace

Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
    const FunctionCall call("nms", {{"boxes", boxes}, {"scores", scores}}, {{"iou_threshold", iou_threshold}});
    call.require_defined({"boxes", "scores"});
    return call.result(suppressed("nms", boxes, scores, {}, iou_threshold));
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes, double iou_threshold) {
    const FunctionCall call("batched_nms", {{"boxes", boxes}, {"scores", scores}, {"classes", classes}},
                            {{"iou_threshold", iou_threshold}});
    call.require_defined({"boxes", "scores", "classes"});
    return call.result(suppressed("batched_nms", boxes, scores, classes, iou_threshold));
}

Tensor box_area(const Tensor& boxes) {
    const FunctionCall call("box_area", {{"boxes", boxes}});
    call.require_defined({"boxes"});
    require_corners("box_area", boxes);
    return call.result(detail::decomposed_in_f32(boxes, [](const Tensor& x) {
        const auto side = [&](std::int64_t first) { return select(x, -1, first + 2) - select(x, -1, first); };
        return side(0) * side(1);
    }));
}

Tensor box_convert(const Tensor& boxes, std::string_view from, std::string_view to) {
    const FunctionCall call("box_convert", {{"boxes", boxes}}, {{"from", from}, {"to", to}});
    call.require_defined({"boxes"});
    require_corners("box_convert", boxes);
    ops::require_real("box_convert", "boxes", boxes.dtype());
    for (const std::string_view form : {from, to})
        if (form != "xyxy" && form != "xywh" && form != "cxcywh")
            throw ValueError(
                fmt::format("box_convert: expected formats xyxy, xywh or cxcywh, got {} and {}", from, to));
    return call.result(detail::decomposed_in_f32(boxes, [&](const Tensor& x) {
        const Tensor first = slice(x, -1, 0, 2), last = slice(x, -1, 2, 4);
        if (from == to) return concat({first, last}, -1);
        const Tensor low = from == "cxcywh" ? first - last * 0.5 : first;
        const Tensor high = from == "xyxy" ? last : low + last;
        if (to == "xyxy") return concat({low, high}, -1);
        if (to == "xywh") return concat({low, high - low}, -1);
        return concat({(low + high) * 0.5, high - low}, -1);
    }));
}

Tensor clip_boxes_to_image(const Tensor& boxes, Size2 image_size) {
    const FunctionCall call("clip_boxes_to_image", {{"boxes", boxes}}, {{"image_size", image_size}});
    call.require_defined({"boxes"});
    require_corners("clip_boxes_to_image", boxes);
    const auto side = [&](std::int64_t which, std::int64_t end) { return clamp(select(boxes, -1, which), 0, end); };
    return call.result(
        stack({side(0, image_size[1]), side(1, image_size[0]), side(2, image_size[1]), side(3, image_size[0])}, -1));
}

}  // namespace declivity
