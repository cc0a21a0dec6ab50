// Names of version 0.1 that were replaced: each still compiles and does the same.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <type_traits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/drawn_digits.hpp>
#include <declivity/data/transforms.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/models/generate.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/ops/attention.hpp>
#include <declivity/ops/batch_norm.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/linalg.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/ops/random_draws.hpp>
#include <declivity/ops/roi_pool.hpp>
#include <declivity/ops/value.hpp>
#include <declivity/ops/weighted_rows.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/recording.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/generator.hpp>
#include <declivity/tensor/record.hpp>
#include <declivity/text/generation.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/figures.hpp>
#include <declivity/train/metrics.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

using namespace declivity;
using declivity::test::values;

namespace {

struct Old : nn::Module {
    Tensor forward(const Tensor& x) { return x * 2; }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Old); }
};

struct OldMetric : train::MeanIoU {
    OldMetric() : MeanIoU(2) {}
    double right() { return computed("right").numbers("counts")[0]; }
};

struct OldDataset : data::Dataset {
    static_assert(std::is_same_v<Places, FieldBuffers>);
};

}  // namespace

TEST_CASE("deprecated names: types") {
    CHECK(std::is_same_v<Family, KernelStyle>);
    CHECK(std::is_same_v<MemoryFigures, MemoryStats>);
    CHECK(std::is_same_v<RecordedPlace, BufferRange>);
    CHECK(std::is_same_v<Recording, CommandList>);
    CHECK(std::is_same_v<ops::Value, ops::LazyArray>);
    CHECK(std::is_same_v<ops::EpilogueTaken, ops::EpilogueFused>);
    CHECK(std::is_same_v<ops::LaunchTogether, ops::BatchedLaunch>);
    CHECK(std::is_same_v<ops::AttentionNumbers, ops::AttentionAttributes>);
    CHECK(std::is_same_v<ops::CachedAttentionNumbers, ops::CachedAttentionAttributes>);
    CHECK(std::is_same_v<ops::BatchNormTrained, ops::BatchNormResults>);
    CHECK(std::is_same_v<Composition, Decomposition>);
    CHECK(std::is_same_v<RecordOptions, CaptureOptions>);
    CHECK(std::is_same_v<Recorded, CapturedStep>);
    CHECK(std::is_same_v<RecordedAction, CapturedAction>);
    CHECK(std::is_same_v<RecordedFunction, CapturedFunction>);
    CHECK(std::is_same_v<train::Figures, train::Metrics>);
    CHECK(std::is_same_v<train::EpochFigures, train::EpochMetrics>);
    CHECK(std::is_same_v<data::DrawnDigits, data::SyntheticDigits>);
    CHECK(std::is_same_v<data::DrawnDigit, data::SyntheticDigit>);
    CHECK(std::is_same_v<PlacesArgument, LayoutArgument>);
    CHECK(std::is_same_v<models::GenerateOptions, text::GenerationOptions>);
    CHECK(Family::cpu_like == KernelStyle::simd);
    CHECK(Family::gpu_like == KernelStyle::simt);
    CHECK(RuleKind::composed == RuleKind::differentiable);
}

TEST_CASE("deprecated names: runtime and operators") {
    const Device device = test::device();
    CHECK(device.family() == device.kernel_style());
    const ops::LuResults factors = ops::lu_factor(reshape(eye(2), {1, 2, 2}).view());
    CHECK(ops::lu_rows(factors.pivots.view(), 2).shape() == factors.permutation.shape());
    const Buffer buffer(device, 64);
    const std::uint64_t version = buffer.version();
    buffer.mark_written();
    CHECK(buffer.version() == version + 1);
    CHECK(is_recording() == is_capturing());
    const std::vector<float> floats = {1, 2, 3};
    const Buffer to(device, 12, BufferUse::transfer);
    upload_ahead(to, 0, std::as_bytes(std::span(floats))).wait();
    std::vector<float> back(3);
    read(to, 0, std::as_writable_bytes(std::span(back)));
    CHECK(back == floats);

    const Tensor x = test::tensor({1, 2, 3}, {3}), y = zeros({3});
    ops::store("test", (x * 2).value(), y.dense_view());
    y.mark_written();
    CHECK(values(y) == std::vector<double>{2, 4, 6});
    CHECK(ResumedScope::waiting() == ResumedScope::deferred());
}

