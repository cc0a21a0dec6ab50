// Layer 5. Losses, and the distances that they use.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

/// @defgroup functions_loss Losses and distances
/// @ingroup functions
/// Semantics and defaults are PyTorch's; those of box losses and of sigmoid_focal_loss() are torchvision's.
///
/// - Shapes: unless stated otherwise, inputs and targets have one shape: a target that broadcasts is nearly always a
///   mistake. The losses of all elements, or rows, are reduced to a tensor without axes; Reduction::none returns them
///   unreduced. The mean of no losses is NaN.
/// - Types: the input is of a floating type, labels of any integer type. The result has the promoted type of the input
///   and the floating types among the other operands. f16 and bf16 are computed in f32 and rounded once. mse_loss() and
///   bce_with_logits() without weights also accept integers, which are computed in f32.
/// - Values: targets and labels are not checked, which would synchronise; a label outside of [0, C) makes the loss NaN.
/// - Errors: ShapeError for operands of other shapes; TypeError for an input of another type, and for labels that are
///   not integers; DeviceError for operands on different devices; ValueError for options out of range and undefined
///   operands.
///
/// @{

/// Reduction of the losses of all elements or rows to one number; none: no reduction.
enum class Reduction : std::uint8_t { mean, sum, none };
constexpr std::string_view name_of(Reduction reduction) noexcept {
    return reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
}

// ---- Classification with integer labels in [0, C).

/// Options of cross_entropy().
struct CrossEntropyOptions {
    Reduction reduction = Reduction::mean;  ///< mean: weighted by the labels that are not ignored
    double label_smoothing = 0;  ///< in [0, 1): share of the target spread evenly (Szegedy et al. 2016, section 7)
    std::int64_t ignore_index = -100;  ///< rows with this label are ignored
};
/// -log softmax(logits)[label], times weight[label]: logits (N, C, ...), labels (N, ...), or (C) and (); the trainer
/// reports invalid labels. A target of the logits' shape contains probabilities: minus the sum of target times weight
/// times log softmax, whose mean is over N, .... weight (C) or undefined.
/// Examples: for x = `[[2, 0], [0, 0]]`, i64 labels = `[0, 1]` and target = `[[1, 0], [0.5, 0.5]]`,
/// `cross_entropy(x, labels)` is `0.41`; `cross_entropy(x, labels, {.reduction = Reduction::none})` is
/// `[0.1269, 0.6931]`; `cross_entropy(x, target)` is `0.41`; `cross_entropy(x, labels, {.ignore_index = 1})` is
/// `0.1269`.
/// @throws ValueError for a label_smoothing outside of [0, 1); ShapeError for no classes, and for other shapes
DECLIVITY_API Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {},
                                   const Tensor& weight = {});

/// Options of nll_loss().
struct NllLossOptions {
    Reduction reduction = Reduction::mean;  ///< mean: weighted by the labels that are not ignored
    std::int64_t ignore_index = -100;       ///< rows with this label are ignored
};
/// Negative log-likelihood -x[label] weight[label] of log-probabilities x (N, C, ...), labels (N, ...), or (C) and ();
/// weight (C) or undefined. Unreduced: the shape of labels.
/// Example: for x = `[[-0.1, -2], [-1, -0.5]]` and i64 labels = `[0, 1]`, `nll_loss(x, labels)` is `0.3`.
/// @throws ShapeError for no classes, and for other shapes
DECLIVITY_API Tensor nll_loss(const Tensor& x, const Tensor& labels, const NllLossOptions& options = {},
                              const Tensor& weight = {});

/// Options of multi_margin_loss().
struct MultiMarginLossOptions {
    std::int64_t p = 1;  ///< 1 or 2
    double margin = 1;
    Reduction reduction = Reduction::mean;
};
/// Sum over the other classes of max(0, margin - x[label] + x[class])^p, times weight[label] / C: x (N, C), labels (N),
/// or (C) and (); weight (C) or undefined.
/// Example: for x = `[[1, 0.5, -1]]` and i64 labels = `[0]`, `multi_margin_loss(x, labels)` is `0.1667`.
/// @throws ValueError for a p other than 1 and 2; ShapeError for no classes, and for other shapes
DECLIVITY_API Tensor multi_margin_loss(const Tensor& x, const Tensor& labels,
                                       const MultiMarginLossOptions& options = {}, const Tensor& weight = {});

// ---- Multi-label and binary classification.

