// Layer 2. Operations: launches that wait until somebody needs what they compute. What conv2d, matmul, batch_norm and
// operators of one's own are made of.
//
// An operation is data: what it reads, what it writes in place, its outputs, and its attributes. Its launch function
// captures nothing and gets its views when it is launched, so that it cannot use memory that is not declared:
//
//   struct TopK { std::int64_t k; int axis; };
//   EpilogueFused launch_topk(const OperationViews& views, const TopK& topk) {
//       launch_kernels(views.in(0), topk.k, topk.axis, views.out(0), views.out(1));
//       return EpilogueFused::no;
//   }
//   const OperationResults results = operation("topk", launch_topk, TopK{k, axis},
//                                              {.reads = {x}, .outputs = {{x.dtype, shape}, {DType::i64, shape}}});
//
// What needs no word of an author's: memory of the outputs, elementwise functions behind the first of them, who may
// write the operands meanwhile, recorded steps, scopes of errors and profiles.
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

/// Whether a launch function applied the epilogue. If not, it is applied behind it.
enum class EpilogueFused : bool { no, yes };

/// What an operation is launched with. Views stand in the order in which they were declared.
class DECLIVITY_API OperationViews {
  public:
    /// @param ins outlives the views
    OperationViews(std::span<const View> ins, std::vector<View> written, std::vector<View> outs, Epilogue epilogue,
                   LazyArray prologue);

    /// What is read; without a buffer where none was given.
    [[nodiscard]] const View& in(std::size_t index) const;
    /// What is written in place; without a buffer where none was given, and where nobody has that memory any more.
    [[nodiscard]] const View& written(std::size_t index) const { return written_.at(index); }
    /// Dense; without a buffer where the output is optional and nobody holds it.
    [[nodiscard]] const View& out(std::size_t index) const { return outs_.at(index); }
    /// Functions that follow the first output, over Expression::operator_result(); empty where there are none.
    [[nodiscard]] const Epilogue& epilogue() const noexcept { return epilogue_; }
    /// OperationOperands::prologue, for the launch function to compute as it reads it.
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
    bool optional = false;  ///< whether the launch function can do without it
};

constexpr std::size_t kMaxOutputs = 4;
constexpr std::size_t kMaxAttributeBytes = 128;

/// The memory that an operation uses, checked already. A View without a buffer stands for one that is not given.
struct OperationOperands {
    std::vector<View> reads;
    /// In place; what stands there may be read, too, and is not among the reads then. Who reads or writes that memory
    /// later launches the operation first; it does not keep the memory alive.
    std::vector<View> writes = {};
    std::vector<OperationOutput> outputs;  ///< kMaxOutputs at most; there are none where it only writes in place
    /// One more that is read, whose elements wait; none where all are there. What they wait for is looked after.
    LazyArray prologue = {};
    /// Whether the launch function takes up what follows even where that gives another type: out(0) has that type then.
    bool fuses_output_cast = false;
    /// Whether the launch function computes in f32 what is f16 or bf16: it gets copies for its launch alone, and what
    /// it gives is rounded behind it, with what follows (fuses_output_cast: by itself). Outputs declared f32 stay so.
    bool upcasts_to_f32 = false;
};

/// One value for each output; the others are none.
using OperationResults = std::array<LazyArray, kMaxOutputs>;

/// A launch function and its attributes, whatever their type.
class OperationCall {
  public:
    template <class Attributes>
    using Launch = EpilogueFused (*)(const OperationViews&, const Attributes&);

    template <class Attributes>
    static OperationCall of(Launch<Attributes> launch, const Attributes& attributes) {
        static_assert(std::is_trivially_copyable_v<Attributes>,
                      "attributes of an operation are plain data: a View belongs among its reads or writes");
        static_assert(sizeof(Attributes) <= kMaxAttributeBytes && alignof(Attributes) <= alignof(std::max_align_t));
        OperationCall made;
        made.function_ = reinterpret_cast<Function>(launch);
        made.call_ = &call_as<Attributes>;
        made.size_ = sizeof attributes;
        std::memcpy(made.attributes_.data(), &attributes, sizeof attributes);
        return made;
    }

    EpilogueFused operator()(const OperationViews& views) const { return call_(function_, views, attributes_.data()); }
    /// The bytes of the attributes.
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

DECLIVITY_API OperationResults operation(std::string_view name, const OperationCall& call, OperationOperands operands);

/// Puts a launch off until one of the outputs is needed, or what is written. With DECLIVITY_FUSION=0, launches at once.
/// What is written is marked as written (Buffer::bump_version); nobody else need do so.
/// @param name what errors and profiles call it; outlives the operation
/// @param launch called once, unless it throws: then the operation still waits, and nothing may have been written
/// @param attributes its sizes, flags and numbers; trivially copyable, kMaxAttributeBytes at most
template <class Attributes>
OperationResults operation(std::string_view name, std::type_identity_t<OperationCall::Launch<Attributes>> launch,
                           const Attributes& attributes, OperationOperands operands) {
    return operation(name, OperationCall::of<Attributes>(launch, attributes), std::move(operands));
}
/// Launches several operations of one kind at once.
using BatchedLaunch = void (*)(std::span<const OperationViews>);

/// An operation that waits for company: as soon as one is needed, all of this thread that have the same launch
/// function, device and type are launched together. They are launched earlier where what they read takes much memory.
/// @param operands one output, whose type counts
DECLIVITY_API LazyArray deferred_batched(std::string_view name, BatchedLaunch launch, OperationOperands operands);

}  // namespace declivity::ops
