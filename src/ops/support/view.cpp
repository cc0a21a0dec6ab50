#include <declivity/ops/view.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::ops {

void require_supported(const Device& device, DType dtype) {
    if (dtype == DType::f64 && !device.info().fp64)
        throw Unsupported(
            fmt::format("f64: expected a device with double precision (cl_khr_fp64), got '{}', which has none; make "
                        "tensors of f32 (Tensor::from<float>), or check Device::info().fp64",
                        device.name()));
}

View View::make(const Device& device, DType dtype, const Shape& shape, BufferUse use, std::string_view function) {
    require_supported(device, dtype);
    return {Buffer(device, bytes_of(shape, dtype, function), use), 0, dtype, shape, dense_strides(shape)};
}

std::size_t bytes_of(const Shape& shape, DType dtype, std::string_view function) {
    // An axis of size 0 makes the tensor empty, even if the product of the others overflows.
    if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; }))
        throw ShapeError(fmt::format("{}: expected sizes of at least 0, got {}", function, shape.str()));
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    std::int64_t room = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(size_of(dtype));
    for (const std::int64_t size : shape) room /= size;
    if (room == 0)
        throw ShapeError(fmt::format("{}: expected sizes whose product fits into 63 bits, got {} of {}", function,
                                     shape.str(), name_of(dtype)));
    return static_cast<std::size_t>(shape.numel()) * size_of(dtype);
}

bool View::dense() const noexcept {
    std::int64_t expected = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        if (shape[axis] == 0) return true;
        if (shape[axis] != 1 && strides[axis] != expected) return false;
        expected *= shape[axis];
    }
    return true;
}

View reshaped(const View& view, const Shape& shape) {
    require_dense("reshaped", "view", view);
    if (shape.numel() != view.numel())
        throw ShapeError(
            fmt::format("reshaped: expected as many elements as {} has, got {}", view.shape.str(), shape.str()));
    View out = view;
    out.shape = shape;
    out.strides = dense_strides(shape);
    return out;
}

View permuted(const View& view, const Dims& order) {
    bool valid = order.rank() == view.rank();
    std::array<bool, Dims::kMaxRank> used_axes{};
    for (int i = 0; valid && i < order.rank(); ++i) {
        valid = order[i] >= 0 && order[i] < order.rank() && !used_axes[static_cast<std::size_t>(order[i])];
        if (valid) used_axes[static_cast<std::size_t>(order[i])] = true;
    }
    if (!valid)
        throw ShapeError(fmt::format("permuted: expected each axis of {} once, got {}", view.shape.str(), order.str()));
    View out = view;
    for (int i = 0; i < order.rank(); ++i) {
        out.shape[i] = view.shape[static_cast<int>(order[i])];
        out.strides[i] = view.strides[static_cast<int>(order[i])];
    }
    return out;
}

View sliced(const View& view, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
    axis = normalize_axis("sliced", axis, view.rank());
    const bool fits =
        start >= 0 && count >= 0 && step >= 1 && (count == 0 || start + (count - 1) * step < view.shape[axis]);
    if (!fits)
        throw ShapeError(fmt::format("sliced: expected elements inside axis {} of {}, got start {}, count {}, step {}",
                                     axis, view.shape.str(), start, count, step));
    View out = view;
    out.offset += start * view.strides[axis];
    out.shape[axis] = count;
    out.strides[axis] *= step;
    return out;
}

View expanded(std::string_view function, const View& view, const Shape& shape) {
    const int added = shape.rank() - view.rank();
    View out = view;
    out.shape = shape;
    out.strides = Dims::filled(shape.rank(), 0);
    bool fits = added >= 0 && std::ranges::all_of(shape, [](std::int64_t size) { return size >= 0; });
    for (int axis = 0; fits && axis < view.rank(); ++axis) {
        const std::int64_t size = view.shape[axis];
        fits = size == shape[axis + added] || size == 1;
        if (fits && size != 1) out.strides[axis + added] = view.strides[axis];
    }
    if (!fits)
        throw ShapeError(
            fmt::format("{}: expected a shape that broadcasts to {}, got {}", function, shape.str(), view.shape.str()));
    return out;
}

