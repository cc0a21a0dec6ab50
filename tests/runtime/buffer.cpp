// Copies between host and device, and within the device.
#include <cstring>
#include <filesystem>
#include <numeric>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_calls.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/values.hpp>
#include <tests/runtime/test_kernels.hpp>

#include "ops/engine/pending_access.hpp"
#include "runtime/derived_cache.hpp"

using namespace declivity;

namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size, std::uint64_t seed) {
    Bytes bytes(size);
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (std::byte& byte : bytes) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        byte = static_cast<std::byte>(state >> 56);
    }
    return bytes;
}

Bytes content(const Buffer& buffer) {
    Bytes bytes(buffer.size());
    read(buffer, 0, bytes);
    return bytes;
}

Bytes part(const Bytes& bytes, std::size_t start, std::size_t size) {
    return {bytes.begin() + static_cast<std::ptrdiff_t>(start),
            bytes.begin() + static_cast<std::ptrdiff_t>(start + size)};
}

void put(Bytes& bytes_out, std::size_t at, const Bytes& bytes) {
    std::ranges::copy(bytes, bytes_out.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

TEST_CASE("buffer: derived values are dropped when the contents are written or freed") {
    const auto value = std::make_shared<const int>(7);
    const detail::DerivedKey a{.offset = 0, .bytes = 16, .kind = "a"}, b{.offset = 0, .bytes = 16, .kind = "b"};
    {
        const Buffer buffer(test::device(), 16), alias = buffer;
        CHECK(detail::find_derived(buffer, a) == nullptr);
        const std::uint64_t contents = buffer.contents();
        detail::cache_derived(buffer, a, value, 100, contents);
        CHECK(detail::find_derived(alias, a) == value);
        CHECK(detail::find_derived(buffer, b) == nullptr);
        alias.bump_version();
        CHECK(detail::find_derived(buffer, a) == nullptr);
        CHECK(value.use_count() == 1);
        detail::cache_derived(buffer, a, value, 100, contents);  // derived before the write
        CHECK(detail::find_derived(buffer, a) == nullptr);
        CHECK(value.use_count() == 1);
        detail::cache_derived(buffer, a, value, 100, buffer.contents());
        CHECK(value.use_count() == 2);
    }
    CHECK(value.use_count() == 1);
    CHECK(detail::find_derived(Buffer(), a) == nullptr);
}

TEST_CASE("buffer: a value derived by another thread during a write is not used after the write") {
    const Buffer buffer(test::device(), 16);
    const auto value = std::make_shared<const int>(7);
    const detail::DerivedKey key{.offset = 0, .bytes = 16, .kind = "a"};
    {
        const BufferWrite write(buffer);
        detail::cache_derived(buffer, key, value, 4, buffer.contents());  // from the elements before the write
        CHECK(detail::find_derived(buffer, key) == value);
    }
    CHECK(detail::find_derived(buffer, key) == nullptr);
    std::uint64_t contents = 0;
    {
        const BufferWrite write(buffer);
        contents = buffer.contents();
    }
    detail::cache_derived(buffer, key, value, 4, contents);  // one that is ready only then
    CHECK(detail::find_derived(buffer, key) == nullptr);
    CHECK(value.use_count() == 1);
}

TEST_CASE("buffer: one derived value per part of a buffer is cached, within the device's limit") {
    const Device device = test::fresh_device();
    const Buffer first(device, 64), second(device, 64);
    const auto key = [](std::uint64_t offset, const char* kind) { return detail::DerivedKey{offset, 32, kind}; };
    const auto value = std::make_shared<const int>(7);
    device.set_packed_weights_limit(1000);
    CHECK(device.packed_weights_limit() == 1000);
    CHECK(!detail::accepts_derived(first, key(0, "a"), 400, 1));
    CHECK(detail::accepts_derived(first, key(0, "a"), 400, 1));  // at the second request
    detail::cache_derived(first, key(0, "a"), value, 400, first.contents());
    CHECK(device.memory().packed_weights == 400);
    CHECK(detail::accepts_derived(first, key(0, "a"), 400));
    CHECK(!detail::accepts_derived(first, key(0, "b"), 400));  // another layout of the same part
    CHECK(detail::find_derived(first, key(0, "a")) == value);
    CHECK(detail::accepts_derived(first, key(32, "b"), 400));  // another part
    detail::cache_derived(first, key(32, "b"), value, 400, first.contents());
    CHECK(device.memory().packed_weights == 800);
    CHECK(!detail::accepts_derived(second, key(0, "a"), 400));  // limit exceeded
    detail::cache_derived(second, key(0, "a"), value, 400, second.contents());
    CHECK(detail::find_derived(second, key(0, "a")) == nullptr);
    // A value that is requested repeatedly replaces an unused one.
    int rejected = 0;
    while (!detail::accepts_derived(first, key(0, "b"), 300)) REQUIRE(++rejected < 100);
    CHECK(rejected > 1);
    detail::cache_derived(first, key(0, "b"), value, 300, first.contents());
    CHECK(detail::find_derived(first, key(0, "a")) == nullptr);
    CHECK(detail::find_derived(first, key(0, "b")) == value);
    CHECK(device.memory().packed_weights == 700);
    // The most recently used one is kept.
    device.set_packed_weights_limit(400);
    CHECK(device.memory().packed_weights == 300);
    CHECK(detail::find_derived(first, key(0, "b")) == value);
    device.release_cached_memory();
    CHECK(device.memory().packed_weights == 0);
    CHECK(value.use_count() == 1);
    device.set_packed_weights_limit(0);
    CHECK(!detail::accepts_derived(first, key(0, "a"), 1));
}

TEST_CASE("buffer: values unused for long are evicted first, and all are freed before memory runs out") {
    const test::Environment limit("DECLIVITY_MEMORY_LIMIT", "64M");
    const Device device = test::fresh_device();
    CHECK(device.packed_weights_limit() == 16 << 20);
    const Buffer first(device, 64), second(device, 64);
    const detail::DerivedKey key{0, 64, "a"};
    const auto big = [&] { return std::make_shared<const Buffer>(device, 12 << 20); };
    detail::cache_derived(first, key, big(), 12 << 20, first.contents());
    CHECK(!detail::accepts_derived(second, key, 12 << 20));
    int rejected = 0;
    while (!detail::accepts_derived(second, key, 12 << 20)) REQUIRE(++rejected < 100000);
    CHECK(detail::find_derived(first, key) == nullptr);
    detail::cache_derived(second, key, big(), 12 << 20, second.contents());
    const std::uint64_t before = device.memory().in_use;
    const Buffer larger(device, 32 << 20), smaller(device, 24 << 20);
    CHECK(detail::find_derived(second, key) == nullptr);
    CHECK(device.memory().in_use == before + (56 << 20) - (12 << 20));
}

TEST_CASE("buffer: upload and read, whole and in parts") {
    const Device device = test::device();
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{3}, std::size_t{255}, std::size_t{4097}, std::size_t{70001}}) {
        CAPTURE(size);
        const Buffer buffer(device, size);
        Bytes expected = random_bytes(size, size);
        upload(buffer, 0, expected);
        CHECK(content(buffer) == expected);
        const std::size_t start = size / 3, count = size / 2;
        const Bytes middle = random_bytes(count, size + 1);
        upload(buffer, start, middle);
        put(expected, start, middle);
        CHECK(content(buffer) == expected);
        Bytes down(count);
        const Event event = download(buffer, start, down);
        event.wait();
        CHECK(event.done());
        CHECK(down == middle);
    }
}

