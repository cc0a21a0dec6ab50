// no-oclgrind: its shadow memory would take 13 GB; no kernel runs here
//
// The memory pool: reuse, coalescing, statistics, exhaustion, exact mode.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/scope.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_calls.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using interop::raw;
using test::Environment;

namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;

/// A device with its own pool, whatever the environment of the test run is.
Device pooled(const std::optional<std::string>& limit = std::nullopt) {
    const Environment pool("DECLIVITY_POOL", std::nullopt), memory("DECLIVITY_MEMORY_LIMIT", limit);
    return test::fresh_device();
}

Device exact() {
    const Environment pool("DECLIVITY_POOL", "exact");
    return test::fresh_device();
}

bool same_place(const interop::RawBuffer& a, const interop::RawBuffer& b) {
    return a.memory == b.memory && a.offset == b.offset;
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 131 + seed * 977) >> 3);
    return bytes;
}

}  // namespace

TEST_CASE("pool: a freed block is reused without a new cl_mem") {
    const Device device = pooled();
    interop::RawBuffer first{};
    {
        const Buffer buffer(device, 1000);
        first = raw(buffer);
        CHECK(first.size == 1000);
    }
    const long before = test::opencl_calls().create_buffer;
    const Buffer again(device, 900);
    CHECK(same_place(raw(again), first));
    CHECK(test::opencl_calls().create_buffer - before == 0);
}

TEST_CASE("pool: blocks are aligned and do not overlap") {
    const Device device = pooled();
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < 50; ++i) buffers.emplace_back(device, 1 + i * 37);
    const std::size_t alignment = std::max<std::size_t>(256, device.info().alignment);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        CHECK(raw(buffers[i]).offset % alignment == 0);
        for (std::size_t j = 0; j < i; ++j) {
            const auto a = raw(buffers[i]), b = raw(buffers[j]);
            CHECK((a.memory != b.memory || a.offset + a.size <= b.offset || b.offset + b.size <= a.offset));
        }
    }
}

TEST_CASE("pool: adjacent free blocks are coalesced") {
    const Device device = pooled();
    std::vector<Buffer> row;
    for (int i = 0; i < 4; ++i) row.emplace_back(device, kMega);
    const auto start = raw(row[0]);
    // The order of release decides which neighbours are free: after, before, both.
    for (const auto& order : {std::vector{0, 1, 2}, std::vector{2, 1, 0}, std::vector{0, 2, 1}}) {
        for (const int i : order) row[static_cast<std::size_t>(i)] = Buffer();
        CHECK(same_place(raw(Buffer(device, 3 * kMega)), start));
        for (std::size_t i = 0; i < 3; ++i) row[i] = Buffer(device, kMega);
        CHECK(same_place(raw(row[0]), start));
    }
}

TEST_CASE("pool: best fit") {
    const Device device = pooled();
    Buffer large(device, 8 * kMega);
    const Buffer wall(device, kMega);
    Buffer small(device, 2 * kMega);
    const Buffer other_wall(device, kMega);
    const auto at = raw(small);
    large = Buffer();
    small = Buffer();
    CHECK(same_place(raw(Buffer(device, 2 * kMega)), at));
}

TEST_CASE("pool: statistics of allocated and reserved memory") {
    const Device device = pooled();
    CHECK(device.memory().in_use == 0);
    CHECK(device.memory().cached == 0);
    {
        const Buffer a(device, 3 * kMega);
        CHECK(device.memory().in_use == 3 * kMega);
        CHECK(device.memory().cached > 0);
        {
            const Buffer b(device, 2 * kMega), handle = b;
            CHECK(device.memory().in_use == 5 * kMega);
        }
        CHECK(device.memory().in_use == 3 * kMega);
        CHECK(device.memory().peak == 5 * kMega);
        device.reset_peak_memory();
        CHECK(device.memory().peak == 3 * kMega);
        const Buffer none(device, 0);
        CHECK(none.size() == 0);
        CHECK(device.memory().in_use > 3 * kMega);  // not empty, so that it has its own address
    }
    CHECK(device.memory().in_use == 0);
    CHECK(device.memory().cached > 0);
    device.release_cached_memory();
    CHECK(device.memory().cached == 0);
    const Buffer after(device, kMega);
    CHECK(device.memory().in_use == kMega);
}

