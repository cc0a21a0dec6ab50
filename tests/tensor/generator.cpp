// Generators: numbers by seed and position, parts of larger draws, captured and resumed.
#include <declivity/tensor/generator.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/sequential.hpp>
#include <declivity/ops/philox.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>
#include "ops/support/work_split.hpp"
#include "tests/support/devices.hpp"

using namespace declivity;
using test::values;

namespace {

/// Word number i of a stream.
std::uint32_t word(std::uint64_t seed, std::uint64_t i) { return philox_block(seed, i / 4)[i % 4]; }

double unit(DType dtype, std::uint64_t seed, std::uint64_t first, std::uint64_t i) {
    if (dtype != DType::f64) return static_cast<double>(unit_uniform(word(seed, first + i)));
    const std::uint64_t at = first + 2 * i, bits = std::uint64_t{word(seed, at + 1)} << 32 | word(seed, at);
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

using Draw = std::function<Tensor(const Shape&, DType, const Generator&)>;

std::vector<Draw> draws() {
    return {
        [](const Shape& shape, DType dtype, const Generator& from) { return uniform(shape, -2, 3, {dtype}, from); },
        [](const Shape& shape, DType dtype, const Generator& from) { return normal(shape, 1, 2, {dtype}, from); },
        [](const Shape& shape, DType dtype, const Generator& from) { return bernoulli(shape, 0.4, {dtype}, from); },
        [](const Shape& shape, DType dtype, const Generator& from) {
            return randint(-5, 1000, shape, {DType::i64}, from).to(dtype);
        },
        [](const Shape& shape, DType dtype, const Generator& from) {
            return dropout(ones(shape, {dtype, from.device()}), 0.3, from);
        },
        // After another function, fused into its kernel, and reduced without being stored.
        [](const Shape& shape, DType dtype, const Generator& from) {
            const Tensor x = rand(shape, {dtype}, from);
            return max(square(x) + x, {-1}, true) + 0 * x;
        },
    };
}

}  // namespace

TEST_CASE("generator: numbers depend on seed and position only, from any position") {
    for (const DType dtype : test::floats())
        for (const std::uint64_t position : {0ULL, 1ULL, 2ULL, 3ULL, 6ULL, 17ULL, 0x3fffffffdULL})
            for (const std::int64_t size : {1, 2, 3, 5, 33, 1030}) {
                if (test::small_cases() && size != 5 && size != 33) continue;
                CAPTURE(position);
                CAPTURE(size);
                Generator from(77, test::device());
                from.set_position(position);
                CHECK(from.position() == position);
                CHECK(from.seed() == 77);
                const auto numbers_drawn = values(rand({size}, {dtype}, from));
                const std::uint64_t first = dtype == DType::f64 ? (position + 1) / 2 * 2 : position,
                                    numbers_per_element = dtype == DType::f64 ? 2 : 1;
                int wrong = 0;
                for (std::uint64_t i = 0; i < numbers_drawn.size(); ++i)
                    wrong += numbers_drawn[i] != unit(dtype, 77, first, i);
                CHECK(wrong == 0);
                CHECK(from.position() == (first + numbers_per_element * static_cast<std::uint64_t>(size) + 3) / 4 * 4);
            }
}

TEST_CASE("generator: rows of a batch have the numbers of the whole, call by call, bit for bit") {
    const std::int64_t total_rows = 13;
    for (const KernelStyle style : test::kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
            if (dtype == DType::f64 && !test::device().info().fp64) continue;
            if (dtype != DType::f32 && test::small_cases()) continue;
            CAPTURE(name_of(dtype));
            const std::vector<std::pair<int, int>> parts = {{5, 6}, {0, 5}, {6, 13}, {0, 13}};
            for (const auto& [first, end] : std::span(parts).first(test::small_cases() ? 1 : parts.size())) {
                const Generator all(5, test::device()),
                    part = Generator(5, test::device()).rows(first, end, total_rows);
                for (int call = 0; call < 2; ++call)
                    for (const Draw& draw : draws())
                        for (const std::int64_t row : {7, 1, 1033}) {
                            if (row != 7 && test::small_cases()) continue;
                            const auto all_rows = values(slice(draw({total_rows, row}, dtype, all), 0, first, end));
                            CHECK(values(draw({end - first, row}, dtype, part)) == all_rows);
                        }
                CHECK(all.position() == part.position());
            }
        }
    }
}

