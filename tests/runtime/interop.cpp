// oclgrind-api-errors: handles that are wrong on purpose
//
// Raw OpenCL handles from and to the library.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/profiler.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/trace.hpp>

using namespace declivity;

namespace {

const std::filesystem::path kFolder = test::source_folder() / "runtime";

std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

/// A program in the library's context that does not use the library.
struct Foreign {
    cl_program program = nullptr;
    cl_kernel kernel = nullptr;
    Foreign(cl_context context, cl_device_id device) {
        const std::string source = text_of(kFolder / "foreign.cl");
        const char* text = source.c_str();
        cl_int status = CL_SUCCESS;
        program = clCreateProgramWithSource(context, 1, &text, nullptr, &status);
        REQUIRE(status == CL_SUCCESS);
        REQUIRE(clBuildProgram(program, 1, &device, "", nullptr, nullptr) == CL_SUCCESS);
        kernel = clCreateKernel(program, "add_one", &status);
        REQUIRE(status == CL_SUCCESS);
    }
    ~Foreign() {
        clReleaseKernel(kernel);
        clReleaseProgram(program);
    }
    Foreign(const Foreign&) = delete;
    Foreign& operator=(const Foreign&) = delete;
    void enqueue(cl_command_queue queue, cl_mem memory, std::size_t first, std::size_t count) const {
        const auto start = static_cast<cl_int>(first);
        REQUIRE(clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS);
        REQUIRE(clSetKernelArg(kernel, 1, sizeof start, &start) == CL_SUCCESS);
        REQUIRE(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr) == CL_SUCCESS);
    }
};

std::vector<int> ints_of(const Buffer& buffer) {
    std::vector<int> values(buffer.size() / sizeof(int));
    read(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

void count_up(const Device& device, const Buffer& buffer, int increment) {
    launch(Kernel(device, {(kFolder / "kernels.cl").string(), "count_up"}), {.global = buffer.size() / sizeof(int)},
           {BufferArgument{buffer, 0, 4}, increment});
}

}  // namespace

TEST_CASE("interop: the library's queue and memory in raw calls") {
    const Device device = test::device();
    CHECK(interop::device_id(device) != nullptr);
    const Foreign foreign(interop::context(device), interop::device_id(device));
    const Buffer before(device, 40), buffer(device, 10 * sizeof(int)),
        after(device, 40);  // neighbours in the memory pool
    for (const Buffer& item : {before, buffer, after}) {
        const std::vector<int> zeros(10, 0);
        upload(item, 0, std::as_bytes(std::span(zeros)));
    }
    count_up(device, buffer, 5);
    const auto raw = interop::raw(buffer);
    CHECK(raw.size == 10 * sizeof(int));
    foreign.enqueue(interop::compute_queue(device), raw.memory, raw.offset / sizeof(int),
                    10);  // in-order queue: no wait between
    count_up(device, buffer, 2);
    CHECK(ints_of(buffer) == std::vector<int>(10, 8));
    CHECK(ints_of(before) == std::vector<int>(10, 0));
    CHECK(ints_of(after) == std::vector<int>(10, 0));
    CHECK_THROWS_AS((void)interop::raw(Buffer()), ValueError);
}

TEST_CASE("interop: external context, queue and memory") {
    cl_device_id id = interop::device_id(test::device());
    cl_int status = CL_SUCCESS;
    cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
    REQUIRE(status == CL_SUCCESS);
    cl_command_queue queue = test::make_queue(context, id, 0);
    REQUIRE(queue != nullptr);
    const Device device = interop::wrap(context, queue);
    CHECK(interop::wrap(context, queue) == device);
    CHECK(interop::compute_queue(device) == queue);
    CHECK(interop::context(device) == context);
    CHECK(device.name() == test::device().name());
    CHECK(!(device == test::device()));

    std::vector<int> values(100);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 400, values.data(), &status);
    REQUIRE(status == CL_SUCCESS);
    {
        const Buffer part = interop::wrap(device, memory, 64, 40);
        CHECK(part.size() == 40);
        CHECK(part.device() == device);
        CHECK(interop::raw(part).memory == memory);
        CHECK(interop::raw(part).offset == 64);
        count_up(device, part, 1000);
        CHECK(ints_of(part)[0] == 1016);
        const Foreign foreign(context, id);
        foreign.enqueue(queue, memory, 0, 100);
        CHECK(ints_of(part)[9] == 1026);
        CHECK(device.memory().in_use == 0);  // not part of the pool
    }
    // Wrapped handles keep the memory alive.
    const Buffer wrapped = interop::wrap(device, memory, 0, 400);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    const auto contents = ints_of(wrapped);
    CHECK(contents[0] == 1);
    CHECK(contents[16] == 1017);
    CHECK(contents[26] == 27);
    const Buffer copied(device, 400);
    copy(wrapped, 0, copied, 0, 400);
    CHECK(ints_of(copied) == contents);
}