TEST_CASE("buffer: empty buffers") {
    const Device device = test::device();
    const Buffer empty(device, 0), some(device, 8);
    CHECK(empty);
    upload(empty, 0, {});
    upload(some, 8, {});
    const Event event = download(some, 8, {});
    event.wait();
    CHECK(event.done());
    copy(empty, 0, some, 8, 0);
    const Bytes pattern(4);
    fill(some, 8, 0, pattern);
}

TEST_CASE("buffer: the source of an upload may change at once") {
    const Device device = test::device();
    const int rounds = test::small_cases() ? 5 : 100;
    std::vector<Buffer> buffers;
    std::vector<Bytes> expected;
    Bytes source;
    for (int round = 0; round < rounds; ++round) {
        source = random_bytes(10007, static_cast<std::uint64_t>(round));
        buffers.emplace_back(device, source.size());
        upload(buffers.back(), 0, source);
        expected.push_back(source);
        std::ranges::fill(source, std::byte{0xee});
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) CHECK_UNARY(content(buffers[i]) == expected[i]);
}

TEST_CASE("buffer: large uploads are split") {
    if (test::small_cases()) return;
    const Device device = test::fresh_device();
    const Bytes bytes = random_bytes((std::size_t{36} << 20) + 13, 5);
    const Buffer buffer(device, bytes.size() + 2);
    const Bytes zeros(1);
    fill(buffer, 0, buffer.size(), zeros);
    upload(buffer, 1, bytes);
    const Bytes back = content(buffer);
    CHECK_UNARY(part(back, 1, bytes.size()) == bytes);
    CHECK(back.front() == std::byte{0});
    CHECK(back.back() == std::byte{0});
}

