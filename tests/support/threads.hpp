// Several threads doing something, whose exceptions are not lost.
#pragma once

#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace declivity::test {

/// Calls body(number) in `count` threads at once and waits. Gives what each of them says: "" when all is well, or the
/// message of an exception.
/// Use: for (const std::string& fault : in_threads(4, [&](int number) -> std::string { ... })) CHECK(fault == "");
template <class Body>
std::vector<std::string> in_threads(int count, Body&& body) {
    std::vector<std::string> faults(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number)
        threads.emplace_back([&faults, &body, number] {
            std::string& fault = faults[static_cast<std::size_t>(number)];
            try {
                fault = body(number);
            } catch (const std::exception& error) {
                fault = std::string("exception: ") + error.what();
            }
        });
    for (std::thread& thread : threads) thread.join();
    return faults;
}

}  // namespace declivity::test
