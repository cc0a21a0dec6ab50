// Commands that are kept and enqueued again.

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

#include "runtime/recorder.hpp"

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

TEST_CASE("a replay enqueues kernels, copies and fills in order, in memory of its own, over inputs that are replaced") {
    const Device device = test::fresh_device();
    constexpr std::size_t kCount = 37;
    const Kernel kernel = scale(device);
    const auto first = random_floats(kCount, 1), second = random_floats(kCount, 2);
    Buffer input = buffer_of(device, first);
    const Buffer out(device, 2 * kCount * sizeof(float));
    const std::int64_t count = kCount;
    const auto commands = [&] {
        // `between` lies where the first one has lain, so the order counts.
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
        std::vector<float> want(2 * kCount, 5);
        Buffer on_device = buffer_of(device, from);
        std::swap(input, on_device);
        commands();
        want = values_of(out);
        std::swap(input, on_device);
        return want;
    };
    const auto of_first = expected(first), of_second = expected(second);
    REQUIRE(of_first != of_second);
    CHECK(of_first[0] == 5);
    CHECK(of_first[kCount - 1] == 5);

    Recorder recorder(device, {input});
    CHECK(Recorder::current() == &recorder);
    commands();
    {
        const RecordingPause pause;
        CHECK(Recorder::current() == nullptr);
        CHECK(Recorder::current_number() == 0);
        launch(kernel, {.global = {64}},
               {count, BufferArgument{out, 0, 4}, BufferArgument{out, 0, 4}, 1.0F});  // not again
    }
    const Recording recording = recorder.finish();
    CHECK(Recorder::current() == nullptr);
    REQUIRE(recording);
    CHECK(recording.commands() == 5);
    CHECK(recording.memory() > 0);
    CHECK(values_of(out) == of_first);
    const Buffer other = buffer_of(device, second);
    const auto kernel_arguments = test::opencl_calls();
    for (const auto* from : {&of_first, &of_second, &of_first}) {
        fill(out, 0, out.size(), pattern(-1));
        recording.replace(0, from == &of_first ? input : other);
        recording.replay();
        CHECK(values_of(out) == *from);
    }
    CHECK(test::opencl_calls().create_buffer == kernel_arguments.create_buffer);
    // Memory that the recorder let go of is not given to others while the recording lives.
    std::vector<Buffer> others;
    for (int i = 0; i < 20; ++i) others.push_back(buffer_of(device, first));
    recording.replay();
    for (const Buffer& one : others) CHECK(values_of(one) == first);

    CHECK_THROWS_AS(recording.replace(1, other), ValueError);
    CHECK_THROWS_AS(recording.replace(0, Buffer(device, 8)), ShapeError);
    CHECK_THROWS_AS(recording.replace(0, Buffer(test::fresh_device(), 1000)), DeviceError);
    recording.replay();
    CHECK(values_of(out) == of_first);
}

TEST_CASE("recordings of the same work have the same fingerprint, others another one") {
    const Device device = test::device();
    const Buffer a = buffer_of(device, random_floats(64, 1)), b = buffer_of(device, random_floats(64, 2)),
                 out(device, 256);
    const auto print = [&](const Buffer& in, float factor, std::size_t global, std::size_t local, bool twice) {
        Recorder recorder(device, {in});
        for (int i = 0; i < (twice ? 2 : 1); ++i)
            launch(scale(device), {.global = {global}, .local = {local}},
                   {std::int64_t{16}, BufferArgument{in, 0, 4}, BufferArgument{out, 0, 4}, factor});
        return recorder.finish().fingerprint();
    };
    const auto one = print(a, 2, 16, 4, false);
    CHECK(print(b, 2, 16, 4, false) == one);
    CHECK(print(a, 3, 16, 4, false) != one);
    CHECK(print(a, 2, 32, 4, false) != one);
    CHECK(print(a, 2, 16, 8, false) != one);
    CHECK(print(a, 2, 16, 4, true) != one);
}

TEST_CASE("memory that a recording relies on makes it stale when it is written, memory that it writes is marked") {
    const Device device = test::device();
    const Buffer constant = buffer_of(device, random_floats(16, 1)), out(device, 64);
    Recorder recorder(device);
    CHECK(!recorder.varies(constant));
    recorder.relies_on(constant);
    launch(scale(device), {.global = {16}},
           {std::int64_t{16}, BufferArgument{constant, 0, 4}, BufferArgument{out, 0, 4}, 2.0F});
    out.mark_written();
    CHECK(recorder.varies(out));
    CHECK(recorder.varies(Buffer(device, 8)));
    const Recording recording = recorder.finish();
    const auto version = out.version();
    recording.replay();
    recording.replay();
    CHECK(out.version() == version + 2);
    CHECK(!recording.stale());
    constant.mark_written();
    CHECK(recording.stale());
    CHECK_THROWS_AS(recording.replay(), ValueError);
}

TEST_CASE("commands of a program's own are called at each replay, with the memory that is the input then") {
    const Device device = test::device();
    const auto first = random_floats(8, 1), second = random_floats(8, 2);
    const Buffer a = buffer_of(device, first), b = buffer_of(device, second), out(device, 32);
    Recorder recorder(device, {a});
    const Buffer buffers[] = {a, out};
    int calls = 0;
    interop::enqueue(device, "copy of my own", buffers, [&calls, device](std::span<const interop::RawBuffer> in) {
        ++calls;
        CHECK(clEnqueueCopyBuffer(interop::compute_queue(device), in[0].memory, in[1].memory, in[0].offset,
                                  in[1].offset, 32, 0, nullptr, nullptr) == CL_SUCCESS);
    });
    CHECK_THROWS_AS((void)interop::compute_queue(device), Unsupported);
    const Recording recording = recorder.finish();
    CHECK(values_of(out) == first);
    recording.replace(0, b);
    recording.replay();
    CHECK(values_of(out) == second);
    CHECK(calls == 2);
}

TEST_CASE("what a recorder cannot repeat it refuses, and a second one as well") {
    const Device device = test::device();
    const Buffer buffer = buffer_of(device, random_floats(8, 1));
    std::vector<std::byte> bytes(32);
    {
        Recorder recorder(device);
        CHECK_THROWS_AS((void)Recorder{device}.refused(), ValueError);
        CHECK_THROWS_AS(read(buffer, 0, bytes), Unsupported);
        CHECK_THROWS_AS(upload(buffer, 0, bytes), Unsupported);
        CHECK(Recorder::current() == &recorder);
    }
    CHECK(Recorder::current() == nullptr);
    Recorder lenient(device, {}, WhenRefused::run);
    read(buffer, 0, bytes);
    CHECK(Recorder::current() == nullptr);
    CHECK(lenient.refused() == "a read to the host");
    CHECK(!lenient.finish());
    CHECK_THROWS_AS(Recording().replace(0, buffer), ValueError);
    Recording().replay();  // nothing
}
