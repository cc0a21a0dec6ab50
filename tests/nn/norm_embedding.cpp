// Normalisation layers, EmbeddingBag, Bilinear and CTCLoss: names and options as in PyTorch, and their results.
#include <declivity/nn/nn.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// "name shape" of each entry of a state dict.
std::string entries(const nn::Module& module) {
    std::string out;
    for (const auto& [name, tensor] : module.state_dict()) out += name + " " + tensor.shape().str() + "; ";
    return out;
}

void same(const Tensor& a, const Tensor& b) {
    CHECK(a.shape() == b.shape());
    CHECK(difference(a, values(b), {1e-5, 1e-5}) == "");
}

/// Values other than the initial ones of a norm.
void randomize_statistics(nn::BatchNorm& norm, std::uint64_t seed) {
    const NoGrad no_grad;
    const Shape shape = norm.running_mean().shape();
    if (norm.weight().defined()) {
        norm.weight().copy_(random_tensor(shape, seed, DType::f32, 0.5, 2));
        norm.bias().copy_(random_tensor(shape, seed + 1));
    }
    norm.running_mean().copy_(random_tensor(shape, seed + 2));
    norm.running_var().copy_(random_tensor(shape, seed + 3, DType::f32, 0.5, 2));
}

}  // namespace

TEST_CASE("GroupNorm, InstanceNorm, LocalResponseNorm: names, values, running statistics") {
    CHECK(entries(nn::GroupNorm(2, 6)) == "weight [6]; bias [6]; ");
    CHECK(entries(nn::GroupNorm(2, 6, {.affine = false})) == "");
    CHECK(entries(nn::InstanceNorm2d(3)) == "");
    CHECK(entries(nn::InstanceNorm1d(3, {.affine = true, .track_running_stats = true})) ==
          "weight [3]; bias [3]; running_mean [3]; running_var [3]; num_batches_tracked []; ");
    const Tensor image = random_tensor({2, 6, 5, 3}, 1), line = random_tensor({2, 6, 5}, 2),
                 volume = random_tensor({2, 6, 3, 2, 2}, 3);
    nn::GroupNorm group(3, 6, {.eps = 0.1});
    same(group(image), group_norm(image, 3, group.weight(), group.bias(), 0.1));
    CHECK(group.not_capture_safe().empty());
    same(nn::InstanceNorm1d(6)(line), instance_norm(line));
    same(nn::InstanceNorm2d(6)(image), instance_norm(image));
    same(nn::InstanceNorm3d(6)(volume), instance_norm(volume));
    const Tensor unbatched = select(image, 0, 1), unbatched_result = nn::InstanceNorm2d(6)(unbatched);
    CHECK(unbatched_result.shape() == unbatched.shape());
    same(unbatched_result, select(instance_norm(slice(image, 0, 1, 2)), 0, 0));
    nn::LocalResponseNorm local(3, 0.5, 0.5, 2);
    same(local(image), local_response_norm(image, 3, 0.5, 0.5, 2));
    CHECK(local.not_capture_safe().empty());

    nn::InstanceNorm2d tracked(6, {.momentum = 0.5, .affine = true, .track_running_stats = true});
    Tensor mean = zeros({6}), var = ones({6});
    same(tracked(image), instance_norm(image, {}, {}, mean, var, {.momentum = 0.5}));
    const StateDict state = tracked.state_dict();
    for (const auto& [name, tensor] : state) {
        if (name == "running_mean") same(tensor, mean);
        if (name == "running_var") same(tensor, var);
    }
    tracked.eval();
    same(tracked(image), instance_norm(image, {}, {}, mean, var, {.use_input_stats = false}));
    nn::InstanceNorm2d plain(6);
    plain.eval();
    same(plain(image), instance_norm(image));

    CHECK_THROWS_WITH_AS(nn::GroupNorm(4, 6), "GroupNorm: expected num_groups that divide num_channels, got 4 and 6",
                         ValueError);
    CHECK_THROWS_WITH_AS(nn::InstanceNorm(0), "InstanceNorm: expected num_features of at least 1, got 0", ValueError);
    CHECK_THROWS_WITH_AS(
        nn::InstanceNorm1d(6)(image),
        "InstanceNorm1d: expected x of shape (N, C, L) or (C, L), got [2, 6, 5, 3] (in InstanceNorm1d)", ShapeError);
    CHECK_THROWS_WITH_AS(nn::LocalResponseNorm(0), "LocalResponseNorm: expected a size of at least 1, got 0",
                         ValueError);
}

