// Layer 2. View: typed, shaped, strided access to a part of a device buffer. The argument type of operators.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <declivity/ops/dtype.hpp>
#include <declivity/ops/shape.hpp>
#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// @addtogroup ops
/// @{

/// Elements of `dtype` in `buffer`: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ... Strides
/// may be 0 (a broadcast axis) but not negative.
struct DECLIVITY_API View {
    Buffer buffer;
    std::int64_t offset = 0;  ///< elements
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;

    /// Allocates a dense view, not initialised.
    /// @throws Unsupported when the device lacks the type (f64); OutOfMemory; ShapeError, naming `function`, as
    /// bytes_of
    static View make(const Device& device, DType dtype, const Shape& shape, BufferUse use = BufferUse::compute,
                     std::string_view function = "View::make");

    [[nodiscard]] Device device() const { return buffer.device(); }
    [[nodiscard]] std::int64_t numel() const noexcept { return shape.numel(); }
    [[nodiscard]] int rank() const noexcept { return shape.rank(); }
    /// True if row-major and contiguous.
    [[nodiscard]] bool dense() const noexcept;
    /// Kernel argument: base and offset.
    [[nodiscard]] BufferArgument argument() const noexcept { return {buffer, offset, size_of(dtype)}; }
    /// Bytes from the first to the last element of a dense view.
    [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(numel()) * size_of(dtype); }
};

/// Tells whether an operand may change between calls. Operators may cache data derived from a constant operand, such as
/// packed weights, until its memory is written or freed (Buffer::cache_derived).
enum class OperandUse : bool { variable, constant };

/// Bytes of a dense tensor.
/// @throws ShapeError when a size is negative, or their product does not fit into 63 bits
DECLIVITY_API std::size_t bytes_of(const Shape& shape, DType dtype, std::string_view function = "bytes_of");

/// Same elements in another shape with the same number of elements; the view must be dense.
DECLIVITY_API View reshaped(const View& view, const Shape& shape);
/// Reorders axes: axis i of the result is axis order[i] of `view`. Does not copy.
DECLIVITY_API View permuted(const View& view, const Dims& order);
/// Elements start, start + step, ... of one axis, `count` of them. Does not copy.
DECLIVITY_API View sliced(const View& view, int axis, std::int64_t start, std::int64_t count, std::int64_t step = 1);
/// Broadcasts axes of size 1 to `shape`, and prepends missing axes. Does not copy.
/// @throws ShapeError naming `function`
DECLIVITY_API View expanded(std::string_view function, const View& view, const Shape& shape);

/// True if the byte ranges from the first to the last element of both views intersect.
DECLIVITY_API bool may_overlap(const View& a, const View& b);

/// "f32 [2, 3]", for messages.
DECLIVITY_API std::string describe(const View& view);

/// @throws Unsupported for f64 on a device without it
DECLIVITY_API void require_supported(const Device& device, DType dtype);
/// @throws ShapeError unless the view is dense
DECLIVITY_API void require_dense(std::string_view function, std::string_view name, const View& view);
/// @throws ShapeError unless the view has `rank` axes; `axes` names them, as in "N,C,H,W"
DECLIVITY_API void require_rank(std::string_view function, std::string_view name, const View& view, int rank,
                                std::string_view axes);
/// @throws ShapeError unless the view has this shape
DECLIVITY_API void require_shape(std::string_view function, std::string_view name, const View& view,
                                 const Shape& shape);
/// Variant for arrays that are not computed yet.
DECLIVITY_API void require_rank(std::string_view function, std::string_view name, const Shape& got, int rank,
                                std::string_view axes);
/// Variant for arrays that are not computed yet.
DECLIVITY_API void require_shape(std::string_view function, std::string_view name, const Shape& got,
                                 const Shape& expected);
/// @throws TypeError unless the view is f32 or f64, the types that all kernels for floating numbers support
DECLIVITY_API void require_floating(std::string_view function, std::string_view name, const View& view);
/// @throws TypeError unless it is a floating type, f16 and bf16 included
DECLIVITY_API void require_real(std::string_view function, std::string_view name, DType dtype);
/// @throws TypeError or DeviceError unless both have one type and are on one device
DECLIVITY_API void require_alike(std::string_view function, std::string_view name_a, const View& a,
                                 std::string_view name_b, const View& b);
/// Variant for arrays that are not computed yet.
DECLIVITY_API void require_alike(std::string_view function, std::string_view name_a, DType type_a,
                                 const Device& device_a, std::string_view name_b, DType type_b, const Device& device_b);
/// @throws DeviceError unless both are on one device
DECLIVITY_API void require_same_device(std::string_view function, const View& a, const View& b);
/// Variant for arrays that are not computed yet.
DECLIVITY_API void require_same_device(std::string_view function, const Device& a, const Device& b);

/// OpenCL C type of an element in memory: "float", "uchar" for bool, "ushort" for f16 and bf16, ...
DECLIVITY_API std::string_view cl_type(DType type);
/// Defines that math.clh and the kernels require for a floating type: REAL, the type of the arithmetic, and, for f64,
/// REAL_IS_DOUBLE.
DECLIVITY_API Defines real_defines(DType type);
/// real_defines() and those of kernels that read and write f16 and bf16 (cl_kernels/lib/storage.clh): STORED_AS for
/// operands, OUTPUT_AS for results. Both have the same type of arithmetic.
DECLIVITY_API Defines storage_defines(DType stored, DType output);

/// @}

}  // namespace declivity::ops
