#include "trace.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/version.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace declivity::detail {
namespace {

constexpr int kHost = 1;                          // process number of the host threads; devices have the next ones
constexpr int kComputeQueue = 1, kCopyQueue = 2;  // thread numbers of a device

/// Quotes and escapes a string; drivers and users choose arbitrary names.
std::string quote(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view name_of(SpanKind kind) {
    switch (kind) {
        case SpanKind::module:
            return "module";
        case SpanKind::function:
            return "function";
        case SpanKind::backward:
            return "backward";
        case SpanKind::operator_:
            return "operator";
        case SpanKind::wait:
            break;
    }
    return "wait";
}

/// A file that gets its name once it is complete.
class TraceFile {
  public:
    explicit TraceFile(const std::filesystem::path& path) : path_(path), temporary_(path) {
        temporary_ += fmt::format(".{:08x}.tmp", std::random_device{}());
        file_ = std::fopen(temporary_.c_str(), "wb");
        if (file_ == nullptr) throw IoError("open", temporary_.string(), errno);
    }
    ~TraceFile() {
        if (file_ != nullptr) std::fclose(file_);
        std::error_code ignored;
        if (!done_) std::filesystem::remove(temporary_, ignored);
    }
    TraceFile(const TraceFile&) = delete;
    TraceFile& operator=(const TraceFile&) = delete;

    /// Appends an event; `text` is its members.
    void event(const std::string& text) {
        put(first_ ? "\n{" : ",\n{");
        put(text);
        put("}");
        first_ = false;
    }
    void put(std::string_view text) {
        if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
            throw IoError("write", temporary_.string(), errno);
    }
    void finish() {
        const int status = std::fclose(std::exchange(file_, nullptr));
        if (status != 0) throw IoError("write", temporary_.string(), errno);
        std::error_code failed;
        std::filesystem::rename(temporary_, path_, failed);
        if (failed) throw IoError("rename '" + temporary_.string() + "' to", path_.string(), failed.value());
        done_ = true;
    }

  private:
    std::filesystem::path path_, temporary_;
    std::FILE* file_ = nullptr;
    bool first_ = true, done_ = false;
};

/// Converts times to those of the trace: microseconds since profiling began.
class Clock {
  public:
    explicit Clock(std::int64_t zero) : zero_(zero) {}
    [[nodiscard]] std::string at(std::int64_t host) const { return us(std::max<std::int64_t>(0, host - zero_)); }
    /// Formats as exact multiple of 1 ns.
    static std::string us(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  private:
    std::int64_t zero_;
};

void name(TraceFile& out, std::string_view record_name, int process, std::size_t thread, const std::string& text) {
    out.event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}})", record_name, process,
                          thread, quote(text)));
}

void write_commands(TraceFile& out, ProfilerState& profile, int process, const Clock& clock) {
    std::vector<std::string> names;
    for (const std::string& text : profile.names) names.push_back(quote(text));
    std::vector<const CommandRecord*> sorted;
    for (const CommandRecord& command : profile.commands) sorted.push_back(&command);
    std::ranges::stable_sort(sorted, {}, [](const CommandRecord* command_record) { return command_record->start; });
    for (const CommandRecord* command_record : sorted) {
        const std::int64_t start = profile.clock.to_host(command_record->start);
        std::string text = fmt::format(
            R"("ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"scope":{},"operator":{})",
            command_record->launch ? "kernel" : "copy", names[command_record->name], process,
            command_record->transfer ? kCopyQueue : kComputeQueue, clock.at(start),
            Clock::us(static_cast<std::int64_t>(command_record->end - command_record->start)),
            names[command_record->scope], names[command_record->operator_]);
        if (command_record->enqueued != 0) text += fmt::format(R"(,"enqueued":{})", clock.at(command_record->enqueued));
        if (command_record->flops > 0) text += fmt::format(R"(,"flops":{})", command_record->flops);
        if (command_record->bytes > 0) text += fmt::format(R"(,"bytes":{})", command_record->bytes);
        if (command_record->f64) text += R"(,"f64":true)";
        if (command_record->launch && command_record->global[0] != 0)
            text += fmt::format(R"(,"global":[{},{},{}])", command_record->global[0], command_record->global[1],
                                command_record->global[2]);
        if (command_record->local[0] != 0)
            text += fmt::format(R"(,"local":[{},{},{}])", command_record->local[0], command_record->local[1],
                                command_record->local[2]);
        out.event(text + "}");
    }
    for (const MemoryRecord& memory_record : profile.memory)
        out.event(fmt::format(R"("ph":"C","name":"memory","pid":{},"ts":{},"args":{{"in use":{},"cached":{}}})",
                              process, clock.at(memory_record.at), memory_record.in_use, memory_record.cached));
}

