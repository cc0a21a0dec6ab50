// Work-groups, local memory and barriers, compared with the host.
#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

constexpr std::size_t kStatic = 256;  // work-items that fit the static local memory

Kernel group_kernel(const Device& device, const std::string& name) {
    return Kernel(device, {"doctor_groups.cl", "doctor_" + name, {{"STATIC", std::to_string(kStatic)}}});
}

/// Work-group sizes up to the kernel's limit, powers of two and odd ones.
std::vector<std::size_t> sizes(const Kernel& kernel, std::size_t max_size) {
    max_size = std::min(max_size, kernel.max_work_group());
    std::vector<std::size_t> out;
    for (const std::size_t size : {1, 3, 16, 33, 64, 100, 256, 1000, 1024})
        if (size < max_size) out.push_back(size);
    out.push_back(max_size);
    return out;
}

std::vector<int> random_ints(std::size_t count, std::uint64_t seed) {
    auto out = any_bits<int>(count, seed);
    for (int& output : out) output &= 0xfffff;
    return out;
}

constexpr std::size_t kGroups = 13;

/// Runs a kernel with all work-group sizes; `expected(in, size)` is the expected result.
template <class Out, class Launch, class Expected>
std::string at_all_sizes(const Kernel& kernel, std::size_t max_size, std::size_t elements_per_item, Launch&& run,
                         Expected&& expected) {
    const Device device = kernel.device();
    for (const std::size_t size : sizes(kernel, max_size)) {
        const auto in = random_ints(kGroups * size * elements_per_item, size);
        const Buffer from = to_device(device, in), to(device, kGroups * size * sizeof(Out));
        run(Range{{kGroups * size}, {size}}, argument<int>(from), argument<Out>(to), size);
        const std::string wrong = first_difference(to_host<Out>(to, kGroups * size), expected(in, size));
        if (!wrong.empty()) return fmt::format("with {} work-items a group: {}", size, wrong);
    }
    return {};
}

/// out[group, item] = of(elements of the group, item)
template <class Out, class ItemFunction>
std::vector<Out> map_items(const std::vector<int>& in, std::size_t size, ItemFunction&& function) {
    std::vector<Out> out;
    for (std::size_t g = 0; g < kGroups; ++g)
        for (std::size_t item = 0; item < size; ++item)
            out.push_back(function(std::span(in).subspan(g * size, size), item));
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
    std::vector<std::int64_t> expected;
    const auto packed = [](std::size_t x, std::size_t y, std::size_t z) {
        return static_cast<std::int64_t>(x | y << 21 | z << 42);
    };
    for (std::size_t z = 0; z < global[2]; ++z)
        for (std::size_t y = 0; y < global[1]; ++y)
            for (std::size_t x = 0; x < global[0]; ++x) {
                expected.push_back(packed(x, y, z));
                expected.push_back(packed(x % local[0], y % local[1], z % local[2]));
                expected.push_back(packed(x / local[0], y / local[1], z / local[2]));
            }
    const std::string wrong = first_difference(to_host<std::int64_t>(out, 3 * count), expected);
    return wrong.empty() ? "" : fmt::format("groups of {} x {} x {}: {}", local[0], local[1], local[2], wrong);
}

std::string ids(const Device& device) {
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
}

std::string static_local_memory(const Device& device) {
    const Kernel kernel = group_kernel(device, "static");
    return at_all_sizes<int>(
        kernel, kStatic, 1,
        [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t) {
            launch(kernel, range, {in, out});
        },
        [](const auto& in, std::size_t size) {
            return map_items<int>(in, size,
                                  [](auto group, std::size_t item) { return group[group.size() - 1 - item]; });
        });
}

