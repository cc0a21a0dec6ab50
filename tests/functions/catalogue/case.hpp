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

enum class Kind : std::uint8_t { real, constant, whole, label, truth };  // only `real` requires gradients

struct Input {
    Shape shape;
    double low = -2, high = 2;
    Kind kind = Kind::real;
};

struct Case {
    std::string name;
    std::vector<Input> inputs;
    std::function<Tensor(const Tensors&)> call;
    std::function<Values(const Columns&, DType)> reference;
    bool differentiable = true;
    double terms = 1;             // of the longest sum
    std::string says = {};        // name in error messages, if different
    double loose = 1e-6;          // tolerance of the numeric gradient
    bool reads_elements = false;  // reads elements, so that it cannot be captured, and is not checked by the contract
    bool flat = false;            // its gradient is 0 everywhere
    bool random = false;          // uses random numbers, different ones in f64 and f32
    std::size_t optional = std::string::npos;  // inputs from this one on are optional
    bool reduced_precision = true;             // supports f16 and bf16
    bool brief = false;  // one of many of its kind: the contract checks one in five of them, all with DECLIVITY_FULL
};

/// A value for each index of a shape, row-major.
inline Values table(const Shape& shape, const std::function<double(const Dims&)>& value) {
    Values out;
    for_each_index(shape, [&](const Dims& at) { out.push_back(value(at)); });
    return out;
}

inline std::size_t place(const Shape& shape, std::initializer_list<std::int64_t> index) {
    std::int64_t out = 0;
    int axis = 0;
    for (const std::int64_t i : index) out = out * shape[axis++] + i;
    return static_cast<std::size_t>(out);
}

}  // namespace declivity::test::catalogue
