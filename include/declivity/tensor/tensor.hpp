// Layer 3. Tensor: the value that users compute with.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/dtype.hpp>
#include <declivity/ops/scalar.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity {

namespace detail {
struct TensorState;
}

class Index;
class SelectionIndex;
class TensorOrScalar;
class TensorPart;
class TensorSelection;
struct NewAxis;
struct Ellipsis;
class Tensor;

namespace detail {
/// What x[...] takes without braces, beside numbers and slices.
template <class T>
concept SelectsAlone = std::derived_from<T, Tensor> || std::same_as<T, TensorSelection> || std::same_as<T, NewAxis> ||
    std::same_as<T, Ellipsis>;
}  // namespace detail

/// The device on which tensors are made when none is named: Device::best() until `set_default_device`.
DECLIVITY_API Device default_device();
DECLIVITY_API void set_default_device(const Device& device);

/// A handle to elements on a device: copying the handle shares them. Row-major; images are N,C,H,W. Calls check their
/// arguments at once and run later; only reading a value on the host waits.
class DECLIVITY_API Tensor {
  public:
    /// No tensor. Functions take it where an argument is optional.
    Tensor() = default;
    /// Over memory that is there already, or elements that will be computed when they are needed.
    explicit Tensor(const ops::LazyArray& value);

