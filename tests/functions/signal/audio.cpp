// no-oclgrind: its kernels are those of the tests of fft and matmul, and its spectrograms are long
// Windows, short-time Fourier transforms, cosine transforms and spectrograms beyond the catalogue: lengths, defaults,
// round trips, mel scales, layers, errors.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/audio.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// Bessel function I0, by its series.
double bessel(double x) {
    double sum = 0, term = 1;
    for (int k = 1; term > 1e-18 * sum; ++k) {
        sum += term;
        term *= x * x / (4.0 * k * k);
    }
    return sum;
}

std::string message(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

bool has(const nn::Module& module, std::string_view name) {
    return std::ranges::any_of(module.state_dict(), [&](const NamedTensor& tensor) { return tensor.name == name; });
}

double hz_of_slaney(double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27); }

}  // namespace

TEST_CASE("audio: windows of four samples, and the transforms of two frames") {
    CHECK(difference(hann_window(4), {0, 0.5, 1, 0.5}, {1e-6}) == "");
    CHECK(difference(hann_window(5, false), {0, 0.5, 1, 0.5, 0}, {1e-6}) == "");
    CHECK(difference(hamming_window(4), {0.08, 0.54, 1, 0.54}, {1e-6}) == "");
    CHECK(difference(bartlett_window(4), {0, 0.5, 1, 0.5}, {1e-6}) == "");
    // Frames 1 2 3 4 and 3 4 5 6; frequencies 0, 1 and 2 of both.
    const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {6});
    CHECK(difference(stft(x, 4, {.hop_length = 2, .center = false}), {10, 0, 18, 0, -2, 2, -2, 2, -2, 0, -2, 0},
                     {1e-5}) == "");
}

TEST_CASE("audio: windows of zero, one and many samples") {
    const auto all = [](std::int64_t n, bool periodic, DType dtype) {
        const TensorOptions options{dtype};
        return std::vector{hann_window(n, periodic, options), hamming_window(n, periodic, 0.54, 0.46, options),
                           blackman_window(n, periodic, options), bartlett_window(n, periodic, options),
                           kaiser_window(n, periodic, 12, options)};
    };
    for (const bool periodic : {false, true})
        for (const Tensor& item : all(1, periodic, DType::f32)) CHECK(values(item) == Values{1});
    for (const Tensor& tensor : all(0, true, DType::f32)) CHECK(tensor.shape() == Shape{0});
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const Tensor& tensor : all(8, true, dtype)) CHECK(tensor.dtype() == dtype);
    // A periodic window is a symmetric one without its last sample; the middle of a symmetric one is 1.
    for (const DType dtype : floats()) {
        const auto all_samples = all(33, false, dtype), part = all(32, true, dtype);
        for (std::size_t i = 0; i < all_samples.size(); ++i) {
            CAPTURE(i);
            CHECK(difference(part[i], values(slice(all_samples[i], 0, 0, 32)), tolerance(dtype, 4)) == "");
            CHECK(difference(flip(all_samples[i], {0}), values(all_samples[i]), tolerance(dtype, 4, 4)) == "");
            CHECK(values(all_samples[i])[16] == doctest::Approx(1).epsilon(1e-6));
        }
    }
    for (const DType dtype : floats())
        for (const double beta : {0.0, 0.5, 5.0, 14.0, 60.0, 300.0}) {
            CAPTURE(beta);
            Values expected;
            for (int i = 0; i < 41; ++i) {
                const double x = i / 20.0 - 1;
                expected.push_back(bessel(beta * std::sqrt(1 - x * x)) / bessel(beta));
            }
            CHECK(difference(kaiser_window(41, false, beta, {dtype}), expected, tolerance(dtype, 4 + beta, 4)) == "");
        }
    CHECK(message([] { (void)hann_window(-1); }) == "hann_window: expected a length of at least 0, got -1");
    CHECK(message([] { (void)kaiser_window(3, true, -1); }).starts_with("kaiser_window: expected a beta"));
    CHECK(message([] { (void)hann_window(3, true, {DType::i32}); }).starts_with("hann_window: "));
}

