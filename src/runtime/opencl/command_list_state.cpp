#include "command_list_state.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "runtime/stale_capture.hpp"
#include "runtime/access.hpp"

namespace declivity::detail {

CapturedInput* CapturedCommands::input(const Buffer& buffer) {
    const auto found = std::ranges::find(inputs, buffer, &CapturedInput::buffer);
    return found == inputs.end() ? nullptr : &*found;
}

CommandListState::~CommandListState() {
    if (!step_) return;
    for (CapturedCommand& command : step_->commands)
        if (auto* kernel = std::get_if<CapturedKernel>(&command.what)) {
            abandon_after_fork(kernel->kernel);
            if (at_exit()) kernel->kernel() = nullptr;  // the driver may have been unloaded
        }
}

std::uint64_t CommandListState::memory() const {
    const std::scoped_lock lock(mutex_);
    return step_ ? step_->arena->size() : 0;
}

bool CommandListState::stale() const {
    const std::scoped_lock lock(mutex_);
    return !step_ || std::ranges::any_of(step_->contents_dependencies,
                                         [](const auto& item) { return item.first.contents() != item.second; });
}

bool CommandListState::guards_hold() const {
    const std::scoped_lock lock(mutex_);
    return step_ && std::ranges::all_of(step_->guards, [](const auto& holds) { return holds(); });
}

void CommandListState::drop() noexcept {
    std::unique_ptr<CapturedCommands> gone;  // freed after the lock is released
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && !replaying_) gone.swap(step_);
}

bool CommandListState::is_compatible(std::size_t index, const BufferRange& with) const {
    const std::scoped_lock lock(mutex_);
    return !step_ ||
           (with.buffer && block_of(with.buffer).arena != step_->arena &&
            (block_of(with.buffer).offset + with.offset) % kInputAlignment == step_->inputs.at(index).misalignment);
}

std::size_t CommandListState::misalignment(std::size_t index) const {
    const std::scoped_lock lock(mutex_);
    return step_ ? step_->inputs.at(index).misalignment : 0;
}

void CommandListState::replace(std::size_t index, const BufferRange& with) {
    refuse_after_fork("CommandList::replace");
    const std::scoped_lock lock(mutex_);
    if (!step_) return;
    if (index >= step_->inputs.size())
        throw ValueError(
            fmt::format("CommandList::replace: expected an input index below {}, got {}", step_->inputs.size(), index));
    CapturedInput& input = step_->inputs[index];
    if (input.buffer == with.buffer && input.offset == with.offset && !input.is_inconsistent) return;
    if (!with.buffer || with.bytes < input.bytes || with.offset > with.buffer.size() ||
        with.bytes > with.buffer.size() - with.offset)
        throw ShapeError(fmt::format(
            "CommandList::replace: expected memory of at least {} bytes for input {}, got {} at byte {} of {}",
            input.bytes, index, with.bytes, with.offset, with.buffer.size()));
    const Block& block = block_of(with.buffer);
    if (&block.device != &step_->device)
        throw DeviceError(fmt::format("CommandList::replace: expected memory on '{}', got memory on '{}'",
                                      step_->device.context.info.name, block.device.context.info.name));
    if (block.arena == step_->arena)
        throw ValueError(fmt::format(
            "CommandList::replace: expected memory outside of the command list's arena for input {}, which a "
            "replay overwrites, got memory within it",
            index));
    if (!is_compatible(index, with))
        throw ValueError(fmt::format(
            "CommandList::replace: expected memory that is aligned like the captured input, {} bytes past a "
            "multiple of {}, got byte {}",
            input.misalignment, kInputAlignment, block.offset + with.offset));
    input.is_inconsistent = true;
    for (const InputUse& use : input.uses) {
        CapturedCommand& command = step_->commands[use.command];
        const std::size_t at = block.offset + with.offset + static_cast<std::size_t>(use.offset);
        const interop::RawBuffer place{block.memory(), at, block.size - with.offset};
        if (auto* kernel = std::get_if<CapturedKernel>(&command.what)) {
            const cl_long offset = static_cast<cl_long>(at) / static_cast<cl_long>(use.element_size);
            cl_int status = clSetKernelArg(kernel->kernel(), use.argument, sizeof place.memory, &place.memory);
            if (status == CL_SUCCESS)
                status = clSetKernelArg(kernel->kernel(), use.argument + 1, sizeof offset, &offset);
            if (status != CL_SUCCESS)
                throw_status(status, fmt::format("input {} of a command list", index), step_->device.context.info.name);
        } else if (auto* copy = std::get_if<CapturedCopy>(&command.what)) {
            (use.argument == 0 ? copy->from : copy->to) = place;
        } else if (auto* fill = std::get_if<CapturedFill>(&command.what)) {
            fill->to = place;
        } else if (auto* call = std::get_if<CapturedCall>(&command.what)) {
            call->buffers[use.argument] = place;
        }
    }
    input.is_inconsistent = false;
    input.buffer = with.buffer;
    input.offset = with.offset;
}

