// The errors of every function of the catalogue begin with the name by which it was called.
#include <declivity/functions/functions.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/optimizer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;

namespace {

struct InvalidCall {
    std::string name;
    std::function<void()> call;
};

/// A list; a call appends to it.
struct Mistakes {
    std::vector<InvalidCall> all = {};

    void operator()(const char* name, std::function<void()> call) { all.push_back({name, std::move(call)}); }
};

/// The beginning of a call's error message, up to the colon; "no error" without one.
std::string error_of(const InvalidCall& mistake) {
    try {
        mistake.call();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

template <class Result, class... Arguments>
auto pair_of_name(const char* name, Result (*function)(Arguments...)) {
    return std::pair<const char*, Result (*)(Arguments...)>(name, function);
}

using Unary = Tensor (*)(Tensor);
using Binary = Tensor (*)(Tensor, Tensor);
using Either = Tensor (*)(TensorOrScalar, TensorOrScalar);

void add_operator_tables(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       booleans = zeros({2, 3}, {DType::boolean}), small = zeros({2}, {DType::u8});
    // clang-format off
    const std::pair<const char*, Binary> binary[] = {
        {"operator+", operator+}, {"operator-", operator-}, {"operator*", operator*}, {"operator/", operator/},
        {"operator==", operator==}, {"operator!=", operator!=}, {"operator<", operator<}, {"operator<=", operator<=},
        {"operator>", operator>}, {"operator>=", operator>=}, {"pow", pow}};
    const std::pair<const char*, Either> either[] = {
        {"minimum", minimum}, {"maximum", maximum}, {"equal", equal}, {"not_equal", not_equal}, {"less", less},
        {"less_equal", less_equal}, {"greater", greater}, {"greater_equal", greater_equal}, {"eq", eq}, {"ne", ne},
        {"lt", lt}, {"le", le}, {"gt", gt}, {"ge", ge}, {"floor_divide", floor_divide}, {"remainder", remainder},
        {"fmod", fmod}, {"logical_and", logical_and}, {"logical_or", logical_or}, {"logical_xor", logical_xor}};
    const std::pair<const char*, Either> integer_functions[] = {
        {"bitwise_and", bitwise_and}, {"bitwise_or", bitwise_or}, {"bitwise_xor", bitwise_xor}};
    const std::pair<const char*, Unary> numeric_functions[] = {
        {"operator-", operator-}, {"neg", neg}, {"abs", abs}, {"square", square}, {"relu", relu}};
    const std::pair<const char*, Unary> unary[] = {
        {"operator-", operator-}, {"neg", neg}, {"abs", abs}, {"square", square}, {"sqrt", sqrt},
        {"reciprocal", reciprocal}, {"exp", exp}, {"log", log}, {"tanh", tanh}, {"sigmoid", sigmoid}, {"relu", relu},
        {"gelu", gelu}, {"silu", silu}};
    // clang-format on
    for (const auto& [name, function] : binary)
        for (const Tensor& wrong : {none, other}) add(name, [=, f = function] { f(x, wrong); });
    for (const auto& [name, function] : either) {
        for (const Tensor& wrong : {none, other}) add(name, [=, f = function] { f(x, wrong); });
        add(name, [=, f = function] { f(none, 2); });
        add(name, [=, f = function] { f(1, 2); });
    }
    for (const auto& [name, function] : integer_functions) {
        for (const Tensor& wrong : {none, other, x}) add(name, [=, f = function] { f(integers, wrong); });
        add(name, [=, f = function] { f(integers, 0.5); });
        add(name, [=, f = function] { f(small, 256); });
    }
    for (const auto& [name, function] : numeric_functions) add(name, [=, f = function] { f(booleans); });
    for (const auto& [name, function] : unary) add(name, [=, f = function] { f(none); });
}

void add_operators(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       booleans = zeros({2, 3}, {DType::boolean}), small = zeros({2}, {DType::u8});
    add("operator-", [=] { booleans - booleans; });
    add("operator+", [=] { zeros({1}, {DType::u64}) + integers; });
    add("operator+", [=] { small + 256; });
    add("operator*", [=] { small * -1; });
    add("operator<", [=] { small < other; });
    add("operator==", [=] { none == small; });
    add("operator%", [=] { none % 2; });
    add("operator%", [=] { 2 % none; });
    add("operator&", [=] { integers& x; });
    add("operator|", [=] { none | 1; });
    add("operator^", [=] { integers ^ 0.5; });
    add("operator~", [=] { ~x; });
    add("operator!", [=] { !none; });
    add("bitwise_not", [=] { bitwise_not(x); });
    add("logical_not", [=] { logical_not(none); });
    for (const Tensor& wrong : {none}) {
        add("operator+", [=] { wrong + 0.5; });
        add("operator+", [=] { 0.5 + wrong; });
        add("operator-", [=] { wrong - 0.5; });
        add("operator-", [=] { 0.5 - wrong; });
        add("operator*", [=] { wrong * 0.5; });
        add("operator*", [=] { 0.5 * wrong; });
        add("operator/", [=] { wrong / 2.0; });
        add("operator/", [=] { 2.0 / wrong; });
        add("pow", [=] { pow(wrong, 2.0); });
        add("pow", [=] { pow(2.0, wrong); });
        add("leaky_relu", [=] { leaky_relu(wrong); });
        add("clamp", [=] { clamp(wrong, 0.5, 1); });
    }
}

void add_where_and_views(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       booleans = zeros({2, 3}, {DType::boolean}), small = zeros({2}, {DType::u8});
    add("where", [=] { where(x, x, x); });
    add("where", [=] { where(booleans, small, 256); });
    add("where", [=] { where(none, 1, 2); });
    add("where", [=] { where(booleans, x, none); });
    add("where", [=] { where(booleans, x, other); });

    add("reshape", [=] { reshape(none, {6}); });
    add("reshape", [=] { reshape(x, {4}); });
    add("reshape", [=] { reshape(x, {-1, 4}); });
    add("flatten", [=] { flatten(none); });
    add("flatten", [=] { flatten(x, 5); });
    add("permute", [=] { permute(none, {0}); });
    add("permute", [=] { permute(x, {0}); });
    add("permute", [=] { permute(x, {0, 0}); });
    add("permute", [=] { permute(x, {0, 2}); });
    add("permute", [=] { permute(x, {0, 1, 0}); });
    add("permute", [=] { permute(x, {1, -1}); });
    add("transpose", [=] { transpose(none); });
    add("transpose", [=] { transpose(x, 0, 2); });
    add("transpose", [=] { transpose(other); });
    add("slice", [=] { slice(none, 0, 0, 1); });
    add("slice", [=] { slice(x, 2, 0, 1); });
    add("slice", [=] { slice(x, 0, 0, 1, 0); });
    add("select", [=] { select(none, 0, 0); });
    add("select", [=] { select(x, 2, 0); });
    add("select", [=] { select(x, 1, 3); });
    for (const Tensor& wrong : {none, other, integers}) {
        add("slice_scatter", [=] { slice_scatter(x, wrong, 0, 0, 1); });
        add("select_scatter", [=] { select_scatter(x, wrong, 0, 0); });
    }
    add("slice_scatter", [=] { slice_scatter(none, x, 0, 0, 1); });
    add("slice_scatter", [=] { slice_scatter(x, x, 3, 0, 1); });
    add("select_scatter", [=] { select_scatter(none, x, 0, 0); });
    add("select_scatter", [=] { select_scatter(x, other, 0, -3); });
    add("expand", [=] { expand(none, {2}); });
    add("expand", [=] { expand(x, {2, 4}); });
    add("expand", [=] { expand(x, {3}); });
    for (const auto& [name, function] : {pair_of_name("concat", concat), pair_of_name("cat", cat)}) {
        add(name, [f = function] { f({}, 0); });
        add(name, [=, f = function] { f({x, none}, 0); });
        add(name, [=, f = function] { f({x, other}, 0); });
        add(name, [=, f = function] { f({x, x}, 2); });
    }
    add("pad", [=] { pad(none, {0}, {0}); });
    add("pad", [=] { pad(x, {0}, {0}); });
    add("pad", [=] { pad(x, {0, -4}, {0, 0}); });
    add("pad", [=] { pad(integers, {0, 1}, {0, 0}, 0.5); });
}

void add_reductions(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), integers = zeros({2, 3}, {DType::i32});
    for (const auto& [name, function] : {pair_of_name("sum", sum), pair_of_name("mean", mean),
                                         pair_of_name<Tensor, Tensor, const Dims&, bool>("max", max),
                                         pair_of_name<Tensor, Tensor, const Dims&, bool>("min", min)}) {
        add(name, [f = function] { f({}, {}, false); });
        add(name, [=, f = function] { f(x, {2}, false); });
        add(name, [=, f = function] { f(x, {0, 0}, false); });
    }
    add("mean", [=] { mean(integers); });
    add("max", [=] { max(zeros({0, 2}), {0}); });
    add("min", [=] { min(zeros({0, 2}), {0}); });
    add("argmax", [=] { argmax(none); });
    add("argmax", [=] { argmax(x, 2); });
    add("argmax", [=] { argmax(zeros({0, 2}), 0); });
}

void add_softmax_and_losses(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       labels = zeros({2}, {DType::i64}), channels = zeros({2});
    for (const auto& [name, function] : {pair_of_name("softmax", softmax), pair_of_name("log_softmax", log_softmax)}) {
        add(name, [=, f = function] { f(none, -1); });
        add(name, [=, f = function] { f(x, 2); });
        add(name, [=, f = function] { f(integers, -1); });
    }
    add("cross_entropy", [=] { cross_entropy(none, labels); });
    add("cross_entropy", [=] { cross_entropy(x, none); });
    add("cross_entropy", [=] { cross_entropy(integers, labels); });
    add("cross_entropy", [=] { cross_entropy(x, integers); });
    add("cross_entropy", [=] { cross_entropy(x, labels, {}, other); });
    add("cross_entropy", [=] { cross_entropy(x, channels); });
    add("cross_entropy", [=] { cross_entropy(other, labels); });
    add("cross_entropy", [=] { cross_entropy(zeros({3, 3}), labels); });
    add("cross_entropy", [=] { cross_entropy(zeros({2, 0}), labels); });
    add("cross_entropy", [=] { cross_entropy(x, labels, {.label_smoothing = 1}); });
    const auto binary_loss =
        +[](const Tensor& a, const Tensor& b, Reduction reduction) { return bce_with_logits(a, b, reduction); };
    const auto squares =
        +[](const Tensor& a, const Tensor& b, Reduction reduction) { return mse_loss(a, b, reduction); };
    for (const auto& [name, function] :
         {pair_of_name("mse_loss", squares), pair_of_name("bce_with_logits", binary_loss)}) {
        for (const Tensor& wrong : {none, other}) {
            add(name, [=, f = function] { f(x, wrong, Reduction::mean); });
            add(name, [=, f = function] { f(wrong, x, Reduction::sum); });
        }
        add(name, [=, f = function] { f(zeros({1}, {DType::u64}), zeros({1}, {DType::i8}), Reduction::none); });
    }
}

void add_products(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32});
    add("matmul", [=] { matmul(x, none); });
    add("matmul", [=] { matmul(x, x); });
    add("matmul", [=] { matmul(x, zeros({})); });
    add("matmul", [=] { matmul(x, other); });
    add("matmul", [=] { matmul(other, x); });
    add("matmul", [=] { matmul(integers == 0, transpose(integers == 0)); });
    add("matmul", [=] { matmul(x, transpose(integers)); });
    add("matmul", [=] { matmul(zeros({2, 3, 4}), zeros({3, 4, 5})); });
    add("matmul", [=] { matmul(zeros({2, 3, 4}), zeros({5, 4})); });
    add("linear", [=] { linear(none, x); });
    add("linear", [=] { linear(x, none); });
    add("linear", [=] { linear(x, zeros({3, 2})); });
    add("linear", [=] { linear(x, x, other); });
    add("linear", [=] { linear(integers, integers); });
    add("linear", [=] { linear(integers, x); });
    add("linear", [=] { linear(x, integers); });
    add("linear", [=] { linear(x, x, zeros({2}, {DType::i32})); });
}

