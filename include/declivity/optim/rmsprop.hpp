// Layer 4. RMSprop.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

struct RMSpropOptions {
    double lr = 1e-2;
    double alpha = 0.99;
    double eps = 1e-8;
    double weight_decay = 0;  ///< added to the gradient as weight_decay * parameter
    double momentum = 0;
    bool centered = false;  ///< divides by the deviation of the gradient in place of its mean square
    bool maximize = false;  ///< goes up: the gradient counts with the other sign
};

/// RMSprop (Tieleman, Hinton 2012; centered: Graves 2013). With the rate lr, in each step:
///     g += weight_decay * p;  v = alpha * v + (1 - alpha) * g^2;  centered: a = alpha * a + (1 - alpha) * g
///     u = g / (sqrt(centered ? v - a^2 : v) + eps)
///     p -= lr * u;  with momentum: m = momentum * m + u;  p -= lr * m
class DECLIVITY_API RMSprop : public Optimizer {
  public:
    explicit RMSprop(const Parameters& parameters, const RMSpropOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const Parameters& parameters, const RMSpropOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(RMSprop); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<RMSpropOptions> options_;
};

}  // namespace declivity::optim