TEST_CASE("buffer: staging memory is reused and bounded") {
    if (test::small_cases()) return;
    // 600 MB are uploaded with little more than 256 MB in flight.
    const Device device = test::fresh_device();
    const Buffer buffer(device, std::size_t{12} << 20);
    Bytes bytes;
    for (std::uint64_t round = 0; round < 50; ++round) {
        if (round % 10 == 0) bytes = random_bytes(buffer.size(), round);
        upload(buffer, 0, bytes);
    }
    CHECK_UNARY(content(buffer) == bytes);
}

TEST_CASE("buffer: copies within the device") {
    const Device device = test::device();
    const Bytes from = random_bytes(1000, 1);
    Bytes to = random_bytes(900, 2);
    const Buffer source(device, from.size()), destination(device, to.size());
    upload(source, 0, from);
    upload(destination, 0, to);
    copy(source, 17, destination, 401, 333);
    put(to, 401, part(from, 17, 333));
    CHECK(content(destination) == to);
    CHECK(content(source) == from);
    copy(source, 0, source, 600, 400);  // disjoint ranges of one buffer
    CHECK(part(content(source), 600, 400) == part(from, 0, 400));
}

TEST_CASE("buffer: fill patterns of every size") {
    const Device device = test::device();
    for (const std::size_t unit : {1, 2, 4, 8, 16}) {
        CAPTURE(unit);
        Bytes expected = random_bytes(16 * 20, unit);
        const Buffer buffer(device, expected.size());
        upload(buffer, 0, expected);
        const Bytes pattern = random_bytes(unit, 100 + unit);
        fill(buffer, 3 * unit, 11 * unit, pattern);
        for (std::size_t i = 0; i < 11; ++i) put(expected, (3 + i) * unit, pattern);
        CHECK(content(buffer) == expected);
    }
}

TEST_CASE("buffer: wrong ranges, patterns and handles are refused") {
    const Device device = test::device();
    const Buffer buffer(device, 100), none;
    Bytes bytes(50);
    CHECK_THROWS_WITH_AS(upload(buffer, 51, bytes),
                         "upload: expected a range inside the buffer of 100 bytes, got 50 bytes at byte 51",
                         ShapeError);
    CHECK_THROWS_AS(upload(buffer, ~std::size_t{0}, bytes), ShapeError);
    CHECK_THROWS_AS(read(buffer, 51, bytes), ShapeError);
    CHECK_THROWS_AS((void)download(buffer, 101, {}), ShapeError);
    CHECK_THROWS_AS(copy(buffer, 60, buffer, 0, 50), ShapeError);
    CHECK_THROWS_AS(copy(buffer, 0, buffer, 60, 50), ShapeError);
    CHECK_THROWS_WITH_AS(upload(none, 0, bytes), "upload: expected a buffer, got an empty handle", ValueError);
    CHECK_THROWS_AS(read(none, 0, bytes), ValueError);
    CHECK_THROWS_AS(copy(none, 0, buffer, 0, 1), ValueError);
    CHECK_THROWS_AS((void)none.device(), ValueError);
    CHECK(none.size() == 0);
    CHECK_THROWS_AS(fill(buffer, 0, 30, Bytes(3)), ValueError);
    CHECK_THROWS_AS(fill(buffer, 0, 30, Bytes()), ValueError);
    CHECK_THROWS_AS(fill(buffer, 0, 32, Bytes(32)), ValueError);
    CHECK_THROWS_AS(fill(buffer, 2, 8, Bytes(4)), ValueError);
    CHECK_THROWS_AS(fill(buffer, 0, 6, Bytes(4)), ValueError);
    CHECK_THROWS_AS(fill(buffer, 96, 8, Bytes(4)), ShapeError);
    CHECK_THROWS_AS((void)upload_async(buffer, 0, bytes), ValueError);
    const Buffer on_other_device(test::fresh_device(), 100);
    CHECK_THROWS_AS(copy(buffer, 0, on_other_device, 0, 10), DeviceError);
}

