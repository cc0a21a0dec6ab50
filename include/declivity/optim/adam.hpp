// Floor 4. Adam and AdamW.
#pragma once

#include <declivity/ops/adam.hpp>
#include <declivity/optim/optimizer.hpp>

namespace declivity::optim {

struct AdamOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;  ///< added to the gradient as weight_decay * parameter
};

/// As AdamOptions, with weights that decay by default.
struct AdamWOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.01;  ///< of the parameter: each step multiplies it by 1 - lr * weight_decay
};

/// See ops::adam_step for the formulas; weight decay is added to the gradient.
class DECLIVITY_API Adam : public Optimizer {
  public:
    explicit Adam(const std::vector<Tensor>& parameters, const AdamOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const std::vector<Tensor>& parameters, const AdamOptions& options);
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Adam); }

  protected:
    /// Without any group yet.
    Adam() = default;
    /// @param name of the optimizer, for errors
    void add_group_of(const char* name, const std::vector<Tensor>& parameters, double lr,
                      const ops::AdamParameters& settings);
    void update(std::size_t group, const std::vector<std::vector<ops::View>>& roles, const ops::View& progress,
                const ops::View& guard) override;

  private:
    struct Settings {
        ops::AdamParameters parameters;
        ops::MultiTensor tensors;
    };
    std::vector<Settings> settings_;
};

/// Adam with weight decay applied to the parameters themselves (Loshchilov, Hutter 2019).
class DECLIVITY_API AdamW : public Adam {
  public:
    explicit AdamW(const std::vector<Tensor>& parameters, const AdamWOptions& options = {});
    /// Another group with settings of its own. @throws ValueError for settings out of range
    void add_group(const std::vector<Tensor>& parameters, const AdamWOptions& options);
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(AdamW); }
};

}  // namespace declivity::optim
