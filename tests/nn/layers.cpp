// Layers: names, initial values and options as in PyTorch, and their results.
#include <declivity/nn/nn.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"
#include "tests/support/launches.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// "name shape" of each entry of a state dict.
std::string entries(const nn::Module& module) {
    std::string out;
    for (const auto& [name, tensor] : module.state_dict()) out += name + " " + tensor.shape().str() + "; ";
    return out;
}

/// Largest |x|, and the root mean square.
std::pair<double, double> max_and_deviation(const Tensor& tensor) {
    double largest = 0, squares = 0;
    const auto all = values(tensor);
    for (const double item : all) largest = std::max(largest, std::abs(item)), squares += item * item;
    return {largest, std::sqrt(squares / static_cast<double>(all.size()))};
}

void check_uniform(const Tensor& tensor, double bound) {
    const auto [largest, deviation] = max_and_deviation(tensor);
    CHECK(largest <= bound);
    CHECK(largest > 0.9 * bound);
    CHECK(deviation == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.1));
}

}  // namespace

TEST_CASE("layers: names of parameters and buffers are PyTorch's") {
    CHECK(entries(nn::Linear(3, 2)) == "weight [2, 3]; bias [2]; ");
    CHECK(entries(nn::Linear(3, 2, {.bias = false})) == "weight [2, 3]; ");
    CHECK(entries(nn::Conv1d(4, 6, 3, {.groups = 2})) == "weight [6, 2, 3]; bias [6]; ");
    CHECK(entries(nn::Conv2d(4, 6, {3, 2}, {.groups = 2})) == "weight [6, 2, 3, 2]; bias [6]; ");
    CHECK(entries(nn::ConvTranspose2d(4, 6, {3, 2}, {.groups = 2})) == "weight [4, 3, 3, 2]; bias [6]; ");
    CHECK(entries(nn::ConvTranspose2d(4, 6, 3, {.bias = false})) == "weight [4, 6, 3, 3]; ");
    CHECK(entries(nn::BatchNorm2d(3)) ==
          "weight [3]; bias [3]; running_mean [3]; running_var [3]; num_batches_tracked []; ");
    CHECK(entries(nn::BatchNorm1d(3, {.affine = false})) ==
          "running_mean [3]; running_var [3]; num_batches_tracked []; ");
    CHECK(entries(nn::BatchNorm1d(3, {.track_running_stats = false})) == "weight [3]; bias [3]; ");
    CHECK(entries(nn::LayerNorm({3, 2})) == "weight [3, 2]; bias [3, 2]; ");
    CHECK(entries(nn::LayerNorm({3})) == "weight [3]; bias [3]; ");
    CHECK(entries(nn::LayerNorm({3}, {.bias = false})) == "weight [3]; ");
    CHECK(entries(nn::RMSNorm({3})) == "weight [3]; ");
    CHECK(entries(nn::RMSNorm({3, 2})) == "weight [3, 2]; ");
    CHECK(entries(nn::LayerNorm(Shape{3})) == "weight [3]; bias [3]; ");
    CHECK(entries(nn::LayerNorm(3, {.bias = false})) == "weight [3]; ");
    CHECK(entries(nn::LayerNorm(3, {.elementwise_affine = false})) == "");
    CHECK(entries(nn::RMSNorm(3)) == "weight [3]; ");
    CHECK(entries(nn::RMSNorm(3, {.elementwise_affine = false})) == "");
    CHECK(entries(nn::Embedding(5, 2)) == "weight [5, 2]; ");
    CHECK(entries(nn::LSTMCell(3, 2)) == "weight_ih [8, 3]; weight_hh [8, 2]; bias_ih [8]; bias_hh [8]; ");
    CHECK(entries(nn::LSTMCell(3, 2, {.bias = false})) == "weight_ih [8, 3]; weight_hh [8, 2]; ");
    CHECK(nn::BatchNorm(2).named_buffers()[2].tensor.dtype() == DType::i64);
    nn::BatchNorm norm_bf16(2, {.dtype = DType::bf16});
    norm_bf16.to(DType::f32);
    CHECK(norm_bf16.named_buffers()[1].tensor.dtype() == DType::f32);
    CHECK(norm_bf16.named_buffers()[2].tensor.dtype() == DType::i64);
}