/// A marker across all tracks where the limit was reached, so that it is not mistaken for the end of the program.
void mark_truncation(TraceFile& out, std::string_view items, std::uint64_t dropped, std::size_t limit,
                     const std::string& when) {
    if (dropped > 0)
        out.event(
            fmt::format(R"("ph":"i","s":"g","name":"{} later {} dropped: the limit is {}","pid":{},"tid":0,"ts":{})",
                        dropped, items, limit, kHost, when));
}

/// Summary of the host spans written.
struct Spans {
    std::uint64_t dropped;
    std::int64_t last;  ///< end of the last one
};

Spans write_spans(TraceFile& out, std::int64_t begin, std::int64_t end, const Clock& clock) {
    std::vector<std::size_t> threads;
    std::int64_t last = begin;
    const std::uint64_t dropped =
        SpanRecorder::instance().visit(begin, end, [&](std::size_t thread, const SpanRecord& span) {
            if (std::ranges::find(threads, thread) == threads.end()) {
                threads.push_back(thread);
                name(out, "thread_name", kHost, thread, fmt::format("thread {}", thread));
            }
            last = std::max(last, span.end);
            out.event(fmt::format(R"("ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{})",
                                  name_of(span.kind),
                                  quote(span.kind == SpanKind::backward ? "backward of " + span.name : span.name),
                                  kHost, thread, clock.at(span.begin), Clock::us(span.end - span.begin)));
        });
    return {dropped, last};
}

void write_device(TraceFile& out, ProfilerState& profile, int process, const Clock& clock) {
    const DeviceInfo& info = profile.device.info;
    name(out, "process_name", process, 0, fmt::format("{} ({})", info.name, info.id));
    name(out, "thread_name", process, kComputeQueue, "compute queue");
    name(out, "thread_name", process, kCopyQueue, "transfer queue");
    write_commands(out, profile, process, clock);
    if (!profile.commands.empty())
        mark_truncation(out, "commands", profile.commands_dropped, profile.event_limit,
                        clock.at(profile.clock.to_host(profile.commands.back().end)));
    if (!profile.memory.empty())
        mark_truncation(out, "memory samples", profile.memory_dropped, profile.event_limit,
                        clock.at(profile.memory.back().at));
}

/// The description of a device in "otherData".
nlohmann::ordered_json device_summary(const TraceDevice& device, int process) {
    const DeviceInfo& info = device.profile->device.info;
    nlohmann::ordered_json out{
        {"pid", process}, {"id", info.id}, {"name", info.name}, {"platform", info.platform}, {"driver", info.driver}};
    if (device.ceilings.bytes > 0)
        out["ceilings"] = {{"flops_f32", device.ceilings.flops_f32},
                           {"flops_f64", device.ceilings.flops_f64},
                           {"bytes", device.ceilings.bytes}};
    return out;
}

}  // namespace

void check_trace_place(const std::filesystem::path& path) {
    std::error_code ignored;  // opening reports the error
    if (std::filesystem::is_directory(path, ignored)) throw IoError("write", path.string(), EISDIR);
    const TraceFile writability_probe(path);
}

void write_trace(const std::filesystem::path& path, std::span<const TraceDevice> devices) {
    std::int64_t begin = now_ns(), end = 0;
    for (const TraceDevice& device : devices) {
        begin = std::min(begin, device.profile->begin);
        end = std::max(end, device.profile->end != 0 ? device.profile->end : now_ns());
    }
    const Clock clock(begin);
    TraceFile out(path);
    out.put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    name(out, "process_name", kHost, 0, "host");
    const Spans spans = write_spans(out, begin, end, clock);
    auto device_summaries = nlohmann::ordered_json::array();
    std::uint64_t commands_dropped = 0, memory_dropped = 0;
    int process = kHost;
    for (const TraceDevice& device : devices) {
        ProfilerState& profile = *device.profile;
        const std::scoped_lock lock(profile.mutex);
        write_device(out, profile, ++process, clock);
        if (process == kHost + 1)
            mark_truncation(out, "spans", spans.dropped, profile.event_limit, clock.at(spans.last));
        commands_dropped += profile.commands_dropped;
        memory_dropped += profile.memory_dropped;
        device_summaries.push_back(device_summary(device, process));
    }
    const nlohmann::ordered_json about{
        {"declivity", kVersion},
        {"devices", device_summaries},
        {"left_out", {{"commands", commands_dropped}, {"spans", spans.dropped}, {"memory", memory_dropped}}}};
    out.put(
        fmt::format("\n],\"otherData\":{}}}\n", about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    out.finish();
}

}  // namespace declivity::detail
