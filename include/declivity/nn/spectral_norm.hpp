// Layer 6. Spectral normalisation of weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <declivity/nn/parametrize.hpp>

namespace declivity::nn {

/// @addtogroup nn_norm
/// @{

struct SpectralNormOptions {
    std::int64_t n_power_iterations = 1;  ///< per use of the weight in training mode
    double eps = 1e-12;                   ///< minimum norm of the vectors
    /// Axis of the outputs, the rows of the matrix; none: 1 for transposed convolutions, 0 otherwise.
    std::optional<std::int64_t> dim = std::nullopt;
};

/// original / sigma, where sigma is the largest singular value of the original as a matrix (for one axis: its norm),
/// estimated by power iteration, which continues from the buffers _u and _v in training mode (Miyato et al. 2018). They
/// are initialised randomly, followed by 15 iterations, and are unchanged in evaluation mode.
class DECLIVITY_API SpectralNorm : public Layer {
  public:
    /// @param weight the parameter to parametrize, for shape, type and device
    /// @throws ValueError for n_power_iterations below 1, ShapeError for a weight without axes
    explicit SpectralNorm(const Tensor& weight, const SpectralNormOptions& options = {});
    [[nodiscard]] std::string type_name() const override { return "SpectralNorm"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(SpectralNorm); }

  protected:
    Tensor forward(Tensor original) override;

  private:
    [[nodiscard]] Tensor as_matrix(const Tensor& weight) const;
    void iterate(const Tensor& matrix, std::int64_t times);

    std::int64_t n_power_iterations_;
    double eps_;
    int dim_;
    Tensor u_, v_;
};
/// Registers spectral normalisation for a parameter of a module.
DECLIVITY_API SpectralNorm& spectral_norm(Module& module, std::string_view name = "weight",
                                          SpectralNormOptions options = {});

/// @}

}  // namespace declivity::nn
