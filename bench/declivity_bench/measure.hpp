// Timing of calls that enqueue and return, beside peers in turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace declivity::bench {

/// One way to do a thing. `call` may return before the work is done; `wait` waits for all calls. A call that works on
/// one of several sets of operands is told its number, counting from 0.
struct Contender {
    std::string name;
    std::function<void(int)> call;
    std::function<void()> wait = [] {};
};

struct Times {
    double seconds = 0;  ///< of a call among many, median of the rounds
    double waited = 0;   ///< of a call that is waited for, median
};

struct Comparison {
    Times ours;
    std::vector<Times> peers = {};
    std::vector<double> ratios =
        {};  ///< for each peer: median of its time over ours, round by round; above 1 ours is faster
};

/// Times `ours` and each peer in turn (A B C A B C), for `rounds` rounds. In a round each makes as many calls as take
/// 10 ms at least, and waits once. Everything is called before the first round, so that nothing is compiled in it.
Comparison compare(const Contender& ours, const std::vector<Contender>& peers, int rounds = 7);

double median(std::vector<double> values);
/// exp of the mean of the logarithms; 0 of none.
double geometric_mean(const std::vector<double>& values);

}  // namespace declivity::bench