std::string two_local_arguments(const Device& device) {
    const std::size_t max_size = device.info().max_work_group;
    const Kernel kernel = group_kernel(device, "local_arguments");
    const auto run = [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t size) {
        launch(kernel, range, {in, LocalMemory{size * sizeof(int)}, out, LocalMemory{size * sizeof(std::int64_t)}});
    };
    return at_all_sizes<std::int64_t>(kernel, std::min<std::size_t>(max_size, device.info().local_memory / 16), 1, run,
                                      [](const auto& in, std::size_t size) {
                                          return map_items<std::int64_t>(in, size, [](auto group, std::size_t item) {
                                              return std::int64_t{group[group.size() - 1 - item]} +
                                                     (std::int64_t{group[(item + 1) % group.size()]} << 32);
                                          });
                                      });
}

/// @param reserved bytes of the reported local memory that are left unused
std::string all_local_memory(const Device& device, std::size_t reserved) {
    const Kernel kernel = group_kernel(device, "whole_local");
    const std::size_t size = std::min<std::size_t>(64, kernel.max_work_group()),
                      bytes = (static_cast<std::size_t>(device.info().local_memory) - reserved) / 4 * 4;
    const Buffer out(device, kGroups * size * sizeof(int));
    launch(kernel, {{kGroups * size}, {size}},
           {LocalMemory{bytes}, static_cast<std::int32_t>(bytes / 4), argument<int>(out)});
    const std::string wrong = first_difference(to_host<int>(out, kGroups * size), std::vector<int>(kGroups * size, 0));
    return wrong.empty() ? "" : fmt::format("{} bytes: {}", bytes, wrong);
}

std::string double_buffer(const Device& device) {
    const Kernel kernel = group_kernel(device, "double_buffer");
    for (const std::size_t size : sizes(kernel, kStatic))
        for (const int steps : {1, 2, 3, 8, 11}) {
            std::vector<float> in;
            for (const int number : random_ints(kGroups * size * static_cast<std::size_t>(steps) * 4, size))
                in.push_back(static_cast<float>(number % 32));
            const Buffer from = to_device(device, in), to(device, kGroups * size * sizeof(float));
            launch(kernel, {{kGroups * size}, {size}}, {argument<float>(from), steps, argument<float>(to)});
            std::vector<float> expected;
            for (std::size_t g = 0; g < kGroups; ++g)
                for (std::size_t item = 0; item < size; ++item) {
                    double sum = 0;
                    for (std::size_t s = 0; s < static_cast<std::size_t>(steps); ++s)
                        for (std::size_t i = 0; i < size; ++i)
                            for (std::size_t k = 0; k < 4; ++k)
                                sum += static_cast<double>(
                                           in[((g * static_cast<std::size_t>(steps) + s) * size + i) * 4 + k]) *
                                       static_cast<double>(1 + (i + item) % 3);
                    expected.push_back(static_cast<float>(sum));  // integers, so that all sums are exact
                }
            if (const std::string wrong = first_difference(to_host<float>(to, kGroups * size), expected);
                !wrong.empty())
                return fmt::format("with {} work-items a group and {} slices: {}", size, steps, wrong);
        }
    return {};
}

/// Launches with one element of local memory per work-item.
auto with_tile(const Kernel& kernel) {
    return [kernel](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t size) {
        launch(kernel, range, {in, LocalMemory{size * sizeof(int)}, out});
    };
}

std::string sums_by_halving(const Device& device) {
    const std::size_t max_size = device.info().max_work_group;
    const Kernel kernel = group_kernel(device, "tree");
    return at_all_sizes<int>(kernel, max_size, 1, with_tile(kernel), [](const auto& in, std::size_t size) {
        return map_items<int>(in, size,
                              [](auto group, std::size_t) { return std::accumulate(group.begin(), group.end(), 0); });
    });
}

std::string running_sums(const Device& device) {
    const std::size_t max_size = device.info().max_work_group;
    const Kernel kernel = group_kernel(device, "scan");
    return at_all_sizes<int>(kernel, max_size, 1, with_tile(kernel), [](const auto& in, std::size_t size) {
        return map_items<int>(in, size, [](auto group, std::size_t item) {
            return std::accumulate(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(item) + 1, 0);
        });
    });
}

