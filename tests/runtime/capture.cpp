// Captured command lists and their replay.

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_calls.hpp>
#include <tests/support/paths.hpp>

#include "runtime/capture.hpp"

using namespace declivity;

namespace {

Kernel scale(const Device& device) {
    return {device, {.file = (test::source_folder() / "runtime" / "kernels.cl").string(), .name = "scale"}};
}

std::vector<std::byte> pattern(float value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

Buffer buffer_of(const Device& device, const std::vector<float>& values) {
    Buffer buffer(device, values.size() * sizeof(float));
    upload(buffer, 0, std::as_bytes(std::span(values)));
    return buffer;
}

std::vector<float> values_of(const Buffer& buffer) {
    std::vector<float> values(buffer.size() / sizeof(float));
    read(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

std::vector<float> random_floats(std::size_t count, unsigned seed) {
    std::mt19937 engine(seed);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(engine() % 1000);
    return values;
}

}  // namespace

TEST_CASE("capture: a replay enqueues kernels, copies and fills in order, in its own memory, with replaced inputs") {
    const Device device = test::fresh_device();
    constexpr std::size_t kCount = 37;
    const Kernel kernel = scale(device);
    const auto first = random_floats(kCount, 1), second = random_floats(kCount, 2);
    Buffer input = buffer_of(device, first);
    const Buffer out(device, 2 * kCount * sizeof(float));
    const std::int64_t count = kCount;
    const auto commands = [&] {
        // `between` reuses the memory of the first buffer, so the order matters.
        {
            const Buffer before(device, kCount * sizeof(float));
            launch(kernel, {.global = {64}}, {count, BufferArgument{input, 0, 4}, BufferArgument{before, 0, 4}, 2.0F});
            copy(before, 0, out, kCount * sizeof(float), kCount * sizeof(float));
        }
        const Buffer between(device, kCount * sizeof(float));
        fill(between, 0, between.size(), pattern(5));
        launch(kernel, {.global = {32}, .local = {8}},
               {count - 6, BufferArgument{input, 6, 4}, BufferArgument{between, 1, 4}, 3.0F});
        copy(between, 0, out, 0, between.size());
    };
    const auto expected = [&](const std::vector<float>& from) {
        std::vector<float> result(2 * kCount, 5);
        Buffer on_device = buffer_of(device, from);
        std::swap(input, on_device);
        commands();
        result = values_of(out);
        std::swap(input, on_device);
        return result;
    };
    const auto first_result = expected(first), second_result = expected(second);
    REQUIRE(first_result != second_result);
    CHECK(first_result[0] == 5);
    CHECK(first_result[kCount - 1] == 5);

    Capture capture(device, {input});
    CHECK(Capture::current() == &capture);
    commands();
    {
        const CapturePause pause;
        CHECK(Capture::current() == nullptr);
        CHECK(Capture::current_number() == 0);
        launch(kernel, {.global = {64}},
               {count, BufferArgument{out, 0, 4}, BufferArgument{out, 0, 4}, 1.0F});  // not again
    }
    const CommandList command_list = capture.finish();
    CHECK(Capture::current() == nullptr);
    REQUIRE(command_list);
    CHECK(command_list.commands() == 5);
    CHECK(command_list.memory() > 0);
    CHECK(values_of(out) == first_result);
    const Buffer other = buffer_of(device, second);
    const auto kernel_arguments = test::opencl_calls();
    for (const auto* from : {&first_result, &second_result, &first_result}) {
        fill(out, 0, out.size(), pattern(-1));
        command_list.replace(0, from == &first_result ? input : other);
        command_list.replay();
        CHECK(values_of(out) == *from);
    }
    CHECK(test::opencl_calls().create_buffer == kernel_arguments.create_buffer);
    // Memory freed during a capture is not reused by others while the capture exists.
    std::vector<Buffer> others;
    for (int i = 0; i < 20; ++i) others.push_back(buffer_of(device, first));
    command_list.replay();
    for (const Buffer& buffer : others) CHECK(values_of(buffer) == first);

    CHECK_THROWS_AS(command_list.replace(1, other), ValueError);
    CHECK_THROWS_AS(command_list.replace(0, Buffer(device, 8)), ShapeError);
    CHECK_THROWS_AS(command_list.replace(0, Buffer(test::fresh_device(), 1000)), DeviceError);
    command_list.replay();
    CHECK(values_of(out) == first_result);
}

TEST_CASE("capture: captures of the same work have the same fingerprint, others a different one") {
    const Device device = test::device();
    const Buffer a = buffer_of(device, random_floats(64, 1)), b = buffer_of(device, random_floats(64, 2)),
                 out(device, 256);
    const auto print = [&](const Buffer& in, float factor, std::size_t global, std::size_t local, bool two_launches) {
        Capture capture(device, {in});
        for (int i = 0; i < (two_launches ? 2 : 1); ++i)
            launch(scale(device), {.global = {global}, .local = {local}},
                   {std::int64_t{16}, BufferArgument{in, 0, 4}, BufferArgument{out, 0, 4}, factor});
        return capture.finish().fingerprint();
    };
    const auto reference = print(a, 2, 16, 4, false);
    CHECK(print(b, 2, 16, 4, false) == reference);
    CHECK(print(a, 3, 16, 4, false) != reference);
    CHECK(print(a, 2, 32, 4, false) != reference);
    CHECK(print(a, 2, 16, 8, false) != reference);
    CHECK(print(a, 2, 16, 4, true) != reference);
}

TEST_CASE(
    "capture: writes to memory that it depends on make a capture stale, and replays bump versions of written memory") {
    const Device device = test::device();
    const Buffer constant = buffer_of(device, random_floats(16, 1)), out(device, 64);
    Capture capture(device);
    CHECK(!capture.varies(constant));
    capture.relies_on(constant);
    launch(scale(device), {.global = {16}},
           {std::int64_t{16}, BufferArgument{constant, 0, 4}, BufferArgument{out, 0, 4}, 2.0F});
    out.bump_version();
    CHECK(capture.varies(out));
    CHECK(capture.varies(Buffer(device, 8)));
    const CommandList command_list = capture.finish();
    const auto version = out.version();
    command_list.replay();
    command_list.replay();
    CHECK(out.version() == version + 2);
    CHECK(!command_list.stale());
    constant.bump_version();
    CHECK(command_list.stale());
    CHECK_THROWS_AS(command_list.replay(), ValueError);
}

TEST_CASE("capture: external commands are called at each replay with the current input memory") {
    const Device device = test::device();
    const auto first = random_floats(8, 1), second = random_floats(8, 2);
    const Buffer a = buffer_of(device, first), b = buffer_of(device, second), out(device, 32);
    Capture capture(device, {a});
    const Buffer buffers[] = {a, out};
    int calls = 0;
    interop::enqueue(device, "copy of my own", buffers, [&calls, device](std::span<const interop::RawBuffer> in) {
        ++calls;
        CHECK(clEnqueueCopyBuffer(interop::compute_queue(device), in[0].memory, in[1].memory, in[0].offset,
                                  in[1].offset, 32, 0, nullptr, nullptr) == CL_SUCCESS);
    });
    CHECK_THROWS_AS((void)interop::compute_queue(device), Unsupported);
    const CommandList command_list = capture.finish();
    CHECK(values_of(out) == first);
    command_list.replace(0, b);
    command_list.replay();
    CHECK(values_of(out) == second);
    CHECK(calls == 2);
}

TEST_CASE("capture: commands that cannot be replayed are refused, and so is a nested capture") {
    const Device device = test::device();
    const Buffer buffer = buffer_of(device, random_floats(8, 1));
    std::vector<std::byte> bytes(32);
    {
        Capture capture(device);
        CHECK_THROWS_AS((void)Capture{device}.refused(), ValueError);
        CHECK_THROWS_AS(read(buffer, 0, bytes), Unsupported);
        CHECK_THROWS_AS(upload(buffer, 0, bytes), Unsupported);
        CHECK(Capture::current() == &capture);
    }
    CHECK(Capture::current() == nullptr);
    Capture fallback(device, {}, WhenRefused::run);
    read(buffer, 0, bytes);
    CHECK(Capture::current() == nullptr);
    CHECK(fallback.refused() == "a read to the host");
    CHECK(!fallback.finish());
    CHECK_THROWS_AS(CommandList().replace(0, buffer), ValueError);
    CommandList().replay();  // nothing
}

TEST_CASE("capture: an input may be a part of its buffer, and be replaced by another part") {
    const Device device = test::device();
    constexpr std::size_t kRow = 64;  // floats: 256 bytes, so that rows are aligned alike
    const auto values = random_floats(4 * kRow, 1);
    const Buffer all = buffer_of(device, values), out(device, kRow * sizeof(float));
    const auto row = [&](std::size_t at) { return BufferRange(all, at * kRow * sizeof(float), kRow * sizeof(float)); };
    const auto expected = [&](std::size_t at) {
        std::vector<float> expected_row(values.begin() + static_cast<std::ptrdiff_t>(at * kRow),
                                        values.begin() + static_cast<std::ptrdiff_t>((at + 1) * kRow));
        for (std::size_t i = 6; i < 16; ++i) expected_row[i - 6] = 2 * values[at * kRow + i];
        return expected_row;
    };
    Capture capture(device, {row(2)});
    copy(all, 2 * kRow * sizeof(float), out, 0, kRow * sizeof(float));
    launch(scale(device), {.global = {16}},
           {std::int64_t{10}, BufferArgument{all, 2 * kRow + 6, 4}, BufferArgument{out, 0, 4}, 2.0F});
    out.bump_version();  // required after external writes
    CHECK(capture.is_input(all));
    CHECK(!capture.needs_whole_inputs());
    const CapturedUses uses = capture.uses(false);
    const CommandList command_list = capture.finish();
    CHECK(values_of(out) == expected(2));
    for (const std::size_t at : {0, 3, 2, 1}) {
        CHECK(command_list.is_compatible(0, row(at)));
        command_list.replace(0, row(at));
        command_list.replay();
        CHECK(values_of(out) == expected(at));
    }
    const BufferRange unaligned{all, 4, kRow * sizeof(float)}, out_of_range{all, 3 * kRow * sizeof(float) + 256, 256};
    CHECK(!command_list.is_compatible(0, unaligned));
    CHECK_THROWS_AS(command_list.replace(0, unaligned), ValueError);
    CHECK_THROWS_AS(command_list.replace(0, out_of_range), ShapeError);
    CHECK_THROWS_AS(command_list.replace(0, BufferRange(all, 0, 8)), ShapeError);
    CHECK_THROWS_AS(Capture(device, {out_of_range}), ShapeError);
    // It reads only the input, and writes only `out`.
    const BufferRange rows[] = {row(1)}, written[] = {out};
    CHECK(uses.aliases_safely(rows));
    CHECK(!uses.aliases_safely(written));
    const BufferRange overlapping[] = {row(1), row(1)}, disjoint[] = {row(1), row(2)};
    CHECK(CapturedUses::overlap(overlapping));
    CHECK(!CapturedUses::overlap(disjoint));
}

TEST_CASE("capture: commands that use more of a buffer than the input part are reported") {
    const Device device = test::device();
    const Buffer all = buffer_of(device, random_floats(256, 1)), out(device, 1024);
    const BufferRange part{all, 256, 256};
    const auto requires_all_input = [&](const auto& commands) {
        Capture capture(device, {part});
        commands();
        return capture.needs_whole_inputs();
    };
    const auto copy_from = [&](std::size_t at) { return [&, at] { copy(all, at, out, 0, 16); }; };
    CHECK(!requires_all_input(copy_from(256)));
    CHECK(!requires_all_input(copy_from(496)));
    CHECK(requires_all_input(copy_from(240)));
    CHECK(requires_all_input(copy_from(512)));
    const Buffer buffers[] = {all};
    CHECK(requires_all_input([&] { interop::enqueue(device, "of my own", buffers, [](const auto&) {}); }));
}

TEST_CASE("capture: a host function is called between commands at each replay, without holding locks") {
    const Device device = test::device();
    const Buffer in = buffer_of(device, random_floats(8, 1)), out = buffer_of(device, random_floats(8, 2));
    std::vector<std::vector<float>> observed;
    Capture capture(device);
    copy(in, 0, out, 0, 32);
    host_call([&] {
        CHECK(!is_capturing());
        observed.push_back(values_of(out));
        fill(in, 0, 32, pattern(static_cast<float>(observed.size())));
    });
    copy(in, 0, out, 0, 32);
    const CommandList command_list = capture.finish();
    CHECK(command_list.commands() == 3);
    const std::vector<float> ones(8, 1), twos(8, 2);
    REQUIRE(observed.size() == 1);
    CHECK(observed[0] == random_floats(8, 1));
    CHECK(values_of(out) == ones);
    command_list.replay();
    REQUIRE(observed.size() == 2);
    CHECK(observed[1] == ones);
    CHECK(values_of(out) == twos);
    CHECK_THROWS_AS(host_call(nullptr), ValueError);
}
