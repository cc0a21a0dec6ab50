// Transforms of lengths with prime factors other than 2, 3, 5 and 7 (Bluestein 1970): since j k = (j^2 + k^2 - (k -
// j)^2) / 2, the transform is a convolution with a chirp, of a smooth length.
#include "fft_launch.hpp"
#include "fft_plan.hpp"
#include "fft_tables.hpp"
#include "ops/engine/real_arguments.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Layout of the kernel's struct; must match cl_kernels/fft/fft_chirp.cl.
struct FftChirp {
    std::int64_t count, in_outer, in_step, in_inner;
};

/// out (outer, n, inner, 2) = x times factors, 0 from `count` on.
void multiply(const View& x, const FftLines& lines, std::int64_t count, const View& factors, const View& out,
              double sign_in, double sign_out, double scale) {
    launch({x.device(), {"fft_chirp.cl", "fft_chirp", real_defines(x.dtype)}},
           {.global = {to_size(out.shape[2]), to_size(out.shape[1]), to_size(out.shape[0])}},
           {FftChirp{count, lines.outer_stride, lines.step, lines.inner_stride}, real_argument(x.dtype, sign_in),
            real_argument(x.dtype, sign_out), real_argument(x.dtype, scale), x.argument(), factors.argument(),
            out.argument()});
}

}  // namespace

void launch_fft_chirp(const View& x, const FftLines& lines, const View& out, const FftNumbers& numbers) {
    const Device device = x.device();
    const std::int64_t n = lines.n, padded = fft_padded(n);
    const View whole = reshaped(out, {lines.outer, n, lines.inner, 2});
    if (n == 1) return multiply(x, lines, n, fft_circle_table(device, x.dtype, 1, 1), whole, 1, 1, numbers.scale);
    const View chirp = fft_chirp_table(device, x.dtype, n), spectrum = fft_chirp_spectrum(device, x.dtype, n, padded);
    const FftLines long_lines = FftLines::dense(lines.outer, padded, lines.inner);
    const View a = View::make(device, x.dtype, {lines.outer, padded, lines.inner, 2}),
               b = View::make(device, x.dtype, a.shape);
    multiply(x, lines, n, chirp, a, numbers.sign(), 1, 1);
    launch_fft_smooth(a, long_lines, b, {});
    multiply(b, long_lines, padded, spectrum, a, 1, 1, 1);
    launch_fft_smooth(a, long_lines, b, {.conjugate = true});
    multiply(b, long_lines, n, chirp, whole, 1, numbers.sign(), numbers.scale);
}

}  // namespace declivity::ops
