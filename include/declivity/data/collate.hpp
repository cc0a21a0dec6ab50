// Layer 5. How examples become a batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <declivity/data/example.hpp>

namespace declivity::data {

/// Several examples become the tensors of a batch, on the host. It gives the same fields for each batch, and is called
/// by several threads at once.
using Collate = std::function<Example(std::span<const Example> examples)>;

/// Each field's tensors one after the other along a new first axis: what a loader does without another collate
/// function.
/// @throws ShapeError or TypeError naming field and example where they differ; ValueError for no examples
DECLIVITY_API Example stack(std::span<const Example> examples);

struct PadOptions {
    /// Fields that are padded, along all axes, to the largest of the batch: the number that is put behind each
    /// example's own. The others are stacked.
    std::map<std::string, double> values;
    /// Fields whose lengths, the sizes of their first axis before padding, become a further field "<name>_length", i64
    /// (N). When empty: the first one of the data set's fields that is padded.
    std::vector<std::string> lengths_of = {};
    /// Fields whose attention masks become a further field "<name>_mask", bool (N, T): true where a position along the
    /// first axis is the example's own. (The layers' key_padding_mask is its opposite, `!mask`.)
    std::vector<std::string> masks_of = {};
    /// Lengths of first axes are rounded up to a multiple of this: a recorded step wants few different shapes.
    std::int64_t multiple = 1;
};
/// For sequences, and whatever else has a size of its own in each example.
///
///     data::Loader loader(set, {.batch = 32, .collate = data::pad({.values = {{"tokens", 0}, {"tags", -100}}})});
///
/// @throws ValueError for no fields, a multiple below 1, and, when called, for a name that is no field. The function
/// throws ShapeError naming field and example where the number of axes differs, or is 0
DECLIVITY_API Collate pad(PadOptions options);

}  // namespace declivity::data