/// Binary cross entropy -target log(x) - (1 - target) log(1 - x) of probabilities x and targets in [0, 1], times a
/// weight that broadcasts to x: logarithms are at least -100, and the gradient is finite at 0 and 1.
/// Example: for x = `[0.5, 0]` and target = `[1, 1]`, `binary_cross_entropy(x, target, Reduction::none)` is
/// `[0.6931, 100]`.
DECLIVITY_API Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                          const Tensor& weight = {});
/// binary_cross_entropy() of sigmoid(logits), computed without overflow. weight and pos_weight, which scales the term
/// of target 1, broadcast to the logits, or are undefined.
/// Example: for x = `[0, 200]` and target = `[1, 0]`, `bce_with_logits(x, target, Reduction::none)` is `[0.6931, 200]`.
DECLIVITY_API Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean,
                                     const Tensor& weight = {}, const Tensor& pos_weight = {});
/// PyTorch's name of bce_with_logits.
/// Example: for x = `[0]` and target = `[1]`, `binary_cross_entropy_with_logits(x, target)` is `0.6931`.
DECLIVITY_API Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                                      Reduction reduction = Reduction::mean, const Tensor& weight = {},
                                                      const Tensor& pos_weight = {});
/// Focal loss: bce_with_logits() times (1 - p)^gamma, where p is the probability of the target, and times alpha for
/// targets 1, 1 - alpha for targets 0, or neither for alpha -1 (Lin et al. 2017). Not reduced by default.
/// Example: for x = `[0, 2]` and target = `[1, 1]`, `sigmoid_focal_loss(x, target, -1)` is `[0.1733, 0.001804]`.
/// @throws ValueError for an alpha outside of [0, 1] other than -1, or a negative gamma
DECLIVITY_API Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, double alpha = 0.25,
                                        double gamma = 2, Reduction reduction = Reduction::none);
/// Mean over C of bce_with_logits(), times a weight that broadcasts to x: x and target (N, C), or (C). Unreduced: (N),
/// or ().
/// Example: for x = `[[0, 2]]` and target = `[[1, 1]]`, `multilabel_soft_margin_loss(x, target)` is `0.41`.
/// @throws ShapeError for x without axes
DECLIVITY_API Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target,
                                                 Reduction reduction = Reduction::mean, const Tensor& weight = {});
/// Sum of max(0, 1 - x[label] + x[class]) / C over the labels of a row and the classes that are not labels of it: x (N,
/// C) or (C), labels of its shape, integers, which end at the first negative one. Unreduced: (N), or (). Allocates N
/// C^2 elements.
/// Example: for x = `[[0.5, 0.2, 0]]` and i64 labels = `[[0, -1, 1]]`, `multilabel_margin_loss(x, labels)` is `0.4`.
/// @throws ShapeError for no classes, and for other shapes
DECLIVITY_API Tensor multilabel_margin_loss(const Tensor& x, const Tensor& labels,
                                            Reduction reduction = Reduction::mean);
/// log(1 + exp(-target x)), targets 1 and -1.
/// Example: for x = `[0, 1]` and target = `[1, -1]`, `soft_margin_loss(x, target, Reduction::none)` is
/// `[0.6931, 1.313]`.
DECLIVITY_API Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// x if the target is 1, max(0, margin - x) if it is -1; their sum for another target.
/// Example: for x = `[0.3, 0.3, 2]` and target = `[1, -1, -1]`, `hinge_embedding_loss(x, target, 1, Reduction::none)`
/// is `[0.3, 0.7, 0]`.
DECLIVITY_API Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                                          Reduction reduction = Reduction::mean);

// ---- Regression and distributions.