void add_convolutions_and_pools(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), image = zeros({1, 2, 4, 4}),
                       integer_image = zeros({1, 2, 4, 4}, {DType::i32});
    const Tensor filter = zeros({3, 2, 3, 3}), integer_filter = zeros({3, 2, 3, 3}, {DType::i32});
    add("conv2d", [=] { conv2d(none, filter); });
    add("conv2d", [=] { conv2d(image, none); });
    add("conv2d", [=] { conv2d(x, filter); });
    add("conv2d", [=] { conv2d(image, x); });
    add("conv2d", [=] { conv2d(image, zeros({3, 4, 3, 3})); });
    add("conv2d", [=] { conv2d(image, zeros({3, 2, 5, 5})); });
    add("conv2d", [=] { conv2d(image, filter, other); });
    add("conv2d", [=] { conv2d(image, filter, zeros({3}, {DType::i32})); });
    add("conv2d", [=] { conv2d(integer_image > 0, integer_filter > 0); });
    add("conv2d", [=] { conv2d(image, integer_filter); });
    add("conv2d", [=] { conv2d(image.to(DType::f16), filter); });
    add("conv2d", [=] { conv2d(image, filter, {}, {.stride = 0}); });
    add("conv2d", [=] { conv2d(image, filter, {}, {.padding = -1}); });
    add("conv2d", [=] { conv2d(image, filter, {}, {.dilation = 0}); });
    add("conv2d", [=] { conv2d(image, filter, {}, {.groups = 3}); });
    for (const auto& [name, function] :
         {pair_of_name<Tensor, const Tensor&, const Pool2dParameters&>("max_pool2d", max_pool2d),
          pair_of_name<Tensor, const Tensor&, const Pool2dParameters&>("avg_pool2d", avg_pool2d)}) {
        for (const Tensor& wrong : {none, x, integer_image > 0}) add(name, [=, f = function] { f(wrong, {}); });
        add(name, [=, f = function] { f(image, {.kernel_size = 5}); });
        add(name, [=, f = function] { f(image, {.kernel_size = 0}); });
        add(name, [=, f = function] { f(image, {.padding = 2}); });
        add(name, [=, f = function] { f(image, {.stride = -1}); });
    }
    for (const Tensor& wrong : {none, x, integer_image}) add("global_avg_pool2d", [=] { global_avg_pool2d(wrong); });
}

