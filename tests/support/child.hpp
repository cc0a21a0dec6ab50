// Runs one test case of this program in a child process with other environment variables.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace declivity::test {

/// The value of an environment variable; empty if it is unset.
inline std::string environment_variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

struct ChildResult {
    int code = 0;        ///< exit code; 128 + number if killed by a signal
    std::string output;  ///< stdout and stderr
};

/// @param test_case its complete name; it has doctest's skip(), so that it runs only here
/// @param environment values to set, or nullopt for variables to remove
ChildResult run_child(const std::string& test_case,
                      const std::map<std::string, std::optional<std::string>>& environment);

/// The same, started asynchronously; `finish` waits. Several may run at once.
class Child {
  public:
    Child(const std::string& test_case, const std::map<std::string, std::optional<std::string>>& environment);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ChildResult finish();

  private:
    int pid_ = -1;
    int out_ = -1;
};

}  // namespace declivity::test