TEST_CASE("generator: dropout of rows matches the rows of dropout, also in gradients") {
    Tensor x = test::random_tensor({9, 11}, 1).set_requires_grad();
    const Generator all(8, test::device());
    const Tensor y = dropout(dropout(x, 0.5, all), 0.25, all);
    sum(y * test::random_tensor({9, 11}, 2)).backward();
    Tensor part = slice(x.detach(), 0, 4, 9).clone().set_requires_grad();
    const Generator rows = Generator(8, test::device()).rows(4, 9, 9);
    const Tensor z = dropout(dropout(part, 0.5, rows), 0.25, rows);
    sum(z * slice(test::random_tensor({9, 11}, 2), 0, 4, 9)).backward();
    CHECK(values(z) == values(slice(y.detach(), 0, 4, 9)));
    CHECK(values(part.grad()) == values(slice(x.grad(), 0, 4, 9)));
}

TEST_CASE("generator: the device has a default generator; manual_seed does not affect others") {
    const RandomState before = random_state(test::device());
    const Generator default_generator = Generator::default_of(test::device());
    Generator separate(3, test::device());
    manual_seed(21);
    CHECK(default_generator.seed() == 21);
    CHECK(separate.seed() == 3);
    const auto numbers = values(uniform({10}, 0, 1, {.device = test::device()}));
    CHECK(default_generator.position() == 12);
    CHECK(random_state(test::device()).offset == 3);
    CHECK(separate.position() == 0);
    CHECK(values(uniform({10}, 0, 1, {}, Generator(21, test::device()))) == numbers);
    CHECK(default_generator == Generator::default_of(test::device()));
    CHECK_FALSE(default_generator == separate);
    const Generator same = separate;  // a handle
    (void)rand({5}, {}, same);
    CHECK(separate.position() == 8);
    separate.manual_seed(3);
    CHECK(same.position() == 0);
    set_random_state(test::device(), before);
}

TEST_CASE("generator: a captured step advances it and matches eager calls bit for bit") {
    for (const std::uint64_t start : {0ULL, 3ULL}) {
        std::vector<std::vector<double>> found[2];
        for (const bool captured : {false, true}) {
            Generator from(4, test::device());
            from.set_position(start);
            nn::Sequential model(nn::Linear(6, 5), nn::Dropout(0.5, from));
            std::uint64_t seed = 0;
            for (const Tensor& parameter : model.parameters()) {
                const NoGrad none;
                Tensor(parameter).copy_(test::random_tensor(parameter.shape(), ++seed));
            }
            const auto step = [&](const std::vector<Tensor>& x) {
                return std::vector{(model(x[0]) + normal({7, 5}, 0, 1, {}, from)).detach(),
                                   randint(0, 9, {3}, {DType::i32}, from)};
            };
            auto replayed = capture(step);
            for (std::uint64_t t = 0; t < 5; ++t) {
                if (t == 3) from.set_position(1001);
                const std::vector<Tensor> x{test::random_tensor({7, 6}, 10 + t)};
                for (const Tensor& tensor : captured ? replayed(x) : step(x)) found[captured].push_back(values(tensor));
                found[captured].push_back({static_cast<double>(from.position())});
            }
            if (captured) CHECK(replayed.replayed() >= 1);  // from the middle of a block it is captured again
        }
        CHECK(found[0] == found[1]);
    }
}

TEST_CASE("generator: one created in a captured step restarts in each replay") {
    const auto step = [](const Tensor& x) {
        const Generator from(6, x.device());
        const Tensor first = rand({5}, {}, from);
        return x + first * 2.0 + rand({5}, {}, from);
    };
    const Tensor x = test::random_tensor({5}, 1);
    const auto expected = values(step(x));
    auto replayed = capture(step);
    for (int call = 0; call < 3; ++call) CHECK(values(replayed(x)) == expected);
    CHECK(replayed.replayed() == 2);
}

