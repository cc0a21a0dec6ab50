// Fourier transforms beyond the catalogue: many lengths, axes and strides, both kernel styles, compared with the
// defining sum in double; real transforms, f16 and bf16, empty batches and captured steps; errors.
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Complex = std::complex<double>;
using Line = std::vector<Complex>;

/// In more than double if the processor has it: long sums would be less exact than the results they are compared with.
using Exact = std::complex<long double>;

/// exp(-2 pi i t / n).
std::vector<Exact> circle(std::int64_t n) {
    std::vector<Exact> total_energy;
    for (std::int64_t t = 0; t < n; ++t)
        total_energy.push_back(std::polar(
            1.0L, -2 * std::numbers::pi_v<long double> * static_cast<long double>(t) / static_cast<long double>(n)));
    return total_energy;
}

/// The numbers of a line of pairs (outer, n, inner, 2).
Line line_of(const std::vector<double>& x, std::int64_t o, std::int64_t n, std::int64_t inner, std::int64_t q) {
    Line line;
    for (std::int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(2 * ((o * n + j) * inner + q));
        line.emplace_back(x[at], x[at + 1]);
    }
    return line;
}

/// The relative l2 error of `got`, the transform of x, at all frequencies or at some.
double error_of(const Line& x, const Line& got, bool inverse) {
    const auto n = static_cast<std::int64_t>(x.size());
    const std::vector<Exact> factors = circle(n);
    const std::int64_t step = n <= 700 ? 1 : n / 7 + 1;
    long double error_energy = 0, total_energy = 0;
    for (std::int64_t k = 0; k < n; k += step) {
        Exact sum;
        std::int64_t t = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const Exact factor = factors[static_cast<std::size_t>(t)];
            sum += Exact(x[static_cast<std::size_t>(j)]) * (inverse ? std::conj(factor) : factor);
            t += k;
            if (t >= n) t -= n;
        }
        error_energy += std::norm(sum - Exact(got[static_cast<std::size_t>(k)]));
        total_energy += std::norm(sum);
    }
    return static_cast<double>(std::sqrt(error_energy / total_energy));
}

/// Error bound from the number of passes; non-smooth lengths use two longer transforms.
double allowed(DType dtype, std::int64_t n) {
    const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
    return unit * (6 + 1.2 * std::log2(static_cast<double>(n) + 1));
}

std::vector<std::int64_t> lengths() {
    if (small_cases()) return {1, 2, 6, 7, 11, 16, 35, 64};
    std::vector<std::int64_t> total_energy;
    for (std::int64_t n = 1; n <= 64; ++n) total_energy.push_back(n);
    for (const std::int64_t n :
         {81, 97, 100, 121, 127, 128, 143, 210, 243, 251, 256, 272, 320, 343, 360, 512, 625, 630})
        total_energy.push_back(n);
    return total_energy;
}

/// Algorithms for long transforms: vectors along a row, passes over memory, convolutions.
std::vector<std::int64_t> long_lengths() {
    if (small_cases()) return {};
    return {1009, 1024, 1536,  2048,  2187,  3125,  4093,  4096,  4097,
            5040, 8192, 10007, 16384, 16807, 32768, 46656, 65536, 100000};
}

std::string check(const Tensor& x, const Tensor& y, std::int64_t outer, std::int64_t inner, bool inverse) {
    const std::vector<double> in = values(x), out = values(y);
    const std::int64_t n = outer * inner == 0 ? 1 : x.numel() / (2 * outer * inner);
    for (std::int64_t o = 0; o < outer; o += std::max<std::int64_t>(1, outer - 1))
        for (std::int64_t q = 0; q < inner; q += std::max<std::int64_t>(1, inner - 1)) {
            const double error = error_of(line_of(in, o, n, inner, q), line_of(out, o, n, inner, q), inverse);
            if (!(error <= allowed(x.dtype(), n)))
                return "n = " + std::to_string(n) + ", line " + std::to_string(o) + ", " + std::to_string(q) +
                       ": relative error " + std::to_string(error / allowed(x.dtype(), n)) + " of what is allowed";
        }
    return "";
}