TEST_CASE("buffer: uploads are ordered with the compute queue") {
    const Device device = test::device();
    const int n = 64;
    std::vector<int> first(n, 1), second(n, 2);
    const Buffer in(device, n * sizeof(int)), out(device, n * sizeof(int));
    const Kernel kernel(device, {test::kFile, "slow_copy"});
    const int steps = test::small_cases() ? 100 : 2000000;
    upload(in, 0, std::as_bytes(std::span(first)));
    launch(kernel, {.global = n}, {steps, BufferArgument{in, 0, 4}, BufferArgument{out, 0, 4}});
    upload(in, 0, std::as_bytes(std::span(second)));  // after the kernel that still reads the first one
    std::vector<int> contents(n);
    read(out, 0, std::as_writable_bytes(std::span(contents)));
    CHECK(contents == first);
    read(in, 0, std::as_writable_bytes(std::span(contents)));
    CHECK(contents == second);
}

TEST_CASE("buffer: asynchronous uploads wait for kernels that read the previous block, and kernels wait for them") {
    const test::Environment pool("DECLIVITY_POOL", std::nullopt);
    const Device device = test::fresh_device();
    const int n = 64, rounds = test::small_cases() ? 2 : 20;
    const int steps = test::small_cases() ? 100 : 300000;
    const Kernel kernel(device, {test::kFile, "slow_copy"});
    std::vector<Buffer> outputs;
    cl_mem first_memory = nullptr;
    for (int round = 0; round < rounds; ++round) {
        // Each batch reuses the block of the previous one, which a slow kernel is still reading.
        const Buffer batch(device, n * sizeof(int), BufferUse::transfer);
        if (round == 0) first_memory = interop::raw(batch).memory;
        CHECK(interop::raw(batch).memory == first_memory);
        const std::vector<int> values(n, round + 1);
        const Event arrived = upload_async(batch, 0, std::as_bytes(std::span(values)));
        Queue::compute(device).wait_for(arrived);
        outputs.emplace_back(device, n * sizeof(int));
        launch(kernel, {.global = n}, {steps, BufferArgument{batch, 0, 4}, BufferArgument{outputs.back(), 0, 4}});
    }
    for (int round = 0; round < rounds; ++round) {
        std::vector<int> contents(n);
        read(outputs[static_cast<std::size_t>(round)], 0, std::as_writable_bytes(std::span(contents)));
        CHECK(contents == std::vector<int>(n, round + 1));
    }
}

