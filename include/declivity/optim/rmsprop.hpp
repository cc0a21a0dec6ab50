// Layer 6. RMSprop.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct RMSpropOptions {
    double lr = 1e-2;
    double alpha = 0.99;
    double eps = 1e-8;
    double weight_decay = 0;  ///< L2 penalty: adds weight_decay * parameter to the gradient
    double momentum = 0;
    bool centered = false;  ///< divides by the standard deviation of the gradient instead of its root mean square
    bool maximize = false;  ///< maximises the objective: the gradient is negated
};

/// RMSprop (Tieleman, Hinton 2012; centered: Graves 2013). With learning rate lr, in each step:
///     g += weight_decay * p;  v = alpha * v + (1 - alpha) * g^2;  centered: a = alpha * a + (1 - alpha) * g
///     u = g / (sqrt(centered ? v - a^2 : v) + eps)
///     p -= lr * u;  with momentum: m = momentum * m + u;  p -= lr * m
class DECLIVITY_API RMSprop : public Optimizer {
  public:
    explicit RMSprop(const Parameters& parameters, const RMSpropOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const RMSpropOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(RMSprop); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<RMSpropOptions> options_;
};

/// @}

}  // namespace declivity::optim
