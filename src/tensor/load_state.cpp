#include "load_state.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/grad_mode.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::detail {
namespace {

void require_like(const NamedTensor& own, const Tensor& from) {
    const auto& [name, to] = own;
    if (!from.defined())
        throw ValueError(fmt::format("load_state_dict: expected a tensor for '{}', got an undefined one", name));
    if (!(from.shape() == to.shape()))
        throw ShapeError(fmt::format("load_state_dict: expected '{}' of shape {}, got {}", name, to.shape().str(),
                                     from.shape().str()));
    if (from.dtype() != to.dtype())
        throw TypeError(fmt::format("load_state_dict: expected '{}' of type {}, got {}", name, name_of(to.dtype()),
                                    name_of(from.dtype())));
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
    const ops::View view = tensor.dense_view();
    std::vector<std::byte> bytes(view.bytes());
    read(view.buffer, static_cast<std::size_t>(view.offset) * size_of(view.dtype), bytes);
    return bytes;
}

/// Counts, for each prefix that ends in a dot, how many names are among `others` without it.
std::map<std::string, std::size_t> prefixes_beyond(const std::vector<std::string>& names,
                                                   const std::vector<std::string>& others) {
    const std::unordered_set<std::string_view> known(others.begin(), others.end());
    std::map<std::string, std::size_t> counts;
    for (const std::string& name : names)
        for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
            if (known.contains(std::string_view(name).substr(dot + 1))) ++counts[name.substr(0, dot + 1)];
    return counts;
}

/// Advice if names match but for a common prefix; otherwise empty.
std::string prefix_hint(const LoadedState& names) {
    const auto most_common = [](const std::map<std::string, std::size_t>& counts) {
        const auto found = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
        return found == counts.end() ? std::pair<std::string, std::size_t>() : std::pair(found->first, found->second);
    };
    const auto [unexpected_prefix, unexpected_count] = most_common(prefixes_beyond(names.unexpected, names.missing));
    const auto [missing_prefix, missing_count] = most_common(prefixes_beyond(names.missing, names.unexpected));
    if (unexpected_count == 0 && missing_count == 0) return {};
    if (unexpected_count >= missing_count)
        return fmt::format(
            "; {} of the unexpected names are missing ones with the prefix '{}': remove it from the "
            "names of the state",
            unexpected_count, unexpected_prefix);
    return fmt::format(
        "; {} of the missing names are unexpected ones with the prefix '{}': add it to the names of "
        "the state, or load the state into the module of that name",
        missing_count, missing_prefix);
}

/// Source of each tensor: the first of its names that exists.
struct Load {
    Tensor to;
    const Tensor* from;
    std::string_view name;
};

}  // namespace

LoadedState load_state(std::string_view owner, const StateDict& own, const StateDict& state, bool strict) {
    std::unordered_map<std::string_view, const Tensor*> tensors_by_name;
    for (const NamedTensor& item : state)
        if (!tensors_by_name.emplace(item.name, &item.tensor).second)
            throw ValueError(fmt::format("load_state_dict: expected each name once, got '{}' again", item.name));
    std::vector<Load> loads;
    std::unordered_map<const void*, std::size_t> load_indices;  // by tensor, which may have several names
    for (const NamedTensor& item : own) {
        const auto found = tensors_by_name.find(item.name);
        if (found == tensors_by_name.end()) continue;
        const Tensor& from = *found->second;
        require_like(item, from);
        const auto [entry, is_first] = load_indices.try_emplace(state_of(item.tensor).get(), loads.size());
        if (is_first) loads.push_back({item.tensor, &from, item.name});
        const Load& first_load = loads[entry->second];
        if (!is_first && state_of(*first_load.from) != state_of(from) && bytes_of(*first_load.from) != bytes_of(from))
            throw ValueError(
                fmt::format("load_state_dict: expected the same values for '{}' and '{}', which are one "
                            "tensor here, got different ones",
                            first_load.name, item.name));
    }
    LoadedState names;
    for (const NamedTensor& item : own)
        if (tensors_by_name.erase(item.name) == 0 && !load_indices.contains(state_of(item.tensor).get()))
            names.missing.push_back(item.name);
    for (const NamedTensor& tensor : state)
        if (tensors_by_name.contains(tensor.name)) names.unexpected.push_back(tensor.name);
    if (strict && !names.complete())
        throw ValueError(
            fmt::format("load_state_dict: expected the names of this {}; missing: [{}], unexpected: [{}]{}", owner,
                        fmt::join(names.missing, ", "), fmt::join(names.unexpected, ", "), prefix_hint(names)));
    const NoGrad no_grad;
    // Pending values are computed before the first write: if one fails, the owner is unchanged.
    for (const Load& load : loads) (void)load.from->view();
    for (Load& load : loads) load.to.copy_(*load.from);
    return names;
}

}  // namespace declivity::detail
