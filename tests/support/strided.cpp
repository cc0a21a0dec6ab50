#include "tests/support/strided.hpp"

#include <algorithm>

#include <tests/support/values.hpp>

namespace declivity::test {

std::int64_t Random::below(std::int64_t limit) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(limit));
}

StridedArray::StridedArray(const std::vector<double>& memory, DType dtype, std::int64_t offset, const Shape& shape,
                           const Strides& strides)
    : memory_(memory), view_(tensor(memory, {static_cast<std::int64_t>(memory.size())}, dtype).view()) {
    view_.offset = offset;
    view_.shape = shape;
    view_.strides = strides;
}

double StridedArray::at(const Dims& index) const {
    std::int64_t position = view_.offset;
    const int missing = index.rank() - view_.rank();
    for (int axis = 0; axis < view_.rank(); ++axis)
        if (view_.shape[axis] != 1) position += index[axis + missing] * view_.strides[axis];
    return memory_[static_cast<std::size_t>(position)];
}

void StridedArray::expect(const Shape& shape, const std::function<double(const Dims&)>& value) {
    for_each_index(shape, [&](const Dims& index) {
        std::int64_t position = view_.offset;
        for (int axis = 0; axis < shape.rank(); ++axis) position += index[axis] * view_.strides[axis];
        memory_[static_cast<std::size_t>(position)] = value(index);
    });
}

std::string StridedArray::check() const {
    ops::View buffer_view = view_;
    buffer_view.offset = 0;
    buffer_view.shape = {static_cast<std::int64_t>(memory_.size())};
    buffer_view.strides = {1};
    std::vector<double> expected = memory_;
    if (is_floating(view_.dtype))
        for (double& value : expected) value = as_type(value, view_.dtype);
    return difference(Tensor(buffer_view), expected, {});
}

StridedArray random_strided(const Shape& shape, Random& random, Broadcast broadcast, DType dtype) {
    Shape array_shape = shape;
    if (broadcast == Broadcast::yes) {
        for (int axis = 0; axis < array_shape.rank(); ++axis)
            if (random.below(3) == 0) array_shape[axis] = 1;
        while (array_shape.rank() > 0 && random.below(4) == 0) array_shape.erase(0);
    }
    // The axes, innermost in memory first, in random order; in some cases sliced from a longer one.
    std::vector<int> order;
    for (int axis = array_shape.rank() - 1; axis >= 0; --axis) order.push_back(axis);
    if (random.below(2) == 0)
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    const bool with_gaps = random.below(2) == 0;
    Strides strides = array_shape;
    std::int64_t stride = 1, offset = random.below(4);
    for (const int axis : order) {
        const std::int64_t step = with_gaps && random.below(3) == 0 ? 2 : 1, before = with_gaps ? random.below(2) : 0;
        strides[axis] = stride * step;
        offset += before * stride;
        stride *= std::max<std::int64_t>(1, before + step * array_shape[axis]);
    }
    const std::int64_t total = offset + stride + 3;
    auto memory = random_values(total, static_cast<std::uint64_t>(random.below(1 << 30)), -100, 100);
    for (double& value : memory)
        value = dtype == DType::boolean ? (value > 0 ? 1 : 0)
                : is_floating(dtype)    ? as_type(as_type(value, dtype), DType::f32)
                                        : static_cast<double>(static_cast<int>(std::abs(value)));
    return {memory, dtype, offset, array_shape, strides};
}

void for_each_index(const Shape& shape, const std::function<void(const Dims&)>& call) {
    const std::int64_t count = shape.numel();
    for (std::int64_t i = 0; i < count; ++i) {
        Dims index = shape;
        std::int64_t rest = i;
        for (int axis = shape.rank() - 1; axis >= 0; --axis) {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        call(index);
    }
}

std::vector<double> combined(const Shape& shape, const StridedArray& a, const StridedArray& b,
                             const std::function<double(double, double)>& f) {
    std::vector<double> out;
    for_each_index(shape, [&](const Dims& index) { out.push_back(static_cast<float>(f(a.at(index), b.at(index)))); });
    return out;
}

}  // namespace declivity::test
