// Each applicable strategy for products and convolutions, in both kernel styles, with each tuning variant, compared
// with plain C++.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/matmul.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <ops/conv/conv2d_strategy.hpp>
#include <ops/matmul/matmul_strategies.hpp>
#include <ops/support/work_split.hpp>
#include <reference/conv2d_cases.hpp>
#include <reference/matmul_cases.hpp>
#include <runtime/environment.hpp>

#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

using ops::Conv2dDirection;
using reference::difference;
using reference::OperandStrides;
using reference::random_tensor;
using reference::values;

constexpr KernelStyle kKernelStyles[] = {KernelStyle::simd, KernelStyle::simt};

std::string_view name_of(KernelStyle style) { return style == KernelStyle::simd ? "simd" : "simt"; }

/// A result surrounded by guard elements that must not be written.
class Guarded {
  public:
    Guarded(const Shape& shape, DType dtype)
        : whole_(ops::View::make(default_device(), dtype, {shape.numel() + 2 * kGuard})), out_(whole_) {
        ops::fill(whole_, NAN);
        out_.offset += kGuard;
        out_.shape = shape;
        out_.strides = dense_strides(shape);
    }
    [[nodiscard]] const ops::View& out() const { return out_; }
    [[nodiscard]] Tensor tensor() const { return Tensor(out_); }
    /// Returns an empty string, or which guard element was overwritten.
    [[nodiscard]] std::string guard_error() const {
        const auto all = values(Tensor(whole_));
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((i < kGuard || i + kGuard >= all.size()) && !std::isnan(all[i]))
                return fmt::format("guard element {} next to the result was overwritten",
                                   static_cast<std::int64_t>(i) - kGuard);
        return {};
    }

  private:
    static constexpr std::int64_t kGuard = 32;
    ops::View whole_, out_;
};

