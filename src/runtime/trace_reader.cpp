#include "trace_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <functional>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "json.hpp"

namespace declivity::detail {
namespace {

using nlohmann::json;

constexpr double kMax = 1e15;  // microseconds: thirty years
// Limit of values stored in memory, for one event and for "otherData".
constexpr std::size_t kMaxOfEvent = std::size_t{1} << 16, kMaxOfDevices = std::size_t{1} << 20;

/// Handles the events of the JSON parser. Only the current event and "otherData" become trees, so that memory does not
/// grow with the number of events.
class Reader : public nlohmann::json_sax<json> {
  public:
    Reader(const std::string& path, TraceKey grouping) : path_(path), grouping_(grouping), in_(path, std::ios::binary) {
        if (!in_) throw IoError("open", path, errno != 0 ? errno : ENOENT);
    }

    TraceSummary read() {
        try {
            json::sax_parse(in_, this);
        } catch (const std::ios_base::failure&) {  // a folder, a bad disk
            throw IoError("read", path_, errno != 0 ? errno : EIO);
        }
        if (!has_events_) fault("expected an object with \"traceEvents\", got none");
        describe(about_);
        return std::move(summary_);
    }

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(number_integer_t value) override { return put(value); }
    bool number_unsigned(number_unsigned_t value) override { return put(value); }
    bool number_float(number_float_t value, const string_t&) override { return put(value); }
    bool string(string_t& value) override { return put(std::move(value)); }
    bool binary(binary_t&) override { return put(nullptr); }
    bool key(string_t& name) override {
        if (depth_ == 1) {
            section_ = name == "traceEvents" ? Section::events : name == "otherData" ? Section::about : Section::other;
            has_events_ = has_events_ || section_ == Section::events;
        } else if (!open_.empty()) {
            key_ = std::move(name);
        }
        return true;
    }
    bool start_object(std::size_t) override { return start(json::object()); }
    bool start_array(std::size_t) override { return start(json::array()); }
    bool end_object() override { return end(); }
    bool end_array() override { return end(); }
    bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
        constexpr int kOutOfRange = 406;  // number out of the range of double
        if (error.id == kOutOfRange) fault("expected a trace in JSON, got a number that is out of range");
        throw FormatError(path_, position, "expected a trace in JSON, got invalid or truncated JSON");
    }

  private:
    enum class Section : std::uint8_t { other, events, about };

    [[noreturn]] void fault(const std::string& what) {
        in_.clear();
        const auto at = in_.tellg();
        throw FormatError(path_, at < 0 ? 0 : static_cast<std::uint64_t>(at), what);
    }

    /// Adds a value if a tree is being built, or starts a tree: an event is an object within "traceEvents".
    bool put(json value) {
        const bool structured = value.is_structured();
        if (open_.empty()) {
            const bool event = section_ == Section::events && depth_ == 2 && value.is_object();
            if (!event && !(section_ == Section::about && depth_ == 1)) return true;
            tree_ = std::move(value);
            values_ = 0;
            if (structured) open_.push_back(&tree_);
            else about_ = std::move(tree_);
            return true;
        }
        if (++values_ > (section_ == Section::events ? kMaxOfEvent : kMaxOfDevices))
            fault(fmt::format("expected at most {} values in one event and {} in \"otherData\", got more", kMaxOfEvent,
                              kMaxOfDevices));
        json& into = *open_.back();
        if (into.is_array()) into.push_back(std::move(value));
        else into[key_] = std::move(value);
        if (structured) open_.push_back(into.is_array() ? &into.back() : &into[key_]);
        return true;
    }
    bool start(json value) {
        if (depth_ == 0 && !value.is_object()) fault("expected an object with \"traceEvents\", got a list");
        put(std::move(value));
        if (++depth_ > kMaxJsonDepth) fault(fmt::format("the JSON is nested deeper than {} levels", kMaxJsonDepth));
        return true;
    }
    bool end() {
        --depth_;
        if (open_.empty()) return true;
        open_.pop_back();
        if (!open_.empty()) return true;
        if (section_ == Section::events) add(tree_);
        else about_ = std::move(tree_);
        tree_ = nullptr;
        return true;
    }

