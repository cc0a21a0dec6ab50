#include "capture.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "opencl/command_list_state.hpp"
#include "access.hpp"

namespace declivity {
namespace {

thread_local Capture* current = nullptr;
thread_local detail::HostCallScope* host_call_now = nullptr;

/// Active captures of all threads, by number.
struct ActiveCaptures {
    std::mutex mutex;
    std::map<std::uint64_t, Capture*> by_number;

    static ActiveCaptures& instance() {
        static auto* all = new ActiveCaptures;  // never destroyed, like the devices
        return *all;
    }
};

}  // namespace

Capture::Capture(const Device& device, std::vector<BufferRange> inputs, WhenRefused when_refused) {
    detail::refuse_after_fork("Capture");
    if (declivity::current != nullptr)
        throw ValueError("Capture: expected a thread without an active capture, got one that is capturing");
    state_ = std::make_unique<detail::CaptureState>(state_of(device), std::move(inputs), when_refused);
    auto& all = ActiveCaptures::instance();
    const std::scoped_lock lock(all.mutex);
    all.by_number.emplace(state_->number, this);
    declivity::current = this;
}

Capture::~Capture() {
    {
        auto& all = ActiveCaptures::instance();
        const std::scoped_lock lock(all.mutex);
        all.by_number.erase(state_->number);
    }
    if (declivity::current == this) declivity::current = nullptr;
}

bool is_capturing() noexcept { return Capture::current() != nullptr; }
void add_capture_guard(std::function<bool()> is_unchanged) {
    if (Capture* const capture = Capture::current()) capture->guard(std::move(is_unchanged));
}

Capture* Capture::current() noexcept { return declivity::current; }
std::uint64_t Capture::current_number() noexcept {
    return declivity::current == nullptr ? 0 : declivity::current->state().number;
}
const std::string& Capture::refused() const { return state_->refused; }

CommandList Capture::finish() {
    if (declivity::current == this) launch_deferred();
    if (declivity::current != this) return {};  // an operation was refused
    declivity::current = nullptr;
    if (incomplete()) return {};
    auto& step = state_->step;
    std::erase_if(step.arena_blocks, [](const auto& block) { return block.expired(); });
    detail::DeviceState& device = step.device;
    auto command_list = std::make_shared<detail::CommandListState>(std::move(step));
    device.register_holder(command_list);
    return detail::StateAccess::handle<CommandList>(std::move(command_list));
}

void Capture::launch_deferred() {
    // Newest first, as kernels fuse the operations that produce their inputs. A launch may create further values.
    for (auto& left = state_->at_end; !left.empty();) {
        const auto value = left.back().lock();
        left.pop_back();
        if (value) value->launch();
    }
}

bool Capture::needs_whole_inputs() const { return state_->uses_outside_inputs; }
CapturedUses Capture::uses(bool inputs_aliased) const {
    return {state_->step, inputs_aliased || state_->uses_outside_inputs};
}
bool Capture::is_input(const Buffer& buffer) const { return state_->step.input(buffer) != nullptr; }
bool Capture::host_calls_use(const void* key) const { return state_->step.host_call_keys.contains(key); }

CapturedUses::CapturedUses(const detail::CapturedCommands& step, bool inputs_aliased) {
    const auto add = [&](const Buffer& buffer, bool written) {
        UsedBlock& used_block = used_blocks_[&block_of(buffer)];
        used_block.block = weak_of(buffer);
        used_block.written = used_block.written || written;
    };
    for (const auto& [block, buffer] : step.external_blocks) add(buffer, false);
    for (const auto& [block, buffer] : step.readers_launched) add(buffer, true);
    for (const auto& [block, buffer] : step.written_blocks) add(buffer, true);
    for (const auto& [block, buffer] : step.written_by_host_calls) used_blocks_[block] = {buffer, true};
    for (const detail::CapturedInput& input : step.inputs) {
        // Uses are attributed to the first of several inputs in the same buffer.
        const bool written = std::ranges::any_of(
            step.inputs, [&](const auto& other) { return other.written && other.buffer == input.buffer; });
        writes_.push_back(written);
        if (inputs_aliased) add(input.buffer, written);
    }
}

bool CapturedUses::aliases_safely(std::span<const BufferRange> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool written = i < writes_.size() && writes_[i];
        const auto used_block = used_blocks_.find(&block_of(inputs[i].buffer));
        if (used_block != used_blocks_.end() && (written || used_block->second.written) &&
            !used_block->second.block.expired())
            return false;
        for (std::size_t k = 0; written && k < inputs.size(); ++k)
            if (const std::array both{inputs[i], inputs[k]}; k != i && overlap(both)) return false;
    }
    return true;
}

