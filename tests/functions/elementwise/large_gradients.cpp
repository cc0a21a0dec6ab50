// Gradients of elementwise functions far from 0 and close to it: where the gradient in f64 is a number, intermediate
// results of f32 that overflow or underflow must not turn it into NaN.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <reference/elementwise_cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// Arguments, a column for each input: for two inputs all pairs.
std::vector<std::vector<double>> large_and_small(int inputs) {
    const std::vector<double> all{1e-30, -1e-30, 1e-15, -1e-15, 30,   -30,   90,   -90,
                                  200,   -200,   1e10,  -1e10,  1e19, -1e19, 1e30, -1e30};
    if (inputs == 1) return {all};
    std::vector<std::vector<double>> pairs(2);
    for (const double a : all)
        for (const double b : all) {
            pairs[0].push_back(a);
            pairs[1].push_back(b);
        }
    return pairs;
}

/// The gradients of the inputs; of one input with `create_graph` the second one too. Second gradients
/// of two inputs, those of pow and atan2, are NaN where a factor overflows.
std::vector<double> gradients(const ElementwiseCase& test_case, const std::vector<std::vector<double>>& columns,
                              DType dtype, bool create_graph) {
    std::vector<Tensor> inputs;
    for (const std::vector<double>& column : columns) {
        inputs.push_back(tensor(column, {static_cast<std::int64_t>(column.size())}, dtype));
        inputs.back().set_requires_grad();
    }
    const Tensor y = elementwise(test_case.function, std::span<const Tensor>(inputs), scalars(test_case.parameters));
    std::vector<double> all;
    if (!y.requires_grad()) return all;
    const auto add = [&](const std::vector<Tensor>& tensors) {
        for (const Tensor& gradient : tensors) {
            if (gradient.defined()) std::ranges::copy(values(gradient), std::back_inserter(all));
            else all.insert(all.end(), columns[0].size(), 0.0);
        }
    };
    const std::vector<Tensor> first = grad({sum(y)}, inputs, {.create_graph = create_graph, .allow_unused = true});
    add(first);
    for (const Tensor& gradient : first)
        if (inputs.size() == 1 && gradient.defined() && gradient.requires_grad())
            add(grad({sum(gradient)}, inputs, {.retain_graph = true, .allow_unused = true}));
    return all;
}

}  // namespace

TEST_CASE("large gradients: of elementwise functions in f32 are NaN only where those in f64 are") {
    if (!device().info().fp64) return;
    int number = 0;
    for (const Function function : all_functions()) {
        const ElementwiseCase* test_case = case_of(function);
        const ops::FunctionInfo& row = ops::info(function);
        const bool real = row.domain == ops::Domain::real || row.domain == ops::Domain::number;
        if (test_case == nullptr || row.inputs > 2 || !real) continue;
        if (small_cases() && number++ % 4 != 0) continue;
        const auto columns = large_and_small(row.inputs);
        const std::size_t count = columns[0].size();
        // Gradients by the table's expression, by the decomposition, and of second order.
        for (const bool create_graph : {false, true}) {
            const auto in_f64 = gradients(*test_case, columns, DType::f64, create_graph),
                       in_f32 = gradients(*test_case, columns, DType::f32, create_graph);
            REQUIRE(in_f32.size() == in_f64.size());
            std::string wrong;
            for (std::size_t i = 0; i < in_f64.size() && wrong.size() < 300; ++i)
                if (std::isnan(in_f32[i]) && !std::isnan(in_f64[i]))
                    wrong += fmt::format("gradient {} at ({}, {}): NaN instead of {}; ", i / count,
                                         columns[0][i % count], columns.back()[i % count], in_f64[i]);
            CAPTURE(row.name);
            CAPTURE(create_graph);
            CHECK(wrong == "");
        }
    }
}
