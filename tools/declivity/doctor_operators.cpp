// The library's operators except products and convolutions, in both kernel styles, compared with plain C++.
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/ops/pool2d.hpp>
#include <declivity/ops/reduce.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ops/support/work_split.hpp>
#include <reference/batch_norm_cases.hpp>
#include <reference/cross_entropy_cases.hpp>
#include <reference/elementwise_cases.hpp>
#include <reference/pool2d_cases.hpp>
#include <reference/reduce_cases.hpp>
#include <reference/softmax_cases.hpp>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"
#include "ops/engine/expression.hpp"

namespace declivity::tools::doctor {
namespace {

using reference::difference;
using reference::random_tensor;
using reference::values;

/// Adds a check for each kernel style.
template <class Run>
void for_kernel_styles(DoctorRun& e, const std::string& name, Run&& run) {
    for (const KernelStyle style : {KernelStyle::simd, KernelStyle::simt})
        e.check_style(style, fmt::format("{}, {} kernels", name, style == KernelStyle::simd ? "simd" : "simt"),
                      [&]() -> std::string {
                          const ops::KernelStyleScope scope(style);
                          return run(style);
                      });
}

/// Collects the first of several differences with its description.
class First {
  public:
    void add(const char* function, const std::string& text) {
        if (text_.empty() && !text.empty()) text_ = fmt::format("{}: {}", function, text);
    }
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

}  // namespace

void examine_elementwise(DoctorRun& e) {
    const Device device = e.device();
    const std::int64_t count = 1009;
    const auto run = [&](ops::Function function, DType dtype) -> std::string {
        const reference::ElementwiseCase* known = reference::case_of(function);
        if (known == nullptr) return "there is no reference";
        reference::ElementwiseCase test_case = *known;
        if (!is_floating(dtype))
            for (double& parameter : test_case.parameters) parameter = std::trunc(parameter);
        const ops::FunctionInfo& row = ops::info(function);
        std::vector<std::vector<double>> in;
        std::vector<ops::Expression> inputs;
        for (int i = 0; i < row.inputs; ++i) {
            const DType type = row.domain == ops::Domain::choose && i == 0 ? DType::boolean : dtype;
            in.push_back(reference::inputs_for(test_case, type, count, static_cast<std::uint64_t>(i) + 1));
            inputs.emplace_back(reference::tensor(in.back(), {count}, type).view());
        }
        return difference(
            Tensor(ops::evaluate(ops::Expression::apply(function, inputs, reference::scalars(test_case.parameters)),
                                 device)),
            reference::expected(test_case, dtype, in), reference::allowed(test_case, dtype));
    };
    for (const ops::Function function : reference::all_functions()) {
        const ops::Domain domain = ops::info(function).domain;
        const bool power = function == ops::Function::pow || function == ops::Function::pow_scalar;
        std::vector<DType> types;
        if (domain == ops::Domain::logic) types.push_back(DType::boolean);
        else if (domain != ops::Domain::integer && domain != ops::Domain::shift) types.push_back(DType::f32);
        if (function == ops::Function::add || function == ops::Function::gelu)
            types.insert(types.end(), {DType::f16, DType::bf16});
        if (domain != ops::Domain::real && domain != ops::Domain::logic && !power) types.push_back(DType::i32);
        if (function == ops::Function::add || function == ops::Function::mul)
            types.insert(types.end(),
                         {DType::i64, DType::i8, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64});
        if (device.info().fp64 &&
            (function == ops::Function::add || function == ops::Function::exp || function == ops::Function::tanh))
            types.push_back(DType::f64);
        for (const DType dtype : types)
            for_kernel_styles(e, fmt::format("{} of {}", ops::info(function).name, name_of(dtype)),
                              [&](KernelStyle) { return run(function, dtype); });
    }
    for_kernel_styles(e, "a fused chain of functions with a broadcast operand", [&](KernelStyle) {
        const Shape shape{7, 5, 33};
        const Tensor a = random_tensor(shape, 1), b = random_tensor({33}, 2), c = random_tensor({7, 1, 1}, 3);
        const Tensor y = tanh(a * b + c) * sigmoid(a - c) + relu(b * 2.0 - a) / (square(c) + 1.0);
        const auto av = values(a), bv = values(b), cv = values(c);
        std::vector<double> expected;
        for (std::size_t i = 0; i < av.size(); ++i) {
            const double p = av[i], q = bv[i % 33], r = cv[i / 165];
            expected.push_back(std::tanh(p * q + r) / (1 + std::exp(r - p)) + std::max(0.0, 2 * q - p) / (r * r + 1));
        }
        return difference(y, expected, {4e-6, 4e-6});
    });
    for_kernel_styles(e, "the gradient of a chain of functions", [&](KernelStyle) {
        Tensor x = random_tensor({1001}, 4).set_requires_grad();
        sum(gelu(x) * exp(x) + silu(x)).backward();
        std::vector<double> expected;
        for (const double v : values(x)) {
            const double phi = 0.5 * std::erfc(-v / std::numbers::sqrt2),
                         density = std::exp(-v * v / 2) / std::sqrt(2 * std::numbers::pi), s = 1 / (1 + std::exp(-v));
            expected.push_back((phi + v * density + v * phi) * std::exp(v) + s * (1 + v * (1 - s)));
        }
        return difference(x.grad(), expected, {1e-5, 1e-5});
    });
}

namespace {

/// A permuted copy of a dense tensor: maps the result index i to the source index.
struct PermutedCase {
    Shape shape;
    Dims order;
    std::int64_t step;
};

std::string permuted(const PermutedCase& test_case, DType dtype) {
    Tensor x = random_tensor(test_case.shape, 5, dtype, is_floating(dtype) ? -1 : 0, is_floating(dtype) ? 1 : 120);
    const auto source = values(x);
    for (int axis = 0; test_case.step > 1 && axis < x.rank(); ++axis)
        x = slice(x, axis, 0, x.size(axis), test_case.step);
    const Tensor y = permute(x, test_case.order).clone();
    const Strides strides = dense_strides(test_case.shape);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < y.numel(); ++i) {
        std::int64_t rest = i, at = 0;
        for (int axis = y.rank() - 1; axis >= 0; --axis) {
            at += rest % y.size(axis) * test_case.step * strides[static_cast<int>(test_case.order[axis])];
            rest /= y.size(axis);
        }
        expected.push_back(source[static_cast<std::size_t>(at)]);
    }
    return difference(y, expected, {});
}

std::string concat_pad_expand() {
    const Tensor a = random_tensor({5, 7}, 1), b = random_tensor({5, 12}, 2);
    const auto av = values(a), bv = values(b);
    std::vector<double> concatenated, padded(9 * 13, 0.5), expanded;
    for (std::size_t row = 0; row < 5; ++row) {
        concatenated.insert(concatenated.end(), av.begin() + static_cast<std::ptrdiff_t>(7 * row),
                            av.begin() + static_cast<std::ptrdiff_t>(7 * row + 7));
        concatenated.insert(concatenated.end(), bv.begin() + static_cast<std::ptrdiff_t>(12 * row),
                            bv.begin() + static_cast<std::ptrdiff_t>(12 * row + 12));
        for (std::size_t column = 0; column < 7; ++column) padded[(row + 1) * 13 + column + 2] = av[7 * row + column];
    }
    for (int i = 0; i < 3; ++i) expanded.insert(expanded.end(), av.begin(), av.end());
    First first;
    first.add("concat", difference(concat({a, b}, 1), concatenated, {}));
    first.add("pad", difference(pad(a, {1, 2}, {3, 4}, 0.5), padded, {}));
    first.add("expand", difference(expand(reshape(a, {1, 5, 7}), {3, 5, 7}).clone(), expanded, {}));
    return first.text();
}

std::string casts(const std::vector<DType>& types) {
    First first;
    for (const DType from : types)
        for (const DType to : types) {
            const bool integral = !is_floating(from),
                       has_unsigned = !dtype_info(to).is_signed || !dtype_info(from).is_signed;
            const Tensor x = random_tensor({301}, 6, from, has_unsigned ? 0 : -100, from == DType::boolean ? 2 : 100);
            auto expected = values(x);
            for (double& v : expected)
                v = reference::as_type(integral || is_floating(to) || to == DType::boolean ? v : std::trunc(v), to);
            first.add(fmt::format("{} to {}", name_of(from), name_of(to)).c_str(), difference(x.to(to), expected, {}));
        }
    return first.text();
}

}  // namespace

void examine_copies(DoctorRun& e) {
    const std::vector<PermutedCase> cases{{{67, 130}, {1, 0}, 1},
                                          {{3, 5, 33, 40}, {0, 2, 3, 1}, 1},
                                          {{3, 33, 40, 5}, {0, 3, 1, 2}, 1},
                                          {{9, 31, 17}, {2, 1, 0}, 1},
                                          {{6, 35, 21}, {1, 0, 2}, 2},
                                          {{6, 35, 21}, {0, 2, 1}, 3},
                                          {{2, 3, 4, 5, 6}, {4, 2, 0, 3, 1}, 1},
                                          {{1, 257}, {1, 0}, 1},
                                          {{1000, 3}, {1, 0}, 1}};
    for (const PermutedCase& test_case : cases)
        for (const DType dtype : {DType::f32, DType::u8, DType::i64}) {
            if (dtype != DType::f32 && test_case.step > 1) continue;
            for_kernel_styles(e,
                              fmt::format("{} in the order {} with strides {}, {}", test_case.shape.str(),
                                          fmt::join(test_case.order, " "), test_case.step, name_of(dtype)),
                              [&](KernelStyle) { return permuted(test_case, dtype); });
        }
    for_kernel_styles(e, "concatenation, padding, broadcast", [&](KernelStyle) { return concat_pad_expand(); });
    std::vector<DType> types;
    for (const DType type : kDTypes)
        if (type != DType::f64 || e.device().info().fp64) types.push_back(type);
    for_kernel_styles(e, "casts between all types", [&](KernelStyle) { return casts(types); });
}

namespace {

constexpr std::uint64_t kSeed = 0x123456789abcdef;

std::array<std::uint32_t, 2> low_and_high(std::uint64_t v) {
    return {static_cast<std::uint32_t>(v), static_cast<std::uint32_t>(v >> 32)};
}

/// The i-th word of the random numbers that begin at block `offset`.
std::uint32_t word(std::uint64_t offset, std::size_t i) {
    const std::uint64_t block = offset + i / 4;
    return philox4x32_10({low_and_high(block)[0], low_and_high(block)[1], 0, 0}, low_and_high(kSeed))[i % 4];
}

std::string philox_blocks(const Device& device) {
    const Kernel kernel(device, {"doctor_math.cl", "doctor_philox_words", {{"REAL", "float"}}});
    const std::uint64_t first = 0x00000003ffffff00, stream = 0x0123456789abcdef, key = 0xfedcba9876543210;
    const Buffer out(device, 1024 * 16);
    launch(kernel, {{1024}}, {first, stream, key, argument<std::uint32_t>(out)});
    std::vector<std::uint32_t> expected;
    for (std::uint64_t i = 0; i < 1024; ++i)
        for (const std::uint32_t value : philox4x32_10({low_and_high(first + i)[0], low_and_high(first + i)[1],
                                                        low_and_high(stream)[0], low_and_high(stream)[1]},
                                                       low_and_high(key)))
            expected.push_back(value);
    return first_difference(to_host<std::uint32_t>(out, expected.size()), expected);
}

std::string uniform_numbers(const Device& device) {
    First first;
    for (const std::int64_t size : {1, 2, 3, 5, 1000, 8193, 70001}) {
        const std::uint64_t offset = size % 2 == 0 ? 5 : 0xfffffffd;
        set_random_state(device, {kSeed, offset});
        std::vector<double> expected;
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
            expected.push_back(unit_uniform(word(offset, i)));
        first.add(fmt::format("{} of them", size).c_str(), difference(uniform({size}), expected, {}));
    }
    return first.text();
}

std::string normal_numbers(const Device& device) {
    set_random_state(device, {kSeed, 7});
    const auto unit = [](std::uint32_t w) { return (w + 0.5) * 0x1p-32; };
    std::vector<double> expected;
    for (std::size_t i = 0; i < 8192; i += 2) {
        const double radius = std::sqrt(-2 * std::log(unit(word(7, i)))),
                     angle = 2 * std::numbers::pi * 0x1p-32 * word(7, i + 1);
        expected.push_back(radius * std::cos(angle)), expected.push_back(radius * std::sin(angle));
    }
    return difference(normal({8192}), expected, {device.info().type == DeviceType::cpu ? 1e-6 : 3e-6, 0});
}

std::string choices(const Device& device) {
    First first;
    set_random_state(device, {kSeed, 3});
    std::vector<double> expected;
    for (std::size_t i = 0; i < 1003; ++i) expected.push_back(unit_uniform(word(3, i)) < 0.25F ? 1 : 0);
    first.add("bernoulli", difference(bernoulli({1003}, 0.25), expected, {}));
    Tensor x = random_tensor({4001}, 1, DType::f32, 1, 2).set_requires_grad();
    const Tensor y = dropout(x, 0.25);
    sum(y).backward();
    const auto in = values(x), out = values(y), gradient = values(x.grad());
    int kept = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool keeps = out[i] != 0;
        kept += keeps ? 1 : 0;
        if (std::abs(out[i] - (keeps ? in[i] / 0.75 : 0)) > 1e-6 ||
            std::abs(gradient[i] - (keeps ? 1 / 0.75 : 0)) > 1e-6)
            first.add("dropout",
                      fmt::format("element {} of {} becomes {}, its gradient {}", i, in[i], out[i], gradient[i]));
    }
    if (std::abs(kept - 3000.75) > 200)
        first.add("dropout", fmt::format("{} of 4001 were kept with probability 0.25", kept));
    return first.text();
}

}  // namespace