void CommandListState::replay() {
    const std::scoped_lock lock(mutex_);
    if (stale())
        throw StaleCapture(
            "CommandList::replay: expected a command list with unchanged constants and allocated memory, got a stale "
            "one; capture again");
    if (replaying_)
        throw ValueError(
            "CommandList::replay: expected a command list that is not being replayed, got a call within its "
            "own replay");
    for (const CapturedInput& input : step_->inputs)
        if (input.is_inconsistent)
            throw ValueError(
                "CommandList::replay: expected valid inputs, got one whose replacement failed; replace it again");
    struct Replaying {
        bool& flag;
        explicit Replaying(bool& of) : flag(of) { flag = true; }
        ~Replaying() { flag = false; }
    } const replaying(replaying_);
    const Span span("replay");
    std::vector<Buffer> arena_buffers;
    for (const auto& block : step_->arena_blocks)
        if (auto still = block.lock()) arena_buffers.push_back(buffer_of(std::move(still)));
    for (const auto& [block, buffer] : step_->external_blocks) before_read(buffer);
    for (const CapturedInput& input : step_->inputs) before_read(input.buffer);
    for (const Buffer& buffer : arena_buffers) before_read(buffer), before_write(buffer);
    for (const auto& [block, buffer] : step_->readers_launched) before_write(buffer);
    for (const auto& [block, buffer] : step_->written_blocks) before_write(buffer);
    for (const CapturedInput& input : step_->inputs)
        if (input.written) before_write(input.buffer);
    for (const auto& call : step_->before_replay) call();
    std::vector<BufferWrite> writes;
    for (Buffer& buffer : arena_buffers) writes.emplace_back(std::move(buffer));
    for (const auto& [block, buffer] : step_->written_blocks) writes.emplace_back(buffer);
    for (const CapturedInput& input : step_->inputs)
        if (input.written) writes.emplace_back(input.buffer);
    enqueue_all();
}

void CommandListState::enqueue_all() {
    DeviceState& device = step_->device;
    auto next = step_->commands.begin();
    const auto end = step_->commands.end();
    const auto is_call = [](const CapturedCommand& command) {
        return std::holds_alternative<CapturedCall>(command.what) ||
               std::holds_alternative<CapturedHostCall>(command.what);
    };
    if (!device.queues.profiled()) {
        while (next != end) {
            for (; next != end && is_call(*next); ++next) call(*next);
            const Queues::Enqueuing enqueuing(device.queues);
            for (; next != end && !is_call(*next); ++next) try {
                    enqueue(*next, device.queues.compute, nullptr);
                } catch (const cl::Error& error) {
                    device.queues.throw_refused(error.err(), next->name);
                }
        }
        return;
    }
    std::optional<WorkScope> work;
    const OperatorRun* at = nullptr;
    for (; next != end; ++next) {
        const ResumedScope scope(next->scope);
        if (next->run.get() != at) {
            work.reset();
            at = next->run.get();
            if (at != nullptr) work.emplace(at->name, at->work);
        }
        if (is_call(*next)) {
            call(*next);
            continue;
        }
        const auto* kernel = std::get_if<CapturedKernel>(&next->what);
        device.queues.submit(
            {.name = next->name, .bytes = next->bytes, .range = kernel != nullptr ? &kernel->range : nullptr},
            device.queues.compute, [&](cl::CommandQueue& queue, cl::Event* event) { enqueue(*next, queue, event); });
    }
}

void CommandListState::enqueue(CapturedCommand& command, cl::CommandQueue& queue, cl::Event* event) const {
    cl_event raw = nullptr;
    cl_event* const out = event != nullptr ? &raw : nullptr;
    cl_int status = CL_SUCCESS;
    if (auto* kernel = std::get_if<CapturedKernel>(&command.what)) {
        const Range& range = kernel->range;
        status = clEnqueueNDRangeKernel(queue(), kernel->kernel(), 3, nullptr, range.global.data(),
                                        range.local == Extent{} ? nullptr : range.local.data(), 0, nullptr, out);
    } else if (const auto* copy = std::get_if<CapturedCopy>(&command.what)) {
        status = clEnqueueCopyBuffer(queue(), copy->from.memory, copy->to.memory, copy->from.offset, copy->to.offset,
                                     copy->bytes, 0, nullptr, out);
    } else {
        const auto& fill = std::get<CapturedFill>(command.what);
        status = clEnqueueFillBuffer(queue(), fill.to.memory, fill.pattern.data(), fill.unit, fill.to.offset,
                                     fill.bytes, 0, nullptr, out);
    }
    if (status != CL_SUCCESS) throw cl::Error(status, "enqueue");
    if (event != nullptr) *event = cl::Event(raw);
}

void CommandListState::call(const CapturedCommand& command) const {
    if (const auto* call = std::get_if<CapturedCall>(&command.what)) return call->commands(call->buffers);
    const Span span(command.name);
    const HostCallScope scope(*step_, nullptr);
    std::get<CapturedHostCall>(command.what).call();
}

}  // namespace declivity::detail
