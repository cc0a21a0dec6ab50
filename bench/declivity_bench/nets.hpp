// The networks of the training benchmark; bench/peers/pytorch_train.py has the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>

namespace declivity::bench {

struct Net {
    std::string name;
    std::int64_t batch;
    Shape input;  ///< shape of one image
    std::unique_ptr<nn::Layer> (*make)();
};

/// mnist and cifar10 of the samples of these names, and ResNet-20 (K. He et al. 2015, section 4.2; 1x1 convolutions as
/// shortcuts where the shape changes).
const std::vector<Net>& nets();

/// A network, Adam, and a batch of random images and labels.
class Training {
  public:
    Training(const Net& net, std::int64_t batch);
    void step();
    void infer();
    /// The captured step: captured at the first call, and again after a call of the other step, which changes the mode
    /// of the model.
    void captured_step();
    void captured_infer();

  private:
    std::unique_ptr<nn::Layer> model_;
    std::unique_ptr<optim::Adam> optimizer_;
    Tensor images_, labels_;
    CapturedAction captured_step_{[this](const std::vector<Tensor>&) { return step(), std::vector<Tensor>{}; }};
    CapturedAction captured_infer_{[this](const std::vector<Tensor>&) { return infer(), std::vector<Tensor>{}; }};
};

}  // namespace declivity::bench
