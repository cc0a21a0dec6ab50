// Distances between vectors, and losses composed of them.
#include <cmath>
#include <limits>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "functions/support/axes.hpp"
#include "reduction.hpp"
#include "tensor/reduced_precision.hpp"

namespace declivity {

using detail::upcast;

namespace {

Tensor distance(const Tensor& a, const Tensor& b, double p, double eps, bool keep_axis = false) {
    return norm(upcast(a) - upcast(b) + eps, p, {-1}, keep_axis);
}

void require_norm(std::string_view function, double p) {
    if (!(p > 0)) throw ValueError(fmt::format("{}: expected p above 0, got {}", function, p));
}

/// Broadcast shape of two tensors.
Shape common_shape(std::string_view function, const Tensor& a, const Tensor& b) {
    Shape shape;
    for (int axis = std::max(a.rank(), b.rank()); axis > 0; --axis) {
        const std::int64_t left = axis <= a.rank() ? a.size(-axis) : 1, right = axis <= b.rank() ? b.size(-axis) : 1;
        if (left != right && left != 1 && right != 1)
            throw ShapeError(fmt::format("{}: expected x1 and x2 that broadcast to one shape, got {} and {}", function,
                                         a.shape().str(), b.shape().str()));
        shape.push_back(left == 1 ? right : left);
    }
    return shape;
}

}  // namespace

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, std::int64_t axis, double eps) {
    const FunctionCall call("cosine_similarity", {{"x1", x1}, {"x2", x2}}, {{"axis", axis}, {"eps", eps}});
    call.require_defined({"x1", "x2"});
    const DType type = detail::loss_type("cosine_similarity", "x1", x1, {x2});
    const bool scalars = detail::is_axis_of_scalar(x1, axis) && x2.rank() == 0;
    if (scalars) return call.result(cosine_similarity(reshape(x1, {1}), reshape(x2, {1}), 0, eps));
    const Shape shape = common_shape("cosine_similarity", x1, x2);
    const std::int64_t along = normalize_axis("cosine_similarity", axis, shape.rank());
    if (!(eps >= 0)) throw ValueError(fmt::format("cosine_similarity: expected an eps of at least 0, got {}", eps));
    const Tensor a = expand(upcast(x1), shape), b = expand(upcast(x2), shape);
    const auto norm_of = [&](const Tensor& x) {
        const Tensor squares = sum(square(x), {along}, true), above_eps = squares > eps * eps;
        return where(above_eps, sqrt(where(above_eps, squares, 1)), eps);
    };
    return call.result(sum(a / norm_of(a) * (b / norm_of(b)), {along}).to(type));
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keep_axis) {
    const FunctionCall call("pairwise_distance", {{"x1", x1}, {"x2", x2}},
                            {{"p", p}, {"eps", eps}, {"keep_axis", keep_axis}});
    call.require_defined({"x1", "x2"});
    const DType type = detail::loss_type("pairwise_distance", "x1", x1, {x2});
    if (common_shape("pairwise_distance", x1, x2).rank() == 0)
        throw ShapeError("pairwise_distance: expected x1 and x2 of shape (..., D), got [] and []");
    if (std::isnan(p)) throw ValueError("pairwise_distance: expected a number p, got NaN");
    return call.result(distance(x1, x2, p, eps, keep_axis).to(type));
}

Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                           Reduction reduction) {
    const FunctionCall call("margin_ranking_loss", {{"x1", x1}, {"x2", x2}, {"target", target}},
                            {{"margin", margin}, {"reduction", reduction}});
    call.require_defined({"x1", "x2", "target"});
    ops::require_shape("margin_ranking_loss", "x2", x2.shape(), x1.shape());
    const DType type = detail::pair_type("margin_ranking_loss", x1, target, {x2}, "x1");
    const Tensor losses = detail::at_least_zero(-1 * upcast(target) * (upcast(x1) - upcast(x2)) + margin);
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                             Reduction reduction) {
    const FunctionCall call("cosine_embedding_loss", {{"x1", x1}, {"x2", x2}, {"target", target}},
                            {{"margin", margin}, {"reduction", reduction}});
    call.require_defined({"x1", "x2", "target"});
    const DType type = detail::loss_type("cosine_embedding_loss", "x1", x1, {x2});
    if (x1.rank() < 1 || x1.rank() > 2)
        throw ShapeError(
            fmt::format("cosine_embedding_loss: expected x1 of shape (N, D) or (D), got {}", x1.shape().str()));
    ops::require_shape("cosine_embedding_loss", "x2", x2.shape(), x1.shape());
    ops::require_shape("cosine_embedding_loss", "the target", target.shape(),
                       x1.rank() == 1 ? Shape{} : Shape{x1.size(0)});
    ops::require_same_device("cosine_embedding_loss", x1.device(), target.device());
    const Tensor a = upcast(x1), b = upcast(x2);
    const auto sum_last = [](const Tensor& x) { return sum(x, {-1}); };
    const Tensor cosine = sum_last(a * b) * rsqrt((sum_last(square(a)) + 1e-12) * (sum_last(square(b)) + 1e-12));
    const Tensor losses =
        where(target == 1, 1 - cosine, where(target == -1, detail::at_least_zero(cosine - margin), 0));
    return call.result(detail::reduced(losses, reduction).to(type));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options) {
    const FunctionCall call("triplet_margin_loss", {{"anchor", anchor}, {"positive", positive}, {"negative", negative}},
                            {{"margin", options.margin},
                             {"p", options.p},
                             {"eps", options.eps},
                             {"swap", options.swap},
                             {"reduction", options.reduction}});
    call.require_defined({"anchor", "positive", "negative"});
    const DType type = detail::loss_type("triplet_margin_loss", "the anchor", anchor, {positive, negative});
    if (anchor.rank() < 1 || anchor.rank() > 2)
        throw ShapeError(fmt::format("triplet_margin_loss: expected an anchor of shape (N, D) or (D), got {}",
                                     anchor.shape().str()));
    ops::require_shape("triplet_margin_loss", "the positive", positive.shape(), anchor.shape());
    ops::require_shape("triplet_margin_loss", "the negative", negative.shape(), anchor.shape());
    require_norm("triplet_margin_loss", options.p);
    if (!(options.margin > 0))
        throw ValueError(fmt::format("triplet_margin_loss: expected a margin above 0, got {}", options.margin));
    const auto between = [&](const Tensor& a, const Tensor& b) { return distance(a, b, options.p, options.eps); };
    Tensor negative_distance = between(anchor, negative);
    if (options.swap) negative_distance = minimum(negative_distance, between(positive, negative));
    const Tensor losses = detail::at_least_zero(between(anchor, positive) - negative_distance + options.margin);
    return call.result(detail::reduced(losses, options.reduction).to(type));
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& options) {
    constexpr auto* name = "triplet_margin_with_distance_loss";
    const FunctionCall call(name, {{"anchor", anchor}, {"positive", positive}, {"negative", negative}},
                            {{"distance", options.distance ? "given" : "None"},
                             {"margin", options.margin},
                             {"swap", options.swap},
                             {"reduction", options.reduction}});
    call.require_defined({"anchor", "positive", "negative"});
    const DType type = detail::loss_type(name, "the anchor", anchor, {positive, negative});
    if (anchor.rank() < 1) throw ShapeError(fmt::format("{}: expected an anchor of shape (..., D), got []", name));
    ops::require_shape(name, "the positive", positive.shape(), anchor.shape());
    ops::require_shape(name, "the negative", negative.shape(), anchor.shape());
    if (!(options.margin > 0))
        throw ValueError(fmt::format("{}: expected a margin above 0, got {}", name, options.margin));
    const auto between = [&](const Tensor& a, const Tensor& b) {
        return options.distance ? options.distance(upcast(a), upcast(b)) : distance(a, b, 2, 1e-6);
    };
    Tensor negative_distance = between(anchor, negative);
    if (options.swap) negative_distance = minimum(negative_distance, between(positive, negative));
    const Tensor losses = detail::at_least_zero(between(anchor, positive) - negative_distance + options.margin);
    return call.result(detail::reduced(losses, options.reduction).to(type));
}

Tensor info_nce(const Tensor& query, const Tensor& keys, double temperature, Reduction reduction) {
    const FunctionCall call("info_nce", {{"query", query}, {"keys", keys}},
                            {{"temperature", temperature}, {"reduction", reduction}});
    call.require_defined({"query", "keys"});
    const DType type = detail::loss_type("info_nce", "query", query, {});
    ops::require_alike("info_nce", "query", type, query.device(), "keys", keys.dtype(), keys.device());
    ops::require_rank("info_nce", "query", query.shape(), 2, "N, D");
    ops::require_shape("info_nce", "keys", keys.shape(), query.shape());
    if (!(temperature > 0))
        throw ValueError(fmt::format("info_nce: expected a temperature above 0, got {}", temperature));
    const Tensor logits = matmul(upcast(query) / temperature, transpose(upcast(keys)));
    const Tensor labels = arange(0, query.size(0), 1, {DType::i64, query.device()});
    return call.result(cross_entropy(logits, labels, {.reduction = reduction}).to(type));
}

}  // namespace declivity
