// Layer 3. Random number generators.
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

/// @addtogroup tensor
/// @{

/// Reseeds the default generators of all devices: equal seeds give equal numbers. Random numbers come from
/// Philox4x32-10 (Salmon et al. 2011); uniform ones are bit-identical on every device. Generators created by the
/// program are not affected.
DECLIVITY_API void manual_seed(std::uint64_t seed);

/// Seed and position of a device's default generator, in blocks of four numbers; saved in checkpoints.
struct RandomState {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
};
/// State of the device's default generator.
DECLIVITY_API RandomState random_state(const Device& device);
/// Sets the state of the device's default generator.
DECLIVITY_API void set_random_state(const Device& device, const RandomState& state);

/// A random number generator of a device, with a seed and a position: a shared handle, thread-safe. Random functions
/// take one as their last argument, and use the device's default generator without one.
///
/// Each call consumes as many numbers as its result has elements, from the position on, and advances it to the next
/// multiple of 4. Number i of a stream depends only on the seed and i. Positions count f32 numbers (all types but f64);
/// an f64 number consumes two, and begins at an even position.
class DECLIVITY_API Generator {
  public:
    /// On default_device() if no device is given.
    explicit Generator(std::uint64_t seed = 0, const std::optional<Device>& device = std::nullopt);
    /// The device's default generator, the one of manual_seed() and random_state().
    static Generator default_of(const Device& device);

    [[nodiscard]] Device device() const;
    [[nodiscard]] std::uint64_t seed() const;
    /// Sets the seed, and the position to 0.
    Generator& manual_seed(std::uint64_t seed);
    [[nodiscard]] std::uint64_t position() const;
    /// Sets the position of the next call: its elements are those from `position` on of a larger call that begins at 0.
    Generator& set_position(std::uint64_t position);

    /// Generator for rows [first, end) of a batch of `whole` rows, for data parallelism: a call for a tensor of end -
    /// first rows gives these rows of a call for `whole` rows, bit for bit, and advances the stream by the whole.
    /// Generators of one seed on several devices, each with its rows, therefore stay in step. Shares the stream.
    /// @throws ShapeError unless 0 <= first < end <= whole; calls then require end - first rows
    [[nodiscard]] Generator rows(std::int64_t first, std::int64_t end, std::int64_t whole) const;

    friend bool operator==(const Generator&, const Generator&) = default;

    /// For implementing random functions: reserves the numbers for a tensor of this type and shape.
    [[nodiscard]] ops::RandomCall take(std::string_view function, DType dtype, const Shape& shape) const;
    /// Host variant, see ops::RandomStream. @throws ShapeError for a generator of rows
    void draw_on_host(std::string_view function,
                      const std::function<std::uint64_t(const ops::RandomPosition& position)>& generate) const;
    [[deprecated("Generator::draw_on_host")]] void take_on_host(
        std::string_view function,
        const std::function<std::uint64_t(const ops::RandomPosition& position)>& generate) const {
        draw_on_host(function, generate);
    }

  private:
    struct Rows {
        std::int64_t first = 0, end = 0, whole = 0;
        friend bool operator==(const Rows&, const Rows&) = default;
    };
    explicit Generator(ops::RandomStream stream) : stream_(std::move(stream)) {}
    ops::RandomStream stream_;
    std::optional<Rows> rows_;
};

/// @}

}  // namespace declivity
