// Measures and explains the strategies of a matrix product.
#include <declivity/ops/tuning.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "matmul_strategies.hpp"
#include "ops/support/tuning_table.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// How an operand lies: N row-major, T column-major, S neither; small letters: one matrix for the whole batch.
char letter(const View& operand) {
    const char lies = operand.strides[2] == 1 || operand.shape[2] == 1   ? 'N'
                      : operand.strides[1] == 1 || operand.shape[1] == 1 ? 'T'
                                                                         : 'S';
    return operand.strides[0] == 0 && operand.shape[0] > 1 ? static_cast<char>(lies - 'A' + 'a') : lies;
}

std::string joined(const MatmulStrategy& strategy, const std::string& variant) {
    return variant.empty() ? std::string(strategy.name) : fmt::format("{} {}", strategy.name, variant);
}

/// Random numbers that lie as `like` does, as far as a dense operand can.
View operand_like(const View& like) {
    const std::int64_t batch = like.strides[0] == 0 ? 1 : like.shape[0], rows = like.shape[1], columns = like.shape[2];
    const bool transposed = letter(like) == 'T' || letter(like) == 't';
    View operand = random_operand(like.device(), like.dtype,
                                  transposed ? Shape{batch, columns, rows} : Shape{batch, rows, columns});
    if (transposed) operand = permuted(operand, {0, 2, 1});
    return expanded("tune", operand, {like.shape[0], rows, columns});
}

struct Operands {
    View a, b, out;
    [[nodiscard]] MatmulProblem problem() const {
        return {.a = a, .b = b, .out = out, .batch = a.shape[0], .m = a.shape[1], .n = b.shape[2], .k = a.shape[2]};
    }
};

Operands operands_of(const Device& device, const MatmulShape& shape) {
    for (const std::int64_t size : {shape.batch, shape.m, shape.n, shape.k})
        if (size < 1)
            throw ShapeError(fmt::format("tune: wants a batch, m, n and k of at least 1, got {}, {}, {} and {}",
                                         shape.batch, shape.m, shape.n, shape.k));
    const auto operand = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
        const View view = View::make(
            device, shape.dtype, transposed ? Shape{shape.batch, columns, rows} : Shape{shape.batch, rows, columns});
        return transposed ? permuted(view, {0, 2, 1}) : view;
    };
    return {operand(shape.m, shape.k, shape.a_transposed), operand(shape.k, shape.n, shape.b_transposed),
            View::make(device, shape.dtype, {shape.batch, shape.m, shape.n})};
}

}  // namespace

std::string tuning_key(const MatmulProblem& p) {
    return fmt::format("matmul {} {} batch {} m {} n {} k {} {}{}", name_of(p.out.dtype),
                       family_of(p.out.device()) == Family::cpu_like ? "cpu" : "gpu", bucket(p.batch), bucket(p.m),
                       bucket(p.n), bucket(p.k), letter(p.a), letter(p.b));
}

TuningEntry measure_matmul(const MatmulProblem& like) {
    const Operands operands{operand_like(like.a), operand_like(like.b),
                            View::make(like.out.device(), like.out.dtype, like.out.shape)};
    const MatmulProblem problem = operands.problem();
    std::vector<Trial> trials;
    for (const MatmulStrategy& strategy : matmul_strategies()) {
        if (!strategy.serves(problem)) continue;
        for (const std::string& variant :
             strategy.variants != nullptr ? strategy.variants(problem) : std::vector<std::string>{""})
            trials.push_back({joined(strategy, variant), [&problem, &strategy, variant] {
                                  MatmulProblem one = problem;
                                  one.variant = variant;
                                  strategy.run(one);
                              }});
    }
    const TuningEntry entry = measure(operands.out, trials);
    if (!entry.winner.empty()) TuningTable::of(like.out.device()).put(tuning_key(like), entry);
    return entry;
}

std::string tune(const Device& device, const MatmulShape& shape, bool again) {
    const Operands operands = operands_of(device, shape);
    const std::string key = tuning_key(operands.problem());
    if (!again && TuningTable::of(device).find(key)) return {};
    return key + "\n" + describe(measure_matmul(operands.problem()));
}

std::string explain(const Device& device, const MatmulShape& shape) {
    const Operands operands = operands_of(device, shape);
    const MatmulProblem problem = operands.problem();
    const std::string key = tuning_key(problem);
    const MatmulChoice choice = choose_matmul(problem);
    std::string text =
        fmt::format("{}\n  served by {}: {}\n", key, joined(*choice.strategy, choice.variant), choice.reason);
    const auto entry = TuningTable::of(device).find(key);
    if (entry) text += describe(*entry);
    for (const MatmulStrategy& strategy : matmul_strategies())
        if (!strategy.serves(problem)) text += fmt::format("  {:<16} cannot serve it\n", strategy.name);
        else if (!entry) text += fmt::format("  {:<16} can serve it\n", strategy.name);
    return text;
}

}  // namespace declivity::ops
