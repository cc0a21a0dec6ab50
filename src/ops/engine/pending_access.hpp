// Layer 2, private. Readers and writers: pending launches that read or write a block of memory. Deferred launches must
// not be observable: code that writes memory launches its pending readers first, and code that reads it the pending
// writers.
#pragma once

#include <memory>

#include <declivity/runtime/buffer.hpp>

#include "runtime/pending_access.hpp"

namespace declivity::ops {

DECLIVITY_API void add_reader(const Buffer& buffer, const std::weak_ptr<PendingLaunch>& reader);
/// Launches all pending readers. Must be called before writing in place.
DECLIVITY_API void launch_readers(const Buffer& buffer);
/// Adds a pending writer of memory that is already shared. It is launched before the elements are read or written, and
/// is kept alive until then. It must not own the memory: see weak_of().
DECLIVITY_API void add_writer(const Buffer& buffer, std::shared_ptr<PendingLaunch> writer);
/// Launches all pending writers. Must be called before elements are read or written.
DECLIVITY_API void launch_writers(const Buffer& buffer);
/// Returns whether an in-place write is unobservable except through `handles` handles: the memory belongs to the pool,
/// has no other handles, and no pending readers other than `reader`.
[[nodiscard]] DECLIVITY_API bool is_unshared(const Buffer& buffer, long handles, const PendingLaunch* reader);

}  // namespace declivity::ops