/// Squared error (x - target)^2. A weight, if defined, has the shape of x: errors are multiplied by it, and the mean
/// divides by its sum.
/// Examples: for x = `[1, 2]` and target = `[1, 5]`, `mse_loss(x, target)` is `4.5`;
/// `mse_loss(x, target, Reduction::none)` is `[0, 9]`.
DECLIVITY_API Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                              const Tensor& weight = {});
/// Absolute error |x - target|. A weight, if defined, has the shape of x: errors are multiplied by it, and the mean
/// divides by its sum.
/// Examples: for x = `[1, 2]` and target = `[1, 5]`, `l1_loss(x, target)` is `1.5`;
/// `l1_loss(x, target, Reduction::sum)` is `3`.
DECLIVITY_API Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                             const Tensor& weight = {});
/// With d = |x - target|: d^2 / (2 beta) for d < beta, otherwise d - beta / 2 (Girshick 2015). beta 0 is l1_loss.
/// Examples: for x = `[0.5, 3]` and target = `[0, 0]`, `smooth_l1_loss(x, target, Reduction::none)` is `[0.125, 2.5]`;
/// `smooth_l1_loss(x, target, Reduction::none, 2)` is `[0.0625, 2]`.
/// @throws ValueError for a negative beta
DECLIVITY_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                    double beta = 1);
/// With d = |x - target|: d^2 / 2 for d <= delta, otherwise delta (d - delta / 2) (Huber 1964). A weight, if defined,
/// has the shape of x: errors are multiplied by it, and the mean divides by the number of elements.
/// Examples: for x = `[0.5, 3]` and target = `[0, 0]`, `huber_loss(x, target, Reduction::none)` is `[0.125, 2.5]`;
/// `huber_loss(x, target, Reduction::none, 2)` is `[0.125, 4]`.
/// @throws ValueError unless delta > 0
DECLIVITY_API Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                                double delta = 1, const Tensor& weight = {});
/// Kullback-Leibler divergence target (log(target) - x) of log-probabilities x; log_target: the target is a logarithm
/// as well. The mean is over all elements; the divergence of N distributions is Reduction::sum divided by N.
/// Examples: for x = `log(full({2}, 0.5))` and target = `[0.25, 0.75]`, `kl_div(x, target, Reduction::sum)` is
/// `0.1308`; `kl_div(x, target, Reduction::none)` is `[-0.1733, 0.3041]`.
DECLIVITY_API Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean,
                            bool log_target = false);

/// Options of poisson_nll_loss().
struct PoissonNllLossOptions {
    bool log_input = true;  ///< exp(x) - target x; otherwise x - target log(x + eps)
    bool full = false;      ///< adds Stirling's approximation of log(target!) for targets above 1
    double eps = 1e-8;
    Reduction reduction = Reduction::mean;
};
/// Negative log-likelihood of counts `target` under Poisson distributions of mean exp(x), or x.
/// Example: for x = `[0, 1]` and target = `[2, 2]`, `poisson_nll_loss(x, target, {.reduction = Reduction::none})` is
/// `[1, 0.7183]`.
DECLIVITY_API Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllLossOptions& options = {});

/// Options of gaussian_nll_loss().
struct GaussianNllLossOptions {
    bool full = false;  ///< adds log(2 pi) / 2
    double eps = 1e-6;  ///< lower bound of `var`; the gradient ignores it
    Reduction reduction = Reduction::mean;
};
/// Negative log-likelihood of normal distributions, (log(var) + (x - target)^2 / var) / 2 (Nix, Weigend 1994): var has
/// the shape of x, or its last axis is 1, or is missing. The target broadcasts to x.
/// Example: for x = `[1, 2]`, target = `[3, 2]` and variance = `[1, 4]`,
/// `gaussian_nll_loss(x, target, variance, {.reduction = Reduction::none})` is `[2, 0.6931]`.
/// @throws ValueError unless eps > 0; TypeError for a var of integers; ShapeError for other shapes
DECLIVITY_API Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                                       const GaussianNllLossOptions& options = {});

// ---- Distances and metric learning.

/// Cosine x1 x2 / (max(|x1|, eps) max(|x2|, eps)) of the angle between vectors along one axis, which is removed; x1 and
/// x2 broadcast, and the axis is one of the broadcast shape.
/// Example: for a = `[[1, 0], [3, 4]]` and b = `[[0, 2], [6, 8]]`, `cosine_similarity(a, b)` is `[0, 1]`.
/// @throws ValueError for a negative eps
DECLIVITY_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, std::int64_t axis = 1, double eps = 1e-8);
/// p-norm of x1 - x2 + eps along the last axis, which is removed, or with keep_axis of size 1; see norm(). x1 and x2
/// broadcast.
/// Examples: for a = `[[3, 0], [1, 1]]` and b = `[[0, 4], [1, 2]]`, `pairwise_distance(a, b)` is `[5, 1]`;
/// `pairwise_distance(a, b, 1)` is `[7, 1]`.
/// @throws ValueError for a p of NaN; ShapeError for x1 and x2 without axes
DECLIVITY_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                                       bool keep_axis = false);
/// p-norms of the differences between each row of x1 (..., P, M) and each row of x2 (..., R, M), p of at least 0,
/// infinity included (see norm): (..., P, R); leading axes broadcast. Gradients of equal rows are 0.
/// Examples: for a = `[[0, 0], [3, 4]]` and b = `[[0, 0]]`, `cdist(a, b)` is `[[0], [5]]`; `cdist(a, b, 1)` is
/// `[[0], [7]]`.
/// @throws ValueError for a negative p; TypeError for x1 and x2 of different types
DECLIVITY_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);
/// Distances of rows i < j of x (N, M), row by row: (N (N - 1) / 2), as cdist().
/// Example: for x = `[[0, 0], [3, 4], [0, 1]]`, `pdist(x)` is `[5, 1, 4.243]`.
/// @throws ValueError for a negative p
DECLIVITY_API Tensor pdist(const Tensor& x, double p = 2);
/// max(0, margin - target (x1 - x2)), targets 1 and -1.
/// Example: for a = `[2, 2]`, b = `[1, 1]` and target = `[1, -1]`,
/// `margin_ranking_loss(a, b, target, 0.5, Reduction::none)` is `[0, 1.5]`.
DECLIVITY_API Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                                         Reduction reduction = Reduction::mean);
/// 1 - cos(x1, x2) if the target is 1, max(0, cos(x1, x2) - margin) if it is -1: x1 and x2 (N, D), target (N); or (D)
/// and ().
/// Example: for a = `[[1, 0], [1, 0]]`, b = `[[0, 1], [3, 0]]` and target = `[1, -1]`,
/// `cosine_embedding_loss(a, b, target, 0.2, Reduction::none)` is `[1, 0.8]`.
DECLIVITY_API Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin = 0,
                                           Reduction reduction = Reduction::mean);

