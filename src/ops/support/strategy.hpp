// Layer 2, private. Interface of strategies, the alternative implementations of an operator: the operator declares
// them, strategy_choice.hpp chooses among them, measures and explains them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/device.hpp>

namespace declivity::ops {

/// A packed copy of a constant operand that a strategy caches: its layout, with all that it depends on besides the
/// operand, and its size in bytes.
struct PackedCopy {
    std::string kind;
    std::int64_t bytes;
    bool same_bits = false;  ///< same result bits as the strategy without a copy
};

/// @tparam P the problem: plain data with everything that a choice may depend on besides the device. It has
/// - `operator==`, and `visit_fields()`, from which its hash and key are made (problem_fields.hpp)
/// - `with_constants(bool)`: the same problem with or without constant operands
/// - tuning_key(problem): the key of its measurements
/// @tparam O the operands, already checked
template <class P, class O>
class Strategy {
  public:
    using Problem = P;
    using Operands = O;

    Strategy() = default;
    Strategy(const Strategy&) = delete;
    Strategy& operator=(const Strategy&) = delete;

    /// Name in the environment variable and in tuning files, without spaces.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Returns whether run() can compute the problem, with any variant. It may run driver probes (has_fault): it is
    /// called without locks, and outside of captures.
    [[nodiscard]] virtual bool is_applicable(const Problem&, const Device&) const = 0;
    /// Heuristic: returns whether it is expected to be fast where it is applicable, used until measurements exist.
    /// Called like is_applicable.
    [[nodiscard]] virtual bool is_profitable(const Problem&, const Device&) const { return true; }
    /// Returns whether it caches a packed copy of a constant operand, and is therefore faster for constant operands.
    [[nodiscard]] virtual bool keeps_constants(const Problem&) const { return false; }
    /// The packed copy that it caches of a constant operand; empty if it caches none.
    [[nodiscard]] virtual std::optional<PackedCopy> packed_copy(const Problem&, const Device&,
                                                                std::string_view /*variant*/) const {
        return std::nullopt;
    }
    /// Variants worth measuring, named by the strategy; the empty name is its default.
    [[nodiscard]] virtual std::vector<std::string> variants(const Problem&, const Device&) const { return {""}; }
    /// False: it would take minutes, and other strategies have been measured.
    [[nodiscard]] virtual bool worth_measuring(const Problem&) const { return true; }
    /// Returns whether it fuses an epilogue, with the parameters of `variant`.
    [[nodiscard]] virtual bool fuses_epilogue(const Problem&, const Device&, std::string_view /*variant*/) const {
        return false;
    }
    /// True if rounding errors are relative to the norm of the result instead of to each element, as after transforms
    /// whose terms cancel (Winograd).
    [[nodiscard]] virtual bool error_is_relative_to_norm() const { return false; }
    /// Launches. An unknown variant is treated as the empty one.
    virtual void run(const Problem&, const Operands&, std::string_view variant = {}) const = 0;

  protected:
    // Trivial, so that strategies can be used while static objects are destroyed.
    ~Strategy() = default;
};

/// The strategy chosen for a problem.
template <class S>
struct StrategyChoice {
    const S* strategy;
    std::string variant;
    std::string_view reason;
    bool measured = false;
};

}  // namespace declivity::ops
