#include "gradient_sum.hpp"

#include <algorithm>
#include <utility>

#include <declivity/ops/copy.hpp>

#include "ops/support/box.hpp"

namespace declivity::detail {

Tensor GradientSum::take() {
    assemble();
    return std::move(value_);
}

void GradientSum::add(const Tensor& gradient) {
    assemble();
    if (unshared_) {
        value_.add_(gradient);
    } else {
        value_ = value_.defined() ? add_gradients(value_, gradient) : gradient;
    }
}

void GradientSum::add(GradientRegion region, const OutputInfo& like) {
    if (value_.defined()) {
        if (!unshared_) value_ = value_.clone();
        unshared_ = true;
        Tensor(region.part(value_.view())).add_(region.gradient);
        return;
    }
    parts_.push_back(std::move(region));
    if (parts_.size() == 1) gradient_info_.emplace(like.shape, like.dtype, like.device);
    if (parts_.size() == kMaxParts) assemble();
}

void GradientSum::assemble() {
    if (parts_.empty()) return;
    const ops::View gradient = ops::View::make(gradient_info_->device, gradient_info_->dtype, gradient_info_->shape);
    std::vector<ops::View> views;
    std::vector<std::optional<ops::Box>> boxes;
    std::vector<bool> disjoint;  // whether it overlaps no earlier part
    std::int64_t covered = 0;
    for (const GradientRegion& part : parts_) {
        const ops::View& view = views.emplace_back(part.part(gradient));
        const std::optional<ops::Box> box = ops::box_of(gradient, view);
        disjoint.push_back(std::ranges::none_of(
            boxes, [&](const auto& other) { return !box || !other || ops::overlap(*box, *other); }));
        boxes.push_back(box);
        if (disjoint.back()) covered += view.numel();
    }
    if (covered < gradient.numel()) ops::fill(gradient, 0);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        Tensor part(views[i]);
        if (disjoint[i]) part.copy_(std::move(parts_[i].gradient));
        else part.add_(parts_[i].gradient);
    }
    parts_.clear();
    value_ = Tensor(gradient);
    unshared_ = true;
}

}  // namespace declivity::detail
