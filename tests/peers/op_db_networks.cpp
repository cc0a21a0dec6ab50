// Adapters for PyTorch's products, layers and losses.
#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

void add_products(Table& all) {
    for (const char* name : {"matmul", "__rmatmul__"})
        all[name] = [name = std::string(name)](A& a) {
            return Tensors{name == "__rmatmul__" ? matmul(a.tensor(1), a.tensor(0)) : matmul(a.tensor(0), a.tensor(1))};
        };
    all["nn.functional.linear"] = [](A& a) {
        return Tensors{linear(a.tensor(0), a.tensor(1, "weight"), a.tensor_or_none(2, "bias"))};
    };
    all["nn.functional.layer_norm"] = [](A& a) {
        const Dims shape = a.dims(1, "normalized_shape");
        if (shape.numel() == 1) a.loosen(50);  // a gradient of 0, which both compute from large numbers
        return Tensors{layer_norm(a.tensor(0), shape, a.tensor_or_none(2, "weight"), a.tensor_or_none(3, "bias"),
                                  a.number(4, "eps", 1e-5))};
    };
    all["nn.functional.rms_norm"] = [](A& a) {
        const Dims shape = a.dims(1, "normalized_shape");
        const Tensor x = a.tensor(0);
        const double least = x.dtype() == DType::f64 ? 0x1p-52 : 0x1p-23;
        return Tensors{rms_norm(x, shape, a.tensor_or_none(2, "weight"), a.number(3, "eps", least))};
    };
    all["nn.functional.scaled_dot_product_attention"] = [](A& a) {
        a.loosen_reduced_precision(4);  // the gradient uses the rounded result
        AttentionParameters options{.attn_mask = a.tensor_or_none(3, "attn_mask")};
        options.dropout_p = a.number(4, "dropout_p", 0);
        if (options.dropout_p > 0) throw UnsupportedSample("random numbers");
        options.is_causal = a.flag(5, "is_causal", false);
        if (a.is_given(6, "scale")) options.scale = a.number(6, "scale");
        options.enable_gqa = a.flag(7, "enable_gqa", false);
        return Tensors{scaled_dot_product_attention(a.tensor(0), a.tensor(1), a.tensor(2), options)};
    };
}

void add_losses(Table& all) {
    const auto add = [&](const char* name, Adapter adapter) {
        all[fmt::format("nn.functional.{}", name)] = std::move(adapter);
    };
    add("smooth_l1_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{smooth_l1_loss(a.tensor(0), a.tensor(1), r, a.number(99, "beta", 1))};
    });
    add("binary_cross_entropy", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{binary_cross_entropy(a.tensor(0), a.tensor(1), r, a.tensor_or_none(99, "weight"))};
    });
    add("binary_cross_entropy_with_logits", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{bce_with_logits(a.tensor(0), a.tensor(1), r, a.tensor_or_none(99, "weight"),
                                       a.tensor_or_none(99, "pos_weight"))};
    });
    add("nll_loss", [](A& a) {
        NllLossOptions options{.reduction = reduction_of(a)};
        options.ignore_index = a.integer(99, "ignore_index", -100);
        return Tensors{nll_loss(a.tensor(0), a.tensor(1), options, a.tensor_or_none(99, "weight"))};
    });
    add("cross_entropy", [](A& a) {
        CrossEntropyOptions options{.reduction = reduction_of(a)};
        options.ignore_index = a.integer(99, "ignore_index", -100);
        options.label_smoothing = a.number(99, "label_smoothing", 0);
        return Tensors{cross_entropy(a.tensor(0), a.tensor(1), options, a.tensor_or_none(99, "weight"))};
    });
    add("multi_margin_loss", [](A& a) {
        MultiMarginLossOptions options{.reduction = reduction_of(a)};
        options.p = a.integer(99, "p", 1);
        options.margin = a.number(99, "margin", 1);
        return Tensors{multi_margin_loss(a.tensor(0), a.tensor(1), options, a.tensor_or_none(99, "weight"))};
    });
    add("multilabel_margin_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{multilabel_margin_loss(a.tensor(0), a.tensor(1), r)};
    });
    add("multilabel_soft_margin_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{multilabel_soft_margin_loss(a.tensor(0), a.tensor(1), r, a.tensor_or_none(99, "weight"))};
    });
    add("soft_margin_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{soft_margin_loss(a.tensor(0), a.tensor(1), r)};
    });
    add("hinge_embedding_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{hinge_embedding_loss(a.tensor(0), a.tensor(1), a.number(99, "margin", 1), r)};
    });
    add("poisson_nll_loss", [](A& a) {
        PoissonNllLossOptions options{.reduction = reduction_of(a)};
        options.log_input = a.flag(99, "log_input", true);
        options.full = a.flag(99, "full", false);
        options.eps = a.number(99, "eps", 1e-8);
        return Tensors{poisson_nll_loss(a.tensor(0), a.tensor(1), options)};
    });
    add("gaussian_nll_loss", [](A& a) {
        GaussianNllLossOptions options{.reduction = reduction_of(a)};
        options.full = a.flag(99, "full", false);
        options.eps = a.number(99, "eps", 1e-6);
        return Tensors{gaussian_nll_loss(a.tensor(0), a.tensor(1), a.tensor(2, "var"), options)};
    });
    add("cosine_similarity", [](A& a) {
        return Tensors{cosine_similarity(a.tensor(0), a.tensor(1), a.integer(2, "dim", 1), a.number(3, "eps", 1e-8))};
    });
    add("pairwise_distance", [](A& a) {
        return Tensors{pairwise_distance(a.tensor(0), a.tensor(1), a.number(2, "p", 2), a.number(3, "eps", 1e-6),
                                         a.flag(4, "keepdim", false))};
    });
    add("margin_ranking_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{margin_ranking_loss(a.tensor(0), a.tensor(1), a.tensor(2), a.number(99, "margin", 0), r)};
    });
    add("cosine_embedding_loss", [](A& a) {
        const Reduction r = reduction_of(a);
        return Tensors{cosine_embedding_loss(a.tensor(0), a.tensor(1), a.tensor(2), a.number(99, "margin", 0), r)};
    });
    add("triplet_margin_loss", [](A& a) {
        TripletMarginLossOptions options{.reduction = reduction_of(a)};
        options.margin = a.number(99, "margin", 1);
        options.p = a.number(99, "p", 2);
        options.eps = a.number(99, "eps", 1e-6);
        options.swap = a.flag(99, "swap", false);
        return Tensors{triplet_margin_loss(a.tensor(0), a.tensor(1), a.tensor(2), options)};
    });
}

const Adapters products{add_products}, losses{add_losses};

}  // namespace

Reduction reduction_of(Arguments& a) {
    if (a.is_given(99, "size_average") || a.is_given(99, "reduce")) throw UnsupportedSample("size_average, reduce");
    const std::string name = a.word(99, "reduction", "mean");
    if (name == "mean") return Reduction::mean;
    if (name == "sum") return Reduction::sum;
    if (name == "none") return Reduction::none;
    throw UnsupportedSample("reduction " + name);
}

}  // namespace declivity::peers
