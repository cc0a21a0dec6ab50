// Layer 6. Adagrad.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct AdagradOptions {
    double lr = 1e-2;
    double lr_decay = 0;
    double weight_decay = 0;               ///< L2 penalty: adds weight_decay * parameter to the gradient
    double initial_accumulator_value = 0;  ///< initial value of s
    double eps = 1e-10;
    bool maximize = false;  ///< maximises the objective: the gradient is negated
};

/// Adagrad (Duchi et al. 2011). With learning rate lr, in step t from 1:
///     g += weight_decay * p;  s += g^2;  p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
class DECLIVITY_API Adagrad : public Optimizer {
  public:
    explicit Adagrad(const Parameters& parameters, const AdagradOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const AdagradOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Adagrad); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<AdagradOptions> options_;
};

/// @}

}  // namespace declivity::optim
