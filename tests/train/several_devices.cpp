// Several devices in one process, and several threads on one device: each trains as if it were alone.
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/child.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

using namespace declivity;

namespace {

std::vector<float> f32_elements(const Tensor& tensor) { return tensor.to(DType::f32).to_vector<float>(); }

/// Parameters after some steps on a device; all randomness depends on the seed.
std::vector<std::vector<float>> trained(const Device& device, std::uint64_t seed, int steps = 6) {
    const TensorOptions on_device{.dtype = DType::f32, .device = device};
    // No bias before the normalisation: its gradient is 0 except for rounding, which Adam would amplify.
    nn::Sequential model(nn::Conv2d(1, 4, 3, {.bias = false, .device = on_device.device}),
                         nn::BatchNorm(4, {.device = on_device.device}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                         nn::Linear(64, 5, {.device = on_device.device}));
    {
        const NoGrad no_grad;
        std::uint64_t number = seed * 100;
        for (const auto& [name, parameter] : model.named_parameters())
            Tensor(parameter).copy_((test::random_tensor(parameter.shape(), ++number) * 0.3).to(device));
    }
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});
    const Tensor x = test::random_tensor({8, 1, 10, 10}, seed).to(device);
    const Tensor labels = Tensor::from(std::vector<std::int32_t>{0, 1, 2, 3, 4, 3, 2, 1}, {8}, device);
    for (int step = 0; step < steps; ++step) {
        cross_entropy(model(x), labels).backward();
        optimizer.step();
        optimizer.zero_grad();
    }
    std::vector<std::vector<float>> all;
    for (const NamedTensor& item : model.state_dict()) all.push_back(f32_elements(item.tensor));
    return all;
}

std::string message_of(const auto& call) {
    try {
        call();
    } catch (const DeviceError& error) {
        return error.what();
    } catch (const std::exception& error) {
        return fmt::format("no DeviceError: {}", error.what());
    }
    return "nothing was thrown";
}

}  // namespace

