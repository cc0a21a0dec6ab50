#include "permute.hpp"

#include <algorithm>
#include <optional>

#include <declivity/runtime/launch.hpp>

#include "ops/support/index_space.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kPermuteBlock = 64;
constexpr std::int64_t kMinPermuted = 4096;  // elements below which a specialised kernel is not worth it

/// Layout of the kernel's struct; must match cl_kernels/engine/permute.cl.
struct Permutation {
    AxisArray size{}, from{}, to{};
    std::int64_t rank = 0;
};

std::optional<int> contiguous_axis(const Strides& strides) {
    for (int axis = 0; axis < strides.rank(); ++axis)
        if (strides[axis] == 1) return axis;
    return std::nullopt;
}

}  // namespace

bool permuted_copy(const View& from, const View& to) {
    const std::size_t unit = size_of(to.dtype);
    if (kernel_style_of(to.device()) != KernelStyle::simd || to.numel() < kMinPermuted || (unit != 4 && unit != 8))
        return false;
    const IndexSpace space = merge_axes({to.shape, {from.strides, to.strides}});
    const std::optional<int> a = contiguous_axis(space.strides[0]), b = contiguous_axis(space.strides[1]);
    if (!a || !b || *a == *b) return false;
    Permutation permutation{.rank = space.sizes.rank()};
    std::size_t index = 0;
    const auto append = [&](int axis) {
        permutation.size[index] = space.sizes[axis];
        permutation.from[index] = space.strides[0][axis];
        permutation.to[index] = space.strides[1][axis];
        ++index;
    };
    for (int axis = 0; axis < space.sizes.rank(); ++axis)
        if (axis != *a && axis != *b) append(axis);
    append(*a);
    append(*b);
    Defines defines;
    defines.set("T", unit == 4 ? "uint" : "ulong").set("LANES", unit == 4 ? 16 : 8).set("BLOCK", kPermuteBlock);
    const std::int64_t outer = to.numel() / (space.sizes[*a] * space.sizes[*b]);
    const WorkScope work("permute", work_each(0, from, to));
    launch(Kernel(to.device(), {"permute.cl", "permute", defines}),
           {.global = {to_size(ceil_div(space.sizes[*a], kPermuteBlock)), to_size(outer), 1}, .local = {1, 1, 1}},
           {permutation, from.argument(), to.argument()});
    return true;
}

}  // namespace declivity::ops
