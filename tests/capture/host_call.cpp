// no-oclgrind: it replays kernels that other tests launch there
//
// Host functions as commands of captured steps.
#include <declivity/capture/capture.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/runtime/command_list.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/generator.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/error_message.hpp"

using namespace declivity;
using namespace declivity::test;

TEST_CASE("host_call: called in order in each replay") {
    Tensor rate = full({1}, 1.0), weight = zeros({3});
    std::vector<float> totals;
    int steps = 0, calls = 0;
    auto step = capture([&](const Tensor& x) {
        ++calls;
        weight.add_(x * rate);
        const Tensor total = sum(weight);
        host_call({total}, [&, total] {
            CHECK_FALSE(is_capturing());
            totals.push_back(total.item<float>());  // earlier commands are complete
            rate.fill_(static_cast<float>(++steps + 1));
        });
        return weight * rate;  // later commands see what it has written
    });
    const Tensor x = Tensor::from<float>({1, 2, 3}, {3});
    std::vector<float> expected_weight(3, 0.0F), expected_seen;
    for (int i = 1; i <= 5; ++i) {
        const std::vector<float> got = step(x).to_vector<float>();
        float total = 0;
        for (int k = 0; k < 3; ++k) {
            float& element = expected_weight[static_cast<std::size_t>(k)];
            element += static_cast<float>((k + 1) * i);
            total += element;
            CHECK(got[static_cast<std::size_t>(k)] == element * static_cast<float>(i + 1));
        }
        expected_seen.push_back(total);
    }
    CHECK(calls == 1);
    CHECK(step.replayed() == 4);
    CHECK(totals == expected_seen);
    // Its exceptions leave the call; the step can be called again.
    bool fails = false;
    auto throwing_step = capture([&](const Tensor& v) {
        const Tensor y = v + 1.0;
        host_call({y}, [&] {
            if (fails) throw std::runtime_error("of the host");
        });
        return y * 2.0;
    });
    CHECK(throwing_step(x).to_vector<float>() == std::vector<float>{4, 6, 8});
    fails = true;
    CHECK(error_message<std::runtime_error>([&] { throwing_step(x); }) == "of the host");
    fails = false;
    CHECK(throwing_step(x).to_vector<float>() == std::vector<float>{4, 6, 8});
    CHECK(throwing_step.replayed() >= 1);
    CHECK_THROWS_AS(host_call(std::vector<Tensor>{}, nullptr), ValueError);
    CHECK_THROWS_AS(host_call({Tensor()}, [] {}), ValueError);
}

TEST_CASE("host_call: called once per call, also of a step that is captured twice") {
    for (const int warmup_captures : {1, 2, 3}) {
        int calls = 0, steps = 0;
        auto step = capture(
            [&](const Tensor& x) {
                ++steps;
                const Tensor y = x * 2.0;
                host_call({y}, [&] { ++calls; });
                return y + 1.0;
            },
            {.warmup_captures = warmup_captures});
        for (int i = 1; i <= 6; ++i) {
            (void)step(zeros({3}));
            CHECK(calls == i);
        }
        CHECK(steps == warmup_captures);
        CHECK(step.replayed() == 6 - warmup_captures);
    }
    int plain = 0;
    host_call({zeros({2})}, [&] { ++plain; });
    CHECK(plain == 1);
}

TEST_CASE("host_call: its exception reaches the caller, even if the capture is stale by then") {
    // Values derived from the statistics are cached, and the capture depends on them.
    const Tensor mean = random_tensor({4}, 1), variance = full({4}, 2.0), x = random_tensor({2, 4, 5, 3}, 2);
    int calls = 0, steps = 0;
    bool fails = false;
    auto step = capture([&](const Tensor& in) {
        ++steps;
        const NoGrad no_grad;
        const Tensor y = batch_norm(in, {}, {}, mean, variance, {.training = false});
        host_call({y}, [&] {
            ++calls;
            if (!fails) return;
            Tensor(variance).mul_(0.5);
            throw ValueError("of the host");
        });
        return y * 2.0;
    });
    for (int i = 0; i < 3; ++i) (void)step(x);
    fails = true;
    CHECK(error_message<ValueError>([&] { step(x); }) == "of the host");
    CHECK(calls == 4);
    fails = false;
    const NoGrad no_grad;
    const Tensor expected = batch_norm(x, {}, {}, mean, variance, {.training = false}) * 2.0;
    CHECK(step(x).to_vector<float>() == expected.to_vector<float>());
}

