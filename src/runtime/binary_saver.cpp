#include "binary_saver.hpp"

#include <cstdlib>
#include <utility>
#include <vector>

namespace declivity::detail {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// A program is started up, and its first steps are over, when it has built nothing for so long. Drivers that are slow to
/// give binaries out may also compile at a first launch, which nobody hears of.
constexpr std::chrono::seconds kQuiet{30};
/// A driver that takes more than this part of the time it built in must be compiling.
constexpr double kSlow = 0.1;

void store_binary(const cl::Program& program, const cl::Device& device, const BinaryStore& store) {
    try {
        // A program belongs to all devices of its context, and a context of the user's may have several.
        const auto devices = program.getInfo<CL_PROGRAM_DEVICES>();
        const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
        for (std::size_t i = 0; i < devices.size() && i < binaries.size(); ++i)
            if (devices[i]() == device() && !binaries[i].empty()) store.save(binaries[i]);
    } catch (const cl::Error&) {
        // Not every driver gives binaries out; then each process compiles.
    }
}

}  // namespace

BinarySaver& BinarySaver::instance() {
    static auto* saver = new BinarySaver;
    return *saver;
}

void BinarySaver::save(const cl::Program& program, const cl::Device& device, BinaryStore store, Seconds build_time,
                       std::atomic<Driver>& driver) {
    if (driver != Driver::slow) {
        const auto begin = Clock::now();
        store_binary(program, device, store);
        if (driver == Driver::unknown) driver = Clock::now() - begin > kSlow * build_time ? Driver::slow : Driver::fast;
        return;
    }
    const std::scoped_lock lock(mutex_);
    if (stopped_) return;
    last_build_ = Clock::now();
    waiting_.push_back({program, device, std::move(store)});
    if (running_) return;
    // Drivers take themselves apart at the end of a process; the thread must be out of them by then.
    static const int registered = std::atexit([] { instance().stop(); });
    if (registered != 0) return waiting_.clear();
    if (thread_.joinable()) thread_.join();  // of an earlier crop, at its end
    running_ = true;
    thread_ = std::thread([this] { run(); });
}

void BinarySaver::postpone() {
    const std::scoped_lock lock(mutex_);
    last_build_ = Clock::now();
}

void BinarySaver::finish() {
    std::unique_lock lock(mutex_);
    hurry_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !running_; });
    hurry_ = false;
}

void BinarySaver::run() {
    std::unique_lock lock(mutex_);
    while (!stopped_ && !waiting_.empty()) {
        const auto due = last_build_ + kQuiet;
        if (!hurry_ && Clock::now() < due) {
            changed_.wait_until(lock, due);
            continue;
        }
        const Job job = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        store_binary(job.program, job.device, job.store);
        lock.lock();
    }
    running_ = false;
    changed_.notify_all();
}

void BinarySaver::stop() {
    {
        const std::scoped_lock lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

}  // namespace declivity::detail
