// Layer 6. Adam and AdamW.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

/// @addtogroup optim
/// @{

struct AdamOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;  ///< L2 penalty: adds weight_decay * parameter to the gradient
    bool amsgrad = false;     ///< uses the maximum of all second moments so far (Reddi et al. 2018)
    bool maximize = false;    ///< maximises the objective: the gradient is negated
};

/// Options of AdamW: AdamOptions with weight decay by default.
struct AdamWOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0.01;  ///< decoupled: each step multiplies the parameter by 1 - lr * weight_decay
    bool amsgrad = false;        ///< see AdamOptions
    bool maximize = false;
};

/// Adam (Kingma, Ba 2015, algorithm 1). With learning rate lr, in step t from 1:
///     g += weight_decay * p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     p -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
/// With amsgrad, the last line uses the maximum of v over all steps so far.
class DECLIVITY_API Adam : public Optimizer {
  public:
    explicit Adam(const Parameters& parameters, const AdamOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const AdamOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Adam); }

  protected:
    /// Makes an optimizer without parameter groups.
    explicit Adam(std::string_view name) : Optimizer(name) {}
    /// @param name of the optimizer, for errors
    /// @param decoupled decays the parameters, as in AdamW
    void add_group_of(std::string_view name, const Parameters& parameters, const AdamOptions& options, bool decoupled);
    void update(std::size_t group, Update& x) const override;

  private:
    struct Settings {
        AdamOptions options;
        bool decoupled;
    };
    std::vector<Settings> settings_;
};

/// Adam with decoupled weight decay (Loshchilov, Hutter 2019): p -= lr * weight_decay * p before the step; the gradient
/// is unchanged.
class DECLIVITY_API AdamW : public Adam {
  public:
    explicit AdamW(const Parameters& parameters, const AdamWOptions& options = {});
    /// Adds a parameter group with its own options. @throws ValueError for options out of range
    void add_group(const Parameters& parameters, const AdamWOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AdamW); }
};

/// @}

}  // namespace declivity::optim
