// Layer 4. Adam and AdamW.
#pragma once

#include <vector>

#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

struct AdamOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;  ///< added to the gradient as weight_decay * parameter
    bool amsgrad = false;     ///< divides by the largest mean square that there was (Reddi et al. 2018)
    bool maximize = false;    ///< goes up: the gradient counts with the other sign
};

/// As AdamOptions, with weights that decay by default.
struct AdamWOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0.01;  ///< of the parameter: each step multiplies it by 1 - lr * weight_decay
    bool amsgrad = false;        ///< as in AdamOptions
    bool maximize = false;
};

/// Adam (Kingma, Ba 2015, algorithm 1). With the rate lr, in step t from 1:
///     g += weight_decay * p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     p -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
/// With amsgrad, v's largest value so far stands in the last line.
class DECLIVITY_API Adam : public Optimizer {
  public:
    explicit Adam(const Parameters& parameters, const AdamOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const Parameters& parameters, const AdamOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Adam); }

  protected:
    /// Without any group yet.
    explicit Adam(std::string_view name) : Optimizer(name) {}
    /// @param name of the optimizer, for errors; @param decoupled decays the parameters, as AdamW does
    void add_group_of(std::string_view name, const Parameters& parameters, const AdamOptions& options, bool decoupled);
    void update(std::size_t group, Update& x) const override;

  private:
    struct Settings {
        AdamOptions options;
        bool decoupled;
    };
    std::vector<Settings> settings_;
};

/// Adam with weight decay applied to the parameters themselves (Loshchilov, Hutter 2019): p -= lr * weight_decay * p
/// first, and the gradient stays as it is.
class DECLIVITY_API AdamW : public Adam {
  public:
    explicit AdamW(const Parameters& parameters, const AdamWOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const Parameters& parameters, const AdamWOptions& options);
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AdamW); }
};

}  // namespace declivity::optim