std::string message(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace

TEST_CASE("fft: the numbers 1, 2, 3, 4, complex and real, and back") {
    const std::vector<double> samples{1, 0, 2, 0, 3, 0, 4, 0}, spectrum{10, 0, -2, 2, -2, 0, -2, -2};
    CHECK(difference(fft::fft(tensor(samples, {4, 2})), spectrum, {1e-5}) == "");
    CHECK(difference(fft::ifft(tensor(spectrum, {4, 2})), samples, {1e-5}) == "");
    const Tensor real_spectrum = fft::rfft(tensor({1, 2, 3, 4}, {4}));
    CHECK(difference(real_spectrum, {10, 0, -2, 2, -2, 0}, {1e-5}) == "");
    CHECK(difference(fft::irfft(real_spectrum), {1, 2, 3, 4}, {1e-5}) == "");
}

TEST_CASE("fft: rows of many lengths, forward and inverse") {
    std::uint64_t seed = 0;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : floats())
            for (const std::int64_t n : lengths()) {
                const std::int64_t rows = n % 3 == 0 ? 17 : n % 3 == 1 ? 3 : 1;
                const Tensor x = random_tensor({rows, n, 2}, ++seed, dtype);
                CHECK(check(x, fft::fft(x), rows, 1, false) == "");
                CHECK(check(x, fft::ifft(x, -1, -1, "forward"), rows, 1, true) == "");
            }
    }
}

TEST_CASE("fft: long rows") {
    std::uint64_t seed = 100;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : floats())
            for (const std::int64_t n : long_lengths()) {
                const std::int64_t rows = n % 2 == 0 ? 2 : 1;
                const Tensor x = random_tensor({rows, n, 2}, ++seed, dtype);
                CHECK(check(x, fft::fft(x), rows, 1, false) == "");
                if (n < 5000) CHECK(check(x, fft::ifft(x, -1, -1, "forward"), rows, 1, true) == "");
            }
    }
    if (small_cases()) return;
    const std::int64_t n = std::int64_t{1} << 20;
    const Tensor x = random_tensor({1, n, 2}, 5);
    CHECK(check(x, fft::fft(x), 1, 1, false) == "");
}

TEST_CASE("fft: an axis in the middle") {
    std::uint64_t seed = 200;
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : floats())
            for (const std::int64_t inner : {3, 16, 37})
                for (const std::int64_t n : {2, 8, 30, 11, 64, 105}) {
                    if (small_cases() && (n > 11 || inner > 16)) continue;
                    const Tensor x = random_tensor({2, n, inner, 2}, ++seed, dtype);
                    CHECK(check(x, fft::fft(x, -1, 1), 2, inner, false) == "");
                }
    }
    if (small_cases()) return;
    for (const KernelStyle style : kernel_styles()) {  // several passes over memory
        const ops::KernelStyleScope scope(style);
        for (const std::int64_t n : {4096, 3000, 1021, 8192}) {
            const Tensor x = random_tensor({1, n, 5, 2}, ++seed);
            CHECK(check(x, fft::fft(x, -1, 1), 1, 5, false) == "");
        }
    }
}

TEST_CASE("fft: views of any strides") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const std::int64_t n : {6, 16, 22, 256, 8192}) {
            if (n > 22 && small_cases()) continue;
            CAPTURE(n);
            const auto same = [&](const Tensor& view, std::int64_t axis) {
                const Tensor copy = view.clone();
                CHECK(difference(fft::fft(view, -1, axis), values(fft::fft(copy, -1, axis)),
                                 tolerance(view.dtype(), static_cast<double>(n), 2)) == "");
                CHECK(check(movedim(copy, axis, -2).clone(), movedim(fft::fft(view, -1, axis), axis, -2).clone(),
                            copy.numel() / (2 * n), 1, false) == "");
            };
            same(permute(random_tensor({n, 19, 2}, 1), {1, 0, 2}), 1);
            same(slice(random_tensor({5, 2 * n + 3, 2}, 2), 1, 1, 2 * n + 1, 2), 1);
            same(slice(random_tensor({7, n, 2}, 3), 0, 0, 7, 3), 1);
            same(flip(random_tensor({3, n, 2}, 4), {1}), 1);
            same(expand(random_tensor({1, n, 2}, 5), {4, n, 2}), 1);
            same(permute(random_tensor({3, n, 4, 2}, 6), {2, 1, 0, 3}), 1);
            same(permute(random_tensor({2, n, 3}, 7), {2, 1, 0}), 1);  // pairs that are not contiguous
            same(slice(random_tensor({2, n, 7, 2}, 8), 2, 1, 7, 2), 1);
        }
    }
}

