// Messages of errors.
#pragma once

#include <string>

namespace declivity::test {

/// The message of an exception of this type thrown by a call.
template <class E, class Call>
std::string words_of(Call&& call) {
    try {
        call();
    } catch (const E& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace declivity::test
