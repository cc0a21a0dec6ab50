// no-oclgrind: it starts child processes, which Oclgrind does not see
//
// A machine without any OpenCL driver: a process whose ICD loader uses an empty folder.
#include <string>

#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/child.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;

TEST_CASE("no device: child process" * doctest::skip()) {
    CHECK(Device::all().empty());
    CHECK(Device::all().empty());  // and repeated calls work
    for (const auto& call : {+[] { Device::best(); }, +[] { Device::select("cpu"); }, +[] { zeros({2}); }}) {
        try {
            call();
            FAIL("nothing was thrown");
        } catch (const DeviceError& error) {
            const std::string message = error.what();
            CHECK(message.find("no OpenCL device") != std::string::npos);
            CHECK(message.find("pocl-opencl-icd") != std::string::npos);
            CHECK(message.find("clinfo") != std::string::npos);
        }
    }
}

TEST_CASE("no device: without a driver there are no devices, and the error names a package with one") {
    const test::TempFolder empty;
    const auto result = test::run_child("no device: child process", {{"OCL_ICD_VENDORS", empty.path().string()},
                                                                     {"OCL_ICD_FILENAMES", std::nullopt},
                                                                     {"DECLIVITY_DEVICE", std::nullopt}});
    INFO(result.output);
    CHECK(result.code == 0);
}

TEST_CASE("no device: a driver that cannot be loaded counts as missing") {
    const test::TempFolder folder;
    const std::string text = "/no/such/library.so\n";
    test::put_file(folder / "broken.icd", test::bytes_of(text));
    const auto result = test::run_child("no device: child process", {{"OCL_ICD_VENDORS", folder.path().string()},
                                                                     {"OCL_ICD_FILENAMES", std::nullopt},
                                                                     {"DECLIVITY_DEVICE", std::nullopt}});
    INFO(result.output);
    CHECK(result.code == 0);
}