TEST_CASE("fft: a real transform is half of the complex one") {
    std::uint64_t seed = 300;
    std::vector<std::int64_t> sizes = lengths();
    for (const std::int64_t n : long_lengths()) sizes.push_back(n);
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        CAPTURE(style == KernelStyle::simd);
        for (const DType dtype : floats())
            for (const std::int64_t n : sizes) {
                CAPTURE(n);
                const std::int64_t rows = n % 3 == 0 ? 18 : n % 3 == 1 ? 3 : 1;
                const Tensor x = random_tensor({rows, n}, ++seed, dtype), y = fft::rfft(x);
                const Tensor spectrum = fft::fft(complex(x, zeros_like(x)));
                CHECK(y.shape() == Shape{rows, n / 2 + 1, 2});
                const double scale = std::sqrt(static_cast<double>(n)) * 3;
                const Tolerance close{.absolute = scale * allowed(dtype, n)};
                CHECK(difference(y, values(slice(spectrum, 1, 0, n / 2 + 1)), close) == "");
                CHECK(difference(fft::irfft(y, n), values(x), {.absolute = 3 * allowed(dtype, n)}) == "");
                // Imaginary parts that no real signal has are ignored.
                const Tensor k = reshape(arange(0, n / 2 + 1, 1, {dtype}), {n / 2 + 1, 1});
                const Tensor edge = (k == 0) | (k * 2 == static_cast<double>(n));
                const Tensor odd_length =
                    y + where(edge, complex(zeros({rows, n / 2 + 1}, {dtype}), ones({rows, n / 2 + 1}, {dtype})), 0);
                CHECK(difference(fft::irfft(odd_length, n), values(x), {.absolute = 3 * allowed(dtype, n)}) == "");
            }
    }
}

TEST_CASE("fft: gradients of long transforms are transforms") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const std::int64_t n : {256, 600, 251}) {
            if (small_cases() && n != 256) continue;
            CAPTURE(n);
            Tensor x = random_tensor({2, n, 2}, 1).set_requires_grad();
            const Tensor g = random_tensor({2, n, 2}, 2);
            fft::fft(x).backward(g);
            CHECK(difference(x.grad(), values(fft::ifft(g, -1, -1, "forward")), {1e-5, 1e-5}) == "");
            // Real transforms of rows and their inverses, as matrices on both sides.
            Tensor real = random_tensor({2, n}, 3).set_requires_grad(),
                   half_spectrum = random_tensor({2, n / 2 + 1, 2}, 4);
            const Tensor other = random_tensor({2, n / 2 + 1, 2}, 5), back = random_tensor({2, n}, 6);
            fft::rfft(real).backward(other);
            CHECK(sum(real.grad() * back).item<float>() ==
                  doctest::Approx(sum(fft::rfft(back) * other).item<float>()).epsilon(1e-3));
            half_spectrum.set_requires_grad();
            fft::irfft(half_spectrum, n).backward(back);
            CHECK(sum(half_spectrum.grad() * other).item<float>() ==
                  doctest::Approx(sum(fft::irfft(other, n) * back).item<float>()).epsilon(1e-3));
        }
    }
}