TEST_CASE("audio: istft inverts stft") {
    std::uint64_t seed = 0;
    for (const std::int64_t n_fft : {16, 15, 40})
        for (const std::int64_t hop : {4, 5})
            for (const bool onesided : {true, false}) {
                if (small_cases() && (n_fft != 16 || hop != 4)) continue;
                CAPTURE(n_fft);
                CAPTURE(hop);
                const Tensor x = random_tensor({3, 111}, ++seed), window = hamming_window(n_fft - 2);
                const Tensor y = stft(
                    x, n_fft, {.hop_length = hop, .win_length = n_fft - 2, .window = window, .onesided = onesided});
                CHECK(y.size(1) == (onesided ? n_fft / 2 + 1 : n_fft));
                const Tensor z = istft(y, n_fft,
                                       {.hop_length = hop,
                                        .win_length = n_fft - 2,
                                        .window = window,
                                        .onesided = onesided,
                                        .length = 105});
                CHECK(difference(z, values(slice(x, 1, 0, 105)), {2e-5}) == "");
            }
    // Many frames per sample, and gradients through both.
    Tensor x = random_tensor({70}, 50).set_requires_grad();
    const Tensor y = istft(stft(x, 64, {.hop_length = 1}), 64, {.hop_length = 1, .length = 70});
    CHECK(difference(y, values(x), {1e-4}) == "");
    const Tensor g = random_tensor({70}, 51);
    y.backward(g);
    CHECK(difference(x.grad(), values(g), {1e-4}) == "");
}

TEST_CASE("audio: stft refuses inconsistent sizes") {
    const Tensor x = zeros({2, 20});
    const auto begins = [](const std::function<void()>& call, const std::string& message_start) {
        CHECK(message(call).substr(0, message_start.size()) == message_start);
    };
    begins([&] { (void)stft(x, 0); }, "stft: expected an n_fft of at least 1, got 0");
    begins([&] { (void)stft(x, 8, {.hop_length = 0}); }, "stft: expected a hop_length of at least 1, got 0");
    begins([&] { (void)stft(x, 8, {.win_length = 9}); }, "stft: expected a win_length of 1 to n_fft, 8, got 9");
    begins([&] { (void)stft(x, 8, {.window = ones({7})}); }, "stft: ");
    begins([&] { (void)stft(x, 21, {.center = false}); },
           "stft: expected a signal of at least n_fft = 21 samples, got x of [2, 20]");
    begins([&] { (void)stft(x, 40); }, "stft: expected more than n_fft / 2 = 20 samples to mirror, got x of [2, 20]");
    begins([&] { (void)stft(zeros({2, 2, 20}), 8); }, "stft: expected x of shape (T) or (B, T), got [2, 2, 20]");
    begins(
        [&] {
            (void)istft(zeros({4, 3, 2}), 8);
        },
        "istft: expected 5 frequencies of n_fft = 8, and frames, got x of [4, 3, 2]");
    begins([&] { (void)istft(zeros({5, 3}), 8); }, "istft: expected x of complex numbers");
    begins([&] { (void)audio::spectrogram(x, {.n_fft = 8, .power = 0}); },
           "audio::spectrogram: expected a power above 0, got 0");
    begins([&] { (void)audio::mel_filter_bank(5, 3, 1000, {.f_min = 600}); },
           "audio::mel_filter_bank: expected 0 <= f_min < f_max, got 600 and 500");
    begins([&] { (void)audio::mfcc(x, {.n_mfcc = 200}); },
           "audio::mfcc: expected an n_mfcc of 1 to n_mels, 128, got 200");
    begins([&] { (void)audio::amplitude_to_db(x, {.amin = 0}); },
           "audio::amplitude_to_db: expected an amin above 0, got 0");
    begins([&] { (void)nn::MFCC({.norm = "other"}); }, "MFCC: expected norm \"ortho\" or \"backward\"");
}

TEST_CASE("audio: cosine transforms of many lengths, and their inverses") {
    std::uint64_t seed = 70;
    for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 13, 64, 129}) {
        if (small_cases() && n > 8) continue;
        CAPTURE(n);
        for (const char* norm : {"ortho", "backward"}) {
            const Tensor x = random_tensor({4, n}, ++seed), y = fft::dct(x, 1, norm);
            const Values in = values(x);
            Values expected;
            for (std::int64_t row = 0; row < 4; ++row)
                for (std::int64_t k = 0; k < n; ++k) {
                    double sum = 0;
                    for (std::int64_t j = 0; j < n; ++j)
                        sum += 2 * in[static_cast<std::size_t>(row * n + j)] *
                               std::cos(std::numbers::pi * static_cast<double>(k * (2 * j + 1)) /
                                        static_cast<double>(2 * n));
                    if (norm[0] == 'o') sum *= std::sqrt((k == 0 ? 0.25 : 0.5) / static_cast<double>(n));
                    expected.push_back(sum);
                }
            CHECK(difference(y, expected, tolerance(DType::f32, static_cast<double>(n), 4)) == "");
            CHECK(difference(fft::idct(y, 1, norm), in, {3e-6}) == "");
        }
    }
}

