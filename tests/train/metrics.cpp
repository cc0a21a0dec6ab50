// Metrics compared with plain C++ in double, batch by batch, also replayed; and their errors.
#include <declivity/train/metrics.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/data/random.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;

namespace {

/// Scores for each position and class, and targets, some of which are -100 or another number out of range.
struct LabelledPositions {
    Tensor scores, target;                             // (N, C, ...), (N, ...)
    std::vector<std::vector<double>> position_scores;  // scores of each position
    std::vector<std::int64_t> labels;
};

LabelledPositions random_positions(const Shape& shape, std::uint64_t seed, DType labels, std::int64_t outside = -100) {
    LabelledPositions out;
    out.scores = test::random_tensor(shape, seed);
    const std::int64_t n = shape[0], classes = shape[1], positions = shape.numel() / (n * classes);
    const auto values = test::values(out.scores);
    data::Random random(seed, 1, 0, data::Purpose::user);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t k = 0; k < positions; ++k) {
            out.position_scores.emplace_back();
            for (std::int64_t c = 0; c < classes; ++c)
                out.position_scores.back().push_back(
                    values[static_cast<std::size_t>((i * classes + c) * positions + k)]);
            out.labels.push_back(random.chance(0.2F) ? outside : random.below(classes));
        }
    Shape target_shape = shape;
    target_shape.erase(1);
    out.target = Tensor::from(out.labels, target_shape).to(labels);
    return out;
}

std::int64_t largest(const std::vector<double>& scores) {
    return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

/// The result of a metric accumulated over these batches, by eager calls or by replays.
double compute_metric(train::Metric& metric, const std::vector<LabelledPositions>& batches, bool captured) {
    metric.reset();
    auto step = capture([&](const std::vector<Tensor>& in) {
        metric.update(in[0], in[1]);
        return std::vector<Tensor>{};
    });
    for (const LabelledPositions& batch : batches) {
        if (captured) step({batch.scores, batch.target});
        else metric.update(batch.scores, batch.target);
    }
    if (captured) CHECK(step.replayed() > 0);
    return metric.compute();
}

using Reference = std::function<double(const std::vector<std::vector<double>>&, const std::vector<std::int64_t>&)>;

void check(train::Metric& metric, const Reference& expected, DType labels, std::int64_t outside) {
    const std::vector<Shape> shapes{{7, 5}, {1, 5}, {3, 5, 4}, {2, 5, 3, 7}};
    for (const Shape& shape : shapes) {
        CAPTURE(shape.str());
        std::vector<LabelledPositions> batches;
        std::vector<std::vector<double>> scores;
        std::vector<std::int64_t> all;
        for (std::uint64_t seed = 1; seed < 6; ++seed) {
            batches.push_back(random_positions(shape, seed, labels, outside));
            scores.insert(scores.end(), batches.back().position_scores.begin(), batches.back().position_scores.end());
            all.insert(all.end(), batches.back().labels.begin(), batches.back().labels.end());
        }
        const double plain = compute_metric(metric, batches, false);
        CHECK(plain == doctest::Approx(expected(scores, all)).epsilon(1e-6));
        CHECK(compute_metric(metric, batches, true) == plain);
    }
    metric.reset();
    CHECK(std::isnan(metric.compute()));
}

double iou(const std::vector<std::vector<double>>& scores, const std::vector<std::int64_t>& labels, double* class_iou) {
    double sum = 0, counted = 0;
    for (std::int64_t c = 0; c < 5; ++c) {
        double both = 0, either = 0;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (labels[i] < 0 || labels[i] >= 5) continue;
            const bool is = labels[i] == c, is_predicted = largest(scores[i]) == c;
            both += is && is_predicted;
            either += is || is_predicted;
        }
        if (class_iou != nullptr) class_iou[c] = either > 0 ? both / either : NAN;
        if (either > 0) sum += both / either, ++counted;
    }
    return sum / counted;
}

}  // namespace

