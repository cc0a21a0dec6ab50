// Layer 3. Functions of detectors: features of regions, convolutions whose filters bend, and boxes. Boxes are
// x1, y1, x2, y2 with x1 <= x2 and y1 <= y2. As torchvision has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

struct RoiAlignOptions {
    double spatial_scale = 1;  ///< from coordinates of boxes to those of x
    /// Samples along each axis of a bin; 0: as many as the bin is wide, for which the widest is read, which waits.
    std::int64_t sampling_ratio = 0;
    bool aligned = false;  ///< half a pixel to the left and up, and boxes as small as they are; not at least 1 wide
    /// "avg", or "max" as ONNX defines it: the largest of the weighted pixels.
    std::string mode = "avg";
};
/// Means of bilinear samples in P x Q bins of each box (He et al. 2017): x (N, C, H, W), boxes (K, 5), whose first
/// element is the number of their image; or boxes (K, 4) and `images` (K) of integers -> (K, C, P, Q); 0 for
/// an image that is not there. No gradient flows to boxes.
DECLIVITY_API Tensor roi_align(const Tensor& x, const Tensor& boxes, Size2 output_size,
                               const RoiAlignOptions& options = {}, const Tensor& images = {});
/// The largest pixel in each of P x Q bins of each box, whose ends are rounded to pixels (Girshick 2015); 0 of bins
/// without pixels. x, boxes and images as for roi_align.
DECLIVITY_API Tensor roi_pool(const Tensor& x, const Tensor& boxes, Size2 output_size, double spatial_scale = 1,
                              const Tensor& images = {});

struct DeformConv2dOptions {
    Size2 stride = 1;
    Size2 padding = 0;
    Size2 dilation = 1;
};
/// conv2d whose filter reads x bilinearly at places that are moved by `offset` (Dai et al. 2017), and multiplied by
/// `mask` where there is one (Zhu et al. 2018); zeros around x. x (N, C, H, W), weight (O, C / groups, R, S), offset
/// (N, 2 G R S, P, Q): vertical and horizontal for each of G groups of channels and each element of the filter; mask
/// (N, G R S, P, Q), bias (O) -> (N, O, P, Q).
DECLIVITY_API Tensor deform_conv2d(const Tensor& x, const Tensor& offset, const Tensor& weight, const Tensor& bias = {},
                                   const DeformConv2dOptions& options = {}, const Tensor& mask = {});

/// The numbers of the boxes (N, 4) that stay, i64, those of the highest scores (N) first, of equal ones in order: each
/// box that overlaps a better one that stays by more than `iou_threshold` goes. Reads boxes and scores, which waits,
/// and compares them on the host.
DECLIVITY_API Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold);
/// The same, where boxes of different classes (N) of integers leave each other alone.
DECLIVITY_API Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                                 double iou_threshold);

/// (..., 4) -> (...).
DECLIVITY_API Tensor box_area(const Tensor& boxes);
/// Between "xyxy", "xywh" (one corner and sizes) and "cxcywh" (the middle and sizes), along the last axis.
DECLIVITY_API Tensor box_convert(const Tensor& boxes, std::string_view from, std::string_view to);
/// Moved into [0, width] and [0, height]: boxes (..., 4).
DECLIVITY_API Tensor clip_boxes_to_image(const Tensor& boxes, Size2 image_size);

}  // namespace declivity
