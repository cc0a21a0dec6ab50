// Layer 3. Losses, and the distances that they are made of. Semantics and defaults are PyTorch's, those of boxes and of
// sigmoid_focal_loss torchvision's.
//
// Inputs and targets have one shape where nothing else is said: a target that broadcasts is nearly always a mistake.
// Reduction::none gives what the others bring together. f16 and bf16 are computed in f32 and rounded once.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

enum class Reduction : std::uint8_t { mean, sum, none };
constexpr std::string_view name_of(Reduction reduction) noexcept {
    return reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
}

// ---- One class of C: labels of any integer type in [0, C). One outside of it makes the loss NaN: to look would be to
// wait.

struct CrossEntropyOptions {
    Reduction reduction = Reduction::mean;  ///< mean: over the weights of the labels that count
    double label_smoothing =
        0;  ///< in [0, 1): share of the target spread evenly over all classes (Szegedy et al. 2016, section 7)
    std::int64_t ignore_index = -100;  ///< rows with this label count for nothing
};
/// -log softmax(logits)[label], times weight[label]: logits (N, C, ...), labels (N, ...), or (C) and (); the trainer
/// says which label was none. A target of the logits' shape holds probabilities: minus the sum of target times weight
/// times log softmax, whose mean is over N, .... weight (C) or undefined.
DECLIVITY_API Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {},
                                   const Tensor& weight = {});

struct NllLossOptions {
    Reduction reduction = Reduction::mean;  ///< mean: over the weights of the labels that count
    std::int64_t ignore_index = -100;       ///< rows with this label count for nothing
};
/// -x[label] weight[label] of logarithms of probabilities x (N, C, ...), labels (N, ...), or (C) and (); weight (C) or
/// undefined.
DECLIVITY_API Tensor nll_loss(const Tensor& x, const Tensor& labels, const NllLossOptions& options = {},
                              const Tensor& weight = {});

struct MultiMarginLossOptions {
    std::int64_t p = 1;  ///< 1 or 2
    double margin = 1;
    Reduction reduction = Reduction::mean;
};
/// Sum over the other classes of max(0, margin - x[label] + x[class])^p, times weight[label] / C: x (N, C), labels (N),
/// or (C) and (); weight (C) or undefined.
DECLIVITY_API Tensor multi_margin_loss(const Tensor& x, const Tensor& labels,
                                       const MultiMarginLossOptions& options = {}, const Tensor& weight = {});

// ---- Several classes, and yes or no.

/// Binary cross entropy of probabilities x against targets in [0, 1], times a weight that broadcasts: logarithms are at
/// least -100, and the gradient is finite at 0 and 1.
DECLIVITY_API Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                          const Tensor& weight = {});
/// The same of sigmoid(logits), computed without overflow. weight and pos_weight, which counts where the target is 1,
/// broadcast, or are undefined.
DECLIVITY_API Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                                     const Tensor& weight = {}, const Tensor& pos_weight = {});
/// The same by its long name.
DECLIVITY_API Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                                      Reduction reduction = Reduction::mean, const Tensor& weight = {},
                                                      const Tensor& pos_weight = {});
/// bce_with_logits times (1 - p)^gamma, where p is the probability of the target, and times alpha for targets 1,
/// 1 - alpha for targets 0, or neither for alpha -1 (Lin et al. 2017).
DECLIVITY_API Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, double alpha = 0.25,
                                        double gamma = 2, Reduction reduction = Reduction::none);
/// Mean over C of bce_with_logits, times a weight that broadcasts: x and target (N, C), or (C).
DECLIVITY_API Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target,
                                                 Reduction reduction = Reduction::mean, const Tensor& weight = {});
/// Sum of max(0, 1 - x[label] + x[class]) / C over the labels of a row and the classes that are none of them: x (N, C)
/// or (C), labels of its shape, integers, which count up to the first that is below 0. Takes memory for N C^2
/// elements.
DECLIVITY_API Tensor multilabel_margin_loss(const Tensor& x, const Tensor& labels,
                                            Reduction reduction = Reduction::mean);