    /// Copies `values`, row-major, to a device.
    /// @throws ShapeError when their number is not shape.numel()
    template <class T>
    static Tensor from(std::span<const T> values, const Shape& shape,
                       const std::optional<Device>& device = std::nullopt) {
        return from_bytes("from", std::as_bytes(values), dtype_of<T>(), shape, device);
    }
    template <class T>
    static Tensor from(const std::vector<T>& values, const Shape& shape,
                       const std::optional<Device>& device = std::nullopt) {
        return from(std::span<const T>(values), shape, device);
    }
    template <class T>
    static Tensor from(std::initializer_list<T> values, const Shape& shape,
                       const std::optional<Device>& device = std::nullopt) {
        return from(std::span<const T>(values.begin(), values.size()), shape, device);
    }
    static Tensor from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                             const std::optional<Device>& device = std::nullopt);

    [[nodiscard]] bool defined() const noexcept { return state_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    /// The same as shape() and rank().
    [[nodiscard]] const Shape& sizes() const { return shape_for("sizes"); }
    [[nodiscard]] int dim() const { return shape_for("dim").rank(); }
    /// Size of one axis; -1 is the last.
    [[nodiscard]] std::int64_t size(std::int64_t axis) const;
    [[nodiscard]] int rank() const { return shape_for("rank").rank(); }
    [[nodiscard]] std::int64_t numel() const { return shape_for("numel").numel(); }
    [[nodiscard]] DType dtype() const;
    [[nodiscard]] Device device() const;

    /// The only element. Waits for the device.
    /// @throws ShapeError unless there is one element, TypeError unless T is the tensor's type
    template <class T>
    [[nodiscard]] T item() const {
        T value{};
        read_bytes("item", std::as_writable_bytes(std::span(&value, 1)), dtype_of<T>());
        return value;
    }
    /// All elements, row-major. Waits for the device.
    template <class T>
    [[nodiscard]] std::vector<T> to_vector() const {
        static_assert(!std::is_same_v<T, bool>,
                      "std::vector<bool> has no elements to copy into: use to_vector<std::uint8_t>()");
        std::vector<T> values(static_cast<std::size_t>(shape_for("to_vector").numel()));
        read_bytes("to_vector", std::as_writable_bytes(std::span(values)), dtype_of<T>());
        return values;
    }
    /// As to_vector, into memory of the caller's. A bool tensor may be read as uint8.
    template <class T>
    void copy_to(std::span<T> values) const {
        read_bytes("copy_to", std::as_writable_bytes(values), dtype_of<T>());
    }

    /// This tensor on another device, or itself when it is there already. Differentiable.
    [[nodiscard]] Tensor to(const Device& device) const;
    /// This tensor in another type, or itself. Differentiable between floating types.
    [[nodiscard]] Tensor to(DType dtype) const;
    /// A dense copy with memory of its own. Differentiable, so that it requires a gradient where this does:
    /// detach().clone() is outside of any graph.
    [[nodiscard]] Tensor clone() const;

    /// A part: x[2] is element 2 of the first axis, x[Slice(1, 3)] elements 1 and 2 of it, x[{0, Slice(), -1}] one for
    /// each axis. To read, with its gradient, and to write: x[2] = y, x[2] += y (indexing.hpp).
    /// @throws ShapeError for an index out of range, or more than there are axes
    [[nodiscard]] TensorPart operator[](const Index& index) const;
    [[nodiscard]] TensorPart operator[](std::initializer_list<Index> indices) const;
    /// The same of a list that is made at run time.
    [[nodiscard]] TensorPart part(std::span<const Index> indices) const;
    /// By tensors of integers, or where a bool tensor is true, with new axes and an ellipsis: x[rows], x[mask] = 0,
    /// x[{Ellipsis(), NewAxis(), columns}]. To read and to write (TensorSelection in indexing.hpp).
    template <class T>
    requires detail::SelectsAlone<T>
    [[nodiscard]] TensorSelection operator[](const T& indices) const;
    template <class Selection = TensorSelection>
    [[nodiscard]] Selection operator[](std::initializer_list<SelectionIndex> indices) const;

    // ---- gradients

    [[nodiscard]] bool requires_grad() const;
    /// Marks a leaf as one whose gradient is wanted. @throws ValueError for the result of a differentiable function
    Tensor& set_requires_grad(bool wanted = true);
    /// True when no differentiable function made it.
    [[nodiscard]] bool is_leaf() const;
    /// The gradient that backward() left, or an undefined tensor. Several threads may call backward() into one leaf,
    /// and this, set_grad() and zero_grad() beside them (docs/robustness.md).
    [[nodiscard]] Tensor grad() const;
    /// Replaces it. A gradient with a graph (GradOptions::create_graph) that leads to this tensor holds it, and is held
    /// by it: neither ends before zero_grad() or another gradient. Better keep such a gradient in a variable.
    /// @throws ShapeError, TypeError or DeviceError for a gradient unlike the tensor
    void set_grad(const Tensor& gradient);
    /// Forgets the gradient.
    void zero_grad();
    /// Adds d(this)/d(leaf) to the grad of every leaf that requires one. A tensor of more than one element needs
    /// `gradient`, of its own shape.
    /// @throws ValueError when there is no graph, or when it was used up by an earlier backward
    void backward(const Tensor& gradient = {}, bool retain_graph = false) const;
    /// The same elements, outside of the graph.
    [[nodiscard]] Tensor detach() const;
    /// Calls `hook` with the gradient of this tensor when backward computed it; what it returns, if defined,
    /// replaces it. Gives a number for remove_hook.
    int register_hook(std::function<Tensor(const Tensor&)> hook);
    /// Calls `hook` with this leaf as soon as backward() has added the whole gradient to its grad(), while the rest of
    /// the graph is still to come: for work that may begin then, such as a sum over devices or an optimizer's step. The
    /// hook may replace or forget the grad. grad() calls none. Gives a number for remove_hook.
    /// @throws ValueError for a tensor that is no leaf, or requires no gradient
    int register_post_accumulate_grad_hook(std::function<void(Tensor&)> hook);
    /// Of either kind. A number that is gone already does nothing.
    void remove_hook(int number);

    // ---- writing in place
    //
    // Where neither this tensor nor what is written requires a gradient, and under NoGrad, memory is written, and all
    // that share it see that. Where a graph is recorded, this handle and its copies take the new value and its place
    // in the graph instead; what was computed from the old value, or saved for backward, keeps it. Refused there: a
    // leaf that requires a gradient, and a tensor whose memory others share that live on (slice, reshape, detach, ...).

    /// Copies the elements of `source` (same shape and type, any device) here. What waits, and nobody else holds, is
    /// computed in this place: `slice(cache, 0, t, t + 1).copy_(relu(x))` is one kernel. Parts of a tensor in a graph:
    /// slice_scatter().
    Tensor& copy_(Tensor source);
    /// In a graph the tensor depends on nothing from then on.
    Tensor& fill_(Scalar value);
    Tensor& zero_();
    /// x = x + other, and so on, also as `x += other`. `other` stretches to the shape of x.
    /// @throws TypeError where the result has a type of a higher kind than x: a floating one, and x has integers
    Tensor& add_(TensorOrScalar other);
    Tensor& sub_(TensorOrScalar other);
    Tensor& mul_(TensorOrScalar other);
    Tensor& div_(TensorOrScalar other);

    /// The memory, to read or to write, outside of any graph. Launches what is pending first, so that later commands of
    /// the compute queue see the values, and whatever still has to read it: take it anew before each write.
    [[nodiscard]] const ops::View& view() const;
    /// The memory as a dense view, to read; a copy when the tensor is not dense.
    [[nodiscard]] ops::View dense_view() const;
    /// The elements, which may not be computed yet, to build on.
    [[nodiscard]] const ops::LazyArray& value() const;

    /// Makes this handle, and all that share it, stand for the elements of `other` from now on, outside of its graph;
    /// the gradient is dropped. How a module moves its parameters to another device without invalidating handles to
    /// them.
    void assign(const Tensor& other);
    /// For operators that write the memory themselves: what the graph saved of it, and what operators made of it as a
    /// constant (a parameter used under NoGrad), is stale.
    void bump_version() const;

    /// Shape, type, device and the values, shortened as NumPy does. Waits for the device.
    [[nodiscard]] std::string str() const;

    /// For layer 3 itself.
    explicit Tensor(std::shared_ptr<detail::TensorState> state) : state_(std::move(state)) {}
    [[nodiscard]] const std::shared_ptr<detail::TensorState>& state() const noexcept { return state_; }

  private:
    static Tensor from_bytes(std::string_view function, std::span<const std::byte> bytes, DType dtype,
                             const Shape& shape, const std::optional<Device>& device);
    [[nodiscard]] const Shape& shape_for(std::string_view function) const;
    void read_bytes(std::string_view function, std::span<std::byte> bytes, DType dtype) const;
    std::shared_ptr<detail::TensorState> state_;
};