TEST_CASE("interop: wrong handles are refused") {
    const Device device = test::device();
    cl_device_id id = interop::device_id(device);
    cl_int status = CL_SUCCESS;
    cl_context other = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
    REQUIRE(status == CL_SUCCESS);
    cl_command_queue queue = test::make_queue(other, id, 0);
    REQUIRE(queue != nullptr);
    CHECK_THROWS_AS(interop::wrap(interop::context(device), queue), ValueError);
    CHECK_THROWS_AS(interop::wrap(interop::context(device), nullptr), DeviceError);
    if (cl_command_queue disorderly = test::make_queue(other, id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        disorderly != nullptr) {
        CHECK_THROWS_AS(interop::wrap(other, disorderly), ValueError);
        clReleaseCommandQueue(disorderly);
    }
    cl_mem memory = clCreateBuffer(other, CL_MEM_READ_WRITE, 256, nullptr, &status);
    REQUIRE(status == CL_SUCCESS);
    CHECK_THROWS_AS(interop::wrap(device, memory, 0, 16), DeviceError);  // memory of another context
    const Device other_device = interop::wrap(other, queue);
    CHECK_THROWS_AS(interop::wrap(other_device, memory, 8, 16), ValueError);
    CHECK_THROWS_AS(interop::wrap(other_device, memory, 16, 256), ShapeError);
    CHECK_THROWS_AS(interop::wrap(other_device, memory, 512, 0), ShapeError);
    CHECK_THROWS_AS(interop::wrap(other_device, memory, 16, ~std::size_t{0}), ShapeError);
    CHECK_THROWS_AS(interop::wrap(other_device, nullptr, 0, 16), DeviceError);
    CHECK(interop::wrap(other_device, memory, 16, 240).size() == 240);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(other);
}

TEST_CASE("interop: user-enqueued commands in the profile") {
    const Device device = test::device();
    const Buffer buffer(device, 1024);
    CHECK_FALSE(interop::profiled(device));
    Profiler profiler(device);
    CHECK(interop::profiled(device));
    const auto [memory, offset, size] = interop::raw(buffer);
    const float number = 1;
    for (int i = 0; i < 3; ++i) {
        cl_event event = nullptr;
        REQUIRE(clEnqueueFillBuffer(interop::compute_queue(device), memory, &number, sizeof number, offset, size, 0,
                                    nullptr, &event) == CL_SUCCESS);
        interop::profile(device, "of my own", event);
        clReleaseEvent(event);
    }
    const auto rows = profiler.rows();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].name == "of my own");
    CHECK(rows[0].calls == 3);
    CHECK_THROWS_AS(interop::profile(device, "nothing", nullptr), ValueError);
    for (const test::Json& command : test::commands(test::trace_of(profiler)))
        CHECK_FALSE(command.at("args").contains("enqueued"));  // unknown
    profiler.stop();
    CHECK_FALSE(interop::profiled(device));
}