TEST_CASE("layers: initial values have PyTorch's distributions") {
    manual_seed(3);
    for (const Tensor& tensor : nn::Conv1d(30, 40, 5, {.groups = 2}).parameters())
        check_uniform(tensor, 1 / std::sqrt(75.0));
    for (const Tensor& item : nn::ConvTranspose2d(40, 60, {5, 3}, {.groups = 2}).parameters())
        check_uniform(item, 1 / std::sqrt(450.0));
    for (const Tensor& parameter : nn::LSTMCell(20, 30).parameters()) check_uniform(parameter, 1 / std::sqrt(30.0));
    const Tensor table = nn::Embedding(50, 40, {.padding_idx = -2}).weight();
    CHECK(max_and_deviation(table).second == doctest::Approx(std::sqrt(49.0 / 50)).epsilon(0.05));
    CHECK(max_and_deviation(slice(table, 0, 48, 49)).first == 0);
    CHECK(max_and_deviation(slice(table, 0, 49, 50)).first > 0);
    CHECK(values(nn::LayerNorm(2).weight()) == std::vector<double>{1, 1});
    CHECK(values(nn::LayerNorm(2).bias()) == std::vector<double>{0, 0});
    CHECK(values(nn::RMSNorm(2).weight()) == std::vector<double>{1, 1});
}

TEST_CASE("layers: match the functions with all options, and are capture-safe") {
    const Tensor line = random_tensor({2, 4, 9}, 1), image = random_tensor({2, 4, 5, 6}, 2),
                 rows = random_tensor({3, 5, 4}, 3);
    const auto same = [](const Tensor& a, const Tensor& b) { CHECK(values(a) == values(b)); };
    {
        nn::Conv1d layer(4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
        same(layer(line),
             conv1d(line, layer.weight(), layer.bias(), {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}));
        CHECK(layer.summary({2, 4, 9}).find(" 288\n") != std::string::npos);  // 2 x 6 x 4 results of 2 x 3 numbers
        CHECK(layer.not_capture_safe().empty());
    }
    {
        nn::ConvTranspose2d layer(
            4, 6, {3, 2}, {.stride = 2, .padding = 1, .output_padding = {0, 1}, .groups = 2, .dilation = {1, 2}});
        same(layer(image),
             conv_transpose2d(image, layer.weight(), layer.bias(),
                              {.stride = 2, .padding = 1, .output_padding = {0, 1}, .dilation = {1, 2}, .groups = 2}));
        CHECK(layer.summary({2, 4, 5, 6}).find(" 4320\n") != std::string::npos);  // 240 numbers, each by 3 x 3 x 2
        CHECK(layer.not_capture_safe().empty());
    }
    {
        nn::Conv2d layer(4, 6, {3, 2}, {.stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}, .groups = 2});
        same(layer(image), conv2d(image, layer.weight(), layer.bias(),
                                  {.stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}, .groups = 2}));
    }
    {
        nn::LayerNorm layer({5, 4}, {.eps = 0.1});
        const NoGrad no_grad;
        layer.weight().copy_(random_tensor({5, 4}, 4)), layer.bias().copy_(random_tensor({5, 4}, 5));
        same(layer(rows), layer_norm(rows, {5, 4}, layer.weight(), layer.bias(), 0.1));
        CHECK(layer.not_capture_safe().empty());
    }
    {
        nn::RMSNorm layer(4), fixed(4, {.eps = 0.5});
        same(layer(rows), rms_norm(rows, 4, layer.weight(), 0x1p-23));
        same(fixed(rows), rms_norm(rows, 4, fixed.weight(), 0.5));
        if (widest() == DType::f64) {
            nn::RMSNorm norm_f64(4, {.dtype = DType::f64});
            same(norm_f64(rows.to(DType::f64)), rms_norm(rows.to(DType::f64), 4, norm_f64.weight(), 0x1p-52));
        }
        CHECK(layer.not_capture_safe().empty());
    }
    {
        const Tensor x = random_tensor({1, 1, 6, 7}, 6);
        same(nn::MaxPool2d(3, {.stride = 2, .padding = 1})(x),
             max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}));
        same(nn::AvgPool2d({3, 2}, {.padding = {1, 0}, .count_include_pad = false})(x),
             avg_pool2d(x, {.kernel_size = {3, 2}, .padding = {1, 0}, .count_include_pad = false}));
    }
}

