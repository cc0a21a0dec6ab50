// A generative adversarial network with gradient penalty (Gulrajani et al. 2017, "Improved Training of Wasserstein
// GANs") learns to generate digits. The critic's loss contains the norm of its own gradient, so that each critic step
// is a double backward. Writes generated digits as a picture.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kNoise = 64;

/// Maps noise (N, 64) to images (N, 1, 28, 28) in [0, 1].
nn::Sequential make_generator() {
    return nn::Sequential(nn::Linear(kNoise, 64 * 7 * 7), nn::ReLU(), nn::Lambda([](const Tensor& x) {
                              return reshape(x, {-1, 64, 7, 7});
                          }),
                          nn::ConvTranspose2d(64, 32, 4, {.stride = 2, .padding = 1}), nn::ReLU(),
                          nn::ConvTranspose2d(32, 1, 4, {.stride = 2, .padding = 1}), nn::Sigmoid());
}

/// Maps images to one score each, larger for real-looking ones.
nn::Sequential make_critic() {
    return nn::Sequential(nn::Conv2d(1, 16, 4, {.stride = 2, .padding = 1}), nn::LeakyReLU(0.2),
                          nn::Conv2d(16, 32, 4, {.stride = 2, .padding = 1}), nn::LeakyReLU(0.2), nn::Flatten(),
                          nn::Linear(32 * 7 * 7, 1));
}

/// Gradient penalty: deviation of the critic's gradient norm from 1 at random points between real and generated images.
Tensor gradient_penalty(nn::Layer& critic, const Tensor& real, const Tensor& drawn) {
    const Tensor share = rand({real.size(0), 1, 1, 1});
    const Tensor between = (real * share + drawn * (1.0 - share)).detach().set_requires_grad();
    const Tensor slope = grad({sum(critic(between))}, {between}, {.create_graph = true})[0];
    return mean(square(sqrt(sum(square(slope), {1, 2, 3}) + 1e-12) - 1.0));
}

}  // namespace

int main(int argc, char** argv) {
    std::string device, plot = "wgan_gp.png";
    std::int64_t epochs = 3, batch_size = 30;
    CLI::App app("Trains a generative adversarial network with gradient penalty to generate digits.");
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--epochs", epochs, "epochs")->capture_default_str();
    app.add_option("--batch", batch_size, "batch size")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for generated digits")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    if (!device.empty()) set_default_device(Device::select(device));
    manual_seed(1);
    const data::SyntheticDigits digits(2400, 1);
    nn::Sequential generator = make_generator(), critic = make_critic();
    optim::Adam generator_optimizer(generator.parameters(), {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
    optim::Adam critic_optimizer(critic.parameters(), {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9});

    const train::Parts parts{.modules = {{"generator", generator}, {"critic", critic}},
                             .optimizers = {{"generator", generator_optimizer}, {"critic", critic_optimizer}}};
    train::Trainer trainer(parts, [&](train::Step& step, const data::Batch& batch) {
        const Tensor real = batch["image"], drawn = generator(randn({batch.size, kNoise}));
        critic_optimizer.zero_grad();
        const Tensor distance = mean(critic(real)) - mean(critic(drawn.detach()));
        const Tensor penalty = gradient_penalty(critic, real, drawn);
        step.backward(penalty * 10.0 - distance);
        critic_optimizer.step();
        step.report("distance", distance);
        step.report("penalty", penalty);
        if (step.number() % 3 != 2) return;  // three critic steps per generator step
        generator_optimizer.zero_grad();
        step.backward(-mean(critic(drawn)));
        generator_optimizer.step();
    });
    trainer.fit(digits, {.epochs = epochs, .batch = batch_size});

    const NoGrad no_grad;
    const Tensor drawn = generator(randn({240, kNoise}));
    const data::Batch real = *data::Loader(digits, {.batch = 1000}).begin();
    // Compares the mean of each pixel and of its square with the data set. The error is half of all ink at first.
    const auto moments = [](const Tensor& images) { return concat({mean(images, 0), mean(square(images), 0)}, 0); };
    const double off = mean(abs(moments(drawn) - moments(real["image"]))).item<float>();
    const std::vector<float> pixels = drawn.to_vector<float>();
    std::vector<train::Prediction> shown;
    for (std::size_t i = 0; i < 60; ++i)
        shown.push_back({io::Image8::from_planes(std::span(pixels).subspan(i * 784, 784), {1, 28, 28}), "", ""});
    io::write_png(plot, train::prediction_grid(shown, 12, "generated digits"));
    std::printf("difference of moments: %.4f\n", off);
    return off < 0.06 ? 0 : 1;
}
