// The test program. Its exit code is 0 if cases ran and all passed, 77 (Skipped in ctest) if they passed but some could
// not run, anything else for a failure. A run without assertions is a failure.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>

namespace {

constexpr int kSkipped = 77;
constexpr std::string_view kNoDouble = "the device has no double precision";  // of the error message

doctest::TestRunStats run_stats{};
int without_double = 0;  // number of cases that failed only for this reason
std::mutex lock;         // several threads may make assertions

/// Keeps the run's statistics, which doctest passes only to listeners, and which cases ended because the device has no
/// f64.
struct Listener : doctest::IReporter {
    explicit Listener(const doctest::ContextOptions&) {}
    void test_run_end(const doctest::TestRunStats& stats) override { run_stats = stats; }
    void test_case_start(const doctest::TestCaseData& data) override {
        name_ = data.m_name;
        other_faults_ = 0;
        no_double_ = 0;
    }
    void log_assert(const doctest::AssertData& data) override {
        if (data.m_failed) count(data.m_threw ? std::string_view(data.m_exception.c_str()) : std::string_view());
    }
    void test_case_exception(const doctest::TestCaseException& data) override { count(data.error_string.c_str()); }
    void log_message(const doctest::MessageData& data) override {
        if (data.m_severity != doctest::assertType::is_warn) count("");
    }
    void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
        if (stats.failure_flags == 0 || other_faults_ != 0 || no_double_ == 0 || declivity::test::device().info().fp64)
            return;
        ++without_double;
        std::printf("SKIPPED: \"%s\", from where it takes f64: %s\n", name_, std::string(kNoDouble).c_str());
    }

    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}

  private:
    void count(std::string_view exception) {
        const std::scoped_lock lock_guard(lock);
        ++(exception.find(kNoDouble) == std::string_view::npos ? other_faults_ : no_double_);
    }
    const char* name_ = "";
    int other_faults_ = 0, no_double_ = 0;
};
REGISTER_LISTENER("stats", 0, Listener);

}  // namespace

int main(int argc, char** argv) {
    setenv("DECLIVITY_TUNING_FILE", "", 0);  // measurements on this machine must not affect the tests
    doctest::Context context(argc, argv);
    const int failed = context.run();
    if (context.shouldExit()) return failed;
    if (failed != 0 && static_cast<int>(run_stats.numTestCasesFailed) != without_double) return failed;
    const int skipped = declivity::test::skipped_count() + without_double;
    if (run_stats.numTestCasesPassingFilters == 0) {
        std::fputs("error: no test case ran: the filters match none, or each carries doctest's skip()\n", stderr);
        return 1;
    }
    if (run_stats.numAsserts == 0 && skipped == 0) {
        std::fputs("error: the test cases that ran checked nothing\n", stderr);
        return 1;
    }
    if (skipped != 0) {
        std::printf("SKIPPED: %d part(s) of this run; the rest passed\n", skipped);
        return kSkipped;
    }
    return 0;
}
