// no-oclgrind: it measures times; the kernels that it runs are those of conv2d and matmul
#include <declivity/ops/copy.hpp>
#include <declivity/ops/tuning.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include <declivity/functions/functions.hpp>
#include <declivity/ops/random.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/version.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <reference/conv2d_cases.hpp>
#include <tests/support/child.hpp>
#include <tests/support/damage.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/matmul/matmul_strategies.hpp"
#include "ops/support/tuning_table.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::TuningEntry;
using ops::TuningTable;

namespace {

using Variable = test::Environment;

/// A separate tuning file; the device's table is loaded from it, and cleared at the end.
struct OwnFile {
    TempFolder folder;
    std::filesystem::path path = folder / "tuning.json";
    Variable variable{"DECLIVITY_TUNING_FILE", path.string()};
    TuningTable& table = TuningTable::of(default_device());
    OwnFile() { table.reload(); }
    ~OwnFile() {
        std::filesystem::remove(path);
        table.reload();
    }
    OwnFile(const OwnFile&) = delete;
    OwnFile& operator=(const OwnFile&) = delete;
};

const ops::Conv2dShape kConv{.x = {2, 3, 8, 9}, .weight = {4, 3, 3, 3}, .options = {.padding = {1, 1}}};

ops::Conv2dProblem forward_of(const ops::Conv2dShape& shape) {
    return ops::conv2d_problem("test", ops::Conv2dDirection::forward, shape.dtype, default_device().kernel_style(),
                               shape.x, shape.weight, shape.options);
}

void put_text(const std::filesystem::path& path, const std::string& text) {
    put_file(path, Bytes(text.begin(), text.end()));
}

Tensor conv2d_result(const Tensor& x, const Tensor& weight, const ops::Conv2dParameters& options) {
    const Tensor out = full(ops::conv2d_shape("test", x.shape(), weight.shape(), options), NAN);
    ops::conv2d_forward(x.view(), weight.view(), std::nullopt, out.view(), options);
    return out;
}

TuningEntry entry_for(const std::string& winner) {
    return {.winner = winner, .microseconds = {{winner, 12.5}}, .rejected = {{"other", "wrong"}}};
}

}  // namespace

TEST_CASE("tuning: buckets are the nearest of 1, 2, 3, 4, 6, 8, 12, ...") {
    for (const std::int64_t value : {1, 2, 3, 4, 6, 8, 12, 16, 24, 96, 128, 1536}) CHECK(ops::bucket(value) == value);
    CHECK(ops::bucket(0) == 0);
    CHECK(ops::bucket(5) == 6);
    CHECK(ops::bucket(56) == 64);
    CHECK(ops::bucket(100) == 96);
    for (std::int64_t value = 1; value < 5000; ++value) {
        CHECK(ops::bucket(value) <= ops::bucket(value + 1));
        CHECK(std::abs(ops::bucket(value) - value) * 4 <= value);
    }
}

TEST_CASE("tuning: the fastest correct result wins, wrong and failing ones are rejected with the reason") {
    const Tensor from = full({1000}, 2.0), out = full({1000}, 0.0);
    const auto right = [&] { ops::copy(from.view(), out.view()); };
    const auto slow = [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        right();
    };
    const std::vector<ops::Trial> trials{
        {"wrong", [&] { ops::fill(out.view(), 2.001); }},
        {"half", [&] { ops::copy(ops::sliced(from.view(), 0, 0, 500), ops::sliced(out.view(), 0, 0, 500)); }},
        {"broken", [] { throw DeviceError("no such thing", -11); }},
        {"fast", right},
        {"plain", slow}};
    const TuningEntry entry = ops::measure(out.view(), trials);
    CHECK(entry.winner == "fast");
    CHECK(entry.microseconds.size() == 2);
    CHECK(entry.microseconds.at("plain") >= 20000);
    CHECK(entry.rejected.at("wrong").starts_with("wrong: an error of 0.0005 relative to the norm"));
    CHECK(entry.rejected.at("half").starts_with("wrong"));
    CHECK(entry.rejected.at("broken").find("no such thing") != std::string::npos);
    const std::string text = ops::describe(entry);
    CHECK(text.find("fast ") < text.find("plain "));
}

