// Definition of a case of the catalogue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <declivity/tensor/tensor.hpp>
#include <tests/support/strided.hpp>
#include <tests/support/values.hpp>

namespace declivity::test::catalogue {

using Values = std::vector<double>;
using Columns = std::vector<Values>;
using Tensors = std::vector<Tensor>;

/// Kinds of inputs; only `real` requires gradients.
enum class Kind : std::uint8_t {
    real,      ///< floating, differentiable
    constant,  ///< floating, without a gradient
    integral,  ///< integers, stored in the type under test
    label,     ///< indices, i64
    boolean,   ///< conditions, bool
};

/// Random values in [low, high).
struct Input {
    Shape shape;
    double low = -2, high = 2;
    Kind kind = Kind::real;
};

/// A call of a function, and its result in double.
struct Case {
    std::string name;           ///< of the function
    std::vector<Input> inputs;  ///< one for each element of the lists passed to `call` and `reference`
    std::function<Tensor(const Tensors&)> call;
    std::function<Values(const Columns&, DType)> reference;  ///< elements in row-major order
    bool differentiable = true;
    double terms = 1;                  ///< number of terms of the longest sum, which sets the tolerance
    std::string error_name = {};       ///< name in error messages; empty: `name`
    double gradient_tolerance = 1e-6;  ///< of the numeric gradient, relative to max(1, |gradient|)
    bool reads_elements = false;       ///< synchronises, so that it cannot be captured; the contract skips it
    bool zero_gradient = false;        ///< the gradient is 0 everywhere
    bool random = false;               ///< uses random numbers, different ones in f64 and f32
    std::size_t first_optional = std::string::npos;  ///< index of the first optional input
    bool reduced_precision = true;                   ///< supports f16 and bf16
    bool sampled = false;  ///< one of many similar cases: the contract checks one in five, all with DECLIVITY_FULL
};

/// A value for each index of a shape, row-major.
inline Values table(const Shape& shape, const std::function<double(const Dims&)>& value) {
    Values out;
    for_each_index(shape, [&](const Dims& at) { out.push_back(value(at)); });
    return out;
}

inline std::size_t flat_index(const Shape& shape, std::initializer_list<std::int64_t> index) {
    std::int64_t out = 0;
    int axis = 0;
    for (const std::int64_t i : index) out = out * shape[axis++] + i;
    return static_cast<std::size_t>(out);
}

}  // namespace declivity::test::catalogue
