// Layer 1, private. Host-side spans by thread, recorded while a profiler runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/scope.hpp>

namespace declivity::detail {

/// The host's steady clock in ns; never 0.
inline std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// A call of an operator, shared by its launches.
struct OperatorRun {
    std::string name;
    Work work;
    std::atomic<bool> closed{false};  // no further launches
};

/// The current operator of this thread; null outside of one, or without a profiler.
const std::shared_ptr<OperatorRun>& current_operator();

struct SpanRecord {
    std::string name;
    SpanKind kind;
    std::int64_t begin, end;  // ns
};

/// The spans of all threads. Never destroyed, like devices.
class SpanRecorder {
  public:
    static SpanRecorder& instance();

    /// Returns whether a profiler runs; the only cost when none does.
    [[nodiscard]] static bool on() noexcept { return running_.load(std::memory_order_relaxed); }

    /// Registers a profiler; it may read spans until leave(), also after pause(). The last one to leave deletes the
    /// spans.
    void enter(std::size_t limit);
    void pause();
    void leave();

    void add(std::string_view name, SpanKind kind, std::int64_t begin) noexcept;  // ends now

    /// Visits the spans within [from, to], thread by thread. @return the number of spans dropped above the limit
    std::uint64_t visit(std::int64_t from, std::int64_t to,
                        const std::function<void(std::size_t thread, const SpanRecord&)>& show);

  private:
    struct Thread {
        std::mutex mutex;
        std::size_t number = 0;
        std::vector<SpanRecord> spans;
    };
    Thread& own();

    static inline std::atomic<bool> running_{false};
    static thread_local Thread*
        own_;  // without a destructor: static objects may still open spans after main() has ended
    std::mutex mutex_;
    std::vector<std::unique_ptr<Thread>> threads_;
    int holders_ = 0, active_ = 0;
    std::atomic<std::size_t> limit_{0}, recorded_{0};
    std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace declivity::detail
