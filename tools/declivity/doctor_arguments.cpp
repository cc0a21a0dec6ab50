// Kernel arguments: structs and numbers of all sizes.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

// Must match doctor_arguments.cl.
struct Small {
    std::int32_t a;
    float b;
};
struct Odd {
    std::int32_t a, b, c;
};
struct Longs {
    std::int64_t a[7];
    std::int32_t b, c;
};
struct Bytes {
    std::uint8_t a[5];
    std::int8_t b[3];
    std::int16_t c[2];
    std::int32_t d;
};
struct Inner {
    std::int32_t a[3];
    float b;
};
struct Nested {
    std::int64_t first;
    Inner inner[3];
    std::int32_t list[8];
    std::int64_t last;
};
struct Table {
    std::int64_t first;
    std::int32_t table[2][4];
    std::int64_t last;
};
struct LargeStruct {
    std::int32_t values[251];
    float last;
};
struct Padded {
    std::int64_t a;
    std::int32_t b;
};

using Written = std::vector<std::int64_t>;

std::string writes(const Device& device, const char* name, const Written& expected,
                   const std::function<void(const Kernel&, const BufferArgument&)>& run) {
    const Kernel kernel(device, {"doctor_arguments.cl", fmt::format("doctor_{}", name)});
    const Buffer out(device, expected.size() * sizeof(std::int64_t));
    run(kernel, argument<std::int64_t>(out));
    return first_difference(to_host<std::int64_t>(out, expected.size()), expected);
}

void check_written(DoctorRun& e, const Device& device, const char* check_name, const char* name,
                   const Written& expected, const std::function<void(const Kernel&, const BufferArgument&)>& run) {
    e.check(check_name, [&] { return writes(device, name, expected, run); });
}

constexpr Odd kOdd{-1, 20000000, 3};

void examine_plain_structs(DoctorRun& e, const Device& device) {
    check_written(e, device, "a struct of 8 bytes", "small", {-5, 77}, [](const Kernel& k, const BufferArgument& out) {
        launch(k, {{1}}, {Small{-5, 77}, out});
    });
    check_written(e, device, "a struct of 12 bytes, behind memory", "odd", {-1, 20000000, 3},
                  [&](const Kernel& k, const BufferArgument& out) {
                      launch(k, {{1}}, {out, kOdd});
                  });
    const Longs longs{{1, -2, std::int64_t{3} << 40, 4, 5, 6, INT64_MIN}, 8, -9};
    check_written(e, device, "a struct of 64 bytes with an array of 64-bit numbers", "longs",
                  {1, -2, std::int64_t{3} << 40, 4, 5, 6, INT64_MIN, 8, -9},
                  [&](const Kernel& k, const BufferArgument& out) {
                      launch(k, {{1}}, {longs, out});
                  });
    const Bytes bytes{{1, 2, 3, 250, 5}, {-6, 7, -8}, {-900, 1000}, 1100};
    check_written(e, device, "a struct with arrays of 1 and 2 bytes, between numbers", "bytes",
                  {41, 1, 2, 3, 250, 5, -6, 7, -8, -900, 1000, 1100, -42},
                  [&](const Kernel& k, const BufferArgument& out) {
                      launch(k, {{1}}, {std::int32_t{41}, bytes, std::int32_t{-42}, out});
                  });
}

void examine_larger_structs(DoctorRun& e, const Device& device) {
    const Nested nested{-(std::int64_t{1} << 50),
                        {{{1, 2, 3}, 4}, {{5, 6, 7}, 8}, {{9, 10, 11}, 12}},
                        {13, 14, 15, 16, 17, 18, 19, 20},
                        std::int64_t{21} << 33};
    Written expected_nested{nested.first};
    for (std::int64_t i = 1; i <= 20; ++i) expected_nested.push_back(i);
    for (const std::int64_t value : {nested.last, std::int64_t{kOdd.a}, std::int64_t{kOdd.b}, std::int64_t{kOdd.c}})
        expected_nested.push_back(value);
    check_written(e, device, "structs in a struct, and a second struct behind local memory", "nested", expected_nested,
                  [&](const Kernel& k, const BufferArgument& out) {
                      launch(k, {{1}}, {nested, LocalMemory{16}, kOdd, out});
                  });
    LargeStruct large{};
    Written expected_large;
    for (std::int32_t i = 0; i < 251; ++i) large.values[i] = i * i - 1000;
    expected_large.push_back(large.values[0]);
    expected_large.insert(expected_large.end(), large.values + 100, large.values + 200);
    expected_large.push_back(large.values[250]);
    expected_large.push_back(static_cast<std::int64_t>(large.last = -12345));
    check_written(e, device, "a struct of 1008 bytes", "large", expected_large,
                  [&](const Kernel& k, const BufferArgument& out) {
                      launch(k, {{1}}, {large, out});
                  });
}

void examine_many_numbers(DoctorRun& e, const Device& device) {
    Written expected_numbers;
    for (std::int64_t i = 0; i < 126; ++i) expected_numbers.push_back((i - 60) << (i % 50));
    check_written(e, device, "126 numbers of 8 bytes, 1024 bytes with memory and offset", "many", expected_numbers,
                  [&](const Kernel& k, const BufferArgument& out) {
                      std::vector<Argument> arguments(expected_numbers.begin(), expected_numbers.end());
                      arguments.emplace_back(out);
                      launch(k, {{1}}, arguments);
                  });
    check_written(e, device, "numbers of all sizes", "types",
                  {-1, std::int64_t{2} << 40, 253, -4000, 5, 60000, -7, 8, std::int64_t{9} << 45},
                  [](const Kernel& k, const BufferArgument& out) {
                      launch(k, {{1}},
                             {std::int8_t{-1}, std::int64_t{2} << 40, std::uint8_t{253}, std::int16_t{-4000}, 5.0F,
                              std::uint16_t{60000}, std::int32_t{-7}, std::int8_t{8}, std::uint64_t{9} << 45, out});
                  });
}

}  // namespace

void examine_arguments(DoctorRun& e) {
    const Device device = e.device();
    examine_plain_structs(e, device);
    examine_larger_structs(e, device);
    examine_many_numbers(e, device);
    // Some drivers miscount the inner arrays.
    e.check_unused("a struct with an array of arrays", [&] {
        return writes(device, "table", {-5, 1, 2, 3, 4, 5, 6, 7, 8, 9}, [](const Kernel& k, const BufferArgument& out) {
            launch(k, {{1}}, {Table{-5, {{1, 2, 3, 4}, {5, 6, 7, 8}}, 9}, out});
        });
    });
    e.check_unused("a struct with padding after its last member", [&] {
        return writes(device, "padded", {-77, 88}, [](const Kernel& k, const BufferArgument& out) {
            const Padded padded{-77, 88};
            launch(k, {{1}}, {RawArgument{&padded, sizeof padded}, out});
        });
    });
}

}  // namespace declivity::tools::doctor
