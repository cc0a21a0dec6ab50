#include "doctor_jobs.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace declivity::tools::doctor {
namespace {

/// Progress of one section through its parts.
struct Progress {
    std::vector<SectionReport> parts;
    std::size_t left = 0;
    std::optional<SectionReport> report;
};

/// State shared by the threads that wait for the child processes.
class Jobs {
  public:
    Jobs(const std::vector<const Section*>& sections, const std::vector<std::string>& arguments,
         std::chrono::milliseconds silence,
         const std::function<void(const Section& section, const std::string& check)>& begins,
         const std::function<bool(SectionReport report)>& ended)
        : sections_(sections),
          arguments_(arguments),
          silence_(silence),
          begins_(begins),
          ended_(ended),
          progress_(sections.size()) {}

    /// Runs the sections with these indices.
    /// @param jobs number of parallel processes
    void run(const std::vector<std::size_t>& indices, std::size_t jobs) {
        std::vector<Task> tasks;
        for (const std::size_t at : indices) {
            const std::size_t parts = jobs > 1 ? sections_[at]->parts : 1;
            progress_[at] = {.parts = std::vector<SectionReport>(parts), .left = parts, .report = {}};
            for (std::size_t shard = 0; shard < parts; ++shard) tasks.push_back({at, {shard, parts}});
        }
        // Longest first, so that no long task is left at the end while cores are idle.
        std::ranges::stable_sort(tasks, std::ranges::greater(), [](const Task& task) { return task.shard.count; });
        std::size_t next = 0;
        std::exception_ptr failure;
        const auto work = [&] {
            for (;;) {
                std::unique_lock lock(mutex_);
                if (next == tasks.size() || failure || stopped_) return;
                const Task task = tasks[next++];
                lock.unlock();
                try {
                    run(task);
                } catch (...) {
                    lock.lock();
                    failure = std::current_exception();
                }
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < std::min(jobs, tasks.size()); ++i) threads.emplace_back(work);
        work();
        for (std::thread& thread : threads) thread.join();
        if (failure) std::rethrow_exception(failure);
    }
    [[nodiscard]] bool stopped() const { return stopped_; }

  private:
    struct Task {
        std::size_t section;
        Shard shard;
    };

    void run(const Task& task) {
        const Section& section = *sections_[task.section];
        SectionReport report =
            run_in_process(section, task.shard, arguments_, silence_, [this, &section](const std::string& check) {
                const std::scoped_lock lock(mutex_);
                begins_(section, check);
            });
        const std::scoped_lock lock(mutex_);
        Progress& progress = progress_[task.section];
        progress.parts[task.shard.index] = std::move(report);
        if (--progress.left > 0) return;
        progress.report = merged(std::move(progress.parts));
        for (; !stopped_ && reported_ < progress_.size() && progress_[reported_].report; ++reported_)
            stopped_ = !ended_(std::move(*progress_[reported_].report));
    }

    const std::vector<const Section*>& sections_;
    const std::vector<std::string>& arguments_;
    const std::chrono::milliseconds silence_;
    const std::function<void(const Section& section, const std::string& check)>& begins_;
    const std::function<bool(SectionReport report)>& ended_;
    std::mutex mutex_;
    std::vector<Progress> progress_;
    std::size_t reported_ = 0;
    bool stopped_ = false;
};

}  // namespace

std::size_t default_jobs() {
    constexpr std::size_t kMaxJobs = 8;
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxJobs);
}

void run_sections(const std::vector<const Section*>& sections, const std::vector<std::string>& arguments,
                  std::chrono::milliseconds silence, std::size_t jobs,
                  const std::function<void(const Section& section, const std::string& check)>& begins,
                  const std::function<bool(SectionReport report)>& ended) {
    Jobs all(sections, arguments, silence, begins, ended);
    std::vector<std::size_t> exclusive, parallel, last;
    for (std::size_t at = 0; at < sections.size(); ++at)
        (sections[at]->bench ? last : sections[at]->exclusive ? exclusive : parallel).push_back(at);
    // Sequentially: the first one determines whether there is a device.
    for (const std::size_t at : exclusive)
        if (!all.stopped()) all.run({at}, 1);
    if (!all.stopped()) all.run(parallel, jobs);
    for (const std::size_t at : last)
        if (!all.stopped()) all.run({at}, 1);
}

}  // namespace declivity::tools::doctor
