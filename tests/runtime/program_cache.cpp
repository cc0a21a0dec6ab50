// no-oclgrind: compiled programs and child processes; the kernels are those of other tests
//
// The on-disk cache of compiled programs: used if intact, replaced if not, and never a reason to fail.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/interop.hpp>
#include <declivity/runtime/launch.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <runtime/opencl/binary_source.hpp>
#include <runtime/binary_store.hpp>
#include <runtime/kernel_source.hpp>
#include <runtime/opencl/device_state.hpp>
#include <runtime/opencl/program_cache.hpp>
#include <tests/support/child.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/paths.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/runtime/test_kernels.hpp>

using namespace declivity;
using detail::BinarySource;
using detail::BinaryStore;
using test::Environment;
using test::TempFolder;

namespace {

namespace fs = std::filesystem;

/// Compiles and runs a kernel on a device that has not compiled anything yet; returns whether its results are correct.
bool scales(const std::string& added = "0.25f") {
    const Device device = test::fresh_device();
    state_of(device).programs.binaries().set_kind(BinarySource::Kind::at_hand);
    const std::vector<float> in{1, 2, 3};
    std::vector<float> out(3);
    const Buffer x(device, 12), y(device, 12);
    upload(x, 0, std::as_bytes(std::span(in)));
    const std::int64_t n = 3;
    launch(Kernel(device, {test::kFile, "scale", {{"ADDED", added}}}), {.global = 3},
           {n, BufferArgument{x, 0, 4}, BufferArgument{y, 0, 4}, 2.0f});
    read(y, 0, std::as_writable_bytes(std::span(out)));
    const float summand = std::stof(added);
    return out == std::vector<float>{2 * (1 + summand), 2 * (2 + summand), 2 * (3 + summand)};
}

std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    return files;
}

Environment cache_at(const fs::path& folder) { return {"DECLIVITY_CACHE_DIR", folder.string()}; }

/// The store used by the kernel of scales().
BinaryStore store_of_scale(const Device& device, const std::string& added) {
    return {device.info(), Defines({{"ADDED", added}}).text() + detail::kernel_source(test::kFile),
            detail::kBuildOptions};
}

}  // namespace

TEST_CASE("program cache: a program is written once, and read by the next process") {
    const TempFolder folder;
    const auto cache = cache_at(folder / "below/deeper");  // created on demand
    CHECK(scales());
    const auto files = files_in(folder / "below/deeper");
    REQUIRE(files.size() == 1);
    const auto written = fs::last_write_time(files[0]);
    CHECK(scales());
    CHECK(files_in(folder / "below/deeper") == files);
    CHECK(fs::last_write_time(files[0]) == written);  // a compilation would have replaced it
    CHECK(scales("1.0f"));
    CHECK(files_in(folder / "below/deeper").size() == 2);
}

TEST_CASE("program cache: the binary on disk is used") {
    // The binary of one program under the name of another shows whether the disk or the compiler was used.
    const TempFolder folder;
    const auto cache = cache_at(folder.path());
    REQUIRE(scales("3.0f"));
    const Device device = test::fresh_device();
    const auto other = store_of_scale(device, "3.0f").load();
    REQUIRE(other.has_value());
    store_of_scale(device, "0.5f").save(*other);
    CHECK(!scales("0.5f"));
}

TEST_CASE("program cache: a damaged file is recompiled and replaced") {
    const TempFolder folder;
    const auto cache = cache_at(folder.path());
    REQUIRE(scales());
    const fs::path file = files_in(folder.path()).at(0);
    const auto complete = test::get_file(file);
    const Device device = test::fresh_device();
    REQUIRE(store_of_scale(device, "0.25f").load().has_value());
    std::vector<test::Bytes> damaged{{}, test::Bytes(complete.begin(), complete.begin() + 5), test::Bytes(64, 0xff)};
    for (const std::size_t length : {std::size_t{32}, complete.size() / 2, complete.size() - 1})
        damaged.emplace_back(complete.begin(), complete.begin() + static_cast<std::ptrdiff_t>(length));
    damaged.push_back(complete);
    damaged.back().push_back(0);
    for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{17}, std::size_t{25}, std::size_t{40},
                                 complete.size() / 2, complete.size() - 1}) {
        damaged.push_back(complete);
        damaged.back()[at] ^= 0x10;
    }
    for (std::size_t i = 0; i < damaged.size(); ++i) {
        CAPTURE(i);
        test::put_file(file, damaged[i]);
        CHECK(!store_of_scale(device, "0.25f").load().has_value());
        if (i % 4 != 0) continue;  // compilation is slow
        CHECK(scales());
        CHECK_UNARY(store_of_scale(device, "0.25f").load().has_value());
    }
}

TEST_CASE("program cache: an invalid binary, in a child process" * doctest::skip()) {
    const TempFolder folder;
    const auto cache = cache_at(folder.path());
    const Device device = test::fresh_device();
    store_of_scale(device, "0.25f").save(std::vector<unsigned char>(1000, 0x55));
    REQUIRE(store_of_scale(device, "0.25f").load().has_value());
    CHECK(scales());
}

TEST_CASE("program cache: if the driver refuses a binary, the source is compiled") {
    const auto result = test::run_child("program cache: an invalid binary, in a child process", {});
    INFO(result.output);
    if (result.code > 128) return test::skip("binaries that are none of the driver's: they end its process");
    CHECK(result.code == 0);
}

