// Floor 2, private. How kernels that draw random numbers are cut.
#pragma once

#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Numbers of this type from one block of four words.
std::int64_t numbers_per_block(DType dtype);

/// `chunk` blocks a work-item.
struct RandomLaunch {
    explicit RandomLaunch(const View& out);
    Range range;
    std::int32_t chunk = 1;
};

}  // namespace declivity::ops
