// Fourier transforms, complex numbers and spectrograms as cases of the catalogue, with reference sums in double.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {
namespace {

using Complex = std::complex<double>;

/// Complex numbers on the host.
struct Spectrum {
    Shape shape;
    std::vector<Complex> elements;

    /// The input has pairs, with a shape that ends in 2, or real numbers.
    static Spectrum pairs(const Values& values, Shape shape) {
        Spectrum result{.shape = {}, .elements = {}};
        for (int i = 0; i + 1 < shape.rank(); ++i) result.shape.push_back(shape[i]);
        for (std::size_t i = 0; i < values.size(); i += 2) result.elements.emplace_back(values[i], values[i + 1]);
        return result;
    }
    static Spectrum reals(const Values& values, const Shape& shape) {
        return {shape, std::vector<Complex>(values.begin(), values.end())};
    }
    [[nodiscard]] Values as_pairs() const {
        Values out;
        for (const Complex& item : elements) {
            out.push_back(item.real());
            out.push_back(item.imag());
        }
        return out;
    }
    [[nodiscard]] Values as_reals() const {
        Values out;
        for (const Complex& item : elements) out.push_back(item.real());
        return out;
    }
};

/// Applies `change` to each line along an axis.
Spectrum each_line(const Spectrum& x, int axis,
                   const std::function<std::vector<Complex>(const std::vector<Complex>&)>& change) {
    std::int64_t outer = 1, inner = 1;
    const std::int64_t n = x.shape[axis];
    for (int i = 0; i < axis; ++i) outer *= x.shape[i];
    for (int i = axis + 1; i < x.shape.rank(); ++i) inner *= x.shape[i];
    Spectrum y{x.shape, {}};
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t q = 0; q < inner; ++q) {
            std::vector<Complex> line;
            for (std::int64_t j = 0; j < n; ++j)
                line.push_back(x.elements[static_cast<std::size_t>((o * n + j) * inner + q)]);
            line = change(line);
            const auto count = static_cast<std::int64_t>(line.size());
            y.shape[axis] = count;
            y.elements.resize(static_cast<std::size_t>(outer * count * inner));
            for (std::int64_t j = 0; j < count; ++j)
                y.elements[static_cast<std::size_t>((o * count + j) * inner + q)] = line[static_cast<std::size_t>(j)];
        }
    return y;
}

/// The defining sum, for n numbers: truncated, or zero-padded.
std::vector<Complex> dft_line(std::vector<Complex> x, std::int64_t n, bool inverse, double scale) {
    x.resize(static_cast<std::size_t>(n));
    std::vector<Complex> y;
    for (std::int64_t k = 0; k < n; ++k) {
        Complex sum;
        for (std::int64_t j = 0; j < n; ++j)
            sum += x[static_cast<std::size_t>(j)] *
                   std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(j * k % n) /
                                       static_cast<double>(n));
        y.push_back(sum * scale);
    }
    return y;
}

Spectrum dft(const Spectrum& x, int axis, std::int64_t n, bool inverse, double scale) {
    return each_line(x, axis, [&](const auto& line) { return dft_line(line, n, inverse, scale); });
}
Spectrum first_half(const Spectrum& x, int axis) {
    return each_line(x, axis, [](std::vector<Complex> line) {
        line.resize(line.size() / 2 + 1);
        return line;
    });
}
/// n numbers whose first half is given; the imaginary parts of real ones are ignored.
Spectrum hermitian_completion(const Spectrum& x, int axis, std::int64_t n) {
    return each_line(x, axis, [&](std::vector<Complex> line) {
        line.resize(static_cast<std::size_t>(n / 2 + 1));
        line[0] = line[0].real();
        if (n % 2 == 0) line.back() = line.back().real();
        for (std::int64_t k = n / 2 + 1; k < n; ++k) line.push_back(std::conj(line[static_cast<std::size_t>(n - k)]));
        return line;
    });
}
Spectrum conjugate(Spectrum x) {
    for (Complex& complex : x.elements) complex = std::conj(complex);
    return x;
}

Case unary_case(std::string name, const Shape& shape, const std::function<Tensor(const Tensor&)>& call,
                const std::function<Values(const Values&)>& reference, double terms = 10) {
    return {.name = std::move(name),
            .inputs = {{shape}},
            .call = [call](const Tensors& in) { return call(in[0]); },
            .reference = [reference](const Columns& in, DType) { return reference(in[0]); },
            .terms = terms,
            .gradient_tolerance = 1e-5};
}

