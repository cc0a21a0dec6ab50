#include <declivity/ops/argmax.hpp>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>

namespace declivity {

Tensor argmax(const Tensor& x, std::int64_t axis, bool keep_axis) {
    const FunctionCall call("argmax", {{"x", x}}, {{"axis", axis}, {"keep_axis", keep_axis}});
    call.require_defined({"x"});
    if (x.rank() == 0) return call.result(reshape(argmax(reshape(x, {1}), axis), {}));
    const int along = normalize_axis("argmax", axis, x.rank());
    Shape shape = x.shape();
    if (keep_axis) shape[along] = 1;
    else shape.erase(along);
    const ops::View out = ops::View::make(x.device(), DType::i64, shape);
    ops::argmax(x.dense_view(), along, out);
    return call.result(Tensor(out));
}

}  // namespace declivity
