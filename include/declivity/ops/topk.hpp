// Layer 2. The first elements of rows in order.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

struct TopKResults {
    LazyArray values;  ///< (rows, k)
    LazyArray places;  ///< (rows, k), i64
};

/// The k largest of each row of x (rows, n), falling, or the smallest, rising. NaN counts as larger than all else; of
/// equal elements that of the lower place comes first. x dense, of any type but f16 and bf16. An operation that waits.
/// @throws ShapeError, TypeError naming topk; ValueError unless k is in 0 ... n
DECLIVITY_API TopKResults topk(const View& x, std::int64_t k, bool largest);

}  // namespace declivity::ops