TEST_CASE("fft: f16 and bf16 are computed in f32") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : {DType::f16, DType::bf16}) {
            const Tensor x = random_tensor({3, 48, 2}, 1, dtype), upcast = x.to(DType::f32);
            const Tensor y = fft::fft(x);
            CHECK(y.dtype() == dtype);
            CHECK(difference(y, values(fft::fft(upcast).to(dtype)), {}) == "");
            const Tensor real = random_tensor({3, 48}, 2, dtype);
            CHECK(difference(fft::rfft(real), values(fft::rfft(real.to(DType::f32)).to(dtype)), {}) == "");
        }
    }
    const Tensor integers = Tensor::from<std::int32_t>({1, 2, 3, 4}, {4});
    CHECK(difference(fft::rfft(integers), {10, 0, -2, 2, -2, 0}, {1e-6}) == "");
}

TEST_CASE("fft: no rows, and a single number") {
    CHECK(fft::fft(zeros({0, 6, 2})).shape() == Shape{0, 6, 2});
    CHECK(fft::rfft(zeros({3, 0, 6})).shape() == Shape{3, 0, 4, 2});
    CHECK(fft::irfft(zeros({0, 4, 2})).shape() == Shape{0, 6});
    CHECK(values(fft::fft(Tensor::from<float>({2, 3}, {1, 2}))) == std::vector<double>{2, 3});
    CHECK(values(fft::rfft(Tensor::from<float>({2}, {1}))) == std::vector<double>{2, 0});
    CHECK(values(fft::irfft(Tensor::from<float>({2, 3}, {1, 2}), 1)) == std::vector<double>{2});
    CHECK(values(fft::rfft(Tensor::from<float>({2, 3}, {2}))) == std::vector<double>{5, 0, -1, 0});
}

TEST_CASE("fft: captured and replayed, with tables created during the capture") {
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const std::int64_t n : {77, 1120, 34}) {  // lengths used by no other test
            const auto call = [&](const std::vector<Tensor>& in) {
                return std::vector{fft::irfft(fft::rfft(in[0]) * 2.0, n), fft::fft(in[1])};
            };
            auto step = capture(call);
            for (std::uint64_t seed = 1; seed <= 3; ++seed) {
                const Tensor a = random_tensor({3, n}, seed), b = random_tensor({2, n, 2}, seed + 10);
                const std::vector<Tensor> got = step({a, b}), expected = call({a, b});
                CHECK(values(got[0]) == values(expected[0]));
                CHECK(values(got[1]) == values(expected[1]));
            }
        }
    }
}

TEST_CASE("fft: error messages") {
    const Tensor x = zeros({3, 8, 2}), real = zeros({3, 8});
    const auto begins = [&](const std::function<void()>& call, const std::string& message_start) {
        CHECK(message(call).substr(0, message_start.size()) == message_start);
    };
    begins([&] { (void)fft::fft(real); },
           "fft::fft: expected x of complex numbers, as pairs along a last axis of 2, got [3, 8]");
    begins([&] { (void)fft::fft(x, 0); }, "fft::fft: expected a length of at least 1, or -1 for that of x, got 0");
    begins(
        [&] {
            (void)fft::fft(zeros({3, 0, 2}));
        },
        "fft::fft: expected at least one element along the axis, got x of [3, 0, 2]");
    begins([&] { (void)fft::fft(x, -1, 2); }, "fft::fft: ");
    begins([&] { (void)fft::ifft(x, -1, -1, "half"); },
           "fft::ifft: expected norm \"backward\", \"ortho\" or \"forward\", got \"half\"");
    begins([&] { (void)fft::fft2(zeros({3, 2})); }, "fft::fft2: ");
    begins([&] { (void)fft::fftn(x, {2, 2}, {0}); }, "fft::fftn: expected as many sizes as axes, got [2, 2] and [0]");
    begins([&] { (void)fft::fftn(x, {}, {0, 0}); }, "fft::fftn: expected each axis once, got [0, 0]");
    begins([&] { (void)fft::irfft(zeros({3, 1, 2})); }, "fft::irfft: expected at least one element along the axis");
    begins([&] { (void)fft::fftfreq(0); }, "fft::fftfreq: expected an n of at least 1, got 0");
    begins([&] { (void)fft::dct(zeros({0})); }, "fft::dct: ");
    begins([&] { (void)complex_mul(real, x); }, "complex_mul: expected a of complex numbers");
}
