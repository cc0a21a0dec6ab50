// Records the commands of a capture.
#include <algorithm>
#include <atomic>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "command_list_state.hpp"
#include "kernel_arguments.hpp"
#include "runtime/capture.hpp"
#include "runtime/access.hpp"

namespace declivity::detail {
namespace {

std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

cl::Kernel own_kernel(const KernelState& kernel) {
    return checked("clone a kernel for a capture", kernel.device->context.info.name, [&] {
        cl_program program = nullptr;
        cl_int status =
            clGetKernelInfo(kernel.kernel(), CL_KERNEL_PROGRAM, sizeof program, static_cast<void*>(&program), nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "clGetKernelInfo");
        cl_kernel made = clCreateKernel(program, kernel.name.c_str(), &status);
        if (status != CL_SUCCESS) throw cl::Error(status, "clCreateKernel");
        return cl::Kernel(made);
    });
}

}  // namespace

CaptureState::CaptureState(DeviceState& on, std::vector<BufferRange> with, WhenRefused when)
    : step(on), number(next_number()), when_refused(when) {
    step.arena = std::make_shared<Arena>(on.context, on.pool);
    for (BufferRange& input : with) {
        if (!input.buffer) throw ValueError("Capture: expected inputs with memory, got an empty handle");
        const Block& block = block_of(input.buffer);
        require_device(block.device, "an input");
        if (input.offset > block.size || input.bytes > block.size - input.offset)
            throw ShapeError(fmt::format("Capture: expected inputs inside their buffer of {} bytes, got {} at byte {}",
                                         block.size, input.bytes, input.offset));
        step.inputs.push_back({.buffer = std::move(input.buffer),
                               .offset = input.offset,
                               .bytes = input.bytes,
                               .misalignment = (block.offset + input.offset) % kInputAlignment});
    }
}

void CaptureState::require_device(const DeviceState& device, std::string_view name) const {
    if (&device != &step.device)
        throw DeviceError(fmt::format("Capture: expected {} on '{}', got one on '{}'", name,
                                      step.device.context.info.name, device.context.info.name));
}

interop::RawBuffer CaptureState::use(const Buffer& buffer, unsigned argument, std::size_t element_size,
                                     std::int64_t offset) {
    const Block& block = block_of(buffer);
    // The position within the buffer is part of the fingerprint. Commands of an address table have negative offsets,
    // counted from the start of the cl_mem.
    std::int64_t behind = offset;
    if (CapturedInput* const input = step.input(buffer)) {
        behind = offset * static_cast<std::int64_t>(element_size) - static_cast<std::int64_t>(input->offset);
        input->uses.push_back({step.commands.size(), argument, element_size, behind});
        if (behind < 0 || (behind > 0 && behind >= static_cast<std::int64_t>(input->bytes))) uses_outside_inputs = true;
    } else if (!is_own(block)) {
        step.external_blocks.try_emplace(&block, buffer);
    }
    if (behind > 0) mix(&behind, sizeof behind);
    return {block.memory(), block.offset + static_cast<std::size_t>(offset) * element_size, block.size};
}

void CaptureState::mix(const void* data, std::size_t bytes) {
    for (const auto* byte = static_cast<const unsigned char*>(data); bytes > 0; --bytes, ++byte)
        step.fingerprint = (step.fingerprint ^ *byte) * 1099511628211ULL;
}

void CaptureState::add(CapturedCommand&& command) {
    mix(command.name.data(), command.name.size());
    command.scope = Scope::path();
    command.run = current_operator();
    step.commands.push_back(std::move(command));
}

std::shared_ptr<Block> CaptureState::allocate(std::size_t bytes) {
    auto block = step.arena->allocate(bytes);
    step.arena_blocks.push_back(block);
    return block;
}

void CaptureState::write(const Buffer& buffer) {
    if (CapturedInput* const input = step.input(buffer)) input->written = true;
    else if (!is_own(block_of(buffer))) step.written_blocks.try_emplace(&block_of(buffer), buffer);
}

void CaptureState::write_by_host_call(const Buffer& buffer) {
    step.written_by_host_calls.try_emplace(&block_of(buffer), weak_of(buffer));
}

void CaptureState::launched_readers(const Buffer& buffer) {
    if (!is_own(block_of(buffer)) && step.input(buffer) == nullptr)
        step.readers_launched.try_emplace(&block_of(buffer), buffer);
}

void capture_launch(Capture& capture, const KernelState& kernel, const Range& range,
                    std::span<const Argument> arguments) {
    CaptureState& state = capture.state();
    if (kernel.device != &state.step.device)
        return capture.refuse_other_device(
            fmt::format("launch of '{}' on '{}', another device", kernel.name, kernel.device->context.info.name));
    CapturedKernel captured{own_kernel(kernel), range};
    state.mix(range.global.data(), sizeof(std::size_t) * range.global.size());
    state.mix(range.local.data(), sizeof(std::size_t) * range.local.size());
    for_each_argument(arguments, [&](unsigned index, Argument::Kind, std::size_t size, const void* data) {
        set_argument(kernel, captured.kernel(), kernel.device->context.info.name, index, size, data);
    });
    unsigned index = 0;
    for (const Argument& argument : arguments) {
        if (argument.kind() == Argument::Kind::buffer) {
            const BufferArgument& buffer = argument.buffer();
            state.use(buffer.buffer, index++, buffer.element_size, buffer.offset);
        } else {
            const std::size_t size = argument.size();
            state.mix(&size, sizeof size);
            if (argument.kind() == Argument::Kind::value && !argument.places()) state.mix(argument.data(), size);
        }
        ++index;
    }
    state.add({.what = std::move(captured), .name = kernel.name});
}

void capture_copy(Capture& capture, const Buffer& from, std::size_t from_offset, const Buffer& to,
                  std::size_t to_offset, std::size_t bytes) {
    CaptureState& state = capture.state();
    if (&block_of(from).device != &state.step.device) return capture.refuse_other_device("copy on another device");
    const CapturedCopy copy{state.use(from, 0, 1, static_cast<std::int64_t>(from_offset)),
                            state.use(to, 1, 1, static_cast<std::int64_t>(to_offset)), bytes};
    state.mix(&bytes, sizeof bytes);
    state.add({.what = copy, .name = "copy", .bytes = 2.0 * static_cast<double>(bytes)});
}

void capture_fill(Capture& capture, const Buffer& to, std::size_t offset, std::size_t bytes,
                  std::span<const std::byte> pattern) {
    CaptureState& state = capture.state();
    if (&block_of(to).device != &state.step.device) return capture.refuse_other_device("fill on another device");
    CapturedFill fill{state.use(to, 0, 1, static_cast<std::int64_t>(offset)), bytes, pattern.size(), {}};
    std::ranges::copy(pattern, fill.pattern.begin());
    state.mix(pattern.data(), pattern.size());
    state.mix(&bytes, sizeof bytes);
    state.add({.what = fill, .name = "fill", .bytes = static_cast<double>(bytes)});
}

void capture_call(Capture& capture, const Device& device, std::string_view name, std::span<const Buffer> buffers,
                  const interop::Commands& commands) {
    CaptureState& state = capture.state();
    if (&state_of(device) != &state.step.device)
        return capture.refuse_other_device(fmt::format("{} on another device", name));
    CapturedCall call{commands, {}};
    for (std::size_t i = 0; i < buffers.size(); ++i)
        call.buffers.push_back(state.use(buffers[i], static_cast<unsigned>(i), 1, 0));
    state.add({.what = std::move(call), .name = std::string(name)});
}

}  // namespace declivity::detail
