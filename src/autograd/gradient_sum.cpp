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
    if (own_) {
        value_.add_(gradient);
    } else {
        value_ = value_.defined() ? add_gradients(value_, gradient) : gradient;
    }
}

void GradientSum::add(GradientRegion region, const OutputInfo& like) {
    if (value_.defined()) {
        if (!own_) value_ = value_.clone();
        own_ = true;
        Tensor(region.part(value_.view())).add_(region.gradient);
        return;
    }
    parts_.push_back(std::move(region));
    if (parts_.size() == 1) like_.emplace(like.shape, like.dtype, like.device);
    if (parts_.size() == kMaxParts) assemble();
}

void GradientSum::assemble() {
    if (parts_.empty()) return;
    const ops::View whole = ops::View::make(like_->device, like_->dtype, like_->shape);
    std::vector<ops::View> views;
    std::vector<std::optional<ops::Box>> boxes;
    std::vector<bool> first;  // whether it overlaps no earlier part
    std::int64_t covered = 0;
    for (const GradientRegion& part : parts_) {
        const ops::View& view = views.emplace_back(part.part(whole));
        const std::optional<ops::Box> box = ops::box_of(whole, view);
        first.push_back(std::ranges::none_of(
            boxes, [&](const auto& other) { return !box || !other || ops::overlap(*box, *other); }));
        boxes.push_back(box);
        if (first.back()) covered += view.numel();
    }
    if (covered < whole.numel()) ops::fill(whole, 0);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        Tensor part(views[i]);
        if (first[i]) part.copy_(std::move(parts_[i].gradient));
        else part.add_(parts_[i].gradient);
    }
    parts_.clear();
    value_ = Tensor(whole);
    own_ = true;
}

}  // namespace declivity::detail
