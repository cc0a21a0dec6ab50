// Layer 3. Tensor creation: constants, ranges, random numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Type and device of a new tensor.
struct TensorOptions {
    DType dtype = DType::f32;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

DECLIVITY_API Tensor full(const Shape& shape, Scalar value, const TensorOptions& options = {});
DECLIVITY_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
/// Overloads that take only a type.
template <std::same_as<DType> Type>
Tensor zeros(const Shape& shape, Type dtype) {
    return zeros(shape, {.dtype = dtype});
}
template <std::same_as<DType> Type>
Tensor ones(const Shape& shape, Type dtype) {
    return ones(shape, {.dtype = dtype});
}
template <std::same_as<DType> Type>
Tensor full(const Shape& shape, Scalar value, Type dtype) {
    return full(shape, value, {.dtype = dtype});
}
DECLIVITY_API Tensor zeros_like(const Tensor& like);
DECLIVITY_API Tensor ones_like(const Tensor& like);
DECLIVITY_API Tensor full_like(const Tensor& like, Scalar value);
/// Uninitialised memory: its contents may differ from run to run until written.
DECLIVITY_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor empty_like(const Tensor& like);
/// start, start + step, ... up to but excluding `end`; empty if start equals end.
/// @throws ValueError for a step of 0, or one that leads away from `end`; for numbers that are not finite
DECLIVITY_API Tensor arange(Scalar start, Scalar end, Scalar step = 1, const TensorOptions& options = {});
/// `steps` evenly spaced numbers from start to end, inclusive; only start for one step. For integer types, bounds and
/// results are rounded towards 0.
/// @throws ValueError for negative steps, or bounds out of range of an integer type; TypeError for bool
DECLIVITY_API Tensor linspace(Scalar start, Scalar end, std::int64_t steps, const TensorOptions& options = {});
/// base to the power of linspace(start, end, steps), of a floating type.
DECLIVITY_API Tensor logspace(Scalar start, Scalar end, std::int64_t steps, double base = 10,
                              const TensorOptions& options = {});
/// Row and column indices (2, count) of the elements that tril() (triu()) keeps of a matrix, row by row. i64 or i32.
DECLIVITY_API Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const TensorOptions& options = {.dtype = DType::i64});
DECLIVITY_API Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const TensorOptions& options = {.dtype = DType::i64});

/// 0, 1, ... up to but excluding `end`.
inline Tensor arange(Scalar end, const TensorOptions& options = {}) { return arange(0, end, 1, options); }

/// Identity matrix (n, m), or (n, n) for m of -1: 1 on the diagonal, otherwise 0.
DECLIVITY_API Tensor eye(std::int64_t n, std::int64_t m = -1, const TensorOptions& options = {});

// Random numbers. They come from the device's default generator if none is given; otherwise the tensor is on the device
// of the generator.
// @throws DeviceError if options name another device than the generator's

/// Uniform distribution over [low, high); f16 and bf16 are rounded from f32, so that `high` may occur.
DECLIVITY_API Tensor uniform(const Shape& shape, double low = 0, double high = 1, const TensorOptions& options = {},
                             const std::optional<Generator>& generator = std::nullopt);
/// Normal distribution.
DECLIVITY_API Tensor normal(const Shape& shape, double mean = 0, double std = 1, const TensorOptions& options = {},
                            const std::optional<Generator>& generator = std::nullopt);
/// rand: uniform in [0, 1). randn: standard normal.
DECLIVITY_API Tensor rand(const Shape& shape, const TensorOptions& options = {},
                          const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor randn(const Shape& shape, const TensorOptions& options = {},
                           const std::optional<Generator>& generator = std::nullopt);
inline Tensor rand(const Shape& shape, const Generator& generator) { return rand(shape, {}, generator); }
inline Tensor randn(const Shape& shape, const Generator& generator) { return randn(shape, {}, generator); }
/// 1 with this probability, otherwise 0.
DECLIVITY_API Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options = {},
                               const std::optional<Generator>& generator = std::nullopt);
/// Uniform integers in [low, high), from 48 random bits each, generated on the device.
/// @throws ValueError unless low < high and high - low is at most 2^48; or if the type cannot represent them
DECLIVITY_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                             const TensorOptions& options = {.dtype = DType::i64},
                             const std::optional<Generator>& generator = std::nullopt);
/// Uniform integers in [0, high).
inline Tensor randint(std::int64_t high, const Shape& shape, const TensorOptions& options = {.dtype = DType::i64},
                      const std::optional<Generator>& generator = std::nullopt) {
    return randint(0, high, shape, options, generator);
}
/// Random permutation of 0 .. n - 1 (Fisher, Yates 1938), generated on the host: a captured step refuses it.
/// @throws ValueError for n below 0 or above 2^32, or if the type cannot represent n - 1
DECLIVITY_API Tensor randperm(std::int64_t n, const TensorOptions& options = {.dtype = DType::i64},
                              const std::optional<Generator>& generator = std::nullopt);

// With the shape, type and device of `like`.

DECLIVITY_API Tensor rand_like(const Tensor& like, const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor randn_like(const Tensor& like, const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor randint_like(const Tensor& like, std::int64_t low, std::int64_t high,
                                  const std::optional<Generator>& generator = std::nullopt);

}  // namespace declivity
