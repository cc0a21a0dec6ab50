#include "tests/support/child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace declivity::test {

Child::Child(const std::string& test_case, const std::map<std::string, std::optional<std::string>>& environment) {
    // All strings are made before the fork: between fork and exec only async-signal-safe calls are allowed.
    std::string filter = "--test-case=";
    for (const char c : test_case) {
        if (c == ',') filter += '\\';  // a comma separates filters
        filter += c;
    }
    std::vector<std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (!environment.contains(text.substr(0, text.find('=')))) variables.push_back(text);
    }
    for (const auto& [name, value] : environment)
        if (value) variables.push_back(name + "=" + *value);
    std::vector<std::string> argument_list{"declivity_tests", "--no-skip", "--no-colors", filter};
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> list;
        for (std::string& text : texts) list.push_back(text.data());
        list.push_back(nullptr);
        return list;
    };
    const auto arguments = pointers(argument_list), variable_list = pointers(variables);
    std::array<int, 2> pipe_ends{};
    if (pipe(pipe_ends.data()) != 0) throw std::runtime_error("pipe failed");
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
        dup2(pipe_ends[1], 1);
        dup2(pipe_ends[1], 2);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        execve("/proc/self/exe", arguments.data(), variable_list.data());
        _exit(127);
    }
    close(pipe_ends[1]);
    out_ = pipe_ends[0];
}

ChildResult Child::finish() {
    ChildResult result;
    std::array<char, 4096> bytes{};
    for (;;) {
        const ssize_t count = ::read(out_, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        result.output.append(bytes.data(), static_cast<std::size_t>(count));
    }
    close(out_);
    out_ = -1;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

Child::~Child() {
    if (pid_ >= 0) finish();
}

ChildResult run_child(const std::string& test_case,
                      const std::map<std::string, std::optional<std::string>>& environment) {
    return Child(test_case, environment).finish();
}

}  // namespace declivity::test
