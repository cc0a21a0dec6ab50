#include <declivity/optim/clip_grad.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/clip.hpp>
#include <declivity/ops/multi_tensor.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::optim {
namespace {

/// The gradients of parameters, in the type of the computation.
class Gradients {
  public:
    /// @throws ValueError, DeviceError
    Gradients(std::string_view function, const std::vector<Tensor>& parameters) {
        if (!std::ranges::all_of(parameters, &Tensor::defined))
            throw ValueError(fmt::format("{}: expected tensors, got an undefined one", function));
        for (const Tensor& parameter : parameters) {
            const Tensor gradient = parameter.grad();
            if (!gradient.defined()) continue;
            ops::require_dense(function, "gradient", gradient.view());
            if (!views_.empty() && !(gradient.device() == views_[0].device()))
                throw DeviceError(
                    fmt::format("{}: expected the gradients of parameters on one device, got some on '{}' and on '{}'",
                                function, views_[0].device().name(), gradient.device().name()));
            const Tensor upcast = gradient.detach().to(compute_type(gradient.dtype()));
            views_.push_back(upcast.view());
            gradients_.emplace_back(gradient, upcast);
        }
    }
    [[nodiscard]] bool empty() const noexcept { return views_.empty(); }
    [[nodiscard]] const std::vector<ops::View>& views() const noexcept { return views_; }
    /// Writes back the copies of 16-bit gradients, rounded, after the views were written.
    void write_back() {
        const NoGrad no_grad;
        for (auto& [gradient, upcast] : gradients_) {
            gradient.bump_version();
            if (is_16bit_float(gradient.dtype())) gradient.copy_(upcast.to(gradient.dtype()));
        }
    }

  private:
    std::vector<ops::View> views_;
    std::vector<std::pair<Tensor, Tensor>> gradients_;  // gradients, and upcast copies of 16-bit ones
};

}  // namespace

Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm, const ClipGradNormOptions& options) {
    if (!(max_norm > 0)) throw ValueError(fmt::format("clip_grad_norm: expected a max_norm above 0, got {}", max_norm));
    Gradients gradients("clip_grad_norm", parameters);
    if (gradients.empty()) return zeros({}, {.device = parameters.empty() ? Device::best() : parameters[0].device()});
    ops::MultiTensor tensors(1);
    tensors.set({gradients.views()});
    const ops::ClipNorm clip(tensors, max_norm);
    const Tensor norm = reshape(Tensor(clip.norm()), {});
    if (options.error_if_nonfinite)
        if (const double value = norm.to(DType::f32).item<float>(); !std::isfinite(value))
            throw ValueError(fmt::format(
                "clip_grad_norm: expected a finite norm of the gradients (error_if_nonfinite), got {}", value));
    clip.scale();
    gradients.write_back();
    return norm;
}

void clip_grad_value(const std::vector<Tensor>& parameters, double clip_value) {
    if (!(clip_value >= 0))
        throw ValueError(fmt::format("clip_grad_value: expected a clip_value of at least 0, got {}", clip_value));
    Gradients gradients("clip_grad_value", parameters);
    if (gradients.empty()) return;
    ops::MultiTensor tensors(1);
    tensors.set({gradients.views()});
    ops::clip_value(tensors, clip_value);
    gradients.write_back();
}

}  // namespace declivity::optim
