#include <declivity/tensor/tensor.hpp>

#include <utility>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/default_device.hpp>
#include <fmt/format.h>

#include "ops/engine/lazy_array.hpp"
#include "runtime/capture.hpp"
#include "tensor_state.hpp"

namespace declivity {

using detail::access_value;
using detail::checked_state;

Tensor::Tensor(const ops::LazyArray& value) : state_(std::make_shared<detail::TensorState>()) { state_->value = value; }

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const std::optional<Device>& device) {
    return from_bytes("from_bytes", bytes, dtype, shape, device);
}

Tensor Tensor::from_bytes(std::string_view function, std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const std::optional<Device>& device) {
    const std::string name = fmt::format("Tensor::{}", function);
    const std::size_t expected_bytes = ops::bytes_of(shape, dtype, name);
    if (bytes.size() != expected_bytes && function == "from")
        throw ShapeError(fmt::format("{}: expected {} values for shape {}, got {}", name, shape.numel(), shape.str(),
                                     bytes.size() / size_of(dtype)));
    if (bytes.size() != expected_bytes)
        throw ShapeError(fmt::format("{}: expected {} bytes for shape {} of {}, got {}", name, expected_bytes,
                                     shape.str(), name_of(dtype), bytes.size()));
    const ops::View view = ops::View::make(device ? *device : default_device(), dtype, shape);
    if (Capture* const capture = Capture::current(); capture != nullptr && !bytes.empty())
        capture->refuse(fmt::format("{} (an upload from the host)", name));
    upload(view.buffer, 0, bytes);
    return Tensor(view);
}

const Shape& Tensor::shape() const { return shape_for("shape"); }
const Shape& Tensor::shape_for(std::string_view function) const {
    return checked_state(state_, function).value.shape();
}
DType Tensor::dtype() const { return checked_state(state_, "dtype").value.dtype(); }
Device Tensor::device() const { return checked_state(state_, "device").value.device(); }
std::int64_t Tensor::size(std::int64_t axis) const {
    const Shape& sizes = shape_for("size");
    return sizes[normalize_axis("size", axis, sizes.rank())];
}

const ops::View& Tensor::view() const {
    const ops::View& view = access_value(state_, "view").view();
    ops::launch_readers(view.buffer);
    return view;
}
ops::View Tensor::dense_view() const { return ops::dense_copy_if_needed(access_value(state_, "dense_view").view()); }
const ops::LazyArray& Tensor::value() const { return access_value(state_, "value"); }

void Tensor::read_bytes(std::string_view function, std::span<std::byte> bytes, DType dtype) const {
    const ops::LazyArray& from = checked_state(state_, function).value;
    const bool compatible = dtype == from.dtype() || (dtype == DType::u8 && from.dtype() == DType::boolean);
    if (!compatible)
        throw TypeError(
            fmt::format("{}: expected the tensor's type, {}, got {}", function, name_of(from.dtype()), name_of(dtype)));
    if (function == "item" && from.shape().numel() != 1)
        throw ShapeError(fmt::format("item: expected a tensor of one element, got shape {}", from.shape().str()));
    if (bytes.size() != ops::bytes_of(from.shape(), from.dtype()))
        throw ShapeError(fmt::format("{}: expected room for {} elements (shape {}), got {}", function,
                                     from.shape().numel(), from.shape().str(), bytes.size() / size_of(dtype)));
    const auto in_function_scope = [function](const auto& call) {  // for errors of pending launches
        const FunctionScope scope(function);
        return call();
    };
    const ops::View dense = in_function_scope([this] { return dense_view(); });
    if (Capture* const capture = Capture::current(); capture != nullptr && !bytes.empty())
        capture->refuse(fmt::format("{} (a read to the host)", function));
    in_function_scope(
        [&] { read(dense.buffer, static_cast<std::size_t>(dense.offset) * size_of(dense.dtype), bytes); });
}

Tensor Tensor::detach() const {
    Tensor out(access_value(state_, "detach"));
    detail::share_memory(*this, out);
    return out;
}

}  // namespace declivity
