#include <declivity/nn/dropout.hpp>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {

DropoutBase::DropoutBase(const char* name, Function function, double p, const std::optional<Generator>& generator)
    : function_(function), p_(p), generator_(generator) {
    if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("{}: expected p in [0, 1], got {}", name, p));
}

Tensor DropoutBase::forward(Tensor x) {
    return training() ? function_(x, guarded(&DropoutBase::p_), guarded(&DropoutBase::generator_)) : x;
}

Dropout::Dropout(double p, const std::optional<Generator>& generator) : DropoutBase("Dropout", dropout, p, generator) {}
Dropout1d::Dropout1d(double p, const std::optional<Generator>& generator)
    : DropoutBase("Dropout1d", dropout1d, p, generator) {}
Dropout2d::Dropout2d(double p, const std::optional<Generator>& generator)
    : DropoutBase("Dropout2d", dropout2d, p, generator) {}
Dropout3d::Dropout3d(double p, const std::optional<Generator>& generator)
    : DropoutBase("Dropout3d", dropout3d, p, generator) {}
AlphaDropout::AlphaDropout(double p, const std::optional<Generator>& generator)
    : DropoutBase("AlphaDropout", alpha_dropout, p, generator) {}
FeatureAlphaDropout::FeatureAlphaDropout(double p, const std::optional<Generator>& generator)
    : DropoutBase("FeatureAlphaDropout", feature_alpha_dropout, p, generator) {}

}  // namespace declivity::nn
