// Layer 2. Random numbers on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Position of a call in a random stream: blocks offset, offset + 1, ... relative to the base, which is stored in
/// device memory with the seed. The offset is fixed when the call is made, so that a later launch gives the same
/// numbers.
struct RandomCall {
    View state;               ///< i64 [2] on the device: seed, base
    std::int64_t offset = 0;  ///< blocks of four 32-bit words (Philox4x32-10, Salmon et al. 2011)
    std::int64_t skip = 0;    ///< numbers of this type to skip, from the first block on
};

/// Seed and position of a generator.
struct RandomPosition {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;  ///< blocks
    std::uint64_t words = 0;   ///< words of the first block to skip
};

/// A part of a larger draw: `count` numbers from number `first` on, of `whole`.
struct RandomPart {
    std::int64_t first = 0, whole = 0;
};

/// A stream of random numbers on a device: a shared handle, thread-safe.
class DECLIVITY_API RandomStream {
  public:
    RandomStream(const Device& device, const RandomPosition& position);
    /// The device's default stream, which seed_all() reseeds.
    static RandomStream of(const Device& device);

    [[nodiscard]] Device device() const;
    [[nodiscard]] RandomPosition position() const;
    void set_position(const RandomPosition& position) const;
    /// Reserves `count` numbers of this type. The next call begins at a new block.
    [[nodiscard]] RandomCall take(DType dtype, std::int64_t count) const { return take(dtype, count, {0, count}); }
    /// Reserves the part of a call for all of `part.whole` numbers; the next call begins after the whole.
    [[nodiscard]] RandomCall take(DType dtype, std::int64_t count, const RandomPart& part) const;

    /// Calls `generate` with the position, for numbers generated on the host, and advances it by as many blocks as
    /// `generate` returns. @throws ValueError, naming `function`, within a checkpointed function, which could not
    /// repeat the draw
    void draw_on_host(std::string_view function,
                      const std::function<std::uint64_t(const RandomPosition& position)>& generate) const;
    [[deprecated("RandomStream::draw_on_host")]] void take_on_host(
        std::string_view function, const std::function<std::uint64_t(const RandomPosition& position)>& generate) const {
        draw_on_host(function, generate);
    }

    friend bool operator==(const RandomStream&, const RandomStream&) = default;

    struct State;

  private:
    explicit RandomStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

/// Reserves blocks for `count` numbers of this type from the device's default stream. Thread-safe.
DECLIVITY_API RandomCall take_random(const Device& device, DType dtype, std::int64_t count);

/// Position of the device's default stream.
DECLIVITY_API RandomPosition random_position(const Device& device);
/// Sets the position of the device's default stream.
DECLIVITY_API void set_random_position(const Device& device, const RandomPosition& position);
/// Sets the seed of the default streams of all devices, and of those used later; their positions start at 0 again.
DECLIVITY_API void seed_all(std::uint64_t seed);

/// out = low + (high - low) u, u uniform in [0, 1). Dense, f32 or f64.
DECLIVITY_API void random_uniform(const View& out, double low, double high, const RandomCall& random);
/// out = mean + std n, n standard normal.
DECLIVITY_API void random_normal(const View& out, double mean, double std, const RandomCall& random);
/// out = 1 with this probability, otherwise 0.
DECLIVITY_API void random_bernoulli(const View& out, double probability, const RandomCall& random);

/// @}

}  // namespace declivity::ops
