// Cases of functions with random numbers.
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {

void add_random_cases(std::vector<Case>& all) {
    using Call = Tensor (*)(const Tensor&, double, const std::optional<Generator>&);
    // The mask: `mask_shape` numbers, each for the elements of one index of the leading axes.
    const auto add = [&](const char* name, Call call, const Shape& shape, const Shape& mask_shape, bool sampled,
                         double (*value)(double x, bool is_kept)) {
        all.push_back({.name = name,
                       .inputs = {{shape}},
                       .call =
                           [call](const Tensors& in) {
                               manual_seed(5);
                               return call(in[0], 0.3, std::nullopt);
                           },
                       .reference =
                           [=](const Columns& in, DType dtype) {
                               manual_seed(5);
                               const Values chance = values(uniform(mask_shape, 0, 1, {dtype}));
                               const std::size_t elements_per_number = in[0].size() / chance.size();
                               Values out;
                               for (std::size_t i = 0; i < in[0].size(); ++i)
                                   out.push_back(value(in[0][i], chance[i / elements_per_number] < 0.7));
                               return out;
                           },
                       .random = true,
                       .sampled = sampled});
    };
    const auto plain = [](double x, bool is_kept) { return is_kept ? x / 0.7 : 0; };
    // Klambauer et al. 2017: a (x d + low (1 - d)) + b.
    const auto alpha = [](double x, bool is_kept) {
        const double low = -1.0507009873554805 * 1.6732632423543772, q = 0.7;
        const double a = std::pow(q + low * low * q * (1 - q), -0.5), b = -a * (1 - q) * low;
        return a * (is_kept ? x : low) + b;
    };
    add("dropout1d", dropout1d, {3, 5, 4}, {3, 5}, false, plain);
    add("dropout1d", dropout1d, {5, 4}, {5}, true, plain);
    add("dropout2d", dropout2d, {3, 5, 2, 3}, {3, 5}, false, plain);
    add("dropout2d", dropout2d, {3, 5, 3}, {3, 5}, true, plain);
    add("dropout3d", dropout3d, {2, 5, 2, 1, 3}, {2, 5}, false, plain);
    add("dropout3d", dropout3d, {5, 2, 1, 3}, {5}, true, plain);
    add("alpha_dropout", alpha_dropout, {3, 5, 7}, {3, 5, 7}, false, alpha);
    add("feature_alpha_dropout", feature_alpha_dropout, {3, 5, 3}, {3, 5}, false, alpha);
}

}  // namespace declivity::test::catalogue
