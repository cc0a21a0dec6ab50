#include <declivity/runtime/launch.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "device_state.hpp"

namespace declivity {

Defines::Defines(std::initializer_list<std::pair<std::string_view, std::string>> values) {
    for (const auto& [name, value] : values) set(name, value);
}

Defines& Defines::set(std::string_view name, std::string_view value) {
    text_ += fmt::format("#define {} {}\n", name, value);
    return *this;
}

Defines& Defines::set(std::string_view name, std::int64_t value) { return set(name, std::to_string(value)); }

Kernel::Kernel(const Device& device, const KernelSpec& spec) : state_(device.state().programs.kernel(spec)) {}
const std::string& Kernel::name() const { return state_->name; }
Device Kernel::device() const { return Device(state_->device); }
std::size_t Kernel::max_work_group() const { return state_->max_work_group; }

namespace {

cl::NDRange ndrange(const std::array<std::size_t, 3>& sizes) { return {sizes[0], sizes[1], sizes[2]}; }

void check_range(const detail::KernelState& kernel, const Range& range) {
    const auto& [local, global] = std::pair(range.local, range.global);
    if (local[0] == 0) return;
    const std::size_t group = local[0] * local[1] * local[2];
    const bool divides = global[0] % local[0] == 0 && global[1] % local[1] == 0 && global[2] % local[2] == 0;
    if (group > kernel.max_work_group || !divides)
        throw DeviceError(fmt::format("launch of '{}' on '{}': wants groups of at most {} work-items that divide the global "
                                      "size, got local {}x{}x{} for global {}x{}x{}", kernel.name, kernel.device->info.name,
                                      kernel.max_work_group, local[0], local[1], local[2], global[0], global[1], global[2]));
}

/// Sets the arguments; the caller holds the device's lock.
void set_arguments(detail::KernelState& kernel, std::span<const Argument> arguments) {
    unsigned index = 0;
    const auto check = [&](cl_int status) {
        if (status != CL_SUCCESS)
            detail::throw_status(status, fmt::format("argument {} of kernel '{}'", index, kernel.name), kernel.device->info.name);
    };
    for (const Argument& argument : arguments) {
        switch (argument.kind()) {
            case Argument::Kind::value:
                check(clSetKernelArg(kernel.kernel(), index, argument.size(), argument.data()));
                break;
            case Argument::Kind::local:
                check(clSetKernelArg(kernel.kernel(), index, argument.size(), nullptr));
                break;
            case Argument::Kind::buffer: {
                const auto& buffer = *static_cast<const BufferArgument*>(argument.data());
                if (!*buffer.buffer) throw ValueError(fmt::format("launch of '{}': argument {} is an empty buffer", kernel.name, index));
                const detail::Block& block = buffer.buffer->block();
                if (&block.device != kernel.device)
                    throw DeviceError(fmt::format("launch of '{}' on '{}': argument {} lives on '{}'", kernel.name,
                                                  kernel.device->info.name, index, block.device.info.name));
                const cl_mem memory = block.memory();
                check(clSetKernelArg(kernel.kernel(), index, sizeof memory, &memory));
                ++index;
                const cl_long offset = static_cast<cl_long>(block.offset / buffer.element_size) + buffer.offset;
                check(clSetKernelArg(kernel.kernel(), index, sizeof offset, &offset));
                break;
            }
        }
        ++index;
    }
    if (index != kernel.arguments)
        throw DeviceError(fmt::format("launch of '{}': the kernel has {} arguments, got {} (a buffer counts as two: base and "
                                      "offset)", kernel.name, kernel.arguments, index));
}

}  // namespace

void launch(const Kernel& kernel, const Range& range, std::initializer_list<Argument> arguments) {
    launch(kernel, range, std::span(arguments.begin(), arguments.size()));
}

void launch(const Kernel& kernel, const Range& range, std::span<const Argument> arguments) {
    detail::KernelState& state = kernel.state();
    if (range.global[0] * range.global[1] * range.global[2] == 0) return;  // OpenCL 1.2 refuses an empty range
    check_range(state, range);
    state.device->submit(state.name, state.device->compute, [&](cl::CommandQueue& queue, cl::Event* event) {
        set_arguments(state, arguments);
        queue.enqueueNDRangeKernel(state.kernel, cl::NullRange, ndrange(range.global),
                                   range.local[0] == 0 ? cl::NullRange : ndrange(range.local), nullptr, event);
    });
}

}  // namespace declivity