/// Sets an environment variable for the duration of a check.
class Environment {
  public:
    Environment(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        setenv(name, value.c_str(), 1);
        detail::reload_environment();
    }
    ~Environment() {
        if (before_) setenv(name_, before_->c_str(), 1);
        else unsetenv(name_);
        detail::reload_environment();
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

/// Tracks the strategies of this section, to report those that are applicable to none of the cases.
class StrategyCounts {
  public:
    void expect(std::string_view name) { counts_.try_emplace(std::string(name), 0); }
    void count(std::string_view name) { ++counts_[std::string(name)]; }
    void report(DoctorRun& e) const {
        for (const auto& [name, count] : counts_)
            if (count == 0) e.skip(name, "not applicable to any case on this device");
    }

  private:
    std::map<std::string, int> counts_;
};

/// Operands of a case and the expected result.
struct MatmulCaseData {
    reference::MatmulOperand a, b;
    std::vector<double> expected;
};

MatmulCaseData case_data_of(const reference::MatmulCase& test_case, DType dtype) {
    auto a = reference::matmul_operand(test_case.a, test_case.batch, test_case.m, test_case.k, 1, dtype),
         b = reference::matmul_operand(test_case.b, test_case.batch, test_case.k, test_case.n, 2, dtype);
    auto expected = reference::matmul_reference(test_case, a.elements, b.elements);
    return {std::move(a), std::move(b), std::move(expected)};
}

/// One strategy in one kernel style, with each variant if requested.
void examine_strategy(DoctorRun& e, const ops::MatmulStrategy& strategy, KernelStyle style,
                      const reference::MatmulCase& test_case, DType dtype, const MatmulCaseData& in, bool variants,
                      StrategyCounts& counts) {
    const Device device = e.device();
    const std::string_view name = strategy.name();
    const Guarded result(Shape{test_case.batch, test_case.m, test_case.n}, dtype);
    const ops::KernelStyleScope scope(style);
    const ops::MatmulProblem problem = ops::matmul_problem(in.a.view, in.b.view);
    counts.expect(name);
    if (!strategy.is_applicable(problem, device)) return;
    counts.count(name);
    std::vector<std::string> names{""};
    if (variants)
        for (const std::string& variant : strategy.variants(problem, device))
            if (!variant.empty()) names.push_back(variant);
    for (const std::string& variant_name : names)
        e.check_style(style,
                      fmt::format("{}{}{}: {}, {}", name, variant_name.empty() ? "" : " ", variant_name,
                                  test_case.name(), declivity::name_of(dtype)),
                      [&] {
                          ops::fill(result.out(), NAN);
                          const ops::View out = result.out();
                          strategy.run(problem, {in.a.view, in.b.view, out}, variant_name);
                          const std::string wrong = difference(result.tensor(), in.expected, test_case.allowed(dtype));
                          return wrong.empty() ? result.guard_error() : wrong;
                      });
}

void examine_products(DoctorRun& e, const reference::MatmulCase& test_case, DType dtype, bool variants,
                      StrategyCounts& counts) {
    std::optional<MatmulCaseData> in;
    for (const KernelStyle style : kKernelStyles)
        for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
            const std::string_view name = strategy->name();
            // Strategies that do not depend on the kernel style.
            if ((name == "clblast" || name == "register_tiled") && style != e.device().kernel_style()) continue;
            // Its first product of a type compiles for seconds.
            if (name == "clblast" && dtype != DType::f32) continue;
            // The device's default strategy computes it, since no check uses that one.
            if (!in) in = case_data_of(test_case, dtype);
            examine_strategy(e, *strategy, style, test_case, dtype, *in, variants, counts);
        }
}

/// A product by a given strategy with its epilogue: bias, residual and relu, or a sigmoid.
std::string with_epilogue(const ops::MatmulStrategy& strategy, const reference::MatmulCase& test_case,
                          const reference::MatmulOperand& a, const reference::MatmulOperand& b, const Guarded& result,
                          bool relu) {
    const auto apply = [](ops::Function function, std::initializer_list<ops::Expression> inputs) {
        return ops::Expression::apply(function, std::vector<ops::Expression>(inputs));
    };
    const Environment named("DECLIVITY_MATMUL", std::string(strategy.name()));
    const Shape shape{test_case.batch, test_case.m, test_case.n};
    const Tensor bias = random_tensor({test_case.n}, 3), residual = random_tensor(shape, 5);
    const ops::Expression x = ops::Expression::operator_result(DType::f32, shape);
    const ops::Expression epilogue =
        relu ? apply(ops::Function::relu,
                     {apply(ops::Function::add, {residual.view(), apply(ops::Function::add, {x, bias.view()})})})
             : apply(ops::Function::sigmoid, {x});
    ops::matmul(a.view, b.view, result.out(), ops::epilogue_of(epilogue));
    auto expected = reference::matmul_reference(test_case, a.elements, b.elements);
    const auto added = values(bias), other = values(residual);
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] =
            relu ? std::max(0.0, expected[i] + added[i % added.size()] + other[i]) : 1 / (1 + std::exp(-expected[i]));
    const std::string wrong = difference(result.tensor(), expected,
                                         reference::sum_tolerance(DType::f32, static_cast<double>(test_case.k + 2)));
    return wrong.empty() ? result.guard_error() : wrong;
}

/// Called like by the library's functions: with a fused epilogue, if the strategy supports it.
void examine_epilogue(DoctorRun& e, const ops::MatmulStrategy& strategy, KernelStyle style,
                      const reference::MatmulCase& test_case, bool relu) {
    const auto a = reference::matmul_operand(test_case.a, test_case.batch, test_case.m, test_case.k, 1, DType::f32),
               b = reference::matmul_operand(test_case.b, test_case.batch, test_case.k, test_case.n, 2, DType::f32);
    const Guarded result({test_case.batch, test_case.m, test_case.n}, DType::f32);
    const ops::KernelStyleScope scope(style);
    if (!strategy.is_applicable(ops::matmul_problem(a.view, b.view), e.device())) return;
    e.check_style(
        style,
        fmt::format("{}, {}, {}: {}", strategy.name(), relu ? "with bias, residual and relu" : "with a sigmoid",
                    name_of(style), test_case.name()),
        [&] { return with_epilogue(strategy, test_case, a, b, result, relu); });
}

}  // namespace