void add_transforms(std::vector<Case>& all) {
    const Shape line{2, 6, 2}, odd{2, 5, 3, 2}, plane{2, 4, 6, 2}, real{3, 8}, real_plane{2, 4, 6};
    all.push_back(unary_case(
        "fft::fft", line, [](const Tensor& x) { return fft::fft(x); },
        [=](const Values& x) { return dft(Spectrum::pairs(x, line), 1, 6, false, 1).as_pairs(); }));
    all.push_back(unary_case(
        "fft::fft", odd, [](const Tensor& x) { return fft::fft(x, 11, 1, "ortho"); },
        [=](const Values& x) { return dft(Spectrum::pairs(x, odd), 1, 11, false, 1 / std::sqrt(11)).as_pairs(); }));
    all.push_back(unary_case(
        "fft::ifft", odd, [](const Tensor& x) { return fft::ifft(x, 4, -2); },
        [=](const Values& x) { return dft(Spectrum::pairs(x, odd), 1, 4, true, 0.25).as_pairs(); }));
    all.push_back(unary_case(
        "fft::ifft", line, [](const Tensor& x) { return fft::ifft(x, -1, -1, "forward"); },
        [=](const Values& x) { return dft(Spectrum::pairs(x, line), 1, 6, true, 1).as_pairs(); }));
    for (const std::int64_t n : {8, 7, 10}) {
        const double scale = 1 / static_cast<double>(n);
        all.push_back(unary_case(
            "fft::rfft", real, [=](const Tensor& x) { return fft::rfft(x, n, -1, "forward"); },
            [=](const Values& x) {
                return first_half(dft(Spectrum::reals(x, real), 1, n, false, scale), 1).as_pairs();
            }));
        all.push_back(unary_case(
            "fft::ihfft", real, [=](const Tensor& x) { return fft::ihfft(x, n); },
            [=](const Values& x) {
                return first_half(dft(Spectrum::reals(x, real), 1, n, true, scale), 1).as_pairs();
            }));
        all.push_back(unary_case(
            "fft::irfft", line, [=](const Tensor& x) { return fft::irfft(x, n == 10 ? -1 : n, 1); },
            [=](const Values& x) {
                return dft(hermitian_completion(Spectrum::pairs(x, line), 1, n), 1, n, true, scale).as_reals();
            }));
        all.push_back(unary_case(
            "fft::hfft", line, [=](const Tensor& x) { return fft::hfft(x, n); },
            [=](const Values& x) {
                return dft(hermitian_completion(Spectrum::pairs(x, line), 1, n), 1, n, false, 1).as_reals();
            }));
        for (std::size_t i = all.size() - 4; i < all.size(); ++i) all[i].sampled = true;
    }
    for (const bool two : {false, true}) {
        const std::string n = two ? "2" : "n";
        const auto forward = [=](const Spectrum& x) { return dft(dft(x, 1, 4, false, 1), 2, 5, false, 1); };
        all.push_back(unary_case(
            "fft::fft" + n, plane,
            [=](const Tensor& x) {
                return two ? fft::fft2(x, {4, 5}) : fft::fftn(x, {4, 5}, {1, 2});
            },
            [=](const Values& x) { return forward(Spectrum::pairs(x, plane)).as_pairs(); }, 20));
        all.push_back(unary_case(
            "fft::ifft" + n, plane,
            [=](const Tensor& x) {
                return two ? fft::ifft2(x, {}, {0, -1}, "ortho") : fft::ifftn(x);
            },
            [=](const Values& x) {
                const Spectrum y = dft(dft(Spectrum::pairs(x, plane), 2, 6, true, 1), 0, 2, true, 1);
                Spectrum result = two ? y : dft(y, 1, 4, true, 1);
                for (Complex& item : result.elements) item /= two ? std::sqrt(12) : 48;
                return result.as_pairs();
            },
            50));
        all.push_back(unary_case(
            "fft::rfft" + n, real_plane,
            [=](const Tensor& x) {
                return two ? fft::rfft2(x) : fft::rfftn(x, {3, 7});
            },
            [=](const Values& x) {
                const Spectrum half = first_half(dft(Spectrum::reals(x, real_plane), 2, two ? 6 : 7, false, 1), 2);
                return dft(half, 1, two ? 4 : 3, false, 1).as_pairs();
            },
            30));
        all.push_back(unary_case(
            "fft::irfft" + n, plane,
            [=](const Tensor& x) {
                return two ? fft::irfft2(x) : fft::irfftn(x, {4, 7});
            },
            [=](const Values& x) {
                const std::int64_t last = two ? 10 : 7;
                const Spectrum y = dft(Spectrum::pairs(x, plane), 1, 4, true, 0.25);
                return dft(hermitian_completion(y, 2, last), 2, last, true, 1 / static_cast<double>(last)).as_reals();
            },
            30));
    }
    for (const std::int64_t n : {6, 5, 1}) {
        const auto dct_basis = [](std::int64_t k, std::int64_t j, std::int64_t count) {
            return std::cos(std::numbers::pi * static_cast<double>(k * (2 * j + 1)) / (2 * static_cast<double>(count)));
        };
        const auto scale = [n](std::int64_t k) { return std::sqrt((k == 0 ? 0.25 : 0.5) / static_cast<double>(n)); };
        all.push_back(unary_case(
            "fft::dct", {3, n}, [](const Tensor& x) { return fft::dct(x, -1, "ortho"); },
            [=](const Values& x) {
                return table({3, n}, [&](const Dims& at) {
                    double sum = 0;
                    for (std::int64_t j = 0; j < n; ++j)
                        sum += 2 * dct_basis(at[1], j, n) * x[static_cast<std::size_t>(at[0] * n + j)];
                    return sum * scale(at[1]);
                });
            }));
        all.push_back(unary_case(
            "fft::idct", {n, 3}, [](const Tensor& x) { return fft::idct(x, 0); },
            [=](const Values& x) {
                return table({n, 3}, [&](const Dims& at) {
                    double sum = 0;
                    for (std::int64_t k = 0; k < n; ++k)
                        sum += (k == 0 ? 0.5 : 1) * dct_basis(k, at[0], n) * x[static_cast<std::size_t>(k * 3 + at[1])];
                    return sum / static_cast<double>(n);
                });
            }));
        all[all.size() - 1].sampled = all[all.size() - 2].sampled = n != 6;
    }
}

