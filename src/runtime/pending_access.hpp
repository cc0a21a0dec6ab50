// Layer 1, private. Interface to the launches that a higher layer has deferred: a capture launches them before it ends,
// and code that uses memory launches those that read or write it.
#pragma once

#include <atomic>

#include <declivity/export.hpp>
#include <declivity/runtime/buffer.hpp>

namespace declivity {

/// A deferred launch of a higher layer.
class DECLIVITY_API PendingLaunch {
  public:
    PendingLaunch() = default;
    PendingLaunch(const PendingLaunch&) = delete;
    PendingLaunch& operator=(const PendingLaunch&) = delete;
    virtual ~PendingLaunch() = default;
    /// Enqueues the launch if it is still pending.
    virtual void launch() = 0;
    [[nodiscard]] virtual bool pending() const noexcept = 0;
};

namespace detail {

/// The pending launches that read or write a block of memory, kept by a higher layer. The block owns it.
class PendingAccess {
  public:
    PendingAccess() = default;
    PendingAccess(const PendingAccess&) = delete;
    PendingAccess& operator=(const PendingAccess&) = delete;
    virtual ~PendingAccess() = default;

    /// Launches the writers.
    virtual void launch_writers() = 0;
    /// Launches the readers. @return whether there were any
    virtual bool launch_readers() = 0;
};

/// The one of a buffer, null until a higher layer sets it; the memory owns it.
[[nodiscard]] std::atomic<PendingAccess*>& pending_access_of(const Buffer& buffer) noexcept;

/// Must be called before the elements are read, or written in part: launches pending writers.
void before_read(const Buffer& buffer);
/// Must be called before memory is written in place: launches pending readers, and makes the compute queue wait for
/// reads that run on the transfer queue.
void before_write(const Buffer& buffer);
/// Returns whether an in-place write is unobservable, as far as the runtime knows, except through `handles` handles:
/// the memory belongs to the pool, has no other handles, and is not being read on the transfer queue.
[[nodiscard]] bool is_exclusive(const Buffer& buffer, long handles);

}  // namespace detail
}  // namespace declivity
