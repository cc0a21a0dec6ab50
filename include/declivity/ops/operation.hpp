// Layer 2. Operations: launches that are deferred until their results are needed. conv2d, matmul, batch_norm and custom
// operators are made of them.
//
// An operation is data: the views that it reads and writes in place, its outputs, and its attributes. Its launch
// function captures nothing and receives its views at launch, so that it cannot use memory that is not declared:
//
//   struct TopK { std::int64_t k; int axis; };
//   EpilogueFused launch_topk(const OperationViews& views, const TopK& topk) {
//       launch_kernels(views.in(0), topk.k, topk.axis, views.out(0), views.out(1));
//       return EpilogueFused::no;
//   }
//   const OperationResults results = operation("topk", launch_topk, TopK{k, axis},
//                                              {.reads = {x}, .outputs = {{x.dtype, shape}, {DType::i64, shape}}});
//
// The engine handles the rest: allocation of the outputs, epilogue fusion, pending readers and writers of the operands,
// capture and replay, and the scopes of errors and profiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Tells whether a launch function applied the epilogue. If not, it runs as a separate kernel.
enum class EpilogueFused : bool { no, yes };

/// Views that a launch function receives, in the order of their declaration.
class DECLIVITY_API OperationViews {
  public:
    /// @param ins outlives the views
    OperationViews(std::span<const View> ins, std::vector<View> written, std::vector<View> outs, Epilogue epilogue,
                   LazyArray prologue);

    /// Input; without a buffer if none was given.
    [[nodiscard]] const View& in(std::size_t index) const;
    /// View written in place; without a buffer if none was given, or if its memory was freed.
    [[nodiscard]] const View& written(std::size_t index) const { return written_.at(index); }
    /// Output, dense; without a buffer if it is optional and unused.
    [[nodiscard]] const View& out(std::size_t index) const { return outs_.at(index); }
    /// Functions that follow the first output, over Expression::operator_result(); may be empty.
    [[nodiscard]] const Epilogue& epilogue() const noexcept { return epilogue_; }
    /// OperationOperands::prologue, for the launch function to evaluate as it reads it.
    [[nodiscard]] const LazyArray& prologue() const noexcept { return prologue_; }

  private:
    std::span<const View> ins_;
    std::vector<View> written_, outs_;
    Epilogue epilogue_;
    LazyArray prologue_;
};

struct OperationOutput {
    DType dtype;
    Shape shape;
    bool optional = false;  ///< true if the launch function can omit this output
};

constexpr std::size_t kMaxOutputs = 4;
constexpr std::size_t kMaxAttributeBytes = 160;

/// Operands of an operation, already validated. A View without a buffer stands for one that is absent.
struct OperationOperands {
    std::vector<View> reads;
    /// Views written in place; they may be read as well without being among the reads. Later readers and writers of
    /// that memory launch the operation first; the operation does not keep the memory alive.
    std::vector<View> writes = {};
    std::vector<OperationOutput> outputs;  ///< at most kMaxOutputs; empty if the operation only writes in place
    /// One more input, whose elements are pending; none if all are computed. The engine tracks what it depends on.
    LazyArray prologue = {};
    /// True if the launch function fuses the epilogue even if that changes the type; out(0) then has the new type.
    bool fuses_output_cast = false;
    /// True if the launch function computes f16 and bf16 in f32: it receives temporary upcast copies, and its result is
    /// rounded by a following kernel together with the epilogue (fuses_output_cast: by itself). Outputs declared f32
    /// stay f32.
    bool upcasts_to_f32 = false;
};

/// One array for each output; the others are none.
using OperationResults = std::array<LazyArray, kMaxOutputs>;

/// A launch function and its attributes, type-erased.
class OperationCall {
  public:
    template <class Attributes>
    using Launch = EpilogueFused (*)(const OperationViews&, const Attributes&);

    template <class Attributes>
    static OperationCall of(Launch<Attributes> launch, const Attributes& attributes) {
        static_assert(std::is_trivially_copyable_v<Attributes>,
                      "attributes of an operation must be trivially copyable: pass Views as reads or writes");
        static_assert(sizeof(Attributes) <= kMaxAttributeBytes && alignof(Attributes) <= alignof(std::max_align_t));
        OperationCall created;
        created.function_ = reinterpret_cast<Function>(launch);
        created.call_ = &call_as<Attributes>;
        created.size_ = sizeof attributes;
        std::memcpy(created.attributes_.data(), &attributes, sizeof attributes);
        return created;
    }

    EpilogueFused operator()(const OperationViews& views) const { return call_(function_, views, attributes_.data()); }
    /// Bytes of the attributes.
    [[nodiscard]] std::span<const std::byte> attributes() const noexcept { return {attributes_.data(), size_}; }

  private:
    using Function = void (*)();

    OperationCall() = default;
    template <class Attributes>
    static EpilogueFused call_as(Function function, const OperationViews& views, const void* attributes) {
        return reinterpret_cast<Launch<Attributes>>(function)(views, *static_cast<const Attributes*>(attributes));
    }

    Function function_ = nullptr;
    EpilogueFused (*call_)(Function, const OperationViews&, const void*) = nullptr;
    alignas(std::max_align_t) std::array<std::byte, kMaxAttributeBytes> attributes_{};
    std::size_t size_ = 0;
};

/// Overload for a launch with type-erased attributes.
DECLIVITY_API OperationResults operation(std::string_view name, const OperationCall& call, OperationOperands operands);

/// Defers a launch until one of the outputs, or memory that it writes, is needed. Launches immediately with
/// DECLIVITY_FUSION=0. Increments the version counter of what it writes (Buffer::bump_version); callers need not.
/// @param name for errors and profiles; outlives the operation
/// @param launch called once, unless it throws: the operation then stays pending, and nothing may have been written
/// @param attributes sizes, flags and numbers; trivially copyable, kMaxAttributeBytes at most
template <class Attributes>
OperationResults operation(std::string_view name, std::type_identity_t<OperationCall::Launch<Attributes>> launch,
                           const Attributes& attributes, OperationOperands operands) {
    return operation(name, OperationCall::of<Attributes>(launch, attributes), std::move(operands));
}
/// Launches several operations of one kind at once.
using BatchedLaunch = void (*)(std::span<const OperationViews>);

/// Defers an operation for a batched launch: when one is needed, all pending ones of this thread with the same launch
/// function, device and type are launched together; earlier if their inputs occupy much memory.
/// @param operands one output, whose type must match
DECLIVITY_API LazyArray deferred_batched(std::string_view name, BatchedLaunch launch, OperationOperands operands);

// ---- deprecated names of version 0.1

using EpilogueTaken [[deprecated("ops::EpilogueFused")]] = EpilogueFused;
using LaunchTogether [[deprecated("ops::BatchedLaunch")]] = BatchedLaunch;
[[deprecated("ops::deferred_batched")]] inline LazyArray operation_in_company(std::string_view name,
                                                                              BatchedLaunch launch,
                                                                              OperationOperands operands) {
    return deferred_batched(name, launch, std::move(operands));
}

/// @}

}  // namespace declivity::ops
