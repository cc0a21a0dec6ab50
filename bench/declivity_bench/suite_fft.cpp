// Fourier transforms, compared with FFTW with measured plans and one thread per core.
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peers.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

struct FftCase {
    std::string name;
    std::vector<std::int64_t> sizes;  ///< of the last axes, which are transformed
    std::int64_t batch = 1;
    bool real = false;
    std::string group = {};

    [[nodiscard]] std::int64_t element_count() const {
        std::int64_t all = 1;
        for (const std::int64_t size : sizes) all *= size;
        return all;
    }
    /// FFTW's conventional FLOP count.
    [[nodiscard]] double flops() const {
        const auto n = static_cast<double>(element_count());
        return (real ? 2.5 : 5) * n * std::log2(n) * static_cast<double>(batch);
    }
};

std::vector<FftCase> cases() {
    constexpr std::int64_t points = std::int64_t{1} << 21;
    std::vector<FftCase> all;
    const auto add = [&](std::vector<std::int64_t> sizes, bool real, const std::string& group) {
        FftCase test_case{.name = {}, .sizes = std::move(sizes), .real = real, .group = group};
        test_case.batch = std::max<std::int64_t>(1, points / test_case.element_count());
        test_case.name =
            fmt::format("{} {} x {}", real ? "real" : "complex", test_case.batch, fmt::join(test_case.sizes, "x"));
        all.push_back(std::move(test_case));
    };
    for (const bool real : {false, true}) {
        for (int bits = 8; bits <= 22; ++bits) add({std::int64_t{1} << bits}, real, real ? "real" : "");
        for (const std::int64_t n : {60, 400, 1000, 1536, 3000, 44100, 100000}) add({n}, real, "other lengths");
        add({10007}, real, "primes");
        add({512, 512}, real, "planes");
        add({1000, 1000}, real, "planes");
    }
    return all;
}

/// Compares some elements of the first transform with sums in double.
std::string wrong_number(const FftCase& test_case, const std::vector<float>& x, const std::vector<float>& y) {
    const auto n = test_case.element_count();
    double norm = 0;
    for (std::int64_t j = 0; j < n; ++j)
        for (int part = 0; part < (test_case.real ? 1 : 2); ++part) {
            const auto at = double{x[static_cast<std::size_t>(test_case.real ? j : 2 * j + part)]};
            norm += at * at;
        }
    const std::int64_t last = test_case.sizes.back(), columns = test_case.real ? last / 2 + 1 : last;
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, columns / 3, columns - 1}) {
        const std::int64_t row = test_case.sizes.size() == 1 ? 0 : test_case.sizes[0] / 3;
        std::complex<double> sum;
        for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t i = j / last, c = j % last;
            const double periods =
                static_cast<double>(c * k % last) / static_cast<double>(last) +
                static_cast<double>(i * row % test_case.sizes[0]) / static_cast<double>(test_case.sizes[0]);
            const auto at = static_cast<std::size_t>(test_case.real ? j : 2 * j);
            const std::complex<double> number(x[at], test_case.real ? 0.0 : double{x[at + 1]});
            sum += number * std::polar(1.0, -2 * std::numbers::pi * periods);
        }
        const auto at = static_cast<std::size_t>(2 * (row * columns + k));
        const std::complex<double> got(y[at], y[at + 1]);
        if (!(std::abs(got - sum) <= 2e-6 * std::sqrt(norm)))
            return fmt::format("number {} of row {} is {} + {} i, expected {} + {} i", k, row, got.real(), got.imag(),
                               sum.real(), sum.imag());
    }
    return {};
}

void time_case(Report& report, const FftCase& test_case) {
    const NoGrad no_grad;
    const Device device = report.device();
    Shape shape{test_case.batch};
    Dims axes;
    for (const std::int64_t size : test_case.sizes) {
        axes.push_back(shape.rank());
        shape.push_back(size);
    }
    if (!test_case.real) shape.push_back(2);
    const Tensor x = uniform(shape, -1, 1);
    const auto call = [&] { return test_case.real ? fft::rfftn(x, {}, axes) : fft::fftn(x, {}, axes); };
    const std::vector<float> host = x.to_vector<float>();
    if (const std::string wrong = wrong_number(test_case, host, call().to_vector<float>()); !wrong.empty())
        return report.fail(test_case.name, wrong);
    std::vector<Contender> peers;
    if (report.with_peers())
        if (auto peer = fftw({test_case.sizes, test_case.batch, test_case.real, host.data()}))
            peers.push_back(*std::move(peer));
    report.measure({.name = test_case.name, .flops = test_case.flops(), .group = test_case.group},
                   {"ours", [&](int) { (void)call().view(); }, [device] { device.synchronize(); }}, peers);
}

const Suite fft_suite("fft", "Fourier transforms of complex and real numbers, compared with FFTW", [](Report& report) {
    report.begin("fft");
    for (const FftCase& test_case : cases())
        if (report.is_selected(test_case.name)) time_case(report, test_case);
    report.end();
});

}  // namespace
}  // namespace declivity::bench