TEST_CASE("pool: cached memory is returned to the device when an allocation fails, and the allocation is retried") {
    const Device device = pooled("64M");
    { const Buffer large(device, 40 * kMega); }
    CHECK(device.memory().cached >= 40 * kMega);
    const Buffer larger(device, 60 * kMega);
    CHECK(larger.size() == 60 * kMega);
    CHECK(device.memory().in_use + device.memory().cached <= 64 * kMega);
}

TEST_CASE("pool: an exhausted device is reported with the pool's statistics, and remains usable") {
    const Device device = pooled("64M");
    const Buffer live(device, 50 * kMega);
    const auto before = device.memory();
    try {
        const Buffer further(device, 20 * kMega);
        FAIL("nothing was thrown");
    } catch (const OutOfMemory& error) {
        const std::string message = error.what();
        CAPTURE(message);
        CHECK(message.find(fmt::format("expected {} bytes", 20 * kMega)) != std::string::npos);
        CHECK(message.find(fmt::format("in use {} bytes", 50 * kMega)) != std::string::npos);
        CHECK(message.find(device.name()) != std::string::npos);
    }
    CHECK(device.memory().in_use == before.in_use);
    CHECK(device.memory().peak == before.peak);
    const Buffer fits(device, 10 * kMega);
    const auto bytes = pattern(10 * kMega, 1);
    std::vector<std::byte> back(bytes.size());
    upload(fits, 0, bytes);
    read(fits, 0, back);
    CHECK(back == bytes);
}

TEST_CASE("pool: memory in use is known by scope, and reported when it runs out") {
    const Device device = pooled("64M");
    const auto bytes_of = [&](std::string_view scope) {
        for (const ScopeMemory& scope_memory : device.memory_by_scope())
            if (scope_memory.scope == scope) return std::pair(scope_memory.bytes, scope_memory.blocks);
        return std::pair(std::uint64_t{0}, std::int64_t{0});
    };
    const Buffer outside(device, 3 * kMega);
    std::optional<Buffer> first, second, ahead;
    {
        const Scope net("Net");
        {
            const Scope layer("conv1");
            first.emplace(device, 20 * kMega);
            second.emplace(device, 10 * kMega);
        }
        ahead.emplace(device, 1 * kMega, BufferUse::transfer);
    }
    CHECK(bytes_of("Net/conv1") == std::pair(std::uint64_t{30 * kMega}, std::int64_t{2}));
    CHECK(bytes_of("Net") == std::pair(std::uint64_t{1 * kMega}, std::int64_t{1}));
    CHECK(bytes_of("") == std::pair(std::uint64_t{3 * kMega}, std::int64_t{1}));
    CHECK(device.memory_by_scope().front().scope == "Net/conv1");
    const std::string summary = memory_summary(device);
    CAPTURE(summary);
    CHECK(summary.find("34.0 MiB in use, ") != std::string::npos);
    CHECK(summary.find("MiB cached, 34.0 MiB peak") != std::string::npos);
    CHECK(summary.find("Net/conv1             30.0 MiB        2   88.2\n") != std::string::npos);
    CHECK(summary.find("outside of modules     3.0 MiB        1    8.8\n") != std::string::npos);
    try {
        const Buffer further(device, 40 * kMega);
        FAIL("nothing was thrown");
    } catch (const OutOfMemory& error) {
        const std::string message = error.what();
        CAPTURE(message);
        CHECK(message.find("Largest users: Net/conv1 30.0 MiB, outside of modules 3.0 MiB, Net 1.0 MiB. ") !=
              std::string::npos);
        CHECK(message.find("checkpoint()") != std::string::npos);
    }
    second->move_to_scope(ScopePath("Net/conv2"));
    CHECK(bytes_of("Net/conv1").first == 20 * kMega);
    CHECK(bytes_of("Net/conv2").first == 10 * kMega);
    first.reset();
    ahead.reset();  // cached for the next batch, not in use
    CHECK(bytes_of("Net/conv1").first == 0);
    CHECK(bytes_of("Net").first == 0);
    {
        const Scope other("other");
        ahead.emplace(device, 1 * kMega, BufferUse::transfer);
    }
    CHECK(bytes_of("other").first == 1 * kMega);
}

