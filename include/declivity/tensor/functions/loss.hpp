// Floor 3. Losses.
#pragma once

#include <cstdint>
#include <string_view>

#include <declivity/tensor/tensor.hpp>

namespace declivity {

enum class Reduction : std::uint8_t { mean, sum, none };
constexpr std::string_view name_of(Reduction reduction) noexcept {
    return reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
}

struct CrossEntropyOptions {
    Reduction reduction = Reduction::mean;
    double label_smoothing =
        0;  ///< in [0, 1): share of the target spread evenly over all classes (Szegedy et al. 2016, section 7)
    std::int64_t ignore_index = -100;  ///< rows with this label count for nothing
};
/// -log softmax(logits)[label]: logits (N, C), labels (N) of i32 or i64 in [0, C). A label outside of it makes the
/// loss NaN; the trainer says which it was.
DECLIVITY_API Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options = {});
/// (x - target)^2.
DECLIVITY_API Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// Binary cross entropy of sigmoid(logits) against targets in [0, 1], computed without overflow.
DECLIVITY_API Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean);

}  // namespace declivity
