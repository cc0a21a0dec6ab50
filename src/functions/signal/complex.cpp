#include "complex.hpp"

#include <declivity/functions/complex.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/function_call.hpp>

#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

Tensor pairs(const Tensor& real, const Tensor& imag) {
    const std::vector<Tensor> parts = broadcast_tensors({real, imag});
    return stack({parts[0], parts[1]}, -1);
}
Tensor real_part(const Tensor& z) { return select(z, -1, 0); }
Tensor imag_part(const Tensor& z) { return select(z, -1, 1); }

void require_parts(const char* name, const char* a_name, const Tensor& a, const char* b_name, const Tensor& b) {
    ops::require_real(name, a_name, a.dtype());
    ops::require_alike(name, a_name, a.dtype(), a.device(), b_name, b.dtype(), b.device());
    broadcast_shapes(name, a.shape(), b.shape());
}

}  // namespace

Tensor complex(const Tensor& real, const Tensor& imag) {
    const FunctionCall call("complex", {{"real", real}, {"imag", imag}});
    call.require_defined({"real", "imag"});
    require_parts("complex", "real", real, "imag", imag);
    return call.result(pairs(real, imag));
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
    const FunctionCall call("polar", {{"abs", abs}, {"angle", angle}});
    call.require_defined({"abs", "angle"});
    require_parts("polar", "abs", abs, "angle", angle);
    const auto from_polar = [](const Tensor& r, const Tensor& phi) { return pairs(r * cos(phi), r * sin(phi)); };
    return call.result(detail::in_f32(abs.dtype(), from_polar, abs, angle));
}

Tensor real(const Tensor& z) {
    const FunctionCall call("real", {{"z", z}});
    call.require_defined({"z"});
    detail::require_pairs("real", "z", z);
    return call.result(real_part(z));
}

Tensor imag(const Tensor& z) {
    const FunctionCall call("imag", {{"z", z}});
    call.require_defined({"z"});
    detail::require_pairs("imag", "z", z);
    return call.result(imag_part(z));
}

Tensor complex_mul(const Tensor& a, const Tensor& b) {
    const FunctionCall call("complex_mul", {{"a", a}, {"b", b}});
    call.require_defined({"a", "b"});
    detail::require_pairs("complex_mul", "a", a);
    detail::require_pairs("complex_mul", "b", b);
    require_parts("complex_mul", "a", a, "b", b);
    const auto product = [](const Tensor& x, const Tensor& y) {
        const Tensor ar = real_part(x), ai = imag_part(x), br = real_part(y), bi = imag_part(y);
        return pairs(ar * br - ai * bi, ar * bi + ai * br);
    };
    return call.result(detail::in_f32(a.dtype(), product, a, b));
}

Tensor complex_conj(const Tensor& z) {
    const FunctionCall call("complex_conj", {{"z", z}});
    call.require_defined({"z"});
    detail::require_pairs("complex_conj", "z", z);
    return call.result(pairs(real_part(z), -imag_part(z)));
}

Tensor complex_abs(const Tensor& z) {
    const FunctionCall call("complex_abs", {{"z", z}});
    call.require_defined({"z"});
    detail::require_pairs("complex_abs", "z", z);
    ops::require_real("complex_abs", "z", z.dtype());
    const Tensor re = real_part(z), im = imag_part(z), zero = (re == 0) & (im == 0);
    return call.result(where(zero, 0, hypot(where(zero, 1, re), im)));
}

Tensor angle(const Tensor& z) {
    const FunctionCall call("angle", {{"z", z}});
    call.require_defined({"z"});
    detail::require_pairs("angle", "z", z);
    ops::require_real("angle", "z", z.dtype());
    return call.result(atan2(imag_part(z), real_part(z)));
}

}  // namespace declivity