TEST_CASE("several devices: child process" * doctest::skip()) {
    const auto all = Device::all();
    if (all.size() < 2) {
        test::skip(fmt::format("one device only ({})", all.front().name()));
        return;
    }
    const Device a = all[0], b = all[1];
    CHECK(!(a == b));

    SUBCASE("two threads train at once, each as if it were alone, and with the same bits on devices of the same kind") {
        const auto alone_a = trained(a, 1), alone_b = trained(b, 1);
        if (a.name() == b.name() && a.info().compute_units == b.info().compute_units) CHECK(alone_a == alone_b);
        else
            for (std::size_t i = 0; i < alone_a.size(); ++i)
                CHECK(test::difference({alone_a[i].begin(), alone_a[i].end()}, {alone_b[i].begin(), alone_b[i].end()},
                                       {1e-2, 1e-2}) == "");
        const auto faults = test::run_in_threads(4, [&](int number) -> std::string {
            for (int round = 0; round < 3; ++round)
                if (trained(number % 2 == 0 ? a : b, 1) != (number % 2 == 0 ? alone_a : alone_b))
                    return "other parameters";
            return "";
        });
        for (const std::string& fault : faults) CHECK(fault == "");
    }
    SUBCASE("tensors move, with their gradients") {
        Tensor w = test::random_tensor({3, 4}, 1).to(a).detach().set_requires_grad();
        const Tensor moved = (w * 2.0).to(b);
        CHECK(moved.device() == b);
        CHECK(f32_elements(moved) == f32_elements(w * 2.0));
        const Tensor back = square(moved).to(a);
        sum(back).backward();
        CHECK(w.grad().device() == a);
        CHECK(f32_elements(w.grad()) == f32_elements(w * 8.0));
        CHECK(a.memory().in_use > 0);
        CHECK(b.memory().in_use > 0);
        // Several threads copy in both directions.
        for (
            const std::string& fault : test::run_in_threads(4, [&](int number) -> std::string {
                Tensor t = test::random_tensor({50, 7}, static_cast<std::uint64_t>(number)).to(number % 2 == 0 ? a : b);
                const auto before = f32_elements(t);
                for (int i = 0; i < 20; ++i) t = t.to(t.device() == a ? b : a);
                return f32_elements(t) == before ? "" : "other elements";
            }))
            CHECK(fault == "");
    }
    SUBCASE("mixing devices is an error that names both") {
        const Tensor on_a = test::random_tensor({4, 4}, 1).to(a), on_b = test::random_tensor({4, 4}, 2).to(b);
        const auto in_a = f32_elements(on_a);
        Tensor parameter_a = on_a.clone().set_requires_grad(), parameter_b = on_b.clone().set_requires_grad();
        for (const auto& [call, name] : std::vector<std::pair<std::function<void()>, const char*>>{
                 {[&] { (void)(on_a + on_b).view(); }, "add"},
                 {[&] { (void)matmul(on_a, on_b).view(); }, "matmul"},
                 {[&] { (void)maximum(on_a, on_b).view(); }, "maximum"},
                 {[&] {
                      (void)concat({on_a, on_b}, 0).view();
                  },
                  "concat"},
                 {[&] { Tensor(on_a).add_(on_b); }, "add_"},
                 {[&] { parameter_a.set_grad(on_b); }, "set_grad"},
                 {[&] { copy(on_a.view().buffer, 0, on_b.view().buffer, 0, 4); }, "copy"},
                 {[&] {
                      optim::Adam({parameter_a, parameter_b}, {});
                  },
                  "Adam"}}) {
            CAPTURE(std::string(name));
            const std::string message = message_of(call);
            CHECK(message.find(a.name()) != std::string::npos);
            CHECK(message.find(b.name()) != std::string::npos);
        }
        CHECK(f32_elements(on_a) == in_a);  // nothing was written
        Tensor(on_a).copy_(on_b);           // via the host
        CHECK(f32_elements(on_a) == f32_elements(on_b));
    }
    SUBCASE("each has its own random numbers, the same for the same seed") {
        manual_seed(5);
        const auto from_a = f32_elements(uniform({9}, 0, 1, {.device = a})),
                   from_b = f32_elements(uniform({9}, 0, 1, {.device = b}));
        CHECK(from_a == from_b);
    }
}

TEST_CASE("several devices in one process") {
    for (const char* devices : {"pthread pthread", "pthread basic"}) {
        CAPTURE(std::string(devices));
        const auto result = test::run_child("several devices: child process",
                                            {{"POCL_DEVICES", devices}, {"DECLIVITY_DEVICE", std::nullopt}});
        INFO(result.output);
        CHECK((result.code == 0 || result.code == 77));
        if (result.code == 77) test::skip("the driver offers one device only");
    }
}

TEST_CASE("threads: several train on one device, each as if it were alone") {
    const Device device = test::device();
    std::vector<std::vector<std::vector<float>>> separate;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) separate.push_back(trained(device, seed));
    for (const std::string& fault : test::run_in_threads(4, [&](int number) -> std::string {
             for (int round = 0; round < 3; ++round)
                 if (trained(device, static_cast<std::uint64_t>(number) + 1) !=
                     separate[static_cast<std::size_t>(number)])
                     return "other parameters";
             return "";
         }))
        CHECK(fault == "");
}

TEST_CASE("threads: values of one graph are used by several threads at once") {
    const Tensor x = test::random_tensor({20, 20}, 1);
    for (int round = 0; round < 10; ++round) {
        const Tensor shared = exp(x) * 0.1, product = matmul(shared, x);
        const Tensor sums = relu(product) + shared;
        std::vector<std::vector<float>> got(4);
        for (const std::string& fault : test::run_in_threads(4, [&](int number) -> std::string {
                 const Tensor combined = number % 2 == 0 ? sums + product : sums - shared;
                 got[static_cast<std::size_t>(number)] = f32_elements(combined);
                 return "";
             }))
            CHECK(fault == "");
        CHECK(got[0] == got[2]);
        CHECK(got[1] == got[3]);
    }
}
