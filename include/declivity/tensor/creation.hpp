// Layer 3. Tensor creation: constants, ranges, random numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @addtogroup tensor
/// @{

/// Type and device of a new tensor.
struct TensorOptions {
    DType dtype = DType::f32;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// A tensor whose elements all have one value. Example: `full({2, 2}, 7)` is `[[7, 7], [7, 7]]`.
DECLIVITY_API Tensor full(const Shape& shape, Scalar value, const TensorOptions& options = {});
/// A tensor of this shape whose elements are all 0. Example: `zeros({3})` is `[0, 0, 0]`.
DECLIVITY_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
/// A tensor of this shape whose elements are all 1.
/// Examples: `ones({1, 3})` is `[[1, 1, 1]]`; `ones({})` is `1` (no axes).
DECLIVITY_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
/// zeros() of this type.
/// Examples: `zeros({2}, DType::i64)` is `[0, 0]`; `ones({2}, DType::boolean)` is `[true, true]`;
/// `full({2}, 7, DType::u8)` is `[7, 7]`.
template <std::same_as<DType> Type>
Tensor zeros(const Shape& shape, Type dtype) {
    return zeros(shape, {.dtype = dtype});
}
/// ones() of this type.
template <std::same_as<DType> Type>
Tensor ones(const Shape& shape, Type dtype) {
    return ones(shape, {.dtype = dtype});
}
/// full() of this type.
template <std::same_as<DType> Type>
Tensor full(const Shape& shape, Scalar value, Type dtype) {
    return full(shape, value, {.dtype = dtype});
}
/// Tensors of the shape, type and device of `like`. Example: for i64 x = `[[5, 6]]`, `zeros_like(x)` is `[[0, 0]]`.
DECLIVITY_API Tensor zeros_like(const Tensor& like);
/// Ones of the shape, type and device of `like`. Example: for i64 x = `[[5, 6]]`, `ones_like(x)` is `[[1, 1]]`.
DECLIVITY_API Tensor ones_like(const Tensor& like);
/// One value, in the shape, type and device of `like`. Example: for i64 x = `[[5, 6]]`, `full_like(x, 7)` is
/// `[[7, 7]]`.
DECLIVITY_API Tensor full_like(const Tensor& like, Scalar value);
/// Uninitialised memory: its contents may differ from run to run until written.
/// Example: `empty({2, 0, 3}).shape()` is `[2, 0, 3]`.
DECLIVITY_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
/// Uninitialised, of the shape, type and device of `like`. Example: `empty_like(zeros({2})).shape()` is `[2]`.
DECLIVITY_API Tensor empty_like(const Tensor& like);
/// start, start + step, ... up to but excluding `end`; empty if start equals end.
/// Examples: `arange(1, 7, 2)` is `[1, 3, 5]`; `arange(1, 0, -0.25)` is `[1, 0.75, 0.5, 0.25]`.
/// @throws ValueError for a step of 0, or one that leads away from `end`; for numbers that are not finite
DECLIVITY_API Tensor arange(Scalar start, Scalar end, Scalar step = 1, const TensorOptions& options = {});
/// `steps` evenly spaced numbers from start to end, inclusive; only start for one step. For integer types, bounds and
/// results are rounded towards 0.
/// Examples: `linspace(0, 1, 5)` is `[0, 0.25, 0.5, 0.75, 1]`; `linspace(3, 0, 2)` is `[3, 0]`.
/// @throws ValueError for negative steps, or bounds out of range of an integer type; TypeError for bool
DECLIVITY_API Tensor linspace(Scalar start, Scalar end, std::int64_t steps, const TensorOptions& options = {});
/// base to the power of linspace(start, end, steps), of a floating type.
/// Examples: `logspace(0, 2, 3)` is `[1, 10, 100]`; `logspace(-1, 1, 3, 2)` is `[0.5, 1, 2]`.
DECLIVITY_API Tensor logspace(Scalar start, Scalar end, std::int64_t steps, double base = 10,
                              const TensorOptions& options = {});
/// Row and column indices (2, count) of the elements that tril() (triu()) keeps of a matrix, row by row. i64 or i32.
/// Example: `tril_indices(2, 2)` is `[[0, 1, 1], [0, 0, 1]]`.
DECLIVITY_API Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const TensorOptions& options = {.dtype = DType::i64});
/// Indices of the elements that triu() keeps; see tril_indices(). Example: `triu_indices(2, 2)` is
/// `[[0, 0, 1], [0, 1, 1]]`.
DECLIVITY_API Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const TensorOptions& options = {.dtype = DType::i64});

/// 0, 1, ... up to but excluding `end`.
/// Examples: `arange(4)` is `[0, 1, 2, 3]`; `arange(2, {.dtype = DType::i64})` is `[0, 1]`.
inline Tensor arange(Scalar end, const TensorOptions& options = {}) { return arange(0, end, 1, options); }

