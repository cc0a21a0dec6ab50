// Layer 2, private. Random numbers that wait, and calls that draw them again.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/ops/random.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::ops {

/// As leaves of an expression: element i, in row-major order, is number i of the call, the one that the functions below
/// store there. f32 or f64.
/// @throws TypeError, ShapeError for sizes below 0, Unsupported for f64 on a device without
DECLIVITY_API Expression random_uniform(DType dtype, const Shape& shape, double low, double high,
                                        const RandomCall& random);
DECLIVITY_API Expression random_normal(DType dtype, const Shape& shape, double mean, double std,
                                       const RandomCall& random);
DECLIVITY_API Expression random_bernoulli(DType dtype, const Shape& shape, double probability,
                                          const RandomCall& random);

/// While one lives, the calls of this thread are written down, those in which others live included.
class DECLIVITY_API RandomCapture {
  public:
    RandomCapture();
    ~RandomCapture();
    RandomCapture(const RandomCapture&) = delete;
    RandomCapture& operator=(const RandomCapture&) = delete;

    struct Call {
        RandomCall call;
        std::int64_t count;  ///< of numbers
    };
    [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }

    void add(const Call& call);

  private:
    std::vector<Call> calls_;
    RandomCapture* before_;
};

/// While one lives, calls of this thread draw the numbers of calls that were recorded, one after the other, and leave
/// the devices' generators alone.
class DECLIVITY_API RandomReplay {
  public:
    explicit RandomReplay(std::vector<RandomCapture::Call> calls);
    ~RandomReplay();
    RandomReplay(const RandomReplay&) = delete;
    RandomReplay& operator=(const RandomReplay&) = delete;

    /// @throws ValueError when other numbers are asked for than were recorded
    RandomCall next(const Device& device, std::int64_t count);

  private:
    std::vector<RandomCapture::Call> calls_;
    std::size_t at_ = 0;
    RandomReplay* before_;
};

}  // namespace declivity::ops
