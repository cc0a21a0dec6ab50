// Floor 2. Random numbers on the device.
#pragma once

#include <cstdint>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Where a call takes its random numbers from: blocks offset, offset + 1, ... after the base that lies in device memory
/// beside the seed. The offset is taken when the call is made, so that whatever is launched later gets the same
/// numbers.
struct RandomCall {
    View state;               ///< i64 [2] on the device: seed, base
    std::int64_t offset = 0;  ///< blocks of four 32-bit words (Philox4x32-10, Salmon et al. 2011)
};

/// Takes enough blocks for `count` numbers of this type from the device's generator. Thread-safe.
DECLIVITY_API RandomCall take_random(const Device& device, DType dtype, std::int64_t count);

/// Seed and position of a device's generator.
struct RandomPosition {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
};
DECLIVITY_API RandomPosition random_position(const Device& device);
DECLIVITY_API void set_random_position(const Device& device, const RandomPosition& position);
/// The seed of devices that had none set, and of all that have: their positions start at 0 again.
DECLIVITY_API void seed_all(std::uint64_t seed);

/// out = low + (high - low) u, u uniform in [0, 1). Dense, f32 or f64.
DECLIVITY_API void random_uniform(const View& out, double low, double high, const RandomCall& random);
/// out = mean + std n, n standard normal.
DECLIVITY_API void random_normal(const View& out, double mean, double std, const RandomCall& random);
/// out = 1 with this probability, otherwise 0.
DECLIVITY_API void random_bernoulli(const View& out, double probability, const RandomCall& random);

}  // namespace declivity::ops
