#include <algorithm>

#include <clblast.h>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"

namespace declivity::ops {
namespace {

/// How CLBlast sees a matrix: row-major or transposed, with a leading dimension.
struct Layout {
    clblast::Transpose transpose = clblast::Transpose::kNo;
    std::size_t leading = 0;
};

/// Neither CLBlast nor BLAS knows matrices whose elements are not neighbours along one axis.
bool layout_of(const View& matrix, Layout& layout) {
    const std::int64_t rows = matrix.shape[1], columns = matrix.shape[2];
    if (matrix.strides[2] == 1 || columns == 1) {
        layout = {clblast::Transpose::kNo, static_cast<std::size_t>(std::max(rows == 1 ? columns : matrix.strides[1], columns))};
        return rows == 1 || matrix.strides[1] >= columns;
    }
    if (matrix.strides[1] == 1 || rows == 1) {
        layout = {clblast::Transpose::kYes, static_cast<std::size_t>(std::max(columns == 1 ? rows : matrix.strides[2], rows))};
        return matrix.strides[2] >= rows;
    }
    return false;
}

void check(clblast::StatusCode status, const Device& device) {
    if (status != clblast::StatusCode::kSuccess)
        throw DeviceError(fmt::format("matmul by CLBlast on '{}': status {}", device.name(), static_cast<int>(status)), static_cast<int>(status));
}

template <class T>
void gemm(const MatmulProblem& problem, const Layout& a, const Layout& b) {
    const Device device = problem.out.device();
    cl_command_queue queue = interop::compute_queue(device);
    const auto m = static_cast<std::size_t>(problem.m), n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k);
    const auto memory = [](const View& view) { return interop::raw(view.buffer).memory; };
    const auto start = [](const View& view, std::int64_t batch) {
        return interop::raw(view.buffer).offset / sizeof(T) + static_cast<std::size_t>(view.offset + batch * view.strides[0]);
    };
    // Without a buffer of ours CLBlast would make one at every call. It asks with the offsets, since an operand that
    // starts at 0 may need no copy: the first of a batch may need less than the others.
    std::size_t scratch_bytes = 0;
    for (std::int64_t batch = 0; batch < std::min<std::int64_t>(problem.batch, 2); ++batch) {
        std::size_t bytes = 0;
        check(clblast::GemmTempBufferSize<T>(clblast::Layout::kRowMajor, a.transpose, b.transpose, m, n, k, start(problem.a, batch), a.leading,
                                             start(problem.b, batch), b.leading, start(problem.out, batch), n, &queue, bytes),
              device);
        scratch_bytes = std::max(scratch_bytes, bytes);
    }
    const Buffer scratch(device, scratch_bytes);
    const auto [scratch_memory, scratch_offset, scratch_size] = interop::raw(scratch);
    // CLBlast takes a cl_mem without an offset; a part of the pool is made one by a sub-buffer.
    cl_mem part = nullptr;
    if (scratch_bytes > 0) {
        const cl_buffer_region region{scratch_offset, scratch_bytes};
        cl_int status = CL_SUCCESS;
        part = clCreateSubBuffer(scratch_memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
        if (status != CL_SUCCESS) throw DeviceError(fmt::format("matmul on '{}': sub-buffer of {} bytes: status {}", device.name(), scratch_bytes, status), status);
    }
    const auto release = [&] {
        if (part != nullptr) clReleaseMemObject(part);
    };
    const bool profiled = interop::profiled(device);
    for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
        cl_event last = nullptr;  // of the product itself: copies before it are not seen
        const auto status = clblast::Gemm<T>(clblast::Layout::kRowMajor, a.transpose, b.transpose, m, n, k, T{1}, memory(problem.a),
                                             start(problem.a, batch), a.leading, memory(problem.b), start(problem.b, batch), b.leading, T{0},
                                             memory(problem.out), start(problem.out, batch), n, &queue, profiled ? &last : nullptr, part);
        if (status != clblast::StatusCode::kSuccess) {
            release();
            check(status, device);
        }
        if (last != nullptr) {
            interop::profile(device, "clblast gemm", last);
            clReleaseEvent(last);
        }
    }
    release();  // OpenCL keeps it until the kernels have run
}

}  // namespace

bool matmul_clblast_serves(const MatmulProblem& problem) {
    Layout layout;
    return !is_half(problem.a.dtype) && layout_of(problem.a, layout) && layout_of(problem.b, layout);
}

void matmul_clblast(const MatmulProblem& problem) {
    Layout a, b;
    layout_of(problem.a, a);
    layout_of(problem.b, b);
    if (problem.out.dtype == DType::f64) gemm<double>(problem, a, b);
    else gemm<float>(problem, a, b);
}

}  // namespace declivity::ops
