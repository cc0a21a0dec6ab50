// Traces of Profiler::write_trace: commands, spans, memory, and clocks.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/scope.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/event_clock.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/trace.hpp>
#include <tests/runtime/test_kernels.hpp>

#include "runtime/opencl/device_clock.hpp"
#include "runtime/opencl/device_state.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

void count(const Buffer& out, int times) {
    for (int i = 0; i < times; ++i)
        launch(Kernel(out.device(), {kFile, "count_up"}), {.global = 64, .local = 32}, {BufferArgument{out, 0, 4}, 1});
}

Buffer zeros(const Device& device) {
    const Buffer out(device, 64 * sizeof(int));
    const std::byte zero[4]{};
    fill(out, 0, out.size(), zero);
    return out;
}

std::vector<std::string> names(const std::vector<Json>& list) {
    std::vector<std::string> out;
    for (const Json& item : list) out.push_back(item.at("name"));
    return out;
}

double us_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("trace: commands are on their queues, in order, with their attributes") {
    const Device device = fresh_device();
    const Buffer out = zeros(device), ahead(device, 1000, BufferUse::transfer);
    std::vector<std::byte> bytes(1000);
    Profiler profiler(device);
    {
        const Scope outer("Net"), inner("conv \"1\"\n\xff");
        const WorkScope work("counting", {.flops = 640, .bytes = 1280, .f64 = true});
        count(out, 5);
    }
    count(out, 2);
    upload_async(ahead, 0, bytes).wait();
    read(out, 0, std::span(bytes).first(64 * sizeof(int)));
    const Json trace = trace_of(profiler);
    const auto all = commands(trace);
    std::map<int, double> ends;
    for (const Json& item : all) {
        CAPTURE(item);
        CHECK(item.at("dur") >= 0);
        CHECK(item.at("ts") >= ends[item.at("tid")] - 1e-3);  // a queue runs in order
        ends[item.at("tid")] = item.at("ts").get<double>() + item.at("dur").get<double>();
    }
    const auto kernels = events(trace, "X", "kernel");
    REQUIRE(kernels.size() == 7);
    double flops = 0, bytes_moved = 0;
    for (std::size_t i = 0; i < 7; ++i) {
        const Json& args = kernels[i].at("args");
        CHECK(kernels[i].at("name") == "count_up");
        CHECK(kernels[i].at("tid") == 1);
        CHECK(args.at("global") == Json{64, 1, 1});
        CHECK(args.at("local") == Json{32, 1, 1});
        CHECK(args.at("scope") == (i < 5 ? "Net/conv \"1\"\n\xEF\xBF\xBD" : ""));  // invalid UTF-8: replaced
        CHECK(args.at("operator") == (i < 5 ? "counting" : ""));
        CHECK(args.contains("f64") == (i < 5));
        flops += args.value("flops", 0.0);
        bytes_moved += args.value("bytes", 0.0);
    }
    CHECK(flops == doctest::Approx(640));
    CHECK(bytes_moved == doctest::Approx(1280));
    const auto copies = events(trace, "X", "copy");
    REQUIRE(copies.size() == 2);
    for (const Json& copy : copies) {
        const bool to_device = copy.at("name") == "copy to device";
        CHECK(copy.at("tid") == (to_device ? 2 : 1));
        CHECK(copy.at("args").at("bytes") == (to_device ? 1000 : 256));
    }
    // Every track in use has a name.
    std::set<std::string> track_names;
    for (const Json& event : events(trace, "M")) track_names.insert(event.at("args").at("name"));
    for (const std::string name : {"host", "compute queue", "transfer queue", "thread 1"})
        CHECK(std::ranges::any_of(track_names, [&](const auto& is) { return is.starts_with(name.substr(0, 6)); }));
    CHECK(trace.at("otherData").at("devices").at(0).at("name") == device.name());
    CHECK(trace.at("otherData").at("left_out").at("commands") == 0);
}

