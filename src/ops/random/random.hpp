// Layer 2, private. Lazy random numbers, and the recomputation of calls with the same numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/ops/random.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::ops {

/// Random numbers as leaves of an expression: element i, in row-major order, is number i of the call, the same that the
/// functions below store. f32 or f64.
/// @throws TypeError, ShapeError for sizes below 0, Unsupported for f64 on a device without
DECLIVITY_API Expression random_uniform(DType dtype, const Shape& shape, double low, double high,
                                        const RandomCall& random);
DECLIVITY_API Expression random_normal(DType dtype, const Shape& shape, double mean, double std,
                                       const RandomCall& random);
DECLIVITY_API Expression random_bernoulli(DType dtype, const Shape& shape, double probability,
                                          const RandomCall& random);

/// While an instance lives, the calls of this thread are recorded, also by enclosing instances.
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
    RandomCapture* previous_;
};

/// While an instance lives, calls of this thread return the numbers of recorded calls, in order, without advancing the
/// devices' generators.
class DECLIVITY_API RandomReplay {
  public:
    explicit RandomReplay(std::vector<RandomCapture::Call> calls);
    ~RandomReplay();
    RandomReplay(const RandomReplay&) = delete;
    RandomReplay& operator=(const RandomReplay&) = delete;

    /// @throws ValueError if the call differs from the recorded one
    RandomCall next(const Device& device, std::int64_t count);

  private:
    std::vector<RandomCapture::Call> calls_;
    std::size_t at_ = 0;
    RandomReplay* previous_;
};

}  // namespace declivity::ops
