#include "load_state.hpp"

#include <string>
#include <utility>
#include <vector>
#include <unordered_map>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::detail {

void load_state(std::string_view owner, const StateDict& own, const StateDict& state, bool strict) {
    std::unordered_map<std::string_view, const Tensor*> given;
    for (const NamedTensor& one : state)
        if (!given.emplace(one.name, &one.tensor).second)
            throw ValueError(fmt::format("load_state_dict: wants each name once, got '{}' again", one.name));
    std::vector<std::string> missing, unexpected;
    std::vector<std::pair<Tensor, Tensor>> copies;  // to, from
    for (const auto& [name, to] : own) {
        const auto found = given.find(name);
        if (found == given.end()) {
            missing.push_back(name);
            continue;
        }
        const Tensor& from = *found->second;
        if (!from.defined())
            throw ValueError(fmt::format("load_state_dict: wants a tensor for '{}', got an undefined one", name));
        if (!(from.shape() == to.shape()))
            throw ShapeError(fmt::format("load_state_dict: wants '{}' of shape {}, got {}", name, to.shape().str(),
                                         from.shape().str()));
        if (from.dtype() != to.dtype())
            throw TypeError(fmt::format("load_state_dict: wants '{}' of type {}, got {}", name, name_of(to.dtype()),
                                        name_of(from.dtype())));
        copies.emplace_back(to, from);
    }
    for (const NamedTensor& one : own) given.erase(one.name);
    for (const NamedTensor& one : state)
        if (given.contains(one.name)) unexpected.push_back(one.name);
    if (strict && (!missing.empty() || !unexpected.empty()))
        throw ValueError(fmt::format("load_state_dict: wants the names of this {}; missing: [{}], unexpected: [{}]",
                                     owner, fmt::join(missing, ", "), fmt::join(unexpected, ", ")));
    const NoGrad no_grad;
    for (auto& [to, from] : copies) to.copy_(from);
}

}  // namespace declivity::detail