TEST_CASE("pool: smaller slabs are tried when the device refuses memory, then it is reported") {
    const Device device = pooled();
    {
        const test::BufferSizeLimit refuse(5 * kMega);  // slabs of the usual size are refused
        const Buffer fits(device, 3 * kMega);
        CHECK(device.memory().in_use == 3 * kMega);
        CHECK(device.memory().in_use + device.memory().cached <= 5 * kMega);
        CHECK_THROWS_AS(Buffer(device, 6 * kMega), OutOfMemory);
    }
    CHECK(Buffer(device, 6 * kMega).size() == 6 * kMega);
}

TEST_CASE("pool: more than the largest buffer is refused at once") {
    const Device device = pooled();
    const long before = test::opencl_calls().create_buffer;
    CHECK_THROWS_AS(Buffer(device, device.info().max_allocation + 1), OutOfMemory);
    CHECK_THROWS_AS(Buffer(device, ~std::size_t{0}), OutOfMemory);
    CHECK_THROWS_AS(Buffer(device, ~std::size_t{0} - 100), OutOfMemory);
    CHECK(test::opencl_calls().create_buffer - before == 0);
}

TEST_CASE("pool: DECLIVITY_MEMORY_LIMIT accepts bytes, K, M and G") {
    CHECK_NOTHROW(Buffer(pooled("1G"), 100));
    CHECK_NOTHROW(Buffer(pooled("4096K"), 4 * kMega));
    CHECK_THROWS_AS(Buffer(pooled("4096K"), 4 * kMega + 1), OutOfMemory);
    CHECK_NOTHROW(Buffer(pooled("65536"), 65536));
    CHECK_THROWS_AS(Buffer(pooled("65536"), 65537), OutOfMemory);
    for (const char* wrong : {"banana", "12X", "-1", "5MB", "99999999999G"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(pooled(wrong), ValueError);
    }
}

TEST_CASE("pool: exact mode gives each buffer a cl_mem of its exact size, and caches none") {
    const Device device = exact();
    {
        const Buffer a(device, 1000), b(device, 1000), c(device, 3);
        CHECK(raw(a).memory != raw(b).memory);
        for (const Buffer& buffer : {a, b, c}) {
            std::size_t size = 0;
            REQUIRE(clGetMemObjectInfo(raw(buffer).memory, CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS);
            CHECK(size == buffer.size());
            CHECK(raw(buffer).offset == 0);
        }
        CHECK(device.memory().in_use == 2003);
        CHECK(device.memory().cached == 0);
    }
    CHECK(device.memory().in_use == 0);
    CHECK(device.memory().cached == 0);
    const long before = test::opencl_calls().create_buffer;
    const Buffer again(device, 1000);
    CHECK(test::opencl_calls().create_buffer - before == 1);
}

TEST_CASE("pool: memory written by the transfer queue is separate") {
    const Device device = pooled();
    interop::RawBuffer first_block{};
    {
        const Buffer batch(device, kMega, BufferUse::transfer);
        first_block = raw(batch);
        CHECK(device.memory().in_use == kMega);
    }
    CHECK(device.memory().in_use == 0);
    CHECK(!same_place(raw(Buffer(device, kMega)), first_block));
    CHECK(same_place(raw(Buffer(device, kMega, BufferUse::transfer)), first_block));
    device.release_cached_memory();
    CHECK(device.memory().cached == 0);
}

TEST_CASE("pool: concurrent threads get distinct memory") {
    if (test::small_cases()) return;  // Oclgrind serialises threads, and no kernel runs
    const Device device = pooled();
    const int rounds = 200;
    const auto faults = test::run_in_threads(4, [&](int thread) -> std::string {
        const auto number = static_cast<unsigned>(thread);
        std::vector<std::pair<Buffer, unsigned>> live;
        for (int round = 0; round < rounds; ++round) {
            const auto seed = static_cast<unsigned>(round) * 4 + number;
            const std::size_t size = 1 + (seed * 7919) % 5000;
            Buffer buffer(device, size, seed % 5 == 0 ? BufferUse::transfer : BufferUse::compute);
            upload(buffer, 0, pattern(size, seed));
            live.emplace_back(std::move(buffer), seed);
            if (live.size() < 8) continue;
            const auto& [old, old_seed] = live[seed % 8];
            std::vector<std::byte> back(old.size());
            read(old, 0, back);
            if (back != pattern(old.size(), old_seed)) return fmt::format("block {} was overwritten", old_seed);
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(seed % 8));
        }
        return "";
    });
    for (const std::string& fault : faults) CHECK(fault == "");
    CHECK(device.memory().in_use == 0);
}
