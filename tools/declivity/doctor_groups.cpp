// Work-groups, local memory, atomics and arguments, against the host's.
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr std::size_t kStatic = 256;  // work-items that static local memory is for

Kernel group_kernel(const Device& device, const std::string& name) {
    return Kernel(device, {"doctor_groups.cl", "doctor_" + name, {{"STATIC", std::to_string(kStatic)}}});
}

/// Sizes of work-groups up to what a kernel may have, powers of two and odd ones.
std::vector<std::size_t> sizes(const Kernel& kernel, std::size_t most) {
    most = std::min(most, kernel.max_work_group());
    std::vector<std::size_t> out;
    for (const std::size_t size : {1, 3, 16, 33, 64, 100, 256, 1000, 1024})
        if (size < most) out.push_back(size);
    out.push_back(most);
    return out;
}

std::vector<int> numbers(std::size_t count, std::uint64_t seed) {
    auto out = any_bits<int>(count, seed);
    for (int& one : out) one &= 0xfffff;
    return out;
}

constexpr std::size_t kGroups = 13;

/// One kernel at all sizes of work-groups: `wanted(in, size)` is what it should give.
template <class Out, class Launch, class Wanted>
std::string at_all_sizes(const Kernel& kernel, std::size_t most, std::size_t each, Launch&& run, Wanted&& wanted) {
    const Device device = kernel.device();
    for (const std::size_t size : sizes(kernel, most)) {
        const auto in = numbers(kGroups * size * each, size);
        const Buffer from = to_device(device, in), to(device, kGroups * size * sizeof(Out));
        run(Range{{kGroups * size}, {size}}, argument<int>(from), argument<Out>(to), size);
        const std::string wrong = first_difference(to_host<Out>(to, kGroups * size), wanted(in, size));
        if (!wrong.empty()) return fmt::format("with {} work-items a group: {}", size, wrong);
    }
    return {};
}

/// out[group, item] = of(elements of the group, item)
template <class Out, class Of>
std::vector<Out> each_item(const std::vector<int>& in, std::size_t size, Of&& of) {
    std::vector<Out> out;
    for (std::size_t g = 0; g < kGroups; ++g)
        for (std::size_t item = 0; item < size; ++item) out.push_back(of(std::span(in).subspan(g * size, size), item));
    return out;
}

std::string ids_are_right(const Device& device, const Extent& groups, const Extent& local) {
    const Kernel kernel = group_kernel(device, "ids");
    if (local[0] * local[1] * local[2] > kernel.max_work_group()) return {};
    for (std::size_t i = 0; i < 3; ++i)
        if (local[i] > device.info().max_work_items[i]) return {};
    const Extent global{groups[0] * local[0], groups[1] * local[1], groups[2] * local[2]};
    const std::size_t count = global[0] * global[1] * global[2];
    const Buffer out(device, 3 * count * sizeof(std::int64_t));
    launch(kernel, {global, local}, {argument<std::int64_t>(out)});
    std::vector<std::int64_t> wanted;
    const auto packed = [](std::size_t x, std::size_t y, std::size_t z) {
        return static_cast<std::int64_t>(x | y << 21 | z << 42);
    };
    for (std::size_t z = 0; z < global[2]; ++z)
        for (std::size_t y = 0; y < global[1]; ++y)
            for (std::size_t x = 0; x < global[0]; ++x) {
                wanted.push_back(packed(x, y, z));
                wanted.push_back(packed(x % local[0], y % local[1], z % local[2]));
                wanted.push_back(packed(x / local[0], y / local[1], z / local[2]));
            }
    const std::string wrong = first_difference(to_host<std::int64_t>(out, 3 * count), wanted);
    return wrong.empty() ? "" : fmt::format("groups of {} x {} x {}: {}", local[0], local[1], local[2], wrong);
}

}  // namespace

