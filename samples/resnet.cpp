// A residual network (He et al. 2016, "Deep Residual Learning for Image Recognition") on synthetic digits.
#include <cstdio>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

/// Residual block, (N, in, H, W) to (N, out, H / stride, W / stride): two convolutions and a skip connection.
struct Block : nn::Layer {
    nn::Sequential& residual;
    nn::Sequential& skip;  // an empty Sequential is the identity

    Block(std::int64_t in, std::int64_t out, std::int64_t stride)
        : residual(add("residual",
                       nn::Sequential(nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
                                      nn::BatchNorm2d(out), nn::ReLU(),
                                      nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(out)))),
          skip(add("skip", nn::Sequential())) {
        if (in == out && stride == 1) return;
        skip.append(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}));
        skip.append(nn::BatchNorm2d(out));
    }
    Tensor forward(Tensor x) override { return relu(residual(x) + skip(x)); }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Block); }
};

}  // namespace

int main() {
    manual_seed(1);
    const data::SyntheticDigits digits(4000, 1), unseen(1000, 2);

    nn::Sequential model(nn::Conv2d(1, 8, 3, {.stride = 2, .padding = 1, .bias = false}), nn::BatchNorm2d(8),
                         nn::ReLU(), Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2), nn::GlobalAvgPool2d(),
                         nn::Flatten(), nn::Linear(32, 10));
    std::printf("%s", model.summary({1, 1, 28, 28}).c_str());

    constexpr std::int64_t kEpochs = 3, kBatch = 50;
    optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4});
    train::Trainer trainer(model, optimizer);
    const auto rate = std::make_shared<train::LearningRate>(optim::cosine(kEpochs * digits.size() / kBatch),
                                                            train::LearningRate::Unit::step);
    trainer.fit(digits, unseen, {.epochs = kEpochs, .batch = kBatch, .callbacks = {rate}});

    const double accuracy = trainer.evaluate(unseen)["accuracy"];
    std::printf("%lld steps were replayed\ntest accuracy: %.4f\n", static_cast<long long>(trainer.replays().replayed),
                accuracy);
    return accuracy > 0.9 ? 0 : 1;
}