TEST_CASE("generator: dropout resumes from seed and position, and is the same when a checkpoint recomputes it") {
    Generator from(12, test::device());
    nn::Dropout layer(0.4);
    layer.set_generator(from);
    const Tensor x = test::random_tensor({5, 77}, 1);
    (void)layer(x);
    const std::uint64_t seed = from.seed(), position = from.position();
    const auto expected = values(layer(x)), further = values(layer(x));
    Generator resumed(seed, test::device());
    layer.set_generator(resumed.set_position(position));
    CHECK(values(layer(x)) == expected);
    CHECK(values(layer(x)) == further);
    for (const bool again : {false, true}) {
        Tensor leaf = x.clone().set_requires_grad();
        from.set_position(position);
        const auto function = [&](const Tensor& in) { return square(layer(tanh(in))); };
        layer.set_generator(from);
        sum(again ? checkpoint(function, leaf) : function(leaf)).backward();
        static std::vector<double> plain;
        if (!again) plain = values(leaf.grad());
        else CHECK(values(leaf.grad()) == plain);
    }
}

TEST_CASE("generator: initialisers") {
    const Generator a(6, test::device()), b(6, test::device());
    const std::vector<std::function<Tensor(Tensor, const Generator&)>> all{
        [](Tensor x, const Generator& from) { return nn::uniform_(x, -1, 2, from); },
        [](Tensor x, const Generator& from) { return nn::normal_(x, 1, 2, from); },
        [](Tensor x, const Generator& from) { return nn::truncated_normal_(x, 0, 1, 1, from); },
        [](Tensor x, const Generator& from) { return nn::kaiming_uniform_(x, 0.1, from); },
        [](Tensor x, const Generator& from) { return nn::kaiming_normal_(x, 0.1, from); },
        [](Tensor x, const Generator& from) { return nn::xavier_uniform_(x, 2, from); },
        [](Tensor x, const Generator& from) { return nn::xavier_normal_(x, 2, from); },
    };
    const RandomState before = random_state(test::device());
    for (const auto& fill : all) {
        const auto first = values(fill(zeros({7, 9}, {.device = test::device()}), a));
        CHECK(values(fill(zeros({7, 9}, {.device = test::device()}), b)) == first);
        CHECK(values(fill(zeros({7, 9}, {.device = test::device()}), a)) != first);
        (void)fill(zeros({7, 9}, {.device = test::device()}), b);
    }
    CHECK(a.position() == b.position());
    CHECK(random_state(test::device()).offset == before.offset);
}