void examine_groups(Examination& e) {
    const Device device = e.device();
    const std::size_t most = device.info().max_work_group;
    e.check("ids in one, two and three dimensions", [&] {
        std::string wrong;
        for (const auto& [groups, local] : {std::pair<Extent, Extent>{{7}, {1}},
                                            {{5}, {33}},
                                            {{3}, {256}},
                                            {{3, 5}, {16, 16}},
                                            {{5, 3}, {8, 3}},
                                            {{2, 3, 4}, {4, 3, 5}},
                                            {{2, 2, 2}, {1, 1, 64}},
                                            {{300, 7}, {1, 1}}})
            if (wrong.empty()) wrong = ids_are_right(device, groups, local);
        return wrong;
    });
    e.check("static local memory", [&] {
        const Kernel kernel = group_kernel(device, "static");
        return at_all_sizes<int>(
            kernel, kStatic, 1,
            [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t) {
                launch(kernel, range, {in, out});
            },
            [](const auto& in, std::size_t size) {
                return each_item<int>(in, size,
                                      [](auto group, std::size_t item) { return group[group.size() - 1 - item]; });
            });
    });
    e.check("two arguments of local memory, of different types", [&] {
        const Kernel kernel = group_kernel(device, "local_arguments");
        const auto run = [&](const Range& range, const BufferArgument& in, const BufferArgument& out,
                             std::size_t size) {
            launch(kernel, range, {in, LocalMemory{size * sizeof(int)}, out, LocalMemory{size * sizeof(std::int64_t)}});
        };
        return at_all_sizes<std::int64_t>(kernel, std::min<std::size_t>(most, device.info().local_memory / 16), 1, run,
                                          [](const auto& in, std::size_t size) {
                                              return each_item<std::int64_t>(
                                                  in, size, [](auto group, std::size_t item) {
                                                      return std::int64_t{group[group.size() - 1 - item]} +
                                                             (std::int64_t{group[(item + 1) % group.size()]} << 32);
                                                  });
                                          });
    });
    e.check("all of the local memory that is reported", [&] {
        const Kernel kernel = group_kernel(device, "whole_local");
        const std::size_t size = std::min<std::size_t>(64, kernel.max_work_group()),
                          bytes = static_cast<std::size_t>(device.info().local_memory) / 4 * 4;
        const Buffer out(device, kGroups * size * sizeof(int));
        launch(kernel, {{kGroups * size}, {size}},
               {LocalMemory{bytes}, static_cast<std::int32_t>(bytes / 4), argument<int>(out)});
        const std::string wrong =
            first_difference(to_host<int>(out, kGroups * size), std::vector<int>(kGroups * size, 0));
        return wrong.empty() ? "" : fmt::format("{} bytes: {}", bytes, wrong);
    });
    e.check("two halves of local memory, one read while the other is written", [&]() -> std::string {
        const Kernel kernel = group_kernel(device, "double_buffer");
        for (const std::size_t size : sizes(kernel, kStatic))
            for (const int steps : {1, 2, 3, 8, 11}) {
                std::vector<float> in;
                for (const int one : numbers(kGroups * size * static_cast<std::size_t>(steps) * 4, size))
                    in.push_back(static_cast<float>(one % 32));
                const Buffer from = to_device(device, in), to(device, kGroups * size * sizeof(float));
                launch(kernel, {{kGroups * size}, {size}}, {argument<float>(from), steps, argument<float>(to)});
                std::vector<float> wanted;
                for (std::size_t g = 0; g < kGroups; ++g)
                    for (std::size_t item = 0; item < size; ++item) {
                        double sum = 0;
                        for (std::size_t s = 0; s < static_cast<std::size_t>(steps); ++s)
                            for (std::size_t i = 0; i < size; ++i)
                                for (std::size_t k = 0; k < 4; ++k)
                                    sum += static_cast<double>(
                                               in[((g * static_cast<std::size_t>(steps) + s) * size + i) * 4 + k]) *
                                           static_cast<double>(1 + (i + item) % 3);
                        wanted.push_back(static_cast<float>(sum));  // whole numbers, all exact
                    }
                if (const std::string wrong = first_difference(to_host<float>(to, kGroups * size), wanted);
                    !wrong.empty())
                    return fmt::format("with {} work-items a group and {} slices: {}", size, steps, wrong);
            }
        return {};
    });
    /// Launches with a number of local memory for each work-item.
    const auto with_tile = [](const Kernel& kernel) {
        return [kernel](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t size) {
            launch(kernel, range, {in, LocalMemory{size * sizeof(int)}, out});
        };
    };
    e.check("sums by halving, with barriers in a loop", [&] {
        const Kernel kernel = group_kernel(device, "tree");
        return at_all_sizes<int>(kernel, most, 1, with_tile(kernel), [](const auto& in, std::size_t size) {
            return each_item<int>(
                in, size, [](auto group, std::size_t) { return std::accumulate(group.begin(), group.end(), 0); });
        });
    });
    e.check("running sums, with two barriers in a loop", [&] {
        const Kernel kernel = group_kernel(device, "scan");
        return at_all_sizes<int>(kernel, most, 1, with_tile(kernel), [](const auto& in, std::size_t size) {
            return each_item<int>(in, size, [](auto group, std::size_t item) {
                return std::accumulate(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(item) + 1, 0);
            });
        });
    });
    e.check("barriers in a function, and in branches that whole groups take", [&] {
        const Kernel kernel = group_kernel(device, "uniform");
        return at_all_sizes<int>(kernel, most, 1, with_tile(kernel), [](const auto& in, std::size_t size) {
            std::vector<int> out;
            for (std::size_t g = 0; g < kGroups; ++g)
                for (std::size_t item = 0; item < size; ++item) {
                    const auto at = [&](std::size_t further) { return in[g * size + (item + further) % size]; };
                    const std::size_t rounds = g % 4;
                    out.push_back(at(rounds) + (g % 2 == 1 ? at(rounds + 1) : 0));
                }
            return out;
        });
    });
    e.check("exchange through global memory within a group", [&] {
        const Kernel kernel = group_kernel(device, "global_fence");
        return at_all_sizes<int>(
            kernel, most, 1,
            [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t) {
                launch(kernel, range, {in, out});
            },
            [](const auto& in, std::size_t size) {
                return each_item<int>(in, size, [](auto group, std::size_t item) {
                    return 2 * group[group.size() - 1 - (item + 1) % group.size()];
                });
            });
    });
    e.check("private arrays whose elements are chosen while a kernel runs", [&] {
        const Kernel kernel = group_kernel(device, "private");
        return at_all_sizes<int>(
            kernel, 64, 1,
            [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t) {
                launch(kernel, range, {in, out});
            },
            [](const auto& in, std::size_t size) {
                return each_item<int>(in, size, [](auto group, std::size_t item) {
                    std::array<std::uint32_t, 13> sums{};
                    std::iota(sums.begin(), sums.end(), 0U);
                    const auto value = static_cast<std::uint32_t>(group[item]);
                    for (std::uint32_t i = 0; i < 40; ++i) sums[(value + i * i) % 13] += i;
                    std::uint32_t all = 0;
                    for (std::uint32_t i = 0; i < 13; ++i) all = all * 3 + sums[(i + value) % 13];
                    return static_cast<int>(all);
                });
            });
    });
}

