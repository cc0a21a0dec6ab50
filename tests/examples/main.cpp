// docs_examples: evaluates the examples in the docstrings of public headers.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cctype>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tests/examples/examples.hpp>
#include <tests/functions/declared_functions.hpp>
#include <tests/support/paths.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

/// Functions without an example. This list may only become shorter.
const std::set<std::string> kWithoutExample = {};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':'; }

/// Returns whether an expression calls a function: `name(` for a name, or an operand beside an operator.
bool calls(std::string_view expression, const std::string& function) {
    const bool is_operator = function.starts_with("operator");
    const std::string sought = is_operator ? function.substr(8) : function + '(';
    for (std::size_t at = expression.find(sought); at != std::string_view::npos; at = expression.find(sought, at + 1)) {
        const std::size_t end = at + sought.size();
        if (!is_operator && (at == 0 || !is_word(expression[at - 1]))) return true;
        if (!is_operator) continue;
        const bool alone = end < expression.size() && (expression[end] == ' ' || is_word(expression[end]));
        if (alone && (at == 0 || expression[at - 1] == ' ' || expression[at - 1] == '(')) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("examples: every function has one") {
    CHECK(calls("2 * sum(x, 0)", "sum"));
    CHECK_FALSE(calls("cumsum(x) + linalg::sum(x)", "sum"));
    CHECK(calls("x - y", "operator-"));
    CHECK(calls("-x", "operator-"));
    CHECK_FALSE(calls("f(x, -1)", "operator+"));

    std::size_t functions = 0, examples = 0;
    std::set<std::string> without;
    for (const Examples* header : Examples::all()) {
        examples += header->list().size();
        for (const std::string& name : catalogue::declared_in(source_folder().parent_path() / header->header())) {
            ++functions;
            bool found = false;
            for (const Example& example : header->list()) found = found || calls(example.expression, name);
            if (!found) without.insert(name);
        }
    }
    std::string missing;
    for (const std::string& name : without)
        if (!kWithoutExample.contains(name)) missing += ' ' + name;
    CHECK_MESSAGE(missing.empty(), "without an example in their docstring:", missing);
    for (const std::string& name : kWithoutExample)
        CHECK_MESSAGE(without.contains(name), name, " has an example: remove it from kWithoutExample");
    MESSAGE(examples, " examples, ", functions - without.size(), " of ", functions, " functions");
    CHECK(functions > 400);
}

TEST_CASE("examples: literals and values") {
    CHECK(shown(literal("f32", "[[1, -2.5], [0.333333, 1e-9]]")) == "[[1, -2.5], [0.3333, 0]]");
    CHECK(shown(literal("i64", "7")) == "7");
    CHECK(shown(literal("f32", "[]")) == "[]");
    CHECK(shown(literal("f32", "[[], []]")) == "[[], []]");
    CHECK(shown(literal("bool", "[true, false]")) == "[true, false]");
    CHECK(shown(literal("f16", "[nan, inf, -inf, 123456, -0.0]")) == "[nan, inf, -inf, inf, 0]");
    CHECK(shown(std::vector{literal("u8", "[1]"), literal("f32", "2")}) == "{[1], 2}");
    for (const char* wrong : {"", "[1, 2", "[1, 2]]", "[[1], [2, 3]]", "[1, [2]]", "[[1], 2]", "[x]", "[1 2x]"})
        CHECK_THROWS_AS(literal("f32", wrong), std::invalid_argument);
}

int main(int argc, char** argv) {
    setenv("DECLIVITY_TUNING_FILE", "", 0);  // measurements on this machine must not affect the tests
    return doctest::Context(argc, argv).run();
}
