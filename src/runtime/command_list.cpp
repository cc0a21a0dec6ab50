#include <declivity/runtime/command_list.hpp>

#include <declivity/runtime/error.hpp>

#include "process.hpp"
#include "capture.hpp"
#include "opencl/command_list_state.hpp"

namespace declivity {

std::size_t CommandList::commands() const { return state_ ? state_->commands : 0; }
std::uint64_t CommandList::memory() const { return state_ ? state_->memory() : 0; }
std::uint64_t CommandList::fingerprint() const { return state_ ? state_->fingerprint : 0; }
bool CommandList::stale() const { return state_ && state_->stale(); }
bool CommandList::guards_hold() const { return !state_ || state_->guards_hold(); }
bool CommandList::is_compatible(std::size_t index, const BufferRange& with) const {
    return state_ && state_->is_compatible(index, with);
}
std::size_t CommandList::misalignment(std::size_t index) const { return state_ ? state_->misalignment(index) : 0; }
void CommandList::replace(std::size_t index, const BufferRange& with) const {
    if (!state_) throw ValueError("CommandList::replace: expected a non-empty command list, got an empty one");
    state_->replace(index, with);
}
void CommandList::replay() const {
    if (!state_) return;
    detail::refuse_after_fork("CommandList::replay");
    detail::refuse_at_exit("CommandList::replay");
    if (Capture* const capture = Capture::current())
        capture->refuse("CommandList::replay within a capture", "command lists do not nest",
                        "call it before or after the captured step");
    state_->replay();
}

}  // namespace declivity
