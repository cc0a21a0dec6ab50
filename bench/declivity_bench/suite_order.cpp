// Sorting, scans, gathering and scattering, compared with PyTorch.
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>

#include "function_suites.hpp"

namespace declivity::bench {
namespace {

using Tensors = std::vector<Tensor>;

std::vector<FunctionCase> sorts() {
    std::vector<FunctionCase> all;
    // A pass of the radix sort reads and writes a key and an index; f32 needs four passes.
    for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{{"1M", {1000000}},
                                                                                {"1000 x 1000", {1000, 1000}},
                                                                                {"20000 x 50", {20000, 50}},
                                                                                {"64 x 30000", {64, 30000}}}) {
        const auto n = static_cast<double>(shape.numel());
        all.push_back({"sort f32 " + name,
                       {rand(shape)},
                       [](const Tensors& x) { return sort(x[0]).values; },
                       "torch.sort(x[0], stable=True)",
                       4 * 16 * n});
        all.push_back({"argsort i32 " + name,
                       {randint(-1000000, 1000000, shape, {DType::i32})},
                       [](const Tensors& x) { return argsort(x[0]); },
                       "torch.argsort(x[0], stable=True)",
                       4 * 16 * n});
    }
    all.push_back({"sort f64 1M descending",
                   {rand({1000000}, {DType::f64})},
                   [](const Tensors& x) { return sort(x[0], -1, true).values; },
                   "torch.sort(x[0], descending=True, stable=True)",
                   8 * 24e6});
    all.push_back({"topk 10 of 256 x 32000",
                   {rand({256, 32000})},
                   [](const Tensors& x) { return topk(x[0], 10).values; },
                   "torch.topk(x[0], 10)",
                   4 * 256 * 32e3});
    all.push_back({"median of 1000 x 1000",
                   {rand({1000, 1000})},
                   [](const Tensors& x) { return median(x[0], 1).values; },
                   "torch.median(x[0], 1)",
                   4e6});
    all.push_back({"unique of 1M",
                   {randint(0, 5000, {1000000}, {DType::i64})},
                   [](const Tensors& x) { return unique(x[0]).values; },
                   "torch.unique(x[0])",
                   8e6});
    all.push_back({"searchsorted 1M in 10000",
                   {sort(rand({10000})).values, rand({1000000})},
                   [](const Tensors& x) { return searchsorted(x[0], x[1]); },
                   "torch.searchsorted(x[0], x[1])",
                   12e6});
    return all;
}

std::vector<FunctionCase> scans() {
    std::vector<FunctionCase> all;
    for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{
             {"4M", {4000000}}, {"1000 x 4000", {1000, 4000}}, {"64 x 300 x 200", {64, 300, 200}}})
        for (int axis : {0, -1}) {
            if (axis == 0 && shape.rank() == 1) continue;
            const double bytes = 8 * static_cast<double>(shape.numel());
            const std::string at = name + (axis == 0 ? " axis 0" : "");
            const auto call = "(x[0], " + std::to_string(axis) + ")";
            all.push_back({"cumsum " + at,
                           {rand(shape)},
                           [axis](const Tensors& x) { return cumsum(x[0], axis); },
                           "torch.cumsum" + call,
                           bytes});
            all.push_back({"cumprod " + at,
                           {uniform(shape, 0.9, 1.1)},
                           [axis](const Tensors& x) { return cumprod(x[0], axis); },
                           "torch.cumprod" + call,
                           bytes});
            all.push_back({"cummax " + at,
                           {rand(shape)},
                           [axis](const Tensors& x) { return cummax(x[0], axis).values; },
                           "torch.cummax" + call,
                           2 * bytes});
        }
    all.push_back({"logcumsumexp 1000 x 4000",
                   {rand({1000, 4000})},
                   [](const Tensors& x) { return logcumsumexp(x[0], 1); },
                   "torch.logcumsumexp(x[0], 1)",
                   32e6});
    return all;
}

