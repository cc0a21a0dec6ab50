#include "enqueue_kernel.hpp"

#include <mutex>
#include <string>
#include <string_view>

#include "device_state.hpp"
#include "kernel_arguments.hpp"

namespace declivity::detail {
namespace {

cl::NDRange ndrange(const Extent& sizes) { return {sizes[0], sizes[1], sizes[2]}; }

/// Sets the checked arguments; the caller holds the kernel's lock. Values equal to those of the previous launch are
/// skipped: a comparison is cheaper than a driver call. Buffers are always set, since a new one may have the address of
/// a released one.
void set_arguments(KernelState& kernel, std::span<const Argument> arguments) {
    for_each_argument(arguments, [&](unsigned index, Argument::Kind kind, std::size_t size, const void* data) {
        const auto set = [&] {
            set_argument(kernel, kernel.kernel(), kernel.device->context.info.name, index, size, data);
        };
        if (kind == Argument::Kind::buffer) return set();
        std::string& last = kernel.values[index];
        const std::string_view now = data != nullptr
                                         ? std::string_view(static_cast<const char*>(data), size)
                                         : std::string_view(reinterpret_cast<const char*>(&size), sizeof size);
        if (last == now) return;
        last.clear();  // also if setting it fails
        set();
        last.assign(now);
    });
}

}  // namespace

void enqueue_kernel(KernelState& kernel, const Range& range, std::span<const Argument> arguments) {
    Queues& queues = kernel.device->queues;
    queues.submit(
        {.name = kernel.name, .range = &range}, queues.compute, [&](cl::CommandQueue& queue, cl::Event* event) {
            const std::scoped_lock lock(kernel.mutex);
            set_arguments(kernel, arguments);
            queue.enqueueNDRangeKernel(kernel.kernel, cl::NullRange, ndrange(range.global),
                                       range.local == Extent{} ? cl::NullRange : ndrange(range.local), nullptr, event);
        });
    watch_exit_behind_first_launch(queues);
}

}  // namespace declivity::detail
