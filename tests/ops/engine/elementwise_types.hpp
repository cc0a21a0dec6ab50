// Types for the tests of elementwise operators.
#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include <declivity/ops/dtype.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::test {

using ops::Domain;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline constexpr DType kReducedPrecision[] = {DType::f16, DType::bf16};

/// All types that a function supports; under slow checkers f16 and bf16 only for some functions of each kind.
inline std::vector<DType> types_of(Domain domain, bool with_reduced_precision = true) {
    if (domain == Domain::logic) return {DType::boolean};
    const bool integral = domain == Domain::integer || domain == Domain::shift;
    auto types = integral ? std::vector<DType>() : floats();
    if (with_reduced_precision && !integral)
        types.insert(types.end(), std::begin(kReducedPrecision), std::end(kReducedPrecision));
    if (domain != Domain::real) std::ranges::copy_if(kDTypes, std::back_inserter(types), is_integer);
    if (domain == Domain::compare || domain == Domain::choose || domain == Domain::integer)
        types.push_back(DType::boolean);
    return types;
}

}  // namespace declivity::test