TEST_CASE("Embedding: rows by index; the row of padding_idx has no gradient") {
    const Tensor indices = Tensor::from<std::int64_t>({4, 1, 2, 1, 4, 0}, {2, 3});
    for (const bool padded : {false, true}) {
        nn::Embedding layer(5, 3, {.padding_idx = padded ? std::optional<std::int64_t>(1) : std::nullopt});
        const auto table = values(layer.weight());
        const Tensor out = layer(indices);
        CHECK(out.shape() == Shape{2, 3, 3});
        CHECK(values(out) == values(embedding(indices, layer.weight())));
        const Tensor g = random_tensor({2, 3, 3}, 7);
        sum(out * g).backward();
        std::vector<double> expected(15, 0);
        const auto out_gradient = values(g);
        const std::vector<std::size_t> at{4, 1, 2, 1, 4, 0};
        for (std::size_t i = 0; i < 6; ++i)
            for (std::size_t d = 0; d < 3; ++d)
                if (!padded || at[i] != 1) expected[at[i] * 3 + d] += out_gradient[i * 3 + d];
        CHECK(difference(layer.weight().grad(), expected, {1e-6, 1e-6}) == "");
        CHECK(values(layer.weight()) == table);
        CHECK(layer.not_capture_safe().empty());
    }
    CHECK(nn::Embedding(5, 3).summary({2, 3}, DType::i64).find("[2, 3, 3]") != std::string::npos);
}

TEST_CASE("LSTMCell: the default state is zeros; a sequence, eager and captured") {
    manual_seed(4);
    nn::LSTMCell cell(3, 4);
    const auto parameters = cell.parameters();
    const Tensor x = random_tensor({2, 3}, 8), zero = zeros({2, 4});
    const auto [hidden, memory] = cell(x);
    const LstmState expected = lstm_cell(x, {zero, zero}, parameters[0], parameters[1], parameters[2], parameters[3]);
    CHECK(values(hidden) == values(expected.hidden));
    CHECK(values(memory) == values(expected.cell));
    CHECK(values(cell(x, {hidden, {}}).hidden) ==
          values(lstm_cell(x, {hidden, zero}, parameters[0], parameters[1], parameters[2], parameters[3]).hidden));
    const auto run = [&](const std::vector<Tensor>& in) {
        LstmState state;
        for (const Tensor& input : in) state = cell(input, state);
        return std::vector{state.hidden, state.cell};
    };
    const NoGrad no_grad;
    auto captured = capture(run);
    for (std::uint64_t i = 0; i < 3; ++i) {
        const std::vector<Tensor> in{random_tensor({2, 3}, 20 + i), random_tensor({2, 3}, 30 + i)};
        const auto plain = run(in), again = captured(in);
        CHECK(values(again[0]) == values(plain[0]));
        CHECK(values(again[1]) == values(plain[1]));
    }
    CHECK(captured.replayed() == 2);
    CHECK(nn::summary(cell, x).find(" 224\n") != std::string::npos);  // 2 x (16 x 3 + 16 x 4)
    CHECK(cell.not_capture_safe().empty());
}