void examine_random(DoctorRun& e) {
    const Device device = e.device();
    e.check("blocks of Philox, bit for bit", [&] { return philox_blocks(device); });
    for_kernel_styles(e, "uniform numbers, bit for bit, across 2^32 blocks",
                      [&](KernelStyle) { return uniform_numbers(device); });
    for_kernel_styles(e, "normal numbers", [&](KernelStyle) { return normal_numbers(device); });
    for_kernel_styles(e, "Bernoulli choices, dropout and its gradient", [&](KernelStyle) { return choices(device); });
}

void examine_reduce(DoctorRun& e) {
    int number = 0;
    for (const reference::ReduceCase& test_case : reference::reduce_cases()) {
        ++number;
        if (test_case.large && test_case.name != "a million" && test_case.name != "ten columns of a hundred thousand")
            continue;
        for (const ops::Reduce kind : {ops::Reduce::sum, ops::Reduce::mean, ops::Reduce::max, ops::Reduce::min}) {
            if ((kind == ops::Reduce::mean || kind == ops::Reduce::min) && number % 4 != 0) continue;
            for_kernel_styles(e, fmt::format("{} of {}", ops::name_of(kind), test_case.name), [&](KernelStyle) {
                const Tensor x = test_case.input(DType::f32);
                return difference(Tensor(ops::reduce(kind, x.view(), test_case.axes, false)),
                                  reference::reference_reduce(kind, values(x), test_case.shape, test_case.axes),
                                  test_case.tolerance(kind, DType::f32));
            });
        }
    }
    const reference::ReduceCase rows{.name = "rows", .shape = {5, 95}, .axes = {1}},
        columns{.name = "columns", .shape = {9, 5}, .axes = {0}};
    for (const reference::ReduceCase& test_case : {rows, columns})
        for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::f16, DType::bf16})
            for_kernel_styles(e, fmt::format("sum of {} of {}", test_case.name, name_of(dtype)), [&](KernelStyle) {
                const Tensor x = test_case.input(dtype, 2, is_floating(dtype) ? -1 : 0, is_floating(dtype) ? 2 : 120);
                reference::Tolerance allowed =
                    test_case.tolerance(ops::Reduce::sum, is_floating(dtype) ? DType::f32 : dtype);
                if (is_floating(dtype))
                    allowed.relative += dtype == DType::f16 ? 0x1.01p-11 : 0x1.01p-8, allowed.absolute += 0x1p-25;
                return difference(
                    Tensor(ops::reduce(ops::Reduce::sum, x.view(), test_case.axes, false)),
                    reference::reference_reduce(ops::Reduce::sum, values(x), test_case.shape, test_case.axes), allowed);
            });
    for (const reference::ArgmaxCase& test_case : reference::argmax_cases()) {
        if (test_case.large) continue;
        for_kernel_styles(
            e, fmt::format("argmax of {} along {}", test_case.shape.str(), test_case.axis), [&](KernelStyle) {
                const Tensor x = random_tensor(test_case.shape, 9);
                return difference(argmax(x, test_case.axis),
                                  reference::reference_argmax(values(x), test_case.shape, test_case.axis), {});
            });
    }
    for_kernel_styles(e, "a chain of functions fused into a sum", [&](KernelStyle) {
        const Tensor a = random_tensor({37, 130}, 1), b = random_tensor({130}, 2);
        const auto av = values(a), bv = values(b);
        std::vector<double> expected(37, 0);
        for (std::size_t i = 0; i < av.size(); ++i) expected[i / 130] += (av[i] - bv[i % 130]) * (av[i] - bv[i % 130]);
        return difference(sum(square(a - b), {1}), expected, {1e-4, 1e-5});
    });
}