void examine_matmul(DoctorRun& e) {
    const Device device = e.device();
    const std::vector<reference::MatmulCase> cases{
        {1, 1, 1, 1},
        {2, 3, 5, 7},
        {3, 17, 1, 4},
        {1, 13, 33, 9},
        {1, 3, 8, 40, OperandStrides::dense, OperandStrides::transposed},
        {2, 7, 18, 5, OperandStrides::transposed, OperandStrides::dense},
        {2, 7, 18, 5, OperandStrides::transposed, OperandStrides::transposed},
        {2, 8, 21, 5, OperandStrides::sliced, OperandStrides::scattered},
        {3, 24, 80, 133, OperandStrides::repeated, OperandStrides::transposed},
        {1, 61, 70, 801, OperandStrides::transposed, OperandStrides::dense},
        {1, 64, 64, 64, OperandStrides::dense, OperandStrides::transposed},
        {1, 20, 11, 2050, OperandStrides::dense, OperandStrides::transposed},
        {1, 1, 400, 500},
        {1, 400, 1, 500, OperandStrides::transposed, OperandStrides::dense},
        {1, 73, 65, 900, OperandStrides::transposed, OperandStrides::dense},
        {1, 130, 260, 300}};
    StrategyCounts counts;
    for (const reference::MatmulCase& test_case : cases)
        examine_products(e, test_case, DType::f32, test_case.m == 73, counts);
    for (const DType dtype : {DType::f16, DType::bf16}) examine_products(e, cases[9], dtype, false, counts);
    if (device.info().fp64)
        for (const reference::MatmulCase& test_case : {cases[7], cases[9]})
            examine_products(e, test_case, DType::f64, false, counts);
    counts.report(e);
    for (const KernelStyle style : kKernelStyles)
        for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
            if (strategy->name() == "clblast") continue;
            for (const reference::MatmulCase& test_case :
                 std::vector<reference::MatmulCase>{{1, 3, 8, 40, OperandStrides::dense, OperandStrides::transposed},
                                                    {1, 9, 50, 1100, OperandStrides::dense, OperandStrides::transposed},
                                                    {3, 16, 96, 3},
                                                    {1, 70, 65, 33}})
                for (const bool relu : {true, false}) examine_epilogue(e, *strategy, style, test_case, relu);
        }
}

namespace {

std::string_view name_of(Conv2dDirection direction) {
    return direction == Conv2dDirection::forward          ? "forward"
           : direction == Conv2dDirection::backward_input ? "backward_input"
                                                          : "backward_weights";
}

/// Operands of a case and the results of each direction, computed at first use.
class Convolution {
  public:
    Convolution(reference::Conv2dCase test_case, DType dtype) : c(std::move(test_case)), dtype_(dtype) {}

