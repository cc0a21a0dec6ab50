// Layer 3. Tensor: the array type of the public interface.
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

/// @addtogroup tensor
/// @{

class Index;
class SelectionIndex;
class TensorOrScalar;
class TensorPart;
class TensorSelection;
struct NewAxis;
struct Ellipsis;
class Tensor;

namespace detail {
/// Index types that x[...] takes without braces, in addition to numbers and slices.
template <class T>
concept SelectsAlone = std::derived_from<T, Tensor> || std::same_as<T, TensorSelection> || std::same_as<T, NewAxis> ||
    std::same_as<T, Ellipsis>;
}  // namespace detail

/// The device of tensors created without naming one: Device::best() until set_default_device().
DECLIVITY_API Device default_device();
/// Sets the device of tensors created without naming one.
DECLIVITY_API void set_default_device(const Device& device);

/// A handle to elements on a device: copies of the handle share them. Row-major; images are N,C,H,W. Execution is
/// asynchronous and lazy: calls check their arguments immediately and run later; only reading a value on the host
/// synchronises.
class DECLIVITY_API Tensor {
  public:
    /// Undefined tensor, which functions accept for optional arguments.
    Tensor() = default;
    /// Wraps existing memory, or a lazy array that is computed when needed.
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
    /// PyTorch's names of shape() and rank().
    [[nodiscard]] const Shape& sizes() const { return shape_for("sizes"); }
    [[nodiscard]] int dim() const { return shape_for("dim").rank(); }
    /// Size of one axis; -1 is the last.
    [[nodiscard]] std::int64_t size(std::int64_t axis) const;
    [[nodiscard]] int rank() const { return shape_for("rank").rank(); }
    [[nodiscard]] std::int64_t numel() const { return shape_for("numel").numel(); }
    [[nodiscard]] DType dtype() const;
    [[nodiscard]] Device device() const;

    /// The only element. Synchronises.
    /// @throws ShapeError unless there is one element, TypeError unless T is the tensor's type
    template <class T>
    [[nodiscard]] T item() const {
        T value{};
        read_bytes("item", std::as_writable_bytes(std::span(&value, 1)), dtype_of<T>());
        return value;
    }
    /// All elements, row-major. Synchronises.
    template <class T>
    [[nodiscard]] std::vector<T> to_vector() const {
        static_assert(!std::is_same_v<T, bool>,
                      "std::vector<bool> has no elements to copy into: use to_vector<std::uint8_t>()");
        std::vector<T> values(static_cast<std::size_t>(shape_for("to_vector").numel()));
        read_bytes("to_vector", std::as_writable_bytes(std::span(values)), dtype_of<T>());
        return values;
    }
    /// Copies all elements, row-major, into memory of the caller. Synchronises. A bool tensor may be read as uint8.
    template <class T>
    void copy_to(std::span<T> values) const {
        read_bytes("copy_to", std::as_writable_bytes(values), dtype_of<T>());
    }

    /// Copies to another device; returns this tensor if it is there already. Differentiable.
    [[nodiscard]] Tensor to(const Device& device) const;
    /// Converts to another type; returns this tensor if it has the type. Differentiable between floating types.
    [[nodiscard]] Tensor to(DType dtype) const;
    /// A dense copy with memory of its own. Differentiable, so that it requires a gradient if this tensor does; use
    /// detach().clone() for a copy outside of the graph.
    [[nodiscard]] Tensor clone() const;

    /// Basic indexing: x[2] is element 2 of the first axis, x[Slice(1, 3)] its elements 1 and 2, x[{0, Slice(), -1}]
    /// indexes each axis. Reads are differentiable; x[2] = y and x[2] += y write (indexing.hpp).
    /// @throws ShapeError for an index out of range, or too many indices
    [[nodiscard]] TensorPart operator[](const Index& index) const;
    [[nodiscard]] TensorPart operator[](std::initializer_list<Index> indices) const;
    /// Basic indexing by a list made at run time.
    [[nodiscard]] TensorPart part(std::span<const Index> indices) const;
    /// Advanced indexing by tensors of integers or bools, new axes and an ellipsis: x[rows], x[mask] = 0,
    /// x[{Ellipsis(), NewAxis(), columns}]. For reading and writing (TensorSelection in indexing.hpp).
    template <class T>
    requires detail::SelectsAlone<T>
    [[nodiscard]] TensorSelection operator[](const T& indices) const;
    template <class Selection = TensorSelection>
    [[nodiscard]] Selection operator[](std::initializer_list<SelectionIndex> indices) const;

    // ---- gradients

