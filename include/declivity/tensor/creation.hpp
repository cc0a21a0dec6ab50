// Layer 3. New tensors: constants, ranges, random numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Type and place of a new tensor.
struct TensorOptions {
    DType dtype = DType::f32;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

DECLIVITY_API Tensor full(const Shape& shape, Scalar value, const TensorOptions& options = {});
DECLIVITY_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
/// Of a type alone.
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
/// Memory as it is: what stands there may differ from run to run until it is written.
DECLIVITY_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
DECLIVITY_API Tensor empty_like(const Tensor& like);
/// start, start + step, ... before `end`; nothing where start is end.
/// @throws ValueError for a step of 0, or one that leads away from `end`; for numbers that are not finite
DECLIVITY_API Tensor arange(Scalar start, Scalar end, Scalar step = 1, const TensorOptions& options = {});
/// `steps` numbers from start to end, both among them, evenly spaced; start alone for one step. Of an integer type
/// bounds and results are rounded towards 0.
/// @throws ValueError for negative steps, or bounds that an integer type does not hold; TypeError for bool
DECLIVITY_API Tensor linspace(Scalar start, Scalar end, std::int64_t steps, const TensorOptions& options = {});
/// base to the power of linspace(start, end, steps), of a floating type.
DECLIVITY_API Tensor logspace(Scalar start, Scalar end, std::int64_t steps, double base = 10,
                              const TensorOptions& options = {});
/// Rows and columns (2, count) of the elements that tril() (triu()) keeps of a matrix, row by row. i64 or i32.
DECLIVITY_API Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const TensorOptions& options = {.dtype = DType::i64});
DECLIVITY_API Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const TensorOptions& options = {.dtype = DType::i64});

/// 0, 1, ... before `end`.
inline Tensor arange(Scalar end, const TensorOptions& options = {}) { return arange(0, end, 1, options); }

/// (n, m), or (n, n) for m of -1, with 1 on the diagonal and 0 elsewhere.
DECLIVITY_API Tensor eye(std::int64_t n, std::int64_t m = -1, const TensorOptions& options = {});

// Random numbers. Without a generator they come from the device's own; with one, the tensor is on its device.
// @throws DeviceError where options name another device than the generator's

/// Evenly distributed in [low, high); f16 and bf16 are rounded from f32, and so may be `high`.
DECLIVITY_API Tensor uniform(const Shape& shape, double low = 0, double high = 1, const TensorOptions& options = {},
                             const std::optional<Generator>& generator = std::nullopt);
/// Normally distributed.
DECLIVITY_API Tensor normal(const Shape& shape, double mean = 0, double std = 1, const TensorOptions& options = {},
                            const std::optional<Generator>& generator = std::nullopt);
/// uniform in [0, 1), and normal with mean 0 and standard deviation 1.
DECLIVITY_API Tensor rand(const Shape& shape, const TensorOptions& options = {},
                          const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor randn(const Shape& shape, const TensorOptions& options = {},
                           const std::optional<Generator>& generator = std::nullopt);
inline Tensor rand(const Shape& shape, const Generator& generator) { return rand(shape, {}, generator); }
inline Tensor randn(const Shape& shape, const Generator& generator) { return randn(shape, {}, generator); }
/// 1 with this probability, otherwise 0.
DECLIVITY_API Tensor bernoulli(const Shape& shape, double probability, const TensorOptions& options = {},
                               const std::optional<Generator>& generator = std::nullopt);
/// Whole numbers evenly distributed in [low, high), by 48 random bits each, on the device.
/// @throws ValueError unless low < high and high - low is at most 2^48; or where the type does not hold them
DECLIVITY_API Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                             const TensorOptions& options = {.dtype = DType::i64},
                             const std::optional<Generator>& generator = std::nullopt);
/// In [0, high).
inline Tensor randint(std::int64_t high, const Shape& shape, const TensorOptions& options = {.dtype = DType::i64},
                      const std::optional<Generator>& generator = std::nullopt) {
    return randint(0, high, shape, options, generator);
}
/// 0 .. n - 1 in an order of chance (Fisher, Yates 1938), which is made on the host and sent to the device: a recorded
/// step refuses it.
/// @throws ValueError for n below 0 or above 2^32, or where the type does not hold n - 1
DECLIVITY_API Tensor randperm(std::int64_t n, const TensorOptions& options = {.dtype = DType::i64},
                              const std::optional<Generator>& generator = std::nullopt);

// Of the shape, type and device of another.

DECLIVITY_API Tensor rand_like(const Tensor& like, const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor randn_like(const Tensor& like, const std::optional<Generator>& generator = std::nullopt);
DECLIVITY_API Tensor randint_like(const Tensor& like, std::int64_t low, std::int64_t high,
                                  const std::optional<Generator>& generator = std::nullopt);

}  // namespace declivity
