#include "continuity.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "expression.hpp"

namespace declivity::ops {

// A function missing here counts as discontinuous: that costs a rounding, but gives no wrong result.
bool is_continuous(Function function) {
    using enum Function;
    static constexpr std::array kContinuous{add,
                                            sub,
                                            mul,
                                            min,
                                            max,
                                            add_scalar,
                                            mul_scalar,
                                            neg,
                                            abs,
                                            square,
                                            exp,
                                            tanh,
                                            sigmoid,
                                            relu,
                                            leaky_relu,
                                            gelu,
                                            silu,
                                            clamp,
                                            expm1,
                                            exp2,
                                            sin,
                                            cos,
                                            atan,
                                            sinh,
                                            cosh,
                                            asinh,
                                            erf,
                                            erfc,
                                            elu,
                                            softplus,
                                            logsigmoid,
                                            softsign,
                                            hardtanh,
                                            mish,
                                            gelu_tanh,
                                            hypot,
                                            logaddexp,
                                            lerp,
                                            softshrink,
                                            hardswish,
                                            dropout,
                                            where,
                                            hardsigmoid,
                                            gelu_gradient,
                                            squared_difference,
                                            binary_cross_entropy};
    return std::ranges::find(kContinuous, function) != kContinuous.end();
}

bool is_continuous_gradient(Function function, int input) {
    const std::string_view text = info(function).gradient[static_cast<std::size_t>(input)];
    // Gradients with a selection, a division or a clamp.
    static constexpr std::array<std::string_view, 5> kSigns{"?", "/", "d_pow", "d_log", "d_floor"};
    return std::ranges::none_of(kSigns, [&](std::string_view sign) { return text.find(sign) != text.npos; });
}

}  // namespace declivity::ops
