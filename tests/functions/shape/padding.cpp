// no-oclgrind: its kernels are those of the tests of gather and of elementwise copies
// pad: modes, negative pads, all types, errors; sizes that overflow.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

TEST_CASE("pad: modes, cropping, all types") {
    const Tensor x = Tensor::from<std::int32_t>({1, 2, 3, 4}, {4});
    const auto padded = [&](std::vector<std::int64_t> pads, PadMode mode) { return values(pad(x, pads, mode)); };
    using List = std::vector<double>;
    CHECK(padded({3, 2}, PadMode::reflect) == List{4, 3, 2, 1, 2, 3, 4, 3, 2});
    CHECK(padded({2, 3}, PadMode::replicate) == List{1, 1, 1, 2, 3, 4, 4, 4, 4});
    CHECK(padded({4, 1}, PadMode::circular) == List{1, 2, 3, 4, 1, 2, 3, 4, 1});
    CHECK(padded({2, -4}, PadMode::replicate) == List{1, 1});
    CHECK(padded({-1, 2}, PadMode::reflect) == List{2, 3, 4, 3, 2});
    CHECK(padded({-1, 2}, PadMode::circular) == List{2, 3, 4, 2, 3});
    CHECK(padded({-3, 1}, PadMode::zeros) == List{4, 0});
    CHECK(padded({0, 0}, PadMode::reflect) == List{1, 2, 3, 4});
    CHECK(values(pad(x > 2, {1, 0}, PadMode::circular)) == List{1, 0, 0, 1, 1});
    CHECK(pad(zeros({0, 3}), {2, 1}, PadMode::replicate).shape() == Shape{0, 6});
    CHECK(values(pad(x, {-1}, {2}, 7)) == List{2, 3, 4, 7, 7});
}

TEST_CASE("pad: errors") {
    const Tensor line = zeros({1, 2, 5});
    const auto begins = [](const char* name, const std::function<void()>& call) {
        CAPTURE(name);
        CHECK_UNARY(error_message<Error>(call).starts_with(std::string(name) + ": expected "));
    };
    begins("pad", [&] { (void)pad(line, {1}); });
    begins("pad", [&] { (void)pad(line, {5, 0}, PadMode::reflect); });
    begins("pad", [&] { (void)pad(line, {6, 0}, PadMode::circular); });
    begins("pad", [&] { (void)pad(zeros({2, 0}), {1, 0}, PadMode::replicate); });
    begins("pad", [&] { (void)pad(line, {-3, -3}); });
    begins("pad", [&] { (void)pad(line, {-3, -3}, PadMode::reflect); });
}

TEST_CASE("pad and other shape functions: sizes that overflow are refused by name") {
    constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max(), too_many = std::int64_t{1} << 40;
    const Tensor line = ones({1, 1, 9});
    const auto check_error = [](const char* message, auto call) {
        CAPTURE(message);
        CHECK_THROWS_WITH_AS(call(), doctest::Contains(message), ValueError);
    };
    check_error("pad: expected numbers up to 2^31 as the pads, got", [&] { pad(line, {max_int64, max_int64}); });
    check_error("pixel_shuffle: expected numbers up to 2^31 as the factor, got", [&] {
        pixel_shuffle(ones({1, 4, 1, 1}), max_int64);
    });
    check_error("tensor_split: expected numbers up to 2^31 as the sections, got",
                [&] { tensor_split(line, too_many); });
    check_error("tril_indices: expected numbers up to 2^31 as sizes, got", [&] { tril_indices(too_many, too_many); });
    CHECK(combinations(arange(3), 4).shape() == Shape{0, 4});
    CHECK(combinations(arange(3), 7, true).shape() == Shape{36, 7});
}
