#include <declivity/nn/module_list.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace declivity::nn::detail {

void refuse_index(std::string_view type, std::int64_t index, std::size_t size) {
    throw ValueError(fmt::format("{}: expected the index of one of {} modules, got {}", type, size, index));
}

void refuse_key(std::string_view type, std::string_view key, const std::vector<std::string>& keys) {
    throw ValueError(fmt::format("{}: expected one of the keys [{}], got \"{}\"", type, fmt::join(keys, ", "), key));
}

}  // namespace declivity::nn::detail
