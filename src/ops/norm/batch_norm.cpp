// Kernels of batch normalisation.
#include <declivity/ops/batch_norm.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "batch_norm_launch.hpp"
#include "ops/engine/epilogue.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/engine/reduced_precision.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

// Tunables in addition to work_split.hpp; their meaning is documented in cl_kernels/norm/batch_norm.cl.
constexpr std::int64_t kPlaneBlock = 4096;
constexpr std::int64_t kColumnBlock = 64;
constexpr std::int64_t kColumnChunk =
    4096;  // maximum positions of a chunk of single columns, for the accuracy of plain sums
constexpr std::int64_t kSimdShortPlane = 16;  // elements of a plane below which vectors run across columns
constexpr std::int64_t kSimtShortPlane = 8;   // the same for adjacent work-items
constexpr std::int64_t kWholePlane =
    // elements of adjacent channels from which on they are processed alone, with the stride of all channels
    256;
constexpr std::int64_t kWideRun = 1024;  // elements of adjacent channels that a work-item should process together
constexpr std::int64_t kMaxWide = 8;     // channels of a work-item

// Flags of the kernels; the same constants are in cl_kernels/norm/batch_norm_elements.clh.
constexpr std::int32_t kHasWeight = 1;           // otherwise it is 1
constexpr std::int32_t kHasBias = 2;             // otherwise it is 0
constexpr std::int32_t kTraining = 4;            // mean and scale were computed from x
constexpr std::int32_t kWithXGradient = 8;       // the kernel of the gradients' sums computes x_gradient as well
constexpr std::int32_t kHasRunningMean = 1;      // it is updated
constexpr std::int32_t kHasRunningVariance = 2;  // it is updated
constexpr std::int32_t kCountsBatches = 4;       // the kernel increments the number of batches
constexpr std::int32_t kCumulativeAverage = 8;   // momentum is 1 / number of batches, which was incremented before

std::int32_t affine_flags(const View& weight, const View& bias) {
    return (weight.buffer ? kHasWeight : 0) | (bias.buffer ? kHasBias : 0);
}

/// Layout of the kernel's struct; must match cl_kernels/norm/batch_norm_parts.clh.
struct Sizes {
    std::int64_t n, c, l;
    std::int64_t slices, positions, chunk, channels_each;
};

/// Partition of a call: the kernel form, slices and chunks.
struct LaunchConfig {
    Device device;
    DType dtype;
    bool simd, short_planes;
    Sizes sizes;
    std::int64_t splits;

    /// Returns whether a work-item or work-group processes a whole channel, so that one fused kernel replaces several.
    [[nodiscard]] bool is_whole() const { return splits == 1 && sizes.slices == sizes.c; }
    /// Returns whether the fused kernel also makes the second pass over the elements.
    [[nodiscard]] bool whole_with_elements() const {
        return is_whole() && !(simd && short_planes) && sizes.l * sizes.channels_each >= kWholePlane;
    }

    [[nodiscard]] Kernel kernel(const char* name, const KernelEpilogue& epilogue = {}) const {
        Defines defines = real_defines(dtype);
        set_epilogue_stored(defines, epilogue);
        defines.set("T", cl_type(dtype)).set(form_macro(simd, short_planes), 1).set("LANES", vector_lanes(dtype));
        defines.set("BLOCK", short_planes ? kColumnBlock : kPlaneBlock)
            .set("COLUMNS", kSimdColumns)
            .set("MAX_CHANNELS", kMaxWide);
        return {device, {"batch_norm.cl", name, defines}};
    }
};

