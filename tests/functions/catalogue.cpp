// Every function of functions.hpp compared with plain C++ in double, on odd sizes, dense and strided, in f32 and f64,
// and its gradients compared with central differences. A function of the header that is missing from the table is a
// failure.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/cases.hpp>
#include <tests/functions/declared_functions.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;
using namespace declivity::test::catalogue;

namespace {

/// All cases; a part of similar cases if tests run in turns, and of all cases if only the output counts (silence.cpp).
std::vector<Case> cases_of_current_turn() {
    std::vector<Case> chosen, all = cases();
    for (std::size_t at = 0; at < all.size(); ++at)
        if (!((all[at].sampled || small_cases()) && is_other_turn(at))) chosen.push_back(std::move(all[at]));
    return chosen;
}

struct KeepRandom {
    RandomState before = random_state(device());
    ~KeepRandom() { set_random_state(device(), before); }
};

}  // namespace

TEST_CASE("catalogue: the table has every function of functions.hpp") {
    std::set<std::string> declared, known;
    for (const auto& [header, names] : declared_functions()) declared.insert(names.begin(), names.end());
    for (const Case& test_case : cases()) known.insert(test_case.name);
    CHECK(declared.size() > 50);
    for (const std::string& name : declared) {
        INFO(name);
        CHECK_UNARY(known.contains(name));
    }
    for (const std::string& name : known) {
        INFO(name);
        CHECK_UNARY(declared.contains(name));
    }
}

TEST_CASE("catalogue: values match plain C++, dense and strided") {
    const KeepRandom keep;
    for (const Case& test_case : cases_of_current_turn()) {
        CAPTURE(test_case.name);
        const Columns columns = inputs_of(test_case);
        for (const DType dtype : floats()) {
            CAPTURE(name_of(dtype));
            const Values expected = test_case.reference(columns, dtype);
            const Tolerance allowed = tolerance(dtype, test_case.terms, 2);
            CHECK(difference(test_case.call(tensors_of(test_case, columns, dtype, Layout::dense)), expected, allowed) ==
                  "");
            CHECK(difference(test_case.call(tensors_of(test_case, columns, dtype, Layout::strided)), expected,
                             allowed) == "");
        }
    }
}

TEST_CASE("catalogue: gradients match central differences, dense and strided") {
    if (!device().info().fp64 || small_cases()) return;  // the tests below run the same kernels once
    const KeepRandom keep;
    for (const Case& test_case : cases_of_current_turn()) {
        if (!test_case.differentiable) continue;
        CAPTURE(test_case.name);
        GradientCheckOptions options{.tolerance = test_case.gradient_tolerance, .max_elements = small_cases() ? 5 : 30};
        for (std::size_t i = 0; i < test_case.inputs.size(); ++i)
            if (test_case.inputs[i].kind != Kind::real) options.skip.push_back(static_cast<int>(i));
        const Columns columns = inputs_of(test_case);
        CHECK(gradient_difference(test_case.call, tensors_of(test_case, columns, DType::f64, Layout::dense), options) ==
              "");
        CHECK(gradient_difference(test_case.call, tensors_of(test_case, columns, DType::f64, Layout::strided),
                                  options) == "");
    }
}

TEST_CASE("catalogue: gradients of f32 match those of f64") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const KeepRandom keep;
    for (const Case& test_case : cases_of_current_turn()) {
        if (!test_case.differentiable || test_case.random) continue;
        CAPTURE(test_case.name);
        const Columns columns = inputs_of(test_case);
        std::vector<Values> expected;
        for (const DType dtype : {DType::f64, DType::f32}) {
            Tensors inputs = tensors_of(test_case, columns, dtype, Layout::dense);
            for (std::size_t i = 0; i < inputs.size(); ++i)
                if (test_case.inputs[i].kind == Kind::real) inputs[i].set_requires_grad();
            const Tensor out = test_case.call(inputs);
            CHECK(out.requires_grad());
            out.backward(random_tensor(out.shape(), 7, dtype));
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                CAPTURE(i);
                if (dtype == DType::f64)
                    expected.push_back(inputs[i].grad().defined() ? values(inputs[i].grad()) : Values{});
                else if (inputs[i].grad().defined())
                    CHECK(difference(inputs[i].grad(), expected[i], tolerance(dtype, 100, 4)) == "");
                else CHECK(expected[i].empty());
            }
        }
    }
}

TEST_CASE("catalogue: functions without a gradient end the graph") {
    for (const Case& test_case : cases()) {
        if (test_case.differentiable) continue;
        CAPTURE(test_case.name);
        Tensors inputs = tensors_of(test_case, inputs_of(test_case), DType::f32, Layout::dense);
        for (Tensor& input : inputs)
            if (is_floating(input.dtype())) input.set_requires_grad();
        CHECK_FALSE(test_case.call(inputs).requires_grad());
    }
}

TEST_CASE("catalogue: an undefined tensor is refused by the called function") {
    const KeepRandom keep;
    for (const Case& test_case : cases()) {
        const Tensors valid_inputs = tensors_of(test_case, inputs_of(test_case), DType::f32, Layout::dense);
        for (std::size_t i = 0; i < valid_inputs.size(); ++i) {
            if (i >= test_case.first_optional && test_case.error_name.empty()) continue;
            CAPTURE(test_case.name);
            CAPTURE(i);
            Tensors inputs = valid_inputs;
            inputs[i] = Tensor();
            std::string message = "nothing was thrown";
            try {
                (void)test_case.call(inputs);
            } catch (const Error& error) {
                message = error.what();
            }
            CHECK(message.substr(0, message.find(": ")) ==
                  (test_case.error_name.empty() ? test_case.name : test_case.error_name));
        }
    }
}