TEST_CASE(
    "buffer: any number of uploads in flight, through either kind of host memory, create only one staging buffer") {
    for (const char* kind : {"pinned", "plain"}) {
        CAPTURE(kind);
        const test::Environment pool("DECLIVITY_POOL", std::nullopt), staging("DECLIVITY_STAGING", kind);
        const Device device = test::fresh_device();
        const int n = test::small_cases() ? 30 : 300, rounds = test::small_cases() ? 12 : 40;
        const int steps = test::small_cases() ? 10 : 3000000;
        const Kernel kernel(device, {test::kFile, "slow_copy"});
        const Buffer in(device, n * sizeof(int));
        std::vector<Buffer> outputs;
        for (int round = 0; round < rounds; ++round) outputs.emplace_back(device, n * sizeof(int));
        long created = 0;
        for (int round = 0; round < rounds; ++round) {
            std::vector<int> values(n);
            for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = 1000 * round + i;
            upload(in, 0, std::as_bytes(std::span(values)));
            launch(kernel, {.global = n},
                   {round == 0 ? steps : 1, BufferArgument{in, 0, 4},
                    BufferArgument{outputs[static_cast<std::size_t>(round)], 0, 4}});
            if (round == 0) created = test::opencl_calls().create_buffer;
        }
        CHECK(test::opencl_calls().create_buffer == created);
        for (int round = 0; round < rounds; ++round) {
            std::vector<int> contents(n);
            read(outputs[static_cast<std::size_t>(round)], 0, std::as_writable_bytes(std::span(contents)));
            bool alias = true;
            for (int i = 0; i < n; ++i) alias = alias && contents[static_cast<std::size_t>(i)] == 1000 * round + i;
            CHECK(alias);
        }
    }
}

TEST_CASE("queues: markers, waiting across queues, finishing") {
    const Device device = test::fresh_device();
    const Queue compute = Queue::compute(device), transfer = Queue::transfer(device);
    CHECK(Event().done());
    CHECK_NOTHROW(Event().wait());
    CHECK_NOTHROW(compute.wait_for(Event()));
    const Buffer in(device, 256), out(device, 256);
    const Kernel kernel(device, {test::kFile, "slow_copy"});
    const Bytes zero(4);
    fill(in, 0, 256, zero);
    const int steps = test::small_cases() ? 100 : 2000000;
    launch(kernel, {.global = 64}, {steps, BufferArgument{in, 0, 4}, BufferArgument{out, 0, 4}});
    const Event computed = compute.marker();
    transfer.wait_for(computed);
    const Event both = transfer.marker();
    both.wait();  // an event that was never flushed would not complete
    CHECK(computed.done());
    compute.flush();
    compute.finish();
    transfer.finish();
    device.synchronize();
}

TEST_CASE("buffer: the version counter detects stale values") {
    const Buffer buffer(test::device(), 4), alias = buffer, other(test::device(), 4);
    CHECK(buffer.version() == 0);
    alias.bump_version();
    CHECK(buffer.version() == 1);
    CHECK(other.version() == 0);
    CHECK(Buffer().version() == 0);
    CHECK_NOTHROW(Buffer().bump_version());
}

TEST_CASE("buffer: is_unshared detects whether a write is visible to others") {
    struct Reader : PendingLaunch {
        bool is_pending = true;
        void launch() override { is_pending = false; }
        [[nodiscard]] bool pending() const noexcept override { return is_pending; }
    };
    const Device device = test::device();
    Buffer buffer(device, 100);
    CHECK(ops::is_unshared(buffer, 1, nullptr));
    {
        const Buffer other = buffer;
        CHECK_FALSE(ops::is_unshared(buffer, 1, nullptr));
        CHECK(ops::is_unshared(buffer, 2, nullptr));
    }
    auto reader = std::make_shared<Reader>();
    ops::add_reader(buffer, reader);
    CHECK_FALSE(ops::is_unshared(buffer, 1, nullptr));
    CHECK(ops::is_unshared(buffer, 1, reader.get()));
    reader->launch();
    CHECK(ops::is_unshared(buffer, 1, nullptr));
    reader = std::make_shared<Reader>();
    ops::add_reader(buffer, reader);
    CHECK_FALSE(ops::is_unshared(buffer, 1, nullptr));
    reader = nullptr;
    CHECK(ops::is_unshared(buffer, 1, nullptr));
    CHECK_FALSE(ops::is_unshared(Buffer(), 0, nullptr));
    const auto raw = interop::raw(buffer);
    CHECK_FALSE(ops::is_unshared(interop::wrap(device, raw.memory, raw.offset, 100), 1,
                                 nullptr));  // unknown for external memory
    CHECK_FALSE(ops::is_unshared(Buffer(device, 100, BufferUse::transfer), 1,
                                 nullptr));  // the transfer queue may be writing it
}
