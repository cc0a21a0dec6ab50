// Layer 1, private. Calls that block for long, such as the compilation of a kernel, as seen by a layer above whose
// locks a thread must not hold meanwhile.
#pragma once

#include <atomic>

#include <declivity/export.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::detail {

struct BlockingHook {
    void* (*begin)(const Device& device);  ///< the result is passed to `end`
    void (*end)(const Device& device, void* state) noexcept;
};

/// Sets the hook of the process, which is called by every BlockingScope.
DECLIVITY_API void set_blocking_hook(const BlockingHook* hook) noexcept;

/// A call that may block for long.
class BlockingScope {
  public:
    explicit BlockingScope(const Device& device);
    ~BlockingScope();
    BlockingScope(const BlockingScope&) = delete;
    BlockingScope& operator=(const BlockingScope&) = delete;

    /// If set, each launch of any thread is a blocking call: for tests.
    static std::atomic<bool>& on_launch() noexcept;

  private:
    Device device_;
    const BlockingHook* hook_;
    void* state_;
};

}  // namespace declivity::detail
