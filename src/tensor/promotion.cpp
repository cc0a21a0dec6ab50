#include "promotion.hpp"

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity {
namespace detail {
namespace {

using MaybeType = std::optional<DType>;

/// The higher kind determines the type; within a kind, tensors with axes take precedence.
MaybeType raised(MaybeType first, MaybeType second) {
    if (!first || !second) return first ? first : second;
    return dtype_info(*second).kind > dtype_info(*first).kind ? second : first;
}

}  // namespace

void Promotion::add(MaybeType& all, DType type) { all = all ? promote_types(*all, type) : type; }

std::optional<DType> Promotion::result() const { return raised(raised(of_tensors_, of_single_), of_numbers_); }

}  // namespace detail

DType result_type(const TensorOrScalar& a, const TensorOrScalar& b) {
    for (const TensorOrScalar* tensor_or_scalar : {&a, &b})
        if (!tensor_or_scalar->is_scalar() && !tensor_or_scalar->tensor().defined())
            throw ValueError(fmt::format("result_type: expected tensors or numbers, got an undefined tensor as {}",
                                         tensor_or_scalar == &a ? "a" : "b"));
    detail::Promotion promotion;
    promotion.add(a);
    promotion.add(b);
    return *promotion.result();
}

}  // namespace declivity
