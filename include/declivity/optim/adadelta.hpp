// Layer 6. Adadelta.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct AdadeltaOptions {
    double lr = 1;
    double rho = 0.9;
    double eps = 1e-6;
    double weight_decay = 0;  ///< L2 penalty: adds weight_decay * parameter to the gradient
    bool maximize = false;    ///< maximises the objective: the gradient is negated
};

/// Adadelta (Zeiler 2012). With learning rate lr, in each step:
///     g += weight_decay * p;  v = rho * v + (1 - rho) * g^2;  u = sqrt(d + eps) / sqrt(v + eps) * g
///     d = rho * d + (1 - rho) * u^2;  p -= lr * u
class DECLIVITY_API Adadelta : public Optimizer {
  public:
    explicit Adadelta(const Parameters& parameters, const AdadeltaOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const AdadeltaOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Adadelta); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<AdadeltaOptions> options_;
};

/// @}

}  // namespace declivity::optim
