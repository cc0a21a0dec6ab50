// Atomic functions, compared with the host.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {
namespace {

template <class Integer>
void examine_counters(DoctorRun& e, const Device& device, const Defines& defines, const char* bits) {
    const std::size_t items = 4096;
    e.check_unused(fmt::format("{} bits: inc, add, sub, compare-and-swap, exchange in global memory", bits), [&] {
        const Kernel kernel(device, {"doctor_atomics.cl", "doctor_counters", defines});
        const Buffer counters = to_device(device, std::vector<Integer>(6, 0));
        launch(kernel, {{items}, {std::min<std::size_t>(64, std::bit_floor(kernel.max_work_group()))}},
               {argument<Integer>(counters)});
        const auto got = to_host<Integer>(counters, 6);
        const auto n = static_cast<Integer>(items);
        // Each exchanged value is either returned once or remains in memory.
        std::vector<Integer> result{got[0], got[1], got[2], got[3], static_cast<Integer>(got[4] + got[5])};
        return first_difference(result, std::vector<Integer>{n, n * (n - 1) / 2, -3 * n, n * (n - 1), n * (n + 1) / 2});
    });
    e.check_unused(fmt::format("{} bits: add in local memory", bits), [&] {
        const Kernel kernel(device, {"doctor_atomics.cl", "doctor_local_counter", defines});
        const std::size_t group = std::min<std::size_t>(64, std::bit_floor(kernel.max_work_group())),
                          groups = items / group;
        const Buffer sums(device, groups * sizeof(Integer));
        launch(kernel, {{items}, {group}}, {argument<Integer>(sums)});
        std::vector<Integer> expected;
        for (std::size_t g = 0; g < groups; ++g)
            expected.push_back(static_cast<Integer>(g * group * group + group * (group - 1) / 2));
        return first_difference(to_host<Integer>(sums, groups), expected);
    });
}

}  // namespace

void examine_atomics(DoctorRun& e) {
    const Device device = e.device();
    examine_counters<std::int32_t>(e, device, {}, "32");
    e.check_unused("32 bits: min, max, and, or, xor", [&] {
        const auto in = any_bits<int>(5000, 12);
        std::vector<int> expected{INT32_MAX, INT32_MIN, -1, 0, 0};
        const Buffer from = to_device(device, in), counters = to_device(device, expected);
        for (const int input : in) {
            expected[0] = std::min(expected[0], input), expected[1] = std::max(expected[1], input);
            expected[2] &= input, expected[3] |= input, expected[4] ^= input;
        }
        launch(Kernel(device, {"doctor_atomics.cl", "doctor_extrema"}), {{in.size()}},
               {argument<int>(from), argument<int>(counters)});
        return first_difference(to_host<int>(counters, 5), expected);
    });
    if (device.info().int64_atomics) examine_counters<std::int64_t>(e, device, {{"WIDE", "1"}}, "64");
    else e.skip("64 bits", "the device does not report cl_khr_int64_base_atomics");
}

}  // namespace declivity::tools::doctor
