// Rates of products, convolutions, copies and launches, compared with the device's measured peak.
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/conv2d.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/matmul.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/runtime/ceilings.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <ops/conv/conv2d_strategy.hpp>
#include <ops/matmul/matmul_strategies.hpp>
#include <ops/support/work_split.hpp>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr double kMin = 0.02;  // seconds per round
constexpr int kRounds = 7;
constexpr double kMax = 3;  // seconds for all rounds of a row, except the first three

double seconds(const std::function<void()>& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Seconds per call in a batch with one wait: median of several rounds.
double timed(const Device& device, const std::function<void()>& call) {
    const auto round = [&](int calls) {
        return seconds([&] {
            for (int i = 0; i < calls; ++i) call();
            device.synchronize();
        });
    };
    round(1);  // warm-up: compiles
    int calls = 1;
    double first_time = round(1), all = 0;
    while (first_time < kMin && calls < 1 << 16) {
        calls = std::max(calls + 1, static_cast<int>(calls * std::min(8.0, 1.2 * kMin / std::max(first_time, 1e-9))));
        first_time = round(calls);
    }
    std::vector<double> times;
    for (int i = 0; i < kRounds && (i < 3 || all < kMax); ++i) {
        times.push_back(round(calls) / calls);
        all += times.back() * calls;
    }
    return median(times);
}

struct Rates {
    Device device;
    Ceilings ceilings;

    /// Adds a row: GFLOP/s, or GB/s without FLOPs, and the percentage of the compute or memory peak, whichever is
    /// larger.
    void add(DoctorRun& e, const std::string& name, double flops, double bytes, const std::function<void()>& call,
             const std::string& method = {}) const {
        e.fact(name, [&] {
            const double time = timed(device, call);
            const bool computes = flops > 0;
            const auto part = [&](double amount, double ceiling) {
                return ceiling > 0 ? 100 * amount / time / ceiling : 0;
            };
            const double compute = part(flops, ceilings.flops_f32), memory = part(bytes, ceilings.bytes),
                         rate = (computes ? flops : bytes) / time;
            Json metrics{{"seconds", time},
                         {computes ? "GFLOP/s" : "GB/s", rate * 1e-9},
                         {"percent", std::max(compute, memory)},
                         {"of", compute > memory ? "compute" : "memory"}};
            if (!method.empty()) metrics["strategy"] = method;
            return Fact{fmt::format("{:8.1f} {}  {:5.1f} % of {}{}{}", rate * 1e-9, computes ? "GFLOP/s" : "GB/s   ",
                                    std::max(compute, memory), compute > memory ? "compute" : "memory",
                                    method.empty() ? "" : "  ", method),
                        metrics};
        });
    }
};

void measure_launches(DoctorRun& e, const Device& device) {
    e.fact("launch", [&] {
        const Kernel kernel(device, {"doctor_queues.cl", "doctor_step"});
        const Buffer x = to_device(device, std::vector<std::uint32_t>(64, 0));
        const auto run = [&] { launch(kernel, {{64}}, {argument<std::uint32_t>(x), 3U, 1U}); };
        run();
        device.synchronize();
        std::vector<double> enqueued, done, waited;
        constexpr int calls = 500;
        for (int round = 0; round < kRounds; ++round) {
            double host = 0;
            done.push_back(seconds([&] {
                               host = seconds([&] {
                                   for (int i = 0; i < calls; ++i) run();
                               });
                               device.synchronize();
                           }) /
                           calls);
            enqueued.push_back(host / calls);
        }
        for (int i = 0; i < 200; ++i)
            waited.push_back(seconds([&] {
                run();
                device.synchronize();
            }));
        const double a = median(enqueued) * 1e6, b = median(done) * 1e6, c = median(waited) * 1e6;
        return Fact{
            fmt::format("{:.1f} us to enqueue; {:.1f} us per call of {} with one wait; {:.1f} us with a wait each", a,
                        b, calls, c),
            {{"enqueue us", a}, {"among many us", b}, {"waited us", c}}};
    });
}

void measure_products(DoctorRun& e, const Rates& rates) {
    double last_rate = 0;  // of CLBlast
    for (const std::int64_t size : {512, 1024, 2048}) {
        const Tensor a = uniform({1, size, size}, -1, 1), b = uniform({1, size, size}, -1, 1),
                     out = zeros({1, size, size});
        const ops::View left = a.view(), right = b.view(), to = out.view();
        const double flops = 2.0 * static_cast<double>(size * size * size),
                     bytes = 12.0 * static_cast<double>(size * size);
        for (const KernelStyle style : {KernelStyle::simd, KernelStyle::simt}) {
            const bool own = style == rates.device.kernel_style();
            if (!own && size > 512) continue;  // slow, and of no interest
            const ops::KernelStyleScope scope(style);
            const ops::MatmulChoice choice = ops::choose_matmul(ops::matmul_problem(left, right), rates.device);
            rates.add(
                e,
                fmt::format("product {0} x {0} x {0}, {1} kernels", size, style == KernelStyle::simd ? "simd" : "simt"),
                flops, bytes, [&] { ops::matmul(left, right, to); }, std::string(choice.strategy->name()));
        }
        const auto all = ops::matmul_strategies();
        const ops::MatmulStrategy& clblast = **std::ranges::find(all, "clblast", &ops::MatmulStrategy::name);
        const ops::MatmulProblem problem = ops::matmul_problem(left, right);
        if (!clblast.is_applicable(problem, rates.device) || (last_rate > 0 && flops / last_rate > 3)) continue;
        const auto multiply = [&] { clblast.run(problem, {left, right, to}); };
        const auto first_time = [&] {
            multiply();
            rates.device.synchronize();
        };
        first_time();  // warm-up: compiles
        last_rate = flops / seconds(first_time);
        rates.add(e, fmt::format("product {0} x {0} x {0}, CLBlast", size), flops, bytes, multiply, "clblast");
    }
}

void measure_convolutions(DoctorRun& e, const Rates& rates) {
    struct Row {
        const char* name;
        Shape x, weight;
        ops::Conv2dParameters options;
    };
    const std::int64_t batch = 8;
    for (const Row& row :
         {Row{"3x3, 64 to 64, 56x56", {batch, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {1, 1}}},
          Row{"1x1, 256 to 64, 56x56", {batch, 256, 56, 56}, {64, 256, 1, 1}, {}},
          Row{"3x3 stride 2, 128 to 128, 56x56",
              {batch, 128, 56, 56},
              {128, 128, 3, 3},
              {.stride = {2, 2}, .padding = {1, 1}}},
          Row{"3x3 depthwise, 144, 56x56", {batch, 144, 56, 56}, {144, 1, 3, 3}, {.padding = {1, 1}, .groups = 144}}}) {
        const Shape out_shape = ops::conv2d_shape("doctor", row.x, row.weight, row.options);
        const Tensor x = uniform(row.x, -1, 1), weight = uniform(row.weight, -1, 1), out = uniform(out_shape, -1, 1),
                     to_x = zeros(row.x), to_weight = zeros(row.weight), to_out = zeros(out_shape);
        const double flops =
            2.0 * static_cast<double>(out_shape.numel() * row.weight[1] * row.weight[2] * row.weight[3]);
        const double bytes = 4.0 * static_cast<double>(row.x.numel() + row.weight.numel() + out_shape.numel());
        const auto strategy = [&](ops::Conv2dDirection direction) {
            const ops::Conv2dProblem problem = ops::conv2d_problem(
                "doctor", direction, DType::f32, rates.device.kernel_style(), row.x, row.weight, row.options);
            return std::string(ops::choose_conv2d(problem, rates.device).strategy->name());
        };
        const ops::View vx = x.view(), vw = weight.view(), vo = out.view(), tx = to_x.view(), tw = to_weight.view(),
                        to = to_out.view();
        using Direction = ops::Conv2dDirection;
        rates.add(
            e, fmt::format("convolution {}, forward", row.name), flops, bytes,
            [&] { ops::conv2d_forward(vx, vw, std::nullopt, to, row.options); }, strategy(Direction::forward));
        rates.add(
            e, fmt::format("convolution {}, backward_input", row.name), flops, bytes,
            [&] { ops::conv2d_backward_input(vo, vw, tx, row.options); }, strategy(Direction::backward_input));
        rates.add(
            e, fmt::format("convolution {}, backward_weights", row.name), flops, bytes,
            [&] { ops::conv2d_backward_weights(vx, vo, tw, row.options); }, strategy(Direction::backward_weights));
    }
}

void measure_memory(DoctorRun& e, const Rates& rates) {
    const auto count = static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(rates.device.info().max_allocation / 32, 1 << 18, 1 << 24));  // 64 MiB of floats
    const double bytes = 4.0 * static_cast<double>(count);
    const Tensor a = uniform({count}), b = uniform({count});
    const ops::View x = a.view(), y = b.view(), out = ops::View::make(rates.device, DType::f32, {count});
    const auto evaluate = [&](ops::Function function, std::vector<ops::Expression> inputs) {
        ops::evaluate(ops::Expression::apply(function, inputs), out);
    };
    rates.add(e, "copy", 0, 2 * bytes, [&] { ops::copy(x, out); });
    rates.add(e, "relu", 0, 2 * bytes, [&] { evaluate(ops::Function::relu, {x}); });
    rates.add(e, "gelu", 0, 2 * bytes, [&] { evaluate(ops::Function::gelu, {x}); });
    rates.add(e, "a + b", 0, 3 * bytes, [&] { evaluate(ops::Function::add, {x, y}); });
    rates.add(e, "sum of all", 0, bytes, [&] { (void)ops::reduce(ops::Reduce::sum, x, {}, false); });
    const ops::View rows = ops::reshaped(x, {count / 1024, 1024});
    rates.add(e, "sums of rows of 1024", 0, bytes, [&] { (void)ops::reduce(ops::Reduce::sum, rows, {1}, false); });
}

}  // namespace

void measure(DoctorRun& e) {
    Rates rates{e.device(), {}};
    e.fact("measured peak", [&] {
        rates.ceilings = measure_ceilings(rates.device);
        const auto& [f32, f64, bytes] = rates.ceilings;
        return Fact{
            fmt::format("{:.1f} GFLOP/s f32, {:.1f} GFLOP/s f64, {:.1f} GB/s", f32 * 1e-9, f64 * 1e-9, bytes * 1e-9),
            {{"GFLOP/s f32", f32 * 1e-9}, {"GFLOP/s f64", f64 * 1e-9}, {"GB/s", bytes * 1e-9}}};
    });
    measure_launches(e, rates.device);
    measure_memory(e, rates);
    measure_products(e, rates);
    measure_convolutions(e, rates);
}

}  // namespace declivity::tools::doctor
