#include "copies.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/tensor/creation.hpp>

#include "sampled.hpp"
#include "ops/engine/expression.hpp"

namespace declivity::bench {
namespace {

/// Multithreaded copy of host memory.
struct HostCopy {
    std::vector<float> from, to;

    void run(unsigned threads) {
        std::vector<std::thread> team;
        const std::size_t part = (from.size() + threads - 1) / threads;
        for (unsigned i = 0; i < threads; ++i) {
            const std::size_t first = std::min(from.size(), i * part), count = std::min(from.size() - first, part);
            team.emplace_back(
                [this, first, count] { std::memcpy(to.data() + first, from.data() + first, count * sizeof(float)); });
        }
        for (std::thread& thread : team) thread.join();
    }
};

std::vector<Contender> ways_to_copy(const Device& device, double bytes) {
    const auto count = static_cast<std::int64_t>(bytes / 8);
    std::vector<std::pair<Tensor, Tensor>> sets;
    for (int i = 0; i < sets_for(bytes); ++i) sets.emplace_back(uniform({count}, -1, 1), full({count}, 0.0));
    const auto wait = [device] { device.synchronize(); };
    const auto contender = [&](auto&& copy) {
        return Contender{"copy",
                         [sets, copy](int call) {
                             const auto& [from, to] = sets[static_cast<std::size_t>(call) % sets.size()];
                             copy(from.view(), to.view());
                         },
                         wait};
    };
    std::vector<Contender> methods;
    methods.push_back(contender([](const ops::View& from, const ops::View& to) {
        declivity::copy(from.buffer, static_cast<std::size_t>(from.offset) * 4, to.buffer,
                        static_cast<std::size_t>(to.offset) * 4, from.bytes());
    }));
    methods.push_back(
        contender([](const ops::View& from, const ops::View& to) { ops::evaluate(ops::Expression(from), to); }));
    methods.push_back(contender([](const ops::View& from, const ops::View& to) { ops::copy(from, to); }));
    if (device.kernel_style() == KernelStyle::simd) {
        std::vector<std::shared_ptr<HostCopy>> blocks;
        for (std::size_t i = 0; i < sets.size(); ++i) {
            const auto size = static_cast<std::size_t>(count);
            blocks.push_back(
                std::make_shared<HostCopy>(HostCopy{std::vector<float>(size, 1.0F), std::vector<float>(size)}));
        }
        const unsigned threads = device.info().compute_units;
        methods.push_back(
            {"copy",
             [blocks, threads](int call) { blocks[static_cast<std::size_t>(call) % blocks.size()]->run(threads); },
             [] {}});
    }
    return methods;
}

}  // namespace

Contender copy_of(const Device& device, double bytes) {
    static std::map<double, std::size_t> fastest_method;  // fastest method per size
    std::vector<Contender> methods = ways_to_copy(device, bytes);
    const auto known_method = fastest_method.find(bytes);
    if (known_method != fastest_method.end()) return methods[known_method->second];
    const Comparison times = compare(methods[0], {methods.begin() + 1, methods.end()}, 5);
    std::size_t best = 0;
    for (std::size_t i = 0; i < times.peers.size(); ++i)
        if (times.peers[i].seconds < (best == 0 ? times.ours.seconds : times.peers[best - 1].seconds)) best = i + 1;
    fastest_method[bytes] = best;
    return methods[best];
}

}  // namespace declivity::bench
