// The error message of a refused call.
#pragma once

#include <functional>
#include <string>

namespace declivity::test {

/// The message, without its context.
template <class Error>
std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        const std::string what = error.what();
        return what.substr(0, what.find(" (in "));
    }
    return "no such error";
}

}  // namespace declivity::test