namespace {

Tensor backward_of(const Tensor& y, Tensor& x, const Tensor& g) {
    x.zero_grad();
    y.backward(g);
    return x.grad();
}

std::string softmax_rows(const reference::SoftmaxCase& test_case) {
    Tensor x = random_tensor(test_case.shape, 1, DType::f32, -8, 8).set_requires_grad();
    const Tensor g = random_tensor(test_case.shape, 2);
    const auto in = values(x), gradient = values(g);
    const Tensor y = softmax(x, test_case.axis), log_y = log_softmax(x, test_case.axis);
    First first;
    first.add("softmax", difference(y, reference::reference_softmax(in, test_case.shape, test_case.axis),
                                    test_case.tolerance(DType::f32)));
    first.add("log-softmax", difference(log_y, reference::reference_log_softmax(in, test_case.shape, test_case.axis),
                                        test_case.tolerance(DType::f32, 8)));
    first.add("its gradient",
              difference(backward_of(y, x, g),
                         reference::reference_softmax_backward(false, in, gradient, test_case.shape, test_case.axis),
                         test_case.tolerance(DType::f32)));
    first.add("the gradient of log-softmax",
              difference(backward_of(log_y, x, g),
                         reference::reference_softmax_backward(true, in, gradient, test_case.shape, test_case.axis),
                         test_case.tolerance(DType::f32, 8)));
    return first.text();
}

std::string cross_entropy_rows(const reference::CrossEntropyCase& test_case) {
    const auto labels = test_case.labels();
    Tensor x = random_tensor({test_case.rows, test_case.classes}, 1, DType::f32, -8, 8).set_requires_grad();
    const auto expected = reference::reference_cross_entropy(values(x), test_case.classes, labels, test_case.options);
    const Tensor loss = cross_entropy(x, Tensor::from(labels, {test_case.rows}), test_case.options);
    First first;
    first.add("the loss", difference(loss, expected.loss, test_case.tolerance(DType::f32)));
    loss.backward(ones_like(loss));
    first.add("its gradient", difference(x.grad(), expected.gradient, test_case.tolerance(DType::f32)));
    return first.text();
}

std::string batch_normalisation(const reference::BatchNormCase& test_case, bool training) {
    const Shape channels{test_case.channels()};
    Tensor x = random_tensor(test_case.shape, 1, DType::f32, -1, 3).set_requires_grad();
    Tensor weight = random_tensor(channels, 2, DType::f32, 0.5, 2).set_requires_grad(),
           bias = random_tensor(channels, 3).set_requires_grad();
    Tensor mean = random_tensor(channels, 5), variance = random_tensor(channels, 6, DType::f32, 0.5, 1.5);
    const Tensor g = random_tensor(test_case.shape, 4);
    reference::BatchNormReference running;
    running.mean = values(mean), running.variance = values(variance);
    const auto expected = reference::reference_batch_norm(test_case, values(x), values(weight), values(bias), values(g),
                                                          1e-5, training ? nullptr : &running);
    const Tensor y = batch_norm(x, weight, bias, mean, variance, {.training = training, .momentum = 0.2});
    const double sums = std::sqrt(static_cast<double>(test_case.terms())),
                 terms = static_cast<double>(test_case.terms());
    First first;
    first.add("the result", difference(y, expected.y, test_case.tolerance(DType::f32, 2)));
    y.backward(g);
    first.add("x's gradient", difference(x.grad(), expected.dx, test_case.tolerance(DType::f32, 2)));
    first.add("the weight's gradient",
              difference(weight.grad(), expected.dweight, test_case.tolerance(DType::f32, sums)));
    first.add("the bias' gradient", difference(bias.grad(), expected.dbias, test_case.tolerance(DType::f32, sums)));
    auto new_mean = running.mean, new_variance = running.variance;
    for (std::size_t i = 0; training && i < new_mean.size(); ++i) {
        new_mean[i] = 0.8 * new_mean[i] + 0.2 * expected.mean[i];
        new_variance[i] = 0.8 * new_variance[i] + 0.2 * expected.variance[i] * terms / (terms - 1);
    }
    first.add("the running mean", difference(mean, new_mean, test_case.tolerance(DType::f32)));
    first.add("the running variance", difference(variance, new_variance, test_case.tolerance(DType::f32)));
    return first.text();
}

}  // namespace

