// Layer 7. Collate functions: how examples are combined into a batch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <declivity/data/example.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// Combines several examples into the tensors of a batch, on the host. It must return the same fields for each batch
/// and is called from several threads concurrently.
using Collate = std::function<Example(std::span<const Example> examples)>;

/// Stacks the tensors of each field along a new first axis: the default collate function of a loader.
/// @throws ShapeError or TypeError naming field and example if shapes or types differ; ValueError for no examples
DECLIVITY_API Example stack(std::span<const Example> examples);

struct PadOptions {
    /// Fields to pad, along all axes, to the largest size in the batch, with the padding value, which is placed behind
    /// the example's own elements. All other fields are stacked.
    std::map<std::string, double> values;
    /// Fields whose lengths (the sizes of their first axis before padding) become an additional field "<name>_length",
    /// i64 (N). If empty: the first padded field of the data set.
    std::vector<std::string> lengths_of = {};
    /// Fields whose attention masks become an additional field "<name>_mask", bool (N, T): true at the positions of the
    /// example, false at padding. (key_padding_mask of the layers is the inverse, `!mask`.)
    std::vector<std::string> masks_of = {};
    /// Rounds sizes of first axes up to a multiple of this, which limits the number of shapes that graph capture sees.
    std::int64_t multiple = 1;
};
/// Returns a collate function that pads fields of variable size, such as sequences.
///
///     data::Loader loader(set, {.batch = 32, .collate = data::pad({.values = {{"tokens", 0}, {"tags", -100}}})});
///
/// @throws ValueError for no fields, a multiple below 1, and, when called, for a name that is not a field. The function
/// throws ShapeError naming field and example if the number of axes differs or is 0
DECLIVITY_API Collate pad(PadOptions options);

/// @}

}  // namespace declivity::data
