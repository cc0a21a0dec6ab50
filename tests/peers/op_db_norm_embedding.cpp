// Adapters for PyTorch's normalisation, embeddings, sequences and distances.
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

std::optional<std::int64_t> integer_or_none(A& a, std::size_t position, const char* name) {
    if (!a.is_given(position, name)) return std::nullopt;
    return a.integer(position, name);
}
std::optional<double> number_or_none(A& a, std::size_t position, const char* name) {
    if (!a.is_given(position, name)) return std::nullopt;
    return a.number(position, name);
}

/// Saved statistics of a normalisation: mean and 1 / sqrt(variance + eps), without a gradient.
Tensors statistics(const Tensor& x, const Dims& axes, double eps, bool keep_axes) {
    const NoGrad no_grad;
    const Tensor upcast = x.detach().to(is_16bit_float(x.dtype()) ? DType::f32 : x.dtype());
    return {mean(upcast, axes, keep_axes), rsqrt(var(upcast, axes, 0, keep_axes) + eps)};
}

/// A copy that may be written.
Tensor detached_copy(const Tensor& x) { return x.defined() ? x.detach().clone() : x; }

void add_batch_norm(Table& all) {
    const auto call = [](A& a, std::size_t weight, std::size_t running) {
        const Tensor x = a.tensor(0);
        BatchNormParameters options{.training = a.flag(5, "training", false)};
        options.momentum = a.number(6, "momentum", 0.1);
        options.eps = a.number(7, "eps", 1e-5);
        const Tensor scale = a.tensor_or_none(weight, "weight"), bias = a.tensor_or_none(weight + 1, "bias"),
                     mean = detached_copy(a.tensor_or_none(running, "running_mean")),
                     var = detached_copy(a.tensor_or_none(running + 1, "running_var"));
        return std::pair(batch_norm(x, scale, bias, mean, var, options), options);
    };
    all["nn.functional.batch_norm"] = [call](A& a) { return Tensors{call(a, 3, 1).first}; };
    all["native_batch_norm"] = [call](A& a) {
        const auto [y, options] = call(a, 1, 3);
        const Tensor x = a.tensor(0);
        Dims axes{0};
        for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
        const TensorOptions like{x.dtype(), x.device()};
        Tensors results =
            options.training ? statistics(x, axes, options.eps, false) : Tensors{zeros({0}, like), zeros({0}, like)};
        results.insert(results.begin(), y);
        return results;
    };
}

void add_norms(Table& all) {
    add_batch_norm(all);
    all["native_layer_norm"] = [](A& a) {
        const Dims shape = a.dims(1, "normalized_shape");
        const Tensor x = a.tensor(0);
        const double eps = a.number(4, "eps", 1e-5);
        if (shape.numel() == 1) a.loosen(50);  // a gradient of 0, which both compute from large numbers
        Dims axes;
        for (int axis = x.rank() - shape.rank(); axis < x.rank(); ++axis) axes.push_back(axis);
        Tensors results = statistics(x, axes, eps, true);
        results.insert(results.begin(),
                       layer_norm(x, shape, a.tensor_or_none(2, "weight"), a.tensor_or_none(3, "bias"), eps));
        return results;
    };
    all["nn.functional.group_norm"] = [](A& a) {
        const std::int64_t groups = a.integer(1, "num_groups");
        const Tensor weight = a.tensor_or_none(2, "weight"), bias = a.tensor_or_none(3, "bias");
        return Tensors{group_norm(a.tensor(0), groups, weight, bias, a.number(4, "eps", 1e-5))};
    };
    all["nn.functional.instance_norm"] = [](A& a) {
        InstanceNormParameters options{.use_input_stats = a.flag(5, "use_input_stats", true)};
        options.momentum = a.number(6, "momentum", 0.1);
        options.eps = a.number(7, "eps", 1e-5);
        const Tensor mean = detached_copy(a.tensor_or_none(1, "running_mean")),
                     var = detached_copy(a.tensor_or_none(2, "running_var")), weight = a.tensor_or_none(3, "weight"),
                     bias = a.tensor_or_none(4, "bias");
        return Tensors{instance_norm(a.tensor(0), weight, bias, mean, var, options)};
    };
    all["nn.functional.local_response_norm"] = [](A& a) {
        const std::int64_t size = a.integer(1, "size");
        const double alpha = a.number(2, "alpha", 1e-4), beta = a.number(3, "beta", 0.75);
        return Tensors{local_response_norm(a.tensor(0), size, alpha, beta, a.number(4, "k", 1))};
    };
    all["nn.functional.normalize"] = [](A& a) {
        const double p = a.number(1, "p", 2);
        const std::int64_t axis = a.integer(2, "dim", 1);
        return Tensors{normalize(a.tensor(0), p, axis, a.number(3, "eps", 1e-12))};
    };
    for (const char* name : {"nn.functional.channel_shuffle", "native_channel_shuffle"})
        all[name] = [](A& a) { return Tensors{channel_shuffle(a.tensor(0), a.integer(1, "groups"))}; };
}

