// Captures the text that a call writes to stderr.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <tests/support/temp_folder.hpp>

namespace declivity::test {

/// Redirects stderr to a file during its lifetime.
class CapturedStderr {
  public:
    CapturedStderr() {
        std::fflush(stderr);
        const int file = open((folder_ / "stderr").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
        if (file < 0) throw std::runtime_error("cannot write a file for stderr");
        before_ = dup(2);
        dup2(file, 2);
        close(file);
    }
    ~CapturedStderr() {
        std::fflush(stderr);
        dup2(before_, 2);
        close(before_);
    }
    CapturedStderr(const CapturedStderr&) = delete;
    CapturedStderr& operator=(const CapturedStderr&) = delete;
    /// The text so far.
    [[nodiscard]] std::string text() const {
        std::fflush(stderr);
        std::ifstream file(folder_ / "stderr");
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }

  private:
    TempFolder folder_;
    int before_ = -1;
};

inline std::string stderr_of(const std::function<void()>& call) {
    const CapturedStderr captured;
    call();
    return captured.text();
}

}  // namespace declivity::test
