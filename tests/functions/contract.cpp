// The contract of every function of the catalogue (tests/support/contract.hpp), and tests that the check detects
// violations.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/cases.hpp>
#include <tests/support/contract.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

#include "ops/engine/expression.hpp"
#include "ops/engine/fusion.hpp"
#include "ops/engine/lazy_array.hpp"
#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Tensors = std::vector<Tensor>;
using catalogue::Kind;
using ops::EpilogueFused;
using ops::OperationViews;

Contract contract_of(const catalogue::Case& test_case, DType dtype, catalogue::Layout layout) {
    Contract result{.name = test_case.name,
                    .inputs = catalogue::tensors_of(test_case, catalogue::inputs_of(test_case), dtype, layout),
                    .arbitrary = {},
                    .call = [call = test_case.call](const Tensors& in) { return Tensors{call(in)}; },
                    .differentiable = test_case.differentiable,
                    .random = test_case.random};
    for (const catalogue::Input& input : test_case.inputs) result.arbitrary.push_back(input.kind == Kind::real);
    return result;
}

/// Under Oclgrind: a small sample, spread over the list. One in five of similar cases; if tests run in turns
/// (./bootstrap test), a fourth of all in each turn.
bool is_left_out(std::size_t at, const catalogue::Case& test_case) {
    if (test_case.reads_elements || (small_cases() && at % 9 != 4)) return true;
    return catalogue::is_other_turn(on_oclgrind() ? at / 9 : at) ||
           (test_case.sampled && at % 5 != 0 && std::getenv("DECLIVITY_FULL") == nullptr);
}

std::string all(const std::vector<std::string>& sentences) {
    std::string text;
    for (const std::string& sentence : sentences) text += sentence + "\n";
    return text;
}

struct NoAttributes {};

/// y = 2 x as an operation with a launch function that may violate the contract.
Tensor doubled(const Tensor& x, ops::OperationCall::Launch<NoAttributes> launch, bool declares) {
    const ops::View in = x.view();
    const ops::View other = ops::View::make(in.device(), in.dtype, in.shape);
    return Tensor(ops::operation("doubled", launch, NoAttributes{},
                                 {.reads = {declares ? in : other}, .outputs = {{in.dtype, in.shape}}})[0]);
}

void multiply(const ops::View& in, const ops::View& out) {
    ops::evaluate(
        ops::Expression::apply(Function::mul_scalar, std::array{ops::Expression(in)}, std::array{Scalar(2.0)}), out);
}

Contract contract_of_function(std::string name, std::function<Tensor(const Tensor&)> call,
                              bool differentiable = false) {
    return {.name = std::move(name),
            .inputs = {random_tensor({3, 5}, 1)},
            .arbitrary = {true},
            .call = [call = std::move(call)](const Tensors& in) { return Tensors{call(in[0])}; },
            .differentiable = differentiable};
}

bool contains_message(const std::vector<std::string>& sentences, std::string_view message) {
    return std::ranges::any_of(
        sentences, [&](const std::string& sentence) { return sentence.find(message) != std::string::npos; });
}

}  // namespace

TEST_CASE("contract: every function of the catalogue, in f32") {
    const auto cases = catalogue::cases();
    for (std::size_t at = 0; at < cases.size(); ++at) {
        if (is_left_out(at, cases[at])) continue;
        CAPTURE(cases[at].name);
        CHECK(all(violations(contract_of(cases[at], DType::f32, catalogue::Layout::dense))) == "");
    }
}

TEST_CASE("contract: other types and layouts, each function with some of them") {
    if (small_cases()) return;
    // Pairwise in turns: each type and layout is combined with a share of the functions, and each function with some of
    // them.
    std::vector<DType> types = floats();
    types.push_back(DType::f16);
    types.push_back(DType::bf16);
    const auto cases = catalogue::cases();
    for (std::size_t at = 0; at < cases.size(); ++at) {
        if (is_left_out(at, cases[at])) continue;
        const DType dtype = types[at % types.size()];
        const auto layout = at / types.size() % 2 == 0 ? catalogue::Layout::strided : catalogue::Layout::dense;
        if (dtype == DType::f32 && layout == catalogue::Layout::dense) continue;
        if (is_16bit_float(dtype) && !cases[at].reduced_precision) continue;
        CAPTURE(cases[at].name);
        CAPTURE(name_of(dtype));
        CHECK(all(violations(contract_of(cases[at], dtype, layout))) == "");
    }
}