TEST_CASE("metrics: accuracy, with and without an ignored label") {
    for (const DType labels : {DType::i64, DType::i32}) {
        train::Accuracy plain;
        check(
            plain,
            [](const auto& scores, const auto& targets) {
                double right = 0;
                for (std::size_t i = 0; i < targets.size(); ++i) right += largest(scores[i]) == targets[i];
                return right / static_cast<double>(targets.size());
            },
            labels, -100);
        train::Accuracy ignoring(-100);
        check(
            ignoring,
            [](const auto& scores, const auto& targets) {
                double right = 0, counted = 0;
                for (std::size_t i = 0; i < targets.size(); ++i)
                    if (targets[i] != -100) right += largest(scores[i]) == targets[i], ++counted;
                return right / counted;
            },
            labels, -100);
    }
}

TEST_CASE("metrics: top-k accuracy") {
    for (const std::int64_t k : {1, 3, 5}) {
        train::TopKAccuracy metric(k);
        check(
            metric,
            [k](const auto& scores, const auto& targets) {
                double right = 0;
                for (std::size_t i = 0; i < targets.size(); ++i) {
                    if (targets[i] < 0) continue;
                    const double target_score = scores[i][static_cast<std::size_t>(targets[i])];
                    right += std::ranges::count_if(scores[i],
                                                   [target_score](double other) { return other > target_score; }) < k;
                }
                return right / static_cast<double>(targets.size());
            },
            DType::i64, -100);
    }
    CHECK_THROWS_AS(train::TopKAccuracy(0), ValueError);
    train::TopKAccuracy top_six(6);
    CHECK_THROWS_AS(top_six.update(ones({2, 5}), zeros({2}, {DType::i64})), ShapeError);
}

TEST_CASE("metrics: confusion matrix, and intersection over union") {
    for (const std::int64_t outside : {-100, 255}) {
        train::ConfusionMatrix matrix(5);
        check(
            matrix,
            [](const auto& scores, const auto& targets) {
                double right = 0, counted = 0;
                for (std::size_t i = 0; i < targets.size(); ++i)
                    if (targets[i] >= 0 && targets[i] < 5) right += largest(scores[i]) == targets[i], ++counted;
                return right / counted;
            },
            DType::i64, outside);
        train::MeanIoU mean_iou(5);
        check(
            mean_iou, [](const auto& scores, const auto& targets) { return iou(scores, targets, nullptr); },
            outside == 255 ? DType::u8 : DType::i32, outside);
    }
    const LabelledPositions batch = random_positions({4, 5, 3, 3}, 9, DType::i64);
    train::ConfusionMatrix matrix(5);
    CHECK_THROWS_AS((void)matrix.counts(), ValueError);
    matrix.update(batch.scores, batch.target);
    matrix.update(batch.scores, batch.target);
    (void)matrix.compute();
    std::vector<std::int64_t> expected(25);
    for (std::size_t i = 0; i < batch.labels.size(); ++i)
        if (batch.labels[i] >= 0)
            expected[static_cast<std::size_t>(batch.labels[i] * 5 + largest(batch.position_scores[i]))] += 2;
    CHECK(matrix.counts() == expected);
    train::MeanIoU mean_iou(5);
    const Tensor fewer = where(batch.target == 3, -1, batch.target);  // a class that does not occur
    mean_iou.update(where(Tensor::from<std::uint8_t>({0, 0, 0, 1, 0}, {1, 5, 1, 1}) != 0, -9, batch.scores), fewer);
    (void)mean_iou.compute();
    CHECK(std::isnan(mean_iou.per_class()[3]));
    CHECK_FALSE(std::isnan(mean_iou.per_class()[2]));
    double class_iou[5];
    mean_iou.reset();
    mean_iou.update(batch.scores, batch.target);
    CHECK(mean_iou.compute() == doctest::Approx(iou(batch.position_scores, batch.labels, class_iou)));
    for (std::size_t c = 0; c < 5; ++c) CHECK(mean_iou.per_class()[c] == doctest::Approx(class_iou[c]));
    CHECK_THROWS_AS(train::ConfusionMatrix(0), ValueError);
    train::ConfusionMatrix confusion(4);
    CHECK_THROWS_WITH_AS(confusion.update(batch.scores, batch.target),
                         doctest::Contains("expected scores of 4 classes"), ShapeError);
}

