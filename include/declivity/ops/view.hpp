// Layer 2. A View: typed, shaped, strided access to a part of a device buffer. What operators take and give.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <declivity/ops/dtype.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// Elements of `dtype` in `buffer`: element (i, j, ...) lies at offset + i * strides[0] + j * strides[1] + ...
/// Strides may be 0 (an axis that repeats) but not negative.
struct DECLIVITY_API View {
    Buffer buffer;
    std::int64_t offset = 0;  ///< elements
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;

    /// Dense memory of its own, not initialised.
    /// @throws Unsupported when the device lacks the type (f64); OutOfMemory; ShapeError, naming `function`, as
    /// bytes_of
    static View make(const Device& device, DType dtype, const Shape& shape, BufferUse use = BufferUse::compute,
                     std::string_view function = "View::make");

    [[nodiscard]] Device device() const { return buffer.device(); }
    [[nodiscard]] std::int64_t numel() const noexcept { return shape.numel(); }
    [[nodiscard]] int rank() const noexcept { return shape.rank(); }
    /// Row-major without gaps.
    [[nodiscard]] bool dense() const noexcept;
    /// As a kernel argument: base and offset.
    [[nodiscard]] BufferArgument argument() const noexcept { return {buffer, offset, size_of(dtype)}; }
    /// Bytes from the first to the last element of a dense view.
    [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(numel()) * size_of(dtype); }
};

/// Whether an operand may change between calls. Of one that stays constant, operators may keep what they make of it,
/// such as transformed weights, until its memory is written or freed (Buffer::cache_derived).
enum class OperandUse : bool { variable, constant };

/// Bytes of a dense tensor.
/// @throws ShapeError when a size is negative, or their product does not fit into 63 bits
DECLIVITY_API std::size_t bytes_of(const Shape& shape, DType dtype, std::string_view function = "bytes_of");

/// The same elements under another shape of as many elements; wants a dense view.
DECLIVITY_API View reshaped(const View& view, const Shape& shape);
/// Axes in another order: axis i of the result is axis order[i] of `view`. No data moves.
DECLIVITY_API View permuted(const View& view, const Dims& order);
/// Elements start, start + step, ... of one axis, `count` of them. No data moves.
DECLIVITY_API View sliced(const View& view, int axis, std::int64_t start, std::int64_t count, std::int64_t step = 1);
/// Repeats axes of size 1 to `shape`, and puts missing ones in front. No data moves.
/// @throws ShapeError naming `function`
DECLIVITY_API View expanded(std::string_view function, const View& view, const Shape& shape);

/// Whether the bytes from the first to the last element of both have some in common.
DECLIVITY_API bool may_overlap(const View& a, const View& b);

/// "f32 [2, 3]", for messages.
DECLIVITY_API std::string describe(const View& view);

/// @throws Unsupported for f64 on a device without
DECLIVITY_API void require_supported(const Device& device, DType dtype);
/// @throws ShapeError unless the view is dense
DECLIVITY_API void require_dense(std::string_view function, std::string_view name, const View& view);
/// @throws ShapeError unless the view has `rank` axes; `axes` says what they are, as in "N,C,H,W"
DECLIVITY_API void require_rank(std::string_view function, std::string_view name, const View& view, int rank,
                                std::string_view axes);
/// @throws ShapeError unless the view has this shape
DECLIVITY_API void require_shape(std::string_view function, std::string_view name, const View& view,
                                 const Shape& shape);
/// The same for values that are not computed yet.
DECLIVITY_API void require_rank(std::string_view function, std::string_view name, const Shape& got, int rank,
                                std::string_view axes);
DECLIVITY_API void require_shape(std::string_view function, std::string_view name, const Shape& got,
                                 const Shape& wanted);
/// @throws TypeError unless the view is f32 or f64, the types that all kernels for floating numbers serve
DECLIVITY_API void require_floating(std::string_view function, std::string_view name, const View& view);
/// @throws TypeError unless it is a floating type, halves included
DECLIVITY_API void require_real(std::string_view function, std::string_view name, DType dtype);
/// @throws TypeError or DeviceError unless both have one type and live on one device
DECLIVITY_API void require_alike(std::string_view function, std::string_view name_a, const View& a,
                                 std::string_view name_b, const View& b);
/// The same for values that are not computed yet.
DECLIVITY_API void require_alike(std::string_view function, std::string_view name_a, DType type_a,
                                 const Device& device_a, std::string_view name_b, DType type_b, const Device& device_b);
/// @throws DeviceError unless both live on one device
DECLIVITY_API void require_same_device(std::string_view function, const View& a, const View& b);
DECLIVITY_API void require_same_device(std::string_view function, const Device& a, const Device& b);

/// What an element in memory is called in OpenCL C: "float", "uchar" for bool, "ushort" for f16 and bf16, ...
DECLIVITY_API std::string_view cl_type(DType type);
/// The defines that math.clh and the kernels want for a floating type: REAL, that of its arithmetic, and, for f64,
/// REAL_IS_DOUBLE.
DECLIVITY_API Defines real_defines(DType type);
/// And those of kernels that read and write halves (cl_kernels/lib/storage.clh): STORED_AS for operands, OUTPUT_AS for
/// results. Both are computed with as the same type.
DECLIVITY_API Defines storage_defines(DType stored, DType output);

}  // namespace declivity::ops
