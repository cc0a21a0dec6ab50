// Layer 4. Adagrad.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

struct AdagradOptions {
    double lr = 1e-2;
    double lr_decay = 0;
    double weight_decay = 0;               ///< added to the gradient as weight_decay * parameter
    double initial_accumulator_value = 0;  ///< what s is at first
    double eps = 1e-10;
    bool maximize = false;  ///< goes up: the gradient counts with the other sign
};

/// Adagrad (Duchi et al. 2011). With the rate lr, in step t from 1:
///     g += weight_decay * p;  s += g^2;  p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
class DECLIVITY_API Adagrad : public Optimizer {
  public:
    explicit Adagrad(const Parameters& parameters, const AdagradOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const Parameters& parameters, const AdagradOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Adagrad); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<AdagradOptions> options_;
};

}  // namespace declivity::optim