namespace {
/// The number of bytes from the first element to the end of the last one.
std::pair<std::int64_t, std::int64_t> element_range(const View& view) {
    std::int64_t last = view.offset;
    for (int axis = 0; axis < view.rank(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
    const auto unit = static_cast<std::int64_t>(size_of(view.dtype));
    return {view.offset * unit, (last + 1) * unit};
}
}  // namespace

bool may_overlap(const View& a, const View& b) {
    if (!(a.buffer == b.buffer) || a.numel() == 0 || b.numel() == 0) return false;
    const auto [start_a, end_a] = element_range(a);
    const auto [start_b, end_b] = element_range(b);
    return start_a < end_b && start_b < end_a;
}

std::string describe(const View& view) { return fmt::format("{} {}", name_of(view.dtype), view.shape.str()); }

void require_dense(std::string_view function, std::string_view name, const View& view) {
    if (!view.dense())
        throw ShapeError(fmt::format("{}: expected a dense view as {}, got shape {} with strides {}", function, name,
                                     view.shape.str(), view.strides.str()));
}

void require_rank(std::string_view function, std::string_view name, const View& view, int rank, std::string_view axes) {
    require_rank(function, name, view.shape, rank, axes);
}

void require_rank(std::string_view function, std::string_view name, const Shape& got, int rank, std::string_view axes) {
    if (got.rank() != rank)
        throw ShapeError(
            fmt::format("{0}: expected {3} of shape ({2}), got {4}", function, rank, axes, name, got.str()));
}

void require_shape(std::string_view function, std::string_view name, const View& view, const Shape& shape) {
    require_shape(function, name, view.shape, shape);
}

void require_shape(std::string_view function, std::string_view name, const Shape& got, const Shape& expected) {
    if (!(got == expected))
        throw ShapeError(fmt::format("{}: expected {} of shape {}, got {}", function, name, expected.str(), got.str()));
}

void require_floating(std::string_view function, std::string_view name, const View& view) {
    if (view.dtype != DType::f32 && view.dtype != DType::f64)
        throw TypeError(fmt::format("{}: expected f32 or f64 as {}, got {}{}", function, name, name_of(view.dtype),
                                    is_16bit_float(view.dtype) ? " (convert with .to(DType::f32))" : ""));
}

void require_real(std::string_view function, std::string_view name, DType dtype) {
    if (!is_floating(dtype))
        throw TypeError(fmt::format("{}: expected f32, f64, f16 or bf16 as {}, got {} (convert with .to(DType::f32))",
                                    function, name, name_of(dtype)));
}

void require_same_device(std::string_view function, const View& a, const View& b) {
    require_same_device(function, a.device(), b.device());
}

void require_same_device(std::string_view function, const Device& a, const Device& b) {
    if (!(a == b))
        throw DeviceError(
            fmt::format("{}: expected all tensors on one device, got '{}' and '{}'", function, a.name(), b.name()));
}

void require_alike(std::string_view function, std::string_view name_a, const View& a, std::string_view name_b,
                   const View& b) {
    require_alike(function, name_a, a.dtype, a.device(), name_b, b.dtype, b.device());
}

void require_alike(std::string_view function, std::string_view name_a, DType type_a, const Device& device_a,
                   std::string_view name_b, DType type_b, const Device& device_b) {
    if (type_a != type_b)
        throw TypeError(fmt::format("{}: expected {} and {} of one type, got {} and {}", function, name_a, name_b,
                                    name_of(type_a), name_of(type_b)));
    require_same_device(function, device_a, device_b);
}

std::string_view cl_type(DType type) { return dtype_info(type).cl_type; }

Defines real_defines(DType type) {
    Defines defines;
    if (type == DType::f64) defines.set("REAL_IS_DOUBLE", "1");
    defines.set("REAL", cl_type(compute_type(type)));
    return defines;
}

namespace {

// AS_F16 and AS_BF16 in cl_kernels/lib/storage.clh, where AS_REAL is the default.
constexpr int kAsF16 = 1;
constexpr int kAsBf16 = 2;

}  // namespace

Defines storage_defines(DType stored, DType output) {
    const auto number = [](DType type) { return type == DType::f16 ? kAsF16 : kAsBf16; };
    Defines defines = real_defines(stored);
    if (is_16bit_float(stored)) defines.set("STORED_AS", number(stored));
    if (is_16bit_float(output)) defines.set("OUTPUT_AS", number(output));
    return defines;
}

}  // namespace declivity::ops
