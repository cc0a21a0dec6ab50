#include <declivity/optim/schedule.hpp>

#include <cmath>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::optim {

Schedule step_decay(std::int64_t every, double factor) {
    if (every < 1) throw ValueError(fmt::format("step_decay: expected a period of at least 1, got {}", every));
    return [=](std::int64_t t) { return std::pow(factor, static_cast<double>(t / every)); };
}

Schedule cosine(std::int64_t total, double min_factor) {
    if (total < 1) throw ValueError(fmt::format("cosine: expected a total of at least 1, got {}", total));
    return [=](std::int64_t t) {
        const double part = t >= total ? 1.0 : static_cast<double>(t) / static_cast<double>(total);
        return min_factor + (1 - min_factor) * 0.5 * (1 + std::cos(3.14159265358979323846 * part));
    };
}

Schedule linear_warm_up(std::int64_t warm_up, Schedule after) {
    if (warm_up < 1) throw ValueError(fmt::format("linear_warm_up: expected at least 1 step, got {}", warm_up));
    return [=](std::int64_t t) {
        if (t < warm_up) return static_cast<double>(t + 1) / static_cast<double>(warm_up);
        return after ? after(t - warm_up) : 1.0;
    };
}

void apply(const Schedule& schedule, std::int64_t t, Optimizer& optimizer) {
    if (!schedule) throw ValueError("apply: expected a schedule, got an empty function");
    for (std::size_t group = 0; group < optimizer.groups(); ++group)
        optimizer.set_learning_rate(optimizer.initial_learning_rate(group) * schedule(t), group);
}

}  // namespace declivity::optim