TEST_CASE("tuning: results are merged into the file") {
    OwnFile own;
    nlohmann::json foreign_file{{"format", "declivity tuning 2"},
                                {"sections",
                                 {{{"device", "another"},
                                   {"driver", "1"},
                                   {"library", std::string(kVersion)},
                                   {"entries", {{"a", {{"winner", "b"}}}}}}}}};
    put_text(own.path, foreign_file.dump());
    own.table.reload();
    CHECK(own.table.generation() == 0);
    own.table.put("some key", entry_for("gemm"));
    CHECK(own.table.generation() != 0);
    own.table.reload();
    const auto found = own.table.find("some key");
    REQUIRE(found);
    CHECK(found->winner == "gemm");
    CHECK(found->microseconds.at("gemm") == 12.5);
    CHECK(found->rejected.at("other") == "wrong");
    CHECK(!own.table.find("a"));
    const auto file = nlohmann::json::parse(std::ifstream(own.path));
    CHECK(file["sections"].size() == 2);
    CHECK(file["sections"][0] == foreign_file["sections"][0]);
    CHECK(file["sections"][1]["device"] == default_device().name());
}

TEST_CASE("tuning: a choice follows the file if it is valid") {
    OwnFile own;
    const ops::Conv2dProblem problem = forward_of(kConv);
    const std::string rule(ops::choose_conv2d(problem, default_device()).strategy->name());
    const auto choice_after = [&](const std::string& winner) {
        own.table.put(ops::tuning_key(problem), entry_for(winner));
        return std::string(ops::choose_conv2d(problem, default_device()).strategy->name());
    };
    CHECK(choice_after("direct") == "direct");
    CHECK(ops::choose_conv2d(problem, default_device()).reason == "measured as the fastest on this device");
    CHECK(choice_after("tiled") == "tiled");
    CHECK(choice_after("depthwise") == rule);  // not applicable
    CHECK(choice_after("unheard of") == rule);
    CHECK(choice_after("") == rule);
    {
        const Variable named("DECLIVITY_CONV2D", "tiled");
        CHECK(choice_after("direct") == "tiled");
    }
    const Tensor a = random_tensor({1, 40, 50}, 1), b = random_tensor({1, 50, 30}, 2);
    const auto product = [&] { return ops::matmul_problem(a.view(), b.view()); };
    const auto product_after = [&](const std::string& winner) {
        own.table.put(ops::tuning_key(product()), entry_for(winner));
        return std::string(ops::choose_matmul(product(), default_device()).strategy->name());
    };
    {
        const ops::KernelStyleScope scope(KernelStyle::simd);
        CHECK(product_after("register_tiled") == "register_tiled");
        CHECK(product_after("packed") == "packed");
        CHECK(product_after("unheard of") != "unheard of");
        CHECK(product_after("tiled 64x64") != "tiled");  // for simt devices
        // The rule for a constant operand is also overridden by a measurement.
        const Tensor few = random_tensor({1, 8, 200}, 3), weights = random_tensor({1, 200, 100}, 4);
        const ops::MatmulProblem changing = ops::matmul_problem(few.view(), weights.view()),
                                 constant = changing.with_constants(true);
        const auto serves = [](const ops::MatmulProblem& item) {
            return std::string(ops::choose_matmul(item, default_device()).strategy->name());
        };
        own.table.put(ops::tuning_key(changing), entry_for("register_tiled"));
        CHECK(serves(changing) == "register_tiled");
        CHECK(serves(constant) == "packed");
        own.table.put(ops::tuning_key(constant), entry_for("blocked"));
        CHECK(serves(constant) == "blocked");
        CHECK(serves(changing) == "register_tiled");
    }
    const ops::KernelStyleScope scope(KernelStyle::simt);
    CHECK(product_after("tiled 64x64") == "tiled");
    CHECK(ops::choose_matmul(product(), default_device()).variant == "64x64");
    CHECK(product_after("blocked") == "tiled");  // for simd devices
}