void add_frequencies(std::vector<Case>& all) {
    all.push_back(unary_case(
        "fft::fftfreq", {7},
        [](const Tensor& x) {
            return x * fft::fftfreq(7, 0.25, {x.dtype(), x.device()});
        },
        [](const Values& x) {
            return table({7}, [&](const Dims& at) {
                return x[static_cast<std::size_t>(at[0])] * static_cast<double>(at[0] < 4 ? at[0] : at[0] - 7) / 1.75;
            });
        }));
    all.push_back(unary_case(
        "fft::rfftfreq", {5},
        [](const Tensor& x) {
            return x * fft::rfftfreq(8, 0.5, {x.dtype(), x.device()});
        },
        [](const Values& x) {
            return table({5}, [&](const Dims& at) {
                return x[static_cast<std::size_t>(at[0])] * static_cast<double>(at[0]) / 4;
            });
        }));
    for (Case* test_case : {&all[all.size() - 1], &all[all.size() - 2]}) test_case->error_name = "dtype";
    const auto rolled = [](const Values& x, std::int64_t rows, std::int64_t columns) {
        return table({4, 5}, [&](const Dims& at) {
            return x[static_cast<std::size_t>((at[0] + rows) % 4 * 5 + (at[1] + columns) % 5)];
        });
    };
    all.push_back(unary_case(
        "fft::fftshift", {4, 5}, [](const Tensor& x) { return fft::fftshift(x); },
        [=](const Values& x) { return rolled(x, 2, 3); }));
    all.push_back(unary_case(
        "fft::ifftshift", {4, 5}, [](const Tensor& x) { return fft::ifftshift(x, {1}); },
        [=](const Values& x) { return rolled(x, 0, 2); }));
}