TEST_CASE("metrics: perplexity") {
    train::Perplexity metric;
    check(
        metric,
        [](const auto& scores, const auto& targets) {
            double sum = 0, counted = 0;
            for (std::size_t i = 0; i < targets.size(); ++i) {
                if (targets[i] == -100) continue;
                double total = 0;
                for (const double score : scores[i]) total += std::exp(score);
                sum += std::log(total) - scores[i][static_cast<std::size_t>(targets[i])];
                ++counted;
            }
            return std::exp(sum / counted);
        },
        DType::i64, -100);
    metric.update(zeros({3, 8}), zeros({3}, {DType::i64}));
    CHECK(metric.compute() == doctest::Approx(8));
}

TEST_CASE("metrics: mean absolute error") {
    train::MeanAbsoluteError metric;
    double sum = 0, counted = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Shape shape{3, static_cast<std::int64_t>(1 + seed), 2};
        const Tensor output = test::random_tensor(shape, seed), target = test::random_tensor(shape, 10 + seed);
        metric.update(output, target);
        const auto a = test::values(output), b = test::values(target);
        for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]), ++counted;
    }
    CHECK(metric.compute() == doctest::Approx(sum / counted).epsilon(1e-6));
    metric.reset();
    metric.update(ones({2}, {DType::f16}) * 0.5, zeros({2}));
    CHECK(metric.compute() == 0.5);
    CHECK_THROWS_WITH_AS(
        metric.update(ones({2, 1}), ones({2})),
        "MeanAbsoluteError: expected output and target of the same shape, got [2, 1] and [2] (in metric)", ShapeError);
}

TEST_CASE("metrics: a user-defined one, and errors") {
    struct Recall : train::Metric {
        Tensor hits = state("hits", {}), positives = state("wanted", {});
        void do_update(const Tensor& output, const Tensor& target) override {
            CHECK_FALSE(output.requires_grad());
            hits.add_(sum((argmax(output) == 1) & (target == 1)));
            positives.add_(sum(target == 1));
        }
        [[nodiscard]] double value(const States& states) const override {
            CHECK_THROWS_WITH_AS((void)states.number("hit"),
                                 "Metric: expected the name of a state, one of [\"hits\", \"wanted\"], got 'hit'",
                                 ValueError);
            return states.number("hits") / states.number("wanted");
        }
    };
    Recall recall;
    const Tensor w = ones({1, 2}).set_requires_grad();
    recall.update(w * Tensor::from<float>({0, 1, 1, 0, 0, 1}, {3, 2}), Tensor::from<std::int64_t>({1, 1, 0}, {3}));
    CHECK(recall.compute() == 0.5);
    CHECK(recall.state().size() == 2);
    CHECK(recall.state()[1].first == "wanted");
    CHECK(recall.state()[1].second.item<std::int64_t>() == 2);
    struct Twice : train::Metric {
        Twice() {
            state("a", {});
            state("a", {});
        }
        void do_update(const Tensor&, const Tensor&) override {}
        [[nodiscard]] double value(const States&) const override { return 0; }
    };
    CHECK_THROWS_AS(Twice(), ValueError);
    train::Accuracy accuracy;
    CHECK_THROWS_WITH_AS(
        accuracy.update(ones({2, 3}), zeros({3}, {DType::i64})),
        "Accuracy: expected scores of shape (N, C, ...) and a target of shape (N, ...), got [2, 3] and [3] (in metric)",
        ShapeError);
    CHECK_THROWS_WITH_AS(accuracy.update(ones({2, 3}), zeros({2})),
                         "Accuracy: expected a target of integers, got f32 (in metric)", TypeError);
    CHECK_THROWS_AS(accuracy.update(ones({2}), zeros({2}, {DType::i64})), ShapeError);
}
