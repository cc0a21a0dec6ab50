#include "fft_tables.hpp"

#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <mutex>
#include <numbers>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "fft_plan.hpp"
#include "runtime/per_device.hpp"
#include "runtime/capture.hpp"

namespace declivity::ops {
namespace {

using Complex = std::complex<double>;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // limit for all tables of a device

enum class Table : std::uint8_t { passes, segment, rows, circle, chirp, spectrum };
using Key = std::tuple<Table, DType, std::int64_t, std::int64_t, std::int64_t>;

struct Tables {
    std::mutex mutex;
    std::map<Key, View> views;
    std::size_t bytes = 0;
};

/// exp(-2 pi i t / n), computed from angles below an eighth of a turn.
Complex root_of_unity(std::int64_t t, std::int64_t n) {
    t %= n;
    const std::int64_t eighths = 8 * t / n;  // octant, 0 to 7
    const auto at = [&](std::int64_t over, std::int64_t quarters) {
        // The angle relative to the nearest multiple of a quarter turn.
        const double angle =
            2 * std::numbers::pi * (static_cast<double>(4 * over - quarters * n) / (4 * static_cast<double>(n)));
        return std::pair{std::cos(angle), std::sin(angle)};
    };
    const std::int64_t quarter = (eighths + 1) / 2;
    const auto [c, s] = at(t, quarter);
    switch (quarter % 4) {
        case 0:
            return {c, -s};
        case 1:
            return {-s, -c};
        case 2:
            return {-c, s};
        default:
            return {s, c};
    }
}

/// Returns make() converted to a type, cached by key.
View cached(const Device& device, const Key& key, const std::function<std::vector<double>()>& make) {
    auto& tables = declivity::detail::per_device<Tables>(device);
    const std::scoped_lock lock(tables.mutex);
    if (const auto found = tables.views.find(key); found != tables.views.end()) return found->second;
    const std::vector<double> numbers = make();
    const CapturePause once;
    const DType dtype = std::get<DType>(key);
    View view = View::make(device, dtype, {static_cast<std::int64_t>(numbers.size())});
    if (dtype == DType::f64) {
        upload(view.buffer, 0, std::as_bytes(std::span(numbers)));
    } else {
        const std::vector<float> narrow(numbers.begin(), numbers.end());
        upload(view.buffer, 0, std::as_bytes(std::span(narrow)));
    }
    // Tables in use are owned by their users.
    if (tables.bytes + view.bytes() > kMaxBytes) {
        tables.views.clear();
        tables.bytes = 0;
    }
    tables.bytes += view.bytes();
    tables.views.emplace(key, view);
    return view;
}

void append(std::vector<double>& to, const Complex& number) {
    to.push_back(number.real());
    to.push_back(number.imag());
}

std::vector<Complex> circle(std::int64_t n) {
    std::vector<Complex> all;
    all.reserve(static_cast<std::size_t>(n));
    for (std::int64_t t = 0; t < n; ++t) all.push_back(root_of_unity(t, n));
    return all;
}

/// exp(pi i j^2 / n).
Complex chirp(std::int64_t j, std::int64_t n) { return std::conj(root_of_unity(j * j % (2 * n), 2 * n)); }

/// A transform on the host, of a smooth length.
std::vector<Complex> transformed(std::vector<Complex> x) {
    const auto n = static_cast<std::int64_t>(x.size());
    const std::vector<Complex> factors = circle(n);
    const FftPasses passes = fft_passes(n);
    std::vector<Complex> y(x.size());
    std::int64_t s = 1, m = n;
    for (std::int32_t pass = 0; pass < passes.count; ++pass) {
        const std::int64_t r = passes.radix(pass), stride = n / r;
        m /= r;
        for (std::int64_t p = 0; p < m; ++p)
            for (std::int64_t q = 0; q < s; ++q)
                for (std::int64_t k = 0; k < r; ++k) {
                    Complex sum;
                    for (std::int64_t j = 0; j < r; ++j)
                        sum += x[static_cast<std::size_t>(q + s * (p + m * j))] *
                               factors[static_cast<std::size_t>(j * k % r * stride)];
                    y[static_cast<std::size_t>(q + s * (r * p + k))] =
                        sum * factors[static_cast<std::size_t>(p * k * s)];
                }
        s *= r;
        std::swap(x, y);
    }
    return x;
}

}  // namespace

View fft_pass_table(const Device& device, DType dtype, std::int64_t n, bool several) {
    return cached(device, {Table::passes, dtype, n, several ? 1 : 0, 0}, [&] {
        std::vector<double> all;
        const FftPasses passes = fft_passes(n, several);
        std::int64_t m = n;
        for (std::int32_t pass = 0; pass < passes.count; ++pass) {
            const std::int64_t r = passes.radix(pass), length = m;
            m /= r;
            for (std::int64_t p = 0; p < m; ++p)
                for (std::int64_t k = 1; k < r; ++k) append(all, root_of_unity(p * k, length));
        }
        return all;
    });
}

View fft_segment_table(const Device& device, DType dtype, std::int64_t n, std::int64_t m, std::int64_t block) {
    return cached(device, {Table::segment, dtype, n, m, block}, [&] {
        std::vector<double> all;
        const auto rows = [&](std::int64_t count, std::int64_t step) {
            for (std::int64_t k = 0; k < count; ++k) {
                for (std::int64_t p = 0; p < m; ++p) all.push_back(root_of_unity(p * k * step, n * m).real());
                for (std::int64_t p = 0; p < m; ++p) all.push_back(root_of_unity(p * k * step, n * m).imag());
            }
        };
        rows(block, 1);
        rows(ceil_div(n, block), block);
        return all;
    });
}

View fft_row_table(const Device& device, DType dtype, std::int64_t n, std::int64_t lanes) {
    return cached(device, {Table::rows, dtype, n, lanes, 0}, [&] {
        std::vector<double> all;
        for (std::int64_t k = 0; k < n / lanes; ++k) {
            for (std::int64_t b = 0; b < lanes; ++b) all.push_back(root_of_unity(b * k, n).real());
            for (std::int64_t b = 0; b < lanes; ++b) all.push_back(root_of_unity(b * k, n).imag());
        }
        return all;
    });
}

View fft_circle_table(const Device& device, DType dtype, std::int64_t n, std::int64_t count) {
    return cached(device, {Table::circle, dtype, n, count, 0}, [&] {
        std::vector<double> all;
        for (std::int64_t k = 0; k < count; ++k) append(all, root_of_unity(k, n));
        return all;
    });
}

View fft_chirp_table(const Device& device, DType dtype, std::int64_t n) {
    return cached(device, {Table::chirp, dtype, n, 0, 0}, [&] {
        std::vector<double> all;
        for (std::int64_t j = 0; j < n; ++j) append(all, std::conj(chirp(j, n)));
        return all;
    });
}

View fft_chirp_spectrum(const Device& device, DType dtype, std::int64_t n, std::int64_t padded) {
    return cached(device, {Table::spectrum, dtype, n, padded, 0}, [&] {
        std::vector<Complex> signal(static_cast<std::size_t>(padded));
        for (std::int64_t j = 0; j < n; ++j) {
            signal[static_cast<std::size_t>(j)] = chirp(j, n);
            if (j > 0) signal[static_cast<std::size_t>(padded - j)] = chirp(j, n);
        }
        std::vector<double> all;
        for (const Complex& complex : transformed(std::move(signal)))
            append(all, complex / static_cast<double>(padded));
        return all;
    });
}

}  // namespace declivity::ops