std::vector<FunctionCase> gathers() {
    const auto rows = [](std::int64_t limit, const Shape& shape) { return randint(0, limit, shape, {DType::i64}); };
    return {
        {"index_select 100000 x 64, 50000",
         {rand({100000, 64}), rows(100000, {50000})},
         [](const Tensors& x) { return index_select(x[0], 0, x[1]); },
         "torch.index_select(x[0], 0, x[1])",
         2 * 4 * 50e3 * 64},
        {"embedding 50000 x 256, 64 x 128",
         {rand({50000, 256}), rows(50000, {64, 128})},
         [](const Tensors& x) { return embedding(x[1], x[0]); },
         "F.embedding(x[1], x[0])",
         2 * 4 * 8192 * 256.0},
        {"gather 4096 x 1000, 4096 x 50",
         {rand({4096, 1000}), rows(1000, {4096, 50})},
         [](const Tensors& x) { return gather(x[0], 1, x[1]); },
         "torch.gather(x[0], 1, x[1])",
         16 * 4096 * 50.0},
        {"take 1M of 4M",
         {rand({4000000}), rows(4000000, {1000000})},
         [](const Tensors& x) { return take(x[0], x[1]); },
         "torch.take(x[0], x[1])",
         16e6},
        {"index by two tensors",
         {rand({512, 512, 8}), rows(512, {100000}), rows(512, {100000})},
         [](const Tensors& x) {
             return index(x[0], {x[1], x[2]});
         },
         "x[0][x[1], x[2]]",
         2 * 4 * 8e5},
        {"masked_select of 4M",
         {rand({4000000}), rand({4000000}) > 0.5},
         [](const Tensors& x) { return masked_select(x[0], x[1]); },
         "torch.masked_select(x[0], x[1])",
         4 * 4e6 + 4e6 + 8e6},
    };
}

std::vector<FunctionCase> scatters() {
    const auto rows = [](std::int64_t limit, const Shape& shape) { return randint(0, limit, shape, {DType::i64}); };
    return {
        {"index_add 10000 x 64, 100000 rows",
         {zeros({10000, 64}), rows(10000, {100000}), rand({100000, 64})},
         [](const Tensors& x) { return index_add(x[0], 0, x[1], x[2]); },
         "torch.index_add(x[0], 0, x[1], x[2])",
         4 * (100e3 * 64 + 2 * 10e3 * 64)},
        {"scatter_add 4096 x 1000, 4096 x 500",
         {zeros({4096, 1000}), rows(1000, {4096, 500}), rand({4096, 500})},
         [](const Tensors& x) { return scatter_add(x[0], 1, x[1], x[2]); },
         "torch.scatter_add(x[0], 1, x[1], x[2])",
         4096 * (500 * 12 + 1000 * 8.0)},
        {"scatter 1M into 4M",
         {rand({4000000}), randperm(4000000), rand({1000000})},
         [](const Tensors& x) { return scatter(x[0], 0, slice(x[1], 0, 0, 1000000), x[2]); },
         "torch.scatter(x[0], 0, x[1][:1000000], x[2])",
         32e6 + 16e6},
        {"bincount of 4M",
         {rows(1000, {4000000})},
         [](const Tensors& x) { return bincount(x[0]); },
         "torch.bincount(x[0])",
         32e6},
        {"embedding gradient 50000 x 256",
         {rand({50000, 256}), rows(50000, {64, 128}), rand({64, 128, 256})},
         [](const Tensors& x) { return embedding(x[1], x[0]); },
         "F.embedding(x[1], x[0])",
         4 * (50e3 * 256 + 8192 * 256.0),
         0,
         true},
    };
}

const Suite sort_suite("sort", "sorting and searching, compared with PyTorch",
                       [](Report& report) { time_functions(report, "sort", sorts); });
const Suite scan_suite("scan", "cumulative functions, compared with PyTorch",
                       [](Report& report) { time_functions(report, "scan", scans); });
const Suite gather_suite("gather", "gathering elements and rows by index, compared with PyTorch",
                         [](Report& report) { time_functions(report, "gather", gathers); });
const Suite scatter_suite("scatter", "scatter and index_add, compared with PyTorch",
                          [](Report& report) { time_functions(report, "scatter", scatters); });

}  // namespace
}  // namespace declivity::bench
