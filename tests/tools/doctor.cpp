// `declivity doctor`: its text and JSON output, exit codes, drivers that crash or hang, kernels that compute wrong
// results.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/runtime/device.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <runtime/embedded_kernels.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/program.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Json = nlohmann::json;

struct Report {
    int code = 0;
    Json json;
};

Report examined(const std::string& arguments, const std::string& environment = "") {
    const ProgramRun run = run_program("doctor --json " + arguments, environment);
    CAPTURE(run.error);
    CAPTURE(run.out);
    const Json json = Json::parse(run.out, nullptr, false);
    REQUIRE(json.is_object());
    CHECK(json["code"] == run.code);
    return {run.code, json};
}

/// A section of a report.
Json section(const Report& report, const std::string& name) {
    for (const Json& item : report.json["sections"])
        if (item["name"] == name) return item;
    FAIL("there is no section ", name);
    return {};
}

/// The findings of a section with this status.
std::vector<Json> with_status(const Json& section, const std::string& status) {
    std::vector<Json> out;
    for (const Json& finding : section["findings"])
        if (finding["status"] == status) out.push_back(finding);
    return out;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("declivity doctor: sections as text, and what to do") {
    if (!program_built()) return;
    const ProgramRun run = run_program("doctor --only groups,half");
    CAPTURE(run.out);
    CHECK(run.error.empty());
    CHECK(run.code == 0);
    const DeviceInfo& info = Device::best().info();
    for (const std::string& word : {info.name, info.driver, info.platform, std::string("\ngroups: "),
                                    std::string("barriers"), std::string("\nhalf: "), std::string("cl_khr_fp16"),
                                    std::string("checks that were asked for are right"), std::string("What to do: ")})
        CHECK(has(run.out, word));
    CHECK_FALSE(has(run.out, "WRONG"));
    CHECK_FALSE(has(run.out, "\nmatmul: "));
    CHECK(has(run_program("doctor --only groups --all").out, "  right    static local memory\n"));
}

TEST_CASE("declivity doctor --json: device properties, and each check") {
    if (!program_built()) return;
    const Report report = examined("--only arguments,queues", "DECLIVITY_STAGING=plain");
    CHECK(report.code == 0);
    const DeviceInfo& info = Device::best().info();
    const Json& device = report.json["device"];
    CHECK(device["name"] == info.name);
    CHECK(device["driver"] == info.driver);
    CHECK(device["local memory"] == info.local_memory);
    CHECK(device["extensions"] == info.extensions);
    CHECK(device["kernel_style"] == (Device::best().kernel_style() == KernelStyle::simd ? "simd" : "simt"));
    CHECK(report.json["settings"]["DECLIVITY_STAGING"] == "plain");
    std::vector<std::string> names;
    for (const Json& section : report.json["sections"]) names.push_back(section["name"]);
    CHECK(names == std::vector<std::string>{"device", "arguments", "queues"});
    const Json arguments = section(report, "arguments");
    CHECK(arguments["wrong"] == 0);
    CHECK(arguments["right"] == with_status(arguments, "right").size());
    CHECK(arguments["right"].get<int>() + arguments["avoided"].get<int>() == 10);
    CHECK_FALSE(report.json["verdict"].get<std::string>().empty());
    CHECK_FALSE(report.json["what to do"].get<std::string>().empty());
}

TEST_CASE("declivity doctor: missing devices and invalid options have exit code 2") {
    if (!program_built()) return;
    const TempFolder empty;
    const ProgramRun none = run_program("doctor", without_devices(empty));
    CHECK(none.code == 2);
    CHECK(has(none.error, "declivity: no OpenCL device found"));
    const Report json = examined("", without_devices(empty));
    CHECK(json.code == 2);
    CHECK(has(json.json["verdict"], "no OpenCL device found"));
    const ProgramRun unknown = run_program("doctor --device frobnicator");
    CHECK(unknown.code == 2);
    CHECK(has(unknown.error, "frobnicator"));
    for (const std::string wrong :
         {"doctor --frobnicate", "doctor --only nonsense", "doctor --silence soon", "doctor more"}) {
        CAPTURE(wrong);
        const ProgramRun result = run_program(wrong);
        CHECK(result.code == 2);
        CHECK_FALSE(result.error.empty());
    }
    CHECK(run_program("doctor --help").code == 0);
}

TEST_CASE("declivity doctor: a driver that crashes, hangs or ends the process is a finding, and the rest continues") {
    if (!program_built()) return;
    const Json all = section(examined("--only atomics"), "atomics");
    const std::size_t checks = all["findings"].size();
    struct Fault {
        std::string fault, options, text;
    };
    for (const Fault& fault_case : {Fault{"crash", "", "signal 6"}, Fault{"exit", "", "exit code 3"},
                                    Fault{"hang", "--silence 20", "no output for 20 s"}}) {
        CAPTURE(fault_case.fault);
        const bool hangs = fault_case.fault == "hang";
        const Report report = examined(fmt::format("--only arguments{} --fault {}@arguments {}",
                                                   hangs ? "" : ",atomics", fault_case.fault, fault_case.options));
        CHECK(report.code == 1);
        const Json arguments = section(report, "arguments");
        const auto wrong = with_status(arguments, "wrong");
        REQUIRE(wrong.size() == 1);
        CHECK(wrong[0]["name"] == arguments["findings"][1]["name"]);
        CHECK(wrong[0]["name"] == "a struct of 12 bytes, behind memory");
        CHECK(has(wrong[0]["text"], fault_case.text));
        // Each check once, including those after it.
        std::set<std::string> names;
        for (const Json& finding : arguments["findings"]) names.insert(finding["name"]);
        CHECK(names.size() == arguments["findings"].size());
        CHECK(names.size() == 10);
        CHECK(has(report.json["verdict"], "arguments"));
        if (!hangs) CHECK(section(report, "atomics")["findings"].size() == checks);
    }
    // Kernels of the other style have less time, and after a timeout the rest is skipped.
    const Report slow = examined("--only optimizers --fault slow@optimizers --silence 40");
    CHECK(slow.code == 0);
    const Json optimizers = section(slow, "optimizers");
    REQUIRE(with_status(optimizers, "avoided").size() == 1);
    CHECK(has(with_status(optimizers, "avoided")[0]["text"], "no output for 10 s"));
    CHECK(with_status(optimizers, "skipped").size() == 1);
    CHECK(with_status(optimizers, "right").size() == 5);
    // For features that the library does not use, even a crash is harmless.
    const Report unused = examined("--only atomics --fault crash@atomics");
    CHECK(unused.code == 0);
    CHECK(with_status(section(unused, "atomics"), "avoided").size() == 1);
    CHECK(with_status(section(unused, "atomics"), "wrong").empty());
    const Report thrown = examined("--only arguments --fault throw@arguments");
    CHECK(thrown.code == 1);
    CHECK(with_status(section(thrown, "arguments"), "wrong").size() == 1);
}

TEST_CASE("declivity doctor --jobs: several processes find the same as one, in the same order") {
    if (!program_built()) return;
    const auto found = [](const std::string& arguments) {
        const Report report = examined("--only pool2d,arguments,atomics " + arguments);
        std::vector<std::string> all;
        for (const Json& section : report.json["sections"])
            for (const Json& finding : section["findings"]) {
                CHECK_FALSE(finding.contains("at"));
                all.push_back(section["name"].get<std::string>() + ": " + finding["name"].get<std::string>() + ", " +
                              finding["status"].get<std::string>());
            }
        return all;
    };
    const std::vector<std::string> alone = found("--jobs 1");
    CHECK(alone.size() > 40);
    CHECK(found("--jobs 3") == alone);
    // A process that ends in one check does not affect those of the others.
    const Report crashed = examined("--only pool2d --jobs 2 --fault crash@pool2d");
    const Json pool2d = section(crashed, "pool2d");
    CHECK(has(pool2d["findings"][1].value("text", ""), "signal 6"));
    CHECK(with_status(pool2d, "right").size() == 31);
    std::set<std::string> names;
    for (const Json& finding : pool2d["findings"]) names.insert(finding["name"]);
    CHECK(names.size() == pool2d["findings"].size());
    CHECK(names.size() == 32);
}

namespace {

/// Replaces `was` by `is` in a kernel file; the check whose name contains these words must fail.
struct Mutation {
    std::string_view file;
    std::string was, is, check;
};

/// Applies all of them at once, in one run of a section.
Report with_mutations(const std::string& section_name, const std::vector<Mutation>& mutations,
                      const std::string& options = "") {
    const TempFolder folder;
    std::map<std::string, std::string> sources;
    for (const Mutation& mutation : mutations) {
        const auto kernels = declivity::detail::embedded_kernels();
        const auto found = std::ranges::find(kernels, mutation.file, &declivity::detail::EmbeddedKernel::name);
        REQUIRE(found != kernels.end());
        std::string& source = sources.try_emplace(std::string(mutation.file), found->source).first->second;
        const std::size_t at = source.find(mutation.was);
        CAPTURE(mutation.was);
        REQUIRE(at != std::string::npos);
        source.replace(at, mutation.was.size(), mutation.is);
    }
    for (const auto& [file, source] : sources) std::ofstream(folder / file) << source;
    return examined("--only " + section_name + options, "DECLIVITY_KERNEL_DIR='" + folder.path().string() + "'");
}

void check_found(const std::string& section_name, const std::vector<Mutation>& mutations,
                 const std::string& options = "") {
    CAPTURE(section_name);
    const Report report = with_mutations(section_name, mutations, options);
    CHECK(report.code == 1);
    CHECK(has(report.json["verdict"], section_name));
    const auto wrong = with_status(section(report, section_name), "wrong");
    std::string names;
    for (const Json& item : wrong) names += item["name"].get<std::string>() + "\n";
    CAPTURE(names);
    for (const Mutation& mutation : mutations) CHECK_MESSAGE(has(names, mutation.check), mutation.check);
}

}  // namespace

TEST_CASE("declivity doctor: each check of arithmetic can fail") {
    if (!program_built()) return;
    std::vector<Mutation> mutations{
        {"doctor_arithmetic.cl", "OF_2(add, float, float, x + y)", "OF_2(add, float, float, x + y * 1.0000002f)",
         "f32: sums"},
        {"doctor_arithmetic.cl", "OF_3(fma, float, float, fma(x, y, z))",
         "OF_3(fma, float, float, fma(x, y, z * 1.0000002f))", "f32: fma is fused"},
        {"doctor_arithmetic.cl", "float, x / y)", "float, x / y * 1.000001f)", "f32: division"},
        {"doctor_arithmetic.cl", "(x < y ? 1 : 0)", "(x < y ? 1 : 64)", "f32: comparisons"},
        {"doctor_arithmetic.cl", "fmin(x, y)", "x < y ? x : y", "f32: fmin"},
        {"doctor_arithmetic.cl", "rint(x)", "floor(x + 0.5f)", "f32: rint"},
        {"doctor_arithmetic.cl", "OF_2(multiply, float, float, (x * y))", "OF_2(multiply, float, float, fabs(x * y))",
         "f32: signs of zeros"},
        {"doctor_arithmetic.cl", "OF_1(copy, float, float, x)", "OF_1(copy, float, float, -x)",
         "f32: elements are copied"},
        {"doctor_arithmetic.cl", "x < y ? fma(x", "x <= y ? fma(x", "vectors of 16"},
        {"doctor_arithmetic.cl", "convert_int_sat_rte(x)", "convert_int_sat(x)", "f32 to i32"},
        {"doctor_arithmetic.cl", "convert_uchar_sat(x)", "(uchar)(int)clamp(x, -1e6f, 1e6f)", "f32 to u8"},
        {"doctor_arithmetic.cl", "float_to_long_saturated, float, long, convert_long_sat(x)",
         "float_to_long_saturated, float, long, (long)convert_int_sat(x)", "f32 to i64"},
        {"doctor_arithmetic.cl", "OF_1(int_to_float, int, float, (float)x)",
         "OF_1(int_to_float, int, float, (float)(x & ~1))", "i32 and u32 to f32"},
        {"doctor_arithmetic.cl", "OF_1(long_to_float, long, float, (float)x)",
         "OF_1(long_to_float, long, float, (float)(int)x)", "i64 and u64 to f32"},
        {"doctor_arithmetic.cl", "(char)x", "(char)max(x, 0)", "i32, i64 and i8"},
        {"doctor_arithmetic.cl", "mul_hi(x, y)", "x * y", "i32: division"},
        {"doctor_arithmetic.cl", "(x >> (y & 31))", "(x >> (y & 15))", "i64: division"},
        {"doctor_arithmetic.cl", "ushort, to_f16(x))", "ushort, to_f16(x * 1.0000002f))", "f16 in integer arithmetic"},
        {"doctor_arithmetic.cl", "ushort, to_bf16(x))", "ushort, (ushort)(as_uint(x) >> 16))", "bf16 by shifts"}};
    if (Device::best().info().fp64)
        mutations.insert(mutations.end(),
                         {{"doctor_arithmetic.cl", "OF_1(double_sqrt, double, double, sqrt(x))",
                           "OF_1(double_sqrt, double, double, sqrt(x) * (1 + 1e-15))", "f64: sums"},
                          {"doctor_arithmetic.cl", "OF_3(double_fma, double, double, fma(x, y, z))",
                           "OF_3(double_fma, double, double, fma(x, y, z * (1 + 1e-15)))", "f64: fma"},
                          {"doctor_arithmetic.cl", "OF_1(double_to_long, double, long, convert_long_sat(x))",
                           "OF_1(double_to_long, double, long, convert_int_sat(x))", "f64 to f32"}});
    check_found("arithmetic", mutations);
    // Failures of unused features are harmless.
    const Report half_report = with_mutations(
        "arithmetic", {{"doctor_arithmetic.cl", "vload_half(a_offset + i, (__global const half*)a)", "0", ""},
                       {"doctor_arithmetic.cl", "convert_int_sat(x)", "(x == x ? convert_int_sat(x) : 1)", ""}});
    CHECK(half_report.code == 0);
    CHECK(has(half_report.json["avoided"], "f16 by vload_half"));
    CHECK(has(half_report.json["avoided"], "NaN becomes 0"));
}

TEST_CASE("declivity doctor: each check of functions, work-groups, arguments, memory and queues can fail") {
    if (!program_built()) return;
    check_found("maths", {{"doctor_math.cl", "= d_##name(x[x_offset + i])",
                           "= d_##name(x[x_offset + i]) * (REAL)1.000002f", "exp of f32, 16 wide\n"},
                          {"doctor_math.cl", "d_pow(x[x_offset + i], y[y_offset + i])",
                           "d_pow(x[x_offset + i], y[y_offset + i]) * (REAL)1.000002f", "pow of f32\n"},
                          {"doctor_math.cl", "2 * d_is_nan", "3 * d_is_nan", "distinguished by their bits"}});
    check_found("groups",
                {{"doctor_groups.cl", "(long)get_local_id(0) |", "(long)get_global_id(0) |", "ids in one"},
                 {"doctor_groups.cl", "= tile[items - 1 - item];", "= tile[item];", "static local memory"},
                 {"doctor_groups.cl", "second[(item + 1) % items];", "second[item];", "two arguments of local memory"},
                 {"doctor_groups.cl", "all[i] = i * 3 + 1", "all[i] = i == count - 1 ? 0 : i * 3 + 1",
                  "all of the reported local memory"},
                 {"doctor_groups.cl", "slices[1 - now][item]", "slices[now][item]", "double-buffered"},
                 {"doctor_groups.cl", "if (item + half_of < left)", "if (item + half_of < left - 1)", "tree reduction"},
                 {"doctor_groups.cl", "item >= distance ?", "item > distance ?", "prefix sums"},
                 {"doctor_groups.cl", "get_group_id(0) % 4", "get_group_id(0) % 3", "barriers in a function"},
                 {"doctor_groups.cl", "mine[items - 1 - item] = 2 * value", "mine[item] = 2 * value",
                  "exchange through global memory"},
                 {"doctor_groups.cl", "sums[(value + i * i) % 13] += i", "sums[value % 13] += i", "private arrays"}});
    check_found(
        "arguments",
        {{"doctor_arguments.cl",
          "doctor_small(const struct Small s, TO) {\n    int at = 0;\n    PUT(s.a);\n    PUT(s.b);",
          "doctor_small(const struct Small s, TO) {\n    int at = 0;\n    PUT(s.a);\n    PUT(s.a);",
          "a struct of 8 bytes"},
         {"doctor_arguments.cl", "struct Odd s) {\n    int at = 0;\n    PUT(s.a);\n    PUT(s.b);",
          "struct Odd s) {\n    int at = 0;\n    PUT(s.a);\n    PUT(s.c);", "a struct of 12 bytes"},
         {"doctor_arguments.cl", "for (int i = 0; i < 7; ++i) PUT(s.a[i]);", "for (int i = 0; i < 7; ++i) PUT(s.a[0]);",
          "a struct of 64 bytes"},
         {"doctor_arguments.cl", "PUT(s.c[i]);", "PUT(s.c[0]);", "arrays of 1 and 2 bytes"},
         {"doctor_arguments.cl", "PUT(s.inner[i].b);", "PUT(s.inner[0].b);", "structs in a struct"},
         {"doctor_arguments.cl", "PUT(s.values[index]);", "PUT(s.values[250 - index]);", "a struct of 1008 bytes"},
         {"doctor_arguments.cl", "#define WRITTEN(name) PUT(name);", "#define WRITTEN(name) PUT(a1);", "126 numbers"},
         {"doctor_arguments.cl", "PUT(f);\n    PUT(g);", "PUT(f);\n    PUT(f);", "numbers of all sizes"}});
    check_found("queues", {{"doctor_queues.cl", "factor * x[x_offset + i]", "factor + x[x_offset + i]",
                            "kernels run in the order"},
                           {"doctor_queues.cl", "(uint)i + added", "(uint)i + added", "kernels, uploads, copies"},
                           {"doctor_queues.cl", "(uint)i + added", "(uint)i + added", "two queues"},
                           {"doctor_queues.cl", "(uint)i + added", "(uint)i + added", "mapped memory"}});
    if (with_status(section(examined("--only memory"), "memory"), "skipped").empty())
        check_found("memory", {{"doctor_memory.cl", "base[offset + i * step] =",
                                "base[(offset + i * step) & 0x3fffffff] =", "more than 4 GiB"}});
    else skip("there is no memory for a buffer of more than 4 GiB");
    const Report atomics =
        with_mutations("atomics", {{"doctor_atomics.cl", "atomic_max(&c[1], value)", "c[1] = value", ""},
                                   {"doctor_atomics.cl", "ATOMIC(sub)(&c[2], 3)", "ATOMIC(sub)(&c[2], 2)", ""}});
    CHECK(atomics.code == 0);
    CHECK(section(atomics, "atomics")["avoided"].get<int>() >= 2);
    CHECK(section(atomics, "atomics")["wrong"] == 0);
}

TEST_CASE("declivity doctor: a known fault is harmless while it is avoided") {
    if (!program_built()) return;
    const std::vector<Mutation> like_a_fault{{"driver_faults.cl", "out[(4 * row + r) * 32 + 4 * column] = get",
                                              "out[(4 * row + 1) * 32 + 4 * column] = get", "wide_work_item_ids"}};
    const std::string options = " --checks wide_work_item_ids";
    const Report avoided = with_mutations("faults", like_a_fault, options);
    CHECK(avoided.code == 0);
    CHECK(has(avoided.json["avoided"], "wide_work_item_ids"));
    const auto findings = with_status(section(avoided, "faults"), "avoided");
    REQUIRE(findings.size() == 1);
    CHECK(has(findings[0]["text"], "The library avoids it: "));
    // A fault that ends the process is reported, too.
    const Report ended = with_mutations(
        "faults",
        {{"driver_faults.cl", "out[get_global_id(0)] = given.a", "((__global int*)8)[get_global_id(0)] = given.a", ""}},
        " --checks indexed_struct_argument");
    CHECK(ended.code == 0);
    const auto end_findings = with_status(section(ended, "faults"), "avoided");
    REQUIRE(end_findings.size() == 1);
    CAPTURE(end_findings[0]);
    if (has(end_findings[0]["text"], "ended by signal"))
        CHECK(has(end_findings[0]["text"], "reads an array within a struct argument"));
    else skip("this driver survives a kernel that writes to address 8");
    const Environment workarounds_off("DECLIVITY_WORKAROUNDS", "0");
    check_found("faults", like_a_fault, options);
}

TEST_CASE("declivity doctor: each function has a check that passes") {
    if (!program_built()) return;
    const Report report = examined("--only elementwise,copies,random");
    CAPTURE(report.json.dump(1));
    CHECK(report.code == 0);
}

TEST_CASE("declivity doctor: an operator whose kernel computes wrong results is named") {
    if (!program_built()) return;
    // Only the relevant checks, since each section compiles many kernels.
    {
        const Environment style("DECLIVITY_KERNEL_STYLE", "simd");
        check_found("elementwise",
                    {{"elementwise.cl", "to; ++i) {\n                ELEMENT_CODE out[i * STEP_OUT] = RESULT;",
                      "to; ++i) { ELEMENT_CODE out[i * STEP_OUT] = RESULT; if (i == 7) out[i * STEP_OUT] = 1;",
                      "tanh of f32, simd kernels"}},
                    " --checks 'tanh'");
        check_found("copies",
                    {{"permute.cl", "to[j + i * to_a] = from[i + j * from_b]",
                      "to[j + i * to_a] = from[i + b * from_b]", "in the order 1 0"}},
                    " --checks 'in the order 1 0'");
        check_found("random", {{"philox.clh", "k0 += 0x9e3779b9u", "k0 += 0x9e3779bbu", "uniform numbers"}},
                    " --checks 'uniform'");
        check_found("reduce",
                    {{"reduce_rows.cl", "split * split_stride] = FINALIZE(value)",
                      "split * split_stride] = FINALIZE(value + (ACC)1)", "sum of a million, simd kernels"}},
                    " --checks 'a million'");
        check_found("optimizers", {{"formula.cl", "int i = first;", "int i = first + 1;", "SGD with momentum 0,"},
                                   {"formula.cl", "i += GROUP", "i += 2 * GROUP", "AdamW"}});
        check_found("matmul",
                    {{"matmul_register_tiled.cl", "sum[i][j] = fma(left, right[j], sum[i][j]);",
                      "sum[i][j] = fma(left, right[j] + (REAL)0.01, sum[i][j]);", "tiled: 1 x (13 x 9 x 33)"}},
                    " --checks 'tiled: 1 x'");
        check_found("conv2d",
                    {{"conv2d_direct.cl", "if (d.has_bias) sum += LOADED(bias", "if (d.has_bias) sum -= LOADED(bias",
                      "direct, forward, simd: 3x3, f32"}},
                    " --checks 'direct, forward'");
        check_found("training", {{"formula.cl", "i < count; i += GROUP", "i < 0; i += GROUP", "the loss falls"}},
                    " --checks 'the loss falls as in a reference run, simd'");
    }
    {
        const Environment style("DECLIVITY_KERNEL_STYLE", "simt");
        check_found("rows",
                    {{"softmax_simt.cl", "- m) * scale", "- m) * scale * (REAL)1.001", "softmax: rows, simt kernels"}},
                    " --checks 'softmax: rows'");
        check_found("pool2d",
                    {{"pool2d_simt.cl", "indices[p * pool.Q + q] == h * pool.W + column",
                      "indices[p * pool.Q + q] != h * pool.W + column", "simt kernels"}},
                    " --checks 'simt kernels'");
    }
    // The other kernel style is reported as harmless.
    const Environment style("DECLIVITY_KERNEL_STYLE", "simd");
    const Report other = with_mutations("rows", {{"softmax_simt.cl", "- m) * scale", "- m) * scale * (REAL)1.001", ""}},
                                        " --checks 'softmax: rows, simt kernels'");
    CHECK(other.code == 0);
    CHECK(has(other.json["avoided"], "softmax: rows, simt kernels"));
}

TEST_CASE("declivity doctor --bench: rates compared with the device's measured peak") {
    if (!program_built()) return;
    // One row of each kind, since all of them take long.
    const auto metrics = [](const std::string& name) {
        const Report report = examined("--only bench --checks '" + name + "'");
        CHECK(report.code == 0);
        const auto facts = with_status(section(report, "bench"), "fact");
        REQUIRE(facts.size() == 1);
        CHECK(facts[0]["name"] == name);
        return facts[0]["metrics"];
    };
    const Json peak = metrics("measured peak"), launches = metrics("launch");
    CHECK(peak["GFLOP/s f32"] > 0);
    CHECK(peak["GB/s"] > 0);
    CHECK(launches["waited us"] >= launches["enqueue us"]);
    const Json product =
        metrics(Device::best().kernel_style() == KernelStyle::simd ? "product 512 x 512 x 512, simd kernels"
                                                                   : "product 512 x 512 x 512, simt kernels");
    CHECK(product["GFLOP/s"] > 0);
    CHECK_FALSE(product["strategy"].get<std::string>().empty());
}
