#include "elementwise_gradients.hpp"

#include <array>
#include <vector>

#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>

#include "ops/engine/expression.hpp"

namespace declivity::detail {
namespace {

using Function = ops::Function;
using Composition = Tensor (*)(const GradientOperands& operands);

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

constexpr std::size_t kMostInputs = 3;

/// For each function and input; null where there is none.
using Compositions = std::vector<std::array<Composition, kMostInputs>>;

const Compositions& compositions() {
    struct Row {
        Function function;
        std::size_t input;
        Composition composition;
    };
    static constexpr auto kRows = std::to_array<Row>({
#define ZERO zeros({}, {g.dtype(), g.device()})
#define GRADIENT(name, input, body)                                          \
    {Function::name, input, [](const GradientOperands& operands) -> Tensor { \
         [[maybe_unused]] const auto& [g, a, b, c, y, p, q] = operands;      \
         return body;                                                        \
     }},
#include "elementwise_gradients.def"
#undef GRADIENT
#undef ZERO
    });
    static const auto* all = [] {
        auto* made = new Compositions;
        for (const Row& row : kRows) {
            const auto at = static_cast<std::size_t>(row.function);
            if (made->size() <= at) made->resize(at + 1);
            (*made)[at][row.input] = row.composition;
        }
        return made;
    }();
    return *all;
}

Composition composition(Function function, std::size_t input) {
    const auto at = static_cast<std::size_t>(function);
    return at < compositions().size() ? compositions()[at][input] : nullptr;
}

}  // namespace

bool has_composed_gradients(Function function) {
    const auto& gradients = ops::info(function).of_gradient;
    for (std::size_t i = 0; i < gradients.size(); ++i)
        if (gradients[i].form != ops::GradientForm::none && composition(function, i) == nullptr) return false;
    return true;
}

Tensor composed_gradient(Function function, std::size_t input, const GradientOperands& operands) {
    return composition(function, input)(operands);
}

}  // namespace declivity::detail
