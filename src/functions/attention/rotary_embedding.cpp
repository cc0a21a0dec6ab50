// Position embeddings: rotary and sinusoidal.
#include <cmath>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

namespace declivity {
namespace {

/// base^(-2 i / dims), (dims / 2).
Tensor frequencies_of(std::int64_t dims, double base, const TensorOptions& options) {
    return exp(arange(0, dims / 2, 1, options) * (-2 * std::log(base) / static_cast<double>(dims)));
}

/// positions (...) and frequencies (dims / 2) to angles (..., dims / 2).
Tensor angles_of(const Tensor& positions, const Tensor& frequencies) {
    return unsqueeze(positions.detach().to(frequencies.dtype()), -1) * frequencies;
}

void require_dims(const char* name, std::int64_t dims, double base) {
    if (dims < 2 || dims % 2 != 0)
        throw ValueError(fmt::format("{}: expected an even number of dims, at least 2, got {}", name, dims));
    if (!(base > 0)) throw ValueError(fmt::format("{}: expected a base above 0, got {}", name, base));
}

}  // namespace

Tensor rotary_embedding(const Tensor& x, const RotaryParameters& options) {
    constexpr auto* name = "rotary_embedding";
    const FunctionCall call(name, {{"x", x}, {"positions", options.positions}, {"frequencies", options.frequencies}},
                            {{"dims", options.dims.value_or(0)},
                             {"base", options.base},
                             {"scale", options.scale},
                             {"interleaved", options.interleaved},
                             {"offset", options.offset}});
    call.require_defined({"x"});
    ops::require_real(name, "x", x.dtype());
    if (x.rank() < 2)
        throw ShapeError(fmt::format("{}: expected x of shape (..., L, D), got {}", name, x.shape().str()));
    const std::int64_t width = x.size(-1), dims = options.dims.value_or(width);
    require_dims(name, dims, options.base);
    if (dims > width) throw ValueError(fmt::format("{}: expected dims up to {}, got {}", name, width, dims));
    const DType compute = compute_type(x.dtype());
    const TensorOptions compute_options{compute, x.device()};
    if (options.frequencies.defined()) {
        ops::require_shape(name, "frequencies", options.frequencies.shape(), {dims / 2});
        ops::require_alike(name, "frequencies", options.frequencies.dtype(), options.frequencies.device(), "x", compute,
                           x.device());
    }
    Tensor positions = options.positions;
    if (!positions.defined())
        positions = arange(options.offset, options.offset + x.size(-2), 1, {DType::i64, x.device()});
    Shape rows;
    for (int axis = 0; axis + 1 < x.rank(); ++axis) rows.push_back(x.size(axis));
    if (positions.rank() > rows.rank() || broadcast_shapes(name, positions.shape(), rows) != rows)
        throw ShapeError(fmt::format("{}: expected positions that broadcast to {}, got {}", name, rows.str(),
                                     positions.shape().str()));
    const Tensor frequencies = options.frequencies.defined() ? options.frequencies.detach()
                                                             : frequencies_of(dims, options.base, compute_options);
    const Tensor angles = angles_of(positions, frequencies) * options.scale;
    const Tensor cosine = cos(angles), sine = sin(angles);
    const Tensor rotated = dims == width ? x : slice(x, -1, 0, dims);
    Tensor y;
    if (options.interleaved) {
        Shape pairs = rotated.shape();
        pairs[-1] = dims / 2;
        pairs.push_back(2);
        const Tensor paired = reshape(rotated, pairs);
        const Tensor a = select(paired, -1, 0).to(compute), b = select(paired, -1, 1).to(compute);
        y = reshape(stack({a * cosine - b * sine, b * cosine + a * sine}, -1), rotated.shape());
    } else {
        const Tensor a = slice(rotated, -1, 0, dims / 2).to(compute),
                     b = slice(rotated, -1, dims / 2, dims).to(compute);
        y = concat({a * cosine - b * sine, b * cosine + a * sine}, -1);
    }
    y = y.to(x.dtype());
    return call.result(dims == width ? y : concat({y, slice(x, -1, dims, width)}, -1));
}

Tensor sinusoidal_embedding(const Tensor& positions, std::int64_t dims, double base) {
    constexpr auto* name = "sinusoidal_embedding";
    const FunctionCall call(name, {{"positions", positions}}, {{"dims", dims}, {"base", base}});
    call.require_defined({"positions"});
    require_dims(name, dims, base);
    const DType compute = positions.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const Tensor angles = angles_of(positions, frequencies_of(dims, base, {compute, positions.device()}));
    return call.result(flatten(stack({sin(angles), cos(angles)}, -1), -2));
}

}  // namespace declivity
