#include "promotion.hpp"

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity {
namespace detail {
namespace {

using MaybeType = std::optional<DType>;

/// The higher kind determines the type; within a kind, tensors with axes take precedence.
MaybeType higher_kind(MaybeType first, MaybeType second) {
    if (!first || !second) return first ? first : second;
    return dtype_info(*second).kind > dtype_info(*first).kind ? second : first;
}

}  // namespace

void Promotion::add(MaybeType& accumulated, DType type) {
    accumulated = accumulated ? promote_types(*accumulated, type) : type;
}

std::optional<DType> Promotion::result() const {
    return higher_kind(higher_kind(tensor_type_, zero_dim_type_), scalar_type_);
}

}  // namespace detail

DType result_type(const TensorOrScalar& a, const TensorOrScalar& b) {
    for (const TensorOrScalar* operand : {&a, &b})
        if (!operand->is_scalar() && !operand->tensor().defined())
            throw ValueError(fmt::format("result_type: expected tensors or numbers, got an undefined tensor as {}",
                                         operand == &a ? "a" : "b"));
    detail::Promotion promotion;
    promotion.add(a);
    promotion.add(b);
    return *promotion.result();
}

}  // namespace declivity