void add_complex(std::vector<Case>& all) {
    const Shape pairs{3, 5, 2};
    const auto pair_case = [&](const char* name, const std::function<Tensor(const Tensor&, const Tensor&)>& call,
                               const std::function<Complex(double, double)>& reference) {
        all.push_back({.name = name,
                       .inputs = {{{3, 5}}, {{5}}},
                       .call = [call](const Tensors& in) { return call(in[0], in[1]); },
                       .reference =
                           [reference](const Columns& in, DType) {
                               Spectrum result{{3, 5}, {}};
                               for (std::size_t i = 0; i < 15; ++i)
                                   result.elements.push_back(reference(in[0][i], in[1][i % 5]));
                               return result.as_pairs();
                           }});
    };
    pair_case(
        "complex", [](const Tensor& a, const Tensor& b) { return complex(a, b); },
        [](double a, double b) { return Complex(a, b); });
    pair_case(
        "polar", [](const Tensor& a, const Tensor& b) { return polar(a, b); },
        [](double a, double b) { return Complex(a * std::cos(b), a * std::sin(b)); });
    const auto part = [&](const char* name, Tensor (*call)(const Tensor&),
                          const std::function<double(Complex)>& function) {
        all.push_back(unary_case(name, pairs, call, [=](const Values& x) {
            Values out;
            for (const Complex& pair : Spectrum::pairs(x, pairs).elements) out.push_back(function(pair));
            return out;
        }));
    };
    part("real", real, [](Complex z) { return z.real(); });
    part("imag", imag, [](Complex z) { return z.imag(); });
    part("complex_abs", complex_abs, [](Complex z) { return std::abs(z); });
    part("angle", angle, [](Complex z) { return std::arg(z); });
    all.push_back(unary_case("complex_conj", pairs, complex_conj,
                             [=](const Values& x) { return conjugate(Spectrum::pairs(x, pairs)).as_pairs(); }));
    all.push_back({.name = "complex_mul",
                   .inputs = {{pairs}, {{5, 2}}},
                   .call = [](const Tensors& in) { return complex_mul(in[0], in[1]); },
                   .reference =
                       [=](const Columns& in, DType) {
                           Spectrum x = Spectrum::pairs(in[0], pairs);
                           const Spectrum y = Spectrum::pairs(in[1], {5, 2});
                           for (std::size_t i = 0; i < 15; ++i) x.elements[i] *= y.elements[i % 5];
                           return x.as_pairs();
                       },
                   .terms = 4});
}

/// Bessel function I0, by its series.
double bessel(double x) {
    double sum = 0, term = 1;
    for (int k = 1; term > 1e-18 * sum; ++k) {
        sum += term;
        term *= x * x / (4.0 * k * k);
    }
    return sum;
}

void add_signal_windows(std::vector<Case>& all) {
    using Formula = std::function<double(double periods)>;
    const auto add = [&](const char* name, const std::function<Tensor(bool, const TensorOptions&)>& call,
                         const Formula& formula) {
        for (const bool periodic : {true, false}) {
            all.push_back(unary_case(
                name, {7},
                [=](const Tensor& x) {
                    return x * call(periodic, {x.dtype(), x.device()});
                },
                [=](const Values& x) {
                    return table({7}, [&](const Dims& at) {
                        return x[static_cast<std::size_t>(at[0])] *
                               formula(static_cast<double>(at[0]) / (periodic ? 7 : 6));
                    });
                }));
            all.back().error_name = "dtype";
            all.back().sampled = !periodic;
        }
    };
    const auto cosine = [](double periods) { return std::cos(2 * std::numbers::pi * periods); };
    add(
        "hann_window", [](bool p, const TensorOptions& o) { return hann_window(7, p, o); },
        [=](double t) { return 0.5 - 0.5 * cosine(t); });
    add(
        "hamming_window", [](bool p, const TensorOptions& o) { return hamming_window(7, p, 0.6, 0.4, o); },
        [=](double t) { return 0.6 - 0.4 * cosine(t); });
    add(
        "blackman_window", [](bool p, const TensorOptions& o) { return blackman_window(7, p, o); },
        [=](double t) { return 0.42 - 0.5 * cosine(t) + 0.08 * cosine(2 * t); });
    add(
        "bartlett_window", [](bool p, const TensorOptions& o) { return bartlett_window(7, p, o); },
        [](double t) { return 1 - std::abs(2 * t - 1); });
    add(
        "kaiser_window", [](bool p, const TensorOptions& o) { return kaiser_window(7, p, 8, o); },
        [](double t) { return bessel(8 * std::sqrt(std::max(0.0, 1 - (2 * t - 1) * (2 * t - 1)))) / bessel(8); });
}

struct FrameSizes {
    std::int64_t n_fft, hop, side;  ///< side: samples that are reflected at both ends
};

/// Frames of a signal times a window of n_fft samples, transformed: (frames, n_fft).
Spectrum framed_dft(const Values& x, const Values& window, const FrameSizes& sizes) {
    const auto length = static_cast<std::int64_t>(x.size());
    const auto at = [&](std::int64_t i) {
        i = i < 0 ? -i : i >= length ? 2 * (length - 1) - i : i;
        return x[static_cast<std::size_t>(i)];
    };
    const std::int64_t frames = (length + 2 * sizes.side - sizes.n_fft) / sizes.hop + 1;
    Spectrum result{{frames, sizes.n_fft}, {}};
    for (std::int64_t t = 0; t < frames; ++t)
        for (std::int64_t i = 0; i < sizes.n_fft; ++i)
            result.elements.emplace_back(at(t * sizes.hop + i - sizes.side) * window[static_cast<std::size_t>(i)]);
    return dft(result, 1, sizes.n_fft, false, 1);
}

