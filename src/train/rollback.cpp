#include "rollback.hpp"

#include <algorithm>
#include <optional>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/tensor/creation.hpp>

namespace declivity::train {
namespace {

/// The elements as 4-byte words; none if their size is no multiple of 4, or the tensor is not dense.
std::optional<ops::View> words_of(const Tensor& tensor) {
    ops::View view = tensor.view();
    const auto begin = static_cast<std::size_t>(view.offset) * size_of(view.dtype);
    const std::size_t bytes = view.bytes();
    if (!view.dense() || bytes == 0 || bytes % sizeof(float) != 0 || begin % sizeof(float) != 0) return std::nullopt;
    view.dtype = DType::f32;
    view.offset = static_cast<std::int64_t>(begin / sizeof(float));
    view.shape = Shape{static_cast<std::int64_t>(bytes / sizeof(float))};
    view.strides = Strides{1};
    return view;
}

}  // namespace

Rollback::Rollback(const std::vector<Tensor>& buffers, const std::vector<Tensor>& always, const Tensor& guard)
    : guard_(guard) {
    for (const Tensor& tensor : always) add(tensor, true);
    for (const Tensor& tensor : buffers) add(tensor, false);
}

void Rollback::add(const Tensor& tensor, bool changes) {
    const auto same = [&](const Kept& kept) { return kept.tensor.state() == tensor.state(); };
    // Buffers on other devices than the guard are not restored.
    if (!(tensor.device() == guard_.device()) || std::ranges::any_of(kept_, same)) return;
    const NoGrad no_grad;
    Kept one{tensor, tensor.detach().clone()};
    (void)one.copy.view();  // at this point, not when the tensor is written
    one.version = tensor.view().buffer.version();
    one.changes = changes;
    kept_.push_back(std::move(one));
}

std::size_t Rollback::find_changed() {
    std::size_t changing = 0;
    for (Kept& kept_item : kept_) {
        kept_item.changes = kept_item.changes || kept_item.tensor.view().buffer.version() != kept_item.version;
        changing += kept_item.changes ? 1 : 0;
    }
    return changing;
}

void Rollback::save() {
    const NoGrad no_grad;
    (void)capture_guard([this] { return find_changed(); });
    std::vector<ops::View> from, to;
    for (Kept& kept_item : kept_) {
        if (!kept_item.changes) continue;
        const auto words = words_of(kept_item.tensor), copy = words_of(kept_item.copy);
        if (words && copy) {
            from.push_back(*words);
            to.push_back(*copy);
            kept_item.copy.bump_version();
        } else {
            kept_item.copy.copy_(where(reshape(slice(guard_, 0, 0, 1), {}) > 0, kept_item.copy, kept_item.tensor));
        }
    }
    if (from.empty()) return;
    const ops::ReleaseTensors release{words_};
    words_.set({from, to});
    ops::save_unless_noted(words_, guard_.view());
}

void Rollback::restore() {
    const NoGrad no_grad;
    for (Kept& kept_item : kept_)
        if (kept_item.changes || kept_item.tensor.view().buffer.version() != kept_item.version)
            kept_item.tensor.detach().copy_(kept_item.copy);
}

}  // namespace declivity::train
