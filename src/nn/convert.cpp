#include "convert.hpp"

#include <cstddef>
#include <vector>

#include <declivity/autograd/autograd.hpp>

namespace declivity::nn::detail {

void convert(const StateDict& tensors, const std::function<Tensor(const Tensor&)>& conversion) {
    const NoGrad no_grad;
    std::vector<Tensor> results;
    results.reserve(tensors.size());
    for (const NamedTensor& item : tensors) {
        results.push_back(conversion(item.tensor));
        (void)results.back().view();  // evaluated, so that its memory is allocated from here on
    }
    for (std::size_t i = 0; i < results.size(); ++i) Tensor(tensors[i].tensor).assign(results[i]);
}

}  // namespace declivity::nn::detail