TEST_CASE("InstanceNorm: a captured step updates the running statistics") {
    nn::InstanceNorm1d a(3, {.track_running_stats = true}), b(3, {.track_running_stats = true});
    const NoGrad no_grad;
    auto captured = capture([&](const std::vector<Tensor>& in) { return std::vector{b(in[0])}; });
    for (std::uint64_t i = 0; i < 4; ++i) {
        const Tensor x = random_tensor({2, 3, 5}, i, DType::f32, 1, 3);
        same(captured({x})[0], a(x));
        for (std::size_t k = 0; k < 3; ++k) same(a.named_buffers()[k].tensor, b.named_buffers()[k].tensor);
    }
    CHECK(captured.replayed() > 0);
}

TEST_CASE("BatchNorm: 2, 3 and 5 axes are normalised per channel") {
    for (const Shape& shape : {Shape{7, 3}, Shape{4, 3, 5}, Shape{2, 3, 4, 2, 3}}) {
        const Tensor x = random_tensor(shape, 1, DType::f32, 1, 3);
        nn::BatchNorm1d line(3);
        nn::BatchNorm3d volume(3);
        const Tensor y = shape.rank() == 5 ? volume(x) : line(x);
        Dims axes{0};
        for (int axis = 2; axis < shape.rank(); ++axis) axes.push_back(axis);
        CHECK(difference(mean(y, axes), {0, 0, 0}, {1e-5, 0}) == "");
        CHECK(difference(mean(square(y), axes), {1, 1, 1}, {1e-3, 0}) == "");
        const Tensor running = shape.rank() == 5 ? volume.running_mean() : line.running_mean();
        CHECK(difference(running, values(mean(x, axes) * 0.1), {1e-6, 1e-6}) == "");
    }
    CHECK_THROWS_AS(nn::BatchNorm3d(3)(zeros({2, 3, 4})), ShapeError);
}

TEST_CASE("Embedding and EmbeddingBag: options, and existing tables") {
    const Tensor indices = Tensor::from<std::int64_t>({4, 1, 2, 1, 4, 0}, {2, 3}), table = random_tensor({5, 3}, 1);
    nn::Embedding frozen = nn::Embedding::from_pretrained(table),
                  trained = nn::Embedding::from_pretrained(table, false);
    same(frozen.weight(), table);
    CHECK_FALSE(frozen(indices).requires_grad());
    CHECK(trained(indices).requires_grad());
    nn::Embedding short_rows = nn::Embedding::from_pretrained(table * 9, true, {.max_norm = 1});
    CHECK(values(max(norm(short_rows(indices), 2, {-1})))[0] <= 1.00001);
    same(table, random_tensor({5, 3}, 1));

    CHECK(entries(nn::EmbeddingBag(5, 2)) == "weight [5, 2]; ");
    nn::EmbeddingBag sums(5, 3, {.mode = BagMode::sum, .padding_idx = -1});
    for (const double value : values(select(sums.weight(), 0, 4))) CHECK(value == 0);
    same(sums(indices), embedding_bag(indices, sums.weight(), {}, {}, {.mode = BagMode::sum, .padding_idx = 4}));
    const Tensor row = reshape(indices, {6}), offsets = Tensor::from<std::int64_t>({0, 4, 6}, {3}),
                 weights = random_tensor({6}, 2);
    same(sums(row, offsets, weights),
         embedding_bag(row, sums.weight(), offsets, weights, {.mode = BagMode::sum, .padding_idx = 4}));
    nn::EmbeddingBag last = nn::EmbeddingBag::from_pretrained(table, true, {.include_last_offset = true});
    CHECK(last(row, offsets).shape() == Shape{2, 3});
    CHECK_FALSE(last(row, offsets).requires_grad());
    CHECK(last.not_capture_safe().empty());
    CHECK_THROWS_WITH_AS(nn::EmbeddingBag(0, 3),
                         "EmbeddingBag: expected num_embeddings and embedding_dim of at least 1, got 0 and 3",
                         ValueError);
    CHECK_THROWS_AS(nn::EmbeddingBag(5, 3, {.padding_idx = 5}), ValueError);
    CHECK_THROWS_AS(nn::Embedding::from_pretrained(zeros({3})), ShapeError);
    CHECK_THROWS_AS(nn::Embedding::from_pretrained(Tensor()), ValueError);
}