TEST_CASE("host_call: earlier pending values are evaluated before it") {
    const auto run = [](bool captured) {
        Tensor weight = full({3}, 1.0);
        const auto function = [&](const Tensor& in) {
            const Tensor before = weight * in;  // still pending
            host_call({}, [&] { weight.add_(1.0); });
            return before + weight * 100.0;
        };
        auto step = capture(function);
        std::vector<std::vector<float>> out;
        for (std::uint64_t i = 0; i < 5; ++i) {
            const Tensor x = random_tensor({3}, i);
            out.push_back((captured ? step(x) : function(x)).to_vector<float>());
        }
        CHECK((step.replayed() == 4) == captured);
        return out;
    };
    CHECK(run(true) == run(false));
}

TEST_CASE("host_call: later commands use what it writes, and do not depend on it") {
    const auto run = [](bool captured) {
        const Tensor mean = random_tensor({4}, 1);
        Tensor variance = full({4}, 2.0);
        const auto function = [&](const Tensor& in) {
            const NoGrad no_grad;
            host_call({}, [&] { variance.mul_(0.5); });
            return batch_norm(in, {}, {}, mean, variance, {.training = false});
        };
        auto step = capture(function);
        std::vector<std::vector<float>> out;
        for (int i = 0; i < 5; ++i) {
            const Tensor x = random_tensor({1, 4, 9, 9}, 2 + static_cast<std::uint64_t>(i));
            out.push_back((captured ? step(x) : function(x)).to_vector<float>());
        }
        CHECK((step.replayed() == 4) == captured);
        return out;
    };
    CHECK(run(true) == run(false));
}

TEST_CASE("host_call: calls that cannot be correct in a replay are refused") {
    const Tensor x = random_tensor({3}, 1);
    SUBCASE("reads an input") {
        for (const bool part : {false, true}) {
            auto step = capture([&](const Tensor& in) {
                const Tensor read = part ? slice(in, 0, 0, 2) : in;
                host_call({read}, [read] { (void)read.to_vector<float>(); });
                return in * 2.0;
            });
            CHECK(error_message<Unsupported>([&] { step(x); }).find("a host_call that reads an input") !=
                  std::string::npos);
        }
        std::vector<float> observed;
        auto copied = capture([&](const Tensor& in) {
            const Tensor read = in.clone();
            host_call({read}, [&observed, read] { observed = read.to_vector<float>(); });
            return in * 2.0;
        });
        for (std::uint64_t i = 0; i < 3; ++i) {
            const Tensor other = random_tensor({3}, 10 + i);
            (void)copied(other);
            CHECK(observed == other.to_vector<float>());
        }
        CHECK(copied.replayed() == 2);
    }
    SUBCASE("calls its own step") {
        CapturedStep* self = nullptr;
        bool recurse = false;
        auto step = capture([&](const std::vector<Tensor>& in) {
            host_call({}, [&] {
                if (recurse) (void)(*self)({zeros({5})});
            });
            return std::vector{in[0] * 2.0};
        });
        self = &step;
        for (int i = 0; i < 2; ++i) (void)step({x});
        recurse = true;
        CHECK(error_message<ValueError>([&] { step({x}); }).find("of a host_call") != std::string::npos);
        recurse = false;
        CHECK(step({x})[0].to_vector<float>() == (x * 2.0).to_vector<float>());
        CHECK(step.replayed() >= 2);
    }
    SUBCASE("samples from the generator of the step") {
        Generator generator(7);
        bool draws = false;
        const auto steps = [&](bool before) {
            return capture([&, before](const Tensor& in) {
                Tensor y = in;
                if (!before) y = y + uniform({3}, 0, 1, {}, generator);
                host_call({}, [&] {
                    if (draws) (void)uniform({2}, 0, 1, {}, generator).to_vector<float>();
                });
                if (before) y = y + uniform({3}, 0, 1, {}, generator);
                return y;
            });
        };
        for (const bool before : {false, true}) {
            CAPTURE(before);
            draws = true;
            CHECK_THROWS_AS(steps(before)(x), Unsupported);
            draws = false;
            auto step = steps(before);
            (void)step(x);
            draws = true;
            CHECK_THROWS_AS(step(x), Unsupported);
        }
    }
    SUBCASE("may sample from its own generator") {
        const auto run = [&](bool captured) {
            Generator generator(7), host_generator(8);
            std::vector<std::vector<float>> out;
            const auto function = [&](const Tensor& in) {
                const Tensor a = in + uniform({3}, 0, 1, {}, generator);
                host_call({}, [&] { out.push_back(uniform({2}, 0, 1, {}, host_generator).to_vector<float>()); });
                return a + uniform({3}, 0, 1, {}, generator);
            };
            auto step = capture(function);
            for (int i = 0; i < 4; ++i) out.push_back((captured ? step(x) : function(x)).to_vector<float>());
            return out;
        };
        CHECK(run(true) == run(false));
    }
}