void examine_rows(DoctorRun& e) {
    for (const reference::SoftmaxCase& test_case : reference::softmax_cases()) {
        if (test_case.large) continue;
        for_kernel_styles(e, "softmax: " + test_case.name, [&](KernelStyle) { return softmax_rows(test_case); });
    }
    for (const reference::CrossEntropyCase& test_case : reference::cross_entropy_cases()) {
        if (test_case.large) continue;
        for_kernel_styles(e, "cross entropy: " + test_case.name,
                          [&](KernelStyle) { return cross_entropy_rows(test_case); });
    }
    for (const reference::BatchNormCase& test_case : reference::batch_norm_cases()) {
        if (test_case.large) continue;
        for (const bool training : {true, false})
            for_kernel_styles(
                e, fmt::format("batch normalisation, {}: {}", training ? "training" : "evaluation", test_case.name),
                [&](KernelStyle) { return batch_normalisation(test_case, training); });
    }
}

void examine_pool2d(DoctorRun& e) {
    for (const reference::Pool2dCase& test_case : reference::pool2d_cases()) {
        if (test_case.large) continue;
        for_kernel_styles(e, test_case.name(), [&](KernelStyle) {
            const Tensor x = random_tensor(test_case.x, 1), g = random_tensor(test_case.out(), 2);
            const auto expected = test_case.reference(values(x), values(g));
            const auto tolerance = reference::tolerance(
                DType::f32,
                static_cast<double>(test_case.parameters.kernel_size[0] * test_case.parameters.kernel_size[1]));
            First first;
            const auto largest = ops::max_pool2d(x.view(), test_case.parameters);
            first.add("maxima", difference(Tensor(largest.out), expected.max, {}));
            first.add("their gradient", difference(Tensor(ops::max_pool2d_backward(g.view(), largest.indices.view(),
                                                                                   test_case.x, test_case.parameters)),
                                                   expected.max_gradient, tolerance));
            first.add("means",
                      difference(Tensor(ops::avg_pool2d(x.view(), test_case.parameters)), expected.average, tolerance));
            first.add("their gradient",
                      difference(Tensor(ops::avg_pool2d_backward(g.view(), test_case.x, test_case.parameters)),
                                 expected.average_gradient, tolerance));
            return first.text();
        });
    }
}

