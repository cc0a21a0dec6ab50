// Layer 2. Random numbers on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Where a call takes its random numbers from: blocks offset, offset + 1, ... after the base that lies in device memory
/// beside the seed. The offset is taken when the call is made, so that whatever is launched later gets the same
/// numbers.
struct RandomCall {
    View state;               ///< i64 [2] on the device: seed, base
    std::int64_t offset = 0;  ///< blocks of four 32-bit words (Philox4x32-10, Salmon et al. 2011)
    std::int64_t skip = 0;    ///< numbers of this type that are left out, of the first block and of others
};

/// Seed and position of a generator.
struct RandomPosition {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;  ///< blocks
    std::uint64_t words = 0;   ///< of the first block, that are left out
};

/// What a draw is a part of: `count` numbers from number `first` on, of `whole`.
struct RandomPart {
    std::int64_t first = 0, whole = 0;
};

/// A stream of random numbers on a device: a shared handle, thread-safe.
class DECLIVITY_API RandomStream {
  public:
    RandomStream(const Device& device, const RandomPosition& position);
    /// The device's own, which seed_all() starts anew.
    static RandomStream of(const Device& device);

    [[nodiscard]] Device device() const;
    [[nodiscard]] RandomPosition position() const;
    void set_position(const RandomPosition& position) const;
    /// Takes `count` numbers of this type. The next call begins with a block of its own.
    [[nodiscard]] RandomCall take(DType dtype, std::int64_t count) const { return take(dtype, count, {0, count}); }
    /// Those that a call for all of `part.whole` numbers would have; the next call begins behind these.
    [[nodiscard]] RandomCall take(DType dtype, std::int64_t count, const RandomPart& part) const;

    /// Calls `draw` with the position, for numbers that are made on the host, and moves it on by as many blocks as that
    /// gives. @throws ValueError, naming `function`, within a checkpointed function, which could not draw them again
    void take_on_host(std::string_view function,
                      const std::function<std::uint64_t(const RandomPosition& position)>& draw) const;

    friend bool operator==(const RandomStream&, const RandomStream&) = default;

    struct State;

  private:
    explicit RandomStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

/// Takes enough blocks for `count` numbers of this type from the device's generator. Thread-safe.
DECLIVITY_API RandomCall take_random(const Device& device, DType dtype, std::int64_t count);

/// Of the device's own.
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