TEST_CASE("layers: errors name the layer") {
    CHECK_THROWS_WITH_AS(nn::Linear(0, 3), "Linear: expected in_features and out_features of at least 1, got 0 and 3",
                         ValueError);
    CHECK_THROWS_WITH_AS(nn::Conv1d(4, 6, 3, {.groups = 4}),
                         "Conv1d: expected groups that divide the channels and a kernel size of at least 1, got 4 to 6 "
                         "channels, 4 groups, kernel size 3",
                         ValueError);
    CHECK_THROWS_WITH_AS(nn::Conv2d(4, 6, {0, 3}), doctest::Contains("kernel size 0 x 3"), ValueError);
    CHECK_THROWS_WITH_AS(nn::ConvTranspose2d(4, 6, 3, {.groups = 3}),
                         doctest::Contains("ConvTranspose2d: expected groups"), ValueError);
    CHECK_THROWS_WITH_AS(nn::ConvTranspose2d(4, 6, 3, {.output_padding = 1})(ones({1, 4, 3, 3})),
                         doctest::Contains("conv_transpose2d: expected an output padding"), ValueError);
    CHECK_THROWS_WITH_AS(nn::Dropout(1.5), "Dropout: expected p in [0, 1], got 1.5", ValueError);
    CHECK_THROWS_WITH_AS(nn::MaxPool2d(3, {.padding = 2}), doctest::Contains("MaxPool2d: expected a kernel size"),
                         ValueError);
    CHECK_THROWS_WITH_AS(nn::LayerNorm({3, 0}),
                         "LayerNorm: expected sizes of at least 1 as normalized_shape, got [3, 0]", ValueError);
    CHECK_THROWS_WITH_AS(nn::RMSNorm(Shape{}), "RMSNorm: expected sizes of at least 1 as normalized_shape, got []",
                         ValueError);
    CHECK_THROWS_WITH_AS(nn::LayerNorm(3, {.eps = -1}), "LayerNorm: expected eps of at least 0, got -1", ValueError);
    CHECK_THROWS_WITH_AS(nn::Embedding(5, 0),
                         "Embedding: expected num_embeddings and embedding_dim of at least 1, got 5 and 0", ValueError);
    CHECK_THROWS_WITH_AS(nn::Embedding(5, 2, {.padding_idx = 5}),
                         "Embedding: expected padding_idx within 5 rows, got 5", ValueError);
    CHECK_THROWS_WITH_AS(nn::LSTMCell(3, 0), "LSTMCell: expected input_size and hidden_size of at least 1, got 3 and 0",
                         ValueError);
    nn::LSTMCell cell(3, 4);
    CHECK_THROWS_WITH_AS(cell(ones({4})), doctest::Contains("LSTMCell: expected x of shape (N, 3) or (3), got [4]"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(cell(ones({2, 5})),
                         doctest::Contains("LSTMCell: expected x of shape (N, 3) or (3), got [2, 5]"), ShapeError);
    CHECK_THROWS_WITH_AS(nn::LSTMCell(3, 4, {.dtype = DType::i32}),
                         doctest::Contains("expected the parameter \"weight_ih\" of f32, f64, f16 or bf16, got i32"),
                         TypeError);
    CHECK_THROWS_WITH_AS(nn::BatchNorm(0), "BatchNorm: expected num_features of at least 1, got 0", ValueError);
    CHECK_THROWS_WITH_AS(batch_norm(ones({2, 3}), {}, {}, zeros({3}), ones({3}), {.momentum = std::nullopt}),
                         doctest::Contains("expected num_batches_tracked where there is no momentum"), ValueError);
    CHECK_THROWS_WITH_AS(batch_norm(ones({2, 3}), {}, {}, zeros({3}), ones({3}), {}, zeros({})),
                         doctest::Contains("expected num_batches_tracked of one i64"), TypeError);
}

namespace {

/// Mean and variance (with Bessel's correction) of each of 3 channels of x (N, 3, L), in double.
std::vector<std::array<double, 2>> statistics(const Tensor& x) {
    const auto all = values(x);
    const std::int64_t n = x.size(0), l = x.numel() / n / 3;
    std::vector<std::array<double, 2>> out;
    for (std::int64_t c = 0; c < 3; ++c) {
        double mean = 0, square = 0;
        const auto at = [&](std::int64_t i) { return all[static_cast<std::size_t>((i / l * 3 + c) * l + i % l)]; };
        for (std::int64_t i = 0; i < n * l; ++i) mean += at(i) / static_cast<double>(n * l);
        for (std::int64_t i = 0; i < n * l; ++i) square += (at(i) - mean) * (at(i) - mean);
        out.push_back({mean, square / static_cast<double>(n * l - 1)});
    }
    return out;
}

std::int64_t counted(const nn::Module& module) { return module.named_buffers().back().tensor.item<std::int64_t>(); }

}  // namespace

TEST_CASE("BatchNorm: counts batches in training with every kernel variant, without an extra launch") {
    // Short planes, whole channels, channels in several chunks.
    for (const Shape& shape : {Shape{6, 3}, Shape{4, 3, 300}, Shape{2, 3, 3}, Shape{64, 3, 9000}}) {
        CAPTURE(shape.str());
        nn::BatchNorm layer(3), plain(3);
        CHECK(counted(layer) == 0);
        const Tensor x = random_tensor(shape, 1);
        (void)layer(x);  // although the result is not used
        (void)values(layer(x));
        CHECK(counted(layer) == 2);
        layer.eval();
        (void)values(layer(x));
        CHECK(counted(layer) == 2);
        const auto buffers = plain.named_buffers();
        const auto with_counter = launches([&] { materialize(plain(x)); });
        const auto without_counter = launches([&] {
            materialize(
                batch_norm(x, plain.parameters()[0], plain.parameters()[1], buffers[0].tensor, buffers[1].tensor));
        });
        CHECK(with_counter == without_counter);
        // Within a checkpoint the recomputation does not count.
        nn::BatchNorm inner(3);
        Tensor in = x.detach().clone().set_requires_grad();
        sum(square(checkpoint([&](const Tensor& t) { return inner(t); }, in))).backward();
        CHECK(counted(inner) == 1);
    }
    nn::BatchNorm norm_f16(3, {.dtype = DType::f16});
    (void)norm_f16(random_tensor({4, 3}, 2).to(DType::f16));
    CHECK(counted(norm_f16) == 1);
    nn::BatchNorm untracked(3, {.track_running_stats = false});
    const Tensor x = random_tensor({4, 3}, 3);
    const auto trained = values(untracked(x));
    untracked.eval();
    CHECK(difference(untracked(x), trained, {1e-6, 1e-6}) == "");
}

TEST_CASE("BatchNorm: without momentum the running statistics are the average of all batches") {
    for (const Shape& shape : {Shape{6, 3}, Shape{4, 3, 300}, Shape{64, 3, 9000}}) {
        CAPTURE(shape.str());
        nn::BatchNorm layer(3, {.momentum = std::nullopt});
        std::vector<std::array<double, 2>> mean(3, {0, 0});
        for (std::uint64_t batch = 1; batch <= 4; ++batch) {
            const Tensor x = random_tensor(shape, batch) * static_cast<double>(batch) + 0.5;
            (void)layer(x);
            const auto batch_statistics = statistics(x);
            for (std::size_t c = 0; c < 3; ++c)
                for (std::size_t i = 0; i < 2; ++i)
                    mean[c][i] += (batch_statistics[c][i] - mean[c][i]) / static_cast<double>(batch);
            CHECK(counted(layer) == static_cast<std::int64_t>(batch));
            std::vector<double> means, variances;
            for (const auto& [average, variance] : mean) means.push_back(average), variances.push_back(variance);
            CHECK(difference(layer.named_buffers()[0].tensor, means, {1e-4, 1e-4}) == "");
            CHECK(difference(layer.named_buffers()[1].tensor, variances, {1e-4, 1e-4}) == "");
        }
    }
}

TEST_CASE("BatchNorm: captured steps count and average like eager ones, bit for bit") {
    const auto trained = [](bool captured_steps, std::optional<double> momentum) {
        manual_seed(6);
        nn::Sequential model(nn::Conv2d(2, 3, 3), nn::BatchNorm2d(3, {.momentum = momentum}), nn::ReLU(), nn::Flatten(),
                             nn::Linear(27, 2));
        optim::SGD optimizer(model.parameters(), {.lr = 0.1});
        const auto step = [&](const Tensor& x) {
            optimizer.zero_grad();
            const Tensor loss = mean(square(model(x)));
            loss.backward();
            optimizer.step();
            return loss.detach();
        };
        auto captured = capture(step);
        std::vector<std::vector<double>> out;
        for (std::uint64_t i = 0; i < 5; ++i) {
            const Tensor x = random_tensor({4, 2, 5, 5}, 60 + i);
            out.push_back(values(captured_steps ? captured(x) : step(x)));
        }
        if (captured_steps) CHECK(captured.replayed() == 4);
        CHECK(counted(model) == 5);
        for (const auto& [name, tensor] : model.state_dict()) out.push_back(values(tensor));
        return out;
    };
    for (const std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()})
        CHECK(trained(true, momentum) == trained(false, momentum));
}
