// no-oclgrind: it runs the cases of the catalogue, like tests/functions/catalogue.cpp
// The table of docs/reference/catalogue.md: for each function of functions.hpp its types, the order of its gradients,
// and its kernels. DECLIVITY_WRITE_CATALOGUE=docs/reference/catalogue.md regenerates it (some minutes); otherwise only
// its names are checked.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/cases.hpp>
#include <tests/functions/declared_functions.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/paths.hpp>

using namespace declivity;
using namespace declivity::test;
using namespace declivity::test::catalogue;

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Properties of a function, found by running its cases.
struct Facts {
    std::set<DType> types;
    int order = 0;  // order of differentiability; 2 means any
    bool zero_gradient = false;
    std::set<std::string> kernels;
};

Tensors inputs_as(const Case& test_case, DType dtype) {
    const Columns columns = inputs_of(test_case);
    const auto is_number = [](const Input& input) { return input.kind == Kind::real || input.kind == Kind::constant; };
    const bool has_number_inputs = std::ranges::any_of(test_case.inputs, is_number);
    Tensors out;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const Kind kind = test_case.inputs[i].kind;
        const bool has_dtype = has_number_inputs ? is_number(test_case.inputs[i]) : kind != Kind::boolean;
        const Tensor x = tensor(columns[i], test_case.inputs[i].shape, DType::f32);
        out.push_back(has_dtype ? x.to(dtype) : x.to(kind == Kind::boolean ? DType::boolean : DType::i64));
    }
    return out;
}

bool accepts(const Case& test_case, DType dtype) {
    try {
        const Tensor out = test_case.call(inputs_as(test_case, dtype));
        (void)out.view();
        out.device().synchronize();
        return true;
    } catch (const Error&) {
        return false;
    }
}

int gradient_order(const Case& test_case) {
    if (!test_case.differentiable) return 0;
    Tensors inputs = tensors_of(test_case, inputs_of(test_case), DType::f32, Layout::dense), real;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (test_case.inputs[i].kind == Kind::real) real.push_back(inputs[i].set_requires_grad());
    const Tensor out = test_case.call(inputs);
    const Tensor seed = random_tensor(out.shape(), 7).set_requires_grad();
    Tensors first_gradients =
        grad({out}, real, {.output_gradients = {seed}, .create_graph = true, .allow_unused = true});
    std::erase_if(first_gradients, [](const Tensor& x) { return !x.defined() || !x.requires_grad(); });
    if (first_gradients.empty()) return 1;  // the gradient is constant: 0 everywhere
    Tensor total = zeros({});
    for (const Tensor& x : first_gradients) total = total + sum(x * x);
    real.push_back(seed);
    try {
        const Tensors second_gradients = grad({total}, real, {.create_graph = true, .allow_unused = true});
        REQUIRE(std::ranges::any_of(second_gradients, [](const Tensor& x) { return x.defined(); }));
        return 2;
    } catch (const Error& error) {
        FAIL(test_case.name, ": ", error.what());
        return 1;
    }
}

void collect_facts(const Case& test_case, Facts& facts) {
    for (const DType dtype : kDTypes)
        if (!facts.types.contains(dtype) && (dtype != DType::f64 || device().info().fp64) && accepts(test_case, dtype))
            facts.types.insert(dtype);
    facts.order = std::max(facts.order, gradient_order(test_case));
    facts.zero_gradient = facts.zero_gradient || test_case.zero_gradient;
    const Tensors inputs = tensors_of(test_case, inputs_of(test_case), DType::f32, Layout::dense);
    for (const Tensor& x : inputs) (void)x.view();
    device().synchronize();
    Profiler profiler(device());
    (void)test_case.call(inputs).view();
    profiler.stop();
    for (const Profiler::Row& row : profiler.rows()) facts.kernels.insert(row.name);
}

/// Types in short form.
std::string types_of(const std::set<DType>& types) {
    const std::set<DType> floating{DType::f32, DType::f64, DType::f16, DType::bf16}, single{DType::f32, DType::f64};
    std::set<DType> integers;
    for (const DType dtype : kDTypes)
        if (!floating.contains(dtype) && dtype != DType::boolean) integers.insert(dtype);
    std::set<DType> left = types;
    std::vector<std::string> type_names;
    const auto take = [&](const std::set<DType>& group, const char* type_name) {
        if (!std::ranges::includes(left, group)) return;
        for (const DType dtype : group) left.erase(dtype);
        type_names.emplace_back(type_name);
    };
    if (types.size() == kDTypes.size()) return "all";
    take(floating, "floating");
    take(single, "f32, f64");
    take(integers, "integers");
    for (const DType dtype : left) type_names.emplace_back(name_of(dtype));
    std::string out;
    for (const std::string& type_name : type_names) out += (out.empty() ? "" : ", ") + type_name;
    return out;
}

/// A chain of elementwise functions has a generated kernel with a recognisable name.
std::string kernel_list(const std::set<std::string>& kernels) {
    std::string out;
    for (const std::string& name : kernels) {
        if (name.starts_with("copy") || name == "fill") continue;
        out += (out.empty() ? "" : ", ") + name;
    }
    return out.empty() ? "view or copy" : out;
}

/// Test files, other than those of the catalogue, that call a function.
std::string tests_of(const std::string& name, const std::map<std::string, std::string>& sources) {
    std::string out;
    int count = 0;
    const std::string escaped = std::regex_replace(name, std::regex(R"([-+*/%&|^<>=!~])"), R"(\$&)");
    if (name.starts_with("operator")) return "";
    const std::regex call("(^|[^A-Za-z0-9_.:>])(declivity::)?" + escaped + "\\(");
    for (const auto& [file, text] : sources) {
        if (count == 2 || text.find(name + "(") == std::string::npos || !std::regex_search(text, call)) continue;
        out += ", " + file;
        ++count;
    }
    return out;
}