namespace {

/// Four optimizer steps with random gradients on parameters of odd sizes.
/// @param host (parameter, gradient, state, step) updates all but the gradient
template <class Make, class Host>
std::string steps(Make&& make, Host&& host) {
    const std::vector<std::int64_t> sizes{1, 7, 4097, 33, 10001};
    std::vector<Tensor> parameters;
    std::vector<std::vector<double>> expected;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        parameters.push_back(random_tensor({sizes[i]}, 10 + i, DType::f32, -2, 2).set_requires_grad());
        expected.push_back(values(parameters.back()));
    }
    std::vector<std::vector<std::array<double, 2>>> state;
    for (const std::int64_t size : sizes)
        state.emplace_back(static_cast<std::size_t>(size), std::array<double, 2>{0, 0});
    auto optimizer = make(parameters);
    for (int t = 1; t <= 4; ++t) {
        optimizer.zero_grad();
        std::vector<Tensor> gradients;
        Tensor loss = zeros({});
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            gradients.push_back(
                random_tensor({sizes[i]}, 100 * static_cast<std::uint64_t>(t) + i, DType::f32, 0.01, 1));
            loss = loss + sum(parameters[i] * gradients.back());
        }
        loss.backward();
        optimizer.step();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto g = values(gradients[i]);
            for (std::size_t k = 0; k < g.size(); ++k) host(expected[i][k], g[k], state[i][k], t);
            if (const std::string wrong =
                    difference(parameters[i], expected[i], reference::tolerance(DType::f32, 20, 2));
                !wrong.empty())
                return fmt::format("after step {}, of {} elements: {}", t, sizes[i], wrong);
        }
    }
    return {};
}

}  // namespace