TEST_CASE("audio: mel filters with both scales and norms") {
    for (const bool slaney : {false, true})
        for (const bool area : {false, true}) {
            const std::int64_t frequencies = 33, n_mels = 7;
            const double low = 100, high = 3900;
            const auto mel_of = [&](double f) {
                if (!slaney) return 2595 * std::log10(1 + f / 700);
                return f < 1000 ? 3 * f / 200 : 15 + 27 * std::log(f / 1000) / std::log(6.4);
            };
            const auto hz_of = [&](double mel) {
                return slaney ? hz_of_slaney(mel) : 700 * (std::pow(10, mel / 2595) - 1);
            };
            Values points, expected;
            for (int i = 0; i < n_mels + 2; ++i)
                points.push_back(
                    hz_of(mel_of(low) + (mel_of(high) - mel_of(low)) * i / static_cast<double>(n_mels + 1)));
            for (std::int64_t k = 0; k < frequencies; ++k)
                for (std::size_t i = 0; i < static_cast<std::size_t>(n_mels); ++i) {
                    const double f = 4000 * static_cast<double>(k) / static_cast<double>(frequencies - 1);
                    const double weight = std::min((f - points[i]) / (points[i + 1] - points[i]),
                                                   (points[i + 2] - f) / (points[i + 2] - points[i + 1]));
                    expected.push_back(std::max(0.0, weight) * (area ? 2 / (points[i + 2] - points[i]) : 1));
                }
            const Tensor bank =
                audio::mel_filter_bank(frequencies, n_mels, 8000,
                                       {.f_min = low,
                                        .f_max = high,
                                        .norm = area ? audio::MelNorm::slaney : audio::MelNorm::none,
                                        .mel_scale = slaney ? audio::MelScale::slaney : audio::MelScale::htk});
            CHECK(difference(bank, expected, {area ? 1e-7 : 3e-5}) == "");
        }
}

TEST_CASE("audio: spectrograms of several channels, with torchaudio's defaults") {
    const Tensor x = random_tensor({2, 3, 1000}, 7);
    CHECK(audio::spectrogram(x).shape() == Shape{2, 3, 201, 6});
    CHECK(audio::spectrogram(x, {.power = std::nullopt}).shape() == Shape{2, 3, 201, 6, 2});
    CHECK(audio::mel_spectrogram(x).shape() == Shape{2, 3, 128, 6});
    CHECK(audio::mfcc(x).shape() == Shape{2, 3, 40, 6});
    // Decibels are cut 80 below the maximum over all channels of a signal, then transformed.
    const Tensor attenuated = x * reshape(Tensor::from<float>({1, 1e-3F, 1e-7F}, {3}), {3, 1});
    const Tensor db = audio::amplitude_to_db(audio::mel_spectrogram(attenuated), {.top_db = 80});
    const Values mels = values(audio::mel_spectrogram(attenuated)), got = values(db);
    for (std::size_t signal = 0; signal < 2; ++signal) {
        const std::size_t mels_per_channel = mels.size() / 2;
        double loudest = -1e9;
        for (std::size_t i = 0; i < mels_per_channel; ++i)
            loudest = std::max(loudest, 10 * std::log10(std::max(1e-10, mels[signal * mels_per_channel + i])));
        for (std::size_t i = 0; i < mels_per_channel; i += 37)
            CHECK(got[signal * mels_per_channel + i] ==
                  doctest::Approx(
                      std::max(10 * std::log10(std::max(1e-10, mels[signal * mels_per_channel + i])), loudest - 80))
                      .epsilon(1e-4));
    }
    const Tensor expected = slice(fft::dct(db, 2, "ortho"), 2, 0, 40);
    CHECK(difference(audio::mfcc(attenuated), values(expected), {2e-3, 1e-4}) == "");
}

TEST_CASE("audio: layers have windows and filters with torchaudio's names, and are capture-safe") {
    const Tensor x = random_tensor({2, 600}, 9);
    nn::Spectrogram spectrogram({.n_fft = 64, .power = 1.0});
    CHECK(difference(spectrogram(x), values(audio::spectrogram(x, {.n_fft = 64, .power = 1.0})), {1e-5, 1e-5}) == "");
    CHECK(has(spectrogram, "window"));
    audio::MfccOptions options{.n_mfcc = 9, .mel_spectrogram = {.n_mels = 20, .spectrogram = {.n_fft = 64}}};
    nn::MFCC mfcc(options);
    CHECK(difference(mfcc(x), values(audio::mfcc(x, options)), {1e-3, 1e-4}) == "");
    for (const char* name : {"MelSpectrogram.spectrogram.window", "MelSpectrogram.mel_scale.fb"})
        CHECK(has(mfcc, name));
    nn::MelSpectrogram mel(options.mel_spectrogram);
    nn::MelScale scale(20, 16000, 33);
    CHECK(difference(scale(audio::spectrogram(x, {.n_fft = 64})), values(mel(x)), {1e-3, 1e-4}) == "");
    auto step = capture([&](const std::vector<Tensor>& in) { return std::vector{mfcc(in[0])}; });
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const Tensor sound = random_tensor({2, 600}, seed);
        CHECK(values(step({sound})[0]) == values(mfcc(sound)));
    }
}
