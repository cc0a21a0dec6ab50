#include "convert.hpp"

#include <cstddef>
#include <vector>

#include <declivity/autograd/autograd.hpp>

namespace declivity::nn::detail {

void convert(const StateDict& tensors, const std::function<Tensor(const Tensor&)>& converted) {
    const NoGrad no_grad;
    std::vector<Tensor> made;
    made.reserve(tensors.size());
    for (const NamedTensor& item : tensors) {
        made.push_back(converted(item.tensor));
        (void)made.back().view();  // evaluated, so that its memory is allocated from here on
    }
    for (std::size_t i = 0; i < made.size(); ++i) Tensor(tensors[i].tensor).assign(made[i]);
}

}  // namespace declivity::nn::detail
