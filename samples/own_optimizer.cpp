// A custom optimizer, AdaBelief (Zhuang et al. 2020), that is saved and resumed like those of the library.
#include <cstdio>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

/// Steps are large where the gradient is close to its running mean, and small where it is not.
class AdaBelief : public optim::Optimizer {
  public:
    AdaBelief(const optim::Parameters& parameters, double lr) : Optimizer("AdaBelief") {
        add(parameters, lr, {"m", "s"});
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(AdaBelief); }

  protected:
    void update(std::size_t, optim::Update& x) const override {
        const Tensor m = 0.9 * x["m"] + 0.1 * x.gradient;
        const Tensor s = 0.99 * x["s"] + 0.01 * square(x.gradient - m) + 1e-8;
        x["m"] = m;
        x["s"] = s;
        const Tensor mean = m / (1 - pow(0.9, x.step)), variance = s / (1 - pow(0.99, x.step));
        x.parameter = x.parameter - x.lr * mean / (sqrt(variance) + 1e-8);
    }
};

nn::Sequential network() { return nn::Sequential(nn::Flatten(), nn::Linear(784, 64), nn::ReLU(), nn::Linear(64, 10)); }

}  // namespace

int main() {
    const data::SyntheticDigits digits(4000, 1), unseen(1000, 2);

    manual_seed(1);
    nn::Sequential uninterrupted = network();
    AdaBelief optimizer(uninterrupted.named_parameters(), 5e-3);
    train::Trainer trainer(uninterrupted, optimizer);
    trainer.fit(digits, unseen, {.epochs = 2, .batch = 50});
    trainer.save("own_optimizer.safetensors");
    trainer.fit(digits, unseen, {.epochs = 5, .batch = 50});
    for (const NamedTensor& tensor : optimizer.state_dict()) std::printf("%s ", tensor.name.c_str());

    manual_seed(2);
    nn::Sequential resumed = network();
    AdaBelief another(resumed.named_parameters(), 1);
    train::Trainer resumed_trainer(resumed, another);
    resumed_trainer.load("own_optimizer.safetensors");
    resumed_trainer.fit(digits, {.epochs = 5, .batch = 50, .quiet = true});

    bool equal = true;
    for (std::size_t i = 0; i < uninterrupted.parameters().size(); ++i)
        equal &= uninterrupted.parameters()[i].to_vector<float>() == resumed.parameters()[i].to_vector<float>();
    const double accuracy = trainer.evaluate(unseen)["accuracy"];
    std::printf("\n%d steps were replayed; resumed from the file: %s\ntest accuracy: %.4f\n",
                static_cast<int>(trainer.replays().replayed), equal ? "identical bit for bit" : "different", accuracy);
    return equal && accuracy > 0.9 ? 0 : 1;
}
