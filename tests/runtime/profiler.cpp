// The profiler: counts and times of kernels and copies.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/profiler.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/event_clock.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>
#include <tests/runtime/test_kernels.hpp>

using namespace declivity;

namespace {

const Profiler::Row* row_of(const std::vector<Profiler::Row>& rows, const std::string& name) {
    const auto found = std::ranges::find(rows, name, &Profiler::Row::name);
    return found == rows.end() ? nullptr : &*found;
}

void count(const Device& device, int times) {
    const Buffer out(device, 64 * sizeof(int));
    const std::byte zero[4]{};
    fill(out, 0, out.size(), zero);
    for (int i = 0; i < times; ++i)
        launch(Kernel(device, {test::kFile, "count_up"}), {.global = 64}, {BufferArgument{out, 0, 4}, 1});
}

}  // namespace

TEST_CASE("profiler: counts launches and copies by name, the longest first") {
    const Device device = test::device();
    count(device, 3);  // before it begins
    const auto begin = std::chrono::steady_clock::now();
    Profiler profiler(device);
    count(device, 5);
    test::run_slow_kernel(device, test::on_oclgrind() ? 10000 : 3000000);
    const Buffer buffer(device, 1000);
    std::vector<std::byte> bytes(1000);
    upload(buffer, 0, bytes);
    upload(buffer, 0, bytes);
    copy(buffer, 0, buffer, 500, 100);
    read(buffer, 0, bytes);
    const auto rows = profiler.rows();
    for (const auto& [name, calls] :
         {std::pair{"count_up", 5}, std::pair{"slow_copy", 1}, std::pair{"copy to device", 2}, std::pair{"copy", 1},
          std::pair{"copy to host", 1}, std::pair{"fill", 2}}) {
        CAPTURE(name);
        const auto* row = row_of(rows, name);
        REQUIRE(row != nullptr);
        CHECK(row->calls == calls);
        CHECK(row->seconds >= row->longest);
        CHECK(row->longest >= 0);
    }
    CHECK(rows.size() == 6);
    CHECK(std::ranges::is_sorted(rows, std::greater<>(), &Profiler::Row::seconds));
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (test::has_event_clock()) {
        double all = 0;
        for (const auto& row : rows) all += row.seconds;
        CHECK(row_of(rows, "slow_copy")->seconds > 1e-4);
        CHECK(all < taken);  // one queue runs one command at a time
    }
    // rows() neither ends it nor counts twice.
    count(device, 2);
    CHECK(row_of(profiler.rows(), "count_up")->calls == 7);
    CHECK(row_of(profiler.rows(), "count_up")->calls == 7);
}

TEST_CASE("profiler: the table has a row per kernel, and shares that add up to 100 %") {
    const Device device = test::device();
    Profiler profiler(device);
    count(device, 4);
    test::run_slow_kernel(device, 1000);
    const std::string table = profiler.table();
    CAPTURE(table);
    CHECK(table.starts_with("kernel "));
    CHECK(std::ranges::count(table, '\n') == 4);
    CHECK(table.find("\ncount_up ") != std::string::npos);
    CHECK(table.find("\nslow_copy ") != std::string::npos);
    if (!test::has_event_clock()) return;
    double share = 0;
    for (std::size_t line = table.find('\n') + 1; line < table.size(); line = table.find('\n', line) + 1)
        share += std::stod(table.substr(table.rfind(' ', table.find('\n', line))));
    CHECK(share == doctest::Approx(100).epsilon(0.01));
}

TEST_CASE("profiler: ends with stop() or its destructor, and only one runs per device") {
    const Device device = test::device();
    {
        Profiler profiler(device);
        count(device, 1);
        CHECK_THROWS_AS(Profiler{device}, ValueError);
        const Device other = test::fresh_device();
        Profiler other_profiler(other);
        profiler.stop();
        profiler.stop();
        count(device, 1);
        CHECK(row_of(profiler.rows(), "count_up")->calls == 1);
        Profiler next(device);
        count(device, 3);
        CHECK(row_of(next.rows(), "count_up")->calls == 3);
        CHECK(other_profiler.rows().empty());
        CHECK(row_of(profiler.rows(), "count_up")->calls == 1);
    }
    CHECK_NOTHROW(Profiler{device});
}

TEST_CASE("profiler: many launches from several threads during rows()") {
    const Device device = test::fresh_device();
    Profiler profiler(device);
    const int calls_per_thread = test::small_cases() ? 20 : 3000;  // in total more than are kept unread
    const auto faults = test::run_in_threads(3, [&](int number) -> std::string {
        if (number < 2) count(device, calls_per_thread);
        else
            for (int i = 0; i < 3; ++i) (void)profiler.rows();
        return "";
    });
    for (const std::string& fault : faults) CHECK(fault == "");
    CHECK(row_of(profiler.rows(), "count_up")->calls == 2 * calls_per_thread);
}

TEST_CASE("profiler: a user's queue must be created with profiling") {
    const Device like = test::device();
    cl_command_queue queue = test::make_queue(interop::context(like), interop::device_id(like), 0);
    REQUIRE(queue != nullptr);
    const Device device = interop::wrap(interop::context(like), queue);
    clReleaseCommandQueue(queue);
    CHECK_THROWS_AS(Profiler{device}, Unsupported);
    count(device, 1);  // no profiling queue remains
    device.synchronize();
}