LaunchConfig launch_config_of(const View& x) {
    LaunchConfig config{.device = x.device(),
                        .dtype = x.dtype,
                        .simd = is_simd(x.device()),
                        .short_planes = false,
                        .sizes = {.n = x.shape[0],
                                  .c = x.shape[1],
                                  .l = 1,
                                  .slices = x.shape[1],
                                  .positions = 0,
                                  .chunk = 0,
                                  .channels_each = 1},
                        .splits = 1};
    Sizes& sizes = config.sizes;
    for (int axis = 2; axis < x.rank(); ++axis) sizes.l *= x.shape[axis];
    config.short_planes = sizes.l < (config.simd ? kSimdShortPlane : kSimtShortPlane);
    if (config.short_planes) sizes.slices = sizes.c * sizes.l;
    sizes.positions = sizes.n * sizes.l / (sizes.slices / sizes.c);
    const std::int64_t units = config.device.info().compute_units;
    if (config.simd) {
        const std::int64_t channels_each = config.short_planes ? std::min(kSimdColumns, sizes.slices) : 1;
        config.splits = std::min(units * kSimdItemsPerUnit / ceil_div(sizes.slices, channels_each),
                                 sizes.positions * channels_each / kSimdWork);
    } else {
        const RowGroup group = row_group(sizes.slices, sizes.positions, config.short_planes, kSimtGroup);
        config.splits = std::min(units * kSimtGroupsPerUnit / ceil_div(sizes.slices, group.rows),
                                 sizes.positions / (group.lanes * kSimtWork));
    }
    sizes.chunk = ceil_div(sizes.positions, std::max<std::int64_t>(1, config.splits));
    if (config.short_planes) sizes.chunk = std::min(sizes.chunk, kColumnChunk);
    sizes.chunk = std::max(sizes.chunk, ceil_div(sizes.positions, kMaxGroupsAlongAxis));
    config.splits = ceil_div(sizes.positions, sizes.chunk);
    if (config.simd && !config.short_planes && config.is_whole())
        sizes.channels_each =
            std::clamp<std::int64_t>(std::min(kWideRun / sizes.l, sizes.c / (units * kSimdItemsPerUnit)), 1, kMaxWide);
    return config;
}

/// Partial results: two numbers for each slice and chunk.
View parts_of(const LaunchConfig& config) {
    return View::make(config.device, config.dtype, {config.splits, config.sizes.slices, 2});
}

/// Launches a kernel over slices, or chunks of them: `arguments` follow the sizes.
void launch_slices(const LaunchConfig& config, const Kernel& kernel, const std::vector<Argument>& arguments) {
    const std::int64_t items =
        ceil_div(config.sizes.slices, config.short_planes ? kSimdColumns : config.sizes.channels_each);
    launch_rows(kernel,
                {.device = config.device,
                 .dtype = config.dtype,
                 .rows = config.sizes.slices,
                 .n = config.sizes.chunk,
                 .columns = config.short_planes,
                 .simd_global = {to_size(items), to_size(config.splits)},
                 .splits = to_size(config.splits)},
                {config.sizes}, arguments);
}

/// Launches an elementwise kernel: `flags` and `buffers` follow the chunk in its arguments.
void launch_elements(const LaunchConfig& config, const char* name, std::initializer_list<std::int32_t> flags,
                     std::initializer_list<BufferArgument> buffers) {
    const Kernel kernel = config.kernel(name);
    const Sizes& sizes = config.sizes;
    const bool flat = config.simd && sizes.l == 1;
    const std::int64_t rows = flat ? sizes.n : sizes.n * sizes.c, length = flat ? sizes.c : sizes.l;
    const std::int64_t chunk = std::max(kSimdWork, ceil_div(length, kMaxGroupsAlongAxis));
    const std::int64_t each = rows_each(config.device, rows, std::min(length, chunk));
    const RowGroup group = row_group(rows, length, false, kernel);
    const std::int32_t lanes = group.lanes_argument();
    std::vector<Argument> arguments{sizes};
    if (config.simd) arguments.emplace_back(each);
    else arguments.emplace_back(lanes);
    arguments.emplace_back(chunk);
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), buffers.begin(), buffers.end());
    const std::size_t items = config.simd ? 1 : group.items();
    const std::size_t groups = to_size(ceil_div(rows, config.simd ? each : group.rows));
    launch(kernel, {.global = {groups * items, to_size(ceil_div(length, chunk)), 1}, .local = {items, 1, 1}},
           arguments);
}

Range one_each(std::int64_t channels) { return {.global = {to_size(channels), 1, 1}, .local = {}}; }

void check_x(const char* function, const View& x) {
    require_real(function, "x", x.dtype);
    if (x.rank() < 2)
        throw ShapeError(fmt::format("{}: expected x of shape (N, C, ...), got {}", function, x.shape.str()));
    require_dense(function, "x", x);
}

void check_channels(const char* function, std::string_view name, const View& x, const View& view) {
    if (!view.buffer) return;
    if (view.dtype != compute_type(x.dtype)) require_alike(function, "x", x, name, view);
    require_same_device(function, x, view);
    require_shape(function, name, view, {x.shape[1]});
    require_dense(function, name, view);
}

