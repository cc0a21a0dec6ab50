#include "tune.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <variant>

#include <declivity/ops/tuning.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layers.hpp"

namespace declivity::tools {
namespace {

using Task = std::variant<ops::Conv2dShape, ops::MatmulShape>;

constexpr const char* kGrammar =
    "expected 'conv2d N C H W K R S [stride A[,B]] [padding A[,B]] [dilation A[,B]] [groups G] [f64]' or 'matmul BATCH "
    "M "
    "N K [NN|NT|TN|TT] [f64|f16|bf16]'";

[[noreturn]] void refuse(const std::vector<std::string>& words) {
    throw ValueError(fmt::format("tune: {}, got '{}'", kGrammar, fmt::join(words, " ")));
}

std::int64_t number(const std::string& word, const std::vector<std::string>& words) {
    std::size_t read = 0;
    std::int64_t value = 0;
    try {
        value = std::stoll(word, &read);
    } catch (const std::exception&) {
        refuse(words);
    }
    if (read != word.size()) refuse(words);
    return value;
}

Size2 pair(const std::string& word, const std::vector<std::string>& words) {
    const std::size_t comma = word.find(',');
    const std::int64_t first = number(word.substr(0, comma), words);
    return {first, comma == std::string::npos ? first : number(word.substr(comma + 1), words)};
}

Task task_of(const std::vector<std::string>& words) {
    if (words.empty()) refuse(words);
    const std::size_t sizes = words[0] == "conv2d" ? 7 : words[0] == "matmul" ? 4 : 0;
    if (sizes == 0 || words.size() < 1 + sizes) refuse(words);
    std::vector<std::int64_t> n;
    for (std::size_t i = 1; i <= sizes; ++i) n.push_back(number(words[i], words));
    if (sizes == 4) {
        ops::MatmulShape shape{.batch = n[0], .m = n[1], .n = n[2], .k = n[3]};
        for (std::size_t i = 5; i < words.size(); ++i) {
            const std::string& word = words[i];
            if (word == "f64") shape.dtype = DType::f64;
            else if (word == "f16") shape.dtype = DType::f16;
            else if (word == "bf16") shape.dtype = DType::bf16;
            else if (word == "NN" || word == "NT" || word == "TN" || word == "TT")
                shape.a_transposed = word[0] == 'T', shape.b_transposed = word[1] == 'T';
            else refuse(words);
        }
        return shape;
    }
    ops::Conv2dParameters options;
    DType dtype = DType::f32;
    for (std::size_t i = 8; i < words.size(); ++i) {
        if (words[i] == "f64") {
            dtype = DType::f64;
            continue;
        }
        if (i + 1 == words.size()) refuse(words);
        const std::string& value = words[i + 1];
        if (words[i] == "stride") options.stride = pair(value, words);
        else if (words[i] == "padding") options.padding = pair(value, words);
        else if (words[i] == "dilation") options.dilation = pair(value, words);
        else if (words[i] == "groups") options.groups = number(value, words);
        else refuse(words);
        ++i;
    }
    if (options.groups < 1 || n[1] % options.groups != 0)
        throw ValueError(fmt::format("tune: expected groups that divide {} channels, got {}", n[1], options.groups));
    return ops::Conv2dShape{.x = {n[0], n[1], n[2], n[3]},
                            .weight = {n[4], n[1] / options.groups, n[5], n[6]},
                            .options = options,
                            .dtype = dtype};
}

std::vector<Task> tasks_of_file(const std::string& path) {
    std::ifstream in(path);
    if (!in) throw ValueError(fmt::format("tune: expected a readable file of shapes, got {}", path));
    std::vector<Task> tasks;
    for (std::string line; std::getline(in, line);) {
        std::istringstream text(line.substr(0, line.find('#')));
        std::vector<std::string> words;
        for (std::string word; text >> word;) words.push_back(word);
        if (!words.empty()) tasks.push_back(task_of(words));
    }
    return tasks;
}

Task conv2d_of(const Layer& layer, std::int64_t batch) {
    return ops::Conv2dShape{
        .x = {batch, layer.in, layer.size, layer.size},
        .weight = {layer.out, layer.in / layer.groups, layer.filter, layer.filter},
        .options = {
            .stride = {layer.stride, layer.stride}, .padding = {layer.padding, layer.padding}, .groups = layer.groups}};
}

/// The shapes of the sample networks; with `all`, those of well-known networks, and products of many sizes.
std::vector<Task> known_tasks(bool all) {
    std::vector<Task> tasks;
    for (const Layer& layer : kSampleLayers) tasks.push_back(conv2d_of(layer, layer.batch));
    // Dense layers, (batch, in) to (batch, out): forward, and the gradients of the input and the weights.
    const auto dense = [&](std::int64_t batch, std::int64_t in, std::int64_t out) {
        tasks.push_back(ops::MatmulShape{.m = batch, .n = out, .k = in, .b_transposed = true});
        tasks.push_back(ops::MatmulShape{.m = batch, .n = in, .k = out});
        tasks.push_back(ops::MatmulShape{.m = out, .n = in, .k = batch, .a_transposed = true});
    };
    dense(128, 1600, 10);
    dense(64, 4096, 256);
    dense(64, 256, 10);
    if (!all) return tasks;
    for (const std::int64_t batch : {1, 16})
        for (const Layer& layer : kLayers) tasks.push_back(conv2d_of(layer, batch));
    for (const std::int64_t size : {64, 128, 256, 512, 1024, 2048})
        for (const bool a : {false, true})
            for (const bool b : {false, true})
                tasks.push_back(
                    ops::MatmulShape{.m = size, .n = size, .k = size, .a_transposed = a, .b_transposed = b});
    for (const std::int64_t batch : {1, 8, 32, 128, 256})
        for (const std::int64_t size : {768, 1024, 4096}) dense(batch, size, size);
    return tasks;
}

struct Options {
    double budget = 0;
    std::string shapes, device, into;
    bool all = false, repeat = false;
    std::vector<std::string> explain, merge;
};

int run(const Options& options) {
    if (!options.merge.empty()) {
        if (options.into.empty()) throw ValueError("tune: expected --into FILE with --merge");
        ops::merge_tuning({options.merge.begin(), options.merge.end()}, options.into);
        return 0;
    }
    const Device device = options.device.empty() ? Device::best() : Device::select(options.device);
    if (!options.explain.empty()) {
        fmt::print(
            "{}", std::visit([&](const auto& shape) { return ops::explain(device, shape); }, task_of(options.explain)));
        return 0;
    }
    fmt::print("tuning {}\n", device.name());
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const std::vector<Task> tasks = options.shapes.empty() ? known_tasks(options.all) : tasks_of_file(options.shapes);
    std::size_t done = 0;
    for (const Task& task : tasks) {
        if (options.budget > 0 && seconds() > options.budget) break;
        try {
            fmt::print("{}",
                       std::visit([&](const auto& shape) { return ops::tune(device, shape, options.repeat); }, task));
        } catch (const OutOfMemory& error) {
            fmt::print("  too large for this device: {}\n", error.what());
        }
        std::fflush(stdout);
        ++done;
    }
    const std::string file = ops::tuning_file().string();
    fmt::print("{} of {} shapes after {:.0f} s; saved to {}\n", done, tasks.size(), seconds(),
               file.empty() ? "no file: there is no cache directory" : file);
    return 0;
}

}  // namespace

std::function<int()> add_tune(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    CLI::App* tune =
        app.add_subcommand("tune", "measures which strategy is fastest for each shape and saves the results");
    tune->add_option("--budget", options->budget, "time budget in seconds: no shape is started after it")
        ->check(CLI::PositiveNumber);
    tune->add_option("--shapes", options->shapes, fmt::format("file with a shape on each line: {}", kGrammar));
    tune->add_flag("--all", options->all, "shapes of many well-known networks in addition to those of the samples");
    tune->add_flag("--again", options->repeat, "measure again what was measured before");
    tune->add_option("--device", options->device, "device, in the format of DECLIVITY_DEVICE");
    tune->add_option("--explain", options->explain,
                     "measure nothing; print which strategy is used for this shape, and why")
        ->expected(1, 32);
    tune->add_option("--merge", options->merge, "measure nothing; add the results of these files to --into")
        ->expected(1, 1000);
    tune->add_option("--into", options->into, "the file written by --merge");
    return [options] { return run(*options); };
}

}  // namespace declivity::tools
