// oclgrind-api-errors: builds that fail and launches that are refused, on purpose
//
// Kernels: from file to launch, and error messages.
#include <filesystem>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/threads.hpp>
#include <tests/support/values.hpp>
#include <tests/runtime/test_kernels.hpp>

#include "runtime/access.hpp"

using namespace declivity;
using test::TempFolder;

namespace {

template <class T>
Buffer buffer_of(const Device& device, const std::vector<T>& values) {
    Buffer buffer(device, values.size() * sizeof(T));
    upload(buffer, 0, std::as_bytes(std::span(values)));
    return buffer;
}

template <class T>
std::vector<T> values_of(const Buffer& buffer) {
    std::vector<T> values(buffer.size() / sizeof(T));
    read(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

template <class Exception>
std::string message_of(const auto& call) {
    try {
        call();
    } catch (const Exception& error) {
        return error.what();
    }
    return "no exception of this kind";
}

void write(const std::filesystem::path& path, std::string_view text) {
    std::filesystem::create_directories(path.parent_path());
    test::put_file(path, test::bytes_of(text));
}

/// Runs a kernel `kernel_answer(out)` of a file and returns the int that it wrote.
int kernel_answer(const Device& device, const std::string& file, Defines defines = {}) {
    const Buffer out(device, sizeof(int));
    launch(Kernel(device, {file, "answer", std::move(defines)}), {}, {BufferArgument{out, 0, sizeof(int)}});
    return values_of<int>(out).front();
}

// Source text of the small kernels that these tests write to files.
std::string answer_kernel(const std::string& value) {
    return "__kernel void answer(__global int* out, const long offset) { out[offset] = " + value + "; }\n";
}

}  // namespace

TEST_CASE("launch: a user's kernel file with its own and the library's includes") {
    const Device device = test::device();
    const std::vector<float> in{1, 2, 3, 4, 5};
    const Buffer x = buffer_of(device, in), y = buffer_of(device, std::vector<float>(7, -1));
    const std::int64_t n = 4;
    const Kernel kernel(device, {test::kFile, "scale", {{"ADDED", "0.5f"}}});
    CHECK(kernel.name() == "scale");
    CHECK(kernel.device() == device);
    CHECK(kernel.max_work_group() > 0);
    // From element 1 of x to element 2 of y; two work-items too many.
    launch(kernel, {.global = 6}, {n, BufferArgument{x, 1, 4}, BufferArgument{y, 2, 4}, 2.0f});
    CHECK(values_of<float>(y) == std::vector<float>{-1, -1, 5, 7, 9, 11, -1});
}

TEST_CASE("launch: omitted sizes are 1, and an empty range launches nothing") {
    const Device device = test::device();
    const Buffer out = buffer_of(device, std::vector<int>(24, -1));
    const BufferArgument argument{out, 0, sizeof(int)};
    const Kernel kernel(device, {test::kFile, "places"});
    for (const Range& empty_range :
         {Range{.global = {0, 1, 1}}, Range{.global = {4, 0, 1}}, Range{.global = {4, 1, 0}, .local = {2}}}) {
        launch(kernel, empty_range, {argument});
        CHECK(values_of<int>(out) == std::vector<int>(24, -1));
    }
    launch(kernel, {.global = {4}}, {argument});
    CHECK(values_of<int>(out)[3] == 3);
    CHECK(values_of<int>(out)[4] == -1);
    launch(kernel, {.global = {2, 3}, .local = {2}}, {argument});
    CHECK(values_of<int>(out)[5] == 21);
    CHECK(values_of<int>(out)[6] == -1);
    launch(kernel, {.global = {2, 3, 4}, .local = {1, 3, 2}}, {argument});
    CHECK(values_of<int>(out)[23] == 321);
}

TEST_CASE("launch: local memory and structs as arguments") {
    const Device device = test::device();
    const Buffer out = buffer_of(device, std::vector<int>(12, 0));
    launch(Kernel(device, {test::kFile, "group_sizes"}), {.global = 12, .local = 4},
           {LocalMemory{4 * sizeof(int)}, BufferArgument{out, 0, 4}});
    CHECK(values_of<int>(out) == std::vector<int>(12, 4));

    struct Pair {
        std::int64_t a;
        std::int32_t b[2];
    };
    const Buffer sum(device, 8);
    launch(Kernel(device, {test::kFile, "add_pair"}), {},
           {Pair{std::int64_t{1} << 40, {7, 2}}, BufferArgument{sum, 0, 8}});
    CHECK(values_of<std::int64_t>(sum).front() == (std::int64_t{1} << 40) + 5);
    const Pair pair{-3, {1, 1}};
    launch(Kernel(device, {test::kFile, "add_pair"}), {}, {RawArgument{&pair, sizeof pair}, BufferArgument{sum, 0, 8}});
    CHECK(values_of<std::int64_t>(sum).front() == -3);
}

TEST_CASE("launch: a kernel is compiled once per file and defines") {
    const Device device = test::device();
    const Kernel a(device, {test::kFile, "scale"}), b(device, {test::kFile, "scale"}),
        c(device, {test::kFile, "scale", {{"ADDED", "1.0f"}}});
    CHECK(&state_of(a) == &state_of(b));
    CHECK(&state_of(a) != &state_of(c));
}

TEST_CASE("launch: a build that fails shows file, device, status, defines and log") {
    const Device device = test::device();
    const TempFolder folder;
    write(folder / "broken.cl",
          "__kernel void answer(__global int* out, const long offset) {\n  out[0] = no_such_name;\n}\n");
    try {
        const Kernel kernel(device, {(folder / "broken.cl").string(), "answer", {{"WIDTH", "17"}}});
        FAIL("nothing was thrown");
    } catch (const DeviceError& error) {
        const std::string message = error.what();
        CAPTURE(message);
        CHECK(error.code() == -11);
        for (const std::string part : {"broken.cl", "CL_BUILD_PROGRAM_FAILURE", "#define WIDTH 17", "no_such_name"})
            CHECK(message.find(part) != std::string::npos);
        CHECK(message.find(device.name()) != std::string::npos);
        CHECK(message.find("2:") != std::string::npos);  // the line number in the file
    }
    // It fails again in the same way, and a fixed file with another name compiles.
    CHECK_THROWS_AS(Kernel(device, {(folder / "broken.cl").string(), "answer", {{"WIDTH", "17"}}}), DeviceError);
    write(folder / "repaired.cl", answer_kernel("WIDTH"));
    CHECK(kernel_answer(device, (folder / "repaired.cl").string(), {{"WIDTH", "17"}}) == 17);
}

TEST_CASE("launch: an unknown kernel function is named with the available ones") {
    const std::string message = message_of<DeviceError>([] {
        Kernel(test::device(), {test::kFile, "no_such_kernel"});
    });
    CAPTURE(message);
    CHECK(message.find("'no_such_kernel'") != std::string::npos);
    CHECK(message.find("kernels.cl") != std::string::npos);
    CHECK(message.find("slow_copy") != std::string::npos);
}

TEST_CASE("launch: missing files") {
    const Device device = test::device();
    const TempFolder folder;
    const std::string missing = message_of<DeviceError>([&] {
        Kernel(device, {(folder / "missing.cl").string(), "answer"});
    });
    CHECK(missing.find("missing.cl") != std::string::npos);
    const std::string library = message_of<DeviceError>([&] { Kernel(device, {"no_such_file.cl", "answer"}); });
    CHECK(library.find("no_such_file.cl") != std::string::npos);
    CHECK(library.find("'/'") != std::string::npos);
    CHECK_THROWS_AS(Kernel(device, {folder.path().string() + "/.", "answer"}), DeviceError);  // a folder is not a file
    write(folder / "lost.cl", "\n\n#include \"nowhere.clh\"\n");
    const std::string include = message_of<DeviceError>([&] {
        Kernel(device, {(folder / "lost.cl").string(), "answer"});
    });
    CHECK(include.find("'lost.cl', line 3") != std::string::npos);
    CHECK(include.find("'nowhere.clh'") != std::string::npos);
}

TEST_CASE("launch: includes are searched next to the including file, then in the library") {
    const Device device = test::device();
    const TempFolder folder;
    write(folder / "a.cl",
          "#include \"sub/b.clh\"\n #  include  \"c.clh\"\n#include \"c.clh\"\n" + answer_kernel("B + C"));
    write(folder / "sub/b.clh", "#include \"c.clh\"\n#define B (1000 * C)\n#undef C\n");
    write(folder / "sub/c.clh", "#define C 7\n#define SEVEN C\n");
    write(folder / "c.clh", "#undef C\n#define C 5\n");
    CHECK(kernel_answer(device, (folder / "a.cl").string()) == 5005);  // macros are expanded last
    // A file may be included several times, as multi-width maths are.
    write(folder / "twice.cl",
          "#define NAME one\n#include \"f.clh\"\n#undef NAME\n#define NAME two\n#include \"f.clh\"\n" +
              answer_kernel("one() + two()"));
    write(folder / "f.clh", "static inline int NAME(void) { return 21; }\n");
    CHECK(kernel_answer(device, (folder / "twice.cl").string()) == 42);
    // A file that includes itself or its includer does not hang.
    write(folder / "round.cl", "#include \"round.clh\"\n" + answer_kernel("R"));
    write(folder / "round.clh", "#include \"round.cl\"\n#define R 3\n");
    CHECK(kernel_answer(device, (folder / "round.cl").string()) == 3);
}

TEST_CASE("launch: DECLIVITY_KERNEL_DIR overrides library files, file by file") {
    const TempFolder folder;
    write(folder / "arange.cl", "#include \"math.clh\"\n" + answer_kernel("(int)REAL_C(8.0)"));
    const Device device = test::fresh_device();
    {
        const test::Environment set("DECLIVITY_KERNEL_DIR", folder.path().string());
        CHECK(kernel_answer(device, "arange.cl") == 8);
        CHECK_NOTHROW(Kernel(device, {"finite.cl", "count_step"}));
    }
    {  // laid out like cl_kernels/
        std::filesystem::create_directory(folder / "conv");
        write(folder / "conv/conv2d_direct.cl", "#include \"math.clh\"\n" + answer_kernel("(int)REAL_C(9.0)"));
        const test::Environment set("DECLIVITY_KERNEL_DIR", folder.path().string());
        CHECK(kernel_answer(test::fresh_device(), "conv2d_direct.cl") == 9);
    }
    const test::Environment unset("DECLIVITY_KERNEL_DIR", std::nullopt);
    CHECK_THROWS_AS(kernel_answer(test::fresh_device(), "arange.cl"), DeviceError);
}

TEST_CASE("launch: wrong arguments are refused, and the kernel works afterwards") {
    const Device device = test::device();
    const Buffer x = buffer_of(device, std::vector<float>{1, 2}), y = buffer_of(device, std::vector<float>{0, 0});
    const BufferArgument in{x, 0, 4}, out{y, 0, 4};
    const Kernel kernel(device, {test::kFile, "scale"});
    const std::int64_t n = 2;
    const auto launch_error = [&](std::vector<Argument> arguments) {
        return message_of<DeviceError>([&] { launch(kernel, {.global = 2}, arguments); });
    };
    const std::string too_few = launch_error({n, in, out});
    CHECK(too_few.find("'scale'") != std::string::npos);
    CHECK(too_few.find("expected 6 arguments, got 5") != std::string::npos);
    CHECK(launch_error({n, in, out, 1.0f, 1.0f}).find("got 7") != std::string::npos);
    const std::string kind = launch_error({n, n, n, out, 1.0f});
    CHECK(kind.find("expected argument 1 to be a pointer to __global memory, got a value of 8 bytes") !=
          std::string::npos);
    CHECK(launch_error({in, n, out, 1.0f}).find("expected argument 0 to be a number or struct, got a buffer") !=
          std::string::npos);
    CHECK(launch_error({n, in, LocalMemory{8}, n, 1.0f}).find("argument 3") != std::string::npos);
    const std::string size = launch_error({n, in, out, 1.0});  // a double for a float
    CHECK(size.find("argument 5") != std::string::npos);
    CHECK(size.find("CL_INVALID_ARG_SIZE") != std::string::npos);
    CHECK(size.find("launch of 'scale': expected argument 5 ") == 0);
    CHECK(size.find("got 8 bytes on ") != std::string::npos);
    const std::string narrow_integer = launch_error({2, in, out, 1.0F});  // an int for a long
    CHECK(narrow_integer.find("launch of 'scale': expected argument 0 ") == 0);
    CHECK(narrow_integer.find("got 4 bytes on ") != std::string::npos);
    const bool reports_type = size.find("to be a float (4 bytes), got") != std::string::npos;
    CHECK((reports_type || size.find("to be of the size that it has in the kernel, got") != std::string::npos));
    if (reports_type) CHECK(narrow_integer.find("to be a long (8 bytes), got") != std::string::npos);
    const Buffer none;
    CHECK_THROWS_AS(launch(kernel, {.global = 2}, {n, BufferArgument{none, 0, 4}, out, 1.0f}), ValueError);
    const Buffer on_other_device(test::fresh_device(), 8);
    CHECK(launch_error({n, BufferArgument{on_other_device, 0, 4}, out, 1.0f})
              .find("expected argument 1 on that device") != std::string::npos);
    launch(kernel, {.global = 2}, {n, in, out, 3.0f});
    CHECK(values_of<float>(y) == std::vector<float>{3, 6});
}

TEST_CASE("launch: wrong work-group sizes are refused") {
    const Device device = test::device();
    const Buffer out(device, 64 * sizeof(int));
    const BufferArgument argument{out, 0, sizeof(int)};
    const Kernel kernel(device, {test::kFile, "places"});
    const std::size_t max_size = kernel.max_work_group();
    for (const Range& wrong :
         {Range{.global = {64}, .local = {7}}, Range{.global = {2 * max_size}, .local = {2 * max_size}},
          Range{.global = {8, 8}, .local = {4, 3}}, Range{.global = {8, 8}, .local = {8, 0}}}) {
        const std::string message = message_of<DeviceError>([&] { launch(kernel, wrong, {argument}); });
        CHECK(message.find("'places'") != std::string::npos);
        CHECK(message.find(fmt::format("local {}x{}x{}", wrong.local[0], wrong.local[1], wrong.local[2])) !=
              std::string::npos);
    }
}

TEST_CASE("launch: several threads share a kernel, each with its own arguments") {
    const Device device = test::fresh_device();  // nothing compiled yet
    const int rounds = test::small_cases() ? 5 : 200;
    const auto faults = test::run_in_threads(4, [&](int number) -> std::string {
        const Buffer counter = buffer_of(device, std::vector<int>(100, 0));
        for (int round = 0; round < rounds; ++round)
            launch(Kernel(device, {test::kFile, "count_up"}), {.global = 100},
                   {BufferArgument{counter, 0, 4}, number + 1});
        for (const int value : values_of<int>(counter))
            if (value != rounds * (number + 1)) return fmt::format("{} instead of {}", value, rounds * (number + 1));
        return "";
    });
    for (const std::string& fault : faults) CHECK(fault == "");
}