void check_like(const char* function, std::string_view name, const View& x, const View& view) {
    if (!view.buffer) return;
    require_alike(function, "x", x, name, view);
    require_shape(function, name, view, x.shape);
    require_dense(function, name, view);
}

}  // namespace

void check_batch_norm_statistics(const View& x, const BatchNormRunning& running, const View& mean, const View& scale) {
    constexpr auto* function = "batch_norm";
    check_x(function, x);
    check_channels(function, "the mean", x, mean);
    check_channels(function, "the scale", x, scale);
    check_channels(function, "the running mean", x, running.mean);
    check_channels(function, "the running variance", x, running.variance);
    if (const View& batches = running.batches; batches.buffer) {
        require_same_device(function, batches, x);
        if (batches.dtype != DType::i64 || batches.numel() != 1)
            throw TypeError(fmt::format("{}: expected num_batches_tracked of one i64, got {} of {}", function,
                                        batches.shape.str(), name_of(batches.dtype)));
    }
    if (x.shape[1] > 0 && x.numel() / x.shape[1] < 2)
        throw ShapeError(
            fmt::format("{}: expected at least two elements per channel in training, got {}", function, x.shape.str()));
}

void check_batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias) {
    constexpr auto* function = "batch_norm";
    check_x(function, x);
    check_channels(function, "the mean", x, mean);
    check_channels(function, "the scale", x, scale);
    check_channels(function, "the weight", x, weight);
    check_channels(function, "the bias", x, bias);
}

namespace {

/// Returns `first` followed by STATISTICS_PARAMETERS of the kernels.
std::vector<Argument> with_statistics(std::vector<Argument> first, const View& parts, double eps,
                                      const BatchNormRunning& running, const View& mean, const View& scale) {
    const std::int32_t counted = !running.batches.buffer ? 0 : running.average ? kCumulativeAverage : kCountsBatches;
    const std::int32_t running_flags =
        (running.mean.buffer ? kHasRunningMean : 0) | (running.variance.buffer ? kHasRunningVariance : 0) | counted;
    first.insert(first.end(),
                 {real_argument(mean.dtype, eps), real_argument(mean.dtype, running.momentum), Argument(running_flags),
                  parts.argument(), mean.argument(), scale.argument(), or_else(running.mean, mean),
                  or_else(running.variance, scale), or_else(running.batches, scale)});
    return first;
}

}  // namespace

void batch_norm_statistics(const View& x, double eps, const BatchNormRunning& running, const View& mean,
                           const View& scale) {
    check_batch_norm_statistics(x, running, mean, scale);
    require_floating("batch_norm", "x", x);  // f16 and bf16 were upcast by the operation
    if (x.numel() == 0) return;
    const WorkScope work("batch_norm_statistics", work_each(3, x));
    const LaunchConfig config = launch_config_of(x);
    const View parts = parts_of(config);
    const auto with_statistics_arguments = [&](std::vector<Argument> first) {
        return with_statistics(std::move(first), parts, eps, running, mean, scale);
    };
    if (config.is_whole()) {
        launch_slices(config, config.kernel("batch_norm_statistics_whole"), with_statistics_arguments({x.argument()}));
        return;
    }
    launch_slices(config, config.kernel("batch_norm_statistics"), {x.argument(), parts.argument()});
    launch(config.kernel("batch_norm_combine_statistics"), one_each(config.sizes.c),
           with_statistics_arguments({config.sizes, config.splits}));
}

void batch_norm_scale(const View& variance, double eps, const View& scale) {
    require_floating("batch_norm", "the running variance", variance);
    require_rank("batch_norm", "the running variance", variance, 1, "C");
    require_dense("batch_norm", "the running variance", variance);
    require_shape("batch_norm", "the scale", scale, variance.shape);
    require_alike("batch_norm", "the running variance", variance, "the scale", scale);
    Defines defines = real_defines(variance.dtype);
    defines.set("T", cl_type(variance.dtype)).set(form_macro(is_simd(variance.device())), 1);
    defines.set("LANES", vector_lanes(variance.dtype))
        .set("BLOCK", kPlaneBlock)
        .set("COLUMNS", kSimdColumns)
        .set("MAX_CHANNELS", kMaxWide);
    launch(Kernel(variance.device(), {"batch_norm.cl", "batch_norm_scale", defines}), one_each(variance.shape[0]),
           {real_argument(variance.dtype, eps), variance.argument(), scale.argument()});
}