namespace {

template <class Integer>
void examine_counters(Examination& e, const Device& device, const Defines& defines, const char* bits) {
    const std::size_t items = 4096;
    e.check_unused(fmt::format("{} bits: inc, add, sub, compare-and-swap, exchange in global memory", bits), [&] {
        const Kernel kernel(device, {"doctor_atomics.cl", "doctor_counters", defines});
        const Buffer counters = to_device(device, std::vector<Integer>(6, 0));
        launch(kernel, {{items}, {std::min<std::size_t>(64, std::bit_floor(kernel.max_work_group()))}},
               {argument<Integer>(counters)});
        const auto got = to_host<Integer>(counters, 6);
        const auto n = static_cast<Integer>(items);
        // What is exchanged in is either handed out again or stays.
        std::vector<Integer> seen{got[0], got[1], got[2], got[3], static_cast<Integer>(got[4] + got[5])};
        return first_difference(seen, std::vector<Integer>{n, n * (n - 1) / 2, -3 * n, n * (n - 1), n * (n + 1) / 2});
    });
    e.check_unused(fmt::format("{} bits: add in local memory", bits), [&] {
        const Kernel kernel(device, {"doctor_atomics.cl", "doctor_local_counter", defines});
        const std::size_t group = std::min<std::size_t>(64, std::bit_floor(kernel.max_work_group())),
                          groups = items / group;
        const Buffer sums(device, groups * sizeof(Integer));
        launch(kernel, {{items}, {group}}, {argument<Integer>(sums)});
        std::vector<Integer> wanted;
        for (std::size_t g = 0; g < groups; ++g)
            wanted.push_back(static_cast<Integer>(g * group * group + group * (group - 1) / 2));
        return first_difference(to_host<Integer>(sums, groups), wanted);
    });
}

}  // namespace