std::string barriers_in_branches(const Device& device) {
    const std::size_t max_size = device.info().max_work_group;
    const Kernel kernel = group_kernel(device, "uniform");
    return at_all_sizes<int>(kernel, max_size, 1, with_tile(kernel), [](const auto& in, std::size_t size) {
        std::vector<int> out;
        for (std::size_t g = 0; g < kGroups; ++g)
            for (std::size_t item = 0; item < size; ++item) {
                const auto at = [&](std::size_t further) { return in[g * size + (item + further) % size]; };
                const std::size_t rounds = g % 4;
                out.push_back(at(rounds) + (g % 2 == 1 ? at(rounds + 1) : 0));
            }
        return out;
    });
}

std::string exchange_through_global_memory(const Device& device) {
    const std::size_t max_size = device.info().max_work_group;
    const Kernel kernel = group_kernel(device, "global_fence");
    return at_all_sizes<int>(
        kernel, max_size, 1,
        [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t) {
            launch(kernel, range, {in, out});
        },
        [](const auto& in, std::size_t size) {
            return map_items<int>(in, size, [](auto group, std::size_t item) {
                return 2 * group[group.size() - 1 - (item + 1) % group.size()];
            });
        });
}

std::string private_arrays(const Device& device) {
    const Kernel kernel = group_kernel(device, "private");
    return at_all_sizes<int>(
        kernel, 64, 1,
        [&](const Range& range, const BufferArgument& in, const BufferArgument& out, std::size_t) {
            launch(kernel, range, {in, out});
        },
        [](const auto& in, std::size_t size) {
            return map_items<int>(in, size, [](auto group, std::size_t item) {
                std::array<std::uint32_t, 13> sums{};
                std::iota(sums.begin(), sums.end(), 0U);
                const auto value = static_cast<std::uint32_t>(group[item]);
                for (std::uint32_t i = 0; i < 40; ++i) sums[(value + i * i) % 13] += i;
                std::uint32_t all = 0;
                for (std::uint32_t i = 0; i < 13; ++i) all = all * 3 + sums[(i + value) % 13];
                return static_cast<int>(all);
            });
        });
}

}  // namespace

void examine_groups(DoctorRun& e) {
    const Device device = e.device();
    e.check("ids in one, two and three dimensions", [&] { return ids(device); });
    e.check("static local memory", [&] { return static_local_memory(device); });
    e.check("two arguments of local memory, of different types", [&] { return two_local_arguments(device); });
    // The library leaves 1 KiB to the driver.
    e.check("all of the reported local memory, except 1 KiB", [&] { return all_local_memory(device, 1024); });
    e.fact("usable part of the reported local memory", [&] {
        for (const std::size_t reserved : {0U, 4U, 16U, 64U, 128U, 256U, 512U}) {
            try {
                if (all_local_memory(device, reserved).empty())
                    return Fact{reserved == 0 ? "all" : fmt::format("all except {} bytes", reserved),
                                {{"spared", reserved}}};
            } catch (const std::exception&) {  // try less
            }
        }
        return Fact{"all except 1 KiB", {{"spared", 1024}}};
    });
    e.check("double-buffered local memory: one buffer is read while the other is written",
            [&] { return double_buffer(device); });
    e.check("tree reduction, with barriers in a loop", [&] { return sums_by_halving(device); });
    e.check("prefix sums, with two barriers in a loop", [&] { return running_sums(device); });
    e.check("barriers in a function, and in uniform branches", [&] { return barriers_in_branches(device); });
    e.check("exchange through global memory within a work-group",
            [&] { return exchange_through_global_memory(device); });
    e.check("private arrays with dynamic indices", [&] { return private_arrays(device); });
}

}  // namespace declivity::tools::doctor