DECLIVITY_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// What functions of several tensors take where a number serves as well: where(x > 0.5, x, 0).
class TensorOrScalar {
  public:
    TensorOrScalar(Tensor tensor) : tensor_(std::move(tensor)), is_scalar_(false) {}  // NOLINT: that is its purpose
    TensorOrScalar(Scalar number) : number_(number), is_scalar_(true) {}              // NOLINT
    template <class T>
    requires std::is_arithmetic_v<T> TensorOrScalar(T number) : TensorOrScalar(Scalar(number)) {}  // NOLINT

    [[nodiscard]] bool is_scalar() const noexcept { return is_scalar_; }
    /// Undefined where it is a number.
    [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }
    /// 0 where it is a tensor.
    [[nodiscard]] const Scalar& scalar() const noexcept { return number_; }

  private:
    Tensor tensor_;
    Scalar number_;
    bool is_scalar_;
};

/// The type of what an elementwise function makes from these, as PyTorch has it: promote_types() of the highest kind of
/// tensors that have axes; tensors without axes count where they are of a higher kind, and then numbers. So an f16
/// tensor times 2.5 is f16, an i32 tensor plus 2.5 is f32, and a bool tensor plus 1 is i64.
/// @throws TypeError where there is none: u64 beside signed integers
DECLIVITY_API DType result_type(const TensorOrScalar& a, const TensorOrScalar& b);

}  // namespace declivity

#include <declivity/tensor/indexing.hpp>  // for those who call operator[]
