// no-oclgrind: it replays kernels that other tests launch there
//
// Captured steps with changing positions and lengths in device memory.
#include <declivity/capture/capture.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

constexpr std::int64_t kRoom = 13, kWidth = 6;

/// One token of attention with a KV cache: writes row `position` of both caches, then attends to the rows up to it.
struct Attention {
    Tensor position = zeros({1}, {.dtype = DType::i32});
    Tensor keys = zeros({kRoom, kWidth}), values = zeros({kRoom, kWidth});
    Tensor positions = reshape(arange(0, kRoom, 1, {.dtype = DType::i32}), {kRoom, 1});
    Tensor table = random_tensor({kRoom, kWidth}, 77);  // position embedding

    Tensor operator()(const Tensor& token) {
        const NoGrad no_grad;
        const Tensor x = token + embedding(position, table);
        keys.copy_(where(positions == position, x, keys));
        values.copy_(where(positions == position, tanh(x), values));
        const Tensor scores = matmul(keys, transpose(x, 0, 1)) * (1 / std::sqrt(static_cast<double>(kWidth)));
        const Tensor weights = softmax(transpose(where(positions <= position, scores, -1e9), 0, 1));
        position.add_(1);
        return matmul(weights, values);
    }
};

Tensor token(std::int64_t sequence, std::int64_t at) {
    return random_tensor({1, kWidth}, static_cast<std::uint64_t>(100 * sequence + at));
}

/// The same in C++, for all tokens of a sequence.
std::vector<std::vector<double>> expected_result(std::int64_t sequence, std::int64_t tokens,
                                                 const std::vector<float>& table) {
    std::vector<std::vector<double>> x, out;
    for (std::int64_t at = 0; at < tokens; ++at) {
        const std::vector<float> elements = token(sequence, at).to_vector<float>();
        x.emplace_back(elements.begin(), elements.end());
        for (std::size_t i = 0; i < x.back().size(); ++i)
            x.back()[i] += static_cast<double>(table[static_cast<std::size_t>(at * kWidth) + i]);
        std::vector<double> result(kWidth), weights;
        double sum = 0;
        for (const auto& key : x) {
            double score = 0;
            for (std::size_t i = 0; i < key.size(); ++i) score += key[i] * x.back()[i];
            weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kWidth))));
            sum += weights.back();
        }
        for (std::size_t k = 0; k < x.size(); ++k)
            for (std::size_t i = 0; i < result.size(); ++i) result[i] += weights[k] / sum * std::tanh(x[k][i]);
        out.push_back(result);
    }
    return out;
}

}  // namespace

TEST_CASE("capture positions: a position in device memory grows from replay to replay, and restarts") {
    Attention plain, captured;
    auto step = capture([&](const Tensor& x) { return captured(x); });
    const std::vector<float> table = plain.table.to_vector<float>();
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
        const std::int64_t tokens = 10 + sequence * 3;  // the second sequence overwrites the cache of the first
        const auto expected = expected_result(sequence, tokens, table);
        for (std::int64_t at = 0; at < tokens; ++at) {
            CAPTURE(at);
            const Tensor x = token(sequence, at);
            const std::vector<float> got = step(x).to_vector<float>();
            CHECK(got == plain(x).to_vector<float>());
            for (std::size_t i = 0; i < got.size(); ++i)
                CHECK(std::abs(static_cast<double>(got[i]) - expected[static_cast<std::size_t>(at)][i]) < 1e-4);
        }
        CHECK(captured.position.to_vector<std::int32_t>()[0] == tokens);
        CHECK(captured.keys.to_vector<float>() == plain.keys.to_vector<float>());
        plain.position.zero_(), captured.position.zero_();
    }
    CHECK(step.replayed() == 22);
}

TEST_CASE("capture positions: each row of a batch may have its own length, as an input") {
    const Tensor positions = reshape(arange(0, 9, 1, {.dtype = DType::i32}), {1, 9});
    auto mean = capture([&](const std::vector<Tensor>& in) {
        const Tensor used = in[0] * (positions < reshape(in[1], {3, 1}));
        return std::vector{sum(used, {1}) / in[1]};
    });
    for (std::int32_t round = 0; round < 10; ++round) {
        const Tensor x = random_tensor({3, 9}, 300 + static_cast<std::uint64_t>(round));
        const std::vector<std::int32_t> lengths{1 + round % 9, 9, 1 + (round * 5) % 9};
        const std::vector<float> elements = x.to_vector<float>(),
                                 got = mean({x, Tensor::from(lengths, {3})})[0].to_vector<float>();
        for (std::size_t row = 0; row < 3; ++row) {
            double expected = 0;
            for (std::int32_t i = 0; i < lengths[row]; ++i)
                expected += static_cast<double>(elements[row * 9 + static_cast<std::size_t>(i)]) / lengths[row];
            CHECK(std::abs(static_cast<double>(got[row]) - expected) < 1e-5);
        }
    }
    CHECK(mean.replayed() == 9);
}
