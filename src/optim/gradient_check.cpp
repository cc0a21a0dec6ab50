#include "gradient_check.hpp"

#include <declivity/autograd/autograd.hpp>
#include <declivity/ops/finite.hpp>

namespace declivity::optim {

void GradientCheck::operator()(std::span<const Tensor> parameters, const Tensor& guard) {
    const NoGrad no_grad;
    std::vector<std::pair<DType, std::vector<ops::View>>> views_by_type;
    for (const Tensor& parameter : parameters) {
        const Tensor gradient = parameter.grad();
        if (!gradient.defined() || gradient.numel() == 0 || !(gradient.device() == guard.device())) continue;
        const DType dtype = gradient.dtype();
        auto entry = views_by_type.begin();
        while (entry != views_by_type.end() && entry->first != dtype) ++entry;
        if (entry == views_by_type.end()) entry = views_by_type.insert(entry, {dtype, {}});
        entry->second.push_back(gradient.dense_view());
    }
    for (const auto& [dtype, views] : views_by_type) {
        auto lists = lists_.begin();
        while (lists != lists_.end() && lists->dtype != dtype) ++lists;
        if (lists == lists_.end()) lists = lists_.insert(lists, Lists{dtype});
        const ops::ReleaseTensors release{lists->tensors};
        lists->tensors.set({views});
        ops::check_finite(lists->tensors, guard.view());
    }
}

}  // namespace declivity::optim
