#include <declivity/nn/spectral_norm.hpp>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

SpectralNorm::SpectralNorm(const Tensor& weight, const SpectralNormOptions& options)
    : n_power_iterations_(options.n_power_iterations), eps_(options.eps), dim_(0) {
    if (options.n_power_iterations < 1)
        throw ValueError(
            fmt::format("SpectralNorm: expected n_power_iterations of at least 1, got {}", options.n_power_iterations));
    if (weight.rank() == 0) throw ShapeError("SpectralNorm: expected a weight of at least 1 axis, got []");
    dim_ = normalize_axis("SpectralNorm", options.dim.value_or(0), weight.rank());
    if (weight.rank() == 1) return;
    const NoGrad no_grad;
    const Tensor matrix = as_matrix(weight.detach());
    const TensorOptions like{weight.dtype(), weight.device()};
    u_ = buffer("_u", normalize(randn({matrix.size(0)}, like), 2, 0, eps_));
    v_ = buffer("_v", normalize(randn({matrix.size(1)}, like), 2, 0, eps_));
    iterate(matrix, 15);
}

Tensor SpectralNorm::as_matrix(const Tensor& weight) const {
    const Tensor rows = movedim(weight, dim_, 0);
    return reshape(rows, {rows.size(0), rows.size(0) == 0 ? 0 : rows.numel() / rows.size(0)});
}

void SpectralNorm::iterate(const Tensor& matrix, std::int64_t times) {
    const NoGrad no_grad;
    for (std::int64_t i = 0; i < times; ++i) {
        u_.copy_(normalize(matmul(matrix, v_.to(matrix.dtype())), 2, 0, eps_).to(u_.dtype()));
        v_.copy_(normalize(matmul(u_.to(matrix.dtype()), matrix), 2, 0, eps_).to(v_.dtype()));
    }
}

Tensor SpectralNorm::forward(Tensor original) {
    if (original.rank() == 1) return normalize(original, 2, 0, guarded(&SpectralNorm::eps_));
    // f16 and bf16 are rounded once, at the end.
    const DType type = original.dtype(), compute = compute_type(type);
    const Tensor in = original.to(compute), matrix = as_matrix(in);
    if (training()) iterate(matrix.detach(), guarded(&SpectralNorm::n_power_iterations_));
    // Copies: the next call writes to the buffers, and backward of this one needs the current values.
    const Tensor u = training() ? u_.clone() : u_, v = training() ? v_.clone() : v_;
    return (in / sum(u.to(compute) * matmul(matrix, v.to(compute)))).to(type);
}

SpectralNorm& spectral_norm(Module& module, std::string_view name, SpectralNormOptions options) {
    const std::string type = module.type_name();
    if (!options.dim) options.dim = type.starts_with("ConvTranspose") ? 1 : 0;
    return register_parametrization(module, name, SpectralNorm(module.parameter_value(name), options));
}

}  // namespace declivity::nn
