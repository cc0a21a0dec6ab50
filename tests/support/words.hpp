// What an error says.
#pragma once

#include <string>

namespace declivity::test {

/// The message of an exception of this type that a call throws.
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
