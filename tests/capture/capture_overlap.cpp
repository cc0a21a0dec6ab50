// no-oclgrind: it replays kernels that other tests launch there
//
// Captured steps whose inputs overlap each other, or other tensors of the step.
#include <declivity/capture/capture.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "tests/support/devices.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Rows = std::vector<std::vector<float>>;

/// Commands that read and write two inputs and tensors of the step, generated from a seed.
class Commands {
  public:
    /// @param with_columns whether some operands are transposed, for which a product has other bits than for clones
    Commands(std::uint64_t seed, bool with_columns, const Tensor& rows, const Tensor& columns)
        : random_(seed), with_columns_(with_columns) {
        for (std::int64_t left = 3 + random_below(3); left > 0; --left)
            list_.push_back({random_below(7), static_cast<std::size_t>(random_below(2)),
                             static_cast<std::size_t>(random_below(2)),
                             0.25 * static_cast<double>(1 + random_below(3))});
        const std::int64_t from = random_below(7);
        writes_ = random_below(3) != 0;
        captured_tensor_ = with_columns && random_below(2) == 0 ? transpose(slice(columns, 1, from, from + 2), 0, 1)
                                                                : slice(rows, 0, from, from + 2);
    }
    std::int64_t random_below(std::uint64_t n) { return static_cast<std::int64_t>(random_() % n); }

    std::vector<Tensor> operator()(const std::vector<Tensor>& in) const {
        std::vector<Tensor> out;
        Tensor captured_tensor = captured_tensor_;
        for (const Command& command : list_) {
            const Tensor& a = in[command.a];
            Tensor b = in[command.b];
            const double factor = command.factor;
            if (command.kind == 0) out.push_back(a * factor);
            if (command.kind == 1) out.push_back(a * factor + captured_tensor);
            if (command.kind == 2) out.push_back(with_columns_ ? a * b : matmul(a, transpose(b, 0, 1)));
            if (command.kind == 3) out.push_back(captured_tensor * factor);
            if (command.kind == 4 && writes_) b.add_(a * factor);
            if (command.kind == 5 && writes_) captured_tensor.mul_(factor);
            if (command.kind == 6 && writes_) b.copy_(captured_tensor * factor);
        }
        return out.empty() ? std::vector{captured_tensor * 1.0} : out;
    }

  private:
    struct Command {
        std::int64_t kind;
        std::size_t a, b;
        double factor;
    };
    std::mt19937_64 random_;
    bool with_columns_;
    std::vector<Command> list_;
    bool writes_ = false;
    Tensor captured_tensor_;
};

/// Calls with inputs in separate memory, adjacent, overlapping, transposed, and in tensors of the step. Appends the
/// state after each call to `values`.
/// @return the number of replays
std::int64_t calls(std::uint64_t seed, bool captured, Rows& values) {
    const Tensor all = random_tensor({8, 64}, seed), rows = random_tensor({8, 64}, seed + 1000),
                 columns = random_tensor({64, 8}, seed + 2000);
    const bool with_columns = seed % 3 == 0;
    Commands commands(seed, with_columns, rows, columns);
    CapturedStep step = capture([&](const std::vector<Tensor>& in) { return commands(in); },
                                {.warmup_captures = 1 + static_cast<int>(seed % 2)});
    for (std::uint64_t call = 0; call < 8; ++call) {
        std::vector<Tensor> in;
        for (std::uint64_t i = 0; i < 2; ++i) {
            const std::int64_t row = commands.random_below(7), kind = commands.random_below(6);
            in.push_back(kind == 0                   ? slice(all, 0, row, row + 2)
                         : kind == 1                 ? slice(rows, 0, row, row + 2)
                         : kind == 2 && with_columns ? transpose(slice(columns, 1, row, row + 2), 0, 1)
                                                     : random_tensor({2, 64}, seed + 10 * call + i));
        }
        for (const Tensor& command : captured ? step(in) : commands(in)) values.push_back(command.to_vector<float>());
        for (const Tensor& input : in) values.push_back(input.to_vector<float>());
        for (const Tensor& tensor : {all, rows, columns}) values.push_back(tensor.to_vector<float>());
    }
    return step.replayed();
}

}  // namespace

TEST_CASE("capture overlap: inputs that are parts of a buffer are used and written in place") {
    const Tensor rows = random_tensor({8, 64}, 3);  // each row as aligned as the whole
    const auto expected = [&](std::int64_t row) {
        std::vector<float> x = slice(rows, 0, row, row + 1).to_vector<float>();
        for (float& element : x) element = element * 2 + 1;
        return x;
    };
    auto step = capture([](const std::vector<Tensor>& in) {
        Tensor y = in[0] * 2.0 + 1.0;
        Tensor written = in[1];
        written.copy_(in[0] * 3.0);
        return std::vector{y};
    });
    Tensor target = zeros({8, 64});
    (void)target.view(), (void)rows.view();
    std::vector<std::vector<float>> all;
    for (int row = 0; row < 8; ++row) all.push_back(expected(row));
    const auto call = [&](std::int64_t from, std::int64_t to) {
        return step({slice(rows, 0, from, from + 1), slice(target, 0, to, to + 1)})[0].to_vector<float>();
    };
    CHECK(call(3, 5) == all[3]);
    {
        Profiler profiler(device());
        for (int row = 7; row >= 0; --row) CHECK(call(row, 7 - row) == all[static_cast<std::size_t>(row)]);
        std::int64_t enqueued = 0;
        for (const Profiler::Row& row : profiler.rows()) enqueued += row.name.starts_with("copy to ") ? 0 : row.calls;
        CHECK(enqueued == 8 * static_cast<std::int64_t>(step.command_list().commands()));  // and no copies of inputs
    }
    CHECK(step.replayed() == 8);
    for (int row = 0; row < 8; ++row)
        CHECK(slice(target, 0, 7 - row, 8 - row).to_vector<float>() ==
              (slice(rows, 0, row, row + 1) * 3.0).to_vector<float>());
    // A part of a tensor that the step also uses directly is copied, as before.
    auto other = capture([&](const Tensor& x) { return x + slice(rows, 0, 0, 1); });
    for (int row = 1; row < 5; ++row)
        CHECK(other(slice(rows, 0, row, row + 1)).to_vector<float>() ==
              (slice(rows, 0, row, row + 1) + slice(rows, 0, 0, 1)).to_vector<float>());
    CHECK(other.replayed() == 2);
    CHECK(other.refused().empty());
}

TEST_CASE("capture overlap: inputs that overlap each other or a tensor of the step match eager calls") {
    std::int64_t replayed = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        CAPTURE(seed);
        Rows by_replay, by_plain;
        replayed += calls(seed, true, by_replay);
        (void)calls(seed, false, by_plain);
        CHECK((by_replay == by_plain));
    }
    CHECK(replayed > 100);
}