    double number(const json& of, const char* name, double otherwise = NAN) {
        const auto found = of.find(name);
        if (found == of.end()) {
            if (std::isnan(otherwise))
                fault(fmt::format("expected an event with a number \"{}\", got one without", name));
            return otherwise;
        }
        const double value = found->is_number() ? found->get<double>() : NAN;
        if (!(value >= 0) || !std::isfinite(value))
            fault(fmt::format("expected a number of at least 0 as \"{}\", got {}", name, brief(*found)));
        return value;
    }

    std::string text(const json& of, const char* name) {
        const auto found = of.find(name);
        if (found == of.end()) return "";
        if (!found->is_string()) fault(fmt::format("expected a string as \"{}\", got {}", name, brief(*found)));
        return found->get<std::string>();
    }

    static std::string brief(const json& value) {
        return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40);
    }

    double time(const json& event, const char* name) {
        const double us = number(event, name);
        if (us > kMax) fault(fmt::format("expected \"{}\" in microseconds, got {}", name, us));
        return us * 1e-6;
    }

    /// Adds an event to the summary: commands of devices are counted, all others are skipped.
    void add(const json& event) {
        if (text(event, "ph") != "X") return;
        const std::string category = text(event, "cat");
        if (category != "kernel" && category != "copy") return;
        const json args = event.contains("args") ? event["args"] : json::object();
        if (!args.is_object()) fault(fmt::format("expected an object as \"args\", got {}", brief(args)));
        const double start = time(event, "ts"), duration = time(event, "dur");
        const std::string name = text(event, "name"), function = text(args, "operator"), module = text(args, "scope");
        const auto [device, fresh] = devices_.try_emplace(number(event, "pid"));
        TracedDevice& on = device->second;
        on.first = fresh ? start : std::min(on.first, start);
        on.last = std::max(on.last, start + duration);
        TraceSum& sum = on.groups[grouping_ == TraceKey::kernel   ? name
                                  : grouping_ == TraceKey::module ? (module.empty() ? "(no module)" : module)
                                  : function.empty()              ? name
                                                                  : function];
        ++sum.calls;
        sum.seconds += duration;
        const auto f64 = args.find("f64");
        (f64 != args.end() && *f64 == true ? sum.flops_f64 : sum.flops_f32) += number(args, "flops", 0);
        sum.bytes += number(args, "bytes", 0);
    }

    void describe(const json& about) {
        if (!about.is_object()) fault(fmt::format("expected an object as \"otherData\", got {}", brief(about)));
        summary_.version = text(about, "declivity");
        if (const auto dropped = about.find("left_out"); dropped != about.end() && dropped->is_object())
            summary_.commands_dropped = static_cast<std::uint64_t>(std::min(number(*dropped, "commands", 0), kMax));
        if (const auto list = about.find("devices"); list != about.end() && list->is_array())
            for (const json& item : *list)
                if (item.is_object())
                    if (const auto device = devices_.find(number(item, "pid", 0)); device != devices_.end())
                        describe(device->second, item);
        for (auto& [pid, device] : devices_) summary_.devices.push_back(std::move(device));
    }

    void describe(TracedDevice& device, const json& from) {
        device.id = text(from, "id");
        device.name = text(from, "name");
        device.platform = text(from, "platform");
        device.driver = text(from, "driver");
        if (const auto ceilings = from.find("ceilings"); ceilings != from.end() && ceilings->is_object())
            device.ceilings = {.flops_f32 = number(*ceilings, "flops_f32", 0),
                               .flops_f64 = number(*ceilings, "flops_f64", 0),
                               .bytes = number(*ceilings, "bytes", 0)};
    }

    std::string path_;
    TraceKey grouping_;
    std::ifstream in_;
    int depth_ = 0;
    Section section_ = Section::other;
    bool has_events_ = false;
    json tree_, about_ = json::object();
    std::vector<json*> open_;  // open containers of tree_
    std::string key_;
    std::size_t values_ = 0;
    std::map<double, TracedDevice> devices_;  // by process number
    TraceSummary summary_;
};

}  // namespace

TraceSummary read_trace(const std::string& path, TraceKey grouping) { return Reader(path, grouping).read(); }

}  // namespace declivity::detail
