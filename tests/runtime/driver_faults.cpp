// no-oclgrind: it tests faults of other drivers
#include <declivity/runtime/driver_faults.hpp>

#include <set>
#include <string>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;

TEST_CASE("driver faults: each can be queried, with a stable answer") {
    std::set<std::string_view> names;
    for (const DriverFault& fault : driver_faults()) {
        CAPTURE(fault.name);
        CHECK(names.insert(fault.name).second);
        CHECK(!fault.what.empty());
        CHECK(!fault.seen.empty());
        if (fault.may_crash) continue;
        const bool has = has_fault(test::device(), fault);
        CHECK(has_fault(test::device(), fault) == has);
        if (has) fmt::print("{} has {}\n", test::device().name(), fault.name);
    }
    CHECK_THROWS_WITH_AS(has_fault(test::device(), {.name = "gravity", .what = "", .seen = "", .avoided = ""}),
                         "has_fault: expected one of driver_faults(), got \"gravity\"", ValueError);
}

// A modified kernel simulates a driver that computes wrongly.
TEST_CASE("driver faults: wrong results are detected") {
    const test::TempFolder folder;
    const test::Bytes bytes =
        test::get_file(test::source_folder().parent_path() / "cl_kernels/runtime/driver_faults.cl");
    std::string text(bytes.begin(), bytes.end());
    const std::string right = "(4 * row + r) * 32";
    const std::size_t at = text.rfind(right);
    REQUIRE(at != std::string::npos);
    text.replace(at, right.size(), "(4 * row + 1) * 32");
    test::put_file(folder / "driver_faults.cl", test::bytes_of(text));
    const test::Environment set("DECLIVITY_KERNEL_DIR", folder.path().string());
    CHECK(has_fault(test::device(), driver_faults()[0]));
}
