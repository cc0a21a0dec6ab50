// Layer 2, private. Chooses among an operator's strategies, measures and explains them. The choice is the strategy
// named by the operator's environment variable if it is applicable; otherwise the one measured as the fastest;
// otherwise the first that is applicable and profitable; otherwise the last one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <declivity/ops/view.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "runtime/per_thread.hpp"
#include "runtime/capture.hpp"
#include "runtime/access.hpp"
#include "problem_fields.hpp"
#include "strategy.hpp"
#include "tuning_table.hpp"

namespace declivity::ops {

/// The strategies of an operator.
template <class S>
struct StrategySet {
    using Measurement = std::function<void(const typename S::Operands&, const View& result)>;

    const char* variable;    ///< environment variable that may name one of them
    std::string (*named)();  ///< its value; empty when unset
    std::span<const S* const>
        strategies;  ///< in order of preference; the last one is applicable to everything, and is the reference
    /// Calls the function with random operands of a problem, and with the output view among them.
    void (*with_operands)(const Device&, const typename S::Problem&, const Measurement&);
};

namespace strategies {

inline constexpr std::string_view kNamed = "set by the environment",
                                  kMeasured = "measured as the fastest on this device",
                                  kByRule = "heuristic: not measured for this shape on this device",
                                  kLast = "no other strategy is applicable";

/// Joins a name and a variant: "gemm 8x3", or "gemm" for the default variant.
std::string join_name(std::string_view name, std::string_view variant);
/// The inverse of join_name().
std::pair<std::string_view, std::string_view> split_name(std::string_view winner);

[[noreturn]] void refuse_name(const char* variable, std::span<const std::string_view> names, std::string_view got);

template <class S>
const S& named(const StrategySet<S>& set, std::string_view name) {
    for (const S* strategy : set.strategies)
        if (strategy->name() == name) return *strategy;
    std::vector<std::string_view> names;
    for (const S* strategy : set.strategies) names.push_back(strategy->name());
    refuse_name(set.variable, names, name);
}

template <class S>
StrategyChoice<S> by_rule(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device) {
    for (const S* strategy : set.strategies)
        if (strategy->is_applicable(problem, device) && strategy->is_profitable(problem, device))
            return {strategy, "", kByRule};
    return {set.strategies.back(), "", kLast};
}

/// Returns whether an applicable strategy is faster for constant operands; if not, constant operands are treated as
/// changing ones.
template <class S>
bool constants_matter(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device) {
    return std::ranges::any_of(set.strategies, [&](const S* strategy) {
        return strategy->keeps_constants(problem) && strategy->is_applicable(problem, device);
    });
}

/// Measures all strategies and stores the result. For a constant operand only the strategies that cache a packed copy
/// are measured, compared with the fastest of the others.
template <class S>
TuningEntry measure(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device) {
    TuningTable& table = TuningTable::of(device);
    const bool constant = constants_matter(set, problem, device);
    TuningEntry others;
    if (constant) {
        const auto changing = problem.with_constants(false);
        const auto found = table.find(tuning_key(changing));
        others = found ? *found : measure(set, changing, device);
    }
    TuningEntry entry;
    set.with_operands(device, problem, [&](const typename S::Operands& operands, const View& result) {
        std::vector<Trial> trials;
        for (const S* strategy : set.strategies) {
            if (!strategy->is_applicable(problem, device) || (!trials.empty() && !strategy->worth_measuring(problem)))
                continue;
            for (const std::string& variant : strategy->variants(problem, device)) {
                const std::string name = join_name(strategy->name(), variant);
                if (!constant || strategy->keeps_constants(problem) || name == others.winner ||
                    strategy == set.strategies.back())
                    trials.push_back({name, [&problem, &operands, strategy, variant] {
                                          strategy->run(problem, operands, variant);
                                      }});
            }
        }
        entry = ops::measure(result, trials);
    });
    entry.microseconds.insert(others.microseconds.begin(), others.microseconds.end());
    entry.rejected.insert(others.rejected.begin(), others.rejected.end());
    if (!entry.winner.empty()) table.put(tuning_key(problem), entry);
    return entry;
}

/// The strategy from the table, or from a measurement, if it is applicable.
template <class S>
std::optional<StrategyChoice<S>> by_table(const StrategySet<S>& set, const typename S::Problem& problem,
                                          const Device& device, const TuningTable& table, bool tunes) {
    std::optional<std::string> winner = table.winner(tuning_key(problem));
    if (!winner && tunes) winner = measure(set, problem, device).winner;
    if (!winner) return std::nullopt;
    const auto [name, variant] = split_name(*winner);
    for (const S* strategy : set.strategies)
        if (strategy->name() == name && strategy->is_applicable(problem, device))
            return StrategyChoice<S>{strategy, std::string(variant), kMeasured, true};
    return std::nullopt;
}

/// The choice if the environment names none.
template <class S>
StrategyChoice<S> look_up(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device,
                          const TuningTable& table, bool tunes) {
    const CapturePause aside;  // strategies may run driver probes, and the tuner launches them
    if (!tunes && table.generation() == 0) return by_rule(set, problem, device);
    const auto changing = problem.with_constants(false);
    if (!constants_matter(set, problem, device)) {
        auto choice = by_table(set, changing, device, table, tunes);
        return choice ? *std::move(choice) : by_rule(set, changing, device);
    }
    if (auto choice = by_table(set, problem, device, table, tunes)) return *std::move(choice);
    // The measurement for changing operands applies if the heuristic chooses the same strategy for both.
    StrategyChoice<S> choice = by_rule(set, problem, device);
    if (by_rule(set, changing, device).strategy == choice.strategy)
        if (auto other = by_table(set, changing, device, table, false)) return *std::move(other);
    return choice;
}

}  // namespace strategies

/// Chooses the strategy for a problem. Cached without a lock, as long as the table does not change.
/// @throws ValueError if the environment names an unknown strategy
template <class S>
StrategyChoice<S> choose_strategy(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device) {
    struct Key {
        typename S::Problem problem;
        const void* device;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            return hash_of_fields(key.problem, reinterpret_cast<std::uintptr_t>(key.device));
        }
    };
    struct CachedChoice {
        const TuningTable* table;
        std::uint64_t generation;
        StrategyChoice<S> choice;
    };
    constexpr std::size_t max_entries = 4096;
    if (const std::string forced = set.named(); !forced.empty())
        if (const S& strategy = strategies::named(set, forced); strategy.is_applicable(problem, device))
            return {&strategy, "", strategies::kNamed};
    declivity::detail::refuse_after_fork("tuning");
    const bool tunes = tunes_on_use();
    auto& all = declivity::detail::PerThread<std::unordered_map<Key, CachedChoice, Hash>, S>::get();
    const Key key{problem, &state_of(device)};
    if (const auto found = all.find(key); found != all.end()) {
        const CachedChoice& cached = found->second;
        if (cached.generation == cached.table->generation() && (cached.choice.measured || !tunes)) return cached.choice;
    }
    const TuningTable& table = TuningTable::of(device);
    CachedChoice entry{&table, table.generation(), {}};
    entry.choice = strategies::look_up(set, problem, device, table, tunes);
    if (all.size() >= max_entries) all.clear();
    return all.insert_or_assign(key, std::move(entry)).first->second.choice;
}

