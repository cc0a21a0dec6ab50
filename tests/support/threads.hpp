// Runs several threads and reports their exceptions.
#pragma once

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <tests/support/values.hpp>

namespace declivity::test {

/// Calls body(number) in `count` threads at once and waits. Returns the result of each: "" on success, or the message
/// of an exception. With small_cases() in this thread, sequentially: Oclgrind's checker of uninitialised memory crashes
/// in any other thread. Use: for (const std::string& fault : run_in_threads(4, [&](int number) -> std::string { ... }))
/// CHECK(fault == "");
template <class Body>
std::vector<std::string> run_in_threads(int count, Body&& body) {
    std::vector<std::string> faults(static_cast<std::size_t>(count));
    const auto run = [&](int number) {
        std::string& fault = faults[static_cast<std::size_t>(number)];
        try {
            fault = body(number);
        } catch (const std::exception& error) {
            fault = std::string("exception: ") + error.what();
        }
    };
    if (small_cases()) {
        for (int number = 0; number < count; ++number) run(number);
        return faults;
    }
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number) threads.emplace_back(run, number);
    for (std::thread& thread : threads) thread.join();
    return faults;
}

}  // namespace declivity::test
