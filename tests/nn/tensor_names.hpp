// Helpers for tests of modules.
#pragma once

#include <string>
#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::test {

inline std::vector<std::string> names(const std::vector<NamedTensor>& tensors) {
    std::vector<std::string> out;
    for (const NamedTensor& item : tensors) out.push_back(item.name);
    return out;
}

}  // namespace declivity::test