TEST_CASE("Bilinear, CTCLoss and others call their functions") {
    manual_seed(3);
    nn::Bilinear layer(4, 3, 5);
    CHECK(entries(layer) == "weight [5, 4, 3]; bias [5]; ");
    CHECK(entries(nn::Bilinear(4, 3, 5, {.bias = false})) == "weight [5, 4, 3]; ");
    for (const Tensor& parameter : nn::Bilinear(16, 9, 8).parameters())
        for (const double value : values(parameter)) CHECK(std::abs(value) <= 0.25);
    const Tensor a = random_tensor({2, 4}, 1), b = random_tensor({2, 3}, 2);
    same(layer(a, b), bilinear(a, b, layer.weight(), layer.bias()));
    CHECK(layer.multiply_adds({a, b}, {layer(a, b)}) == 2 * (5 * 4 * 3 + 5 * 3));
    CHECK_THROWS_AS(nn::Bilinear(4, 0, 5), ValueError);

    const Tensor x = log_softmax(random_tensor({6, 2, 4}, 3), 2),
                 targets = Tensor::from<std::int64_t>({1, 2, 0, 1}, {2, 2});
    const nn::CTCLoss loss{{.blank = 3, .reduction = Reduction::sum}};
    const std::vector<std::int64_t> inputs{6, 5}, lengths{2, 1};
    same(loss(x, targets, inputs, lengths),
         ctc_loss(x, targets, inputs, lengths, {.blank = 3, .reduction = Reduction::sum}));
    same(loss(x, targets, Tensor::from(inputs, {2}), Tensor::from(lengths, {2})), loss(x, targets, inputs, lengths));
    const nn::TripletMarginWithDistanceLoss triplet{{.margin = 2}};
    same(triplet(a, a * 2, a * 3), triplet_margin_with_distance_loss(a, a * 2, a * 3, {.margin = 2}));
    same(nn::CosineSimilarity()(a, a * b.size(1)), cosine_similarity(a, a * b.size(1)));
    same(nn::PairwiseDistance{.p = 1}(a, a * 2), pairwise_distance(a, a * 2, 1));
    same(nn::Softmin()(a), softmin(a));
    same(nn::ChannelShuffle(2)(a), channel_shuffle(a, 2));
}

