// Floor 3. Parts of tensors: x[2], x[Slice(1, 3)], x[{0, Slice(), -1}].
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

namespace detail {
struct Region;
}

/// Elements start, start + step, ... of an axis, up to `stop` without it, as Python's start:stop:step. Those below 0
/// count from the end; what lies outside is left out. Slice() is the whole axis.
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
/// y is a tensor, whose shape stretches to that of the part and whose type is converted, or a number. Writes follow the
/// rules of Tensor::copy_: where a graph is recorded, x takes the new value and its place in the graph, so that
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

  private:
    friend class Tensor;
    TensorPart(const Tensor& whole, std::shared_ptr<const detail::Region> region);
    void write(const TensorOrScalar& value);

    Tensor whole_;
    std::shared_ptr<const detail::Region> region_;
};

}  // namespace declivity
