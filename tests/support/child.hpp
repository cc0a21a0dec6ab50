// Runs one test case of this very program in a process of its own, under other environment variables.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace declivity::test {

struct ChildResult {
    int code = 0;        ///< exit code; 128 + number when a signal ended it
    std::string output;  ///< stdout and stderr
};

/// @param test_case its whole name; it carries doctest's skip(), so that it runs here only
/// @param environment values to set, or nothing for variables to remove
ChildResult run_child(const std::string& test_case,
                      const std::map<std::string, std::optional<std::string>>& environment);

/// The same, started only; `finish` waits. Several may run at once.
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