TEST_CASE("SpectralNorm: the largest singular value is 1") {
    manual_seed(7);
    // The matrix has singular values 3 and 1 between rotations.
    const double c = std::cos(0.3), s = std::sin(0.3), d = std::cos(1.1), t = std::sin(1.1);
    const std::vector<double> matrix{3 * c * d + s * t, 3 * c * t - s * d, 3 * s * d - c * t, 3 * s * t + c * d};
    nn::Linear layer(2, 2, {.bias = false});
    {
        const NoGrad no_grad;
        layer.weight().copy_(tensor(matrix, {2, 2}));
    }
    nn::spectral_norm(layer);
    CHECK(entries(layer) ==
          "parametrizations.weight.original [2, 2]; parametrizations.weight.0._u [2]; "
          "parametrizations.weight.0._v [2]; ");
    std::vector<double> expected = matrix;
    for (double& value : expected) value /= 3;
    CHECK(difference(layer.weight(), expected, {1e-5, 1e-5}) == "");
    // In evaluation mode the buffers are unchanged; in training they follow the weight.
    const auto buffers = [&] { return values(layer.named_buffers()[0].tensor); };
    layer.eval();
    const auto before = buffers();
    {
        const NoGrad no_grad;
        layer.parameters()[0].copy_(tensor({matrix[2], matrix[3], matrix[0], matrix[1]}, {2, 2}));
    }
    (void)layer.weight();
    CHECK(buffers() == before);
    layer.train();
    for (int i = 0; i < 20; ++i) (void)layer.weight();
    CHECK(buffers() != before);
    CHECK(difference(layer.weight(), {expected[2], expected[3], expected[0], expected[1]}, {1e-5, 1e-5}) == "");

    // Axis 1 of transposed convolutions; vectors; the gradient includes that of sigma.
    nn::ConvTranspose2d transposed_conv(3, 4, 2);
    nn::spectral_norm(transposed_conv);
    CHECK(transposed_conv.named_buffers()[0].tensor.shape() == Shape{4});
    nn::LayerNorm rows(3);
    nn::spectral_norm(rows);
    CHECK(difference(rows.weight(), std::vector<double>(3, 1 / std::sqrt(3.0)), {1e-6, 1e-6}) == "");
    // For W with singular values a, b: d(sum of squares of W / a) has no component along W itself.
    const Tensor weight = layer.weight();
    const Tensor gradient = grad({sum(weight * weight)}, {layer.parameters()[0]})[0];
    CHECK(values(sum(gradient * layer.parameters()[0]))[0] == doctest::Approx(0).epsilon(1e-4));
    CHECK_THROWS_AS(nn::spectral_norm(rows, "bias", {.n_power_iterations = 0}), ValueError);
}

TEST_CASE("SpectralNorm: several uses in a step, captured or not") {
    const auto make = [] {
        manual_seed(5);
        nn::Linear layer(4, 4);
        nn::spectral_norm(layer);
        return layer;
    };
    nn::Linear a = make(), b = make();
    optim::SGD left(a.parameters(), {.lr = 0.1}), right(b.parameters(), {.lr = 0.1});
    const auto step = [](nn::Linear& layer, optim::SGD& optimizer, const Tensor& x) {
        optimizer.zero_grad();
        const Tensor loss = mean(square(layer(relu(layer(x))) - 1.0));
        loss.backward();
        optimizer.step();
        return std::vector{loss.detach()};
    };
    auto captured = capture([&](const std::vector<Tensor>& in) { return step(b, right, in[0]); });
    for (std::uint64_t i = 0; i < 5; ++i) {
        const Tensor x = random_tensor({3, 4}, 10 + i);
        const Tensor plain = step(a, left, x)[0], again = captured({x})[0];
        CHECK(difference(again, values(plain), {1e-6, 1e-6}) == "");
    }
    CHECK(captured.replayed() > 0);
    for (std::size_t i = 0; i < 2; ++i)
        CHECK(difference(a.named_buffers()[i].tensor, values(b.named_buffers()[i].tensor), {1e-6, 1e-6}) == "");
}

