#include "trace_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <functional>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace declivity::detail {
namespace {

using nlohmann::json;

constexpr int kDeepest = 8;     // of the values that are looked at
constexpr double kMost = 1e15;  // microseconds: thirty years

class Reader {
  public:
    Reader(const std::string& path, TraceBy by) : path_(path), by_(by), in_(path, std::ios::binary) {
        if (!in_) throw IoError("open", path, errno != 0 ? errno : ENOENT);
    }

    TraceSummary read() {
        json root;
        try {
            // Events are looked at as they come, and not kept.
            root = json::parse(
                in_, [this](int depth, json::parse_event_t event, json& value) { return keep(depth, event, value); });
        } catch (const json::parse_error& error) {
            throw FormatError(path_, error.byte, "wants a trace in JSON, got text that is none, or ends too soon");
        } catch (const std::ios_base::failure&) {  // a folder, a bad disk
            throw IoError("read", path_, errno != 0 ? errno : EIO);
        } catch (const json::exception&) {
            fault("wants a trace in JSON, got a number that is too large");
        }
        if (!root.is_object() || !root.contains("traceEvents")) fault("wants an object with \"traceEvents\", got none");
        describe(root.contains("otherData") ? root["otherData"] : json::object());
        return std::move(summary_);
    }

  private:
    [[noreturn]] void fault(const std::string& what) {
        in_.clear();
        const auto at = in_.tellg();
        throw FormatError(path_, at < 0 ? 0 : static_cast<std::uint64_t>(at), what);
    }

    bool keep(int depth, json::parse_event_t event, json& value) {
        using Event = json::parse_event_t;
        if (event == Event::key && depth == 1) of_events_ = value == "traceEvents";
        if ((event == Event::object_start || event == Event::array_start) && depth > kDeepest) return false;
        if (event != Event::object_end || depth != 2 || !of_events_) return true;
        add(value);
        return false;
    }

    double number(const json& of, const char* name, double otherwise = NAN) {
        const auto found = of.find(name);
        if (found == of.end()) {
            if (std::isnan(otherwise)) fault(fmt::format("wants an event with a number \"{}\", got one without", name));
            return otherwise;
        }
        const double value = found->is_number() ? found->get<double>() : NAN;
        if (!(value >= 0) || !std::isfinite(value))
            fault(fmt::format("wants a number of at least 0 as \"{}\", got {}", name, brief(*found)));
        return value;
    }

    std::string text(const json& of, const char* name) {
        const auto found = of.find(name);
        if (found == of.end()) return "";
        if (!found->is_string()) fault(fmt::format("wants a text as \"{}\", got {}", name, brief(*found)));
        return found->get<std::string>();
    }

    static std::string brief(const json& value) {
        return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40);
    }

    double time(const json& event, const char* name) {
        const double us = number(event, name);
        if (us > kMost) fault(fmt::format("wants \"{}\" in microseconds, got {}", name, us));
        return us * 1e-6;
    }

    /// One event: commands of devices count, all else passes.
    void add(const json& event) {
        if (text(event, "ph") != "X") return;
        const std::string category = text(event, "cat");
        if (category != "kernel" && category != "copy") return;
        const json args = event.contains("args") ? event["args"] : json::object();
        if (!args.is_object()) fault(fmt::format("wants an object as \"args\", got {}", brief(args)));
        const double start = time(event, "ts"), duration = time(event, "dur");
        const std::string name = text(event, "name"), function = text(args, "operator"), module = text(args, "scope");
        const auto [device, fresh] = devices_.try_emplace(number(event, "pid"));
        TracedDevice& on = device->second;
        on.first = fresh ? start : std::min(on.first, start);
        on.last = std::max(on.last, start + duration);
        TraceSum& sum = on.groups[by_ == TraceBy::kernel   ? name
                                  : by_ == TraceBy::module ? (module.empty() ? "(no module)" : module)
                                  : function.empty()       ? name
                                                           : function];
        ++sum.calls;
        sum.seconds += duration;
        const auto f64 = args.find("f64");
        (f64 != args.end() && *f64 == true ? sum.flops_f64 : sum.flops_f32) += number(args, "flops", 0);
        sum.bytes += number(args, "bytes", 0);
    }

    void describe(const json& about) {
        if (!about.is_object()) fault(fmt::format("wants an object as \"otherData\", got {}", brief(about)));
        summary_.version = text(about, "declivity");
        if (const auto left_out = about.find("left_out"); left_out != about.end() && left_out->is_object())
            summary_.commands_left_out = static_cast<std::uint64_t>(std::min(number(*left_out, "commands", 0), kMost));
        const auto list = about.find("devices");
        for (auto& [pid, device] : devices_) {
            if (list != about.end() && list->is_array())
                for (const json& one : *list)
                    if (one.is_object() && number(one, "pid", 0) == pid) describe(device, one);
            summary_.devices.push_back(std::move(device));
        }
    }

    void describe(TracedDevice& device, const json& from) {
        device.id = text(from, "id");
        device.name = text(from, "name");
        device.platform = text(from, "platform");
        device.driver = text(from, "driver");
        if (const auto most = from.find("ceilings"); most != from.end() && most->is_object())
            device.ceilings = {.flops_f32 = number(*most, "flops_f32", 0),
                               .flops_f64 = number(*most, "flops_f64", 0),
                               .bytes = number(*most, "bytes", 0)};
    }

    std::string path_;
    TraceBy by_;
    std::ifstream in_;
    bool of_events_ = false;
    std::map<double, TracedDevice> devices_;  // by process number
    TraceSummary summary_;
};

}  // namespace

TraceSummary read_trace(const std::string& path, TraceBy by) { return Reader(path, by).read(); }

}  // namespace declivity::detail
