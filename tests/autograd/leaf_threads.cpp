// Concurrent backward() calls with shared leaves: no gradient is lost, and grad(), zero_grad() and set_grad() may be
// called concurrently.
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr int kThreads = 4;
int rounds(int count) { return small_cases() ? 3 : count; }

/// Describes what is wrong with a tensor whose elements must all be `expected`.
std::string check_all_equal(const Tensor& tensor, double expected) {
    if (!tensor.defined()) return "no gradient";
    for (const double v : values(tensor))
        if (v != expected) return fmt::format("expected {}, got {}", expected, v);
    return "";
}

}  // namespace

TEST_CASE("leaf threads: concurrent accumulation into one leaf") {
    const Tensor w = ones({5}).set_requires_grad();
    const int count = rounds(1000);
    for (const std::string& fault : run_in_threads(kThreads, [&](int) -> std::string {
             for (int i = 0; i < count; ++i) sum(w * 2.0).backward();
             return "";
         }))
        CHECK(fault == "");
    CHECK(check_all_equal(w.grad(), 2.0 * kThreads * count) == "");
}

TEST_CASE("leaf threads: concurrent first gradients") {
    std::vector<Tensor> leaves, filters;
    for (int i = 0; i < rounds(1500); ++i) leaves.push_back(ones({1 + i % 7}).set_requires_grad());
    for (int i = 0; i < rounds(40); ++i) filters.push_back(ones({3, 2, 3, 3}).set_requires_grad());
    const Tensor x = ones({2, 2, 5, 5});
    for (const std::string& fault : run_in_threads(kThreads, [&](int number) -> std::string {
             // Two ways to compute the gradient: one with its own memory, and one that is shared.
             for (const Tensor& leaf : leaves) sum(number % 2 == 0 ? leaf * 3.0 : leaf + leaf + leaf).backward();
             for (const Tensor& filter : filters) sum(conv2d(x, filter)).backward();  // its sum is deferred
             return "";
         }))
        CHECK(fault == "");
    for (const Tensor& leaf : leaves) CHECK(check_all_equal(leaf.grad(), 3.0 * kThreads) == "");
    for (const Tensor& filter : filters) CHECK(check_all_equal(filter.grad(), 2.0 * 9 * kThreads) == "");
}

TEST_CASE("leaf threads: reading, resetting or replacing a gradient during accumulation") {
    Tensor w = ones({33}).set_requires_grad();
    const int count = rounds(300);
    for (const std::string& fault : run_in_threads(kThreads, [&](int number) -> std::string {
             Tensor leaf = w;
             for (int i = 0; i < count; ++i) {
                 if (number < 2) sum(leaf * 2.0).backward();
                 else if (number == 2 && i % 10 == 0) leaf.zero_grad();
                 else if (number == 2) leaf.set_grad(full({33}, 4));
                 else if (const Tensor gradient = leaf.grad();
                          gradient.defined() && std::fmod(values(gradient)[i % 33], 2.0) != 0)
                     return "half a gradient";
             }
             return "";
         }))
        CHECK(fault == "");
    w.zero_grad();
    sum(w * 2.0).backward();
    CHECK(check_all_equal(w.grad(), 2) == "");
}

TEST_CASE("leaf threads: the graph of a gradient may end in a user's destructor that reads gradients") {
    struct ReadsGradient {
        Tensor leaf;
        std::atomic<int>* count;
        ReadsGradient(Tensor tensor, std::atomic<int>* counted) : leaf(std::move(tensor)), count(counted) {}
        ~ReadsGradient() {
            if (leaf.grad().defined()) ++*count;
        }
    };
    std::atomic<int> reads = 0;
    for (const int method : {0, 1, 2}) {
        Tensor w = ones({3}).set_requires_grad();
        // Leaves that share the (striped) lock of w, whichever that is.
        for (int i = 0; i < rounds(200); ++i) {
            Tensor other = ones({1}).set_requires_grad();
            other.set_grad(ones({1}));
            Tensor source = ones({3}).set_requires_grad();
            w.set_grad(attach_backward(
                "held", {source}, (source.detach() * 1.0).value(),
                [reader = std::make_shared<ReadsGradient>(other, &reads)](const GradientContext& context) {
                    return std::vector{context.gradient()};
                }));
            if (method == 0) w.zero_grad();
            else if (method == 1) w.set_grad(ones({3}));
            else w.assign(ones({3}));
        }
    }
    CHECK(reads == 3 * rounds(200));
}
