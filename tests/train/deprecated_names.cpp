// Names of version 0.1 that were replaced: each still compiles and does the same.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <type_traits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/data/drawn_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/ops/attention.hpp>
#include <declivity/ops/batch_norm.hpp>
#include <declivity/ops/linalg.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/ops/random_draws.hpp>
#include <declivity/ops/value.hpp>
#include <declivity/ops/weighted_rows.hpp>
#include <declivity/runtime/recording.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/record.hpp>
#include <declivity/text/generation.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/figures.hpp>
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
}

TEST_CASE("deprecated names: options") {
    CHECK(train::FitOptions{.record = false}.record == false);
    CHECK(text::GenerationOptions{.record = false}.record == false);
    train::Monitor monitor;
    monitor.figure = "valid_loss";
    CHECK_NOTHROW(train::EarlyStopping(3, 0, monitor));
}