void examine_atomics(Examination& e) {
    const Device device = e.device();
    examine_counters<std::int32_t>(e, device, {}, "32");
    e.check_unused("32 bits: min, max, and, or, xor", [&] {
        const auto in = any_bits<int>(5000, 12);
        std::vector<int> wanted{INT32_MAX, INT32_MIN, -1, 0, 0};
        const Buffer from = to_device(device, in), counters = to_device(device, wanted);
        for (const int one : in) {
            wanted[0] = std::min(wanted[0], one), wanted[1] = std::max(wanted[1], one);
            wanted[2] &= one, wanted[3] |= one, wanted[4] ^= one;
        }
        launch(Kernel(device, {"doctor_atomics.cl", "doctor_extrema"}), {{in.size()}},
               {argument<int>(from), argument<int>(counters)});
        return first_difference(to_host<int>(counters, 5), wanted);
    });
    if (device.info().int64_atomics) examine_counters<std::int64_t>(e, device, {{"WIDE", "1"}}, "64");
    else e.skip("64 bits", "the device does not report cl_khr_int64_base_atomics");
}

namespace {

// As doctor_arguments.cl has them.
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
struct Large {
    std::int32_t values[251];
    float last;
};
struct Padded {
    std::int64_t a;
    std::int32_t b;
};

using Written = std::vector<std::int64_t>;

std::string writes(const Device& device, const char* name, const Written& wanted,
                   const std::function<void(const Kernel&, const BufferArgument&)>& run) {
    const Kernel kernel(device, {"doctor_arguments.cl", fmt::format("doctor_{}", name)});
    const Buffer out(device, wanted.size() * sizeof(std::int64_t));
    run(kernel, argument<std::int64_t>(out));
    return first_difference(to_host<std::int64_t>(out, wanted.size()), wanted);
}

}  // namespace

