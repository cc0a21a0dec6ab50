#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

namespace declivity::bench {
namespace {

constexpr double kMinRound = 0.010;  // seconds

double seconds_of(const Contender& contender, int calls) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) contender.call(i);
    contender.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns when no thread of this process is running: worker threads of a peer spin for some milliseconds after its
/// last call and would take cores from the next contender.
void settle() {
    using namespace std::chrono_literals;
    constexpr auto step = 1ms, longest = 200ms;
    constexpr std::clock_t idle = CLOCKS_PER_SEC / 5000;  // a fifth of a step (1 ms)
    for (auto elapsed = 0ms; elapsed < longest; elapsed += step) {
        const std::clock_t before = std::clock();  // CPU time of all threads
        std::this_thread::sleep_for(step);
        if (std::clock() - before < idle) return;
    }
}

int calls_for_a_round(const Contender& contender) {
    seconds_of(contender, 1);
    for (int calls = 1;;) {
        // The shorter of two: a later call may compile another program than the first, such as one without a prologue.
        const double seconds = std::min(seconds_of(contender, calls), seconds_of(contender, calls));
        if (seconds >= kMinRound || calls >= 1 << 20) return calls;
        calls = std::max(calls + 1, static_cast<int>(calls * std::min(8.0, 1.2 * kMinRound / std::max(seconds, 1e-9))));
    }
}

double waited_seconds(const Contender& contender) {
    settle();
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) times.push_back(seconds_of(contender, 1));
    return median(times);
}

}  // namespace

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double geometric_mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

Comparison compare(const Contender& ours, const std::vector<Contender>& peers, int rounds) {
    std::vector<const Contender*> all{&ours};
    for (const Contender& peer : peers) all.push_back(&peer);
    std::vector<int> calls;
    for (const Contender* item : all) calls.push_back(calls_for_a_round(*item));
    std::vector<std::vector<double>> times(all.size());
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < all.size(); ++i) {
            settle();
            seconds_of(*all[i], calls[i]);  // warm-up: wakes the worker threads
            times[i].push_back(seconds_of(*all[i], calls[i]) / calls[i]);
        }
    Comparison result{.ours = {median(times[0]), waited_seconds(ours)}};
    for (std::size_t i = 1; i < all.size(); ++i) {
        result.peers.push_back({median(times[i]), waited_seconds(*all[i])});
        std::vector<double> ratios;
        for (std::size_t round = 0; round < times[0].size(); ++round)
            ratios.push_back(times[i][round] / times[0][round]);
        result.ratios.push_back(median(ratios));
    }
    return result;
}

}  // namespace declivity::bench
