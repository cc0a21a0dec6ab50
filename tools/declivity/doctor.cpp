#include "doctor.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/version.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor_jobs.hpp"
#include "doctor_process.hpp"

extern char** environ;  // NOLINT: of POSIX

namespace declivity::tools {
namespace {

using namespace doctor;

constexpr int kFormat = 1;  // version of the JSON format

struct Options {
    bool json = false, bench = false, all = false;
    std::string device, checks;
    std::vector<std::string> only;
    double silence = 600;
    std::size_t jobs = doctor::default_jobs();
    // Internal options of the child processes, and of tests.
    std::string section, fault;
    std::size_t first = 0;
    doctor::Shard shard;
    bool own_style = false;
};

/// Environment variables that may change the result.
Json settings() {
    Json found = Json::object();
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const std::size_t equals = text.find('=');
        for (const std::string_view prefix : {"DECLIVITY_", "OCL_", "POCL_", "RUSTICL_", "CL_CONFIG_"})
            if (equals != std::string_view::npos && text.starts_with(prefix))
                found[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
    return found;
}

bool is(const Json& finding, Status status) { return finding.at("status").get<std::string>() == name_of(status); }
std::string text_of(const Json& finding) { return finding.value("text", ""); }

/// Indents the continuation lines of a text.
std::string indented(std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) text.insert(at + 1, "      ");
    return text;
}

/// Prints the findings of a section.
/// @param all also the checks that are right
void print(const SectionReport& report, bool all) {
    std::string counts;
    for (const Status status : {Status::right, Status::wrong, Status::avoided, Status::skipped})
        if (const int count = report.count(status); count > 0)
            counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count,
                                  status == Status::wrong ? "WRONG" : name_of(status));
    fmt::print("{}: {}{}{} ({:.1f} s)\n", report.section->name, report.section->about, counts.empty() ? "" : "; ",
               counts, report.seconds);
    std::size_t width = 0;
    for (const Json& finding : report.findings)
        if (is(finding, Status::fact)) width = std::max(width, finding.at("name").get<std::string>().size());
    // Findings with the same text are printed once.
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> names_by_text;
    for (const Json& finding : report.findings)
        names_by_text[{finding.at("status").get<std::string>(), text_of(finding)}].push_back(
            finding.at("name").get<std::string>());
    for (const Json& json : report.findings) {
        const auto name = json.at("name").get<std::string>(), status = json.at("status").get<std::string>();
        if (is(json, Status::fact)) {
            fmt::print("  {:<{}}  {}\n", name, width, indented(text_of(json)));
        } else if (is(json, Status::right)) {
            if (all) fmt::print("  right    {}\n", name);
        } else {
            auto& names = names_by_text[{status, text_of(json)}];
            if (names.empty()) continue;
            fmt::print("  {:<8} {}: {}\n", is(json, Status::wrong) ? "WRONG" : status, name, indented(text_of(json)));
            constexpr std::size_t max_names = 8;
            const std::size_t shown = all ? names.size() : std::min(names.size(), max_names + 1);
            if (names.size() > 1)
                fmt::print("           the same: {}{}\n",
                           fmt::join(names.begin() + 1, names.begin() + static_cast<std::ptrdiff_t>(shown), "; "),
                           shown < names.size() ? fmt::format("; and {} more", names.size() - shown) : "");
            names.clear();
        }
    }
    if (!report.printed.empty()) {
        fmt::print("  the driver printed:\n");
        std::map<std::string, int> times;
        std::vector<std::string> lines;
        std::istringstream printed(report.printed);
        for (std::string line; std::getline(printed, line);)
            if (times[line]++ == 0) lines.push_back(line);
        for (const std::string& line : lines)
            fmt::print("      {}{}\n", line, times[line] > 1 ? fmt::format(" ({} times)", times[line]) : "");
    }
    std::fflush(stdout);
}

/// The overall result in a few sentences.
struct Verdict {
    int code = kExitPassed;
    std::string verdict, avoided, what_to_do;
};

Verdict judge(const std::vector<SectionReport>& reports, bool partial) {
    Verdict out;
    int right = 0, wrong = 0;
    std::vector<std::string> wrong_sections, avoided;
    for (const SectionReport& report : reports) {
        right += report.count(Status::right);
        const int wrong_count = report.count(Status::wrong);
        wrong += wrong_count;
        if (wrong_count > 0) wrong_sections.emplace_back(report.section->name);
        for (const Json& finding : report.findings)
            if (is(finding, Status::avoided)) avoided.push_back(finding.at("name").get<std::string>());
    }
    if (right + wrong == 0) out.verdict = "No check was run.";
    else if (wrong == 0)
        out.verdict = fmt::format("All {} checks{} are right: Declivity computes correctly on this device.", right,
                                  partial ? " that were asked for" : "");
    else
        out.verdict =
            fmt::format("{} of {} checks are wrong, in: {}. Do not trust what Declivity computes on this device.",
                        wrong, right + wrong, fmt::join(wrong_sections, ", "));
    constexpr std::size_t max_listed = 12;  // the sections above list the rest
    if (!avoided.empty())
        out.avoided = fmt::format(
            "Wrong but harmless, since the library avoids or does not use it: {}{}.",
            fmt::join(avoided.begin(),
                      avoided.begin() + static_cast<std::ptrdiff_t>(std::min(avoided.size(), max_listed)), "; "),
            avoided.size() > max_listed ? fmt::format("; and {} more", avoided.size() - max_listed) : "");
    if (wrong > 0) {
        out.code = kExitFailed;
        out.what_to_do =
            "What to do: run `declivity doctor --json > doctor.json` and send that file with your report to the "
            "authors of Declivity; it contains the device, the "
            "driver, the settings, and each check that failed. Until it is fixed, try a newer driver, another one "
            "(`declivity devices` lists the available ones, "
            "DECLIVITY_DEVICE selects one), or, where only strategies of `conv2d` or `matmul` are wrong, another "
            "strategy "
            "with DECLIVITY_CONV2D or DECLIVITY_MATMUL.";
    } else {
        out.what_to_do =
            "What to do: nothing. If something seems wrong nevertheless, or this device or driver is not in "
            "docs/reference/drivers.md, send the output of "
            "`declivity doctor --bench --json` to the authors of Declivity.";
    }
    return out;
}

/// The device as found by the section `device`; empty if that section crashed.
Json device_of(const SectionReport& report) {
    for (const Json& finding : report.findings)
        if (finding.contains("metrics") && finding["metrics"].contains("device")) return finding["metrics"]["device"];
    return Json::object();
}

void print_json(const std::vector<SectionReport>& reports, const Verdict& verdict) {
    Json out{{"declivity", kVersion},
             {"format", kFormat},
             {"device", device_of(reports.front())},
             {"settings", settings()},
             {"sections", Json::array()}};
    for (const SectionReport& report : reports) {
        Json entry{{"name", report.section->name}, {"seconds", std::round(report.seconds * 1000) / 1000}};
        for (const Status status : {Status::right, Status::wrong, Status::avoided, Status::skipped})
            entry[std::string(name_of(status))] = report.count(status);
        entry["findings"] = report.findings;
        if (!report.printed.empty()) entry["printed"] = report.printed;
        out["sections"].push_back(entry);
    }
    out["verdict"] = verdict.verdict;
    out["avoided"] = verdict.avoided;
    out["what to do"] = verdict.what_to_do;
    out["code"] = verdict.code;
    fmt::print("{}\n", out.dump(1, ' ', false, Json::error_handler_t::replace));
}

bool asked_for(const Section& section, const Options& options) {
    if (section.name == "device") return true;
    if (!options.only.empty()) return std::ranges::find(options.only, section.name) != options.only.end();
    return !section.bench || options.bench;
}

int run(const Options& options) {
    if (!options.section.empty()) {
        const auto found = std::ranges::find(sections(), options.section, &Section::name);
        if (found == sections().end())
            throw ValueError(fmt::format("doctor: expected a section, got \"{}\"", options.section));
        const std::size_t at = options.fault.find('@');  // such as "crash@atomics"
        return run_here(
            *found, options.first, options.shard, options.checks, options.own_style,
            at != std::string::npos && options.fault.substr(at + 1) == found->name ? options.fault.substr(0, at) : "");
    }
    // The child processes inherit the environment. This process makes no OpenCL calls.
    if (!options.device.empty()) setenv("DECLIVITY_DEVICE", options.device.c_str(), 1);
    std::vector<std::string> arguments{"doctor"};
    if (!options.checks.empty()) arguments.insert(arguments.end(), {"--checks", options.checks});
    if (!options.fault.empty()) arguments.insert(arguments.end(), {"--fault", options.fault});
    const std::chrono::milliseconds silence(static_cast<std::int64_t>(options.silence * 1000));
    std::vector<SectionReport> reports;
    const bool looks_on = isatty(STDERR_FILENO) != 0;
    if (!options.json) fmt::print("declivity doctor, version {}\n", kVersion);
    std::vector<const Section*> chosen;
    for (const Section& section : sections())
        if (asked_for(section, options)) chosen.push_back(&section);
    // On a terminal, show the current check as progress.
    const auto begins = [&](const Section& section, const std::string& check) {
        if (looks_on) fmt::print(stderr, "\r\033[K{}: {:.100}", section.name, check);
    };
    const auto ended = [&](SectionReport report) {
        if (looks_on) fmt::print(stderr, "\r\033[K");
        reports.push_back(std::move(report));
        if (!reports.back().no_device && !options.json) print(reports.back(), options.all);
        return !reports.back().no_device;
    };
    run_sections(chosen, arguments, silence, options.jobs, begins, ended);
    if (reports.front().no_device) {
        const std::string why = text_of(reports.front().findings.back());
        if (options.json)
            fmt::print("{}\n", Json{{"declivity", kVersion},
                                    {"format", kFormat},
                                    {"settings", settings()},
                                    {"verdict", why},
                                    {"code", kExitSkipped}}
                                   .dump(1, ' ', false, Json::error_handler_t::replace));
        std::fflush(stdout);
        fmt::print(stderr, "declivity: {}\n", why);
        return kExitSkipped;
    }
    const Verdict verdict = judge(reports, !options.only.empty() || !options.checks.empty());
    if (options.json) {
        print_json(reports, verdict);
    } else {
        fmt::print("\n{}\n", verdict.verdict);
        if (!verdict.avoided.empty()) fmt::print("{}\n", verdict.avoided);
        fmt::print("{}\n", verdict.what_to_do);
    }
    return verdict.code;
}

}  // namespace

