// Layer 2. Autotuning: measures the strategies for a shape, caches the result in a file, and explains the choice.
//
// Heavy operators have several strategies. Heuristics choose until a shape was measured on a device: by the functions
// here, the program `declivity tune`, or the environment variable DECLIVITY_TUNE=1 (on the first use of a shape).
// Tuning measures all applicable strategies, checks each result against that of the plain strategy, and stores all
// times and the winner in a JSON file, the tuning cache: DECLIVITY_TUNING_FILE, otherwise tuning.json in the cache
// folder (DECLIVITY_CACHE_DIR, XDG_CACHE_HOME/declivity, ~/.cache/declivity). It has a section for each device, driver
// and version of the library; other sections are preserved. A missing, damaged or read-only file falls back to
// heuristics, never to an error. Shapes are rounded to buckets.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <declivity/ops/conv2d.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// A convolution of x (N, C, H, W) with weight (O, C / groups, R, S), in all three directions.
struct Conv2dShape {
    Shape x, weight;
    Conv2dParameters options = {};
    DType dtype = DType::f32;
};

/// A product of (batch, m, k) and (batch, k, n); transposed: the other axis of the operand is contiguous.
struct MatmulShape {
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    bool a_transposed = false, b_transposed = false;
    DType dtype = DType::f32;
};

/// Measures all strategies for a shape that is not in the file yet (or in any case, with `remeasure`), and stores the
/// result. Takes twice the device memory of the operation, and some seconds.
/// @return a report with a line for each strategy; empty when nothing was measured
/// @throws ShapeError, ValueError for invalid shapes; OutOfMemory
DECLIVITY_API std::string tune(const Device& device, const Conv2dShape& shape, bool remeasure = false);
/// Overload for matrix products.
DECLIVITY_API std::string tune(const Device& device, const MatmulShape& shape, bool remeasure = false);

/// Reports the strategy chosen for a shape on a device, the reason, and the times of the others.
DECLIVITY_API std::string explain(const Device& device, const Conv2dShape& shape);
/// Overload for matrix products.
DECLIVITY_API std::string explain(const Device& device, const MatmulShape& shape);

/// Path of the tuning file; empty if no location is available.
DECLIVITY_API std::filesystem::path tuning_file();

/// Merges the contents of `sources` into `target`; of two results for one shape that of the later source is kept.
/// @throws FormatError naming the file where a source or the target has another format, IoError where one cannot be
/// read or written; the target is then unchanged
DECLIVITY_API void merge_tuning(const std::vector<std::filesystem::path>& sources, const std::filesystem::path& target);

/// @}

}  // namespace declivity::ops
