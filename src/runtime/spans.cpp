#include "spans.hpp"

#include <algorithm>
#include <tuple>

#include "process.hpp"

namespace declivity::detail {

thread_local SpanRecorder::Thread* SpanRecorder::own_ = nullptr;

SpanRecorder& SpanRecorder::instance() {
    static auto* recorder = new SpanRecorder;
    return *recorder;
}

void SpanRecorder::enter(std::size_t limit) {
    const std::scoped_lock lock(mutex_);
    ++holders_;
    ++active_;
    limit_ = std::max(limit_.load(), limit);
    running_ = true;
}

void SpanRecorder::pause() {
    const std::scoped_lock lock(mutex_);
    running_ = --active_ > 0;
}

void SpanRecorder::leave() {
    const std::scoped_lock lock(mutex_);
    if (--holders_ > 0) return;
    for (const auto& thread : threads_) {
        const std::scoped_lock inner(thread->mutex);
        thread->spans = {};
    }
    limit_ = recorded_ = 0;
    dropped_ = 0;
}

SpanRecorder::Thread& SpanRecorder::own() {
    if (own_ == nullptr) {
        const std::scoped_lock lock(mutex_);
        threads_.push_back(std::make_unique<Thread>());
        own_ = threads_.back().get();
        own_->number = threads_.size();
    }
    return *own_;
}

void SpanRecorder::add(std::string_view name, SpanKind kind, std::int64_t begin) noexcept {
    const std::int64_t end = now_ns();
    if (!on() || after_fork()) return;
    if (recorded_.fetch_add(1, std::memory_order_relaxed) >= limit_.load(std::memory_order_relaxed)) {
        recorded_.fetch_sub(1, std::memory_order_relaxed);
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    try {
        Thread& thread = own();
        const std::scoped_lock lock(thread.mutex);
        thread.spans.push_back({std::string(name), kind, begin, end});
    } catch (...) {  // out of memory
        dropped_.fetch_add(1, std::memory_order_relaxed);
    }
}

std::uint64_t SpanRecorder::visit(std::int64_t from, std::int64_t to,
                                  const std::function<void(std::size_t, const SpanRecord&)>& show) {
    const std::scoped_lock lock(mutex_);
    for (const auto& thread : threads_) {
        const std::scoped_lock inner(thread->mutex);
        // Stored by end time; shown by begin time, the outer span first.
        std::ranges::stable_sort(thread->spans, [](const SpanRecord& a, const SpanRecord& b) {
            return std::tie(a.begin, b.end) < std::tie(b.begin, a.end);
        });
        for (const SpanRecord& span : thread->spans)
            if (span.begin >= from && span.end <= to) show(thread->number, span);
    }
    return dropped_;
}

}  // namespace declivity::detail