std::function<int()> add_doctor(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    CLI::App* doctor = app.add_subcommand(
        "doctor",
        "examines a device and its driver; exit codes: 0 all right, 1 something is wrong, 2 nothing was examined");
    doctor->add_flag("--json", options->json, "print the report as a JSON object");
    doctor->add_flag("--bench", options->bench, "also measure rates, compared with the device's measured peak");
    doctor->add_flag("--all", options->all, "also list the checks that are right");
    doctor->add_option("--device", options->device, "device, in the format of DECLIVITY_DEVICE");
    std::vector<std::string> names;
    for (const Section& section : sections()) names.emplace_back(section.name);
    doctor
        ->add_option("--only", options->only,
                     fmt::format("only the section `device` and these sections, of: {}", fmt::join(names, ", ")))
        ->delimiter(',')
        ->check(CLI::IsMember(names));
    doctor->add_option("--checks", options->checks, "only checks whose names contain this text");
    doctor
        ->add_option("--silence", options->silence,
                     "seconds without output after which a section counts as hanging (600)")
        ->check(CLI::Range(0.001, 1e6));
    doctor->add_option("--jobs", options->jobs, "number of parallel processes; 1 runs the sections one after another")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    doctor->add_option("--section", options->section)->group("");
    doctor->add_option("--part", options->shard.index)->group("");
    doctor->add_option("--parts", options->shard.count)->group("");
    doctor->add_option("--first", options->first)->group("");
    doctor->add_flag("--own-form", options->own_style)->group("");
    doctor->add_option("--fault", options->fault)->group("");
    return [options] {
        try {
            return run(*options);
        } catch (const std::exception& error) {
            fmt::print(stderr, "declivity: {}\n", error.what());
            return kExitSkipped;
        }
    };
}

}  // namespace declivity::tools