TEST_CASE("trace: an operator's work is attributed to the kernel that took its time, and nested scopes count once") {
    const Device device = test::device();
    const Buffer out = zeros(device);
    const Kernel slow(device, {kFile, "slow_copy"}), fast(device, {kFile, "count_up"});
    Profiler profiler(device);
    const int steps = on_oclgrind() ? 100 : 3000000, runs = 3;
    for (int i = 0; i < runs; ++i) {
        const WorkScope work("outer", {.flops = 100, .bytes = 10});
        count(out, 2);
        const WorkScope within("within", {.flops = 7777, .bytes = 7777});
        const Buffer in = zeros(device);
        launch(slow, {.global = 64}, {steps, BufferArgument{in, 0, 4}, BufferArgument{out, 0, 4}});
    }
    count(out, 4);
    // The longest kernel is taken from the trace: under load any of them may be interrupted.
    struct Share {
        double time = 0, flops = 0, bytes = 0;
    };
    std::map<std::string, Share> sums;
    const auto all = commands(trace_of(profiler));
    constexpr std::size_t commands_per_run = 4;  // two of count_up, the fill, slow_copy
    REQUIRE(all.size() == runs * commands_per_run + 4);
    for (std::size_t run = 0; run < runs; ++run) {
        std::map<std::string, Share> kernels;
        for (std::size_t i = run * commands_per_run; i < (run + 1) * commands_per_run; ++i) {
            Share& kernel = kernels[all[i].at("name")];
            kernel.time += all[i].at("dur").get<double>();
            kernel.flops += all[i].at("args").value("flops", 0.0);
            kernel.bytes += all[i].at("args").value("bytes", 0.0);
        }
        REQUIRE(kernels.size() == 3);
        REQUIRE(kernels.contains("slow_copy"));
        constexpr double rounding = 2e-3;  // rounding of times, which a trace has in nanoseconds
        const double longest =
            std::ranges::max_element(kernels, {}, [](const auto& kernel) { return kernel.second.time; })->second.time;
        int credited = 0;
        for (const auto& [name, kernel] : kernels) {
            CAPTURE(name);
            if (kernel.flops > 0) {
                ++credited;
                CHECK(kernel.time >= longest - rounding);
                CHECK(kernel.flops == doctest::Approx(100));
                CHECK(kernel.bytes == doctest::Approx(10));
            }
            sums[name].flops += kernel.flops;
            sums[name].bytes += kernel.bytes;
        }
        CHECK(credited == 1);
    }
    double flops = 0;
    for (const auto& row : profiler.rows()) {
        flops += row.flops;
        CHECK(row.flops == doctest::Approx(sums[row.name].flops));
        CHECK(row.bytes == doctest::Approx(sums[row.name].bytes));
    }
    CHECK(flops == doctest::Approx(100 * runs));
}

TEST_CASE("trace: spans of scopes, functions and operators nest in each thread") {
    const Device device = test::device();
    CHECK_FALSE(profiling());
    { const Span before("before"); }
    Profiler profiler(device);
    CHECK(profiling());
    const auto faults = run_in_threads(3, [&](int number) -> std::string {
        for (int i = 0; i < 20; ++i) {
            const Scope scope(number == 0 ? "Zero" : "Net");
            const Span function("conv2d");
            const Buffer out = zeros(device);
            const WorkScope work("counting", {});
            count(out, 1);
            { const Span wait("wait", SpanKind::wait); }
            const Scope deeper("deeper");
        }
        const Span back("conv2d", SpanKind::backward);
        return "";
    });
    for (const std::string& fault : faults) CHECK(fault == "");
    profiler.stop();
    CHECK_FALSE(profiling());
    { const Span after("after"); }
    const Json trace = trace_of(profiler);
    const auto spans = events(trace, "X");
    std::vector<Json> host;
    std::ranges::copy_if(spans, std::back_inserter(host), [](const Json& json) { return json.at("pid") == 1; });
    CHECK(nesting_fault(host) == "");
    std::map<std::string, int> span_counts;
    for (const Json& span : host)
        ++span_counts[span.at("cat").get<std::string>() + " " + span.at("name").get<std::string>()];
    CHECK(span_counts == std::map<std::string, int>{{"module Zero", 20},
                                                    {"module Net", 40},
                                                    {"module deeper", 60},
                                                    {"function conv2d", 60},
                                                    {"operator counting", 60},
                                                    {"wait wait", 60},
                                                    {"backward backward of conv2d", 3}});
    std::set<int> threads;
    for (const Json& span : host) threads.insert(span.at("tid").get<int>());
    CHECK(threads.size() == (small_cases() ? 1 : 3));
    // The checker itself detects overlapping spans.
    host[1]["dur"] = host[0].at("dur").get<double>() + 1e6;
    CHECK(nesting_fault(host) != "");
}

TEST_CASE("trace: commands are between their call and the end of the wait, in host time") {
    if (!has_event_clock()) return;
    const Device device = fresh_device();
    const Buffer out = zeros(device);
    count(out, 1);
    device.synchronize();
    const auto earliest = std::chrono::steady_clock::now();
    Profiler profiler(device);
    const double begin = us_since(earliest);  // the zero of the trace is in [0, begin] of this clock
    std::vector<double> wait_times;
    for (int i = 0; i < 20; ++i) {
        count(out, 1);
        device.synchronize();
        wait_times.push_back(us_since(earliest));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto kernels = events(trace_of(profiler), "X", "kernel");
    REQUIRE(kernels.size() == wait_times.size());
    constexpr double slack = 500;  // us: the clocks are correlated, not synchronised
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const double ts = kernels[i].at("ts"), end = ts + kernels[i].at("dur").get<double>();
        CHECK(ts >= kernels[i].at("args").at("enqueued").get<double>() - slack);
        CHECK(end <= wait_times[i] + slack);
        CHECK(end >= wait_times[i] - begin - (i > 0 ? wait_times[i] - wait_times[i - 1] : wait_times[i]) - slack);
    }
}

