#include "in_place_arithmetic.hpp"

#include <declivity/functions/elementwise.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "tensor/tensor_state.hpp"

namespace declivity::detail {

void require_fits_type_of(std::string_view function, const Tensor& to, const TensorOrScalar& other) {
    if (!other.is_scalar()) checked_state(state_of(other.tensor()), function);
    const DType result = other.is_scalar() && !other.scalar().is_floating() && is_integer(to.dtype())
                             ? to.dtype()
                             : result_type(to, other);
    if (dtype_info(result).kind > dtype_info(to.dtype()).kind)
        throw TypeError(fmt::format("{}: expected a result that fits the tensor's type, {}, got one of {}", function,
                                    name_of(to.dtype()), name_of(result)));
}

void require_divisible(std::string_view function, const Tensor& to) {
    if (!is_floating(to.dtype()))
        throw TypeError(
            fmt::format("{}: expected a tensor of f32, f64, f16 or bf16, got {}", function, name_of(to.dtype())));
}

Tensor updated_part(const Tensor& part, ops::Function function, const char* name, const TensorOrScalar& value) {
    require_fits_type_of(name, part, value);
    if (function == ops::Function::div) require_divisible(name, part);
    return elementwise(function, {part, value}, {}, name);
}

}  // namespace declivity::detail
