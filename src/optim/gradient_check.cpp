#include "gradient_check.hpp"

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/finite.hpp>

namespace declivity::optim {

void GradientCheck::operator()(std::span<const Tensor> parameters, const Tensor& guard) {
    const NoGrad no_grad;
    std::vector<std::pair<DType, std::vector<ops::View>>> found;
    for (const Tensor& parameter : parameters) {
        const Tensor gradient = parameter.grad();
        if (!gradient.defined() || gradient.numel() == 0 || !(gradient.device() == guard.device())) continue;
        const DType dtype = gradient.dtype();
        auto same = found.begin();
        while (same != found.end() && same->first != dtype) ++same;
        if (same == found.end()) same = found.insert(same, {dtype, {}});
        same->second.push_back(gradient.dense_view());
    }
    for (const auto& [dtype, views] : found) {
        auto own = lists_.begin();
        while (own != lists_.end() && own->dtype != dtype) ++own;
        if (own == lists_.end()) own = lists_.insert(own, Lists{dtype});
        const ops::ReleaseTensors release{own->tensors};
        own->tensors.set({views});
        ops::check_finite(own->tensors, guard.view());
    }
}

}  // namespace declivity::optim