TEST_CASE("randint: integers of an interval, from two words each") {
    for (const auto& [low, high] : {std::pair<std::int64_t, std::int64_t>{0, 2},
                                    {-7, 8},
                                    {5, 6},
                                    {-(std::int64_t{1} << 40), std::int64_t{1} << 40},
                                    {0, std::int64_t{1} << 48}}) {
        CAPTURE(low);
        const Generator from(31, test::device());
        const auto numbers_drawn = randint(low, high, {3, 35}, {DType::i64}, from).to_vector<std::int64_t>();
        const auto range = static_cast<std::uint64_t>(high - low);
        int wrong = 0;
        for (std::uint64_t i = 0; i < 105; ++i) {
            const std::uint64_t bits = std::uint64_t{word(31, i) >> 8} << 24 | word(31, 108 + i) >> 8;
            wrong += numbers_drawn[i] != low + static_cast<std::int64_t>(bits % range);
        }
        CHECK(wrong == 0);
    }
    const auto dice = randint(1, 7, {6000}, {DType::u8}, Generator(1, test::device())).to_vector<std::uint8_t>();
    std::array<int, 8> counts{};
    for (const std::uint8_t number : dice) ++counts[number];
    for (std::size_t face = 1; face < 7; ++face) CHECK(std::abs(counts[face] - 1000) < 150);
    CHECK_THROWS_WITH_AS((void)randint(3, 3, {2}), doctest::Contains("randint: expected low < high"), ValueError);
    CHECK_THROWS_AS((void)randint(0, (std::int64_t{1} << 48) + 1, {2}), ValueError);
    CHECK_THROWS_WITH_AS((void)randint(0, 257, {2}, {DType::u8}),
                         "randint: expected numbers representable in u8, got 256 among them", ValueError);
    CHECK_THROWS_AS((void)randint(0, 300, {2}, {DType::bf16}), ValueError);
    CHECK(randint(0, 5, {0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("randperm: a random order, computed on the host") {
    for (const std::int64_t n : {0, 1, 2, 7, 1001}) {
        CAPTURE(n);
        const Generator from(9, test::device());
        const auto numbers_drawn = randperm(n, {DType::i64}, from).to_vector<std::int64_t>();
        std::vector<std::int64_t> expected(static_cast<std::size_t>(n));
        std::iota(expected.begin(), expected.end(), 0);
        for (std::uint64_t i = 0; i < expected.size(); ++i) {
            const std::uint64_t bits = std::uint64_t{word(9, 2 * i)} << 32 | word(9, 2 * i + 1);
            std::swap(expected[i], expected[i + bits % (expected.size() - i)]);
        }
        CHECK(numbers_drawn == expected);
        CHECK(from.position() == (2 * static_cast<std::uint64_t>(n) + 3) / 4 * 4);
        auto sorted = numbers_drawn;
        std::ranges::sort(sorted);
        for (std::size_t i = 0; i < sorted.size(); ++i) CHECK(sorted[i] == static_cast<std::int64_t>(i));
    }
    CHECK(randperm(5, {DType::u8}).dtype() == DType::u8);
    CHECK_THROWS_AS((void)randperm(-1), ValueError);
    CHECK_THROWS_AS((void)randperm(300, {DType::u8}), ValueError);
    auto step = capture([](const Tensor& x) { return x + randperm(3).to(DType::f32); });
    CHECK_THROWS_WITH_AS((void)step(ones({3})), doctest::Contains("randperm"), Unsupported);
    Tensor leaf = ones({3}).set_requires_grad();
    CHECK_THROWS_WITH_AS((void)checkpoint([](const Tensor& x) { return x * randperm(3).to(DType::f32); }, leaf),
                         doctest::Contains("randperm: expected to be called outside of checkpoint()"), ValueError);
}

TEST_CASE("generator: errors name the argument") {
    const Generator from(1, test::device());
    CHECK_THROWS_WITH_AS((void)from.rows(3, 3, 5),
                         "Generator::rows: expected rows [first, end) of a batch, got [3, 3) of 5", ShapeError);
    CHECK_THROWS_AS((void)from.rows(-1, 3, 5), ShapeError);
    CHECK_THROWS_AS((void)from.rows(1, 6, 5), ShapeError);
    CHECK_THROWS_WITH_AS((void)rand({4, 2}, {}, from.rows(1, 4, 5)),
                         doctest::Contains("rand: expected a tensor of 3 rows for a generator of rows [1, 4) of 5, got "
                                           "shape [4, 2]"),
                         ShapeError);
    CHECK_THROWS_AS((void)rand({}, {}, from.rows(1, 4, 5)), ShapeError);
    CHECK_THROWS_WITH_AS((void)randperm(3, {DType::i64}, from.rows(1, 4, 5)),
                         doctest::Contains("randperm: expected a generator of all rows"), ShapeError);
    const Device other = test::fresh_device();
    CHECK_THROWS_WITH_AS((void)rand({4}, {.device = other}, from), doctest::Contains("rand: expected a generator on"),
                         DeviceError);
    CHECK_THROWS_WITH_AS((void)dropout(ones({4}, {.device = other}), 0.5, from),
                         doctest::Contains("dropout: expected a generator on x's device, '"), DeviceError);
    CHECK_THROWS_AS((void)nn::truncated_normal_(ones({4}, {.device = other}), 0, 1, 2, from), DeviceError);
    CHECK(from.position() == 0);
}

TEST_CASE("like: shape, type and device of another tensor") {
    for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
        const Tensor x = ones({3, 5}, {dtype, test::device()});
        const Tensor filled = full_like(x, 7);
        CHECK(filled.dtype() == dtype);
        CHECK(values(filled) == std::vector<double>(15, 7));
        const Tensor integers = randint_like(x, 2, 4, Generator(1, test::device()));
        CHECK(integers.dtype() == dtype);
        CHECK(values(integers) == values(randint(2, 4, {3, 5}, {dtype}, Generator(1, test::device()))));
        if (dtype == DType::i32) continue;
        CHECK(values(rand_like(x, Generator(1, test::device()))) ==
              values(rand({3, 5}, {dtype}, Generator(1, test::device()))));
        CHECK(values(randn_like(x, Generator(1, test::device()))) ==
              values(randn({3, 5}, {dtype}, Generator(1, test::device()))));
    }
    CHECK_THROWS_AS((void)rand_like(ones({2}, {DType::i32})), TypeError);
    CHECK_THROWS_WITH_AS((void)randn_like({}), doctest::Contains("randn_like: expected a tensor"), ValueError);
    CHECK_THROWS_AS((void)full_like({}, 1), ValueError);
}
