// Device enumeration, selection, and error messages.
#include <algorithm>
#include <string>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <doctest/doctest.h>
#include <runtime/opencl/opencl.hpp>
#include <tests/support/devices.hpp>

using namespace declivity;
using test::Environment;

namespace {

std::string message_of(const auto& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

}  // namespace

TEST_CASE("device: traits are what the device reports, and local memory leaves room for the driver") {
    const Device device = test::device();
    const DeviceTraits& traits = device.traits();
    CHECK(traits.kernel_style == device.kernel_style());
    CHECK(traits.vector_width_f32 == device.info().vector_width_f32);
    CHECK(traits.vector_width_f64 == device.info().vector_width_f64);
    CHECK(traits.subgroup_size == device.info().work_items_in_step);
    CHECK(traits.local_memory + 1024 == device.info().local_memory);
    CHECK_FALSE(traits.matrix_units.has_value());
}

TEST_CASE("device: found by id, by part of the name and by type") {
    const auto all = Device::all();
    REQUIRE(!all.empty());
    for (const Device& device : all) {
        CHECK(Device::select(device.info().id) == device);
        const std::string& name = device.name();
        const Device by_substring = Device::select(upper(name.substr(name.size() / 2)));  // the first match
        CHECK(contains(by_substring.name(), name.substr(name.size() / 2)));
    }
    const auto find_type = [&](DeviceType type) {
        return std::ranges::find_if(all, [&](const Device& device) { return device.info().type == type; });
    };
    for (const auto& [word, type] : {std::pair{"gpu", DeviceType::gpu}, std::pair{"cpu", DeviceType::cpu}}) {
        if (const auto found = find_type(type); found != all.end()) CHECK(Device::select(word) == *found);
        else CHECK_THROWS_AS(Device::select(word), DeviceError);
    }
}

TEST_CASE("device: a missing device is refused with a list of the available ones") {
    const std::string message = message_of([] { Device::select("no such device"); });
    CHECK(contains(message, "Device::select"));
    CHECK(contains(message, "\"no such device\""));
    for (const Device& device : Device::all()) {
        CHECK(contains(message, device.info().id));
        CHECK(contains(message, device.name()));
    }
    CHECK_THROWS_AS(Device::select("9:9"), DeviceError);
    CHECK_THROWS_AS(Device::select(""), DeviceError);
}

TEST_CASE("device: DECLIVITY_DEVICE selects the device; a wrong value is an error that names it") {
    const auto all = Device::all();
    for (const Device& device : all) {
        const Environment selection("DECLIVITY_DEVICE", device.info().id);
        CHECK(Device::best() == device);
    }
    {
        const Environment invalid("DECLIVITY_DEVICE", "no such device");
        const std::string message = message_of([] { Device::best(); });
        CHECK(contains(message, "DECLIVITY_DEVICE"));
        CHECK(contains(message, all.front().name()));
    }
    const Environment empty("DECLIVITY_DEVICE", "");  // as if unset
    CHECK_NOTHROW(Device::best());
}

TEST_CASE("device: a GPU is preferred to a CPU") {
    const Environment none("DECLIVITY_DEVICE", std::nullopt);
    const auto all = Device::all();
    const bool gpu =
        std::ranges::any_of(all, [](const Device& device) { return device.info().type == DeviceType::gpu; });
    if (gpu) CHECK(Device::best().info().type == DeviceType::gpu);
    else CHECK(Device::best().info().type != DeviceType::gpu);
}

TEST_CASE("device: properties") {
    for (const Device& device : Device::all()) {
        const DeviceInfo& info = device.info();
        CAPTURE(info.name);
        CHECK(!info.name.empty());
        CHECK(!info.platform.empty());
        CHECK(info.version.starts_with("OpenCL "));
        CHECK(info.id.find(':') != std::string::npos);
        CHECK(info.compute_units > 0);
        CHECK(info.global_memory >= info.max_allocation);
        CHECK(info.max_allocation > 0);
        CHECK(info.max_work_group > 0);
        CHECK(std::ranges::all_of(info.max_work_items, [](std::size_t size) { return size > 0; }));
        CHECK(info.alignment >= 1);
        CHECK(std::ranges::none_of(info.extensions,
                                   [](const std::string& name) { return name.empty() || contains(name, " "); }));
        CHECK(info.fp64 == (std::ranges::find(info.extensions, "cl_khr_fp64") != info.extensions.end()));
    }
}

TEST_CASE("device: the kernel style follows the device, and DECLIVITY_KERNEL_STYLE overrides it") {
    {
        const Environment set("DECLIVITY_KERNEL_STYLE", "simd");
        CHECK(test::fresh_device().kernel_style() == KernelStyle::simd);
    }
    {
        const Environment set("DECLIVITY_KERNEL_STYLE", "simt");
        CHECK(test::fresh_device().kernel_style() == KernelStyle::simt);
    }
    const Environment none("DECLIVITY_KERNEL_STYLE", std::nullopt);
    const Device device = test::fresh_device();
    // A CPU driver that vectorises over work-items and not within a kernel uses simt kernels.
    const bool wide_by_work_items = device.info().vector_width_f32 <= 1 && device.info().work_items_in_step > 1;
    if (device.info().type == DeviceType::cpu)
        CHECK(device.kernel_style() == (wide_by_work_items ? KernelStyle::simt : KernelStyle::simd));
    if (device.info().type == DeviceType::gpu && device.info().dedicated_local_memory)
        CHECK(device.kernel_style() == KernelStyle::simt);
}

TEST_CASE("device: handles of one device are equal, of two are not") {
    CHECK(Device::best() == Device::best());
    CHECK(!(test::fresh_device() == Device::best()));
}

TEST_CASE("errors: OpenCL statuses have their names") {
    CHECK(detail::status_name(0) == "CL_SUCCESS");
    CHECK(detail::status_name(-5) == "CL_OUT_OF_RESOURCES");
    CHECK(detail::status_name(-11) == "CL_BUILD_PROGRAM_FAILURE");
    CHECK(detail::status_name(-52) == "CL_INVALID_KERNEL_ARGS");
    CHECK(detail::status_name(-54) == "CL_INVALID_WORK_GROUP_SIZE");
    CHECK(detail::status_name(-69) == "CL_INVALID_PIPE_SIZE");
    CHECK(detail::status_name(-1001) == "CL_PLATFORM_NOT_FOUND_KHR");
    CHECK(detail::status_name(-12345) == "unknown OpenCL status");
}

TEST_CASE("errors: a status becomes the matching exception") {
    CHECK_THROWS_AS(detail::throw_status(CL_MEM_OBJECT_ALLOCATION_FAILURE, "a launch", "x"), OutOfMemory);
    CHECK_THROWS_AS(detail::throw_status(CL_OUT_OF_HOST_MEMORY, "a launch", "x"), OutOfMemory);
    try {
        detail::throw_status(CL_INVALID_KERNEL_ARGS, "a launch", "some device");
        FAIL("nothing was thrown");
    } catch (const DeviceError& error) {
        CHECK(error.code() == CL_INVALID_KERNEL_ARGS);
        CHECK(std::string(error.what()) == "a launch on 'some device': CL_INVALID_KERNEL_ARGS (-52)");
    }
}

TEST_CASE("errors: messages name the current scope") {
    CHECK(Scope::path() == "");
    const Scope net("Net");
    {
        const Scope layer("conv1");
        CHECK(Scope::path() == "Net/conv1");
        CHECK(std::string(ShapeError("conv2d: expected this, got that").what()) ==
              "conv2d: expected this, got that (in Net/conv1)");
        CHECK(message_of([] { Device::select("no such device"); }).ends_with("(in Net/conv1)"));
    }
    CHECK(Scope::path() == "Net");
    CHECK(std::string(FormatError("a.idx", 7, "expected magic").what()) == "a.idx: at byte 7: expected magic (in Net)");
}

TEST_CASE("errors: a propagating exception closes its scopes") {
    try {
        const Scope outer("outer");
        throw ValueError("x");
    } catch (const ValueError&) {
    }
    CHECK(Scope::path() == "");
}