/// Zero-padded on both sides.
Values zero_padded(const Values& window, std::int64_t n) {
    Values out(static_cast<std::size_t>(n));
    std::ranges::copy(window, out.begin() + static_cast<std::ptrdiff_t>((out.size() - window.size()) / 2));
    return out;
}

/// Transposes (frames, numbers) to (numbers, frames).
Spectrum transposed_spectrum(const Spectrum& x) {
    Spectrum result{{x.shape[1], x.shape[0]}, {}};
    for (std::int64_t k = 0; k < x.shape[1]; ++k)
        for (std::int64_t t = 0; t < x.shape[0]; ++t)
            result.elements.push_back(x.elements[static_cast<std::size_t>(t * x.shape[1] + k)]);
    return result;
}

void add_short_transforms(std::vector<Case>& all) {
    all.push_back(
        {.name = "stft",
         .inputs = {{{19}}, {{6}}},
         .call =
             [](const Tensors& in) {
                 return stft(in[0], 8, {.hop_length = 3, .win_length = 6, .window = in[1], .normalized = true});
             },
         .reference =
             [](const Columns& in, DType) {
                 Spectrum y = transposed_spectrum(first_half(framed_dft(in[0], zero_padded(in[1], 8), {8, 3, 4}), 1));
                 for (Complex& complex : y.elements) complex /= std::sqrt(8);
                 return y.as_pairs();
             },
         .terms = 10,
         .first_optional = 1});
    all.push_back(unary_case(
        "stft", {2, 15},
        [](const Tensor& x) { return stft(x, 7, {.hop_length = 2, .center = false, .onesided = false}); },
        [](const Values& x) {
            Values out;
            for (const std::ptrdiff_t row : {0, 1}) {
                const Values signal(x.begin() + row * 15, x.begin() + row * 15 + 15);
                const Values y = transposed_spectrum(framed_dft(signal, Values(7, 1), {7, 2, 0})).as_pairs();
                out.insert(out.end(), y.begin(), y.end());
            }
            return out;
        }));
    all.push_back(
        {.name = "istft",
         .inputs = {{{5, 6, 2}}, {{8}, 0.5, 1.5}},
         .call = [](const Tensors& in) { return istft(in[0], 8, {.hop_length = 3, .window = in[1], .length = 20}); },
         .reference =
             [](const Columns& in, DType) {
                 const Spectrum frames =
                     dft(hermitian_completion(transposed_spectrum(Spectrum::pairs(in[0], {5, 6, 2})), 1, 8), 1, 8, true,
                         0.125);
                 Values sum(30), weight(30), out;
                 for (std::size_t t = 0; t < 6; ++t)
                     for (std::size_t i = 0; i < 8; ++i) {
                         sum[3 * t + i] += frames.elements[8 * t + i].real() * in[1][i];
                         weight[3 * t + i] += in[1][i] * in[1][i];
                     }
                 for (std::size_t i = 4; i < 24; ++i) out.push_back(i < 23 ? sum[i] / weight[i] : 0);
                 return out;
             },
         .terms = 10,
         .gradient_tolerance = 1e-5,
         .first_optional = 1});
}

Values powers_of(const Spectrum& x) {
    Values out;
    for (const Complex& complex : x.elements) out.push_back(std::norm(complex));
    return out;
}

/// 4 filters by HTK's formula over 9 frequencies up to 500 Hz.
Values mel_filters() {
    Values points;
    const double last = 2595 * std::log10(1 + 500.0 / 700);
    for (int i = 0; i < 6; ++i) points.push_back(700 * (std::pow(10, last * i / 5 / 2595) - 1));
    return table({9, 4}, [&](const Dims& at) {
        const double f = 62.5 * static_cast<double>(at[0]);
        const auto i = static_cast<std::size_t>(at[1]);
        return std::max(0.0, std::min((f - points[i]) / (points[i + 1] - points[i]),
                                      (points[i + 2] - f) / (points[i + 2] - points[i + 1])));
    });
}

