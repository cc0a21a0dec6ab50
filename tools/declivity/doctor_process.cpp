#include "doctor_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <runtime/environment.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#else
#error "declivity doctor starts processes by posix_spawn"
#endif
#if defined(__linux__)
#include <sys/prctl.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

extern char** environ;  // NOLINT: of POSIX

namespace declivity::tools::doctor {
namespace {

constexpr int kMaxDeaths = 20, kMaxHarmlessDeaths = 300, kMaxHangs = 2;  // per section
constexpr std::size_t kMaxPrinted = 16384;  // max bytes of the driver's output that are kept

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string own_program() {
#if defined(__APPLE__)
    std::uint32_t size = 0;
    _NSGetExecutablePath(nullptr, &size);
    std::string path(size, '\0');
    if (_NSGetExecutablePath(path.data(), &size) != 0)
        throw ValueError("doctor: expected to find the path of this program");
    path.resize(std::strlen(path.c_str()));
    return path;
#else
    return std::filesystem::read_symlink("/proc/self/exe").string();
#endif
}

[[noreturn]] void fail(const char* what, int error = errno) {
    throw std::system_error(error, std::generic_category(), std::string("doctor: ") + what);
}

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { reset(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    void reset(int fd = -1) {
        if (fd_ >= 0) close(fd_);
        fd_ = fd;
    }
    [[nodiscard]] int get() const { return fd_; }

  private:
    int fd_ = -1;
};

struct Pipe {
    Descriptor from, to;
    Pipe() {
        std::array<int, 2> ends{};
        if (pipe(ends.data()) != 0) fail("pipe");
        from.reset(ends[0]);
        to.reset(ends[1]);
        for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    }
};

/// A child process whose output is read.
class Child {
  public:
    explicit Child(const std::vector<std::string>& arguments) : lock_(starting()) {
        const std::string program = own_program();
        std::vector<std::string> words{program};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, out_.to.get(), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, error_.to.get(), STDERR_FILENO);
        const int status = posix_spawn(&id_, program.c_str(), &actions, nullptr, argv.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        if (status != 0) fail("posix_spawn", status);
        out_.to.reset();
        error_.to.reset();
        lock_.unlock();
    }
    ~Child() {
        if (id_ > 0) {
            kill(id_, SIGKILL);
            wait();
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Reads until the child ends.
    /// @return false if there was no output for the given time and the child was killed
    bool listen(const std::function<std::chrono::milliseconds()>& silence,
                const std::function<void(const std::string&)>& line, std::string& printed) {
        std::string rest;
        std::array<pollfd, 2> ends{pollfd{out_.from.get(), POLLIN, 0}, pollfd{error_.from.get(), POLLIN, 0}};
        while (ends[0].fd >= 0 || ends[1].fd >= 0) {
            const int ready = poll(ends.data(), ends.size(), static_cast<int>(silence().count()));
            if (ready < 0 && errno == EINTR) continue;
            if (ready < 0) fail("poll");
            if (ready == 0) {
                kill(id_, SIGKILL);
                return false;
            }
            for (std::size_t i = 0; i < ends.size(); ++i) {
                if (ends[i].fd < 0 || ends[i].revents == 0) continue;
                std::array<char, 4096> bytes{};
                const ssize_t count = ::read(ends[i].fd, bytes.data(), bytes.size());
                if (count < 0 && errno == EINTR) continue;
                if (count <= 0) {
                    ends[i].fd = -1;
                    continue;
                }
                std::string& into = i == 0 ? rest : printed;
                into.append(bytes.data(), static_cast<std::size_t>(count));
                if (i == 1 && printed.size() > kMaxPrinted) printed.resize(kMaxPrinted);
                for (std::size_t end = 0; i == 0 && (end = rest.find('\n')) != std::string::npos;
                     rest.erase(0, end + 1))
                    line(rest.substr(0, end));
            }
        }
        return true;
    }

    /// Describes how the child ended; empty for exit code 0.
    std::string wait() {
        int status = 0;
        while (waitpid(std::exchange(id_, -1), &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFSIGNALED(status))
            return fmt::format("the process was ended by signal {} ({})", WTERMSIG(status),
                               strsignal(WTERMSIG(status)));
        return WEXITSTATUS(status) == 0
                   ? ""
                   : fmt::format("the process ended by itself, with exit code {}", WEXITSTATUS(status));
    }

  private:
    static std::mutex& starting() {
        static std::mutex mutex;
        return mutex;
    }

    // No other child may start before the pipe ends are marked close-on-exec: it would keep them open.
    std::unique_lock<std::mutex> lock_;
    Pipe out_, error_;
    pid_t id_ = -1;
};

/// Result of one child.
struct ChildRun {
    Json under_way;       ///< the current check; null: none
    bool ended = false;   ///< it reported that it was done
    bool silent = false;  ///< it was killed after a time without output
    std::string ending;   ///< how it ended; empty: normally

    [[nodiscard]] bool in_other_style() const { return !under_way.is_null() && under_way.value("other_form", false); }
};

/// @param in_other_style time spent so far on kernels of the other style
ChildRun run_child(const std::vector<std::string>& arguments, std::chrono::milliseconds silence,
                   std::chrono::milliseconds& in_other_style,
                   const std::function<void(const std::string& check)>& begins, SectionReport& report) {
    using Clock = std::chrono::steady_clock;
    ChildRun run;
    Clock::time_point begun;
    Child child(arguments);
    const auto spent = [&] { return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun); };
    const auto line = [&](const std::string& text) {
        const Json parsed = Json::parse(text, nullptr, false);
        if (!parsed.is_object()) {
            report.printed += text + '\n';  // not a finding of ours
        } else if (parsed.contains("end")) {
            run.ended = true;
        } else if (parsed.contains("no device")) {
            report.no_device = true;
            report.findings.push_back(
                {{"name", report.section->name}, {"status", name_of(Status::wrong)}, {"text", parsed["no device"]}});
        } else if (parsed.contains("begin")) {
            run.under_way = parsed;
            begun = Clock::now();
            begins(parsed["begin"].get<std::string>());
        } else {
            report.findings.push_back(parsed);
            if (run.in_other_style()) in_other_style += spent();
            run.under_way = nullptr;
        }
    };
    const auto limit = [&] {
        const std::chrono::milliseconds left = std::max(silence - in_other_style, std::chrono::milliseconds(0));
        return run.in_other_style() ? std::min(silence / 4, left) : silence;
    };
    run.silent = !child.listen(limit, line, report.printed);
    run.ending = child.wait();
    if (run.silent)
        run.ending =
            fmt::format("no output for {} s; the process was killed", static_cast<double>(limit().count()) / 1000);
    if (!run.ended && run.ending.empty()) run.ending = "the process ended by itself, with exit code 0";
    return run;
}

/// The finding for a process that died.
Json finding_of(const ChildRun& run) {
    if (run.under_way.is_null())
        return {{"name", run.ended ? "the end of the process" : "the beginning of the process"},
                {"status", name_of(Status::wrong)},
                {"text", run.ending}};
    std::string text = run.ending;
    if (run.under_way["at_end"] != "") text += fmt::format(": {}", run.under_way["at_end"].get<std::string>());
    return {{"at", run.under_way["at"]},
            {"name", run.under_way["begin"]},
            {"status", run.under_way["otherwise"]},
            {"text", text}};
}

}  // namespace

int SectionReport::count(Status status) const {
    return static_cast<int>(std::ranges::count_if(
        findings, [&](const Json& finding) { return finding.at("status").get<std::string>() == name_of(status); }));
}

SectionReport run_in_process(const Section& section, Shard shard, const std::vector<std::string>& arguments,
                             std::chrono::milliseconds silence,
                             const std::function<void(const std::string& check)>& begins) {
    SectionReport report;
    report.section = &section;
    const auto begin = std::chrono::steady_clock::now();
    std::size_t first = 0;
    int deaths = 0, harmless_deaths = 0, hangs = 0;
    bool own_style = false;
    std::chrono::milliseconds in_other_style{0};
    for (;;) {
        std::vector<std::string> words = arguments;
        words.insert(words.end(), {"--section", std::string(section.name), "--first", std::to_string(first), "--part",
                                   std::to_string(shard.index), "--parts", std::to_string(shard.count)});
        if (own_style) words.emplace_back("--own-form");
        const ChildRun run = run_child(words, silence, in_other_style, begins, report);
        if (run.ending.empty()) break;
        const Json finding = finding_of(run);
        report.findings.push_back(finding);
        ++(finding.at("status") == name_of(Status::wrong) ? deaths : harmless_deaths);
        if (run.silent && run.in_other_style()) {
            own_style = true;
            report.findings.push_back(
                {{"name", "the remaining kernels of the other style"},
                 {"status", name_of(Status::skipped)},
                 {"text", "the driver takes too long to compile them, and the device does not use them"}});
        } else {
            hangs += run.silent ? 1 : 0;
        }
        if (run.under_way.is_null()) break;
        first = run.under_way["at"].get<std::size_t>() + 1;
        if (deaths < kMaxDeaths && harmless_deaths < kMaxHarmlessDeaths && hangs < kMaxHangs) continue;
        report.findings.push_back({{"name", "the rest of the section"},
                                   {"status", name_of(Status::skipped)},
                                   {"text", fmt::format("its process ended {} times", deaths + harmless_deaths)}});
        break;
    }
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report;
}

SectionReport merged(std::vector<SectionReport> parts) {
    SectionReport all = std::move(parts.front());
    for (auto shard = parts.begin() + 1; shard != parts.end(); ++shard) {
        // A finding about the whole section, which each process reports, is reported once.
        for (Json& finding : shard->findings)
            if (std::ranges::find(all.findings, finding) == all.findings.end())
                all.findings.push_back(std::move(finding));
        all.printed += shard->printed;
        all.seconds = std::max(all.seconds, shard->seconds);
    }
    const auto position_of = [](const Json& finding) {
        return finding.value("at", std::numeric_limits<std::size_t>::max());
    };
    std::ranges::stable_sort(all.findings, {}, position_of);
    for (Json& finding : all.findings) finding.erase("at");
    return all;
}

int run_here(const Section& section, std::size_t first, Shard shard, const std::string& only, bool own_style,
             const std::string& fault) {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // a hanging child must not outlive its parent
#endif
    // Variables that change computations or output are not part of the examination.
    for (const char* name : {"DECLIVITY_PROFILE", "DECLIVITY_LOG", "DECLIVITY_TUNE"}) unsetenv(name);
    setenv("DECLIVITY_TUNING_FILE", "", 1);
    detail::reload_environment();
    std::fflush(stdout);
    std::FILE* out = fdopen(dup(STDOUT_FILENO), "w");
    if (out == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail("standard output");
    const auto say = [&](const Json& line) {
        fmt::print(out, "{}\n", dump(line));
        std::fflush(out);
    };
    DoctorRun run(say, first, shard, section.name == "device" ? "" : only, own_style, fault);
    if (section.name == "device") try {
            (void)Device::best();
        } catch (const DeviceError& error) {
            if (error.code() == 0) {  // no call failed: there is no device, or DECLIVITY_DEVICE matches none
                say({{"no device", error.what()}});
                say({{"end", true}});
                return 0;
            }
        } catch (const ValueError& error) {  // an invalid environment variable
            say({{"no device", error.what()}});
            say({{"end", true}});
            return 0;
        }
    try {
        section.run(run);
    } catch (const std::exception& error) {
        say({{"at", 0},
             {"name", "the section as a whole"},
             {"status", name_of(Status::wrong)},
             {"text", error.what()}});
    }
    say({{"end", true}});
    return 0;
}

}  // namespace declivity::tools::doctor
