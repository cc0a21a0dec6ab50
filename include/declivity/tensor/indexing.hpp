// Layer 3. Parts of tensors: x[2], x[Slice(1, 3)], x[{0, Slice(), -1}], x[{Ellipsis(), NewAxis(), 0}], x[rows],
// x[mask].
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

/// Elements start, start + step, ... of an axis, up to `stop` without it, as Python's start:stop:step with a step of at
/// least 1 (flip() turns round). Those below 0 count from the end; what lies outside is left out. Slice() is the whole
/// axis.
struct Slice {
    std::optional<std::int64_t> start, stop;
    std::int64_t step;

    Slice(std::optional<std::int64_t> first = {}, std::optional<std::int64_t> end = {}, std::int64_t by = 1)  // NOLINT
        : start(first), stop(end), step(by) {}
};

/// What one axis is indexed by: an element, whose axis is left out, or a Slice.
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

/// What x[...] gives: a tensor that shares the memory of x, to which x[...] = y writes. Kept in a variable (`auto row =
/// x[0]`), it is a tensor like others, which sees what is written to x.
///
/// y is a tensor, whose shape stretches to that of the part and whose type is converted, as by .to() (a floating one is
/// truncated for a part of integers), or a number, which the type of x must hold. x[...] += y wants a result that fits
/// into the type of x. An expanded x, of whose elements several lie in one place, is refused. Writes follow the rules
/// of Tensor::copy_: where a graph is recorded, x takes the new value and its place in the graph, so that
///
///     for (int t = 0; t < steps; ++t) x[t] = step(x[t - 1]);
///
/// has its gradients.
class DECLIVITY_API TensorPart : public Tensor {
  public:
    TensorPart(const TensorPart&) = default;
    TensorPart(TensorPart&&) = default;
    ~TensorPart() = default;

    // Of x[...] itself alone, since nothing else shows that x is written.
    TensorPart& operator=(const TensorPart& value) &&;
    TensorPart& operator=(const TensorOrScalar& value) &&;
    TensorPart& operator+=(const TensorOrScalar& value) &&;
    TensorPart& operator-=(const TensorOrScalar& value) &&;
    TensorPart& operator*=(const TensorOrScalar& value) &&;
    TensorPart& operator/=(const TensorOrScalar& value) &&;

    /// A part of the part: x[1][2] = y writes to x, too.
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

/// An axis of size 1 where there was none.
struct NewAxis {};
/// As many whole axes as the other indices leave.
struct Ellipsis {};

/// What x[{...}] takes: an element, a Slice, a tensor of indices or a bool one, NewAxis(), Ellipsis().
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

/// What x[...] gives where tensors, new axes or an ellipsis are among the indices: not yet a tensor, but what becomes
/// one when it is read (Tensor y = x[rows]; sum(x[rows]); x[rows] * 2), and writes to x when it is assigned to.
///
/// Elements and slices are taken first, as by x[{...}] without tensors. Tensors are stretched over each other; their
/// axes stand where the first of them stood, and in front where others stand between them. A bool tensor of n axes
/// stands for the places where it is true in n axes of x. Negative indices count from the end. Reading by a bool tensor
/// asks how many are true, which waits; x[mask] = number does not wait. As in PyTorch.
///
/// x[rows] = y, x[rows] += y: y stretches to the shape of x[rows] and is converted to the type of x. Where a place is
/// named several times, the last of the values stays, of += as well (index_add adds all). Other rules as of TensorPart.
class DECLIVITY_API TensorSelection {
  public:
    TensorSelection(const TensorSelection&) = default;
    TensorSelection(TensorSelection&&) = default;
    ~TensorSelection() = default;

    /// The elements. Differentiable.
    /// @throws ShapeError for an index out of range, for more than there are axes, for bool tensors that do not fit;
    /// TypeError for tensors of other types
    [[nodiscard]] Tensor tensor() const;
    operator Tensor() const { return tensor(); }          // NOLINT: it stands for them
    operator TensorOrScalar() const { return tensor(); }  // NOLINT
    [[nodiscard]] Shape shape() const { return tensor().shape(); }
    [[nodiscard]] DType dtype() const { return base_->dtype(); }
    [[nodiscard]] std::int64_t numel() const { return tensor().numel(); }
    /// Of the only one there is. Waits, as the next.
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
    [[nodiscard]] Tensor viewed() const;
    void write(const TensorOrScalar& value);

    std::vector<Index> region_;           // elements and slices
    std::shared_ptr<TensorPart> base_;    // what they leave of x
    std::vector<std::int64_t> new_axes_;  // places of those within what is indexed by tensors
    std::vector<Tensor> tensors_;         // for each of its axes, undefined for whole ones; a bool one for several
};

namespace detail {
template <class T>
SelectionIndex selection_index(const T& one) {
    if constexpr (std::convertible_to<T, SelectionIndex>) return one;
    else return Tensor(one);
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
