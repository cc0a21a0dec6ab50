#include <algorithm>

#include <clblast.h>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/recording.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"

namespace declivity::ops {
namespace {

constexpr std::size_t kElsewhere = 256;  // elements: any offset but 0

/// How CLBlast sees a matrix: row-major or transposed, with a leading dimension.
struct Layout {
    clblast::Transpose transpose = clblast::Transpose::kNo;
    std::size_t leading = 0;
};

/// Neither CLBlast nor BLAS knows matrices whose elements are not neighbours along one axis.
bool layout_of(const View& matrix, Layout& layout) {
    const std::int64_t rows = matrix.shape[1], columns = matrix.shape[2];
    if (matrix.strides[2] == 1 || columns == 1) {
        layout = {clblast::Transpose::kNo,
                  static_cast<std::size_t>(std::max(rows == 1 ? columns : matrix.strides[1], columns))};
        return rows == 1 || matrix.strides[1] >= columns;
    }
    if (matrix.strides[1] == 1 || rows == 1) {
        layout = {clblast::Transpose::kYes,
                  static_cast<std::size_t>(std::max(columns == 1 ? rows : matrix.strides[2], rows))};
        return matrix.strides[2] >= rows;
    }
    return false;
}

void check(clblast::StatusCode status, const Device& device) {
    if (status != clblast::StatusCode::kSuccess)
        throw DeviceError(fmt::format("matmul by CLBlast on '{}': status {}", device.name(), static_cast<int>(status)),
                          static_cast<int>(status));
}

template <class T>
void gemm(const MatmulProblem& problem, const Layout& a, const Layout& b) {
    const Device device = problem.out.device();
    const auto m = static_cast<std::size_t>(problem.m), n = static_cast<std::size_t>(problem.n),
               k = static_cast<std::size_t>(problem.k);
    // A matrix within its buffer; where that begins in its memory is known when it is enqueued.
    struct Matrix {
        std::int64_t offset, step;
        [[nodiscard]] std::size_t start(const interop::RawBuffer& in, std::int64_t batch) const {
            return in.offset / sizeof(T) + static_cast<std::size_t>(offset + batch * step);
        }
    };
    const auto matrix = [](const View& view) { return Matrix{view.offset, view.strides[0]}; };
    const Matrix first = matrix(problem.a), second = matrix(problem.b), result = matrix(problem.out);
    // Without a buffer of ours CLBlast would make one at every call. It asks with the offsets, since an operand that
    // starts at 0 may need no copy: the first of a batch may need less than the others, and than another operand at a
    // replay.
    std::size_t scratch_bytes = 0;
    const std::size_t elsewhere = Recorder::current() != nullptr ? kElsewhere : 0;
    {
        const RecordingPause asks;
        cl_command_queue queue = interop::compute_queue(device);
        const interop::RawBuffer in[] = {interop::raw(problem.a.buffer), interop::raw(problem.b.buffer),
                                         interop::raw(problem.out.buffer)};
        for (std::int64_t batch = 0; batch < std::min<std::int64_t>(problem.batch, 2); ++batch)
            for (const std::size_t moved : {std::size_t{0}, elsewhere}) {
                std::size_t bytes = 0;
                check(clblast::GemmTempBufferSize<T>(clblast::Layout::kRowMajor, a.transpose, b.transpose, m, n, k,
                                                     first.start(in[0], batch) + moved, a.leading,
                                                     second.start(in[1], batch) + moved, b.leading,
                                                     result.start(in[2], batch) + moved, n, &queue, bytes),
                      device);
                scratch_bytes = std::max(scratch_bytes, bytes);
            }
    }
    const Buffer buffers[] = {problem.a.buffer, problem.b.buffer, problem.out.buffer, Buffer(device, scratch_bytes)};
    interop::enqueue(
        device, "clblast gemm", buffers, [=, batches = problem.batch](std::span<const interop::RawBuffer> in) {
            cl_command_queue queue = interop::compute_queue(device);
            // CLBlast takes a cl_mem without an offset; a part of the pool is made one by a sub-buffer.
            cl_mem part = nullptr;
            if (scratch_bytes > 0) {
                const cl_buffer_region region{in[3].offset, scratch_bytes};
                cl_int status = CL_SUCCESS;
                part =
                    clCreateSubBuffer(in[3].memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
                if (status != CL_SUCCESS)
                    throw DeviceError(fmt::format("matmul on '{}': sub-buffer of {} bytes: status {}", device.name(),
                                                  scratch_bytes, status),
                                      status);
            }
            const auto release = [&] {
                if (part != nullptr) clReleaseMemObject(part);
            };
            const bool profiled = interop::profiled(device);
            for (std::int64_t batch = 0; batch < batches; ++batch) {
                cl_event last = nullptr;  // of the product itself: copies before it are not seen
                const auto status = clblast::Gemm<T>(
                    clblast::Layout::kRowMajor, a.transpose, b.transpose, m, n, k, T{1}, in[0].memory,
                    first.start(in[0], batch), a.leading, in[1].memory, second.start(in[1], batch), b.leading, T{0},
                    in[2].memory, result.start(in[2], batch), n, &queue, profiled ? &last : nullptr, part);
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
        });
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
