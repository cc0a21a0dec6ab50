// Floor 2. Random numbers on the device.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/ops/expression.hpp>
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

/// While one lives, the calls of this thread are written down, those in which others live included.
class DECLIVITY_API RandomRecording {
  public:
    RandomRecording();
    ~RandomRecording();
    RandomRecording(const RandomRecording&) = delete;
    RandomRecording& operator=(const RandomRecording&) = delete;

    struct Call {
        RandomCall call;
        std::int64_t blocks;
    };
    [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }

    void add(const Call& call);

  private:
    std::vector<Call> calls_;
    RandomRecording* before_;
};

/// While one lives, calls of this thread draw the numbers of calls that were recorded, one after the other, and leave
/// the devices' generators alone.
class DECLIVITY_API RandomReplay {
  public:
    explicit RandomReplay(std::vector<RandomRecording::Call> calls);
    ~RandomReplay();
    RandomReplay(const RandomReplay&) = delete;
    RandomReplay& operator=(const RandomReplay&) = delete;

    /// @throws ValueError when other numbers are asked for than were recorded
    RandomCall next(const Device& device, std::int64_t blocks);

  private:
    std::vector<RandomRecording::Call> calls_;
    std::size_t at_ = 0;
    RandomReplay* before_;
};

/// As leaves of an expression: element i, in row-major order, is number i of the call, the one that the functions below
/// store there. f32 or f64.
/// @throws TypeError, ShapeError for sizes below 0, Unsupported for f64 on a device without
DECLIVITY_API Expression random_uniform(DType dtype, const Shape& shape, double low, double high,
                                        const RandomCall& random);
DECLIVITY_API Expression random_normal(DType dtype, const Shape& shape, double mean, double std,
                                       const RandomCall& random);
DECLIVITY_API Expression random_bernoulli(DType dtype, const Shape& shape, double probability,
                                          const RandomCall& random);

/// out = low + (high - low) u, u uniform in [0, 1). Dense, f32 or f64.
DECLIVITY_API void random_uniform(const View& out, double low, double high, const RandomCall& random);
/// out = mean + std n, n standard normal.
DECLIVITY_API void random_normal(const View& out, double mean, double std, const RandomCall& random);
/// out = 1 with this probability, otherwise 0.
DECLIVITY_API void random_bernoulli(const View& out, double probability, const RandomCall& random);

}  // namespace declivity::ops