TEST_CASE("tuning: the result is correct with any variant") {
    OwnFile own;
    const Conv2dCase c{"", kConv.x, kConv.weight, kConv.options};
    const Tensor x = random_tensor(c.x, 1), weight = random_tensor(c.weight, 2);
    for (const std::string winner : {"gemm 8x3", "gemm 6x4", "gemm 12x1", "gemm 99x99", "gemm ", "gemm x"}) {
        CAPTURE(winner);
        own.table.put(ops::tuning_key(forward_of(kConv)), entry_for(winner));
        CHECK(difference(conv2d_result(x, weight, c.options), conv2d_reference(c, values(x), values(weight), {}),
                         c.forward_tolerance(DType::f32)) == "");
    }
}

TEST_CASE("tuning: shapes are measured once, and at first use with DECLIVITY_TUNE") {
    OwnFile own;
    const ops::MatmulShape product{.batch = 2, .m = 9, .n = 33, .k = 20, .b_transposed = true};
    const std::string report = ops::tune(default_device(), product);
    CAPTURE(report);
    CHECK(report.starts_with("matmul f32 "));
    CHECK(report.find("tiled") != std::string::npos);
    CHECK(report.find("fastest") != std::string::npos);
    CHECK(ops::tune(default_device(), product).empty());
    CHECK(!ops::tune(default_device(), product, true).empty());
    CHECK(ops::explain(default_device(), product).find("measured as the fastest on this device") != std::string::npos);
    CHECK_THROWS_AS(ops::tune(default_device(), ops::MatmulShape{.m = 0}), ShapeError);

    const Tensor x = random_tensor(kConv.x, 1), weight = random_tensor(kConv.weight, 2);
    const ops::RandomPosition before = ops::random_position(default_device());
    conv2d_result(x, weight, kConv.options);
    CHECK(!own.table.find(ops::tuning_key(forward_of(kConv))));
    const Variable on("DECLIVITY_TUNE", "1");
    const Conv2dCase c{"", kConv.x, kConv.weight, kConv.options};
    const Tensor result = conv2d_result(x, weight, c.options);
    const auto entry = own.table.find(ops::tuning_key(forward_of(kConv)));
    REQUIRE(entry);
    // Winograd, which may win, has larger rounding errors.
    const Tolerance allowed =
        entry->winner.starts_with("winograd") ? Tolerance{.absolute = 1e-4} : c.forward_tolerance(DType::f32);
    CHECK(difference(result, conv2d_reference(c, values(x), values(weight), {}), allowed) == "");
    CHECK(entry->microseconds.contains("direct"));
    for (const auto& [name, reason] : entry->rejected) FAIL_CHECK(name << ": " << reason);
    CHECK(ops::random_position(default_device()).offset == before.offset);
    for (const char* direction : {"conv2d_forward", "conv2d_backward_input", "conv2d_backward_weights"})
        CHECK(ops::explain(default_device(), kConv).find(direction) != std::string::npos);
}

