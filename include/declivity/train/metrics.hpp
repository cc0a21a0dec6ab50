// Layer 5. Metrics that come with the library.
//
// Scores are (N, C) or (N, C, ...), C classes along the second axis; targets are the numbers of classes, i32, i64 or
// any integer, (N) or (N, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/train/metric.hpp>

namespace declivity::train {

/// Share of places whose largest score is the target's. @throws ShapeError, when updated, for other shapes
class DECLIVITY_API Accuracy : public Metric {
  public:
    /// @param ignore_index places with this target count for nothing
    explicit Accuracy(std::optional<std::int64_t> ignore_index = std::nullopt) : ignore_index_(ignore_index) {}
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    std::optional<std::int64_t> ignore_index_;
    Tensor right_ = state("right", {}), counted_ = state("counted", {});
};

/// Share of places whose target is among the k largest scores.
class DECLIVITY_API TopKAccuracy : public Metric {
  public:
    /// @throws ValueError unless k >= 1
    explicit TopKAccuracy(std::int64_t k);
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    std::int64_t k_;
    Tensor right_ = state("right", {}), counted_ = state("counted", {});
};

/// How often the model says a class of each class. Its figure is the accuracy.
class DECLIVITY_API ConfusionMatrix : public Metric {
  public:
    /// @param classes of targets and scores; places whose target is none of 0 .. classes - 1 count for nothing
    /// @throws ValueError unless classes >= 1
    explicit ConfusionMatrix(std::int64_t classes);
    /// counts()[target * classes + said], of the last compute(): a trainer calls it after each epoch and evaluation.
    /// @throws ValueError when there was none
    [[nodiscard]] std::vector<std::int64_t> counts() const;
    [[nodiscard]] std::int64_t classes() const noexcept { return classes_; }
    [[nodiscard]] const std::type_info& capture_safe() const override;

  protected:
    [[nodiscard]] double value(const States& states) const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;

    std::int64_t classes_;
    Tensor counts_;
};

/// Mean over classes of intersection over union: places of the class that are said to be so, among those that are or
/// are said to be. Classes that neither occur nor are said are left out.
class DECLIVITY_API MeanIoU : public ConfusionMatrix {
  public:
    using ConfusionMatrix::ConfusionMatrix;
    /// Of each class, of the last compute(); NaN for those that are left out. @throws ValueError when there was none
    [[nodiscard]] std::vector<double> of_classes() const;
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    [[nodiscard]] double value(const States& states) const override;
};

/// Mean of |output - target|, over all elements of tensors of one shape.
class DECLIVITY_API MeanAbsoluteError : public Metric {
  public:
    MeanAbsoluteError() = default;
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    Tensor sum_ = state("sum", {}, DType::f32), counted_ = state("counted", {});
};

/// exp of the mean cross entropy over all places: 1 for a model that always knows, the number of classes for one that
/// guesses.
class DECLIVITY_API Perplexity : public Metric {
  public:
    /// @param ignore_index places with this target count for nothing
    explicit Perplexity(std::int64_t ignore_index = -100) : ignore_index_(ignore_index) {}
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    std::int64_t ignore_index_;
    Tensor sum_ = state("sum", {}, DType::f32), counted_ = state("counted", {});
};

}  // namespace declivity::train
