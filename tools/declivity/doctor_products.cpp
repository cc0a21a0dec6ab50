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
    [[nodiscard]] std::string beside() const {
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
        detail::parse_environment_again();
    }
    ~Environment() {
        if (before_) setenv(name_, before_->c_str(), 1);
        else unsetenv(name_);
        detail::parse_environment_again();
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

/// Tracks the strategies of this section, to report those that are applicable to none of the cases.
class Served {
  public:
    void expect(std::string_view name) { served_.try_emplace(std::string(name), 0); }
    void count(std::string_view name) { ++served_[std::string(name)]; }
    void say(Examination& e) const {
        for (const auto& [name, count] : served_)
            if (count == 0) e.skip(name, "not applicable to any case on this device");
    }

  private:
    std::map<std::string, int> served_;
};

/// Operands of a case and the expected result.
struct Product {
    reference::MatmulOperand a, b;
    std::vector<double> wanted;
};

Product product_of(const reference::MatmulCase& one, DType dtype) {
    auto a = reference::matmul_operand(one.a, one.batch, one.m, one.k, 1, dtype),
         b = reference::matmul_operand(one.b, one.batch, one.k, one.n, 2, dtype);
    auto wanted = reference::matmul_reference(one, a.elements, b.elements);
    return {std::move(a), std::move(b), std::move(wanted)};
}

/// One strategy in one kernel style, with each variant if requested.
void examine_strategy(Examination& e, const ops::MatmulStrategy& strategy, KernelStyle style,
                      const reference::MatmulCase& one, DType dtype, const Product& in, bool variants, Served& served) {
    const Device device = e.device();
    const std::string_view name = strategy.name();
    const Guarded result(Shape{one.batch, one.m, one.n}, dtype);
    const ops::KernelStyleScope scope(style);
    const ops::MatmulProblem problem = ops::matmul_problem(in.a.view, in.b.view);
    served.expect(name);
    if (!strategy.is_applicable(problem, device)) return;
    served.count(name);
    std::vector<std::string> ways{""};
    if (variants)
        for (const std::string& variant : strategy.variants(problem, device))
            if (!variant.empty()) ways.push_back(variant);
    for (const std::string& way : ways)
        e.check_form(
            style,
            fmt::format("{}{}{}: {}, {}", name, way.empty() ? "" : " ", way, one.name(), declivity::name_of(dtype)),
            [&] {
                ops::fill(result.out(), NAN);
                const ops::View out = result.out();
                strategy.run(problem, {in.a.view, in.b.view, out}, way);
                const std::string wrong = difference(result.tensor(), in.wanted, one.allowed(dtype));
                return wrong.empty() ? result.beside() : wrong;
            });
}

void examine_products(Examination& e, const reference::MatmulCase& one, DType dtype, bool variants, Served& served) {
    std::optional<Product> in;
    for (const KernelStyle style : kKernelStyles)
        for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
            const std::string_view name = strategy->name();
            // Strategies that do not depend on the kernel style.
            if ((name == "clblast" || name == "register_tiled") && style != e.device().kernel_style()) continue;
            // Its first product of a type compiles for seconds.
            if (name == "clblast" && dtype != DType::f32) continue;
            // By the device's default strategy, since no check uses it.
            if (!in) in = product_of(one, dtype);
            examine_strategy(e, *strategy, style, one, dtype, *in, variants, served);
        }
}

/// A product by a given strategy with its epilogue: bias, residual and relu, or a sigmoid.
std::string with_epilogue(const ops::MatmulStrategy& strategy, const reference::MatmulCase& one,
                          const reference::MatmulOperand& a, const reference::MatmulOperand& b, const Guarded& result,
                          bool relu) {
    const auto apply = [](ops::Function function, std::initializer_list<ops::Expression> inputs) {
        return ops::Expression::apply(function, std::vector<ops::Expression>(inputs));
    };
    const Environment named("DECLIVITY_MATMUL", std::string(strategy.name()));
    const Shape shape{one.batch, one.m, one.n};
    const Tensor bias = random_tensor({one.n}, 3), residual = random_tensor(shape, 5);
    const ops::Expression x = ops::Expression::operator_result(DType::f32, shape);
    const ops::Expression epilogue =
        relu ? apply(ops::Function::relu,
                     {apply(ops::Function::add, {residual.view(), apply(ops::Function::add, {x, bias.view()})})})
             : apply(ops::Function::sigmoid, {x});
    ops::matmul(a.view, b.view, result.out(), ops::epilogue_of(epilogue));
    auto wanted = reference::matmul_reference(one, a.elements, b.elements);
    const auto added = values(bias), other = values(residual);
    for (std::size_t i = 0; i < wanted.size(); ++i)
        wanted[i] =
            relu ? std::max(0.0, wanted[i] + added[i % added.size()] + other[i]) : 1 / (1 + std::exp(-wanted[i]));
    const std::string wrong =
        difference(result.tensor(), wanted, reference::sum_tolerance(DType::f32, static_cast<double>(one.k + 2)));
    return wrong.empty() ? result.beside() : wrong;
}

