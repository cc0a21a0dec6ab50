// Layer 6. SGD.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct SGDOptions {
    double lr = 1e-3;
    double momentum = 0;
    double dampening = 0;
    double weight_decay = 0;  ///< L2 penalty: adds weight_decay * parameter to the gradient
    bool nesterov = false;    ///< requires momentum above 0 and dampening 0
    bool maximize = false;    ///< maximises the objective: the gradient is negated
};

/// Stochastic gradient descent (Sutskever et al. 2013, in PyTorch's form). With learning rate lr, in step t from 1:
///     g += weight_decay * p;  m = t == 1 ? g : momentum * m + (1 - dampening) * g;
///     p -= lr * (nesterov ? g + momentum * m : m)
/// Without momentum there is no m, and p -= lr * g.
class DECLIVITY_API SGD : public Optimizer {
  public:
    explicit SGD(const Parameters& parameters, const SGDOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const SGDOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(SGD); }

  protected:
    void update(std::size_t group, Update& x) const override;

  private:
    std::vector<SGDOptions> options_;
};

/// @}

}  // namespace declivity::optim
