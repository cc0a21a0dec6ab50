// Layer 2. Top-k of rows.
#pragma once

#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

struct TopKResults {
    LazyArray values;   ///< (rows, k)
    LazyArray indices;  ///< (rows, k), i64
};

/// The k largest elements of each row of x (rows, n), descending, or the k smallest, ascending. NaN counts as the
/// largest; of equal elements the one with the lower index comes first. x dense, of any type but f16 and bf16. Deferred
/// operation.
/// @throws ShapeError, TypeError naming topk; ValueError unless k is in 0 ... n
DECLIVITY_API TopKResults topk(const View& x, std::int64_t k, bool largest);

/// @}

}  // namespace declivity::ops
