// Layer 5. Object detection: region pooling, deformable convolution, and boxes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_vision Object detection
/// @ingroup functions
/// Region pooling, deformable convolution, and boxes, which are x1, y1, x2, y2 with x1 <= x2 and y1 <= y2. As in
/// torchvision.
///
/// Errors: ShapeError for operands of other shapes; TypeError for x of integers, boxes of another type than x or the
/// scores, and image indices or classes that are not integers; DeviceError for operands on different devices;
/// ValueError for sizes below 1 and unknown names.
/// @{

/// Options of roi_align().
struct RoiAlignOptions {
    double spatial_scale = 1;  ///< from box coordinates to those of x
    /// Samples along each axis of a bin; 0: the width of the bin, for which it synchronises to read the widest.
    std::int64_t sampling_ratio = 0;
    bool aligned = false;  ///< shifts by half a pixel to the left and up; otherwise boxes are at least 1 wide
    /// "avg", or "max" as ONNX defines it: the largest of the weighted pixels.
    std::string mode = "avg";
};
/// RoIAlign: means of bilinear samples in P x Q bins of each box (He et al. 2017): x (N, C, H, W), boxes (K, 5), whose
/// first element is the index of their image; or boxes (K, 4) and `images` (K) of integers -> (K, C, P, Q); 0 for an
/// image index out of range. No gradient flows to boxes.
/// Example: for x = `[[[[1, 2], [3, 4]]]]` and boxes = `[[0, 0, 0, 2, 2]]`, `roi_align(x, boxes, 1, {.aligned = true})`
/// is `[[[[2.5]]]]`.
DECLIVITY_API Tensor roi_align(const Tensor& x, const Tensor& boxes, Size2 output_size,
                               const RoiAlignOptions& options = {}, const Tensor& images = {});
/// RoIPool: the largest pixel in each of P x Q bins of each box, whose ends are rounded to pixels (Girshick 2015); 0
/// for empty bins. x, boxes and images as for roi_align.
/// Example: for x = `[[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]` and boxes = `[[0, 0, 0, 1, 1]]`, `roi_pool(x, boxes, 1)` is
/// `[[[[5]]]]`.
DECLIVITY_API Tensor roi_pool(const Tensor& x, const Tensor& boxes, Size2 output_size, double spatial_scale = 1,
                              const Tensor& images = {});

/// Options of deform_conv2d().
struct DeformConv2dOptions {
    Size2 stride = 1;
    Size2 padding = 0;
    Size2 dilation = 1;
};
/// Deformable convolution: conv2d that samples x bilinearly at positions shifted by `offset` (Dai et al. 2017), and
/// multiplied by `mask` if given (Zhu et al. 2018); zeros around x. x (N, C, H, W), weight (O, C / groups, R, S),
/// offset (N, 2 G R S, P, Q): vertical and horizontal for each of G groups of channels and each element of the filter;
/// mask (N, G R S, P, Q), bias (O) -> (N, O, P, Q).
/// Example: for x = `[[[[1, 2, 3]]]]`, offset = `[[[[0, 0, 0]], [[0.5, -1, 0]]]]` and weight = `[[[[10]]]]`,
/// `deform_conv2d(x, offset, weight)` is `[[[[15, 10, 30]]]]`.
DECLIVITY_API Tensor deform_conv2d(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& bias = {},
                                   const DeformConv2dOptions& options = {}, const Tensor& mask = {});

/// Non-maximum suppression: indices of the boxes (N, 4) to keep, i64, by descending scores (N), equal scores in order:
/// removes each box whose IoU with a kept box of a higher score exceeds `iou_threshold`. Synchronises: boxes are
/// compared on the host.
/// Example: for boxes = `[[0, 0, 2, 2], [0, 0, 2, 1.8], [5, 5, 6, 6]]` and scores = `[0.5, 0.9, 0.7]`,
/// `nms(boxes, scores, 0.5)` is `[1, 2]`.
DECLIVITY_API Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold);
/// nms that compares only boxes of the same class: classes (N) of integers.
/// Example: for boxes = `[[0, 0, 2, 2], [0, 0, 2, 1.8]]`, scores = `[0.5, 0.9]` and i64 classes = `[0, 1]`,
/// `batched_nms(boxes, scores, classes, 0.5)` is `[1, 0]`.
DECLIVITY_API Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                                 double iou_threshold);

/// Area (x2 - x1) (y2 - y1) of each box: (..., 4) -> (...).
/// Example: for boxes = `[[0, 0, 2, 3], [1, 1, 2, 2]]`, `box_area(boxes)` is `[6, 1]`.
DECLIVITY_API Tensor box_area(const Tensor& boxes);
/// Converts between "xyxy", "xywh" (one corner and sizes) and "cxcywh" (centre and sizes), along the last axis.
/// Examples: for boxes = `[[1, 2, 5, 4]]`, `box_convert(boxes, "xyxy", "xywh")` is `[[1, 2, 4, 2]]`;
/// `box_convert(boxes, "xyxy", "cxcywh")` is `[[3, 3, 4, 2]]`.
DECLIVITY_API Tensor box_convert(const Tensor& boxes, std::string_view from, std::string_view to);
/// Clamps boxes (..., 4) to [0, width] and [0, height].
/// Example: for boxes = `[[-1, 2, 9, 9]]`, `clip_boxes_to_image(boxes, {4, 8})` is `[[0, 2, 8, 4]]`.
DECLIVITY_API Tensor clip_boxes_to_image(const Tensor& boxes, Size2 image_size);

/// @}

}  // namespace declivity
