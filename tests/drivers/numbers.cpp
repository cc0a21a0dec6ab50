// Runs the same program with the same seed on several drivers and compares the results, by function.
//
//   declivity_numbers write FILE [SEED]             computes everything on the default device and writes it as
//                                                   safetensors
//   declivity_numbers compare FILE [NAME=FILE]...   a table (Markdown) of how the others differ from the first
//
// Groups of results, by the first word of their names:
//   exact     integers, comparisons, uniform random numbers and results without rounding: bit for bit equal, or
//             `compare` fails
//   each      elementwise functions: difference in ulps of f32, per element
//   draws     random numbers by rejection, or by the largest of several: rounding changes very few of them
//   sums      sums whose order depends on the driver: largest difference, relative to the largest value
//   training  losses of a small network over its first steps: relative differences; rounding grows with the steps
//
// Exit code 1 if `exact` results differ, or others by more than a correct driver could explain.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/declivity.hpp>
#include <fmt/format.h>

using namespace declivity;

namespace {

constexpr std::int64_t kCount = 4099;

// ---- computing the results

class Results {
  public:
    void add(const std::string& name, const Tensor& value) { file_.arrays[name] = io::to_host(value.detach()); }
    void write(const std::string& path) const { io::write_safetensors(path, file_); }

  private:
    io::Safetensors file_;
};

/// The gradients of a weighted sum of `result`, with a different weight for each element.
std::vector<Tensor> gradients(const Tensor& result, const std::vector<Tensor>& inputs, const Tensor& weights) {
    return grad({sum(result * reshape(weights, result.shape()))}, inputs);
}

void elementwise_functions(Results& results) {
    struct Row {
        Function function;
        const char* name;
        std::string_view domain;
        int inputs, parameters;
    };
    const Row rows[] = {
#define DECLIVITY_FUNCTION(name, domain, inputs, parameters, value, first, second, third) \
    {Function::name, #name, #domain, inputs, parameters},
#include <declivity/ops/elementwise_table.def>
#undef DECLIVITY_FUNCTION
    };
    const Tensor weights = uniform({kCount}, -1, 1);
    const std::vector<Tensor> any{uniform({kCount}, -4, 4), uniform({kCount}, -4, 4), uniform({kCount}, 0, 1)},
        positive{uniform({kCount}, 0.01, 9), uniform({kCount}, -3, 3)};
    const std::vector<Scalar> parameters{0.75, 1.5};
    for (const Row& row : rows) {
        if (row.domain == "choose") continue;  // the first input is a bool: see below
        const bool positive_inputs = std::string_view(row.name).starts_with("pow") || row.function == Function::sqrt ||
                                     row.function == Function::log;
        std::vector<Tensor> inputs;
        for (int i = 0; i < row.inputs; ++i)
            inputs.push_back((positive_inputs ? positive : any)[static_cast<std::size_t>(i)].clone());
        if (row.function == Function::dropout) inputs[1] = bernoulli({kCount}, 0.5);
        const std::vector<Scalar> row_parameters(parameters.begin(), parameters.begin() + row.parameters);
        if (row.domain == "compare") {
            results.add(fmt::format("exact/{}", row.name), elementwise(row.function, inputs, row_parameters));
            continue;
        }
        if (row.domain == "integer" || row.domain == "shift" || row.domain == "logic") {
            const DType dtype = row.domain == "logic" ? DType::boolean : DType::i32;
            for (Tensor& input : inputs) input = input.to(dtype);
            results.add(fmt::format("exact/{}", row.name), elementwise(row.function, inputs, row_parameters));
            continue;
        }
        inputs[0].set_requires_grad();
        const Tensor y = elementwise(row.function, inputs, row_parameters);
        results.add(fmt::format("each/{}", row.name), y);
        if (y.requires_grad())
            results.add(fmt::format("each/{}, gradient", row.name), gradients(y, {inputs[0]}, weights)[0]);
        if (row.domain == "number") {
            for (const DType dtype :
                 {DType::i32, DType::i64, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64}) {
                std::vector<Tensor> integers;
                for (int i = 0; i < row.inputs; ++i)
                    integers.push_back((uniform({kCount}, dtype_info(dtype).is_signed ? -99 : 0, 100)).to(dtype));
                if (!dtype_info(dtype).is_signed && (row.function == Function::neg || row.function == Function::sub))
                    continue;
                const std::vector<Scalar> numbers{3, 50};
                results.add(fmt::format("exact/{}, {}", row.name, name_of(dtype)),
                            elementwise(row.function, integers,
                                        std::span(numbers).first(static_cast<std::size_t>(row.parameters))));
            }
        }
    }
    results.add("exact/where", where(greater(any[0], any[1]), any[0], any[1]));
}

void random_numbers(Results& results) {
    results.add("exact/uniform", uniform({3, kCount}, -1, 1));
    results.add("exact/bernoulli", bernoulli({kCount}, 0.3));
    results.add("exact/dropout", dropout(ones({kCount}), 0.25));
    results.add("exact/randint", randint(-7, 1000, {kCount}));
    results.add("exact/randperm", randperm(kCount));
    results.add("exact/bernoulli of a tensor", bernoulli(uniform({kCount}, 0, 1)));
    results.add("exact/dropout2d", dropout2d(ones({7, 31, 2, 2}), 0.25));
    results.add("exact/alpha_dropout", alpha_dropout(ones({kCount}), 0.25));
    results.add("each/normal", normal({kCount}));
    results.add("each/exponential", exponential({kCount}, 2));
    results.add("each/truncated_normal", truncated_normal({kCount}));
    results.add("each/log_normal", log_normal({kCount}));
    results.add("each/cauchy", cauchy({kCount}));
    results.add("each/laplace", laplace({kCount}));
    results.add("each/gumbel", gumbel({kCount}));
    const Tensor positive = uniform({kCount}, 0.2, 20), logits = uniform({kCount, 7}, -2, 2);
    results.add("draws/geometric", geometric({kCount}, 0.2));
    results.add("draws/poisson", poisson(positive * 2));
    results.add("draws/gamma", gamma(positive));
    results.add("draws/beta", beta(positive, flip(positive, {0})));
    results.add("draws/dirichlet", dirichlet(abs(logits) + 0.1));
    results.add("draws/categorical", categorical(logits));
    results.add("draws/multinomial", multinomial(softmax(logits), 3));
}

void reductions(Results& results) {
    const Tensor x = uniform({37, 41, 53}, -1, 2), integers = uniform({37, 41, 53}, -1000, 1000).to(DType::i32);
    for (const Dims& axes : {Dims{}, Dims{0}, Dims{2}, Dims{0, 2}}) {
        const std::string axes_text = axes.empty() ? "all axes" : fmt::format("axes {}", fmt::join(axes, ", "));
        results.add("sums/sum, " + axes_text, sum(x, axes));
        results.add("sums/mean, " + axes_text, mean(x, axes));
        results.add("exact/max, " + axes_text, max(x, axes));
        results.add("exact/min, " + axes_text, min(x, axes));
        results.add("exact/sum, i32, " + axes_text, sum(integers, axes));
    }
    results.add("exact/argmax", argmax(x));
}

void layers(Results& results) {
    const auto leaf = [](const Shape& shape) { return uniform(shape, -1, 1).set_requires_grad(); };
    const auto both = [&](const std::string& name, const Tensor& result, const std::vector<Tensor>& inputs) {
        results.add("sums/" + name, result);
        const auto found = gradients(result, inputs, uniform(result.shape(), -1, 1));
        for (std::size_t i = 0; i < found.size(); ++i)
            results.add(fmt::format("sums/{}, gradient of input {}", name, i + 1), found[i]);
    };
    for (const auto& [m, k, n] :
         {std::array<std::int64_t, 3>{7, 13, 5}, {65, 300, 129}, {1, 1031, 77}, {200, 64, 10}}) {
        const Tensor a = leaf({m, k}), b = leaf({k, n});
        both(fmt::format("matmul {} x {} x {}", m, k, n), matmul(a, b), {a, b});
    }
    const Tensor images = leaf({5, 6, 19, 17});
    for (const auto& [name, shape, options] : std::vector<std::tuple<std::string, Shape, Conv2dParameters>>{
             {"conv2d 3x3", {16, 6, 3, 3}, {.padding = {1, 1}}},
             {"conv2d 5x3, stride 2", {9, 6, 5, 3}, {.stride = {2, 2}}},
             {"conv2d 1x1", {20, 6, 1, 1}, {}},
             {"conv2d 3x3, depthwise", {6, 1, 3, 3}, {.padding = {1, 1}, .groups = 6}}}) {
        const Tensor weight = leaf(shape), bias = leaf({shape[0]});
        both(name, conv2d(images, weight, bias, options), {images, weight, bias});
    }
    both("max_pool2d", max_pool2d(images, {.kernel_size = {2, 3}}), {images});
    both("avg_pool2d", avg_pool2d(images, {.kernel_size = {3, 2}}), {images});
    const Tensor scale = leaf({6}), shift = leaf({6});
    both("batch_norm, training", batch_norm(images, scale, shift, zeros({6}), ones({6}), {.training = true}),
         {images, scale, shift});
    const Tensor logits = leaf({64, 33});
    both("softmax", softmax(logits * 3), {logits});
    both("log_softmax", log_softmax(logits * 3), {logits});
    const Tensor labels = uniform({64}, 0, 33).to(DType::i32), target = uniform({64, 33});
    both("cross_entropy", cross_entropy(logits * 3, labels), {logits});
    both("mse_loss", mse_loss(logits, target), {logits});
    both("bce_with_logits", bce_with_logits(logits, target), {logits});
}

void order_and_indices(Results& results) {
    const Tensor x = uniform({37, 411}, -1, 1), integers = uniform({kCount}, -99, 99).to(DType::i16);
    const Sorted sorted = sort(x);
    results.add("exact/sort", sorted.values);
    results.add("exact/sort, indices", sorted.indices);
    results.add("exact/argsort, i16", argsort(integers, -1, true));
    results.add("exact/topk", topk(x, 9).indices);
    results.add("exact/cummax", cummax(x, 1).values);
    results.add("exact/unique", unique(integers).values);
    results.add("sums/cumsum", cumsum(x, 1));
    results.add("sums/cumprod", cumprod(x + 1, 1));
    results.add("sums/logcumsumexp", logcumsumexp(x, 0));
    const Tensor rows = randint(0, 37, {501});
    results.add("sums/index_add", index_add(zeros({37, 411}), 0, rows, uniform({501, 411})));
    results.add("exact/index_select", index_select(x, 0, rows));
}

void linear_algebra(Results& results) {
    const Tensor a = uniform({5, 33, 33}, -1, 1), b = uniform({5, 33, 3}, -1, 1);
    const Tensor regular = a + eye(33) * 8, symmetric = matmul(a, transpose(a)) + eye(33);
    results.add("sums/linalg::solve", linalg::solve(regular, b));
    results.add("sums/linalg::inv", linalg::inv(regular));
    results.add("sums/linalg::cholesky", linalg::cholesky(symmetric));
    results.add("sums/linalg::qr", linalg::qr(regular).r);
    results.add("sums/linalg::eigvalsh", linalg::eigvalsh(symmetric));
    results.add("sums/linalg::svdvals", linalg::svdvals(a));
    results.add("sums/linalg::slogdet", linalg::slogdet(regular).logabsdet);
    results.add("sums/linalg::matrix_exp", linalg::matrix_exp(a));
    results.add("sums/linalg::lstsq", linalg::lstsq(regular, b).solution);
}

void images(Results& results) {
    const Tensor x = uniform({2, 3, 19, 23}, -1, 1);
    results.add("sums/interpolate, bilinear", interpolate(x, {.size = {31, 17}, .mode = "bilinear"}));
    results.add("sums/interpolate, bicubic, antialias",
                interpolate(x, {.size = {7, 30}, .mode = "bicubic", .antialias = true}));
    results.add("exact/interpolate, nearest", interpolate(x, {.scale_factor = {1.7}}));
    results.add("sums/grid_sample", grid_sample(x, uniform({2, 9, 11, 2}, -1.2, 1.2)));
    const Tensor corners = uniform({6, 2}, 0, 10);
    const Tensor boxes = concat({randint(0, 2, {6, 1}).to(DType::f32), corners, corners + uniform({6, 2}, 1, 9)}, 1);
    results.add("sums/roi_align", roi_align(x, boxes, {3, 4}, {.sampling_ratio = 2}));
    results.add("exact/roi_pool", roi_pool(x, boxes, {3, 4}));
    const Tensor weight = uniform({4, 3, 3, 3}, -1, 1);
    results.add("sums/deform_conv2d", deform_conv2d(x, uniform({2, 18, 17, 21}, -2, 2), weight));
    results.add("sums/conv_transpose2d", conv_transpose2d(x, uniform({3, 4, 3, 2}, -1, 1), {}, {.stride = 2}));
    const Tensor volume = uniform({2, 3, 7, 9, 11}, -1, 1);
    results.add("sums/conv3d", conv3d(volume, uniform({4, 3, 3, 2, 3}, -1, 1), {}, {.padding = 1}));
    results.add("exact/max_pool3d", max_pool3d(volume, {.kernel_size = 3, .padding = 1}));
    results.add("sums/adaptive_avg_pool2d", adaptive_avg_pool2d(x, {5, 4}));
    results.add("sums/lp_pool2d", lp_pool2d(abs(x), 3, {.kernel_size = 3}));
    results.add("sums/group_norm", group_norm(x, 3));
    results.add("sums/instance_norm", instance_norm(x));
    const Tensor log_probs = log_softmax(uniform({21, 3, 9}, -2, 2), -1);
    results.add("sums/ctc_loss", ctc_loss(log_probs, randint(1, 9, {3, 6}), {21, 18, 15}, {6, 4, 5}));
}

void optimizers(Results& results) {
    const auto train = [&](const std::string& name, auto&& make) {
        Tensor parameter = uniform({kCount}, -1, 1).set_requires_grad();
        auto optimizer = make(std::vector<Tensor>{parameter});
        for (int step = 0; step < 10; ++step) {
            parameter.set_grad(uniform({kCount}, -1, 1));
            optimizer.step();
        }
        results.add("sums/" + name + ", 10 steps", parameter);
    };
    train("SGD", [](const auto& parameters) {
        return optim::SGD(parameters, {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-2});
    });
    train("Adam", [](const auto& parameters) { return optim::Adam(parameters, {.lr = 1e-2}); });
    train("AdamW", [](const auto& parameters) { return optim::AdamW(parameters, {.lr = 1e-2}); });
}

void training(Results& results) {
    nn::Sequential model(nn::Conv2d(1, 8, 3), nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                         nn::Linear(8 * 7 * 7, 10));
    optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
    constexpr int steps = 100;
    for (int step = 1; step <= steps; ++step) {
        const Tensor x = uniform({32, 1, 16, 16}),
                     labels = argmax(reshape(slice(slice(mean(x, {1}), 1, 0, 2), 2, 0, 5), {32, 10}));
        const Tensor loss = cross_entropy(model(x), labels);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        if (step == 1 || step == 10 || step == steps) results.add(fmt::format("training/loss of step {}", step), loss);
    }
}

// ---- differences between two results

struct Difference {
    double ulps = 0;      // maximum
    double relative = 0;  // largest difference, divided by the largest value
    std::size_t different = 0, count = 0;
    std::size_t beyond_tolerance = 0;  // number of elements that differ by more than 1e-4 relative
};

/// Maps f32 to integers in the same order.
std::int64_t ulp_position(float x) {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7FFFFFFF) : bits;
}

Difference compare(const std::string& name, const io::HostArray& a, const io::HostArray& b) {
    if (a.dtype != b.dtype || a.shape != b.shape) throw std::runtime_error(name + ": of another type or shape");
    Difference apart;
    apart.count = static_cast<std::size_t>(a.shape.numel());
    if (a.dtype != DType::f32) {
        const std::size_t size = size_of(a.dtype);
        for (std::size_t i = 0; i < apart.count; ++i)
            apart.different += std::memcmp(&a.bytes[i * size], &b.bytes[i * size], size) != 0;
        apart.relative = apart.different == 0 ? 0 : INFINITY;
        apart.beyond_tolerance = apart.different;
        return apart;
    }
    double largest = 0, difference = 0;
    const auto x = a.as<float>(), y = b.as<float>();
    for (std::size_t i = 0; i < apart.count; ++i) {
        if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
            if (std::isfinite(x[i])) largest = std::max<double>(largest, std::abs(x[i]));
            continue;
        }
        ++apart.different;
        if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
            difference = apart.ulps = INFINITY;
            ++apart.beyond_tolerance;
            continue;
        }
        largest = std::max<double>(largest, std::abs(x[i]));
        const double distance = std::abs(static_cast<double>(x[i]) - y[i]);
        apart.beyond_tolerance += distance > 1e-4 * std::max(std::abs(x[i]), std::abs(y[i]));
        difference = std::max(difference, distance);
        // Denormals may be flushed to zero.
        if (std::abs(x[i]) >= 0x1p-126F || std::abs(y[i]) >= 0x1p-126F)
            apart.ulps = std::max(apart.ulps, static_cast<double>(std::abs(ulp_position(x[i]) - ulp_position(y[i]))));
    }
    apart.relative = difference == 0 ? 0 : difference / std::max(largest, 0x1p-126);
    return apart;
}

