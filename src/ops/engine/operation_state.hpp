// Layer 2, private. A pending operation (declivity/ops/operation.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/scope.hpp>

#include "runtime/capture.hpp"
#include "lazy_array.hpp"

namespace declivity::ops {

class InFlightLaunch;

/// Owned by its outputs until it is launched, and by the memory that it writes. It owns neither: unreferenced outputs
/// are not computed, and two operations may each write what the other reads.
class Operation final : public PendingLaunch, public std::enable_shared_from_this<Operation> {
  public:
    Operation(std::string_view name, const std::optional<OperationCall>& call, BatchedLaunch batched_launch,
              OperationOperands operands);

    /// Creates the lazy arrays of its outputs; to be called once.
    OperationResults make_results();
    /// Launches it on behalf of another call, whose errors must name this operation.
    void launch() override { (void)run(std::nullopt, {}, LaunchReason::dependency); }
    [[nodiscard]] bool pending() const noexcept override { return !launched_.load(std::memory_order_acquire); }
    /// Launches it; the launch lock must be held.
    /// @param destination where the first output is stored, which the caller assigns to its value; otherwise new memory
    enum class LaunchReason : bool { direct, dependency };
    EpilogueFused run(const std::optional<View>& destination, const Epilogue& epilogue,
                      LaunchReason reason = LaunchReason::direct);

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] const ScopePath& scope() const noexcept { return scope_; }
    [[nodiscard]] const Device& device() const noexcept { return device_; }
    /// Bytes that a batched operation reads.
    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] const std::vector<View>& reads() const noexcept { return reads_; }
    [[nodiscard]] const LazyArray& prologue() const noexcept { return prologue_; }
    [[nodiscard]] bool fuses_output_cast() const noexcept { return fuses_output_cast_; }
    [[nodiscard]] bool is_batched() const noexcept { return batched_launch_ != nullptr && pending(); }

  private:
    /// A view that does not own its memory.
    struct WeakView {
        explicit WeakView(const View& of) : layout(of), memory(weak_of(of.buffer)) { layout.buffer = {}; }
        /// Returns the view, without a buffer if the memory was released.
        [[nodiscard]] View view() const;
        View layout;
        std::weak_ptr<declivity::detail::Block> memory;
    };

    [[nodiscard]] OperationViews views(const std::optional<View>& destination, const Epilogue& epilogue) const;
    void done(const OperationViews& views, bool first_output_elsewhere);
    EpilogueFused run_alone(const std::optional<View>& destination, const Epilogue& epilogue, LaunchReason reason);
    [[nodiscard]] EpilogueFused run_upcast(const OperationViews& views) const;
    void run_batched(const std::optional<View>& destination, InFlightLaunch& in_flight);
    [[nodiscard]] bool batches_with(const Operation& other) const;

    const std::string_view name_;
    const std::optional<OperationCall> call_;
    const BatchedLaunch batched_launch_;
    std::vector<View> reads_;  // until it is launched
    std::vector<WeakView> writes_;
    std::vector<OperationOutput> outputs_;
    LazyArray prologue_;  // as reads_
    const bool fuses_output_cast_;
    const bool upcasts_to_f32_;  // and some operand is a 16-bit float
    const Device device_;
    const ScopePath scope_ = Scope::path();
    const std::uint64_t capture_ = Capture::current_number();
    std::vector<std::weak_ptr<LazyArrayState>> results_;
    std::atomic<bool> launched_{false};
};

}  // namespace declivity::ops
