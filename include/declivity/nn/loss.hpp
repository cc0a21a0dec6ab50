// Layer 6. Loss objects with options, accepted by a Trainer.
#pragma once

#include <declivity/functions/functions.hpp>

namespace declivity::nn {

/// @addtogroup nn_loss
/// @{

/// declivity::cross_entropy with the given options: nn::CrossEntropyLoss loss({.label_smoothing = 0.1}), and optional
/// class weights.
class CrossEntropyLoss {
  public:
    explicit CrossEntropyLoss(const CrossEntropyOptions& options = {}, const Tensor& weight = {})
        : options_(options), weight_(weight) {}
    Tensor operator()(const Tensor& logits, const Tensor& target) const {
        return cross_entropy(logits, target, options_, weight_);
    }

  private:
    CrossEntropyOptions options_;
    Tensor weight_;
};

/// declivity::mse_loss.
class MSELoss {
  public:
    explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
    Tensor operator()(const Tensor& x, const Tensor& target) const { return mse_loss(x, target, reduction_); }

  private:
    Reduction reduction_;
};

/// declivity::bce_with_logits.
class BCEWithLogitsLoss {
  public:
    explicit BCEWithLogitsLoss(Reduction reduction = Reduction::mean, const Tensor& weight = {},
                               const Tensor& pos_weight = {})
        : reduction_(reduction), weight_(weight), pos_weight_(pos_weight) {}
    Tensor operator()(const Tensor& logits, const Tensor& target) const {
        return bce_with_logits(logits, target, reduction_, weight_, pos_weight_);
    }

  private:
    Reduction reduction_;
    Tensor weight_, pos_weight_;
};

// The following losses are aggregates of options: nn::HuberLoss{.delta = 0.5}, nn::TripletMarginLoss{{.margin = 2}}.

struct NLLLoss {
    NllLossOptions options = {};
    Tensor weight = {};
    Tensor operator()(const Tensor& x, const Tensor& labels) const { return nll_loss(x, labels, options, weight); }
};

struct MultiMarginLoss {
    MultiMarginLossOptions options = {};
    Tensor weight = {};
    Tensor operator()(const Tensor& x, const Tensor& labels) const {
        return multi_margin_loss(x, labels, options, weight);
    }
};

struct BCELoss {
    Reduction reduction = Reduction::mean;
    Tensor weight = {};
    Tensor operator()(const Tensor& x, const Tensor& target) const {
        return binary_cross_entropy(x, target, reduction, weight);
    }
};

struct MultiLabelSoftMarginLoss {
    Reduction reduction = Reduction::mean;
    Tensor weight = {};
    Tensor operator()(const Tensor& x, const Tensor& target) const {
        return multilabel_soft_margin_loss(x, target, reduction, weight);
    }
};

struct MultiLabelMarginLoss {
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x, const Tensor& labels) const {
        return multilabel_margin_loss(x, labels, reduction);
    }
};

struct SoftMarginLoss {
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x, const Tensor& target) const { return soft_margin_loss(x, target, reduction); }
};

struct HingeEmbeddingLoss {
    double margin = 1;
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x, const Tensor& target) const {
        return hinge_embedding_loss(x, target, margin, reduction);
    }
};

struct L1Loss {
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x, const Tensor& target) const { return l1_loss(x, target, reduction); }
};

struct SmoothL1Loss {
    Reduction reduction = Reduction::mean;
    double beta = 1;
    Tensor operator()(const Tensor& x, const Tensor& target) const {
        return smooth_l1_loss(x, target, reduction, beta);
    }
};

struct HuberLoss {
    Reduction reduction = Reduction::mean;
    double delta = 1;
    Tensor operator()(const Tensor& x, const Tensor& target) const { return huber_loss(x, target, reduction, delta); }
};

struct KLDivLoss {
    Reduction reduction = Reduction::mean;
    bool log_target = false;
    Tensor operator()(const Tensor& x, const Tensor& target) const { return kl_div(x, target, reduction, log_target); }
};

struct PoissonNLLLoss {
    PoissonNllLossOptions options = {};
    Tensor operator()(const Tensor& x, const Tensor& target) const { return poisson_nll_loss(x, target, options); }
};

struct GaussianNLLLoss {
    GaussianNllLossOptions options = {};
    Tensor operator()(const Tensor& x, const Tensor& target, const Tensor& var) const {
        return gaussian_nll_loss(x, target, var, options);
    }
};

struct CosineSimilarity {
    std::int64_t axis = 1;
    double eps = 1e-8;
    Tensor operator()(const Tensor& x1, const Tensor& x2) const { return cosine_similarity(x1, x2, axis, eps); }
};

struct PairwiseDistance {
    double p = 2;
    double eps = 1e-6;
    bool keep_axis = false;
    Tensor operator()(const Tensor& x1, const Tensor& x2) const { return pairwise_distance(x1, x2, p, eps, keep_axis); }
};

struct MarginRankingLoss {
    double margin = 0;
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& target) const {
        return margin_ranking_loss(x1, x2, target, margin, reduction);
    }
};

struct CosineEmbeddingLoss {
    double margin = 0;
    Reduction reduction = Reduction::mean;
    Tensor operator()(const Tensor& x1, const Tensor& x2, const Tensor& target) const {
        return cosine_embedding_loss(x1, x2, target, margin, reduction);
    }
};

struct TripletMarginLoss {
    TripletMarginLossOptions options = {};
    Tensor operator()(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
        return triplet_margin_loss(anchor, positive, negative, options);
    }
};

struct TripletMarginWithDistanceLoss {
    TripletMarginWithDistanceLossOptions options = {};
    Tensor operator()(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
        return triplet_margin_with_distance_loss(anchor, positive, negative, options);
    }
};

/// Lengths as tensors, or as std::vector<std::int64_t>.
struct CTCLoss {
    CtcLossOptions options = {};
    template <class Lengths>
    Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Lengths& input_lengths,
                      const Lengths& target_lengths) const {
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
    }
};

/// @}

}  // namespace declivity::nn