    /// @return what is wrong with the strategy's result
    std::string examine(const ops::Conv2dStrategy& strategy, const ops::Conv2dProblem& problem,
                        const std::string& variant) {
        make();
        const auto allowed = [&](const Tensor& result, const std::vector<double>& expected,
                                 const reference::Tolerance& allowed_error) {
            return strategy.error_is_relative_to_norm() ? norm_error(result, expected)
                                                        : difference(result, expected, allowed_error);
        };
        switch (problem.direction) {
            case Conv2dDirection::forward: {
                const Guarded plain(c.out(), dtype_), biased(c.out(), dtype_);
                strategy.run(problem, {x.view(), weight.view(), plain.out()}, variant);
                if (const std::string wrong =
                        allowed(plain.tensor(), out, c.forward_tolerance(dtype_)) + plain.guard_error();
                    !wrong.empty())
                    return wrong;
                strategy.run(problem, {x.view(), weight.view(), biased.out(), bias.view()}, variant);
                const std::string wrong =
                    allowed(biased.tensor(), biased_out, c.forward_tolerance(dtype_)) + biased.guard_error();
                return wrong.empty() ? "" : "with a bias: " + wrong;
            }
            case Conv2dDirection::backward_input: {
                const Guarded result(c.x, dtype_);
                strategy.run(problem, {result.out(), weight.view(), gradient.view()}, variant);
                return allowed(result.tensor(), dx, c.input_tolerance(dtype_)) + result.guard_error();
            }
            case Conv2dDirection::backward_weights: {
                const Guarded result(c.weight, dtype_), for_bias({c.weight[0]}, dtype_);
                const bool gives_bias = strategy.gives_bias_gradient();
                strategy.run(problem,
                             {x.view(), result.out(), gradient.view(),
                              gives_bias ? std::optional(for_bias.out()) : std::nullopt},
                             variant);
                const std::string wrong =
                    allowed(result.tensor(), dweight, c.weights_tolerance(dtype_)) + result.guard_error();
                if (!wrong.empty() || !gives_bias) return wrong;
                const std::string bias_error =
                    difference(for_bias.tensor(), dbias, c.weights_tolerance(dtype_)) + for_bias.guard_error();
                return bias_error.empty() ? "" : "gradient of the bias: " + bias_error;
            }
        }
        return {};
    }

    const reference::Conv2dCase c;

  private:
    void make() {
        if (x.defined()) return;
        x = random_tensor(c.x, 1, dtype_), weight = random_tensor(c.weight, 2, dtype_),
        bias = random_tensor({c.weight[0]}, 3, dtype_), gradient = random_tensor(c.out(), 4, dtype_);
        out = reference::conv2d_reference(c, values(x), values(weight), {});
        biased_out = reference::conv2d_reference(c, values(x), values(weight), values(bias));
        dx = reference::conv2d_backward_input_reference(c, values(gradient), values(weight));
        dweight = reference::conv2d_backward_weights_reference(c, values(x), values(gradient));
        dbias = reference::conv2d_backward_bias_reference(c, values(gradient));
    }
    /// Winograd transforms lose precision by cancellation: the error is relative to the norm.
    [[nodiscard]] std::string norm_error(const Tensor& result, const std::vector<double>& expected) const {
        const auto got = values(result);
        double error = 0, norm = 0;
        for (std::size_t i = 0; i < got.size(); ++i)
            error += (got[i] - expected[i]) * (got[i] - expected[i]), norm += expected[i] * expected[i];
        return std::sqrt(error) <= (dtype_ == DType::f64 ? 1e-14 : 1e-5) * std::sqrt(norm)
                   ? ""
                   : fmt::format("an error of {} relative to the norm", std::sqrt(error / norm));
    }