bool CapturedUses::overlap(std::span<const BufferRange> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) {
            const BufferRange &a = inputs[i], &b = inputs[k];
            if (a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes) return true;
        }
    return false;
}

void host_call(const std::function<void()>& call, std::string_view name) {
    detail::refuse_after_fork(name);
    if (!call) throw ValueError("host_call: expected a function, got an empty one");
    std::optional<detail::HostCallScope> scope;
    if (Capture* const capture = Capture::current()) {
        capture->launch_deferred();
        capture->state().add({.what = detail::CapturedHostCall{call}, .name = std::string(name)});
        scope.emplace(capture->state().step, &capture->state());
    }
    const CapturePause pause;  // what the function enqueues is not captured: the replay calls the function
    const Span span(name);
    call();
}

bool host_call_shares(const void* key) {
    auto* const scope = detail::HostCallScope::current();
    if (scope == nullptr) return false;
    scope->step.host_call_keys.insert(key);
    return scope->step.user_data.contains(key);
}

namespace detail {

HostCallScope::HostCallScope(CapturedCommands& of, CaptureState* with) noexcept
    : step(of), capture(with), before_(std::exchange(host_call_now, this)) {}
HostCallScope::~HostCallScope() { host_call_now = before_; }
HostCallScope* HostCallScope::current() noexcept { return host_call_now; }

}  // namespace detail

namespace {

/// Appends the scope path of the thread, such as the layer whose forward pass is running.
std::string in_scope(const std::string& operation) {
    const ScopePath path = Scope::path();
    return path.empty() ? operation : fmt::format("{}, in {}", operation, path.str());
}

}  // namespace

void Capture::refuse(const std::string& operation) {
    state_->refused = in_scope(operation);
    end(operation, "a replay would not repeat it", "leave it out of the captured step, or do it before or after");
}

void Capture::refuse(const std::string& operation, std::string_view reason, std::string_view remedy) {
    state_->refused = in_scope(fmt::format("{} ({})", operation, remedy));
    end(operation, reason, remedy);
}

void Capture::end(const std::string& operation, std::string_view reason, std::string_view remedy) {
    if (state_->when_refused == WhenRefused::fail)
        throw Unsupported(fmt::format("capture: {} cannot be captured, since {}; {}", operation, reason, remedy));
    declivity::current = nullptr;
}

void Capture::refuse_other_device(const std::string& operation) {
    refuse(operation, "a captured step has one device",
           fmt::format("capture one step for each device; this one is on '{}'", state_->step.device.context.info.name));
}

CaptureScope::CaptureScope(std::uint64_t number) {
    if (Capture::current_number() == number) return;
    outside_.emplace();
    if (number == 0) return;
    auto& all = ActiveCaptures::instance();
    const std::scoped_lock lock(all.mutex);
    if (const auto found = all.by_number.find(number); found != all.by_number.end())
        found->second->state().incomplete = true;
}

bool Capture::incomplete() const {
    const std::scoped_lock lock(ActiveCaptures::instance().mutex);
    return state_->incomplete;
}

void Capture::uses(const Buffer& buffer) {
    if (!buffer || state_->is_own(block_of(buffer))) return;
    if (state_->step.input(buffer) != nullptr)
        return refuse("an input as a tensor of a multi-tensor operation (optimizer, gradient norm)",
                      "it is a different tensor in each call, and the kernel reads it through a fixed address",
                      "use a tensor created before the step, and copy the input into it (copy_)");
    state_->step.external_blocks.try_emplace(&block_of(buffer), buffer);
}

void Capture::relies_on(const Buffer& buffer) {
    if (buffer) state_->step.contents_dependencies.emplace_back(buffer, buffer.contents());
}

void Capture::guard(std::function<bool()> is_unchanged) {
    if (is_unchanged) state_->step.guards.push_back(std::move(is_unchanged));
}

bool Capture::varies(const Buffer& buffer) const {
    if (!buffer) return false;
    auto& step = state_->step;
    return state_->is_own(block_of(buffer)) || step.written_blocks.contains(&block_of(buffer)) ||
           step.written_by_host_calls.contains(&block_of(buffer)) || step.input(buffer) != nullptr;
}

void Capture::launch_at_end(const std::weak_ptr<PendingLaunch>& value) { state_->at_end.push_back(value); }
void Capture::before_replay(std::function<void()> call) { state_->step.before_replay.push_back(std::move(call)); }
std::shared_ptr<void>& Capture::user_data(const void* key) { return state_->step.user_data[key]; }

CapturePause::CapturePause() noexcept : before_(std::exchange(current, nullptr)) {}
CapturePause::~CapturePause() { current = before_; }

}  // namespace declivity
