// Layer 5. Pictures of a training: how loss and accuracy went, and what the model makes of examples.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/io/image.hpp>

namespace declivity::train {

/// One line of a picture: y over x, in the order given. Points that are not finite leave a gap.
struct Series {
    std::string name;
    std::vector<double> x;
    std::vector<double> y;
};

/// What `learning_curve` draws: a panel for the losses and one for the accuracies; a panel without series is left out.
struct LearningCurve {
    std::string title = {};
    std::string x_label = "epoch";
    std::vector<Series> losses = {};            ///< any values; the axis begins at 0 when none is negative
    std::vector<Series> accuracies = {};        ///< 0 to 1
    std::string losses_label = "loss";          ///< above the one panel
    std::string accuracies_label = "accuracy";  ///< above the other
};

/// Panels side by side, each with axes, a grid, a line for each series and, below the axes, a legend with each series'
/// name and last value. A name that is longer than the panel is shortened.
/// @throws ValueError when a series has another number of x than of y
DECLIVITY_API io::Image8 learning_curve(const LearningCurve& curve);

/// An example with what the model says and what it is.
struct Prediction {
    io::Image8 image;
    std::string predicted;
    std::string truth;
};

/// The examples in rows of `columns`, each enlarged, with its label below: "7" in green when the prediction is right,
/// "7 (1)" in red when it says 7 of a 1.
/// @throws ValueError when there is no example, columns < 1, or an image's parts do not fit together
DECLIVITY_API io::Image8 prediction_grid(std::span<const Prediction> predictions, int columns = 10,
                                         const std::string& title = {});

}  // namespace declivity::train