/// log(1 + exp(-target x)), targets 1 and -1.
DECLIVITY_API Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// x where the target is 1, max(0, margin - x) where it is -1.
DECLIVITY_API Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                                          Reduction reduction = Reduction::mean);

// ---- Numbers and distributions.

// A weight has the shape of x; the mean of mse_loss and l1_loss is over the weights then.

/// (x - target)^2.
DECLIVITY_API Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                              const Tensor& weight = {});
/// |x - target|.
DECLIVITY_API Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                             const Tensor& weight = {});
/// With d = |x - target|: d^2 / (2 beta) for d < beta, d - beta / 2 elsewhere (Girshick 2015). beta 0 is l1_loss.
DECLIVITY_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                    double beta = 1);
/// With d = |x - target|: d^2 / 2 for d <= delta, delta (d - delta / 2) elsewhere (Huber 1964).
DECLIVITY_API Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                double delta = 1, const Tensor& weight = {});
/// target (log(target) - x) of logarithms x; log_target: the target is a logarithm, too. The mean is over all elements;
/// the divergence of N distributions is Reduction::sum divided by N.
DECLIVITY_API Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                            bool log_target = false);

struct PoissonNllLossOptions {
    bool log_input = true;  ///< exp(x) - target x; otherwise x - target log(x + eps)
    bool full = false;      ///< with Stirling's approximation of log(target!) for targets above 1
    double eps = 1e-8;
    Reduction reduction = Reduction::mean;
};
/// Minus the logarithm of the probability of counts `target` under Poisson distributions of mean exp(x), or x.
DECLIVITY_API Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllLossOptions& options = {});

struct GaussianNllLossOptions {
    bool full = false;  ///< with log(2 pi) / 2
    double eps = 1e-6;  ///< what `var` is at least; its gradient is as if it were not cut
    Reduction reduction = Reduction::mean;
};
/// (log(var) + (x - target)^2 / var) / 2 (Nix, Weigend 1994): var has the shape of x, or its last axis is 1, or is left
/// out. The target stretches to x.
DECLIVITY_API Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                                       const GaussianNllLossOptions& options = {});

// ---- Distances.

/// x1 x2 / (max(|x1|, eps) max(|x2|, eps)) along one axis; x1 and x2 broadcast.
DECLIVITY_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, std::int64_t axis = 1, double eps = 1e-8);
/// p-norm of x1 - x2 + eps along the last axis, see norm; x1 and x2 broadcast.
DECLIVITY_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                                       bool keep_axis = false);
/// p-norms of the differences of each row of x1 (..., P, M) and each of x2 (..., R, M), p of at least 0, infinity
/// included (see norm): (..., P, R); the axes in front broadcast. Gradients of equal rows are 0.
DECLIVITY_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);
/// Those of rows i < j of x (N, M), row by row: (N (N - 1) / 2).
DECLIVITY_API Tensor pdist(const Tensor& x, double p = 2);
/// max(0, margin - target (x1 - x2)), targets 1 and -1.
DECLIVITY_API Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                                         Reduction reduction = Reduction::mean);
/// 1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1: x1 and x2 (N, D), target (N); or
/// (D) and ().
DECLIVITY_API Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                                           Reduction reduction = Reduction::mean);

struct TripletMarginLossOptions {
    double margin = 1;
    double p = 2;
    double eps = 1e-6;
    bool swap = false;  ///< the negative is compared with whichever of the others is nearer (Balntas et al. 2016)
    Reduction reduction = Reduction::mean;
};
/// max(0, margin + pairwise_distance(anchor, positive) - pairwise_distance(anchor, negative)), of (N, D) or (D).
DECLIVITY_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginLossOptions& options = {});
struct TripletMarginWithDistanceLossOptions {
    /// Distances of pairs of tensors of one shape; none: pairwise_distance.
    std::function<Tensor(const Tensor&, const Tensor&)> distance = {};
    double margin = 1;
    bool swap = false;  ///< as TripletMarginLossOptions::swap
    Reduction reduction = Reduction::mean;
};
/// The same by another distance.
DECLIVITY_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                                       const Tensor& negative,
                                                       const TripletMarginWithDistanceLossOptions& options = {});
