// The kernels of the tests of the runtime.
#pragma once

#include <cstddef>
#include <string>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/launch.hpp>
#include <tests/support/paths.hpp>

namespace declivity::test {

inline const std::string kFile = (source_folder() / "runtime/kernels.cl").string();

inline void run_slow_kernel(const Device& device, int steps) {
    const Buffer in(device, 64 * sizeof(int)), out(device, 64 * sizeof(int));
    const std::byte zero[4]{};
    fill(in, 0, in.size(), zero);
    launch(Kernel(device, {kFile, "slow_copy"}), {.global = 64},
           {steps, BufferArgument{in, 0, 4}, BufferArgument{out, 0, 4}});
}

}  // namespace declivity::test