/// Measures a problem that is not in the table, or is and `remeasure` is set, and the same with constant operands if
/// that makes a difference.
/// @return a description of the results; empty if nothing was measured
template <class S>
std::string tune_strategies(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device,
                            bool remeasure) {
    std::string text;
    for (const bool constant : {false, true}) {
        const auto problem_variant = problem.with_constants(constant);
        const std::string key = tuning_key(problem_variant);
        if (constant && !strategies::constants_matter(set, problem_variant, device)) continue;
        if (remeasure || !TuningTable::of(device).find(key))
            text += key + "\n" + describe(strategies::measure(set, problem_variant, device));
    }
    return text;
}

/// Describes which strategy is chosen for a problem, why, and how the others compare; the same with constant operands
/// if that makes a difference.
template <class S>
std::string explain_strategies(const StrategySet<S>& set, const typename S::Problem& problem, const Device& device) {
    std::string text;
    for (const bool constant : {false, true}) {
        const auto problem_variant = problem.with_constants(constant);
        if (constant && !strategies::constants_matter(set, problem_variant, device)) continue;
        const std::string key = tuning_key(problem_variant);
        const StrategyChoice<S> choice = choose_strategy(set, problem_variant, device);
        text += fmt::format("{}\n  chosen: {} ({})\n", key,
                            strategies::join_name(choice.strategy->name(), choice.variant), choice.reason);
        const auto entry = TuningTable::of(device).find(key);
        if (entry) text += describe(*entry);
        for (const S* strategy : set.strategies) {
            if (!strategy->is_applicable(problem_variant, device))
                text += fmt::format("  {:<24} not applicable\n", strategy->name());
            else if (!entry)
                text += fmt::format(
                    "  {:<24} applicable{}\n", strategy->name(),
                    strategy->is_profitable(problem_variant, device) ? "" : ", not profitable by the heuristic");
        }
    }
    return text;
}

}  // namespace declivity::ops
