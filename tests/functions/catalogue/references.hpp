// References in plain C++ double that other tests use, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <declivity/functions/resize.hpp>
#include <declivity/functions/vision.hpp>
#include <tests/functions/catalogue/case.hpp>

namespace declivity::test::catalogue {

/// The four corners of boxes 1 and 2, as numbers.
struct BoxesReference {
    double left1, top1, right1, bottom1, left2, top2, right2, bottom2;

    [[nodiscard]] double intersection() const {
        const double w = std::min(right1, right2) - std::max(left1, left2),
                     h = std::min(bottom1, bottom2) - std::max(top1, top2);
        return w > 0 && h > 0 ? w * h : 0;
    }
    [[nodiscard]] double union_area() const {
        return (right1 - left1) * (bottom1 - top1) + (right2 - left2) * (bottom2 - top2) - intersection();
    }
    [[nodiscard]] double iou(double eps = 1e-7) const { return intersection() / (union_area() + eps); }
    [[nodiscard]] double width() const { return std::max(right1, right2) - std::min(left1, left2); }
    [[nodiscard]] double height() const { return std::max(bottom1, bottom2) - std::min(top1, top2); }
    [[nodiscard]] double generalized() const {
        const double enclosing = width() * height();
        return 1 - iou() + (enclosing - union_area()) / (enclosing + 1e-7);
    }
    [[nodiscard]] double distance() const {
        const double x = (left1 + right1 - left2 - right2) / 2, y = (top1 + bottom1 - top2 - bottom2) / 2;
        return 1 - iou() + (x * x + y * y) / (width() * width() + height() * height() + 1e-7);
    }
    /// 4 / pi^2 (difference of the angles)^2.
    [[nodiscard]] double v() const {
        const double angle =
            std::atan((right1 - left1) / (bottom1 - top1)) - std::atan((right2 - left2) / (bottom2 - top2));
        return 4 / (std::numbers::pi * std::numbers::pi) * angle * angle;
    }
    [[nodiscard]] double alpha() const { return v() / (1 - iou() + v() + 1e-7); }
};

double softplus_of(double x);

Case interpolate_case(const Shape& from, const InterpolateOptions& options);

/// Resizes an image (H, W); extrapolation by 0.
Values resize_reference(const Values& x, const Shape& from, const ResizeOptions& options);

/// x (N, C, axes...), grid (N, places..., axes)
Values grid_sample_reference(const Columns& in, const Shape& x, const Shape& grid, const GridSampleOptions& options);

/// roi_align of one box (x1, y1, x2, y2) and one plane (H, W), as published.
double roi_align_bin(const double* plane, std::int64_t h, std::int64_t w, const double* box, std::int64_t p,
                     std::int64_t q, Size2 bins, const RoiAlignOptions& options);

double roi_pool_bin(const double* plane, std::int64_t h, std::int64_t w, const double* box, std::int64_t p,
                    std::int64_t q, Size2 bins, double scale);

/// The boxes kept by non-maximum suppression, by its definition.
/// @param classes empty: all are of one class
Values nms_reference(const Values& boxes, const Values& scores, const Values& classes, double threshold);

/// Corners from corners and sizes.
Values with_corners(const Values& boxes);

Tensor with_corners(const Tensor& boxes);

}  // namespace declivity::test::catalogue