TEST_CASE("contract: all combinations of functions, floating types and layouts") {
    if (!all_cases()) return;
    std::vector<DType> types = floats();
    types.push_back(DType::f16);
    types.push_back(DType::bf16);
    for (const catalogue::Case& test_case : catalogue::cases()) {
        if (test_case.reads_elements) continue;
        for (const DType dtype : types) {
            if (is_16bit_float(dtype) && !test_case.reduced_precision) continue;
            for (const auto layout : {catalogue::Layout::dense, catalogue::Layout::strided}) {
                CAPTURE(test_case.name);
                CAPTURE(name_of(dtype));
                CAPTURE(static_cast<int>(layout));
                CHECK(all(violations(contract_of(test_case, dtype, layout))) == "");
            }
        }
    }
}

TEST_CASE("contract: second derivatives of the whole catalogue match central differences") {
    if (!device().info().fp64) return skip("f64: the device has no double precision");
    const auto cases = catalogue::cases();
    for (std::size_t at = 0; at < cases.size(); ++at) {
        if (is_left_out(at, cases[at]) || !cases[at].differentiable || cases[at].zero_gradient) continue;
        CAPTURE(cases[at].name);
        CHECK(all(second_order_violations(contract_of(cases[at], DType::f64, catalogue::Layout::dense))) == "");
    }
}

TEST_CASE("contract: the check detects an omitted operand") {
    const ops::FusionScope fusion_on(true);  // only lazy values can be wrong
    static Tensor undeclared_input;
    const auto broken = contract_of_function("left_out", [](const Tensor& x) {
        undeclared_input = x;
        return doubled(
            x,
            [](const OperationViews& views, const NoAttributes&) {
                multiply(undeclared_input.value().view(), views.out(0));
                return EpilogueFused::no;
            },
            false);
    });
    CHECK(contains_message(violations(broken), "written after the call"));
    undeclared_input = {};
}

TEST_CASE("contract: the check detects an ignored epilogue") {
    const ops::FusionScope fusion_on(true);
    const auto broken = contract_of_function("ignores", [](const Tensor& x) {
        return doubled(
            x,
            [](const OperationViews& views, const NoAttributes&) {
                multiply(views.in(0), views.out(0));
                return EpilogueFused::yes;
            },
            true);
    });
    CHECK(contains_message(violations(broken), "followed by"));
}

TEST_CASE("contract: the check detects a result owned by its own gradient function") {
    const auto broken = contract_of_function(
        "cycle",
        [](const Tensor& x) {
            auto kept_tensor = std::make_shared<Tensor>();
            const Tensor y =
                attach_backward("cycle", {x}, ops::LazyArray(evaluate(ops::Expression(x.view()), x.device())),
                                [kept_tensor](const GradientContext& context) {
                                    return std::vector{context.gradient() + *kept_tensor * 0.0};
                                });
            *kept_tensor = y;
            return y;
        },
        true);
    CHECK(contains_message(violations(broken), "bytes are held"));
}

TEST_CASE("contract: the check detects wrong double backward, and overwritten tensors") {
    const auto broken = contract_of_function(
        "squares",
        [](const Tensor& x) {
            return attach_backward(
                "squares", {x},
                ops::LazyArray(ops::evaluate(
                    ops::Expression::apply(Function::square, std::array{ops::Expression(x.view())}), x.device())),
                [in = x.detach()](const GradientContext& context) {
                    return std::vector{context.gradient() * in * 2.0};
                },
                RuleKind::differentiable);
        },
        true);
    CHECK(contains_message(violations(broken), "overwritten"));
    if (device().info().fp64) CHECK(contains_message(second_order_violations(broken), "second derivative"));
    // It reports nothing for a correct function.
    CHECK(all(violations(contract_of_function(
              "kept", [](const Tensor& x) { return square(x) + x; }, true))) == "");
}

TEST_CASE(
    "contract: the check detects kernel gradients that differ from the decomposition, or in one kernel style only") {
    const auto squares = [](bool in_all_styles) {
        return contract_of_function(
            "squares",
            [in_all_styles](const Tensor& x) {
                return attach_backward(
                    "squares", {x}, {ops::LazyArray(square(x.detach()).view())},
                    [in = x.detach(), in_all_styles](const GradientContext& context) {
                        const bool wrong =
                            in_all_styles || ops::kernel_style_of(in.device()) != kernel_styles().front();
                        return std::vector{context.gradient() * in * (wrong ? 3.0 : 2.0)};
                    },
                    [](const Tensors& in) { return Tensors{in[0] * in[0]}; })[0];
            },
            true);
    };
    CHECK(contains_message(violations(squares(true)), "its composition, gradient 0"));
    if (kernel_styles().size() > 1)
        CHECK(contains_message(violations(squares(false)), "kernels of the other family, gradient 0"));
}
