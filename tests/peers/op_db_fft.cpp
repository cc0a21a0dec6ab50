// Adapters for PyTorch's Fourier transforms and complex numbers, which are pairs here.
#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

bool is_complex(A& a, std::size_t position, const char* name = nullptr) {
    const Json& json = a.raw(position, name);
    return json.is_object() && json.contains("complex");
}

Tensor floating(const Tensor& x) { return is_floating(x.dtype()) ? x : x.to(DType::f32); }

/// An argument as pairs, real or complex.
Tensor pairs(A& a, std::size_t position = 0) {
    const Tensor x = a.tensor(position);
    if (is_complex(a, position)) return x;
    return complex(floating(x), zeros_like(floating(x)));
}

Tensor reals(A& a) {
    if (is_complex(a, 0)) throw UnsupportedSample("complex numbers where real ones are wanted");
    return a.tensor(0);
}

std::string norm_of(A& a) { return a.is_given(3, "norm") ? a.word(3, "norm", "") : "backward"; }

using Along = Tensor (*)(const Tensor&, std::int64_t, std::int64_t, std::string_view);
using Over = Tensor (*)(const Tensor&, const Dims&, const Dims&, std::string_view);

void add_transforms(Table& all) {
    constexpr bool kComplex = true, kReal = false, kTwoAxes = true, kAllAxes = false;
    const std::tuple<const char*, Along, bool> along[] = {
        {"fft.fft", fft::fft, kComplex},     {"fft.ifft", fft::ifft, kComplex}, {"fft.rfft", fft::rfft, kReal},
        {"fft.irfft", fft::irfft, kComplex}, {"fft.hfft", fft::hfft, kComplex}, {"fft.ihfft", fft::ihfft, kReal}};
    for (const auto& [name, call, takes_pairs] : along)
        all[name] = [call = call, takes_pairs = takes_pairs](A& a) {
            const std::int64_t n = a.is_given(1, "n") ? a.integer(1, "n") : -1, axis = a.integer(2, "dim", -1);
            const std::string norm = norm_of(a);
            return Tensors{call(takes_pairs ? pairs(a) : reals(a), n, axis, norm)};
        };
    const std::tuple<const char*, Over, bool, bool> over[] = {
        {"fft.fft2", fft::fft2, kComplex, kTwoAxes}, {"fft.ifft2", fft::ifft2, kComplex, kTwoAxes},
        {"fft.rfft2", fft::rfft2, kReal, kTwoAxes},  {"fft.irfft2", fft::irfft2, kComplex, kTwoAxes},
        {"fft.fftn", fft::fftn, kComplex, kAllAxes}, {"fft.ifftn", fft::ifftn, kComplex, kAllAxes},
        {"fft.rfftn", fft::rfftn, kReal, kAllAxes},  {"fft.irfftn", fft::irfftn, kComplex, kAllAxes}};
    for (const auto& [name, call, takes_pairs, two] : over)
        all[name] = [call = call, takes_pairs = takes_pairs, two = two](A& a) {
            const Dims sizes = a.is_given(1, "s") ? a.dims(1, "s") : Dims{};
            const Dims axes = a.is_given(2, "dim") ? a.dims(2, "dim") : two ? Dims{-2, -1} : Dims{};
            const std::string norm = norm_of(a);
            return Tensors{call(takes_pairs ? pairs(a) : reals(a), sizes, axes, norm)};
        };
    for (const bool back : {false, true})
        all[back ? "fft.ifftshift" : "fft.fftshift"] = [back](A& a) {
            const Tensor x = a.tensor(0);
            const int rank = is_complex(a, 0) ? x.rank() - 1 : x.rank();
            Dims axes = a.is_given(1, "dim") ? a.dims(1, "dim") : Dims{};
            if (axes.empty())
                for (int i = 0; i < rank; ++i) axes.push_back(i);
            for (int i = 0; i < axes.rank(); ++i)
                if (axes[i] < 0) axes[i] += rank;
            return Tensors{back ? fft::ifftshift(x, axes) : fft::fftshift(x, axes)};
        };
    all["stft"] = [](A& a) {
        const Tensor x = reals(a);
        StftOptions options;
        const std::int64_t n_fft = a.integer(1, "n_fft");
        if (a.is_given(2, "hop_length")) options.hop_length = a.integer(2, "hop_length");
        if (a.is_given(3, "win_length")) options.win_length = a.integer(3, "win_length");
        if (is_complex(a, 4, "window")) throw UnsupportedSample("a complex window");
        options.window = a.tensor_or_none(4, "window");
        options.center = a.flag(5, "center", true);
        const std::string mode = a.word(6, "pad_mode", "reflect");
        options.pad_mode = mode == "reflect"    ? PadMode::reflect
                           : mode == "constant" ? PadMode::constant
                           : mode == "circular" ? PadMode::circular
                                                : PadMode::replicate;
        options.normalized = a.flag(7, "normalized", false);
        options.onesided = !a.is_given(8, "onesided") || a.flag(8, "onesided", true);
        a.ignore("return_complex");
        return Tensors{stft(x, n_fft, options)};
    };
    all["istft"] = [](A& a) {
        const Tensor x = pairs(a);
        IstftOptions options;
        const std::int64_t n_fft = a.integer(1, "n_fft");
        if (a.is_given(2, "hop_length")) options.hop_length = a.integer(2, "hop_length");
        if (a.is_given(3, "win_length")) options.win_length = a.integer(3, "win_length");
        if (is_complex(a, 4, "window")) throw UnsupportedSample("a complex window");
        // The samples have no gradient for the window.
        options.window = a.tensor_or_none(4, "window");
        if (options.window.defined()) options.window = options.window.detach();
        options.center = a.flag(5, "center", true);
        options.normalized = a.flag(6, "normalized", false);
        options.onesided = !a.is_given(7, "onesided") || a.flag(7, "onesided", true);
        if (a.is_given(8, "length")) options.length = a.integer(8, "length");
        if (a.flag(9, "return_complex", false)) throw UnsupportedSample("complex signals");
        return Tensors{istft(x, n_fft, options)};
    };
}

