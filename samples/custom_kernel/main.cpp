// A custom differentiable function with its own .cl file inside a network: gradient check against numeric gradients,
// training, and profiling.
#include "common.hpp"

#include <cmath>

using namespace declivity;

namespace {

/// Launches a kernel of mish.cl on contiguous tensors of equal shape; the last tensor is the output.
Tensor launch_mish(const std::string& kernel_name, const std::vector<Tensor>& inputs) {
    const Device device = inputs[0].device();
    const Kernel kernel(device, {DECLIVITY_PROGRAM_DIR "/mish.cl", kernel_name, ops::real_defines(inputs[0].dtype())});
    const ops::View out = ops::View::make(device, inputs[0].dtype(), inputs[0].shape());
    std::vector<ops::View> views;
    for (const Tensor& input : inputs) views.push_back(input.dense_view());
    views.push_back(out);
    std::vector<BufferArgument> buffers;
    for (const ops::View& view : views) buffers.push_back(view.argument());
    const std::int64_t n = out.numel();
    std::vector<Argument> arguments{n};
    for (const BufferArgument& buffer : buffers) arguments.emplace_back(buffer);
    launch(kernel, {.global = {round_up(static_cast<std::size_t>(n), 64), 1, 1}}, arguments);
    return Tensor(out);
}

Tensor fused_mish(const Tensor& x) {
    static const CustomFunction function{
        .name = "mish",
        .forward = [](const std::vector<Tensor>& in) { return std::vector{launch_mish("mish_forward", {in[0]})}; },
        .backward =
            [](const std::vector<Tensor>& in, const std::vector<Tensor>&, const std::vector<Tensor>& g) {
                return std::vector{launch_mish("mish_backward", {in[0], g[0]})};
            }};
    return function({x})[0];
}

/// Largest difference between the gradient and central differences, in double precision.
double gradient_error() {
    std::vector<double> points;
    for (int i = -20; i <= 20; ++i) points.push_back(0.3 * i + 0.05);
    const Shape shape{static_cast<std::int64_t>(points.size())};
    Tensor x = Tensor::from(points, shape).set_requires_grad();
    sum(fused_mish(x)).backward();
    const auto gradient = x.grad().to_vector<double>();
    const double step = 1e-5;
    const NoGrad no_grad;
    const auto above = fused_mish(x + step).to_vector<double>(), below = fused_mish(x - step).to_vector<double>();
    double worst = 0;
    for (std::size_t i = 0; i < points.size(); ++i)
        worst = std::max(worst, std::abs((above[i] - below[i]) / (2 * step) - gradient[i]));
    return worst;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Trains a network with a custom activation implemented in a .cl file.");
    samples::Flags flags{.epochs = 3, .batch = 64, .lr = 2e-3, .limit = 5000};
    flags.add_to(app);
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        if (default_device().info().fp64) {
            const double error = gradient_error();
            std::printf("gradient check: largest error %.2e\n", error);
            if (!(error < 1e-8)) throw Error("wrong gradient of mish");
        }
        const samples::Sets sets{samples::limited(std::make_shared<data::SyntheticDigits>(10000, 1), flags.limit),
                                 std::make_shared<data::SyntheticDigits>(1000, 2)};
        nn::Sequential model(nn::Flatten(), nn::Linear(784, 128), nn::Lambda(fused_mish, "Mish"), nn::Linear(128, 10));
        optim::Adam optimizer(model.parameters(), {.lr = flags.lr});
        Profiler profiler(default_device());
        // mish launches the same kernels for each batch, so a training step that contains it is capture-safe.
        const int status = samples::train_and_report(flags, model, optimizer, sets, {.capture = true}, "custom_kernel");
        std::fputs(profiler.table().c_str(), stderr);
        return status;
    });
}