    [[nodiscard]] bool requires_grad() const;
    /// Makes a leaf require a gradient. @throws ValueError for the result of a differentiable function
    Tensor& set_requires_grad(bool wanted = true);
    /// True unless the tensor is the result of a differentiable function.
    [[nodiscard]] bool is_leaf() const;
    /// The gradient accumulated by backward(), or an undefined tensor. Several threads may call backward() into one
    /// leaf concurrently with this, set_grad() and zero_grad() (docs/internals/robustness.md).
    [[nodiscard]] Tensor grad() const;
    /// Replaces the gradient. A gradient whose graph (GradOptions::create_graph) leads to this tensor forms a reference
    /// cycle with it, which only zero_grad() or another gradient frees: prefer a variable for such a gradient.
    /// @throws ShapeError, TypeError or DeviceError unless the gradient matches the tensor
    void set_grad(const Tensor& gradient);
    /// Resets the gradient to undefined.
    void zero_grad();
    /// Adds d(this)/d(leaf) to the grad of every leaf that requires one. A tensor of more than one element needs
    /// `gradient`, of its own shape.
    /// @throws ValueError when there is no graph, or when it was freed by an earlier backward
    void backward(const Tensor& gradient = {}, bool retain_graph = false) const;
    /// The same elements, outside of the graph.
    [[nodiscard]] Tensor detach() const;
    /// Registers a function to be called with the gradient of this tensor when backward has computed it; a defined
    /// result replaces the gradient. Returns a number for remove_hook.
    int register_hook(std::function<Tensor(const Tensor&)> hook);
    /// Registers a function to be called with this leaf as soon as backward() has accumulated the whole gradient into
    /// its grad(), while the rest of the graph is still pending: to overlap work such as an all-reduce over devices or
    /// an optimizer step. The hook may replace or reset the grad. Not called by grad(). Returns a number for
    /// remove_hook.
    /// @throws ValueError for a tensor that is no leaf, or requires no gradient
    int register_post_accumulate_grad_hook(std::function<void(Tensor&)> hook);
    /// Removes a hook of either kind. No effect if it is removed already.
    void remove_hook(int number);

    // ---- in-place operations
    //
    // If neither this tensor nor the source requires a gradient, and under NoGrad, memory is written, and all tensors
    // that share it see that. In grad mode this handle and its copies instead take the new value and its position in
    // the graph; what was computed from the old value, or saved for backward, keeps it. In grad mode these are refused:
    // a leaf that requires a gradient, and a tensor that shares memory with other live tensors (slice, reshape, detach,
    // ...).

    /// Copies the elements of `source` (same shape and type, any device). A pending, unshared source is computed
    /// directly into this memory: `slice(cache, 0, t, t + 1).copy_(relu(x))` is one kernel. For parts of a tensor in a
    /// graph see slice_scatter().
    Tensor& copy_(Tensor source);
    /// Sets all elements. In a graph, the tensor then depends on nothing.
    Tensor& fill_(Scalar value);
    Tensor& zero_();
    /// x = x + other, and so on, also as `x += other`. `other` broadcasts to the shape of x.
    /// @throws TypeError if the result type is of a higher category than x: a floating type, and x has integers
    Tensor& add_(TensorOrScalar other);
    Tensor& sub_(TensorOrScalar other);
    Tensor& mul_(TensorOrScalar other);
    Tensor& div_(TensorOrScalar other);

    /// The memory, for reading or writing, outside of any graph. Launches the pending writers and readers first, so
    /// that later commands of the compute queue see the values: call it again before each write.
    [[nodiscard]] const ops::View& view() const;
    /// The memory as a dense view, for reading; a copy if the tensor is not dense.
    [[nodiscard]] ops::View dense_view() const;
    /// The lazy array of the elements, to build expressions on.
    [[nodiscard]] const ops::LazyArray& value() const;

    /// Replaces the elements of this handle and all its copies by those of `other`, outside of its graph; the gradient
    /// is dropped. Modules use it to move parameters to another device without invalidating handles to them.
    void assign(const Tensor& other);
    /// For operators that write the memory themselves: increments the version counter, which invalidates values saved
    /// by the graph and data that operators cached for a constant (a parameter used under NoGrad).
    void bump_version() const;
    [[deprecated("Tensor::bump_version")]] void mark_written() const { bump_version(); }

    /// Shape, type, device and the values, abbreviated as NumPy does. Synchronises.
    [[nodiscard]] std::string str() const;

  private:
    friend struct detail::StateAccess;
    explicit Tensor(std::shared_ptr<detail::TensorState> state) : state_(std::move(state)) {}
    static Tensor from_bytes(std::string_view function, std::span<const std::byte> bytes, DType dtype,
                             const Shape& shape, const std::optional<Device>& device);
    [[nodiscard]] const Shape& shape_for(std::string_view function) const;
    void read_bytes(std::string_view function, std::span<std::byte> bytes, DType dtype) const;
    std::shared_ptr<detail::TensorState> state_;
};

/// Writes str(). Synchronises.
DECLIVITY_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Argument of functions that take a tensor or a number: where(x > 0.5, x, 0).
class TensorOrScalar {
  public:
    TensorOrScalar(Tensor tensor) : tensor_(std::move(tensor)), is_scalar_(false) {}  // NOLINT: implicit by design
    TensorOrScalar(Scalar number) : number_(number), is_scalar_(true) {}              // NOLINT
    template <class T>
    requires std::is_arithmetic_v<T> TensorOrScalar(T number) : TensorOrScalar(Scalar(number)) {}  // NOLINT

    [[nodiscard]] bool is_scalar() const noexcept { return is_scalar_; }
    /// Undefined if it is a number.
    [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }
    /// 0 if it is a tensor.
    [[nodiscard]] const Scalar& scalar() const noexcept { return number_; }

  private:
    Tensor tensor_;
    Scalar number_;
    bool is_scalar_;
};

/// Result type of an elementwise function of these operands, as in PyTorch: promote_types() of the highest category of
/// tensors with axes; tensors without axes, and then numbers, count only if they are of a higher category. So an f16
/// tensor times 2.5 is f16, an i32 tensor plus 2.5 is f32, and a bool tensor plus 1 is i64.
/// @throws TypeError if there is none: u64 with signed integers
DECLIVITY_API DType result_type(const TensorOrScalar& a, const TensorOrScalar& b);

/// @}

}  // namespace declivity

#include <declivity/tensor/indexing.hpp>  // for callers of operator[]