/// Identity matrix (n, m), or (n, n) for m of -1: 1 on the diagonal, otherwise 0.
/// Example: `eye(2, 3)` is `[[1, 0, 0], [0, 1, 0]]`.
DECLIVITY_API Tensor eye(std::int64_t n, std::int64_t m = -1, const TensorOptions& options = {});

// Random numbers. They come from the device's default generator if none is given; otherwise the tensor is on the device
// of the generator.
// @throws DeviceError if options name another device than the generator's

/// Uniform distribution over [low, high); f16 and bf16 are rounded from f32, so that `high` may occur.
/// Examples: `uniform({2, 3}).shape()` is `[2, 3]`; `all(uniform({100}, 5, 6) >= 5)` is `true`.
DECLIVITY_API Tensor uniform(const Shape& shape, double low = 0, double high = 1, const TensorOptions& options = {},
                             const std::optional<Generator>& generator = std::nullopt);
/// Normal distribution with this mean and standard deviation.
/// Example: `normal({2}, 5, 0)` is `[5, 5]`.
DECLIVITY_API Tensor normal(const Shape& shape, double mean = 0, double std = 1, const TensorOptions& options = {},
                            const std::optional<Generator>& generator = std::nullopt);
/// Uniform distribution over [0, 1), rounded as in uniform().
/// Examples: `rand({2, 3}).shape()` is `[2, 3]`; `all(rand({100}) < 1)` is `true`.
DECLIVITY_API Tensor rand(const Shape& shape, const TensorOptions& options = {},
                          const std::optional<Generator>& generator = std::nullopt);
/// Standard normal distribution, of mean 0 and standard deviation 1. Example: `randn({2, 3}).shape()` is `[2, 3]`.
DECLIVITY_API Tensor randn(const Shape& shape, const TensorOptions& options = {},
                           const std::optional<Generator>& generator = std::nullopt);
/// rand() of this generator, in f32.
inline Tensor rand(const Shape& shape, const Generator& generator) { return rand(shape, {}, generator); }
/// randn() of this generator, in f32.
inline Tensor randn(const Shape& shape, const Generator& generator) { return randn(shape, {}, generator); }
/// 1 with this probability, otherwise 0.
/// Example: `bernoulli({3}, 1)` is `[1, 1, 1]`.
DECLIVITY_API Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options = {},
                               const std::optional<Generator>& generator = std::nullopt);
/// Uniform integers in [low, high), from 48 random bits each, generated on the device.
/// Example: `randint(5, 6, {3})` is `[5, 5, 5]`.
/// @throws ValueError unless low < high and high - low is at most 2^48; or if the type cannot represent them
DECLIVITY_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                             const TensorOptions& options = {.dtype = DType::i64},
                             const std::optional<Generator>& generator = std::nullopt);
/// Uniform integers in [0, high).
/// Example: `all(randint(3, {100}) < 3)` is `true`.
inline Tensor randint(std::int64_t high, const Shape& shape, const TensorOptions& options = {.dtype = DType::i64},
                      const std::optional<Generator>& generator = std::nullopt) {
    return randint(0, high, shape, options, generator);
}
/// Random permutation of 0 .. n - 1 (Fisher, Yates 1938), generated on the host: a captured step refuses it.
/// Example: `sort(randperm(4)).values` is `[0, 1, 2, 3]`.
/// @throws ValueError for n below 0 or above 2^32, or if the type cannot represent n - 1
DECLIVITY_API Tensor randperm(std::int64_t n, const TensorOptions& options = {.dtype = DType::i64},
                              const std::optional<Generator>& generator = std::nullopt);

// The result has the shape, type and device of `like`.

/// Uniform numbers in [0, 1) of the shape, type and device of `like`, which has a floating type; f16 and bf16 are
/// rounded from f32, so that 1 may occur. Example: for x = `zeros({2, 3})`, `rand_like(x).shape()` is `[2, 3]`.
DECLIVITY_API Tensor rand_like(const Tensor& like, const std::optional<Generator>& generator = std::nullopt);
/// Standard normal numbers of the shape, type and device of `like`. Example: for x = `zeros({2, 3})`,
/// `randn_like(x).shape()` is `[2, 3]`.
DECLIVITY_API Tensor randn_like(const Tensor& like, const std::optional<Generator>& generator = std::nullopt);
/// Uniform integers in [low, high) of the shape, type and device of `like`. Example: for x = `zeros({2, 3})`,
/// `randint_like(x, 4, 5)` is `[[4, 4, 4], [4, 4, 4]]`.
DECLIVITY_API Tensor randint_like(const Tensor& like, std::int64_t low, std::int64_t high,
                                  const std::optional<Generator>& generator = std::nullopt);

/// @}

}  // namespace declivity