TEST_CASE("deprecated names: functions of operators") {
    CHECK(is_half(DType::bf16));
    CHECK_FALSE(is_half(DType::f32));
    const Tensor rows = test::tensor({1, 2, 3, 4}, {2, 2}), weights = test::tensor({2, 3}, {1, 2}),
                 indices = Tensor::from<std::int64_t>({0, 1}, {1, 2});
    CHECK(values(Tensor(ops::weighted_rows(rows.view(), indices.view(), weights.view()))) ==
          std::vector<double>{11, 16});
    const Tensor out_gradient = test::tensor({1, 10}, {1, 2});
    CHECK(values(Tensor(ops::weighted_rows_weights(rows.view(), indices.view(), out_gradient.view()))) ==
          std::vector<double>{21, 43});
    const Tensor a = Tensor::from<std::int32_t>({1, 2}, {1, 1, 2}), b = Tensor::from<std::int32_t>({3, 4}, {1, 2, 1});
    CHECK(values(Tensor(ops::matmul_of_integers(a.view(), b.view()))) == std::vector<double>{11});
    const Tensor image = test::tensor({1, 5, 2, 3}, {1, 1, 2, 2}), box = test::tensor({0, 0, 1, 1}, {1, 4}),
                 number = Tensor::from<std::int64_t>({0}, {1});
    CHECK(values(Tensor(ops::roi_pool_places(image.view(), box.view(), number.view(), {1, 1}, 1.0))) ==
          std::vector<double>{1});

    const Tensor x = test::tensor({1, 2, 3}, {3});
    const Tensor y(ops::operation_in_company("copies",
                                             [](std::span<const ops::OperationViews> calls) {
                                                 for (const ops::OperationViews& views : calls)
                                                     ops::copy(views.in(0), views.out(0));
                                             },
                                             {.reads = {x.view()}, .outputs = {{DType::f32, {3}}}}));
    CHECK(values(y) == std::vector<double>{1, 2, 3});

    ops::MultiTensor tensors(1);
    tensors.set({{x.view(), y.view()}}, {5, 7});
    CHECK(values(Tensor(tensors.numbers())) == std::vector<double>{5, 7});
}

TEST_CASE("deprecated names: gradients") {
    const Tensor x = test::tensor({1, 2, 3}, {3}).set_requires_grad();
    CHECK(recorded({x}));
    const Tensor y = [&] {
        NoGrad no_grad;
        return x * 3;
    }();
    const Tensor z = differentiable(
        "triple", {x}, y.value(),
        [](const GradientContext& context) { return std::vector{context.take_gradient() * 3}; }, RuleKind::composed);
    CHECK(values(grad(sum(z), x)) == std::vector<double>{3, 3, 3});
    CHECK(Saved(x).intact());
    const Tensor first =
        attach_backward("first", {x}, slice(x.detach(), 0, 0, 1).value(), [](const GradientContext& context) {
            context.give_region(0, context.release_gradient() * 5, [](const ops::View& view) {
                ops::View region = view;
                region.shape = {1};
                return region;
            });
            return std::vector<Tensor>(1);
        });
    CHECK(values(grad(sum(first), x)) == std::vector<double>{5, 0, 0});
}

TEST_CASE("deprecated names: capture") {
    int calls = 0;
    double factor = 2;
    auto step = record(
        [&](const Tensor& x) {
            ++calls;
            return x * record_guard([&] { return factor; });
        },
        {.recordings = 2});
    const Tensor x = ones({3});
    for (int i = 0; i < 4; ++i) CHECK(values(step(x)) == std::vector<double>{2, 2, 2});
    CHECK(calls == 2);
    factor = 3;
    CHECK(values(step(x)) == std::vector<double>{3, 3, 3});
    Old module;
    CHECK(module.not_capture_safe().empty());
    CHECK(module.not_replayable().empty());

    bool holds = true;
    auto guarded = capture([&](const Tensor& input) {
        guard_recording([&] { return holds; });
        return input + 1;
    });
    for (int i = 0; i < 3; ++i) guarded(x);
    CHECK(guarded.recording().commands() == guarded.command_list().commands());
    CHECK(guarded.replays());
    holds = false;
    CHECK_FALSE(guarded.replays());
}

TEST_CASE("deprecated names: methods") {
    const Buffer buffer(test::device(), 64);
    CHECK_FALSE(CommandList().serves(0, buffer));

    const data::Transform darker = [](data::Image& image, data::Random&) { image.pixels[0] = 0; };
    CHECK(darker.of_image());
    CHECK(std::is_same_v<data::Transform::OfImage, data::Transform::ImageFunction>);
    CHECK(std::is_same_v<data::Transform::OfExample, data::Transform::ExampleFunction>);

    OldMetric metric;
    metric.update(test::tensor({1, 0, 0, 1}, {2, 2}), Tensor::from<std::int64_t>({0, 1}, {2}));
    CHECK(metric.compute() == 1);
    CHECK(metric.of_classes() == std::vector<double>{1, 1});
    CHECK(metric.right() == 1);

    const auto one_block = [](const ops::RandomPosition&) { return std::uint64_t{1}; };
    const Generator generator(3);
    generator.take_on_host("test", one_block);
    CHECK(generator.position() == 4);
    const ops::RandomStream stream(test::device(), {.seed = 3});
    stream.take_on_host("test", one_block);
    CHECK(stream.position().offset == 1);
}

TEST_CASE("deprecated names: options") {
    CHECK(train::FitOptions{.record = false}.record == false);
    CHECK(text::GenerationOptions{.record = false}.record == false);
    CHECK(text::GenerationOptions{.eos_token_ids = {2}}.eos_token_ids == std::vector<std::int64_t>{2});
    train::Monitor monitor;
    monitor.figure = "valid_loss";
    CHECK_NOTHROW(train::EarlyStopping(3, 0, monitor));
}
