// The profile of a training step: each launch with its module, forward and backward, and no change of results.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <declivity/data/loader.hpp>
#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/trace.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

struct ProfiledNet {
    nn::Sequential model;
    optim::Adam optimizer;

    ProfiledNet() : model(make_model()), optimizer(model.parameters(), {.lr = 1e-2}) {}

    static nn::Sequential make_model() {
        manual_seed(7);
        return nn::Sequential(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm(4), nn::ReLU(), nn::MaxPool2d(2),
                              nn::Flatten(), nn::Dropout(0.25), nn::Linear(4 * 4 * 4, 3));
    }

    double step() {
        const Tensor x = random_tensor({2, 1, 8, 8}, 3), labels = tensor({0, 2}, {2}, DType::i64);
        const Tensor loss = cross_entropy(model(x), labels);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        return static_cast<double>(loss.item<float>());
    }

    std::vector<double> weights() {
        std::vector<double> out;
        for (const Tensor& parameter : model.parameters())
            for (const double value : values(parameter)) out.push_back(value);
        return out;
    }
};

}  // namespace

TEST_CASE("profile of a step: every launch has the module that called its function") {
    const Device device = test::device();
    ProfiledNet net;
    net.step();
    device.synchronize();
    Profiler profiler(device);
    net.step();
    const Json trace = trace_of(profiler);
    std::map<std::string, std::set<std::string>> operators;  // by scope
    std::int64_t launches = 0;
    for (const Json& command : commands(trace)) {
        operators[command.at("args").at("scope")].insert(command.at("args").at("operator").get<std::string>());
        ++launches;
    }
    std::int64_t calls = 0;
    for (const auto& row : profiler.rows()) calls += row.calls;
    CHECK(launches == calls);
    const auto has = [&](const std::string& scope, const std::string& name) {
        CAPTURE(scope);
        CAPTURE(name);
        CHECK(operators[scope].contains(name));
    };
    has("Sequential/0", "conv2d");
    has("Sequential/0", "conv2d_backward_weights");
    has("Sequential/1", "batch_norm_statistics");
    has("Sequential/1", "batch_norm_backward");
    has("Sequential/3", "max_pool2d");
    has("Sequential/3", "max_pool2d_backward");
    has("Sequential/5", "bernoulli+dropout");
    has("Sequential/6", "matmul");
    has("optimizer", "Adam");
    has("", "cross_entropy");
    has("", "cross_entropy_backward");
    // Outside of layers are the loss, the uploaded batch, and the initial gradient.
    for (const std::string& name : operators[""]) {
        CAPTURE(name);
        CHECK((name.empty() || name.starts_with("cross_entropy")));
    }
    std::vector<Json> host;
    std::set<std::string> spans;
    for (const Json& event : events(trace, "X")) {
        if (event.at("pid") != 1) continue;
        host.push_back(event);
        spans.insert(event.at("cat").get<std::string>() + " " + event.at("name").get<std::string>());
    }
    CHECK(nesting_fault(host) == "");
    for (const std::string name :
         {"module Sequential", "module 0", "function conv2d", "function linear", "operator conv2d",
          "backward backward of conv2d", "function backward", "module optimizer", "wait wait"}) {
        CAPTURE(name);
        CHECK(spans.contains(name));
    }
}

TEST_CASE("profile of a loader: its threads prepare the batches that the first thread waits for") {
    Profiler profiler(test::device());
    {
        const data::SyntheticDigits digits(20, 1);
        data::Loader loader(digits, {.batch = 10, .device = test::device()});
        loader.start(0);
        while (loader.next()) {
        }
    }
    const Json trace = trace_of(profiler);
    std::map<std::string, std::set<int>> threads;
    for (const Json& event : events(trace, "X"))
        if (event.at("pid") == 1) threads[event.at("name")].insert(event.at("tid").get<int>());
    REQUIRE(threads["next batch"].size() == 1);
    REQUIRE_FALSE(threads["prepare batch"].empty());
    CHECK_FALSE(threads["prepare batch"].contains(*threads["next batch"].begin()));
    int uploads = 0;
    for (const Json& event : events(trace, "X", "copy")) uploads += event.at("tid") == 2 ? 1 : 0;
    CHECK(uploads == 4);  // features and labels of two batches, by the transfer queue
}

TEST_CASE("profile of a step: results are identical bit for bit") {
    ProfiledNet plain, profiled;
    double expected = 0, got = 0;
    for (int i = 0; i < 3; ++i) {
        manual_seed(11);
        expected = plain.step();
    }
    {
        Profiler profiler(test::device());
        for (int i = 0; i < 3; ++i) {
            manual_seed(11);
            got = profiled.step();
        }
    }
    CHECK(got == expected);
    CHECK(profiled.weights() == plain.weights());
}
