#include "region_view.hpp"

#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/tensor/creation.hpp>

#include "alias.hpp"
#include "ops/engine/lazy_array.hpp"
#include "tensor/tensor_state.hpp"

namespace declivity::detail {

Tensor part_of(const Tensor& base, const Region& region, std::string_view name) {
    if (region.shape() == base.shape()) return base;
    const ops::LazyArray result =
        ops::view_of(base.value(), [&region](const ops::View& view) { return region.of(view); });
    return alias(name, base, result, [region, base_shape = base.shape()](const GradientContext& context) {
        if (grad_enabled()) {
            const Tensor& g = context.gradient();
            return std::vector{with_region("slice_scatter", zeros(base_shape, {g.dtype(), g.device()}), g, region)};
        }
        context.accumulate_region(0, context.release_gradient(),
                                  [region](const ops::View& view) { return region.of(view); });
        return std::vector<Tensor>(1);
    });
}

namespace {

/// The gradient with the overwritten region set to 0.
Tensor zero_region(Tensor gradient, const Region& region) {
    const ops::View out = writable_view(donated_elements(gradient));
    const BufferWrite write(out.buffer);
    ops::fill(region.of(out), 0, "slice_scatter");
    return Tensor(out);
}

std::vector<Tensor> gradients(const GradientContext& context, const Region& region) {
    std::vector<Tensor> out(2);
    Tensor g = context.release_gradient();
    if (context.needs(1)) out[1] = grad_enabled() ? part_of(g, region) : Tensor(region.of(g.view()));
    if (!context.needs(0)) return out;
    if (grad_enabled()) {
        out[0] = with_region("slice_scatter", g, zeros(region.shape(), {g.dtype(), g.device()}), region);
    } else {
        if (context.needs(1)) out[1] = out[1].clone();  // since its memory is written
        out[0] = zero_region(std::move(g), region);
    }
    return out;
}

}  // namespace

Tensor with_region(const char* name, const Tensor& x, ops::LazyArray& elements, Tensor src, const Region& region) {
    ops::require_alike(name, "x", elements.dtype(), elements.device(), "src", src.dtype(), src.device());
    ops::require_shape(name, "src", src.shape(), region.shape());
    const ops::View out = writable_view(elements);
    ops::evaluate_into(name, donated_elements(src), region.of(out));
    elements = out;
    return attach_backward(
        name, {x, src}, out, [region](const GradientContext& context) { return gradients(context, region); },
        RuleKind::differentiable);
}

Tensor with_region(const char* name, Tensor x, Tensor src, const Region& region) {
    ops::LazyArray elements = donated_elements(x);
    return with_region(name, x, elements, std::move(src), region);
}

}  // namespace declivity::detail