void add_embeddings(Table& all) {
    all["nn.functional.embedding"] = [](A& a) {
        // op_db has the table first.
        EmbeddingParameters options{.padding_idx = integer_or_none(a, 99, "padding_idx")};
        options.max_norm = number_or_none(a, 99, "max_norm");
        options.norm_type = a.number(99, "norm_type", 2);
        options.scale_grad_by_freq = a.flag(99, "scale_grad_by_freq", false);
        if (a.flag(99, "sparse", false)) throw UnsupportedSample("a sparse gradient");
        return Tensors{embedding(a.tensor(1), a.tensor(0), options)};
    };
    all["nn.functional.embedding_bag"] = [](A& a) {
        EmbeddingBagParameters options{.include_last_offset = a.flag(99, "include_last_offset", false)};
        const std::string mode = a.word(99, "mode", "mean");
        options.mode = mode == "sum" ? BagMode::sum : mode == "max" ? BagMode::max : BagMode::mean;
        options.padding_idx = integer_or_none(a, 99, "padding_idx");
        options.max_norm = number_or_none(a, 99, "max_norm");
        options.norm_type = a.number(99, "norm_type", 2);
        options.scale_grad_by_freq = a.flag(99, "scale_grad_by_freq", false);
        if (a.flag(99, "sparse", false)) throw UnsupportedSample("a sparse gradient");
        const Tensor offsets = a.tensor_or_none(99, "offsets"), weights = a.tensor_or_none(99, "per_sample_weights");
        return Tensors{embedding_bag(a.tensor(1), a.tensor(0), offsets, weights, options)};
    };
}

std::vector<std::int64_t> lengths_of(A& a, std::size_t position, const char* name) {
    std::vector<std::int64_t> all;
    for (const double number : a.numbers(position, name)) all.push_back(static_cast<std::int64_t>(number));
    return all;
}

void add_losses_and_distances(Table& all) {
    all["nn.functional.ctc_loss"] = [](A& a) {
        CtcLossOptions options{.blank = a.integer(4, "blank", 0)};
        options.reduction = reduction_of(a);
        options.zero_infinity = a.flag(6, "zero_infinity", false);
        a.loosen(20);
        // PyTorch's gradient is that of log_softmax, which leaves log-probabilities unchanged.
        const Tensor x = log_softmax(a.tensor(0), -1), targets = a.tensor(1);
        try {
            return Tensors{ctc_loss(x, targets, a.tensor(2, "input_lengths"), a.tensor(3, "target_lengths"), options)};
        } catch (const UnsupportedSample&) {
            return Tensors{
                ctc_loss(x, targets, lengths_of(a, 2, "input_lengths"), lengths_of(a, 3, "target_lengths"), options)};
        }
    };
    all["cdist"] = [](A& a) {
        a.ignore("compute_mode");
        if (a.has(3)) (void)a.is_given(3);
        return Tensors{cdist(a.tensor(0), a.tensor(1), a.number(2, "p", 2))};
    };
    all["nn.functional.pdist"] = [](A& a) { return Tensors{pdist(a.tensor(0), a.number(1, "p", 2))}; };
    all["nn.functional.bilinear"] = [](A& a) {
        return Tensors{bilinear(a.tensor(0), a.tensor(1), a.tensor(2, "weight"), a.tensor_or_none(3, "bias"))};
    };
    all["nn.functional.softmin"] = [](A& a) {
        a.ignore("_stacklevel");
        return Tensors{softmin(a.tensor(0), a.integer(1, "dim", -1))};
    };
    all["nn.functional.mse_loss"] = [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{mse_loss(a.tensor(0), a.tensor(1, "target"), r, a.tensor_or_none(99, "weight"))};
    };
    all["nn.functional.l1_loss"] = [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{l1_loss(a.tensor(0), a.tensor(1, "target"), r, a.tensor_or_none(99, "weight"))};
    };
    all["nn.functional.huber_loss"] = [](A& a) {
        const Reduction r = reduction_of(a);
        const double delta = a.number(99, "delta", 1);
        return Tensors{huber_loss(a.tensor(0), a.tensor(1, "target"), r, delta, a.tensor_or_none(99, "weight"))};
    };
    all["nn.functional.kl_div"] = [](A& a) {
        const bool logarithm = a.flag(99, "log_target", false);
        const Tensor x = a.tensor(0), target = a.tensor(1);
        if (a.word(99, "reduction", "mean") == "batchmean")
            return Tensors{kl_div(x, target, Reduction::sum, logarithm) / static_cast<double>(x.size(0))};
        return Tensors{kl_div(x, target, reduction_of(a), logarithm)};
    };
    all["nn.functional.triplet_margin_with_distance_loss"] = [](A& a) {
        TripletMarginWithDistanceLossOptions options;
        if (a.is_given(99, "distance_function")) throw UnsupportedSample("a function of Python");
        options.margin = a.number(99, "margin", 1);
        options.swap = a.flag(99, "swap", false);
        options.reduction = reduction_of(a);
        return Tensors{triplet_margin_with_distance_loss(a.tensor(0), a.tensor(1), a.tensor(2), options)};
    };
}

const Adapters norms{add_norms}, embeddings{add_embeddings}, others{add_losses_and_distances};

}  // namespace
}  // namespace declivity::peers
