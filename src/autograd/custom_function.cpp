#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity {

std::vector<Tensor> CustomFunction::operator()(const std::vector<Tensor>& inputs) const {
    if (!forward || (!backward && any_requires_grad(inputs)))
        throw ValueError(fmt::format("{}: expected the functions forward and backward, got no {}", name,
                                     forward ? "backward" : "forward"));
    std::vector<Tensor> outputs;
    {
        const NoGrad no_grad;
        outputs = forward(inputs);
    }
    std::vector<ops::LazyArray> values;
    for (const Tensor& output : outputs) {
        if (!output.defined())
            throw ValueError(fmt::format("{}: expected tensors from forward, got an undefined one", name));
        values.push_back(output.value());
    }
    if (!any_requires_grad(inputs)) return outputs;
    std::vector<Saved> saved_inputs, saved_outputs;
    for (const Tensor& input : inputs) saved_inputs.emplace_back(input);
    for (const ops::LazyArray& value : values) saved_outputs.push_back(Saved::result(value));
    const std::size_t count = outputs.size();
    return attach_backward(
        name, inputs, values,
        [name = name, backward = backward, saved_inputs, saved_outputs, count](const GradientContext& context) {
            std::vector<Tensor> in, out, gradients;
            for (const Saved& saved : saved_inputs) in.push_back(saved.get(name));
            for (const Saved& saved : saved_outputs) out.push_back(saved.get(name));
            for (std::size_t i = 0; i < count; ++i) gradients.push_back(context.gradient(i));
            return backward(in, out, gradients);
        });
}

}  // namespace declivity