void examine_arguments(Examination& e) {
    const Device device = e.device();
    const Odd odd{-1, 20000000, 3};
    const auto simple = [&](const char* what, const char* name, const Written& wanted, auto&& run) {
        e.check(what, [&] { return writes(device, name, wanted, run); });
    };
    simple("a struct of 8 bytes", "small", {-5, 77}, [](const Kernel& k, const BufferArgument& out) {
        launch(k, {{1}}, {Small{-5, 77}, out});
    });
    simple("a struct of 12 bytes, behind memory", "odd", {-1, 20000000, 3},
           [&](const Kernel& k, const BufferArgument& out) {
               launch(k, {{1}}, {out, odd});
           });
    const Longs longs{{1, -2, std::int64_t{3} << 40, 4, 5, 6, INT64_MIN}, 8, -9};
    simple("a struct of 64 bytes with an array of 64-bit numbers", "longs",
           {1, -2, std::int64_t{3} << 40, 4, 5, 6, INT64_MIN, 8, -9}, [&](const Kernel& k, const BufferArgument& out) {
               launch(k, {{1}}, {longs, out});
           });
    const Bytes bytes{{1, 2, 3, 250, 5}, {-6, 7, -8}, {-900, 1000}, 1100};
    simple("a struct with arrays of 1 and 2 bytes, between numbers", "bytes",
           {41, 1, 2, 3, 250, 5, -6, 7, -8, -900, 1000, 1100, -42}, [&](const Kernel& k, const BufferArgument& out) {
               launch(k, {{1}}, {std::int32_t{41}, bytes, std::int32_t{-42}, out});
           });
    const Nested nested{-(std::int64_t{1} << 50),
                        {{{1, 2, 3}, 4}, {{5, 6, 7}, 8}, {{9, 10, 11}, 12}},
                        {13, 14, 15, 16, 17, 18, 19, 20},
                        std::int64_t{21} << 33};
    Written of_nested{nested.first};
    for (std::int64_t i = 1; i <= 20; ++i) of_nested.push_back(i);
    for (const std::int64_t one : {nested.last, std::int64_t{odd.a}, std::int64_t{odd.b}, std::int64_t{odd.c}})
        of_nested.push_back(one);
    simple("structs in a struct, and a second struct behind local memory", "nested", of_nested,
           [&](const Kernel& k, const BufferArgument& out) {
               launch(k, {{1}}, {nested, LocalMemory{16}, odd, out});
           });
    Large large{};
    Written of_large;
    for (std::int32_t i = 0; i < 251; ++i) large.values[i] = i * i - 1000;
    of_large.push_back(large.values[0]);
    of_large.insert(of_large.end(), large.values + 100, large.values + 200);
    of_large.push_back(large.values[250]);
    of_large.push_back(static_cast<std::int64_t>(large.last = -12345));
    simple("a struct of 1008 bytes", "large", of_large, [&](const Kernel& k, const BufferArgument& out) {
        launch(k, {{1}}, {large, out});
    });
    Written many;
    for (std::int64_t i = 0; i < 126; ++i) many.push_back((i - 60) << (i % 50));
    simple("126 numbers of 8 bytes, 1024 bytes with memory and offset", "many", many,
           [&](const Kernel& k, const BufferArgument& out) {
               std::vector<Argument> arguments(many.begin(), many.end());
               arguments.emplace_back(out);
               launch(k, {{1}}, arguments);
           });
    simple("numbers of all sizes", "types",
           {-1, std::int64_t{2} << 40, 253, -4000, 5, 60000, -7, 8, std::int64_t{9} << 45},
           [](const Kernel& k, const BufferArgument& out) {
               launch(k, {{1}},
                      {std::int8_t{-1}, std::int64_t{2} << 40, std::uint8_t{253}, std::int16_t{-4000}, 5.0F,
                       std::uint16_t{60000}, std::int32_t{-7}, std::int8_t{8}, std::uint64_t{9} << 45, out});
           });
    // Some drivers count the inner arrays wrongly.
    e.check_unused("a struct with an array of arrays", [&] {
        return writes(device, "table", {-5, 1, 2, 3, 4, 5, 6, 7, 8, 9}, [](const Kernel& k, const BufferArgument& out) {
            launch(k, {{1}}, {Table{-5, {{1, 2, 3, 4}, {5, 6, 7, 8}}, 9}, out});
        });
    });
    e.check_unused("a struct with padding behind its last member", [&] {
        return writes(device, "padded", {-77, 88}, [](const Kernel& k, const BufferArgument& out) {
            const Padded padded{-77, 88};
            launch(k, {{1}}, {RawArgument{&padded, sizeof padded}, out});
        });
    });
}

}  // namespace declivity::tools::doctor