TEST_CASE("trace: a device clock with another origin and a faster rate is followed") {
    detail::DeviceClock clock(state_of(test::device()).context.device, test::device().info().version);
    CHECK(clock.to_host(12345) == 12345);  // nothing is known yet
    constexpr std::int64_t kEpoch = 700'000'000'000;
    const auto device_time = [](std::int64_t host) {
        return static_cast<std::uint64_t>(static_cast<double>(host - kEpoch) * (1 + 50e-6));
    };
    for (int i = 0; i < 20000; ++i) {  // ten seconds, in which the clocks drift by half a millisecond
        const std::int64_t queued = kEpoch + 1'000'000 + i * 500'000LL;
        clock.add_queued_command(device_time(queued), queued - 700 - i % 5000, queued + 300 + i % 7000);
    }
    std::int64_t last = 0;
    for (int i = 0; i < 20000; i += 100) {
        const std::int64_t host = kEpoch + 1'000'000 + i * 500'000LL, converted = clock.to_host(device_time(host));
        CHECK(std::abs(converted - host) < 40'000);  // of 500'000 of drift
        CHECK(converted >= last);
        last = converted;
    }
}

TEST_CASE("trace: a device timer is used if the events agree with it") {
    constexpr std::int64_t kClockOffset = 5'000'000'000;
    const auto device_time = [](std::int64_t host) { return static_cast<std::uint64_t>(host + kClockOffset); };
    detail::DeviceClock clock(state_of(test::device()).context.device, test::device().info().version), other = clock;
    for (std::int64_t host = 1'000'000'000; host < 10'000'000'000; host += 500'000'000)
        for (auto* item : {&clock, &other}) {
            item->add_sample(device_time(host) + static_cast<std::uint64_t>(host / 1000), host - 100,
                             host + 100);                 // with drift
            item->add_sample(1, host, host + 2'000'000);  // too late an answer to be useful
        }
    CHECK(clock.to_host(device_time(3'250'000'000) + 3'250'000) == 3'250'000'000);
    CHECK(clock.to_host(device_time(9'500'000'000) + 9'500'000) == 9'500'000'000);
    // Events from another clock.
    other.add_queued_command(42, 9'600'000'000, 9'600'000'020);
    CHECK(other.to_host(42) == 9'600'000'010);
    clock.add_queued_command(device_time(9'600'000'000) + 9'600'000, 9'599'900'000, 9'600'100'000);
    CHECK(clock.to_host(device_time(3'250'000'000) + 3'250'000) == 3'250'000'000);
}

TEST_CASE("trace: memory of the pool as a counter") {
    const Device device = fresh_device();
    Profiler profiler(device);
    constexpr std::size_t kLarge = 1 << 20;
    const Buffer out = zeros(device);
    {
        const Buffer large(device, kLarge);
        count(out, 1);
    }
    count(out, 1);
    std::vector<double> in_use;
    const auto counters = events(trace_of(profiler), "C");
    for (const Json& counter : counters) {
        CHECK(counter.at("name") == "memory");
        CHECK(counter.at("args").at("cached") >= 0);
        in_use.push_back(counter.at("args").at("in use"));
    }
    REQUIRE(in_use.size() == 3);
    CHECK(in_use[1] - in_use[0] == kLarge);
    CHECK(in_use[2] == in_use[0]);
    CHECK(std::ranges::is_sorted(counters, {}, [](const Json& json) { return json.at("ts").get<double>(); }));
}

TEST_CASE("trace: excess events are dropped, and their number is reported") {
    const Device device = test::device();
    const Buffer out = zeros(device);
    Profiler profiler(device, {.max_events = 10});
    for (int i = 0; i < 25; ++i) {
        const Span span("one");
        count(out, 1);
    }
    const Json trace = trace_of(profiler);
    CHECK(commands(trace).size() == 10);
    CHECK(events(trace, "X", "function").size() == 10);
    CHECK(trace.at("otherData").at("left_out").at("commands") == 15);
    CHECK(trace.at("otherData").at("left_out").at("spans") == 15);
    const auto marks = names(events(trace, "i"));
    REQUIRE(marks.size() == 2);
    CHECK(marks[0] == "15 later commands dropped: the limit is 10");
    CHECK(profiler.rows().at(0).calls == 25);
}

TEST_CASE("trace: a file is written completely, or an error says why and no file remains") {
    const Device device = test::device();
    Profiler profiler(device);
    const TempFolder folder;
    CHECK_THROWS_AS(profiler.write_trace(folder / "missing/trace.json"), IoError);
    std::filesystem::create_directory(folder / "taken");
    CHECK_THROWS_AS(profiler.write_trace(folder / "taken"), IoError);
    CHECK(folder.names() == std::vector<std::string>{"taken"});
    put_file(folder / "trace.json", bytes_of("older"));
    profiler.write_trace(folder / "trace.json");
    CHECK(read_json(folder / "trace.json").contains("traceEvents"));
    CHECK(folder.names().size() == 2);
}
