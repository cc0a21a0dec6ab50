// Layer 7. Predefined metrics.
//
// Scores are (N, C) or (N, C, ...) with C classes along the second axis; targets are class labels of any integer type,
// (N) or (N, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <declivity/train/metric.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

/// Fraction of positions whose largest score is at the target class. @throws ShapeError, on update, for other shapes
class DECLIVITY_API Accuracy : public Metric {
  public:
    /// @param ignore_index positions with this target are ignored
    explicit Accuracy(std::optional<std::int64_t> ignore_index = std::nullopt) : ignore_index_(ignore_index) {}
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    std::optional<std::int64_t> ignore_index_;
    Tensor right_ = state("right", {}), counted_ = state("counted", {});
};

/// Fraction of positions whose target is among the k largest scores.
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

/// Confusion matrix: number of predictions of each class for each target class. As a metric it is the accuracy.
class DECLIVITY_API ConfusionMatrix : public Metric {
  public:
    /// @param classes of targets and scores; positions with a target outside of 0 .. classes - 1 are ignored
    /// @throws ValueError unless classes >= 1
    explicit ConfusionMatrix(std::int64_t classes);
    /// counts()[target * classes + predicted], of the last compute(), which a trainer calls after each epoch and
    /// evaluation.
    /// @throws ValueError if there was none
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

/// Mean intersection over union: for each class, the number of positions where target and prediction are the class,
/// divided by those where target or prediction is. Classes without either are excluded.
class DECLIVITY_API MeanIoU : public ConfusionMatrix {
  public:
    using ConfusionMatrix::ConfusionMatrix;
    /// IoU of each class, of the last compute(); NaN for excluded classes. @throws ValueError if there was none
    [[nodiscard]] std::vector<double> per_class() const;
    [[deprecated("MeanIoU::per_class")]] [[nodiscard]] std::vector<double> of_classes() const { return per_class(); }
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    [[nodiscard]] double value(const States& states) const override;
};

/// Mean of |output - target| over all elements of tensors of equal shape.
class DECLIVITY_API MeanAbsoluteError : public Metric {
  public:
    MeanAbsoluteError() = default;
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    Tensor sum_ = state("sum", {}, DType::f32), counted_ = state("counted", {});
};

/// exp of the mean cross entropy over all positions: 1 for perfect prediction, the number of classes for a uniform one.
class DECLIVITY_API Perplexity : public Metric {
  public:
    /// @param ignore_index positions with this target are ignored
    explicit Perplexity(std::int64_t ignore_index = -100) : ignore_index_(ignore_index) {}
    [[nodiscard]] const std::type_info& capture_safe() const override;

  private:
    void do_update(const Tensor& output, const Tensor& target) override;
    [[nodiscard]] double value(const States& states) const override;

    std::int64_t ignore_index_;
    Tensor sum_ = state("sum", {}, DType::f32), counted_ = state("counted", {});
};

/// @}

}  // namespace declivity::train
