// Prints values like NumPy: at most three at both ends of each axis if there are many, aligned in columns.
#include <algorithm>
#include <cmath>
#include <ostream>

#include <declivity/ops/copy.hpp>
#include <declivity/tensor/grad_mode.hpp>
#include <declivity/tensor/tensor.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

constexpr std::int64_t kSummarizeThreshold = 1000;  // number of elements from which on the middle is omitted
constexpr std::int64_t kEdgeItems = 3;              // elements shown at each end

/// Elements to print: the middle of long axes is left out.
ops::View edges(ops::View x) {
    for (int axis = 0; axis < x.rank(); ++axis) {
        const std::int64_t size = x.shape[axis];
        if (size <= 2 * kEdgeItems) continue;
        Shape shape = x.shape;
        shape[axis] = 2 * kEdgeItems;
        const ops::View ends = ops::View::make(x.device(), x.dtype, shape);
        ops::copy(ops::sliced(x, axis, 0, kEdgeItems, 1), ops::sliced(ends, axis, 0, kEdgeItems, 1));
        ops::copy(ops::sliced(x, axis, size - kEdgeItems, kEdgeItems, 1),
                  ops::sliced(ends, axis, kEdgeItems, kEdgeItems, 1));
        x = ends;
    }
    return x;
}

template <class T>
std::vector<double> upcast(const Tensor& x) {
    const auto values = x.to_vector<T>();
    return {values.begin(), values.end()};
}

std::vector<std::string> format_elements(const Tensor& x) {
    std::vector<std::string> out;
    const auto integers = [&](const auto& values) {
        for (const auto value : values) out.push_back(std::to_string(value));
    };
    switch (x.dtype()) {
        case DType::i8:
            integers(x.to_vector<std::int8_t>());
            return out;
        case DType::u8:
            integers(x.to_vector<std::uint8_t>());
            return out;
        case DType::i16:
            integers(x.to_vector<std::int16_t>());
            return out;
        case DType::u16:
            integers(x.to_vector<std::uint16_t>());
            return out;
        case DType::i32:
            integers(x.to_vector<std::int32_t>());
            return out;
        case DType::u32:
            integers(x.to_vector<std::uint32_t>());
            return out;
        case DType::i64:
            integers(x.to_vector<std::int64_t>());
            return out;
        case DType::u64:
            integers(x.to_vector<std::uint64_t>());
            return out;
        case DType::boolean:
            for (const auto value : x.to_vector<std::uint8_t>()) out.emplace_back(value != 0 ? "true" : "false");
            return out;
        case DType::f32:
        case DType::f64:
        case DType::f16:
        case DType::bf16:
            break;
    }
    const auto values = x.dtype() == DType::f64 ? upcast<double>(x) : upcast<float>(x.to(DType::f32));
    double largest = 0, smallest = INFINITY;
    for (const double value : values)
        if (std::isfinite(value) && value != 0) {
            largest = std::max(largest, std::abs(value));
            smallest = std::min(smallest, std::abs(value));
        }
    const bool scientific = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1e6));
    for (const double value : values)
        out.push_back(std::isnan(value) ? "nan"
                      : scientific      ? fmt::format("{:.4e}", value)
                                        : fmt::format("{:.4f}", value));
    return out;
}

struct Printer {
    const Shape& shape;  // of the tensor
    const Shape& shown;  // of the printed part
    const std::vector<std::string>& values;
    std::size_t width;

    void print(std::string& out, int axis, std::size_t& position) const {
        if (axis == shape.rank()) {
            out += fmt::format("{:>{}}", values[position++], width);
            return;
        }
        const bool last = axis + 1 == shape.rank();
        out += '[';
        for (std::int64_t i = 0; i < shown[axis]; ++i) {
            if (i > 0) separate(out, axis, last);
            if (i == kEdgeItems && shown[axis] < shape[axis]) {
                out += "...";
                separate(out, axis, last);
            }
            print(out, axis + 1, position);
        }
        out += ']';
    }

    void separate(std::string& out, int axis, bool last) const {
        if (last) out += ", ";
        else
            out += ',' + std::string(static_cast<std::size_t>(shape.rank() - axis - 1), '\n') +
                   std::string(static_cast<std::size_t>(axis) + 1, ' ');
    }
};

}  // namespace

std::string Tensor::str() const {
    if (!defined()) return "Tensor(undefined)";
    const std::string head = fmt::format("Tensor({}, {}, '{}'{})\n", name_of(dtype()), shape().str(), device().name(),
                                         requires_grad() ? ", requires_grad" : "");
    if (numel() == 0) return head + "[]";  // whatever the other axes are, like NumPy
    const NoGrad no_grad;
    const Tensor detached = detach();
    const Tensor shown = numel() > kSummarizeThreshold ? Tensor(edges(detached.view())) : detached;
    const auto values = format_elements(shown);
    std::size_t width = 0;
    for (const std::string& value : values) width = std::max(width, value.size());
    std::string out = head;
    std::size_t position = 0;
    Printer{shape(), shown.shape(), values, width}.print(out, 0, position);
    return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace declivity
