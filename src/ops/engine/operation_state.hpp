// Layer 2, private. An operation that waits (declivity/ops/operation.hpp).
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

/// Its outputs hold it until it is launched, and so does memory that it writes. It holds neither: outputs that nobody
/// holds are not wanted, and two operations may write what the other reads.
class Operation final : public PendingLaunch, public std::enable_shared_from_this<Operation> {
  public:
    Operation(std::string_view name, const std::optional<OperationCall>& call, BatchedLaunch together,
              OperationOperands operands);

    /// The values of its outputs; to be called once.
    OperationResults make_results();
    /// For others, whose calls are not to throw its errors without saying whose they are.
    void launch() override { (void)run(std::nullopt, {}, Needed::by_others); }
    [[nodiscard]] bool pending() const noexcept override { return !launched_.load(std::memory_order_acquire); }
    /// With the values' lock held, before it is launched.
    /// @param place where the first output goes, whose value the caller looks after; in memory of its own otherwise
    enum class Needed : bool { itself, by_others };
    EpilogueFused run(const std::optional<View>& place, const Epilogue& epilogue, Needed needed = Needed::itself);

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] const ScopePath& scope() const noexcept { return scope_; }
    [[nodiscard]] const Device& device() const noexcept { return device_; }
    /// Of what waits for company, how many bytes it reads.
    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] const std::vector<View>& reads() const noexcept { return reads_; }
    [[nodiscard]] const LazyArray& prologue() const noexcept { return prologue_; }
    [[nodiscard]] bool fuses_output_cast() const noexcept { return fuses_output_cast_; }
    [[nodiscard]] bool is_batched() const noexcept { return together_ != nullptr && pending(); }

  private:
    /// A view that does not keep its memory alive.
    struct WeakView {
        explicit WeakView(const View& of) : layout(of), memory(of.buffer.weak()) { layout.buffer = {}; }
        /// Without a buffer when the memory is gone.
        [[nodiscard]] View view() const;
        View layout;
        std::weak_ptr<declivity::detail::Block> memory;
    };

    [[nodiscard]] OperationViews views(const std::optional<View>& place, const Epilogue& epilogue) const;
    void done(const OperationViews& views, bool first_output_elsewhere);
    EpilogueFused run_alone(const std::optional<View>& place, const Epilogue& epilogue, Needed needed);
    [[nodiscard]] EpilogueFused run_upcast(const OperationViews& views) const;
    void run_batched(const std::optional<View>& place, InFlightLaunch& begun);
    [[nodiscard]] bool batches_with(const Operation& other) const;

    const std::string_view name_;
    const std::optional<OperationCall> call_;
    const BatchedLaunch together_;
    std::vector<View> reads_;  // until it is launched
    std::vector<WeakView> writes_;
    std::vector<OperationOutput> outputs_;
    LazyArray prologue_;  // as reads_
    const bool fuses_output_cast_;
    const bool upcasts_to_f32_;  // and there are halves
    const Device device_;
    const ScopePath scope_ = Scope::path();
    const std::uint64_t capture_ = Capture::current_number();
    std::vector<std::weak_ptr<LazyArrayState>> results_;
    std::atomic<bool> launched_{false};
};

}  // namespace declivity::ops