/// Cross entropy of query keys^T / temperature, where key i belongs to query i (van den Oord et al. 2018): both (N, D).
/// Nothing is normalised here.
DECLIVITY_API Tensor info_nce(const Tensor& query, const Tensor& keys, double temperature = 0.1,
                              Reduction reduction = Reduction::mean);

// ---- Sequences.

struct CtcLossOptions {
    std::int64_t blank = 0;
    Reduction reduction = Reduction::mean;  ///< mean: of each loss divided by the length of its target (at least 1)
    bool zero_infinity = false;  ///< targets that are too long for their input count as 0, and get no gradient
};
/// Minus the logarithm of the probability of a target, summed over all its alignments to T steps, with blanks between
/// and repetitions (connectionist temporal classification, Graves et al. 2006): log_probs (T, N, C), logarithms of
/// probabilities; targets (N, S), filled up at the ends, or all one after the other; lengths (N) of inputs and targets.
/// Or (T, C), (S) and lengths () of one sequence. Labels and lengths are i32 or i64; a label, or a length, that there
/// is not gives NaN. Where a target is too long for its input the loss is infinite, and its gradient NaN. The gradient
/// is that of the function itself; PyTorch's is the one for what log_softmax makes log_probs from.
DECLIVITY_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                              const Tensor& target_lengths, const CtcLossOptions& options = {});
/// The same with lengths that the program knows, which are checked.
DECLIVITY_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                              const std::vector<std::int64_t>& input_lengths,
                              const std::vector<std::int64_t>& target_lengths, const CtcLossOptions& options = {});

// ---- Regions: probabilities and targets (N, C, ...), sums over what follows, a loss (N, C) for Reduction::none.

/// 1 - (2 sum(x target) + smooth) / (sum(x) + sum(target) + smooth) (Milletari et al. 2016, without squares).
DECLIVITY_API Tensor dice_loss(const Tensor& x, const Tensor& target, double smooth = 1,
                               Reduction reduction = Reduction::mean);

struct TverskyLossOptions {
    double alpha = 0.5;  ///< weight of sum(x (1 - target)), what is found and is not there
    double beta = 0.5;   ///< weight of sum((1 - x) target), what is there and is not found
    double smooth = 1;
    Reduction reduction = Reduction::mean;
};
/// 1 - (hits + smooth) / (hits + alpha false positives + beta false negatives + smooth), hits = sum(x target) (Salehi
/// et al. 2017).
/// @throws ValueError for alpha or beta below 0
DECLIVITY_API Tensor tversky_loss(const Tensor& x, const Tensor& target, const TverskyLossOptions& options = {});

// ---- Boxes x1, y1, x2, y2 with x1 <= x2 and y1 <= y2; losses of pairs of boxes (N, 4), or (4).

/// Intersection over union of each with each: (N, 4) and (M, 4) -> (N, M).
DECLIVITY_API Tensor box_iou(const Tensor& boxes1, const Tensor& boxes2);
/// 1 - iou + the share of the smallest box around both that neither covers (Rezatofighi et al. 2019).
DECLIVITY_API Tensor generalized_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2,
                                              Reduction reduction = Reduction::none, double eps = 1e-7);
/// 1 - iou + (distance of the centres / diagonal of the smallest box around both)^2 (Zheng et al. 2020).
DECLIVITY_API Tensor distance_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2,
                                           Reduction reduction = Reduction::none, double eps = 1e-7);
/// distance_box_iou_loss + alpha v, v = (2 (atan(w1 / h1) - atan(w2 / h2)) / pi)^2, and alpha = v / (1 - iou + v), to
/// which no gradient flows (Zheng et al. 2020).
DECLIVITY_API Tensor complete_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2,
                                           Reduction reduction = Reduction::none, double eps = 1e-7);

}  // namespace declivity