TEST_CASE("tuning: a damaged, missing or unwritable file is harmless") {
    OwnFile own;
    own.table.put("a", entry_for("gemm"));
    own.table.put("b", entry_for("tiled"));
    const Bytes valid = get_file(own.path);
    const auto read = [&](const std::filesystem::path&) {
        own.table.reload();
        if (const auto found = own.table.find("a")) CHECK(found->microseconds.size() <= 1);
    };
    const auto truncated = truncate_everywhere(valid, own.path, read);
    CHECK(truncated.refused == 0);
    const auto damaged = damage_at_random(valid, own.path, 300, read);
    CHECK(damaged.refused == 0);
    for (const char* text :
         {"", "[]", "{}", "null", R"({"format": 3})", R"({"format": "declivity tuning 2", "sections": 7})",
          R"({"format": "declivity tuning 2", "sections": [3]})",
          R"({"format": "declivity tuning 2", "sections": [)"
          R"({"device": 1, "driver": [], "library": {}, "entries": {}}]})"}) {
        put_text(own.path, text);
        own.table.reload();
        CHECK(own.table.generation() == 0);
        own.table.put("c", entry_for("gemm"));  // writes a complete file again
        own.table.reload();
        CHECK(own.table.find("c"));
    }
    const Variable unwritable("DECLIVITY_TUNING_FILE", "/proc/no such folder/tuning.json");
    own.table.reload();
    CHECK(own.table.generation() == 0);
    own.table.put("d", entry_for("gemm"));
    CHECK(own.table.find("d"));
    const Variable none("DECLIVITY_TUNING_FILE", "");
    CHECK(ops::tuning_file().empty());
    own.table.put("e", entry_for("gemm"));
    CHECK(own.table.find("e"));
}

TEST_CASE("tuning: child, writes many entries" * doctest::skip()) {
    TuningTable& table = TuningTable::of(default_device());
    for (int i = 0; i < 40; ++i) table.put(std::to_string(i), entry_for("gemm"));
    CHECK(table.generation() != 0);
}

TEST_CASE("tuning: concurrent processes leave a complete file") {
    OwnFile own;
    {
        const std::map<std::string, std::optional<std::string>> environment{
            {"DECLIVITY_TUNING_FILE", own.path.string()}};
        Child first("tuning: child, writes many entries", environment),
            second("tuning: child, writes many entries", environment);
        for (int i = 0; i < 200; ++i) {  // concurrent reads
            if (!std::filesystem::exists(own.path)) continue;
            CHECK_NOTHROW(nlohmann::json::parse(std::ifstream(own.path)));
        }
        CHECK(first.finish().code == 0);
        CHECK(second.finish().code == 0);
    }
    own.table.reload();
    for (int i = 0; i < 40; ++i) CHECK(own.table.find(std::to_string(i)));
}

TEST_CASE("tuning: files are merged, results of later ones win") {
    OwnFile own;
    const auto path = [&](const char* name) { return own.folder / name; };
    own.table.put("a", entry_for("gemm"));
    own.table.put("b", entry_for("gemm"));
    std::filesystem::rename(own.path, path("first"));
    own.table.reload();
    own.table.put("b", entry_for("tiled"));
    std::filesystem::rename(own.path, path("second"));
    ops::merge_tuning({path("first"), path("second")}, own.path);
    own.table.reload();
    CHECK(own.table.find("a")->winner == "gemm");
    CHECK(own.table.find("b")->winner == "tiled");
    CHECK_THROWS_AS(ops::merge_tuning({path("missing")}, own.path), IoError);
    put_text(path("broken"), "{");
    CHECK_THROWS_AS(ops::merge_tuning({path("broken")}, own.path), FormatError);
    own.table.reload();
    CHECK(own.table.find("a"));  // the target is unchanged
    // An invalid target is an error of the library that names it, and so is one nested too deeply.
    const std::string deep(80'000, '[');
    for (const std::string& text : {std::string("{"), std::string("[]"), std::string("{\"format\": 3}"), deep,
                                    R"({"format":"declivity tuning 2","sections":[],"x":)" + deep}) {
        put_text(path("target"), text);
        CHECK_THROWS_AS(ops::merge_tuning({path("first")}, path("target")), FormatError);
        CHECK_THROWS_AS(ops::merge_tuning({path("target")}, own.path), FormatError);
        put_text(own.path, text);
        own.table.reload();
        CHECK(own.table.generation() == 0);
        own.table.put("c", entry_for("gemm"));
        own.table.reload();
        CHECK(own.table.find("c"));
    }
    CHECK_THROWS_AS(ops::merge_tuning({path("first")}, "/proc/no such folder/tuning.json"), IoError);
    CHECK_THROWS_AS(ops::merge_tuning({path("first")}, own.folder.path()), IoError);
}