void add_batch_norm_and_dropout(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       image = zeros({1, 2, 4, 4}), integer_image = zeros({1, 2, 4, 4}, {DType::i32}),
                       labels = zeros({2}, {DType::i64}), channels = zeros({2});
    for (const bool training : {true, false})
        for (const bool graph : {true, false}) {
            const BatchNormParameters options{.training = training};
            const Tensor in = graph ? zeros({1, 2, 4, 4}).set_requires_grad() : image;
            add("batch_norm", [=] { batch_norm(none, channels, channels, channels, channels, options); });
            add("batch_norm", [=] { batch_norm(other, channels, channels, channels, channels, options); });
            add("batch_norm", [=] { batch_norm(integer_image, channels, channels, channels, channels, options); });
            add("batch_norm", [=] { batch_norm(in, other, channels, channels, channels, options); });
            add("batch_norm", [=] { batch_norm(in, channels, other, channels, channels, options); });
            add("batch_norm", [=] { batch_norm(in, channels, channels, other, channels, options); });
            add("batch_norm", [=] { batch_norm(in, channels, channels, channels, other, options); });
            add("batch_norm", [=] { batch_norm(in, labels, channels, channels, channels, options); });
            add("batch_norm",
                [=] { batch_norm(in, channels, channels, channels, channels, {.training = training, .momentum = 2}); });
            add("batch_norm",
                [=] { batch_norm(in, channels, channels, channels, channels, {.training = training, .eps = 0}); });
        }
    add("batch_norm", [=] { batch_norm(image, channels, channels, none, none, {.training = false}); });
    add("batch_norm", [=] { batch_norm(zeros({1, 2}), channels, channels, channels, channels); });
    add("dropout", [=] { dropout(none); });
    add("dropout", [=] { dropout(integers); });
    add("dropout", [=] { dropout(x, 1.5); });
}

