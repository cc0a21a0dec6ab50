#include "partial_sums.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/launch.hpp>

#include "ops/support/local_block.hpp"
#include "ops/support/memory_objects.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kMaxSums = 22;       // a device need not accept more than 1024 bytes of arguments
constexpr std::int64_t kSimdPerItem = 256;  // elements

constexpr int kMemories = 4;  // memory objects of a launch; the kernel's MEMORIES

/// Layout of the kernel's structs; must match cl_kernels/engine/partial_sums.cl.
struct Sum {
    std::int64_t partial, result, count;
    std::int32_t partials, first_group, memory, unused;
};
struct Sums {
    std::int32_t sums = 0, unused = 0;
    std::array<Sum, kMaxSums> sum{};
};

/// The reductions of one launch.
class Batch {
  public:
    /// Returns false if the reduction does not fit any more.
    bool add(const SplitKPartial& sum, std::int64_t elements_per_group) {
        if (sums_.sums == kMaxSums) return false;
        MemoryObjects<kMemories> memories = memories_;
        const auto partial = memories.index_of(sum.partials), result = memories.index_of(sum.result);
        if (!partial || !result) return false;
        memories_ = memories;
        sums_.sum[static_cast<std::size_t>(sums_.sums++)] = {.partial = elements_before(sum.partials),
                                                             .result = elements_before(sum.result),
                                                             .count = sum.result.numel(),
                                                             .partials = narrow(sum.partials.shape[0]),
                                                             .first_group = narrow(groups_),
                                                             .memory = *partial + kMemories * *result,
                                                             .unused = 0};
        groups_ += ceil_div(sum.result.numel(), elements_per_group);
        return true;
    }

    void launch(const Kernel& kernel, std::size_t group) const {
        const auto memory = memories_.arguments();
        declivity::launch(kernel, {{static_cast<std::size_t>(groups_) * group}, {group}},
                          {LayoutArgument{&sums_, sizeof sums_}, memory[0], memory[1], memory[2], memory[3]});
    }

  private:
    Sums sums_;
    std::int64_t groups_ = 0;
    MemoryObjects<kMemories> memories_;
};

}  // namespace

void reduce_partials(std::span<const SplitKPartial> sums, KernelStyle style) {
    if (sums.empty()) return;
    const Device device = sums[0].result.device();
    const bool simd = style == KernelStyle::simd;
    const std::int64_t each = simd ? kSimdPerItem : 1;
    const std::size_t group = simd ? 1 : std::min(kSimtItemGroup, device.info().max_work_group);
    Defines defines = storage_defines(sums[0].partials.dtype, sums[0].result.dtype);
    defines.set("PER_ITEM", each).set("GROUP", static_cast<std::int64_t>(group)).set("SUMS", kMaxSums);
    const Kernel kernel(device, {"partial_sums.cl", "sum_partials", defines});
    for (std::size_t i = 0; i < sums.size();) {
        Batch batch;
        Work work{.f64 = sums[0].result.dtype == DType::f64};
        for (; i < sums.size() && batch.add(sums[i], each * static_cast<std::int64_t>(group)); ++i) {
            work.flops += static_cast<double>(sums[i].partials.numel());
            work.bytes += bytes_of(sums[i].partials) + bytes_of(sums[i].result);
        }
        const WorkScope scope("sum_partials", work);
        batch.launch(kernel, group);
    }
}

namespace {

void launch_sums(std::span<const OperationViews> operations) {
    std::vector<SplitKPartial> sums;
    for (const OperationViews& views : operations) sums.push_back({views.in(0), views.out(0)});
    reduce_partials(sums, kernel_style_of(sums[0].result.device()));
}

}  // namespace

LazyArray lazy_reduce_partials(const View& partials, const Shape& shape, DType dtype) {
    return deferred_batched("sum_partials", launch_sums, {.reads = {partials}, .outputs = {{dtype, shape}}});
}

}  // namespace declivity::ops