void batch_norm(const View& x, const View& mean, const View& scale, const View& weight, const View& bias,
                const View& out) {
    check_batch_norm(x, mean, scale, weight, bias);
    require_floating("batch_norm", "x", x);
    check_like("batch_norm", "the output", x, out);
    if (x.numel() == 0) return;
    const WorkScope work("batch_norm", work_each(4, x, out));
    launch_elements(
        launch_config_of(x), "batch_norm", {affine_flags(weight, bias)},
        {x.argument(), mean.argument(), scale.argument(), or_else(weight, mean), or_else(bias, mean), out.argument()});
}

bool is_batch_norm_whole(const View& x) { return x.numel() > 0 && launch_config_of(x).whole_with_elements(); }

EpilogueFused launch_batch_norm_whole(const View& x, double eps, const BatchNormRunning& running, const View& mean,
                                      const View& scale, const View& weight, const View& bias, const View& out,
                                      const Epilogue& epilogue) {
    const auto supported = epilogue ? kernel_epilogue(epilogue, out, EpilogueTarget::convolution) : KernelEpilogue{};
    const WorkScope work("batch_norm", work_each(7, x, x, out));
    const LaunchConfig config = launch_config_of(x);
    const KernelEpilogue applied_epilogue = supported.value_or(KernelEpilogue{});
    std::vector<Argument> all = with_statistics(
        {affine_flags(weight, bias), x.argument(), or_else(weight, mean), or_else(bias, mean), out.argument()},
        parts_of(config), eps, running, mean, scale);
    const EpilogueArguments epilogue_arguments(applied_epilogue, out);
    for (const Argument& argument : epilogue_arguments.append_to_if_any({})) all.push_back(argument);
    launch_slices(config, config.kernel("batch_norm_whole", applied_epilogue), all);
    return EpilogueFused{supported.has_value()};
}

void batch_norm_backward(const View& x, const View& mean, const View& scale, const View& weight, bool training,
                         const View& result_gradient, const View& x_gradient, const View& weight_gradient,
                         const View& bias_gradient) {
    constexpr auto* function = "batch_norm_backward";
    check_x(function, x);
    for (const View* view : {&mean, &scale, &weight, &weight_gradient, &bias_gradient})
        check_channels(function, "what belongs to a channel", x, *view);
    check_like(function, "the result's gradient", x, result_gradient);
    check_like(function, "the gradient of x", x, x_gradient);
    if (is_16bit_float(x.dtype)) {
        const RoundedOutput dx(x_gradient), dweight(weight_gradient), dbias(bias_gradient);
        batch_norm_backward(upcast(x), mean, scale, upcast(weight), training, upcast(result_gradient), dx.exact(),
                            dweight.exact(), dbias.exact());
        for (const RoundedOutput* rounded_output : {&dx, &dweight, &dbias}) rounded_output->round();
        return;
    }
    if (x.numel() == 0) {
        if (x.shape[1] > 0) {
            fill(weight_gradient, 0);
            fill(bias_gradient, 0);
        }
        return;
    }
    const WorkScope work(function, work_each(8, x, result_gradient, x_gradient));
    const LaunchConfig config = launch_config_of(x);
    const View parts = parts_of(config);
    const BufferArgument in = x.argument(), g = result_gradient.argument(), means = mean.argument(),
                         scales = scale.argument();
    const BufferArgument weights = or_else(weight, mean), sums = parts.argument(), dweight = weight_gradient.argument(),
                         dbias = bias_gradient.argument();
    const std::int32_t weight_flag = weight.buffer ? kHasWeight : 0;
    const bool with_elements = config.whole_with_elements() && x_gradient.buffer;
    if (config.is_whole()) {
        const std::int32_t flags = weight_flag | (training ? kTraining : 0) | (with_elements ? kWithXGradient : 0);
        launch_slices(config, config.kernel("batch_norm_backward_whole"),
                      {flags, in, g, means, scales, weights, dweight, dbias, or_else(x_gradient, parts), sums});
    } else {
        launch_slices(config, config.kernel("batch_norm_gradient_sums"), {in, g, means, sums});
        launch(config.kernel("batch_norm_combine_gradient_sums"), one_each(config.sizes.c),
               {config.sizes, config.splits, sums, scales, dweight, dbias});
    }
    if (x_gradient.buffer && !with_elements)
        launch_elements(config, "batch_norm_backward_input", {weight_flag, training ? 1 : 0},
                        {in, g, means, scales, weights, dweight, dbias, x_gradient.argument()});
}

}  // namespace declivity::ops