struct Group {
    std::string_view name, title;
    double tolerance;  // tolerance: ulps for `each`, fraction of differing elements for `draws`, otherwise relative
};

constexpr Group kGroups[] = {{"exact", "equal to the bit, or wrong", 0},
                             {"each", "elementwise, units in the last place", INFINITY},
                             {"draws", "draws, elements that are others", 1e-3},
                             {"sums", "sums, relative to the largest value", 1e-4},
                             {"training", "training, relative", 0.05}};

std::string describe(const Group& group, const Difference& difference) {
    if (difference.different == 0) return "equal";
    if (group.name == "exact") return fmt::format("**{} of {} differ**", difference.different, difference.count);
    if (group.name == "each") return fmt::format("{:.0f} ({:.1e})", difference.ulps, difference.relative);
    if (group.name == "draws") return fmt::format("{} of {}", difference.beyond_tolerance, difference.count);
    return fmt::format("{:.1e}", difference.relative);
}

/// Returns whether the difference is larger than rounding could explain.
bool is_wrong(const Group& group, const Difference& difference) {
    if (group.name == "draws")
        return static_cast<double>(difference.beyond_tolerance) >
               group.tolerance * static_cast<double>(difference.count);
    return difference.relative > (group.name == "each" ? 1e-4 : group.tolerance);
}

