#include "nets.hpp"

#include <random>

namespace declivity::bench {
namespace {

std::unique_ptr<nn::Layer> mnist() {
    return std::make_unique<nn::Sequential>(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(32, 64, 3),
                                            nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(64 * 5 * 5, 10));
}

std::unique_ptr<nn::Layer> cifar10() {
    return std::make_unique<nn::Sequential>(
        nn::Conv2d(3, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(32, 64, 3, {.padding = 1}),
        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(64 * 8 * 8, 128), nn::ReLU(), nn::Linear(128, 10));
}

struct Block : nn::Layer {
    Block(std::int64_t in, std::int64_t out, std::int64_t stride)
        : first(add("first", nn::Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}))),
          first_norm(add("first_norm", nn::BatchNorm(out))),
          second(add("second", nn::Conv2d(out, out, 3, {.padding = 1, .bias = false}))),
          second_norm(add("second_norm", nn::BatchNorm(out))) {
        if (stride != 1 || in != out)
            shortcut = &add("shortcut", nn::Sequential(nn::Conv2d(in, out, 1, {.stride = stride, .bias = false}),
                                                       nn::BatchNorm(out)));
    }
    Tensor forward(Tensor x) override {
        const Tensor y = second_norm(second(relu(first_norm(first(x)))));
        return relu(y + (shortcut != nullptr ? (*shortcut)(x) : x));
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Block); }

    nn::Conv2d& first;
    nn::BatchNorm& first_norm;
    nn::Conv2d& second;
    nn::BatchNorm& second_norm;
    nn::Sequential* shortcut = nullptr;
};

std::unique_ptr<nn::Layer> resnet20() {
    auto net = std::make_unique<nn::Sequential>(nn::Conv2d(3, 16, 3, {.padding = 1, .bias = false}), nn::BatchNorm(16),
                                                nn::ReLU());
    std::int64_t in = 16;
    for (const std::int64_t out : {16, 32, 64})
        for (int block = 0; block < 3; ++block) {
            net->append(Block(in, out, block == 0 && out != 16 ? 2 : 1));
            in = out;
        }
    net->append(nn::GlobalAvgPool2d());
    net->append(nn::Flatten());
    net->append(nn::Linear(64, 10));
    return net;
}

}  // namespace

const std::vector<Net>& nets() {
    static const std::vector<Net> all{{"mnist", 128, {1, 28, 28}, mnist},
                                      {"mnist", 32, {1, 28, 28}, mnist},
                                      {"cifar10", 64, {3, 32, 32}, cifar10},
                                      {"resnet20", 64, {3, 32, 32}, resnet20}};
    return all;
}

Training::Training(const Net& net, std::int64_t batch)
    : model_(net.make()), optimizer_(std::make_unique<optim::Adam>(model_->parameters())) {
    images_ = uniform({batch, net.input[0], net.input[1], net.input[2]});
    std::mt19937_64 engine(3);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(batch));
    for (std::int64_t& label : labels) label = static_cast<std::int64_t>(engine() % 10);
    labels_ = Tensor::from(labels, {batch});
}

void Training::step() {
    model_->train();
    optimizer_->zero_grad();
    cross_entropy((*model_)(images_), labels_).backward();
    optimizer_->step();
}

void Training::captured_step() { captured_step_(); }
void Training::captured_infer() { captured_infer_(); }

void Training::infer() {
    const NoGrad none;
    model_->eval();
    (void)(*model_)(images_);
}

}  // namespace declivity::bench
