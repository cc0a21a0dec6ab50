// What a call that is refused says.
#pragma once

#include <functional>
#include <string>

namespace declivity::test {

/// What it says, without the place where.
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
