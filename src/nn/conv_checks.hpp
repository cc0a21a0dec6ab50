// Floor 4, private. What constructors of convolutions check.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace declivity::nn {

/// @throws ValueError naming the layer unless groups divide the channels and all sizes are at least 1
void check_conv(std::string_view layer, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups,
                std::initializer_list<std::int64_t> kernel_size);

}  // namespace declivity::nn
