// Layer 7. Plots of a training: learning curves, and predictions for example images.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/io/image.hpp>

namespace declivity::train {

/// @addtogroup train
/// @{

/// A line of a plot: y over x, in the given order. Points that are not finite leave a gap.
struct Series {
    std::string name;
    std::vector<double> x;
    std::vector<double> y;
};

/// Input of `learning_curve`: a panel for losses and one for accuracies; a panel without series is omitted.
struct LearningCurve {
    std::string title = {};
    std::string x_label = "epoch";
    std::vector<Series> losses = {};            ///< any values; the axis starts at 0 if none is negative
    std::vector<Series> accuracies = {};        ///< 0 to 1
    std::string losses_label = "loss";          ///< title of the loss panel
    std::string accuracies_label = "accuracy";  ///< title of the accuracy panel
};

/// Draws panels side by side, each with axes, a grid, a line for each series and, below the axes, a legend with the
/// name and last value of each series. Names longer than the panel are truncated.
/// @throws ValueError if x and y of a series differ in size
DECLIVITY_API io::Image8 learning_curve(const LearningCurve& curve);

/// An example image with its predicted and its true label.
struct Prediction {
    io::Image8 image;
    std::string predicted;
    std::string truth;
};

/// Draws the examples in rows of `columns`, each enlarged, with its label below: "7" in green for a correct prediction,
/// "7 (1)" in red for a prediction of 7 with true label 1.
/// @throws ValueError for no examples, columns < 1, or an inconsistent image
DECLIVITY_API io::Image8 prediction_grid(std::span<const Prediction> predictions, int columns = 10,
                                         const std::string& title = {});

/// @}

}  // namespace declivity::train
