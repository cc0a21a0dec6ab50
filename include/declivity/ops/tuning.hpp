// Layer 2. Which strategy serves which shape: measured on the device, kept in a file, explained.
//
// Heavy operators can be computed in several ways. Until something was measured on a device, rules of thumb choose. The
// functions here, the program `declivity tune`, or the environment variable DECLIVITY_TUNE=1 (on the first use of a
// shape) measure all that can serve a shape, check each result against the plain strategy's, and keep every time and
// the winner in a JSON file: DECLIVITY_TUNING_FILE, otherwise tuning.json in the cache folder (DECLIVITY_CACHE_DIR,
// XDG_CACHE_HOME/declivity, ~/.cache/declivity). It has a section for each device, driver and version of the library;
// others are left alone. A missing, damaged or read-only file means rules of thumb, never an error. Shapes are rounded
// to buckets.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <declivity/ops/conv2d.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::ops {

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

/// Measures all strategies for a shape that is not in the file yet, or again when `again` is set, and keeps the result.
/// Takes twice as much device memory as the operation, and some seconds.
/// @return what was found, a line for each strategy; empty when nothing was measured
/// @throws ShapeError, ValueError for shapes that do not fit; OutOfMemory
DECLIVITY_API std::string tune(const Device& device, const Conv2dShape& shape, bool again = false);
DECLIVITY_API std::string tune(const Device& device, const MatmulShape& shape, bool again = false);

/// Says which strategy serves a shape on a device, why, and what the others are worth.
DECLIVITY_API std::string explain(const Device& device, const Conv2dShape& shape);
DECLIVITY_API std::string explain(const Device& device, const MatmulShape& shape);

/// The file that results are read from and written to; empty when there is no place for one.
DECLIVITY_API std::filesystem::path tuning_file();

/// Writes what is in `sources` into `target`; of two results for one shape the later source's stays.
/// @throws FormatError naming the file where a source or the target has another format, IoError where one cannot be
/// read or written; the target is then as it was
DECLIVITY_API void merge_tuning(const std::vector<std::filesystem::path>& sources, const std::filesystem::path& target);

}  // namespace declivity::ops
