// Gathering elements along an axis and rows by index, compared with plain C++: every type, indices of both types and
// out of range, rows of all widths and alignments with respect to vector units.
#include <declivity/ops/gather.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,     DType::u8,
                            DType::i16, DType::i32, DType::i64, DType::u64,  DType::boolean};

std::vector<std::int64_t> random_indices(std::int64_t count, std::int64_t size, std::uint64_t seed) {
    std::vector<std::int64_t> out;
    for (const double value :
         random_values(count, seed, -0.1 * static_cast<double>(size) - 1, 1.1 * static_cast<double>(size) + 1))
        out.push_back(static_cast<std::int64_t>(std::floor(value)));
    return out;
}

Tensor elements(const Shape& shape, DType dtype) {
    const double low = is_floating(dtype) ? -1 : 0;
    return tensor(random_values(shape.numel(), 7, low, dtype == DType::boolean ? 2 : 100), shape, dtype);
}

/// A copy of `x` within a larger buffer, at an offset of `offset` elements.
ops::View offset_copy(const Tensor& x, std::int64_t offset) {
    const ops::View all = ops::View::make(x.device(), x.dtype(), {x.numel() + offset});
    ops::View view = ops::reshaped(ops::sliced(all, 0, offset, x.numel()), x.shape());
    Tensor(view).copy_(x);
    return view;
}

double missing_in(DType dtype, double missing) { return is_floating(dtype) ? missing : 0; }

}  // namespace

TEST_CASE("gather: elements of each column, and rows, by index") {
    const Tensor x = tensor({10, 11, 20, 21, 30, 31}, {3, 2});
    const ops::View out = ops::View::make(x.device(), DType::f32, {2, 2});
    // Rows 2 and 0 of the first column, rows 1 and 2 of the second.
    const Tensor at = int64_tensor({2, 1, 0, 2}, {1, 2, 2});
    ops::gather("gather", reshape(x, {1, 3, 2}).view(), at.view(), ops::reshaped(out, {1, 2, 2}));
    CHECK(values(Tensor(out)) == std::vector<double>{30, 21, 10, 31});
    // Row 3 does not exist.
    ops::gather_rows("gather_rows", x.view(), int64_tensor({2, 3}, {2}).view(), out, -1);
    CHECK(values(Tensor(out)) == std::vector<double>{30, 31, -1, -1});
}

TEST_CASE("gather: elements along the middle axis") {
    std::vector<Shape> shapes{{1, 5, 1}, {3, 7, 1}, {4, 3, 5}, {1, 6, 17}, {2, 1, 1}};
    if (!small_cases()) shapes.insert(shapes.end(), {{301, 97, 1}, {1, 50021, 1}, {13, 40, 301}});
    for (const Shape& shape : shapes)
        for (const DType dtype : kTypes) {
            if (dtype == DType::f64 && !device().info().fp64) continue;
            CAPTURE(shape.str());
            CAPTURE(name_of(dtype));
            const Tensor x = elements(shape, dtype);
            const std::vector<double> from = values(x);
            const std::int64_t index_count = shape[1] * 2 + 3, inner = shape[2];
            const Shape expected_shape{shape[0], index_count, inner};
            const std::vector<std::int64_t> indices = random_indices(expected_shape.numel(), shape[1], 3);
            for (const double missing : {0.0, std::nan(""), 1.0}) {
                std::vector<double> expected;
                for (std::int64_t e = 0; e < expected_shape.numel(); ++e) {
                    const std::int64_t o = e / inner / index_count, index_value = indices[static_cast<std::size_t>(e)];
                    const bool inside = index_value >= 0 && index_value < shape[1];
                    expected.push_back(
                        inside ? from[static_cast<std::size_t>((o * shape[1] + index_value) * inner + e % inner)]
                               : missing_in(dtype, missing));
                }
                for (const DType index_dtype : {DType::i32, DType::i64})
                    for (const KernelStyle style : kernel_styles()) {
                        const ops::KernelStyleScope scope(style);
                        CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                        const Tensor at = Tensor::from<std::int64_t>(indices, expected_shape).to(index_dtype);
                        const ops::View out = ops::View::make(x.device(), dtype, expected_shape);
                        ops::gather("gather", x.view(), at.view(), out, missing);
                        CHECK(difference(Tensor(out), expected, {0, 0}) == "");
                    }
            }
        }
}

TEST_CASE("gather: rows, in units of several elements") {
    const std::int64_t size = 11, count = small_cases() ? 30 : 5003;
    for (const DType dtype : kTypes) {
        if (dtype == DType::f64 && !device().info().fp64) continue;
        CAPTURE(name_of(dtype));
        for (const std::int64_t width : {1, 2, 3, 4, 6, 8, 16, 24}) {
            const Tensor x = elements({size, width}, dtype);
            const std::vector<double> from = values(x);
            const std::vector<std::int64_t> indices = random_indices(count, size, 5);
            const Tensor at = Tensor::from<std::int64_t>(indices, {count});
            std::vector<double> expected;
            for (const std::int64_t number : indices)
                for (std::int64_t k = 0; k < width; ++k)
                    expected.push_back(number >= 0 && number < size ? from[static_cast<std::size_t>(number * width + k)]
                                                                    : missing_in(dtype, std::nan("")));
            for (const std::int64_t offset : {0, 1, 4})
                for (const KernelStyle style : kernel_styles()) {
                    const ops::KernelStyleScope scope(style);
                    CAPTURE(width);
                    CAPTURE(offset);
                    CAPTURE(style == KernelStyle::simd ? "simd" : "simt");
                    const ops::View out = ops::View::make(x.device(), dtype, {count, width});
                    ops::gather_rows("gather_rows", offset_copy(x, offset), at.view(), out, std::nan(""));
                    CHECK(difference(Tensor(out), expected, {0, 0}) == "");
                }
        }
    }
}

TEST_CASE("gather: empty inputs and error messages") {
    const Tensor none = zeros({0, 3}), at = zeros({4}, {DType::i64});
    const ops::View out = ops::View::make(none.device(), DType::f32, {4, 3});
    ops::gather_rows("f", none.view(), at.view(), out, std::nan(""));
    for (const double value : values(Tensor(out))) CHECK(std::isnan(value));
    const ops::View rows = ops::View::make(none.device(), DType::f32, {2, 2, 1});
    ops::gather("f", zeros({2, 0, 1}).view(), zeros({2, 2, 1}, {DType::i32}).view(), rows, 3);
    CHECK(values(Tensor(rows)) == std::vector<double>(4, 3));
    CHECK_THROWS_AS(ops::gather_rows("f", zeros({2, 3}).view(), zeros({4}).view(), out, 0), TypeError);
    CHECK_THROWS_AS(ops::gather_rows("f", zeros({2, 4}).view(), at.view(), out, 0), ShapeError);
    CHECK_THROWS_AS(ops::gather("f", zeros({3, 2, 1}).view(), zeros({2, 2, 1}, {DType::i32}).view(), rows), ShapeError);
    CHECK_THROWS_AS(ops::gather("f", zeros({2, 2, 1}).view(), zeros({2, 2, 1}, {DType::i8}).view(), rows), TypeError);
}
