// x[...] by tensors, new axes and an ellipsis.
#include <algorithm>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/indexing.hpp>
#include <fmt/format.h>

#include "autograd/in_place.hpp"
#include "functions/support/in_place_arithmetic.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity {

TensorSelection::TensorSelection(const Shape& shape, std::span<const SelectionIndex> indices) {
    using Kind = SelectionIndex::Kind;
    std::int64_t consumed = 0;
    bool ellipsis = false;
    for (const SelectionIndex& index : indices) {
        if (index.kind_ == Kind::tensor) {
            if (!index.tensor_.defined()) throw ValueError("operator[]: expected tensors, got an undefined one");
            const DType type = index.tensor_.dtype();
            if (is_floating(type))
                throw TypeError(
                    fmt::format("operator[]: expected index tensors of integers or bool, got {}", name_of(type)));
            if (type == DType::boolean && index.tensor_.rank() == 0)
                throw ShapeError("operator[]: expected bool tensors with at least one axis, got one without");
            consumed += type == DType::boolean ? index.tensor_.rank() : 1;
        } else if (index.kind_ == Kind::index) {
            ++consumed;
        } else if (index.kind_ == Kind::ellipsis && std::exchange(ellipsis, true)) {
            throw ShapeError("operator[]: expected at most one Ellipsis(), got several");
        }
    }
    if (consumed > shape.rank())
        throw ShapeError(
            fmt::format("operator[]: expected at most one index for each axis of {}, got {}", shape.str(), consumed));
    const auto skip_axes = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) region_.emplace_back(Slice()), tensors_.emplace_back();
    };
    // A bool tensor of n axes is one entry, as in index(); `axis` counts its axes.
    std::int64_t axis = 0;
    for (const SelectionIndex& index : indices) switch (index.kind_) {
            case Kind::index:
                region_.push_back(index.index_);
                if (!index.index_.element()) tensors_.emplace_back(), ++axis;
                break;
            case Kind::tensor: {
                const int axes = index.tensor_.dtype() == DType::boolean ? index.tensor_.rank() : 1;
                region_.insert(region_.end(), static_cast<std::size_t>(axes), Slice());
                tensors_.push_back(index.tensor_);
                axis += axes;
                break;
            }
            case Kind::new_axis:
                new_axes_.push_back(axis++);
                tensors_.emplace_back();
                break;
            case Kind::ellipsis:
                skip_axes(shape.rank() - consumed);
                axis += shape.rank() - consumed;
                break;
        }
    while (!tensors_.empty() && !tensors_.back().defined()) tensors_.pop_back();
}

/// The indexed result, with the new axes.
Tensor TensorSelection::base_view() const {
    Tensor x = *base_;
    for (const std::int64_t axis : new_axes_) x = unsqueeze(x, axis);
    return x;
}

Tensor TensorSelection::tensor() const {
    const Tensor x = base_view();
    return tensors_.empty() ? x : index(x, tensors_);
}

void TensorSelection::write(const TensorOrScalar& value) {
    const auto updated_base = [&] {
        const Tensor x = base_view();
        Tensor source = value.is_scalar() ? full({}, value.scalar(), {x.dtype(), x.device()}) : value.tensor();
        if (!source.defined()) throw ValueError("operator[]=: expected a tensor or a number, got an undefined tensor");
        source = source.to(x.device()).to(x.dtype());
        Tensor result;
        const auto index_tensors = std::ranges::count_if(tensors_, [](const Tensor& item) { return item.defined(); });
        if (tensors_.empty()) {
            result = expand(source, x.shape());
        } else if (source.rank() == 0 && index_tensors == 1 && tensors_.back().dtype() == DType::boolean) {
            // One mask and one number: the number of true elements is not needed.
            const Tensor& mask = tensors_.back();
            Shape aligned = mask.shape();
            const int leading = static_cast<int>(tensors_.size()) - 1;
            for (int axis = 0; axis < mask.rank(); ++axis)
                if (mask.shape()[axis] != x.shape()[leading + axis])
                    throw ShapeError(
                        fmt::format("operator[]=: expected a bool tensor that fits axes {} to {} of {}, got {}",
                                    leading, leading + mask.rank() - 1, x.shape().str(), mask.shape().str()));
            while (aligned.rank() < x.rank() - leading) aligned.push_back(1);
            result = where(reshape(mask, aligned), source, x);
        } else {
            result = index_put(x, tensors_, source);
        }
        return reshape(result, base_->shape());
    };
    // No view of x is alive any more when it is written.
    const Tensor result = updated_base();
    std::move(*base_) = result;
}

TensorSelection& TensorSelection::operator=(const TensorSelection& value) && {
    write(value.tensor());
    return *this;
}
TensorSelection& TensorSelection::operator=(const TensorOrScalar& value) && {
    write(value);
    return *this;
}

TensorSelection& TensorSelection::operator+=(const TensorOrScalar& value) && {
    write(detail::updated_part(tensor(), Function::add, "operator+=", value));
    return *this;
}
TensorSelection& TensorSelection::operator-=(const TensorOrScalar& value) && {
    write(detail::updated_part(tensor(), Function::sub, "operator-=", value));
    return *this;
}
TensorSelection& TensorSelection::operator*=(const TensorOrScalar& value) && {
    write(detail::updated_part(tensor(), Function::mul, "operator*=", value));
    return *this;
}
TensorSelection& TensorSelection::operator/=(const TensorOrScalar& value) && {
    write(detail::updated_part(tensor(), Function::div, "operator/=", value));
    return *this;
}

}  // namespace declivity