/// Called like by the library's functions: with a fused epilogue, if the strategy supports it.
void examine_epilogue(Examination& e, const ops::MatmulStrategy& strategy, KernelStyle style,
                      const reference::MatmulCase& one, bool relu) {
    const auto a = reference::matmul_operand(one.a, one.batch, one.m, one.k, 1, DType::f32),
               b = reference::matmul_operand(one.b, one.batch, one.k, one.n, 2, DType::f32);
    const Guarded result({one.batch, one.m, one.n}, DType::f32);
    const ops::KernelStyleScope scope(style);
    if (!strategy.is_applicable(ops::matmul_problem(a.view, b.view), e.device())) return;
    e.check_form(style,
                 fmt::format("{}, {}, {}: {}", strategy.name(),
                             relu ? "with bias, residual and relu" : "with a sigmoid", name_of(style), one.name()),
                 [&] { return with_epilogue(strategy, one, a, b, result, relu); });
}

}  // namespace

void examine_matmul(Examination& e) {
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
    Served served;
    for (const reference::MatmulCase& one : cases) examine_products(e, one, DType::f32, one.m == 73, served);
    for (const DType dtype : {DType::f16, DType::bf16}) examine_products(e, cases[9], dtype, false, served);
    if (device.info().fp64)
        for (const reference::MatmulCase& one : {cases[7], cases[9]})
            examine_products(e, one, DType::f64, false, served);
    served.say(e);
    for (const KernelStyle style : kKernelStyles)
        for (const ops::MatmulStrategy* strategy : ops::matmul_strategies()) {
            if (strategy->name() == "clblast") continue;
            for (const reference::MatmulCase& one :
                 std::vector<reference::MatmulCase>{{1, 3, 8, 40, OperandStrides::dense, OperandStrides::transposed},
                                                    {1, 9, 50, 1100, OperandStrides::dense, OperandStrides::transposed},
                                                    {3, 16, 96, 3},
                                                    {1, 70, 65, 33}})
                for (const bool relu : {true, false}) examine_epilogue(e, *strategy, style, one, relu);
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
    Convolution(reference::Conv2dCase one, DType dtype) : c(std::move(one)), dtype_(dtype) {}

    /// @return what is wrong with the strategy's result
    std::string examine(const ops::Conv2dStrategy& strategy, const ops::Conv2dProblem& problem,
                        const std::string& variant) {
        make();
        const auto allowed = [&](const Tensor& result, const std::vector<double>& wanted,
                                 const reference::Tolerance& most) {
            return strategy.name().starts_with("winograd") ? by_norm(result, wanted) : difference(result, wanted, most);
        };
        switch (problem.direction) {
            case Conv2dDirection::forward: {
                const Guarded plain(c.out(), dtype_), biased(c.out(), dtype_);
                strategy.run(problem, {x.view(), weight.view(), plain.out()}, variant);
                if (const std::string wrong =
                        allowed(plain.tensor(), out, c.forward_tolerance(dtype_)) + plain.beside();
                    !wrong.empty())
                    return wrong;
                strategy.run(problem, {x.view(), weight.view(), biased.out(), bias.view()}, variant);
                const std::string wrong =
                    allowed(biased.tensor(), biased_out, c.forward_tolerance(dtype_)) + biased.beside();
                return wrong.empty() ? "" : "with a bias: " + wrong;
            }
            case Conv2dDirection::backward_input: {
                const Guarded result(c.x, dtype_);
                strategy.run(problem, {result.out(), weight.view(), gradient.view()}, variant);
                return allowed(result.tensor(), dx, c.input_tolerance(dtype_)) + result.beside();
            }
            case Conv2dDirection::backward_weights: {
                const Guarded result(c.weight, dtype_), for_bias({c.weight[0]}, dtype_);
                const bool gives_bias = strategy.gives_bias_gradient();
                strategy.run(problem,
                             {x.view(), result.out(), gradient.view(),
                              gives_bias ? std::optional(for_bias.out()) : std::nullopt},
                             variant);
                const std::string wrong =
                    allowed(result.tensor(), dweight, c.weights_tolerance(dtype_)) + result.beside();
                if (!wrong.empty() || !gives_bias) return wrong;
                const std::string of_bias =
                    difference(for_bias.tensor(), dbias, c.weights_tolerance(dtype_)) + for_bias.beside();
                return of_bias.empty() ? "" : "gradient of the bias: " + of_bias;
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
    [[nodiscard]] std::string by_norm(const Tensor& result, const std::vector<double>& wanted) const {
        const auto got = values(result);
        double error = 0, norm = 0;
        for (std::size_t i = 0; i < got.size(); ++i)
            error += (got[i] - wanted[i]) * (got[i] - wanted[i]), norm += wanted[i] * wanted[i];
        return std::sqrt(error) <= (dtype_ == DType::f64 ? 1e-14 : 1e-5) * std::sqrt(norm)
                   ? ""
                   : fmt::format("an error of {} relative to the norm", std::sqrt(error / norm));
    }

    DType dtype_;
    Tensor x, weight, bias, gradient;
    std::vector<double> out, biased_out, dx, dweight, dbias;
};

/// One strategy in one kernel style, with each variant if requested.
void examine_strategy(Examination& e, const ops::Conv2dStrategy& strategy, KernelStyle style, Conv2dDirection direction,
                      DType dtype, Convolution& convolution, Served& served) {
    const reference::Conv2dCase& c = convolution.c;
    const ops::Conv2dProblem problem = ops::conv2d_problem("doctor", direction, dtype, style, c.x, c.weight, c.options);
    served.expect(strategy.name());
    if (!strategy.is_applicable(problem, e.device())) return;
    served.count(strategy.name());
    const ops::KernelStyleScope scope(style);
    std::vector<std::string> variants{""};
    if (c.name == "odd")
        for (const std::string& variant : strategy.variants(problem, e.device()))
            if (!variant.empty()) variants.push_back(variant);
    for (const std::string& variant : variants)
        e.check_form(style,
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
    auto wanted = reference::conv2d_reference(c, values(x), values(weight), values(bias)), slope = values(g);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] <= 0) slope[i] = wanted[i] = 0;
    }
    const std::string first = difference(y, wanted, c.forward_tolerance(DType::f32));
    if (!first.empty()) return first;
    const std::string of_x = difference(x.grad(), reference::conv2d_backward_input_reference(c, slope, values(weight)),
                                        c.input_tolerance(DType::f32));
    if (!of_x.empty()) return "gradient of x: " + of_x;
    const std::string of_weight =
        difference(weight.grad(), reference::conv2d_backward_weights_reference(c, values(x), slope),
                   c.weights_tolerance(DType::f32));
    if (!of_weight.empty()) return "gradient of the weight: " + of_weight;
    const std::string of_bias =
        difference(bias.grad(), reference::conv2d_backward_bias_reference(c, slope), c.weights_tolerance(DType::f32));
    return of_bias.empty() ? "" : "gradient of the bias: " + of_bias;
}

}  // namespace

void examine_conv2d(Examination& e) {
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
    Served served;
    for (const DType dtype : {DType::f32, DType::f64}) {
        if (dtype == DType::f64 && !e.device().info().fp64) continue;
        for (const reference::Conv2dCase& c : cases) {
            if (dtype == DType::f64 && c.name != "3x3" && c.name != "depthwise") continue;
            Convolution convolution(c, dtype);
            for (const Conv2dDirection direction :
                 {Conv2dDirection::forward, Conv2dDirection::backward_input, Conv2dDirection::backward_weights})
                for (const KernelStyle style : kKernelStyles)
                    for (const ops::Conv2dStrategy* strategy : ops::conv2d_strategies())
                        examine_strategy(e, *strategy, style, direction, dtype, convolution, served);
        }
    }
    served.say(e);
    for (const KernelStyle style : kKernelStyles)
        e.check_form(style, fmt::format("fused bias and relu with gradients, {}", name_of(style)), [&] {
            const ops::KernelStyleScope scope(style);
            return layer(cases[0]);
        });
}

}  // namespace declivity::tools::doctor