void add_new_tensors(Mistakes& add) {
    const Tensor none;
    const Shape negative{2, -1}, huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
    for (const Shape& wrong : {negative, huge}) {
        add("full", [=] { full(wrong, 1); });
        add("zeros", [=] { zeros(wrong); });
        add("ones", [=] { ones(wrong); });
        add("uniform", [=] { uniform(wrong); });
        add("normal", [=] { normal(wrong); });
        add("bernoulli", [=] { bernoulli(wrong, 0.5); });
        add("rand", [=] { rand(wrong); });
        add("randn", [=] { randn(wrong); });
        add("Tensor::from", [=] { (void)Tensor::from<float>({1, 2}, wrong); });
    }
    add("full", [] { full({2}, 0.5, {DType::i32}); });
    add("zeros_like", [=] { zeros_like(none); });
    add("ones_like", [=] { ones_like(none); });
    add("arange", [] { arange(0, 1, 0); });
    add("arange", [] { arange(0, 1e30); });
    add("arange", [] { arange(0, 300, 1, {DType::u8}); });
    add("arange", [] { arange(0, 1, 0.5, {DType::i32}); });
    add("arange", [] { arange(0, 1, 1, {DType::boolean}); });
    add("uniform", [] { uniform({2}, 1, 0); });
    add("normal", [] { normal({2}, 0, -1); });
    add("bernoulli", [] { bernoulli({2}, 2); });
    add("Tensor::from", [] { (void)Tensor::from<float>({1, 2}, {3}); });
    add("Tensor::from_bytes", [] { (void)Tensor::from_bytes({}, DType::f32, {3}); });
    add("Tensor::from_bytes", [] { (void)Tensor::from_bytes(std::vector<std::byte>(5), DType::f32, {1}); });
}

