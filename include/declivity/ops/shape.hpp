// Layer 2. Shapes and strides: short lists of 64-bit numbers.
#pragma once

#include <array>
#include <cstdint>
#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>

namespace declivity {

/// @addtogroup ops
/// @{

/// A list of at most kMaxRank numbers, stored inline. Used for shapes, strides, axes and starts.
class DECLIVITY_API Dims {
  public:
    static constexpr int kMaxRank = 8;

    Dims() = default;
    /// @throws ShapeError when more than kMaxRank numbers are given
    Dims(std::initializer_list<std::int64_t> values);
    explicit Dims(std::span<const std::int64_t> values);
    Dims(const std::vector<std::int64_t>& values);  // NOLINT: a vector of sizes is a shape
    /// One number, such as the axis of sum(x, 1).
    template <std::integral T>
    requires(!std::same_as<T, bool>) Dims(T value) : Dims({static_cast<std::int64_t>(value)}) {}  // NOLINT
    /// Returns `rank` times the same value.
    static Dims filled(int rank, std::int64_t value);

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] bool empty() const noexcept { return rank_ == 0; }
    /// A negative axis counts from the end: shape[-1] is the innermost.
    /// @throws ShapeError outside of [-rank, rank)
    [[nodiscard]] std::int64_t operator[](int axis) const { return values_[index_of(axis)]; }
    std::int64_t& operator[](int axis) { return values_[index_of(axis)]; }
    /// Product of all values; 1 for an empty list.
    [[nodiscard]] std::int64_t numel() const noexcept;
    /// @throws ShapeError when the list is full, or for a position out of range
    void push_back(std::int64_t value);
    void insert(int position, std::int64_t value);
    void erase(int position);

    [[nodiscard]] const std::int64_t* begin() const noexcept { return values_.data(); }
    [[nodiscard]] const std::int64_t* end() const noexcept { return values_.data() + rank_; }
    [[nodiscard]] std::int64_t back() const { return (*this)[-1]; }
    [[nodiscard]] std::span<const std::int64_t> span() const noexcept { return {begin(), end()}; }
    /// "[2, 3, 4]".
    [[nodiscard]] std::string str() const;

    friend bool operator==(const Dims& a, const Dims& b) noexcept {
        if (a.rank_ != b.rank_) return false;
        for (int i = 0; i < a.rank_; ++i)
            if (a[i] != b[i]) return false;
        return true;
    }

  private:
    [[nodiscard]] std::size_t index_of(int axis) const {
        const int from_start = axis < 0 ? axis + rank_ : axis;
        if (from_start < 0 || from_start >= rank_) [[unlikely]]
            refuse_axis(axis);
        return static_cast<std::size_t>(from_start);
    }
    [[noreturn]] void refuse_axis(int axis) const;

    std::array<std::int64_t, kMaxRank> values_{};
    int rank_ = 0;
};

/// Writes str().
DECLIVITY_API std::ostream& operator<<(std::ostream& out, const Dims& dims);

/// Sizes of a tensor, outermost first. An empty shape is a scalar.
using Shape = Dims;
/// Distance, in elements, between neighbours along each axis.
using Strides = Dims;

/// A pair of numbers, vertical and horizontal; one number stands for both: `{.padding = 1}`, `{.stride = {2, 1}}`.
struct Size2 : std::array<std::int64_t, 2> {
    constexpr Size2(std::int64_t both) : array{both, both} {}  // NOLINT: implicit by design
    constexpr Size2(std::int64_t vertical, std::int64_t horizontal) : array{vertical, horizontal} {}
};

/// Row-major strides of a dense tensor.
DECLIVITY_API Strides dense_strides(const Shape& shape);

/// Normalises an axis from -rank..rank-1 to 0..rank-1.
/// @throws ShapeError naming `function` if out of range
DECLIVITY_API int normalize_axis(std::string_view function, std::int64_t axis, int rank);

/// Broadcast shape by NumPy's rule: aligned at the right, a size of 1 broadcasts.
/// @throws ShapeError naming `function` and both shapes when they do not match
DECLIVITY_API Shape broadcast_shapes(std::string_view function, const Shape& a, const Shape& b);

/// @}

}  // namespace declivity
