// Layer 6. RAdam.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct RAdamOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;              ///< L2 penalty: adds weight_decay * parameter to the gradient
    bool decoupled_weight_decay = false;  ///< decoupled weight decay, as in AdamW
    bool maximize = false;                ///< maximises the objective: the gradient is negated
};

/// Adam with variance rectification (Liu et al. 2020). With learning rate lr, in step t from 1:
///     decoupled: p -= lr * weight_decay * p, otherwise g += weight_decay * p
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     r = 2 / (1 - beta2) - 1;  rt = r - 2 t beta2^t / (1 - beta2^t)
///     u = m / (1 - beta1^t);  where rt > 5: u *= sqrt(((rt - 4) (rt - 2) r) / ((r - 4) (r - 2) rt))
///                                               * sqrt(1 - beta2^t) / (sqrt(v) + eps)
///     p -= lr * u
class DECLIVITY_API RAdam : public Optimizer {
  public:
    explicit RAdam(const Parameters& parameters, const RAdamOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const RAdamOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(RAdam); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<RAdamOptions> options_;
};

/// @}

}  // namespace declivity::optim