void add_members(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), integers = zeros({2, 3}, {DType::i32}),
                       leaf = zeros({2, 3}).set_requires_grad();
    add("shape", [=] { (void)none.shape(); });
    add("sizes", [=] { (void)none.sizes(); });
    add("size", [=] { (void)none.size(0); });
    add("size", [=] { (void)x.size(2); });
    add("rank", [=] { (void)none.rank(); });
    add("dim", [=] { (void)none.dim(); });
    add("numel", [=] { (void)none.numel(); });
    add("dtype", [=] { (void)none.dtype(); });
    add("device", [=] { (void)none.device(); });
    add("item", [=] { (void)none.item<float>(); });
    add("item", [=] { (void)x.item<float>(); });
    add("item", [=] { (void)zeros({}).item<double>(); });
    add("to_vector", [=] { (void)none.to_vector<float>(); });
    add("to_vector", [=] { (void)x.to_vector<double>(); });
    add("copy_to", [=] { none.copy_to(std::span<float>()); });
    add("copy_to", [=] { x.copy_to(std::span<float>()); });
    add("to", [=] { (void)none.to(DType::f64); });
    add("to", [=] { (void)none.to(default_device()); });
    add("clone", [=] { (void)none.clone(); });
    add("requires_grad", [=] { (void)none.requires_grad(); });
    add("set_requires_grad", [=] { Tensor(none).set_requires_grad(); });
    add("set_requires_grad", [=] { Tensor(integers).set_requires_grad(); });
    add("set_requires_grad", [=] { (leaf * 2.0).set_requires_grad(); });
}

void add_members_of_graph(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       leaf = zeros({2, 3}).set_requires_grad();
    add("is_leaf", [=] { (void)none.is_leaf(); });
    add("grad", [=] { (void)none.grad(); });
    add("set_grad", [=] { Tensor(none).set_grad(x); });
    add("set_grad", [=] { Tensor(leaf).set_grad(other); });
    add("set_grad", [=] { Tensor(leaf).set_grad(integers); });
    add("zero_grad", [=] { Tensor(none).zero_grad(); });
    add("backward", [=] { none.backward(); });
    add("backward", [=] { x.backward(); });
    add("backward", [=] { (leaf * 2.0).backward(); });
    add("backward", [=] { (leaf * 2.0).backward(other); });
    add("detach", [=] { (void)none.detach(); });
    add("register_hook", [=] { Tensor(none).register_hook({}); });
    add("register_hook", [=] { Tensor(x).register_hook([](const Tensor& g) { return g; }); });
    add("register_hook", [=] { Tensor(leaf).register_hook({}); });
    const char* const hook_name = "register_post_accumulate_grad_hook";
    add(hook_name, [=] { Tensor(none).register_post_accumulate_grad_hook({}); });
    add(hook_name, [=] { Tensor(x).register_post_accumulate_grad_hook([](Tensor&) {}); });
    add(hook_name, [=] { Tensor(leaf).register_post_accumulate_grad_hook({}); });
    add("remove_hook", [=] { Tensor(none).remove_hook(1); });
}