int compare(const std::string& first, const std::vector<std::pair<std::string, std::string>>& other_files) {
    const io::Safetensors reference = io::read_safetensors(first);
    std::vector<io::Safetensors> files;
    for (const auto& [name, path] : other_files) files.push_back(io::read_safetensors(path));
    int wrong = 0;
    for (const Group& group : kGroups) {
        fmt::print("| {} |", group.title);
        for (const auto& [name, path] : other_files) fmt::print(" {} |", name);
        fmt::print("\n| --- |");
        for (std::size_t i = 0; i < other_files.size(); ++i) fmt::print(" --- |");
        fmt::print("\n");
        int missing = 0;
        for (const auto& [name, array] : reference.arrays) {
            if (!name.starts_with(fmt::format("{}/", group.name))) continue;
            std::string row;
            bool all_equal = true;
            for (std::size_t i = 0; i < files.size(); ++i) {
                const auto found = files[i].arrays.find(name);
                if (found == files[i].arrays.end())
                    throw std::runtime_error(fmt::format("{} has no \"{}\"", other_files[i].second, name));
                const Difference difference = compare(name, array, found->second);
                all_equal = all_equal && difference.different == 0;
                wrong += is_wrong(group, difference);
                row += fmt::format(" {} |", describe(group, difference));
            }
            if (all_equal) ++missing;
            else fmt::print("| {} |{}\n", name.substr(group.name.size() + 1), row);
        }
        fmt::print("| {} results |", missing);
        for (std::size_t i = 0; i < other_files.size(); ++i) fmt::print(" equal |");
        fmt::print("\n\n");
    }
    if (wrong != 0) fmt::print("WRONG: {} results differ by more than rounding\n", wrong);
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if ((arguments.size() == 2 || arguments.size() == 3) && arguments[0] == "write") {
        Results results;
        manual_seed(arguments.size() == 3 ? std::stoull(arguments[2]) : 20);
        elementwise_functions(results);
        random_numbers(results);
        reductions(results);
        layers(results);
        order_and_indices(results);
        linear_algebra(results);
        images(results);
        optimizers(results);
        training(results);
        results.write(arguments[1]);
        return 0;
    }
    if (arguments.size() >= 2 && arguments[0] == "compare") {
        std::vector<std::pair<std::string, std::string>> other_files;
        for (std::size_t i = 2; i < arguments.size(); ++i) {
            const std::size_t sign = arguments[i].find('=');
            if (sign == std::string::npos) throw std::runtime_error("expected NAME=FILE, got " + arguments[i]);
            other_files.emplace_back(arguments[i].substr(0, sign), arguments[i].substr(sign + 1));
        }
        return compare(arguments[1], other_files);
    }
    std::fputs("declivity_numbers write FILE [SEED] | declivity_numbers compare FILE [NAME=FILE]...\n", stderr);
    return 2;
} catch (const std::exception& error) {
    std::fprintf(stderr, "declivity_numbers: %s\n", error.what());
    return 2;
}
