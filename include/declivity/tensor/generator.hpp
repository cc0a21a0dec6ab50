// Layer 3. Where random numbers come from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <declivity/ops/random.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// Starts the random numbers of every device anew: equal seeds give equal numbers. Random numbers come from
/// Philox4x32-10 (Salmon et al. 2011); uniform ones are equal to the bit on every device. Generators of a program's own
/// stay as they are.
DECLIVITY_API void manual_seed(std::uint64_t seed);

/// Seed and position of a device's random numbers, in blocks of four; a checkpoint keeps them.
struct RandomState {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
};
DECLIVITY_API RandomState random_state(const Device& device);
DECLIVITY_API void set_random_state(const Device& device, const RandomState& state);

/// A stream of random numbers of a device, with a seed and a position: a shared handle, thread-safe. Functions that
/// draw take one as their last argument, and draw from the device's own without.
///
/// Each call takes as many numbers as its result has elements, from the position on, and leaves it at the next multiple
/// of 4 behind them. Number i of a stream depends on the seed and on i alone. Positions count numbers of f32 (all types
/// but f64); one of f64 takes two, and begins at an even position.
class DECLIVITY_API Generator {
  public:
    /// On default_device() if no device is given.
    explicit Generator(std::uint64_t seed = 0, const std::optional<Device>& device = std::nullopt);
    /// The device's own, which manual_seed() and random_state() are about.
    static Generator default_of(const Device& device);

    [[nodiscard]] Device device() const;
    [[nodiscard]] std::uint64_t seed() const;
    /// Another seed, at position 0.
    Generator& manual_seed(std::uint64_t seed);
    [[nodiscard]] std::uint64_t position() const;
    /// The next call takes the numbers from here on: what is drawn then are the elements from `position` on of a larger
    /// draw that would begin at 0.
    Generator& set_position(std::uint64_t position);

    /// For who has rows [first, end) of a batch of `whole` rows, as one of several devices has: a call for a tensor of
    /// end - first rows gives these rows of what a call for `whole` rows would give, to the bit, and moves the stream
    /// on by the numbers of that. So generators of one seed on several devices, each with the rows that it has, stay
    /// together. Shares the stream.
    /// @throws ShapeError unless 0 <= first < end <= whole; calls then want as many rows
    [[nodiscard]] Generator rows(std::int64_t first, std::int64_t end, std::int64_t whole) const;

    friend bool operator==(const Generator&, const Generator&) = default;

    /// For functions that draw: the numbers for a tensor of this type and shape.
    [[nodiscard]] ops::RandomCall take(std::string_view function, DType dtype, const Shape& shape) const;
    /// The same on the host, see ops::RandomStream. @throws ShapeError for a generator of rows
    void take_on_host(std::string_view function,
                      const std::function<std::uint64_t(const ops::RandomPosition& position)>& draw) const;

  private:
    struct Rows {
        std::int64_t first = 0, end = 0, whole = 0;
        friend bool operator==(const Rows&, const Rows&) = default;
    };
    explicit Generator(ops::RandomStream stream) : stream_(std::move(stream)) {}
    ops::RandomStream stream_;
    std::optional<Rows> rows_;
};

}  // namespace declivity
