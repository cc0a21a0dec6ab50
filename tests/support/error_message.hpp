// Messages of exceptions thrown by calls.
#pragma once

#include <functional>
#include <string>

namespace declivity::test {

/// The complete message of an exception of this type thrown by a call.
template <class Error>
std::string error_message(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

/// The message without its context, which begins with " (in ".
template <class Error>
std::string error_without_context(const std::function<void()>& call) {
    const std::string message = error_message<Error>(call);
    return message.substr(0, message.find(" (in "));
}

}  // namespace declivity::test
