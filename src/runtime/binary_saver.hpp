// Floor 1, private. When binaries of new programs are asked from their driver and stored.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "binary_store.hpp"
#include "opencl.hpp"

namespace declivity::detail {

/// To give binaries out, some drivers compile every kernel of a program once more, for work-groups of any size; others have
/// them at hand. The first program of a device shows which kind its driver is. The binaries of a slow one are asked for in a
/// thread of its own, when nothing has been built for a while: then the first step of a training does not wait for them. A
/// process that ends before leaves them to a longer one.
class BinarySaver {
  public:
    /// What is known about a device's driver.
    enum class Driver : std::uint8_t { unknown, fast, slow };

    /// One for the process, never destroyed.
    static BinarySaver& instance();
    BinarySaver(const BinarySaver&) = delete;
    BinarySaver& operator=(const BinarySaver&) = delete;

    /// Stores the binary of a program that was built for `device` in `build_time`, now or later.
    void save(const cl::Program& program, const cl::Device& device, BinaryStore store, std::chrono::duration<double> build_time,
              std::atomic<Driver>& driver);
    /// Something is being built: what waits, waits on.
    void postpone();
    /// Stores everything that waits, before it returns.
    void finish();

  private:
    struct Job {
        cl::Program program;
        cl::Device device;
        BinaryStore store;
    };
    BinarySaver() = default;
    void run();
    void stop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> waiting_;
    std::thread thread_;
    bool running_ = false, stopped_ = false, hurry_ = false;
    std::chrono::steady_clock::time_point last_build_;
};

}  // namespace declivity::detail
