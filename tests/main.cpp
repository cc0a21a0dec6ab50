// The one test program. Its exit code is 0 when cases ran and all passed, 77 (which ctest shows as Skipped) when they
// passed but some could not run, anything else for a failure. A run that checks nothing is a failure.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>
#include <tests/support/skip.hpp>

namespace {

constexpr int kSkipped = 77;

doctest::TestRunStats run_stats{};

/// Keeps the figures of the run, which doctest gives to listeners only.
struct StatsListener : doctest::IReporter {
    explicit StatsListener(const doctest::ContextOptions&) {}
    void test_run_end(const doctest::TestRunStats& stats) override { run_stats = stats; }

    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("stats", 0, StatsListener);

}  // namespace

int main(int argc, char** argv) {
    setenv("DECLIVITY_TUNING_FILE", "", 0);  // what was measured on this machine is not what is tested
    doctest::Context context(argc, argv);
    const int failed = context.run();
    if (failed != 0 || context.shouldExit()) return failed;
    const int skipped = declivity::test::skipped_count();
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