void add_in_place(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), other = zeros({4}), integers = zeros({2, 3}, {DType::i32}),
                       booleans = zeros({2, 3}, {DType::boolean}), leaf = zeros({2, 3}).set_requires_grad(),
                       small = zeros({2}, {DType::u8});
    add("copy_", [=] { Tensor(none).copy_(x); });
    add("copy_", [=] { Tensor(x).copy_(none); });
    add("copy_", [=] { Tensor(x).copy_(other); });
    add("copy_", [=] { Tensor(x).copy_(integers); });
    add("copy_", [=] { Tensor(leaf).copy_(x); });
    add("fill_", [=] { Tensor(none).fill_(1); });
    add("fill_", [=] { Tensor(integers).fill_(0.5); });
    add("fill_", [=] { expand(zeros({1}, {DType::f32}), {3}).fill_(0.5); });
    add("add_", [=] { Tensor(none).add_(x); });
    add("add_", [=] { Tensor(x).add_(none); });
    add("add_", [=] { Tensor(x).add_(other); });
    add("add_", [=] { Tensor(integers).add_(x); });
    add("add_", [=] { Tensor(integers).add_(0.5); });
    add("add_", [=] { Tensor(small).add_(256); });
    add("add_", [=] { Tensor(booleans).add_(0.5); });
    add("add_", [=] { expand(zeros({1}), {3}).add_(zeros({3})); });
    add("sub_", [=] { Tensor(none).sub_(x); });
    add("sub_", [=] { Tensor(x).sub_(none); });
    add("sub_", [=] { (leaf * 2.0).sub_(other); });
    add("sub_", [=] { Tensor(leaf).sub_(x); });
    add("mul_", [=] { Tensor(x).mul_(other); });
    add("div_", [=] { Tensor(integers).div_(integers); });
    add("div_", [=] { Tensor(integers).div_(2); });
    add("zero_", [=] { Tensor(none).zero_(); });
    add("copy_", [=] { (leaf * 2.0).copy_(other); });
    add("mul_", [=] { Tensor(none).mul_(2); });
    add("mul_", [=] { Tensor(integers).mul_(0.5); });
    add("mul_", [=] { expand(zeros({1}), {3}).mul_(2); });
    add("copy_", [=] { expand(zeros({1}), {3}).copy_(zeros({3})); });
}

void add_access_and_grad(Mistakes& add) {
    const Tensor none, x = zeros({2, 3}), leaf = zeros({2, 3}).set_requires_grad();
    add("view", [=] { (void)none.view(); });
    add("dense_view", [=] { (void)none.dense_view(); });
    add("value", [=] { (void)none.value(); });
    add("assign", [=] { Tensor(none).assign(x); });
    add("assign", [=] { Tensor(x).assign(none); });
    add("assign", [=] { (leaf * 2.0).assign(x); });
    add("bump_version", [=] { none.bump_version(); });
    add("grad", [=] { (void)grad({x}, {leaf}); });
    add("grad", [=] { (void)grad({none}, {leaf}); });
    add("grad", [=] { (void)grad({sum(leaf)}, {none}); });
    add("grad", [=] { (void)grad({leaf * 2.0}, {leaf}); });
}

std::vector<InvalidCall> mistakes() {
    Mistakes all;
    for (const auto add_part :
         {add_operator_tables, add_operators, add_where_and_views, add_reductions, add_softmax_and_losses, add_products,
          add_convolutions_and_pools, add_batch_norm_and_dropout, add_new_tensors, add_members, add_members_of_graph,
          add_in_place, add_access_and_grad})
        add_part(all);
    return all.all;
}

}  // namespace

TEST_CASE("names: errors begin with the called name") {
    for (const InvalidCall& mistake : mistakes()) {
        const std::string message = error_of(mistake);
        CHECK_MESSAGE(message.starts_with(mistake.name + ": "), mistake.name << " says: " << message);
    }
}

TEST_CASE("names: errors of functions of integers, numbers and products") {
    const Tensor integers = zeros({2}, {DType::i32});
    CHECK_THROWS_WITH_AS(integers & 0.5, "operator&: expected integers or bool, got f32, f32", TypeError);
    CHECK_THROWS_WITH_AS(-(integers == 0), "operator-: expected numbers, got bool", TypeError);
    CHECK_THROWS_WITH_AS(minimum(1, 2), "minimum: expected a tensor among its inputs, got numbers", ValueError);
    CHECK_THROWS_WITH_AS(matmul(zeros({2, 2}, {DType::boolean}), zeros({2, 2}, {DType::boolean})),
                         "matmul: expected f32, f64, f16 or bf16 as a, got bool (convert with .to(DType::f32))",
                         TypeError);
    CHECK_THROWS_WITH_AS(permute(zeros({2, 3}), {-1, 1}), "permute: expected each axis of [2, 3] once, got [-1, 1]",
                         ShapeError);
}
