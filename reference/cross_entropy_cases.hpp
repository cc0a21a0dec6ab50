// Cross entropy: shapes, references in double, and costs. Shared by the test and the benchmark.
#pragma once

#include <string>
#include <vector>

#include <reference/softmax_cases.hpp>

namespace declivity::reference {

struct CrossEntropyCase {
    std::string name;
    std::int64_t rows, classes;
    CrossEntropyOptions options = {};
    bool large = false;  ///< too large for an interpreter

    [[nodiscard]] double flops() const { return 18.0 * static_cast<double>(rows * classes); }
    [[nodiscard]] double bytes(DType dtype) const {
        return static_cast<double>(rows * classes) * static_cast<double>(size_of(dtype));
    }
    [[nodiscard]] Tolerance tolerance(DType dtype) const {
        const double all = options.reduction == Reduction::sum ? static_cast<double>(rows) : 1;
        return reference::tolerance(dtype, static_cast<double>(classes), 8 * all);
    }
    /// All classes in turn, with some ignored labels.
    [[nodiscard]] std::vector<std::int32_t> labels() const {
        std::vector<std::int32_t> out;
        for (std::int64_t row = 0; row < rows; ++row)
            out.push_back(static_cast<std::int32_t>(row % 5 == 3 ? options.ignore_index : row * 7 % classes));
        return out;
    }
};

inline const std::vector<CrossEntropyCase>& cross_entropy_cases() {
    static const std::vector<CrossEntropyCase> cases{
        {.name = "one row", .rows = 1, .classes = 3},
        {.name = "one class", .rows = 4, .classes = 1},
        {.name = "digits", .rows = 33, .classes = 10},
        {.name = "sum", .rows = 33, .classes = 10, .options = {.reduction = Reduction::sum}},
        {.name = "rows", .rows = 9, .classes = 21, .options = {.reduction = Reduction::none}},
        {.name = "smoothed", .rows = 11, .classes = 75, .options = {.label_smoothing = 0.1}},
        {.name = "smoothed rows, 0 ignored",
         .rows = 11,
         .classes = 19,
         .options = {.reduction = Reduction::none, .label_smoothing = 0.3, .ignore_index = 0}},
        // Rows of few classes are processed together, as many as a vector has elements; with a remainder.
        {.name = "smoothed digits, 3 ignored",
         .rows = 53,
         .classes = 10,
         .options = {.reduction = Reduction::none, .label_smoothing = 0.2, .ignore_index = 3}},
        {.name = "rows of several vectors",
         .rows = 41,
         .classes = 37,
         .options = {.reduction = Reduction::none, .label_smoothing = 0.1}},
        {.name = "rows of whole vectors", .rows = 35, .classes = 32},
        {.name = "images", .rows = 256, .classes = 1000, .large = true},
        {.name = "images, smoothed", .rows = 256, .classes = 1000, .options = {.label_smoothing = 0.1}, .large = true},
        {.name = "many digits", .rows = 60'000, .classes = 10, .large = true},
        {.name = "words", .rows = 64, .classes = 50257, .large = true},
    };
    return cases;
}

struct CrossEntropyReference {
    std::vector<double> loss;      // per row, or a single one
    std::vector<double> gradient;  // of the logits, for a gradient of 1 per loss
};

inline CrossEntropyReference reference_cross_entropy(const std::vector<double>& x, std::int64_t classes,
                                                     const std::vector<std::int32_t>& labels,
                                                     const CrossEntropyOptions& options) {
    const auto rows = static_cast<std::int64_t>(labels.size());
    const auto log_p = reference_log_softmax(x, {rows, classes}, 1);
    CrossEntropyReference out{std::vector<double>(labels.size()), std::vector<double>(x.size())};
    double total = 0, counted = 0;
    for (std::size_t row = 0; row < labels.size(); ++row) {
        if (labels[row] == options.ignore_index) continue;
        ++counted;
        for (std::int64_t c = 0; c < classes; ++c) {
            const std::size_t at = row * static_cast<std::size_t>(classes) + static_cast<std::size_t>(c);
            const double target = options.label_smoothing / static_cast<double>(classes) +
                                  (c == labels[row] ? 1 - options.label_smoothing : 0);
            if (target > 0) out.loss[row] -= target * log_p[at];
            out.gradient[at] = std::exp(log_p[at]) - target;
        }
        total += out.loss[row];
    }
    if (options.reduction == Reduction::none) return out;
    const double divisor = options.reduction == Reduction::mean ? counted : 1;
    out.loss = {total / divisor};
    for (double& value : out.gradient) value /= divisor;
    return out;
}

}  // namespace declivity::reference