void add_complex(Table& all) {
    all["complex"] = [](A& a) { return Tensors{complex(a.tensor(0), a.tensor(1))}; };
    all["polar"] = [](A& a) { return Tensors{polar(a.tensor(0), a.tensor(1))}; };
    const std::pair<const char*, Tensor (*)(const Tensor&)> parts[] = {
        {"real", real}, {"imag", imag}, {"angle", angle}};
    for (const auto& [name, call] : parts)
        all[name] = [call = call](A& a) {
            if (!is_complex(a, 0)) throw UnsupportedSample("real numbers");
            return Tensors{call(a.tensor(0))};
        };
}

void add_windows(Table& all) {
    const auto add = [&](const char* name,
                         const std::function<Tensor(A&, std::int64_t, bool, const TensorOptions&)>& call) {
        all[std::string("signal.windows.") + name] = [call](A& a) {
            for (const char* character : {"device", "dtype", "layout", "requires_grad"}) a.ignore(character);
            const std::int64_t length = a.integer(0, "M");
            return Tensors{call(a, length, !a.flag(9, "sym", true), {a.expected(0).dtype()})};
        };
    };
    add("hann", [](A&, std::int64_t n, bool p, const TensorOptions& o) { return hann_window(n, p, o); });
    add("hamming",
        [](A&, std::int64_t n, bool p, const TensorOptions& o) { return hamming_window(n, p, 0.54, 0.46, o); });
    add("blackman", [](A&, std::int64_t n, bool p, const TensorOptions& o) { return blackman_window(n, p, o); });
    add("bartlett", [](A&, std::int64_t n, bool p, const TensorOptions& o) { return bartlett_window(n, p, o); });
    add("kaiser", [](A& a, std::int64_t n, bool p, const TensorOptions& o) {
        return kaiser_window(n, p, a.number(8, "beta", 12), o);
    });
    add("general_hamming", [](A& a, std::int64_t n, bool p, const TensorOptions& o) {
        const double alpha = a.number(8, "alpha", 0.54);
        return hamming_window(n, p, alpha, 1 - alpha, o);
    });
}

const Adapters transforms{add_transforms}, numbers{add_complex}, windows{add_windows};

}  // namespace
}  // namespace declivity::peers
