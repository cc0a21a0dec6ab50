// Layer 1, private. What the host did and when: spans by thread, kept while some profiler runs.
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

/// ns of the host's steady clock; never 0.
inline std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// An operator's call, shared by its launches.
struct OperatorRun {
    std::string name;
    Work work;
    std::atomic<bool> closed{false};  // it launches no more
};

/// The operator that this thread is at; null outside of one, or where nobody profiles.
const std::shared_ptr<OperatorRun>& current_operator();

struct SpanRecord {
    std::string name;
    SpanKind kind;
    std::int64_t begin, end;  // ns
};

/// The spans of all threads. Never destroyed, as devices are not.
class SpanRecorder {
  public:
    static SpanRecorder& instance();

    /// Whether some profiler runs: the one thing that is looked at where none does.
    [[nodiscard]] static bool on() noexcept { return running_.load(std::memory_order_relaxed); }

    /// Profilers that want spans, and may still ask for them after they ended. The last one that goes takes the spans
    /// along.
    void enter(std::size_t most);
    void pause();
    void leave();

    void add(std::string_view name, SpanKind kind, std::int64_t begin) noexcept;  // ends now

    /// Spans within [from, to], thread by thread. @return how many were left out as too many
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
        own_;  // without a destructor: static objects may still open spans when main() has ended
    std::mutex mutex_;
    std::vector<std::unique_ptr<Thread>> threads_;
    int holders_ = 0, command_list_ = 0;
    std::atomic<std::size_t> most_{0}, kept_{0};
    std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace declivity::detail