/// Options of triplet_margin_loss().
struct TripletMarginLossOptions {
    double margin = 1;
    double p = 2;
    double eps = 1e-6;
    bool swap = false;  ///< uses the smaller of the negative's distances to anchor and positive (Balntas et al. 2016)
    Reduction reduction = Reduction::mean;
};
/// max(0, margin + pairwise_distance(anchor, positive) - pairwise_distance(anchor, negative)), of (N, D) or (D).
/// Unreduced: (N), or ().
/// Example: for a = `[[0, 0]]`, b = `[[3, 4]]` and c = `[[0, 5.5]]`, `triplet_margin_loss(a, b, c)` is `0.5`.
/// @throws ValueError unless margin > 0 and p > 0
DECLIVITY_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginLossOptions& options = {});
/// Options of triplet_margin_with_distance_loss().
struct TripletMarginWithDistanceLossOptions {
    /// Distance of two tensors of one shape; none: pairwise_distance.
    std::function<Tensor(const Tensor&, const Tensor&)> distance = {};
    double margin = 1;
    bool swap = false;  ///< as TripletMarginLossOptions::swap
    Reduction reduction = Reduction::mean;
};
/// triplet_margin_loss() with a custom distance, of tensors (..., D).
/// Example: for a = `[[0, 0]]`, b = `[[3, 4]]`, c = `[[0, 5.5]]` and l1 =
/// `[](const Tensor& p, const Tensor& q) { return sum(abs(p - q), 1); }`,
/// `triplet_margin_with_distance_loss(a, b, c, {.distance = l1})` is `2.5`.
/// @throws ValueError unless margin > 0
DECLIVITY_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                                       const Tensor& negative,
                                                       const TripletMarginWithDistanceLossOptions& options = {});
/// InfoNCE: cross entropy of query keys^T / temperature, where key i belongs to query i (van den Oord et al. 2018):
/// both (N, D). Does not normalise its inputs.
/// Example: for x = `[[1, 0], [0, 1]]`, `info_nce(x, x, 1)` is `0.3133`.
/// @throws ValueError unless temperature > 0; TypeError for query and keys of different types
DECLIVITY_API Tensor info_nce(const Tensor& query, const Tensor& keys, double temperature = 0.1,
                              Reduction reduction = Reduction::mean);

// ---- Sequences.

/// Options of ctc_loss().
struct CtcLossOptions {
    std::int64_t blank = 0;
    Reduction reduction = Reduction::mean;  ///< mean: of each loss divided by the length of its target (at least 1)
    bool zero_infinity = false;  ///< infinite losses (targets too long for their input) and their gradients are 0
};
/// Connectionist temporal classification (Graves et al. 2006): negative log-likelihood of a target, summed over all its
/// alignments to T steps, with blanks and repetitions: log_probs (T, N, C), log-probabilities; targets (N, S), padded,
/// or concatenated; lengths (N) of inputs and targets. Or (T, C), (S) and lengths () for one sequence. Labels and
/// lengths are i32 or i64; a label or a length out of range gives NaN. If a target is too long for its input the loss
/// is infinite, and its gradient NaN. The gradient is that of the function itself; PyTorch's is the one with respect to
/// the input of the log_softmax that produced log_probs.
/// Example: for p = `log(full({2, 1, 3}, 1.0 / 3))`, i64 target = `[[1]]`, i64 t = `[2]` and i64 s = `[1]`,
/// `ctc_loss(p, target, t, s)` is `1.099` (3 alignments of probability 1 / 9).
/// @throws ValueError for a blank index outside of [0, C); TypeError for labels and lengths of other types; ShapeError
/// for other shapes
DECLIVITY_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                              const Tensor& target_lengths, const CtcLossOptions& options = {});
/// Variant with lengths on the host, which are checked.
/// @throws ValueError for a length out of range; ShapeError for another number of lengths, or concatenated targets of
/// another total length
DECLIVITY_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                              const std::vector<std::int64_t>& input_lengths,
                              const std::vector<std::int64_t>& target_lengths, const CtcLossOptions& options = {});