TEST_CASE("fuse_conv_bn, fuse_linear_bn: layers with the norm folded into their weights") {
    manual_seed(9);
    const Tolerance allowed{2e-5, 2e-5};
    for (const bool bias : {false, true}) {
        nn::Sequential model(nn::Conv2d(3, 6, 3, {.padding = 1, .groups = 3, .bias = bias}), nn::BatchNorm2d(6),
                             nn::ReLU(), nn::Conv2d(6, 4, {3, 2}, {.stride = 2, .dilation = {1, 2}, .bias = bias}),
                             nn::BatchNorm2d(4, {.eps = 0.1, .affine = false}), nn::Flatten(),
                             nn::Linear(4 * 4 * 3, 5, {.bias = bias}), nn::BatchNorm1d(5));
        const auto conv = [&](std::int64_t i) -> nn::Conv2d& { return dynamic_cast<nn::Conv2d&>(model[i]); };
        const auto norm = [&](std::int64_t i) -> nn::BatchNorm& { return dynamic_cast<nn::BatchNorm&>(model[i]); };
        for (const std::int64_t i : {1, 4, 7}) randomize_statistics(norm(i), static_cast<std::uint64_t>(10 * i));
        model.eval();
        nn::Sequential fused(nn::fuse_conv_bn(conv(0), norm(1)), nn::ReLU(), nn::fuse_conv_bn(conv(3), norm(4)),
                             nn::Flatten(), nn::fuse_linear_bn(dynamic_cast<nn::Linear&>(model[6]), norm(7)));
        const Tensor x = random_tensor({2, 3, 10, 8}, 1);
        CHECK(difference(fused(x), values(model(x)), allowed) == "");
        CHECK_FALSE(nn::fuse_conv_bn(conv(0), norm(1)).training());

        nn::ConvTranspose2d transposed_conv(4, 6, {3, 2},
                                            {.stride = 2, .output_padding = 1, .groups = 2, .bias = bias});
        nn::BatchNorm2d norm_layer(6);
        randomize_statistics(norm_layer, 3);
        norm_layer.eval();
        const Tensor y = random_tensor({2, 4, 5, 3}, 2);
        CHECK(difference(nn::fuse_conv_bn(transposed_conv, norm_layer)(y), values(norm_layer(transposed_conv(y))),
                         allowed) == "");
        nn::Conv1d line(4, 6, 3, {.stride = 2, .padding = 2, .dilation = 2, .groups = 2, .bias = bias});
        nn::BatchNorm1d line_norm(6);
        randomize_statistics(line_norm, 4);
        line_norm.eval();
        const Tensor z = random_tensor({2, 4, 9}, 5);
        CHECK(difference(nn::fuse_conv_bn(line, line_norm)(z), values(line_norm(line(z))), allowed) == "");
        nn::ConvTranspose1d wider(4, 6, 3, {.stride = 3, .output_padding = 2, .groups = 2, .bias = bias});
        CHECK(difference(nn::fuse_conv_bn(wider, line_norm)(z), values(line_norm(wider(z))), allowed) == "");

        nn::BatchNorm3d volume_norm(6);
        randomize_statistics(volume_norm, 6);
        volume_norm.eval();
        nn::Conv3d volume(
            4, 6, {2, 3, 1},
            {.stride = {1, 2, 1}, .padding = 1, .groups = 2, .bias = bias, .padding_mode = PadMode::circular});
        nn::ConvTranspose3d larger(4, 6, {2, 1, 3},
                                   {.stride = {2, 1, 3}, .groups = 2, .bias = bias, .dilation = {1, 1, 2}});
        const Tensor v = random_tensor({2, 4, 3, 5, 4}, 7);
        CHECK(difference(nn::fuse_conv_bn(volume, volume_norm)(v), values(volume_norm(volume(v))), allowed) == "");
        CHECK(difference(nn::fuse_conv_bn(larger, volume_norm)(v), values(volume_norm(larger(v))), allowed) == "");
    }
    nn::Linear linear(3, 4);
    CHECK_THROWS_WITH_AS(nn::fuse_linear_bn(linear, nn::BatchNorm1d(4, {.track_running_stats = false})),
                         "fuse_linear_bn: expected a norm with running statistics, got one without", ValueError);
    CHECK_THROWS_WITH_AS(nn::fuse_linear_bn(linear, nn::BatchNorm1d(3)),
                         "fuse_linear_bn: expected a norm of 4 channels, got one of 3", ShapeError);
}