    DType dtype_;
    Tensor x, weight, bias, gradient;
    std::vector<double> out, biased_out, dx, dweight, dbias;
};

/// One strategy in one kernel style, with each variant if requested.
void examine_strategy(DoctorRun& e, const ops::Conv2dStrategy& strategy, KernelStyle style, Conv2dDirection direction,
                      DType dtype, Convolution& convolution, StrategyCounts& counts) {
    const reference::Conv2dCase& c = convolution.c;
    const ops::Conv2dProblem problem = ops::conv2d_problem("doctor", direction, dtype, style, c.x, c.weight, c.options);
    counts.expect(strategy.name());
    if (!strategy.is_applicable(problem, e.device())) return;
    counts.count(strategy.name());
    const ops::KernelStyleScope scope(style);
    std::vector<std::string> variants{""};
    if (c.name == "odd")
        for (const std::string& variant : strategy.variants(problem, e.device()))
            if (!variant.empty()) variants.push_back(variant);
    for (const std::string& variant : variants)
        e.check_style(style,
                      fmt::format("{}{}{}, {}, {}: {}, {}", strategy.name(), variant.empty() ? "" : " ", variant,
                                  name_of(direction), name_of(style), c.name, declivity::name_of(dtype)),
                      [&] { return convolution.examine(strategy, problem, variant); });
}

/// A layer as in a network: with a bias, relu and all gradients.
std::string layer(const reference::Conv2dCase& c) {
    Tensor x = random_tensor(c.x, 1).set_requires_grad(), weight = random_tensor(c.weight, 2).set_requires_grad(),
           bias = random_tensor({c.weight[0]}, 3).set_requires_grad();
    const Tensor g = random_tensor(c.out(), 4);
    const Tensor y = relu(conv2d(x, weight, bias, {.padding = {1, 1}}));
    y.backward(g);
    auto expected = reference::conv2d_reference(c, values(x), values(weight), values(bias)), slope = values(g);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] <= 0) slope[i] = expected[i] = 0;
    }
    const std::string first = difference(y, expected, c.forward_tolerance(DType::f32));
    if (!first.empty()) return first;
    const std::string x_error = difference(
        x.grad(), reference::conv2d_backward_input_reference(c, slope, values(weight)), c.input_tolerance(DType::f32));
    if (!x_error.empty()) return "gradient of x: " + x_error;
    const std::string weight_error =
        difference(weight.grad(), reference::conv2d_backward_weights_reference(c, values(x), slope),
                   c.weights_tolerance(DType::f32));
    if (!weight_error.empty()) return "gradient of the weight: " + weight_error;
    const std::string bias_error =
        difference(bias.grad(), reference::conv2d_backward_bias_reference(c, slope), c.weights_tolerance(DType::f32));
    return bias_error.empty() ? "" : "gradient of the bias: " + bias_error;
}

}  // namespace

void examine_conv2d(DoctorRun& e) {
    // Sizes that are no multiples of a tile, and sizes for which each strategy is applicable.
    const std::vector<reference::Conv2dCase> cases{
        {"3x3", {2, 3, 9, 9}, {5, 3, 3, 3}, {.padding = {1, 1}}},
        {"1x1", {3, 7, 5, 6}, {9, 7, 1, 1}},
        {"stride 2", {2, 16, 17, 20}, {24, 16, 3, 2}, {.stride = {2, 2}, .padding = {1, 0}}},
        {"groups, stride, dilation",
         {1, 4, 9, 9},
         {6, 2, 2, 3},
         {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}, .groups = 2}},
        {"depthwise", {2, 5, 6, 7}, {5, 1, 3, 3}, {.padding = {1, 1}, .groups = 5}},
        {"depthwise, stride 2", {2, 37, 14, 14}, {37, 1, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 37}},
        {"3x3, 32 to 64", {2, 32, 14, 14}, {64, 32, 3, 3}, {.padding = {1, 1}}},
        {"5x5", {3, 6, 14, 14}, {16, 6, 5, 5}},
        {"odd", {3, 5, 13, 11}, {35, 5, 3, 3}, {.padding = {1, 2}}}};
    StrategyCounts counts;
    for (const DType dtype : {DType::f32, DType::f64}) {
        if (dtype == DType::f64 && !e.device().info().fp64) continue;
        for (const reference::Conv2dCase& c : cases) {
            if (dtype == DType::f64 && c.name != "3x3" && c.name != "depthwise") continue;
            Convolution convolution(c, dtype);
            for (const Conv2dDirection direction :
                 {Conv2dDirection::forward, Conv2dDirection::backward_input, Conv2dDirection::backward_weights})
                for (const KernelStyle style : kKernelStyles)
                    for (const ops::Conv2dStrategy* strategy : ops::conv2d_strategies())
                        examine_strategy(e, *strategy, style, direction, dtype, convolution, counts);
        }
    }
    counts.report(e);
    for (const KernelStyle style : kKernelStyles)
        e.check_style(style, fmt::format("fused bias and relu with gradients, {}", name_of(style)), [&] {
            const ops::KernelStyleScope scope(style);
            return layer(cases[0]);
        });
}

}  // namespace declivity::tools::doctor
