#include "rollback.hpp"

#include <algorithm>
#include <optional>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/tensor/creation.hpp>

#include "tensor/access.hpp"

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

Rollback::Rollback(const std::vector<Tensor>& buffers, const std::vector<Tensor>& always_changing, const Tensor& guard)
    : guard_(guard) {
    for (const Tensor& tensor : always_changing) add(tensor, true);
    for (const Tensor& tensor : buffers) add(tensor, false);
}

void Rollback::add(const Tensor& tensor, bool changes) {
    const auto is_same = [&](const Snapshot& snapshot) { return state_of(snapshot.tensor) == state_of(tensor); };
    // Buffers on other devices than the guard are not restored.
    if (!(tensor.device() == guard_.device()) || std::ranges::any_of(snapshots_, is_same)) return;
    const NoGrad no_grad;
    Snapshot snapshot{tensor, tensor.detach().clone()};
    (void)snapshot.copy.view();  // at this point, not when the tensor is written
    snapshot.version = tensor.view().buffer.version();
    snapshot.changes = changes;
    snapshots_.push_back(std::move(snapshot));
}

std::size_t Rollback::find_changed() {
    std::size_t changed_count = 0;
    for (Snapshot& snapshot : snapshots_) {
        snapshot.changes = snapshot.changes || snapshot.tensor.view().buffer.version() != snapshot.version;
        changed_count += snapshot.changes ? 1 : 0;
    }
    return changed_count;
}

void Rollback::save() {
    const NoGrad no_grad;
    (void)capture_guard([this] { return find_changed(); });
    std::vector<ops::View> from, to;
    for (Snapshot& snapshot : snapshots_) {
        if (!snapshot.changes) continue;
        const auto words = words_of(snapshot.tensor), copy = words_of(snapshot.copy);
        if (words && copy) {
            from.push_back(*words);
            to.push_back(*copy);
            snapshot.copy.bump_version();
        } else {
            snapshot.copy.copy_(where(reshape(slice(guard_, 0, 0, 1), {}) > 0, snapshot.copy, snapshot.tensor));
        }
    }
    if (from.empty()) return;
    const ops::ReleaseTensors release{words_};
    words_.set({from, to});
    ops::save_unless_noted(words_, guard_.view());
}

void Rollback::restore() {
    const NoGrad no_grad;
    for (Snapshot& snapshot : snapshots_)
        if (snapshot.changes || snapshot.tensor.view().buffer.version() != snapshot.version)
            snapshot.tensor.detach().copy_(snapshot.copy);
}

}  // namespace declivity::train
