// Layer 3. Indexing: x[2], x[Slice(1, 3)], x[{0, Slice(), -1}], x[{Ellipsis(), NewAxis(), 0}], x[rows], x[mask].
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

namespace detail {
struct Region;
}

/// @addtogroup tensor
/// @{

/// Elements start, start + step, ... of an axis, up to but excluding `stop`: Python's start:stop:step with a step of at
/// least 1 (use flip() to reverse). Negative bounds count from the end; out-of-range ones are clipped. Slice() is the
/// whole axis.
struct Slice {
    std::optional<std::int64_t> start, stop;
    std::int64_t step;

    Slice(std::optional<std::int64_t> first = {}, std::optional<std::int64_t> end = {}, std::int64_t by = 1)  // NOLINT
        : start(first), stop(end), step(by) {}
};

/// Index of one axis: an element, whose axis is removed, or a Slice.
class Index {
  public:
    template <std::integral T>
    Index(T element) : element_(static_cast<std::int64_t>(element)) {}  // NOLINT: a number is an index
    Index(Slice slice) : slice_(slice) {}                               // NOLINT

    [[nodiscard]] const std::optional<std::int64_t>& element() const noexcept { return element_; }
    [[nodiscard]] const Slice& slice() const noexcept { return slice_; }

  private:
    std::optional<std::int64_t> element_;
    Slice slice_;
};

/// Result of x[...]: a view that shares the memory of x; x[...] = y writes to x. In a variable (`auto row = x[0]`) it
/// is a tensor like any other, and sees later writes to x.
///
/// y is a tensor, which broadcasts to the shape of the part and is converted as by .to() (a floating one is truncated
/// for integers), or a number, which the type of x must represent. x[...] += y requires a result that fits into the
/// type of x. An expanded x, in which several elements share memory, is refused. Writes follow the rules of
/// Tensor::copy_: in grad mode, x gets the new value and its position in the graph, so that
///
///     for (int t = 0; t < steps; ++t) x[t] = step(x[t - 1]);
///
/// is differentiable.
class DECLIVITY_API TensorPart : public Tensor {
  public:
    TensorPart(const TensorPart&) = default;
    TensorPart(TensorPart&&) = default;
    ~TensorPart() = default;

    // Rvalue only: x[...] = y shows that x is written, part = y would not.
    TensorPart& operator=(const TensorPart& value) &&;
    TensorPart& operator=(const TensorOrScalar& value) &&;
    TensorPart& operator+=(const TensorOrScalar& value) &&;
    TensorPart& operator-=(const TensorOrScalar& value) &&;
    TensorPart& operator*=(const TensorOrScalar& value) &&;
    TensorPart& operator/=(const TensorOrScalar& value) &&;

    /// A part of the part: x[1][2] = y writes to x as well.
    [[nodiscard]] TensorPart operator[](const Index& index) const;
    [[nodiscard]] TensorPart operator[](std::initializer_list<Index> indices) const;
    [[nodiscard]] TensorPart part(std::span<const Index> indices) const;
    template <class T>
    requires detail::SelectsAlone<T>
    [[nodiscard]] TensorSelection operator[](const T& indices) const;
    template <class Selection = TensorSelection>
    [[nodiscard]] Selection operator[](std::initializer_list<SelectionIndex> indices) const;

  private:
    friend class Tensor;
    TensorPart(const Tensor& whole, std::shared_ptr<const detail::Region> region);
    void write(const TensorOrScalar& value);

    Tensor whole_;
    std::shared_ptr<const detail::Region> region_;
};

/// Inserts an axis of size 1.
struct NewAxis {};
/// Stands for as many whole axes as the other indices leave.
struct Ellipsis {};

/// Element of x[{...}]: an integer, a Slice, a tensor of indices or bools, NewAxis(), Ellipsis().
class SelectionIndex {
  public:
    template <std::integral T>
    SelectionIndex(T element) : kind_(Kind::index), index_(element) {}                  // NOLINT: a number is an index
    SelectionIndex(Slice slice) : kind_(Kind::index), index_(slice) {}                  // NOLINT
    SelectionIndex(Index index) : kind_(Kind::index), index_(index) {}                  // NOLINT
    SelectionIndex(Tensor tensor) : kind_(Kind::tensor), tensor_(std::move(tensor)) {}  // NOLINT
    SelectionIndex(NewAxis) : kind_(Kind::new_axis) {}                                  // NOLINT
    SelectionIndex(Ellipsis) : kind_(Kind::ellipsis) {}                                 // NOLINT

