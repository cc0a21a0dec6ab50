#include <declivity/runtime/launch.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "blocking.hpp"
#include "capture.hpp"
#include "opencl/command_list_state.hpp"
#include "opencl/device_state.hpp"
#include "opencl/enqueue_kernel.hpp"
#include "access.hpp"

namespace declivity {

Defines::Defines(std::initializer_list<std::pair<std::string_view, std::string>> values) {
    for (const auto& [name, value] : values) set(name, value);
}

Defines& Defines::set(std::string_view name, std::string_view value) {
    if (text_.empty()) text_.reserve(256);  // argument lists are built in every launch, and seldom longer
    ((((text_ += "#define ") += name) += ' ') += value) += '\n';
    return *this;
}

Defines& Defines::set(std::string_view name, std::int64_t value) { return set(name, std::to_string(value)); }

Kernel::Kernel(const Device& device, const KernelSpec& spec) : state_(state_of(device).programs.kernel(spec)) {}
const std::string& Kernel::name() const { return state_->name; }
Device Kernel::device() const { return device_of(*state_->device); }
std::size_t Kernel::max_work_group() const { return state_->max_work_group; }

namespace {

void check_range(const detail::KernelState& kernel, const Range& range) {
    const Extent &local = range.local, &global = range.global;
    if (local == Extent{}) return;
    bool fits = true;
    std::size_t group = 1;
    for (std::size_t i = 0; i < 3; ++i) {
        fits = fits && local[i] != 0 && local[i] <= kernel.device->context.info.max_work_items[i] &&
               global[i] % local[i] == 0;
        group *= local[i];
    }
    if (!fits || group > kernel.max_work_group)
        throw DeviceError(
            fmt::format("launch of '{}' on '{}': expected groups of at most {} work-items that divide the global "
                        "size, got local {}x{}x{} for global {}x{}x{}",
                        kernel.name, kernel.device->context.info.name, kernel.max_work_group, local[0], local[1],
                        local[2], global[0], global[1], global[2]));
}

/// Checks that the device may not make: drivers accept any eight bytes as a pointer.
void check_arguments(const detail::KernelState& kernel, std::span<const Argument> arguments) {
    std::size_t count = 0;
    for (const Argument& argument : arguments) count += argument.kind() == Argument::Kind::buffer ? 2 : 1;
    if (count != kernel.arguments.size())
        throw DeviceError(
            fmt::format("launch of '{}': expected {} arguments, got {} (a buffer counts as two: base and "
                        "offset)",
                        kernel.name, kernel.arguments.size(), count));
    using Space = detail::KernelState::Space;
    // `what` is formatted only on error: this runs in every launch.
    const auto check = [&](std::size_t index, Space got, const auto& what) {
        static constexpr std::string_view kNames[] = {"anything", "a number or struct", "a pointer to __global memory",
                                                      "a pointer to __local memory"};
        const Space expected = kernel.arguments[index];
        if (expected != Space::unknown && expected != got)
            throw DeviceError(fmt::format("launch of '{}': expected argument {} to be {}, got {}", kernel.name, index,
                                          kNames[static_cast<std::size_t>(expected)], what()));
    };
    std::size_t index = 0;
    for (const Argument& argument : arguments) {
        switch (argument.kind()) {
            case Argument::Kind::value:
                check(index, Space::value, [&] { return fmt::format("a value of {} bytes", argument.size()); });
                break;
            case Argument::Kind::local:
                check(index, Space::local, [] { return "local memory"; });
                break;
            case Argument::Kind::buffer: {
                const BufferArgument& buffer = argument.buffer();
                if (!buffer.buffer)
                    throw ValueError(fmt::format("launch of '{}': expected a buffer as argument {}, got an empty one",
                                                 kernel.name, index));
                if (&block_of(buffer.buffer).device != kernel.device)
                    throw DeviceError(fmt::format(
                        "launch of '{}' on '{}': expected argument {} on that device, got one on '{}'", kernel.name,
                        kernel.device->context.info.name, index, block_of(buffer.buffer).device.context.info.name));
                check(index++, Space::global, [] { return "a buffer"; });
                check(index, Space::value, [] { return "the offset that follows a buffer"; });
            }
        }
        ++index;
    }
}

}  // namespace

void launch(const Kernel& kernel, const Range& range, std::initializer_list<Argument> arguments) {
    launch(kernel, range, std::span(arguments.begin(), arguments.size()));
}

void launch(const Kernel& kernel, const Range& range, std::span<const Argument> arguments) {
    detail::KernelState& state = state_of(kernel);
    if (range.global[0] * range.global[1] * range.global[2] == 0) return;  // OpenCL 1.2 refuses an empty range
    detail::refuse_at_exit(state.name);
    if (detail::BlockingScope::on_launch()) [[unlikely]] {
        const detail::BlockingScope moment(kernel.device());
    }
    check_range(state, range);
    check_arguments(state, arguments);
    if (Capture* const capture = Capture::current()) detail::capture_launch(*capture, state, range, arguments);
    detail::enqueue_kernel(state, range, arguments);
}

}  // namespace declivity
