#include <algorithm>
#include <ostream>

#include <declivity/ops/shape.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity {

Dims::Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}

Dims::Dims(std::span<const std::int64_t> values) {
    if (values.size() > kMaxRank)
        throw ShapeError(fmt::format("Dims: expected at most {} axes, got {}: {}", kMaxRank, values.size(), values));
    std::ranges::copy(values, values_.begin());
    rank_ = static_cast<int>(values.size());
}

Dims::Dims(const std::vector<std::int64_t>& values) : Dims(std::span(values)) {}

std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << dims.str(); }

Dims Dims::filled(int rank, std::int64_t value) {
    Dims dims;
    for (int i = 0; i < rank; ++i) dims.push_back(value);
    return dims;
}

std::int64_t Dims::numel() const noexcept {
    std::uint64_t count = 1;  // unsigned, since overflow is defined: with an axis of size 0 the product ends in 0
    for (const std::int64_t value : *this) count *= static_cast<std::uint64_t>(value);
    return static_cast<std::int64_t>(count);
}

void Dims::push_back(std::int64_t value) { insert(rank_, value); }

void Dims::refuse_axis(int axis) const {
    throw ShapeError(fmt::format("Dims: expected an axis in [{}, {}), got {} of {}", -rank_, rank_, axis, str()));
}

void Dims::insert(int position, std::int64_t value) {
    if (position < 0 || position > rank_)
        throw ShapeError(fmt::format("Dims::insert: expected a position in [0, {}], got {}", rank_, position));
    if (rank_ == kMaxRank)
        throw ShapeError(fmt::format("Dims: expected at most {} axes, got one more than {}", kMaxRank, str()));
    std::copy_backward(values_.begin() + position, values_.begin() + rank_, values_.begin() + rank_ + 1);
    values_[static_cast<std::size_t>(position)] = value;
    ++rank_;
}

void Dims::erase(int position) {
    if (position < 0 || position >= rank_)
        throw ShapeError(fmt::format("Dims::erase: expected a position in [0, {}), got {}", rank_, position));
    std::copy(values_.begin() + position + 1, values_.begin() + rank_, values_.begin() + position);
    --rank_;
}

std::string Dims::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

Strides dense_strides(const Shape& shape) {
    Strides strides = Dims::filled(shape.rank(), 1);
    std::uint64_t stride = 1;
    for (int axis = shape.rank() - 2; axis >= 0; --axis) {
        stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(shape[axis + 1], 1));
        strides[axis] = static_cast<std::int64_t>(stride);
    }
    return strides;
}

int normalize_axis(std::string_view function, std::int64_t axis, int rank) {
    if (axis < -rank || axis >= rank)
        throw ShapeError(
            rank == 0 ? fmt::format("{}: expected a tensor that has axes, got one of shape []", function)
                      : fmt::format("{}: expected an axis in [{}, {}], got {}", function, -rank, rank - 1, axis));
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast_shapes(std::string_view function, const Shape& a, const Shape& b) {
    Shape out = a.rank() >= b.rank() ? a : b;
    for (int i = 1; i <= out.rank(); ++i) {
        const std::int64_t size_a = i <= a.rank() ? a[a.rank() - i] : 1;
        const std::int64_t size_b = i <= b.rank() ? b[b.rank() - i] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1)
            throw ShapeError(
                fmt::format("{}: expected shapes that broadcast, got {} and {}", function, a.str(), b.str()));
        out[out.rank() - i] = size_a == 1 ? size_b : size_a;
    }
    return out;
}

}  // namespace declivity
