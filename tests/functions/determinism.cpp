// The same inputs give the same bits, forward and backward, under varying load.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Keeps the processors busy at irregular intervals, so that work-items run in another order each time.
class Load {
  public:
    explicit Load(unsigned threads) {
        for (unsigned i = 0; i < threads; ++i)
            threads_.emplace_back([this, i] {
                for (std::uint64_t n = i; !stop_; ++n) {
                    volatile std::uint64_t sink = n;
                    for (std::uint64_t k = 0; k < 20000 * (n % 7); ++k) sink = sink + k;
                    std::this_thread::sleep_for(std::chrono::microseconds(50 * (n % 5)));
                }
            });
    }
    ~Load() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

  private:
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

struct Case {
    std::string name;
    std::vector<Shape> shapes;
    std::function<Tensor(const std::vector<Tensor>&)> call;
};

std::vector<Case> cases() {
    const bool small = small_cases();
    const std::int64_t n = small ? 1 : 9, rows = small ? 3 : 300, columns = small ? 5 : 700,
                       image_size = small ? 5 : 20;
    const Tensor labels = (uniform({rows}) * 9.99).to(DType::i64);
    std::vector<Case> all{
        {"matmul", {{rows, columns}, {columns, small ? 3 : 65}}, [](const auto& in) { return matmul(in[0], in[1]); }},
        {"linear",
         {{rows, columns}, {small ? 3 : 65, columns}, {small ? 3 : 65}},
         [](const auto& in) { return linear(in[0], in[1], in[2]); }},
        {"conv2d 3x3",
         {{n, 3, image_size, image_size}, {16, 3, 3, 3}, {16}},
         [](const auto& in) { return conv2d(in[0], in[1], in[2], {.padding = 1}); }},
        {"batch_norm",
         {{n + 1, 5, image_size, image_size}, {5}, {5}},
         [](const auto& in) { return batch_norm(in[0], in[1], in[2], {}, {}); }},
        {"cross_entropy", {{rows, 10}}, [labels](const auto& in) { return cross_entropy(in[0], labels); }},
        {"softmax", {{rows, columns}}, [](const auto& in) { return softmax(in[0]); }},
        {"sums", {{rows, columns}}, [](const auto& in) { return sum(in[0] * in[0], {0}) * mean(in[0]); }},
        {"max", {{rows, columns}}, [](const auto& in) { return max(in[0], {1}); }},
        {"broadcast", {{rows, 1}, {columns}}, [](const auto& in) { return tanh(in[0] * in[1]) + in[1]; }},
        {"pooling",
         {{n, 4, image_size, image_size}},
         [](const auto& in) {
             return max_pool2d(in[0], {.kernel_size = 3, .stride = 2}) +
                    avg_pool2d(in[0], {.kernel_size = 3, .stride = 2});
         }},
    };
    if (small) return all;
    all.push_back({"conv2d, Winograd", {{4, 32, 16, 16}, {32, 32, 3, 3}}, [](const auto& in) {
                       return conv2d(in[0], in[1], {}, {.padding = 1});
                   }});
    all.push_back(
        {"conv2d 1x1", {{4, 40, 14, 14}, {70, 40, 1, 1}}, [](const auto& in) { return conv2d(in[0], in[1]); }});
    all.push_back({"conv2d, strided", {{4, 16, 15, 15}, {24, 16, 3, 3}}, [](const auto& in) {
                       return conv2d(in[0], in[1], {}, {.stride = 2, .padding = 1});
                   }});
    all.push_back({"conv2d, depthwise", {{4, 33, 14, 14}, {33, 1, 3, 3}}, [](const auto& in) {
                       return conv2d(in[0], in[1], {}, {.padding = 1, .groups = 33});
                   }});
    return all;
}

/// The bits of the result and of all gradients.
std::vector<std::vector<float>> run(const Case& c, const std::vector<Tensor>& operands) {
    std::vector<Tensor> inputs;
    for (const Tensor& operand : operands) inputs.push_back(operand.clone().set_requires_grad());
    const Tensor result = c.call(inputs);
    sum(result * result).backward();
    std::vector<std::vector<float>> out{result.to_vector<float>()};
    for (const Tensor& input : inputs) out.push_back(input.grad().to_vector<float>());
    return out;
}

}  // namespace

TEST_CASE("determinism: results and gradients are identical bit for bit, under load") {
    const Load load(small_cases() ? 0 : 3);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const Case& c : cases()) {
            CAPTURE(c.name);
            CAPTURE(style == KernelStyle::simd);
            std::vector<Tensor> operands;
            for (std::size_t i = 0; i < c.shapes.size(); ++i) operands.push_back(random_tensor(c.shapes[i], i + 1));
            const auto first = run(c, operands);
            for (int run_number = 1; run_number < (small_cases() ? 2 : 20); ++run_number)
                CHECK(run(c, operands) == first);
        }
    }
}

TEST_CASE("determinism: dropout with the same seed") {
    const Load load(small_cases() ? 0 : 3);
    const Tensor x = random_tensor({small_cases() ? 10 : 5000}, 1);
    manual_seed(7);
    const auto first = dropout(x, 0.3).to_vector<float>();
    for (int run_number = 1; run_number < (small_cases() ? 2 : 20); ++run_number) {
        manual_seed(7);
        CHECK(dropout(x, 0.3).to_vector<float>() == first);
    }
}