  private:
    friend class TensorSelection;
    enum class Kind : std::uint8_t { index, tensor, new_axis, ellipsis };
    Kind kind_;
    Index index_ = Slice();
    Tensor tensor_;
};

/// Result of x[...] with tensors, new axes or an ellipsis among the indices (advanced indexing). It becomes a tensor
/// when it is read (Tensor y = x[rows]; sum(x[rows]); x[rows] * 2), and writes to x when it is assigned to.
///
/// Elements and slices are applied first, as by x[{...}] without tensors. Index tensors broadcast; their axes replace
/// the first of them, or come first if other indices separate them. A bool tensor of n axes selects the positions where
/// it is true in n axes of x. Negative indices count from the end. Reading by a bool tensor synchronises to count the
/// true elements; x[mask] = number does not. As in PyTorch.
///
/// x[rows] = y, x[rows] += y: y broadcasts to the shape of x[rows] and is converted to the type of x. If a position
/// occurs several times, the last value is kept, for += as well (index_add accumulates). Otherwise as TensorPart.
class DECLIVITY_API TensorSelection {
  public:
    TensorSelection(const TensorSelection&) = default;
    TensorSelection(TensorSelection&&) = default;
    ~TensorSelection() = default;

    /// The selected elements. Differentiable.
    /// @throws ShapeError for an index out of range, for too many indices, for bool tensors that do not match;
    /// TypeError for tensors of other types
    [[nodiscard]] Tensor tensor() const;
    operator Tensor() const { return tensor(); }          // NOLINT: reads the elements
    operator TensorOrScalar() const { return tensor(); }  // NOLINT
    [[nodiscard]] Shape shape() const { return tensor().shape(); }
    [[nodiscard]] DType dtype() const { return base_->dtype(); }
    [[nodiscard]] std::int64_t numel() const { return tensor().numel(); }
    /// The only element. Synchronises, as does to_vector().
    template <class T>
    [[nodiscard]] T item() const {
        return tensor().item<T>();
    }
    template <class T>
    [[nodiscard]] std::vector<T> to_vector() const {
        return tensor().to_vector<T>();
    }

    TensorSelection& operator=(const TensorSelection& value) &&;
    TensorSelection& operator=(const TensorOrScalar& value) &&;
    TensorSelection& operator+=(const TensorOrScalar& value) &&;
    TensorSelection& operator-=(const TensorOrScalar& value) &&;
    TensorSelection& operator*=(const TensorOrScalar& value) &&;
    TensorSelection& operator/=(const TensorOrScalar& value) &&;

  private:
    friend class Tensor;
    friend class TensorPart;
    template <class Whole>
    static TensorSelection of(const Whole& whole, std::span<const SelectionIndex> indices) {
        TensorSelection made(whole.shape(), indices);
        made.base_ = std::make_shared<TensorPart>(whole.part(made.region_));
        return made;
    }
    TensorSelection(const Shape& shape, std::span<const SelectionIndex> indices);
    [[nodiscard]] Tensor base_view() const;
    void write(const TensorOrScalar& value);

    std::vector<Index> region_;           // elements and slices
    std::shared_ptr<TensorPart> base_;    // the part of x that they select
    std::vector<std::int64_t> new_axes_;  // positions within the part that is indexed by tensors
    std::vector<Tensor> tensors_;         // one per axis, undefined for a whole axis; a bool one spans several
};

/// @}

namespace detail {
template <class T>
SelectionIndex selection_index(const T& index) {
    if constexpr (std::convertible_to<T, SelectionIndex>) return index;
    else return Tensor(index);
}
}  // namespace detail

template <class T>
requires detail::SelectsAlone<T> TensorSelection Tensor::operator[](const T& indices) const {
    const SelectionIndex only[] = {detail::selection_index(indices)};
    return TensorSelection::of(*this, only);
}
template <class Selection>
Selection Tensor::operator[](std::initializer_list<SelectionIndex> indices) const {
    return TensorSelection::of(*this, std::span(indices.begin(), indices.size()));
}
template <class T>
requires detail::SelectsAlone<T> TensorSelection TensorPart::operator[](const T& indices) const {
    const SelectionIndex only[] = {detail::selection_index(indices)};
    return TensorSelection::of(*this, only);
}
template <class Selection>
Selection TensorPart::operator[](std::initializer_list<SelectionIndex> indices) const {
    return TensorSelection::of(*this, std::span(indices.begin(), indices.size()));
}

}  // namespace declivity
