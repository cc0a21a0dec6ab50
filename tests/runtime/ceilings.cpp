// Measured peak rates of a device: the kernels compute what they should, and profilers do not see them.
#include <cmath>
#include <cstring>
#include <vector>

#include <declivity/runtime/buffer.hpp>
#include <declivity/runtime/ceilings.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/trace.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

template <class T>
std::vector<T> contents(const Buffer& buffer) {
    std::vector<T> out(buffer.size() / sizeof(T));
    read(buffer, 0, std::as_writable_bytes(std::span(out)));
    return out;
}

Defines defines_for(const std::string& type, int width, int blocks) {
    Defines defines;
    defines.set("REAL", type)
        .set("VEC", width > 1 ? type + std::to_string(width) : type)
        .set("FIRST(v)", width > 1 ? "(v).s0" : "(v)")
        .set("CHAINS", std::int64_t{8});
    defines.set("COPY", width > 1 ? "float4" : "float").set("BLOCKS", std::int64_t{blocks});
    if (type == "double") defines.set("REAL_IS_DOUBLE", std::int64_t{1});
    return defines;
}

}  // namespace

TEST_CASE_TEMPLATE("ceilings: the multiply-adds are computed", T, float, double) {
    const Device device = test::device();
    if (sizeof(T) == 8 && !device.info().fp64) return;
    for (const int width : {1, 4}) {
        const Buffer out(device, 32 * sizeof(T));
        const std::int32_t steps = 5;
        launch(Kernel(device, {"ceilings.cl", "ceiling_multiply_add",
                               defines_for(sizeof(T) == 8 ? "double" : "float", width, 0)}),
               {32, 8}, {steps, 0.5F, BufferArgument{out, 0, sizeof(T)}});
        const auto got = contents<T>(out);
        for (int item = 0; item < 32; ++item) {
            double expected = 0;
            for (int chain = 0; chain < 8; ++chain) expected += 1 + (item + chain - 1) * std::pow(0.5, steps);
            CHECK(got[static_cast<std::size_t>(item)] == doctest::Approx(expected));
        }
    }
}

TEST_CASE("ceilings: the copies are complete") {
    const Device device = test::device();
    for (const int blocks : {0, 1})
        for (const std::int64_t count : {1, 63, 64, 65, 1000}) {
            std::vector<float> values(static_cast<std::size_t>(count * 4 + 4), 0.0F);
            const Buffer to(device, values.size() * sizeof(float)), from(device, values.size() * sizeof(float));
            upload(to, 0, std::as_bytes(std::span(values)));
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
            upload(from, 0, std::as_bytes(std::span(values)));
            const std::int64_t per_group = ceil_div(count, 16);
            launch(Kernel(device, {"ceilings.cl", "ceiling_copy", defines_for("float", 4, blocks)}), {16, 8},
                   {count, per_group, BufferArgument{from, 0, 16}, BufferArgument{to, 0, 16}});
            for (std::size_t i = static_cast<std::size_t>(count) * 4; i < values.size(); ++i) values[i] = 0;
            CHECK(contents<float>(to) == values);
        }
}

TEST_CASE("ceilings: positive rates, written to traces on request, invisible to profilers") {
    if (on_oclgrind()) return;  // they would take hours
    const Device device = test::device();
    Profiler profiler(device);
    const Ceilings measured = measure_ceilings(device);
    CHECK(measured.flops_f32 > 1e6);
    CHECK(measured.flops_f32 < 1e16);
    CHECK((measured.flops_f64 > 0) == device.info().fp64);
    CHECK(measured.bytes > 1e6);
    CHECK(measured.bytes < 1e14);
    const Json trace = trace_of(profiler, {.ceilings = true});
    CHECK(commands(trace).empty());
    const Json& reported = trace.at("otherData").at("devices").at(0).at("ceilings");
    CHECK(reported.at("bytes") > 1e6);
    CHECK(reported.at("flops_f32") > 1e6);
    CHECK_FALSE(trace_of(profiler).at("otherData").at("devices").at(0).contains("ceilings"));
    CHECK(profiler.rows().empty());
}
