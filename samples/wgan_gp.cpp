// A generative adversarial network with gradient penalty (Gulrajani et al. 2017, "Improved Training of Wasserstein
// GANs") learns to draw digits. The critic's loss holds the slope of the critic itself, so that each of its steps goes
// through the gradient of a gradient.
#include "common.hpp"

using namespace declivity;

namespace {

constexpr std::int64_t kNoise = 64;

/// Noise (N, 64) to images (N, 1, 28, 28) in [0, 1].
struct DigitGenerator : nn::Layer {
    nn::Linear& first = add("first", nn::Linear(kNoise, 128 * 7 * 7));
    Tensor middle = parameter("middle", normal({128, 64, 4, 4}, 0, 0.03));
    Tensor last = parameter("last", normal({64, 1, 4, 4}, 0, 0.03));

    Tensor forward(Tensor noise) override {
        const Tensor small = reshape(relu(first(noise)), {noise.size(0), 128, 7, 7});
        const Tensor large = relu(conv_transpose2d(small, middle, {}, {.stride = 2, .padding = 1}));
        return sigmoid(conv_transpose2d(large, last, {}, {.stride = 2, .padding = 1}));
    }
};

/// Images to a number each: larger for those that look real.
struct Critic : nn::Layer {
    nn::Conv2d& first = add("first", nn::Conv2d(1, 32, 4, {.stride = 2, .padding = 1}));
    nn::Conv2d& second = add("second", nn::Conv2d(32, 64, 4, {.stride = 2, .padding = 1}));
    nn::Linear& last = add("last", nn::Linear(64 * 7 * 7, 1));

    Tensor forward(Tensor images) override {
        return last(flatten(leaky_relu(second(leaky_relu(first(images), 0.2)), 0.2)));
    }
};

/// How far the slope of the critic is from 1, at random points between real and drawn images.
Tensor gradient_penalty(Critic& critic, const Tensor& real, const Tensor& drawn) {
    const Tensor share = rand({real.size(0), 1, 1, 1});
    const Tensor between = (real * share + drawn * (1.0 - share)).detach().set_requires_grad();
    const Tensor slope = grad({sum(critic(between))}, {between}, {.create_graph = true})[0];
    return mean(square(sqrt(sum(square(slope), {1, 2, 3}) + 1e-12) - 1.0));
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Trains a generative adversarial network with gradient penalty on digits; writes wgan_gp.png.");
    samples::Flags flags{.epochs = 20, .batch = 64, .lr = 2e-4};
    flags.add_to(app);
    std::int64_t critic_steps = 3;
    app.add_option("--critic-steps", critic_steps, "steps of the critic for each of the generator")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    std::string picture = "wgan_gp.png";
    app.add_option("--out", picture, "picture of drawn digits to write")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        samples::DatasetPointer digits;
        if (flags.data.empty()) digits = std::make_shared<data::DrawnDigits>(10000, 1);
        else digits = data::load_mnist(flags.data, data::Split::train);
        digits = samples::limited(digits, flags.limit);
        DigitGenerator generator;
        Critic critic;
        optim::Adam generator_optimizer(generator.parameters(), {.lr = flags.lr, .beta1 = 0.5, .beta2 = 0.9});
        optim::Adam critic_optimizer(critic.parameters(), {.lr = flags.lr, .beta1 = 0.5, .beta2 = 0.9});
        data::Loader loader(*digits, {.batch = flags.batch, .shuffle = true, .drop_last = true, .seed = flags.seed});
        std::int64_t step = 0;
        for (std::int64_t epoch = 0; epoch < flags.epochs; ++epoch) {
            loader.start(static_cast<std::uint64_t>(epoch));
            double distance = 0, penalty_sum = 0;
            std::int64_t counted = 0;
            while (const auto batch = loader.next()) {
                const Tensor& real = (*batch)["image"];
                Tensor drawn;
                {
                    const NoGrad no_grad;
                    drawn = generator(randn({batch->size, kNoise}));
                }
                critic_optimizer.zero_grad();
                const Tensor gap = mean(critic(real)) - mean(critic(drawn));
                const Tensor penalty = gradient_penalty(critic, real, drawn);
                (penalty * 10.0 - gap).backward();
                critic_optimizer.step();
                distance += gap.item<float>();
                penalty_sum += penalty.item<float>();
                ++counted;
                if (++step % critic_steps != 0) continue;
                generator_optimizer.zero_grad();
                (-mean(critic(generator(randn({batch->size, kNoise}))))).backward();
                generator_optimizer.step();
            }
            std::printf("epoch %lld: distance %.3f, penalty %.3f\n", static_cast<long long>(epoch + 1),
                        distance / static_cast<double>(counted), penalty_sum / static_cast<double>(counted));
            std::fflush(stdout);
        }
        const NoGrad no_grad;
        // Half of all ink at first, as little as real digits have at the end.
        loader.start(0);
        std::printf("ink of real digits: %.3f, of drawn ones: %.3f\n", mean((*loader.next())["image"]).item<float>(),
                    mean(generator(randn({256, kNoise}))).item<float>());
        const auto pixels = generator(randn({60, kNoise})).to_vector<float>();
        std::vector<train::Prediction> shown;
        for (std::size_t i = 0; i < 60; ++i)
            shown.push_back({io::Image8::from_planes(std::span(pixels).subspan(i * 784, 784), {1, 28, 28}), "", ""});
        io::write_png(picture, train::prediction_grid(shown, 12, "drawn by the generator"));
        std::fprintf(stderr, "wrote %s\n", picture.c_str());
        return 0;
    });
}
