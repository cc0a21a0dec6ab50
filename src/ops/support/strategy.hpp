// Layer 2, private. The ways to compute what an operator computes, behind one interface: an operator declares its
// strategies, strategy_choice.hpp chooses among them, measures and explains them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/device.hpp>

namespace declivity::ops {

/// A copy of a constant operand that a strategy can keep: how it is arranged, with all that it depends on beside the
/// operand, and its size in bytes.
struct PackedCopy {
    std::string kind;
    std::int64_t bytes;
    bool same_bits = false;  ///< as the strategy that serves without a copy gives
};

/// @tparam P the problem: plain data that says all that a choice may depend on beside the device. It has
///   - `operator==`, and `numbers()`: the same as an array, to find it again
///   - `with_constants(bool)`: the same where operands that may be constant are, or are not
///   - tuning_key(problem): under which name its measurements are kept
/// @tparam O the operands, checked already
template <class P, class O>
class Strategy {
  public:
    using Problem = P;
    using Operands = O;

    Strategy() = default;
    Strategy(const Strategy&) = delete;
    Strategy& operator=(const Strategy&) = delete;

    /// As the environment variable and tuning files name it: without spaces.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Whether run() computes it, with any variant. It may ask what only the driver can tell (has_fault): it is asked
    /// under no lock, and nothing is recorded meanwhile.
    [[nodiscard]] virtual bool is_applicable(const Problem&, const Device&) const = 0;
    /// Whether it is worth while where it can serve, by what is known of its costs: a rule of thumb, until something is
    /// measured. Asked as is_applicable is.
    [[nodiscard]] virtual bool is_profitable(const Problem&, const Device&) const { return true; }
    /// Whether it keeps what it makes of a constant operand of this problem, and so takes less than where that changes.
    [[nodiscard]] virtual bool keeps_constants(const Problem&) const { return false; }
    /// The copy that it keeps of a constant operand of this problem; none where it keeps none.
    [[nodiscard]] virtual std::optional<PackedCopy> packed_copy(const Problem&, const Device&,
                                                                std::string_view /*variant*/) const {
        return std::nullopt;
    }
    /// Parameters worth a measurement, by names of the strategy's own; the empty one stands for its own choice.
    [[nodiscard]] virtual std::vector<std::string> variants(const Problem&, const Device&) const { return {""}; }
    /// False: it would take minutes, and others have been measured.
    [[nodiscard]] virtual bool worth_measuring(const Problem&) const { return true; }
    /// Whether it applies an epilogue on the way, with the parameters of `variant`.
    [[nodiscard]] virtual bool fuses_epilogue(const Problem&, const Device&, std::string_view /*variant*/) const {
        return false;
    }
    /// Launches. A variant that is not one of the strategy's counts as the empty one.
    virtual void run(const Problem&, const Operands&, std::string_view variant = {}) const = 0;

  protected:
    // Trivial, so that the strategies serve while objects in static storage are destroyed.
    ~Strategy() = default;
};

/// What serves a problem.
template <class S>
struct StrategyChoice {
    const S* strategy;
    std::string variant;
    std::string_view reason;
    bool measured = false;
};

}  // namespace declivity::ops