/// (4, 5): a signal of 40 samples, in frames of 16, 8 apart.
Values mels_of(const Values& x, const Values& window) {
    const Values powers = powers_of(transposed_spectrum(first_half(framed_dft(x, window, {16, 8, 8}), 1))),
                 bank = mel_filters();
    const std::int64_t frames = static_cast<std::int64_t>(powers.size()) / 9;
    return table({4, frames}, [&](const Dims& at) {
        double sum = 0;
        for (std::int64_t k = 0; k < 9; ++k)
            sum += bank[static_cast<std::size_t>(k * 4 + at[0])] * powers[static_cast<std::size_t>(k * frames + at[1])];
        return sum;
    });
}

void add_spectrograms(std::vector<Case>& all) {
    const auto mel = [](const Tensor& window) {
        return audio::MelSpectrogramOptions{
            .sample_rate = 1000, .n_mels = 4, .spectrogram = {.n_fft = 16, .window = window}};
    };
    const auto add = [&](const char* name, const std::function<Tensor(const Tensor&, const Tensor&)>& call,
                         const std::function<Values(const Values&, const Values&)>& reference) {
        all.push_back({.name = name,
                       .inputs = {{{40}}, {{16}, 0.5, 1.5}},
                       .call = [call](const Tensors& in) { return call(in[0], in[1]); },
                       .reference = [reference](const Columns& in, DType) { return reference(in[0], in[1]); },
                       .terms = 60,
                       .gradient_tolerance = 1e-5,
                       .first_optional = 1});
    };
    add(
        "audio::spectrogram",
        [](const Tensor& x, const Tensor& window) {
            return audio::spectrogram(
                x, {.n_fft = 16, .window = window, .power = 1.0, .normalized = audio::SpectrogramNorm::window});
        },
        [](const Values& x, const Values& window) {
            double squares = 0;
            for (const double value : window) squares += value * value;
            Values out;
            for (const Complex& complex :
                 transposed_spectrum(first_half(framed_dft(x, window, {16, 8, 8}), 1)).elements)
                out.push_back(std::abs(complex) / std::sqrt(squares));
            return out;
        });
    add(
        "audio::mel_spectrogram",
        [=](const Tensor& x, const Tensor& window) { return audio::mel_spectrogram(x, mel(window)) * 0.1; },
        [](const Values& x, const Values& window) {
            Values out = mels_of(x, window);
            for (double& output : out) output *= 0.1;
            return out;
        });
    add(
        "audio::mfcc",
        [=](const Tensor& x, const Tensor& window) {
            return audio::mfcc(x, {.n_mfcc = 3, .norm = "backward", .log_mels = true, .mel_spectrogram = mel(window)});
        },
        [](const Values& x, const Values& window) {
            const Values mels = mels_of(x, window);
            const std::int64_t frames = static_cast<std::int64_t>(mels.size()) / 4;
            return table({3, frames}, [&](const Dims& at) {
                double sum = 0;
                for (std::int64_t j = 0; j < 4; ++j)
                    sum += 2 * std::cos(std::numbers::pi * static_cast<double>(at[0] * (2 * j + 1)) / 8) *
                           std::log(mels[static_cast<std::size_t>(j * frames + at[1])] + 1e-6);
                return sum;
            });
        });
    all.push_back(unary_case(
        "audio::mel_filter_bank", {9, 4},
        [](const Tensor& x) {
            return x * audio::mel_filter_bank(9, 4, 1000, {}, {x.dtype(), x.device()});
        },
        [](const Values& x) {
            Values out = mel_filters();
            for (std::size_t i = 0; i < out.size(); ++i) out[i] *= x[i];
            return out;
        }));
    all.back().error_name = "dtype";
    all.push_back({.name = "audio::amplitude_to_db",
                   .inputs = {{{2, 3, 4}, 0.1, 4}},
                   .call =
                       [](const Tensors& in) {
                           return audio::amplitude_to_db(
                               in[0], {.multiplier = 20, .amin = 0.2, .db_multiplier = 0.5, .top_db = 12});
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (const double x : in[0]) out.push_back(20 * (std::log10(std::max(x, 0.2)) - 0.5));
                           const double largest = *std::ranges::max_element(out);
                           for (double& output : out) output = std::max(output, largest - 12);
                           return out;
                       },
                   .terms = 40,
                   .gradient_tolerance = 1e-5});
}

}  // namespace

std::vector<Case> fft_catalogue() {
    std::vector<Case> all;
    add_complex(all);
    add_transforms(all);
    add_frequencies(all);
    add_signal_windows(all);
    add_short_transforms(all);
    add_spectrograms(all);
    return all;
}

}  // namespace declivity::test::catalogue
