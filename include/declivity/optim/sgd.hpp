// Floor 4. Stochastic gradient descent.
#pragma once

#include <declivity/ops/sgd.hpp>
#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

struct SGDOptions {
    double lr = 1e-3;
    double momentum = 0;
    double dampening = 0;
    double weight_decay = 0;  ///< added to the gradient as weight_decay * parameter
    bool nesterov = false;    ///< wants momentum, and no dampening
};

/// See ops::sgd_step for the formulas.
class DECLIVITY_API SGD : public Optimizer {
  public:
    explicit SGD(const std::vector<Tensor>& parameters, const SGDOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const std::vector<Tensor>& parameters, const SGDOptions& options);
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(SGD); }

  protected:
    void update(std::size_t group, const std::vector<std::vector<ops::View>>& roles, const ops::View& progress,
                const ops::View& guard) override;

  private:
    struct Settings {
        ops::SgdParameters parameters;
        ops::MultiTensor tensors;
    };
    std::vector<Settings> settings_;
};

}  // namespace declivity::optim
