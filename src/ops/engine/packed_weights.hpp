// Layer 2, private. Packed copies of constant operands in the order in which a kernel reads them, cached with their
// memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <declivity/ops/view.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/strategy.hpp"
#include "runtime/capture.hpp"
#include "runtime/derived_cache.hpp"

namespace declivity::ops {

inline declivity::detail::DerivedKey packed_key(const View& operand, std::string_view kind) {
    declivity::detail::DerivedKey key{
        .offset = static_cast<std::uint64_t>(operand.offset) * size_of(operand.dtype),
        .bytes = operand.bytes(),
        .kind = fmt::format("{} {} {}", kind, name_of(operand.dtype), operand.shape.str())};
    for (int i = 0; i < operand.rank(); ++i) key.kind += fmt::format(" {}", operand.strides[i]);
    return key;
}

/// Uses of a weight before it is packed: one used once between two optimizer steps is not.
constexpr int kUsesBeforePacked = 1;

/// Returns whether a packed copy of a constant operand exists or may be made now, after `after_uses` uses of the same
/// contents; in a captured step it is made at once, since replays use it again.
inline bool keeps_packed(const View& operand, const PackedCopy& copy, int after_uses) {
    const Capture* const capture = Capture::current();
    return declivity::detail::accepts_derived(operand.buffer, packed_key(operand, copy.kind),
                                              static_cast<std::uint64_t>(copy.bytes),
                                              capture != nullptr ? 0 : after_uses);
}

/// Returns `make()` for an operand. If it is `constant`, the result is cached with the operand's memory until that is
/// written (Buffer::cache_derived).
template <class Make>
View packed_once(const View& operand, bool constant, std::string_view kind, Make make) {
    Capture* const capture = Capture::current();
    if (!constant || (capture != nullptr && capture->varies(operand.buffer))) return make();
    // Before the contents are read: a later write makes the captured step stale.
    if (capture != nullptr) capture->relies_on(operand.buffer);
    const CapturePause once;
    const declivity::detail::DerivedKey key = packed_key(operand, kind);
    if (const auto cached = declivity::detail::find_derived(operand.buffer, key))
        return *std::static_pointer_cast<const View>(cached);
    const std::uint64_t contents = operand.buffer.contents();
    const View packed = make();
    declivity::detail::cache_derived(operand.buffer, key, std::make_shared<const View>(packed), packed.bytes(),
                                     contents);
    return packed;
}

/// Chooses a strategy and runs it. A strategy with a packed copy of a constant operand is chosen only if the copy
/// exists or may be made, otherwise the strategy for changing operands.
/// @param choose (problem, device) returns a choice; `run` (problem, choice) launches it
template <class Problem, class Choose, class Run>
auto with_packed_weights(const Problem& problem, bool constant, const View& operand, const Device& device,
                         Choose choose, Run run) {
    const auto choice = choose(problem, device);
    if (!constant) return run(problem, choice);
    const auto copy = choice.strategy->packed_copy(problem, device, choice.variant);
    if (!copy) return run(problem, choice);
    const Problem changing = problem.with_constants(false);
    const auto otherwise = choose(changing, device);
    // Results must not depend on how often a weight was used before.
    const bool may_wait = !choice.measured && (copy->same_bits || otherwise.strategy == choice.strategy);
    const Capture* const capture = Capture::current();
    if (capture != nullptr && capture->varies(operand.buffer))  // packed in each replay, or not at all
        return may_wait ? run(changing, otherwise) : run(problem, choice);
    if (keeps_packed(operand, *copy, may_wait ? kUsesBeforePacked : 0)) try {
            return run(problem, choice);
        } catch (const OutOfMemory&) {
            // There may be enough memory without the copy.
        }
    return run(changing, otherwise);
}

}  // namespace declivity::ops
