#include "device_clock.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/spans.hpp"

// Old ICD loaders lack it, and newer ones forward it to drivers without checking their version.
#if defined(__GNUC__) && !defined(_WIN32)
#pragma weak clGetDeviceAndHostTimer
#define DECLIVITY_HAS_DEVICE_TIMER (&clGetDeviceAndHostTimer != nullptr)
#else
#define DECLIVITY_HAS_DEVICE_TIMER false
#endif

namespace declivity::detail {
namespace {

constexpr std::uint64_t kWindow = 1'000'000'000;
constexpr std::int64_t kLongAnswer = 1'000'000;  // answers that took longer are too inaccurate
constexpr std::size_t kMaxAnchors = 100'000;     // a day of windows

bool has_device_timer(const std::string& version) {
    if (!DECLIVITY_HAS_DEVICE_TIMER) return false;
    int major = 0, minor = 0;
    return std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) == 2 &&
           (major > 2 || (major == 2 && minor >= 1));
}

}  // namespace

DeviceClock::DeviceClock(cl_device_id device, const std::string& version)
    : device_(device), has_timer_(has_device_timer(version)) {}

void DeviceClock::sample() {
#if defined(__GNUC__) && !defined(_WIN32)
    if (!has_timer_) return;
    cl_ulong device_time = 0, host_time = 0;  // host_time is from a clock of the driver's choice
    const std::int64_t before = now_ns();
    has_timer_ = clGetDeviceAndHostTimer(device_, &device_time, &host_time) == CL_SUCCESS && device_time != 0;
    const std::int64_t after = now_ns();
    if (has_timer_) add_sample(device_time, before, after);
#endif
}

void DeviceClock::add_sample(std::uint64_t device_time, std::int64_t before, std::int64_t after) {
    if (after - before > kLongAnswer || timer_anchors_.size() >= kMaxAnchors) return;
    if (!timer_anchors_.empty() && device_time < timer_anchors_.back().at + kWindow / 10) return;
    timer_anchors_.push_back({device_time, before + (after - before) / 2 - static_cast<std::int64_t>(device_time)});
}

void DeviceClock::add_queued_command(std::uint64_t queued, std::int64_t before, std::int64_t after) {
    const auto device_time = static_cast<std::int64_t>(queued);
    if (window_.any && queued >= window_.first + kWindow && command_anchors_.size() < kMaxAnchors) {
        command_anchors_.push_back(window_.anchor());
        window_.any = false;
    }
    if (!window_.any) {
        window_ = {.first = queued,
                   .last = queued,
                   .lowest = before - device_time,
                   .highest = after - device_time,
                   .any = true};
        return;
    }
    window_.last = std::max(window_.last, queued);
    window_.lowest = std::max(window_.lowest, before - device_time);
    window_.highest = std::min(window_.highest, after - device_time);
}

std::int64_t DeviceClock::to_host(std::uint64_t device_time) const {
    const auto time = static_cast<std::int64_t>(device_time);
    // With drivers whose device timer and events use different clocks, the events decide, since commands are what is
    // shown.
    const bool timer_agrees =
        !timer_anchors_.empty() && (!window_.any || (timer_anchors_.back().offset > window_.lowest - kLongAnswer &&
                                                     timer_anchors_.back().offset < window_.highest + kLongAnswer));
    const std::vector<Anchor>& anchors = timer_agrees ? timer_anchors_ : command_anchors_;
    const bool one_more = !timer_agrees && window_.any;  // the current, unfinished window
    if (anchors.empty()) return one_more ? time + window_.anchor().offset : time;
    const auto behind = std::ranges::lower_bound(anchors, device_time, {}, &Anchor::at);
    if (behind == anchors.begin()) return time + anchors.front().offset;
    if (behind == anchors.end() && (!one_more || window_.anchor().at <= device_time))
        return time + (one_more ? window_.anchor().offset : anchors.back().offset);
    const Anchor left = *(behind - 1), right = behind == anchors.end() ? window_.anchor() : *behind;
    const double share = static_cast<double>(device_time - left.at) / static_cast<double>(right.at - left.at);
    return time + left.offset + static_cast<std::int64_t>(share * static_cast<double>(right.offset - left.offset));
}

}  // namespace declivity::detail
