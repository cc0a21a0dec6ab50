#include <algorithm>
#include <array>

#include <clblast.h>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"
#include "runtime/capture.hpp"

namespace declivity::ops {
namespace {

constexpr std::size_t kProbeOffset = 256;  // elements: any offset but 0

/// The layout of a matrix for CLBlast: row-major or transposed, with a leading dimension.
struct Layout {
    clblast::Transpose transpose = clblast::Transpose::kNo;
    std::size_t leading = 0;
};

/// CLBlast and BLAS do not support matrices that are contiguous along neither axis.
bool layout_of(const std::array<std::int64_t, 3>& strides, std::int64_t rows, std::int64_t columns, Layout& layout) {
    if (strides[2] == 1 || columns == 1) {
        layout = {clblast::Transpose::kNo,
                  static_cast<std::size_t>(std::max(rows == 1 ? columns : strides[1], columns))};
        return rows == 1 || strides[1] >= columns;
    }
    if (strides[1] == 1 || rows == 1) {
        layout = {clblast::Transpose::kYes, static_cast<std::size_t>(std::max(columns == 1 ? rows : strides[2], rows))};
        return strides[2] >= rows;
    }
    return false;
}

void check(clblast::StatusCode status, const Device& device) {
    if (status != clblast::StatusCode::kSuccess)
        throw DeviceError(fmt::format("matmul by CLBlast on '{}': status {}", device.name(), static_cast<int>(status)),
                          static_cast<int>(status));
}

bool layouts_of(const MatmulProblem& problem, Layout& a, Layout& b) {
    return layout_of(problem.a_strides, problem.m, problem.k, a) &&
           layout_of(problem.b_strides, problem.k, problem.n, b);
}

/// A matrix within its buffer; the buffer's offset in its memory is known when it is enqueued.
template <class T>
struct Matrix {
    std::int64_t offset, step;
    explicit Matrix(const View& view) : offset(view.offset), step(view.strides[0]) {}
    [[nodiscard]] std::size_t start(const interop::RawBuffer& in, std::int64_t batch) const {
        return in.offset / sizeof(T) + static_cast<std::size_t>(offset + batch * step);
    }
};

struct Sizes {
    std::size_t m, n, k;
};

/// Bytes of a workspace without which CLBlast would allocate one in every call. Queried with nonzero offsets, since an
/// operand at offset 0 may need no copy, unlike later matrices of a batch, or another operand in a replay.
template <class T>
std::size_t scratch_for(const MatmulProblem& problem, const MatmulOperands& operands, const Sizes& sizes,
                        const Layout& a, const Layout& b) {
    const Device device = operands.out.device();
    const Matrix<T> first(operands.a), second(operands.b), result(operands.out);
    const std::size_t offset = Capture::current() != nullptr ? kProbeOffset : 0;
    const CapturePause pause;
    cl_command_queue queue = interop::compute_queue(device);
    const interop::RawBuffer in[] = {interop::raw(operands.a.buffer), interop::raw(operands.b.buffer),
                                     interop::raw(operands.out.buffer)};
    std::size_t max_bytes = 0;
    for (std::int64_t batch = 0; batch < std::min<std::int64_t>(problem.batch, 2); ++batch)
        for (const std::size_t moved : {std::size_t{0}, offset}) {
            std::size_t bytes = 0;
            check(clblast::GemmTempBufferSize<T>(clblast::Layout::kRowMajor, a.transpose, b.transpose, sizes.m, sizes.n,
                                                 sizes.k, first.start(in[0], batch) + moved, a.leading,
                                                 second.start(in[1], batch) + moved, b.leading,
                                                 result.start(in[2], batch) + moved, sizes.n, &queue, bytes),
                  device);
            max_bytes = std::max(max_bytes, bytes);
        }
    return max_bytes;
}

template <class T>
void gemm(const MatmulProblem& problem, const MatmulOperands& operands, const Layout& a, const Layout& b) {
    const Device device = operands.out.device();
    const Sizes sizes{static_cast<std::size_t>(problem.m), static_cast<std::size_t>(problem.n),
                      static_cast<std::size_t>(problem.k)};
    const Matrix<T> first(operands.a), second(operands.b), result(operands.out);
    const std::size_t scratch_bytes = scratch_for<T>(problem, operands, sizes, a, b);
    const Buffer buffers[] = {operands.a.buffer, operands.b.buffer, operands.out.buffer, Buffer(device, scratch_bytes)};
    interop::enqueue(
        device, "clblast gemm", buffers, [=, batches = problem.batch](std::span<const interop::RawBuffer> in) {
            cl_command_queue queue = interop::compute_queue(device);
            // CLBlast takes a cl_mem without an offset, so a part of the pool is passed as a sub-buffer.
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
                cl_event last = nullptr;  // of the product itself; the copies before it are not included
                const auto status = clblast::Gemm<T>(
                    clblast::Layout::kRowMajor, a.transpose, b.transpose, sizes.m, sizes.n, sizes.k, T{1}, in[0].memory,
                    first.start(in[0], batch), a.leading, in[1].memory, second.start(in[1], batch), b.leading, T{0},
                    in[2].memory, result.start(in[2], batch), sizes.n, &queue, profiled ? &last : nullptr, part);
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

class MatmulClblast final : public MatmulStrategy {
  public:
    [[nodiscard]] std::string_view name() const override { return "clblast"; }

    [[nodiscard]] bool is_applicable(const MatmulProblem& problem, const Device&) const override {
        Layout a, b;
        return !is_16bit_float(problem.dtype) && layouts_of(problem, a, b);
    }
    /// Left to the tuner: CLBlast supports no epilogues, copies operands for many shapes, and on CPUs its built-in
    /// parameters reach a small fraction of a register tile's performance.
    [[nodiscard]] bool is_profitable(const MatmulProblem&, const Device&) const override { return false; }

    void run(const MatmulProblem& problem, const MatmulOperands& operands, std::string_view) const override {
        Layout a, b;
        layouts_of(problem, a, b);
        if (problem.dtype == DType::f64) gemm<double>(problem, operands, a, b);
        else gemm<float>(problem, operands, a, b);
    }
};

}  // namespace

const MatmulStrategy& matmul_clblast() {
    static const MatmulClblast strategy;
    return strategy;
}

}  // namespace declivity::ops