std::map<std::string, std::string> test_sources() {
    std::map<std::string, std::string> out;
    for (const char* folder : {"functions", "tensor", "autograd", "capture", "ops", "nn"})
        for (const auto& file : fs::recursive_directory_iterator(source_folder() / folder))
            if (const std::string stem = file.path().stem().string();
                file.path().extension() == ".cpp" && file.path().parent_path().filename() != "catalogue" &&
                !stem.starts_with("catalogue") && stem != "contract" && stem != "silence")
                out[std::string(folder) + "." + stem] = text_of(file.path());
    return out;
}

void write(const fs::path& path) {
    std::map<std::string, Facts> facts;
    std::map<std::string, int> seen;
    for (const Case& test_case : cases())
        if (++seen[test_case.name] <= 3) collect_facts(test_case, facts[test_case.name]);
    const auto sources = test_sources();
    std::ofstream out(path);
    out << "# Catalogue of functions\n\n"
           "Written by a program (`tests/functions/catalogue_table.cpp`) that calls every function, on PoCL's CPU "
           "device:\n\n"
           "- **types**: supported types of its numeric tensors. Floating: f32, f64, f16 and bf16; integers: 8 to 64 "
           "bits,\n"
           "  signed and unsigned. f64 requires a device with double precision.\n"
           "- **gradients**: supported orders of differentiation. *any*: differentiated twice here; `0`: the "
           "derivative is 0\n"
           "  where it exists; empty: not differentiable.\n"
           "- **kernels** that a call in f32 launches. `elementwise` is a kernel generated from a chain of elementwise "
           "functions,\n"
           "  into which neighbours are fused; other devices may use other kernels. Functions with several are "
           "decompositions.\n"
           "- **tests**: the first two that call the function by name, in addition to those that run every function:\n"
           "  `functions.catalogue` (values and gradients compared with plain C++ in double precision), "
           "`functions.contract` "
           "(strides,\n"
           "  empty inputs, capture, epilogues, other types) and `peers.op_db` (PyTorch's own samples).\n\n"
           "The headers in `include/declivity/functions/` document what a function computes, its shapes, "
           "defaults and\n"
           "errors; `./bootstrap docs` makes pages of them.\n";
    for (const auto& [header, names] : declared_functions()) {
        out << "\n## " << header
            << "\n\n| function | types | gradients | kernels | tests |\n| --- | --- | --- | --- | --- |\n";
        for (const std::string& name : names) {
            const Facts& fact = facts.at(name);
            const std::string tests = tests_of(name.substr(name.rfind(':') + 1), sources);
            const std::string shown = std::regex_replace(name, std::regex(R"(\|)"), R"(\|)");
            out << "| `" << shown << "` | " << types_of(fact.types) << " | "
                << (fact.order == 2                         ? "any"
                    : fact.order == 1 || fact.zero_gradient ? "0"
                                                            : "")
                << " | " << kernel_list(fact.kernels) << " | " << (tests.empty() ? "" : tests.substr(2)) << " |\n";
        }
    }
    REQUIRE(out);
}

}  // namespace

TEST_CASE("catalogue table: docs/reference/catalogue.md has a row for every function, and no other") {
    const fs::path page = source_folder().parent_path() / "docs/reference/catalogue.md";
    if (const char* to = std::getenv("DECLIVITY_WRITE_CATALOGUE")) write(to);
    std::set<std::string> rows, names;
    std::istringstream lines(text_of(page));
    static const std::regex row(R"(^\| `([^`]+)` \|)");
    for (std::string line; std::getline(lines, line);)
        if (std::smatch found; std::regex_search(line, found, row))
            rows.insert(std::regex_replace(found.str(1), std::regex(R"(\\\|)"), "|"));
    for (const auto& [header, functions] : declared_functions()) names.insert(functions.begin(), functions.end());
    CHECK(names.size() > 50);
    for (const std::string& name : names) {
        INFO(name,
             " has no row: DECLIVITY_WRITE_CATALOGUE=docs/reference/catalogue.md declivity_tests -tc='catalogue "
             "table*'");
        CHECK_UNARY(rows.contains(name));
    }
    for (const std::string& name : rows) {
        INFO(name, " is not a function");
        CHECK_UNARY(names.contains(name));
    }
}

TEST_CASE("catalogue table: docs/guide/from_pytorch.md names every function") {
    const std::string page = text_of(source_folder().parent_path() / "docs/guide/from_pytorch.md");
    CHECK(page.size() > 1000);
    for (const auto& [header, names] : declared_functions())
        for (const std::string& name : names) {
            if (name.starts_with("operator")) continue;
            INFO(name);
            const std::string type_name = name.substr(name.rfind(':') + 1);
            CHECK_UNARY(std::regex_search(page, std::regex("`([^`]*[^A-Za-z0-9_`])?" + type_name + "\\b[^`]*`")));
        }
}

TEST_CASE("catalogue: tests that run in every eighth or sixteenth turn have all shares of their cases") {
    for (const std::size_t period : {1, 8, 16})
        for (std::size_t first = 0; first < period; ++first) {
            CAPTURE(period);
            CAPTURE(first);
            std::set<std::size_t> shares;
            for (std::size_t turn = first; turn < 64; turn += period) shares.insert(catalogue::share_of_turn(turn));
            CHECK(shares == std::set<std::size_t>{0, 1, 2, 3});
        }
}