TEST_CASE("program cache: another device, driver, source or option is another program") {
    const TempFolder folder;
    const auto cache = cache_at(folder.path());
    const DeviceInfo info = test::device().info();
    const std::vector<unsigned char> binary{1, 2, 3};
    BinaryStore(info, "source", "options").save(binary);
    CHECK(BinaryStore(info, "source", "options").load() == binary);
    CHECK(!BinaryStore(info, "other source", "options").load());
    CHECK(!BinaryStore(info, "source", "other options").load());
    for (auto member : {&DeviceInfo::name, &DeviceInfo::platform, &DeviceInfo::version, &DeviceInfo::driver}) {
        DeviceInfo other = info;
        other.*member += " 2";
        CHECK(!BinaryStore(other, "source", "options").load());
    }
    const Environment added("POCL_EXTRA_BUILD_FLAGS", "-D OTHER");
    CHECK(!BinaryStore(info, "source", "options").load());
}

TEST_CASE("program cache: an unwritable or invalid folder is harmless") {
    const TempFolder folder;
    test::put_file(folder / "file", test::bytes_of("a file where a folder should be"));
    {
        const auto cache = cache_at(folder / "file");
        CHECK(scales());
    }
    {
        const auto cache = cache_at(folder / "file/below");
        CHECK(scales());
    }
    {
        const auto cache = cache_at("/proc/no/such/place");
        CHECK(scales());
    }
    const fs::path locked = folder / "locked";
    fs::create_directory(locked);
    chmod(locked.c_str(), 0500);  // which does not stop root
    {
        const auto cache = cache_at(locked);
        CHECK(scales());
    }
    if (geteuid() != 0) CHECK(files_in(locked).empty());
    chmod(locked.c_str(), 0700);
}

TEST_CASE("program cache: a folder in place of the file is harmless") {
    const TempFolder folder;
    const auto cache = cache_at(folder.path());
    REQUIRE(scales());
    const fs::path file = files_in(folder.path()).at(0);
    fs::remove(file);
    fs::create_directory(file);
    CHECK(scales());
    CHECK(files_in(folder.path()).size() == 1);  // no temporary file remains
}

TEST_CASE("program cache: its location, and how it is disabled") {
    const TempFolder folder;
    {
        const Environment own("DECLIVITY_CACHE_DIR", std::nullopt), xdg("XDG_CACHE_HOME", folder.path().string());
        CHECK(scales());
        CHECK(files_in(folder / "declivity").size() == 1);
    }
    {
        const Environment own("DECLIVITY_CACHE_DIR", std::nullopt), xdg("XDG_CACHE_HOME", std::nullopt),
            home("HOME", (folder / "home").string());
        CHECK(scales());
        CHECK(files_in(folder / "home/.cache/declivity").size() == 1);
    }
    const fs::path before = fs::current_path();
    fs::create_directory(folder / "here");
    fs::current_path(folder / "here");
    {
        const Environment own("DECLIVITY_CACHE_DIR", std::nullopt), xdg("XDG_CACHE_HOME", std::nullopt),
            home("HOME", std::nullopt);
        CHECK(scales());
    }
    {
        const Environment off("DECLIVITY_CACHE_DIR", ""), xdg("XDG_CACHE_HOME", (folder / "xdg").string());
        CHECK(scales());
        CHECK(!fs::exists(folder / "xdg"));
    }
    fs::current_path(before);
    CHECK(files_in(folder / "here").empty());
}

namespace {

/// Builds a program, and has its binary saved as if the build had taken `build_time`.
BinaryStore saved(const Device& device, BinarySource& binaries, std::chrono::seconds build_time,
                  const std::string& source) {
    const cl::Program program(cl::Context(interop::context(device), true), source, true);
    const BinaryStore store(device.info(), source, "");
    binaries.save(program, interop::device_id(device), device.info(), store, build_time);
    return store;
}

}  // namespace

TEST_CASE("program cache: binaries are stored if the driver has them at hand, other drivers are queried once") {
    using Kind = BinarySource::Kind;
    constexpr std::chrono::seconds hour = std::chrono::hours(1), nothing{0};
    const TempFolder folder;
    const auto cache = cache_at(folder.path());
    const Device device = test::fresh_device();
    BinarySource fast;
    CHECK_UNARY(saved(device, fast, hour, "__kernel void first() {}").load().has_value());
    CHECK(fast.kind() == Kind::at_hand);
    CHECK_UNARY(saved(device, fast, nothing, "__kernel void second() {}").load().has_value());
    CHECK(files_in(folder.path()).size() == 2);
    BinarySource slow;
    CHECK_UNARY(!saved(device, slow, nothing, "__kernel void third() {}").load().has_value());
    CHECK(slow.kind() == Kind::compiled);
    CHECK_UNARY(!saved(device, slow, hour, "__kernel void fourth() {}").load().has_value());
    CHECK(files_in(folder.path()).size() == 3);  // the marker file
    BinarySource next;                           // simulates another process
    CHECK_UNARY(!saved(device, next, hour, "__kernel void fifth() {}").load().has_value());
    CHECK(next.kind() == Kind::compiled);
}

TEST_CASE("program cache: child process" * doctest::skip()) {
    for (int i = 0; i < 3; ++i) CHECK(scales(std::to_string(i) + ".0f"));
}

TEST_CASE("program cache: concurrent processes") {
    const TempFolder folder;
    std::vector<std::unique_ptr<test::Child>> children;
    for (int i = 0; i < 3; ++i)
        children.push_back(std::make_unique<test::Child>(
            "program cache: child process",
            std::map<std::string, std::optional<std::string>>{{"DECLIVITY_CACHE_DIR", folder.path().string()}}));
    for (const auto& child : children) {
        const auto result = child->finish();
        INFO(result.output);
        CHECK(result.code == 0);
    }
    CHECK(files_in(folder.path()).size() == 3);  // three programs, and no temporary file
    const auto cache = cache_at(folder.path());
    for (int i = 0; i < 3; ++i) CHECK(store_of_scale(test::device(), std::to_string(i) + ".0f").load().has_value());
}