// ---- Segmentation: probabilities and targets (N, C, ...), sums over the trailing axes, a loss (N, C) for
// Reduction::none.

/// Dice loss 1 - (2 sum(x target) + smooth) / (sum(x) + sum(target) + smooth) (Milletari et al. 2016, without squares).
/// Example: for x = `[[[0.5, 1, 0, 0]]]` and target = `[[[1, 1, 0, 0]]]`, `dice_loss(x, target)` is `0.1111`.
DECLIVITY_API Tensor dice_loss(const Tensor& x, const Tensor& target, double smooth = 1,
                               Reduction reduction = Reduction::mean);

/// Options of tversky_loss().
struct TverskyLossOptions {
    double alpha = 0.5;  ///< weight of sum(x (1 - target)), the false positives
    double beta = 0.5;   ///< weight of sum((1 - x) target), the false negatives
    double smooth = 1;
    Reduction reduction = Reduction::mean;
};
/// 1 - (hits + smooth) / (hits + alpha false positives + beta false negatives + smooth), hits = sum(x target) (Salehi
/// et al. 2017).
/// Examples: for x = `[[[1, 1, 0, 0]]]` and target = `[[[1, 0, 0, 0]]]`,
/// `tversky_loss(x, target, {.alpha = 1, .beta = 0})` is `0.3333`; `tversky_loss(x, target, {.alpha = 0, .beta = 1})`
/// is `0`.
/// @throws ValueError for alpha or beta below 0
DECLIVITY_API Tensor tversky_loss(const Tensor& x, const Tensor& target, const TverskyLossOptions& options = {});

// ---- Bounding boxes x1, y1, x2, y2 with x1 <= x2 and y1 <= y2; losses of pairs of boxes (N, 4), or (4).

/// Intersection over union (IoU) of each pair of boxes: (N, 4) and (M, 4) -> (N, M).
/// Example: for a = `[[0, 0, 2, 2]]` and b = `[[1, 1, 3, 3], [0, 0, 2, 1], [5, 5, 6, 6]]`, `box_iou(a, b)` is
/// `[[0.1429, 0.5, 0]]`.
DECLIVITY_API Tensor box_iou(const Tensor& boxes1, const Tensor& boxes2);
/// GIoU loss: 1 - iou + the share of the smallest enclosing box that neither covers (Rezatofighi et al. 2019): two
/// tensors (N, 4) -> (N), or (4) -> (). Not reduced by default; the mean of no boxes is 0.
/// Example: for a = `[0, 0, 1, 1]` and b = `[3, 0, 4, 1]`, `generalized_box_iou_loss(a, b)` is `1.5` (half of the
/// enclosing box).
DECLIVITY_API Tensor generalized_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2,
                                              Reduction reduction = Reduction::none, double eps = 1e-7);
/// DIoU loss: 1 - iou + (distance of the centres / diagonal of the smallest enclosing box)^2 (Zheng et al. 2020).
/// Shapes as for generalized_box_iou_loss().
/// Example: for a = `[0, 0, 1, 1]` and b = `[2, 0, 3, 1]`, `distance_box_iou_loss(a, b)` is `1.4`.
DECLIVITY_API Tensor distance_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2,
                                           Reduction reduction = Reduction::none, double eps = 1e-7);
/// CIoU loss: distance_box_iou_loss() + alpha v, v = (2 (atan(w1 / h1) - atan(w2 / h2)) / pi)^2, and alpha = v / (1 -
/// iou + v), to which no gradient flows (Zheng et al. 2020). Shapes as for generalized_box_iou_loss().
/// Examples: for a = `[0, 0, 2, 1]` and b = `[0, 0, 1, 2]`, `distance_box_iou_loss(a, b)` is `0.7292`;
/// `complete_box_iou_loss(a, b)` is `0.7629`.
DECLIVITY_API Tensor complete_box_iou_loss(const Tensor& boxes1, const Tensor& boxes2,
                                           Reduction reduction = Reduction::none, double eps = 1e-7);

/// @}

}  // namespace declivity
