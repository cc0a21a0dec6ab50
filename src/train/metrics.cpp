#include <declivity/train/metrics.hpp>

#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/scatter.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::train {
namespace {

/// @throws ShapeError, TypeError naming the metric unless scores are (N, C, ...) and targets integers of (N, ...)
void check(std::string_view metric, const Tensor& scores, const Tensor& target) {
    Shape expected = scores.shape();
    if (expected.rank() >= 2) expected.erase(1);
    if (scores.rank() < 2 || !(target.shape() == expected))
        throw ShapeError(
            fmt::format("{}: expected scores of shape (N, C, ...) and a target of shape (N, ...), got {} and {}",
                        metric, scores.shape().str(), target.shape().str()));
    if (!is_integer(target.dtype()))
        throw TypeError(fmt::format("{}: expected a target of integers, got {}", metric, name_of(target.dtype())));
}

/// (N, C, ...) as (positions, C).
Tensor rows_of(const Tensor& scores) {
    if (scores.rank() == 2) return scores;
    Dims order{0};
    for (int axis = 2; axis < scores.rank(); ++axis) order.push_back(axis);
    order.push_back(1);
    return reshape(permute(scores, order), {-1, scores.size(1)});
}

/// NaN if nothing was counted.
double ratio(double part, double total) { return total > 0 ? part / total : NAN; }

}  // namespace

const std::type_info& Accuracy::capture_safe() const { return typeid(Accuracy); }

void Accuracy::do_update(const Tensor& output, const Tensor& target) {
    check("Accuracy", output, target);
    const Tensor correct = argmax(output, 1) == target;
    if (!ignore_index_) {
        right_.add_(sum(correct));
        counted_.add_(target.numel());
        return;
    }
    const Tensor valid = target != *ignore_index_;
    right_.add_(sum(correct & valid));
    counted_.add_(sum(valid));
}

double Accuracy::value(const States& states) const { return ratio(states.number("right"), states.number("counted")); }

TopKAccuracy::TopKAccuracy(std::int64_t k) : k_(k) {
    if (k < 1) throw ValueError(fmt::format("TopKAccuracy: expected k of at least 1, got {}", k));
}

const std::type_info& TopKAccuracy::capture_safe() const { return typeid(TopKAccuracy); }

void TopKAccuracy::do_update(const Tensor& output, const Tensor& target) {
    check("TopKAccuracy", output, target);
    if (k_ > output.size(1))
        throw ShapeError(
            fmt::format("TopKAccuracy: expected scores of at least {} classes, got {}", k_, output.shape().str()));
    const Tensor best = topk(rows_of(output), k_).indices;
    right_.add_(sum(best == reshape(target, {-1, 1})));
    counted_.add_(target.numel());
}

double TopKAccuracy::value(const States& states) const {
    return ratio(states.number("right"), states.number("counted"));
}

ConfusionMatrix::ConfusionMatrix(std::int64_t classes) : classes_(classes) {
    if (classes < 1) throw ValueError(fmt::format("ConfusionMatrix: expected at least 1 class, got {}", classes));
    counts_ = state("counts", {classes, classes});
}

const std::type_info& ConfusionMatrix::capture_safe() const { return typeid(ConfusionMatrix); }

void ConfusionMatrix::do_update(const Tensor& output, const Tensor& target) {
    check("ConfusionMatrix", output, target);
    if (output.size(1) != classes_)
        throw ShapeError(
            fmt::format("ConfusionMatrix: expected scores of {} classes, got {}", classes_, output.shape().str()));
    const Tensor labels_i64 = target.to(DType::i64);
    const Tensor valid = (labels_i64 >= 0) & (labels_i64 < classes_);
    const Tensor cells = reshape(where(valid, labels_i64 * classes_ + argmax(output, 1), -1), {-1});
    // A batch has far fewer elements than f32 can count.
    const Tensor batch_counts = zeros({classes_ * classes_, 1}, {DType::f32, counts_.device()});
    ops::sum_rows("ConfusionMatrix", ones({cells.numel(), 1}, {DType::f32, counts_.device()}).view(),
                  cells.dense_view(), batch_counts.view());
    counts_.add_(reshape(batch_counts, {classes_, classes_}).to(DType::i64));
}

double ConfusionMatrix::value(const States& states) const {
    const std::vector<double> counts = states.numbers("counts");
    double correct = 0, total = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        total += counts[i];
        if (i % static_cast<std::size_t>(classes_ + 1) == 0) correct += counts[i];
    }
    return ratio(correct, total);
}

std::vector<std::int64_t> ConfusionMatrix::counts() const {
    std::vector<std::int64_t> out;
    for (const double count : last_states("ConfusionMatrix::counts").numbers("counts"))
        out.push_back(static_cast<std::int64_t>(count));
    return out;
}

namespace {

/// NaN for a class that neither occurs nor is predicted.
std::vector<double> intersection_over_union(const std::vector<double>& counts, std::size_t classes) {
    std::vector<double> out;
    for (std::size_t c = 0; c < classes; ++c) {
        double union_size = -counts[c * classes + c];
        for (std::size_t k = 0; k < classes; ++k) union_size += counts[c * classes + k] + counts[k * classes + c];
        out.push_back(ratio(counts[c * classes + c], union_size));
    }
    return out;
}

}  // namespace

const std::type_info& MeanIoU::capture_safe() const { return typeid(MeanIoU); }

double MeanIoU::value(const States& states) const {
    double sum = 0, valid_classes = 0;
    for (const double item : intersection_over_union(states.numbers("counts"), static_cast<std::size_t>(classes())))
        if (!std::isnan(item)) {
            sum += item;
            ++valid_classes;
        }
    return ratio(sum, valid_classes);
}

std::vector<double> MeanIoU::per_class() const {
    return intersection_over_union(last_states("MeanIoU::per_class").numbers("counts"),
                                   static_cast<std::size_t>(classes()));
}

const std::type_info& MeanAbsoluteError::capture_safe() const { return typeid(MeanAbsoluteError); }

void MeanAbsoluteError::do_update(const Tensor& output, const Tensor& target) {
    if (!(output.shape() == target.shape()))
        throw ShapeError(fmt::format("MeanAbsoluteError: expected output and target of the same shape, got {} and {}",
                                     output.shape().str(), target.shape().str()));
    sum_.add_(sum(abs(output - target)).to(DType::f32));
    counted_.add_(output.numel());
}

double MeanAbsoluteError::value(const States& states) const {
    return ratio(states.number("sum"), states.number("counted"));
}

const std::type_info& Perplexity::capture_safe() const { return typeid(Perplexity); }

void Perplexity::do_update(const Tensor& output, const Tensor& target) {
    check("Perplexity", output, target);
    const Tensor labels = reshape(target.to(DType::i64), {-1});
    sum_.add_(cross_entropy(rows_of(output), labels, {.reduction = Reduction::sum, .ignore_index = ignore_index_})
                  .to(DType::f32));
    counted_.add_(sum(labels != ignore_index_));
}

double Perplexity::value(const States& states) const {
    return std::exp(ratio(states.number("sum"), states.number("counted")));
}

}  // namespace declivity::train