void examine_optimizers(DoctorRun& e) {
    using State = std::array<double, 2>;
    for (const optim::SGDOptions& options :
         {optim::SGDOptions{.lr = 0.25},
          optim::SGDOptions{.lr = 0.25, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01},
          optim::SGDOptions{.lr = 0.25, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true}})
        for_kernel_styles(
            e,
            fmt::format("SGD with momentum {}, dampening {}, weight decay {}{}", options.momentum, options.dampening,
                        options.weight_decay, options.nesterov ? ", Nesterov" : ""),
            [&](KernelStyle) {
                return steps(
                    [&](const std::vector<Tensor>& parameters) { return optim::SGD(parameters, options); },
                    [&](double& p, double gradient, State& state, int t) {
                        const double g = gradient + options.weight_decay * p;
                        double& m = state[0];
                        m = options.momentum == 0 || t == 1 ? g : options.momentum * m + (1 - options.dampening) * g;
                        p -= options.lr * (options.nesterov ? g + options.momentum * m : m);
                    });
            });
    for (const bool decoupled : {false, true})
        for_kernel_styles(e, decoupled ? "AdamW" : "Adam with weight decay", [&](KernelStyle) {
            constexpr double lr = 0.03, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.1;
            const auto host = [&](double& p, double gradient, State& state, int t) {
                auto& [m, v] = state;
                double g = gradient;
                if (decoupled) p -= lr * decay * p;
                else g += decay * p;
                m = beta1 * m + (1 - beta1) * g;
                v = beta2 * v + (1 - beta2) * g * g;
                p -= lr * m / (1 - std::pow(beta1, t)) / (std::sqrt(v / (1 - std::pow(beta2, t))) + epsilon);
            };
            if (decoupled)
                return steps(
                    [&](const std::vector<Tensor>& parameters) {
                        return optim::AdamW(parameters, {.lr = lr, .weight_decay = decay});
                    },
                    host);
            return steps(
                [&](const std::vector<Tensor>& parameters) {
                    return optim::Adam(parameters, {.lr = lr, .weight_decay = decay});
                },
                host);
        });
}

}  // namespace declivity::tools::doctor
