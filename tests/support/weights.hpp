// Weights of a model, on the host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <declivity/nn/module.hpp>
#include <tests/support/values.hpp>

namespace declivity::test {

using Row = std::vector<double>;
using Weights = std::map<std::string, Row>;

/// Parameters and buffers of floating types by name.
inline Weights weights_of(const nn::Module& model) {
    Weights out;
    for (const auto& [name, tensor] : model.state_dict())
        if (is_floating(tensor.dtype())) out[name] = values(tensor);
    return out;
}

}  // namespace declivity::test
