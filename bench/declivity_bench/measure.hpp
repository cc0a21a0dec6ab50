// Timing of asynchronous calls, interleaved with peer libraries.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace declivity::bench {

/// One implementation to be timed. `call` may return before the work is done; `wait` synchronises with all calls. A
/// call that uses one of several sets of operands gets its index, counting from 0.
struct Contender {
    std::string name;
    std::function<void(int)> call;
    std::function<void()> wait = [] {};
};

struct Times {
    double seconds = 0;  ///< per call in a batch of calls, median of the rounds
    double waited = 0;   ///< of a single call with wait, median
};

struct Comparison {
    Times ours;
    std::vector<Times> peers = {};
    std::vector<double> ratios =
        {};  ///< for each peer: median over the rounds of its time / our time; above 1 Declivity is faster
};

/// Times `ours` and each peer interleaved (A B C A B C), for `rounds` rounds. A round makes enough calls to take 10 ms
/// and waits once. Everything is called before the first round, so that no round includes compilation.
Comparison compare(const Contender& ours, const std::vector<Contender>& peers, int rounds = 7);

double median(std::vector<double> values);
/// exp of the mean of the logarithms; 0 if empty.
double geometric_mean(const std::vector<double>& values);

}  // namespace declivity::bench
