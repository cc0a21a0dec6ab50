// Every function of functions.hpp against plain C++ in double, on odd sizes, dense and strided, in f32 and f64, and its
// gradients against central differences. A function of the header that is missing from the table is a failure.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/skip.hpp>
#include <tests/support/values.hpp>
#include <tests/tensor/catalogue/cases.hpp>
#include <tests/tensor/declared_functions.hpp>

using namespace declivity;
using namespace declivity::test;
using namespace declivity::test::catalogue;

namespace {

/// All cases; of those of one kind a part, where tests are run by turns, and of all where only what is printed counts
/// (silence.cpp).
std::vector<Case> cases_of_turn() {
    std::vector<Case> chosen, all = cases();
    for (std::size_t at = 0; at < all.size(); ++at)
        if (!((all[at].brief || small_cases()) && of_another_turn(at))) chosen.push_back(std::move(all[at]));
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
    for (const Case& one : cases()) known.insert(one.name);
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

TEST_CASE("catalogue: values agree with plain C++, dense and strided") {
    const KeepRandom keep;
    for (const Case& one : cases_of_turn()) {
        CAPTURE(one.name);
        const Columns columns = inputs_of(one);
        for (const DType dtype : floats()) {
            CAPTURE(name_of(dtype));
            const Values wanted = one.reference(columns, dtype);
            const Tolerance allowed = tolerance(dtype, one.terms, 2);
            CHECK(difference(one.call(tensors_of(one, columns, dtype, Layout::dense)), wanted, allowed) == "");
            CHECK(difference(one.call(tensors_of(one, columns, dtype, Layout::strided)), wanted, allowed) == "");
        }
    }
}

TEST_CASE("catalogue: gradients agree with central differences, dense and strided") {
    if (!device().info().fp64 || small_cases()) return;  // below, the same kernels run once
    const KeepRandom keep;
    for (const Case& one : cases_of_turn()) {
        if (!one.differentiable) continue;
        CAPTURE(one.name);
        GradientCheckOptions options{.tolerance = one.loose, .most = small_cases() ? 5 : 30};
        for (std::size_t i = 0; i < one.inputs.size(); ++i)
            if (one.inputs[i].kind != Kind::real) options.skip.push_back(static_cast<int>(i));
        const Columns columns = inputs_of(one);
        CHECK(gradient_difference(one.call, tensors_of(one, columns, DType::f64, Layout::dense), options) == "");
        CHECK(gradient_difference(one.call, tensors_of(one, columns, DType::f64, Layout::strided), options) == "");
    }
}

TEST_CASE("catalogue: gradients of f32 agree with those of f64") {
    if (!device().info().fp64) return test::skip("f64: the device has no double precision");
    const KeepRandom keep;
    for (const Case& one : cases_of_turn()) {
        if (!one.differentiable || one.random) continue;
        CAPTURE(one.name);
        const Columns columns = inputs_of(one);
        std::vector<Values> wanted;
        for (const DType dtype : {DType::f64, DType::f32}) {
            Tensors inputs = tensors_of(one, columns, dtype, Layout::dense);
            for (std::size_t i = 0; i < inputs.size(); ++i)
                if (one.inputs[i].kind == Kind::real) inputs[i].set_requires_grad();
            const Tensor out = one.call(inputs);
            CHECK(out.requires_grad());
            out.backward(random_tensor(out.shape(), 7, dtype));
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                CAPTURE(i);
                if (dtype == DType::f64)
                    wanted.push_back(inputs[i].grad().defined() ? values(inputs[i].grad()) : Values{});
                else if (inputs[i].grad().defined())
                    CHECK(difference(inputs[i].grad(), wanted[i], tolerance(dtype, 100, 4)) == "");
                else CHECK(wanted[i].empty());
            }
        }
    }
}

TEST_CASE("catalogue: functions without gradient end the graph") {
    for (const Case& one : cases()) {
        if (one.differentiable) continue;
        CAPTURE(one.name);
        Tensors inputs = tensors_of(one, inputs_of(one), DType::f32, Layout::dense);
        for (Tensor& input : inputs)
            if (is_floating(input.dtype())) input.set_requires_grad();
        CHECK_FALSE(one.call(inputs).requires_grad());
    }
}

TEST_CASE("catalogue: an undefined tensor is refused by the function that was called") {
    const KeepRandom keep;
    for (const Case& one : cases()) {
        const Tensors whole = tensors_of(one, inputs_of(one), DType::f32, Layout::dense);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            if (i >= one.optional && one.says.empty()) continue;
            CAPTURE(one.name);
            CAPTURE(i);
            Tensors inputs = whole;
            inputs[i] = Tensor();
            std::string message = "nothing was thrown";
            try {
                (void)one.call(inputs);
            } catch (const Error& error) {
                message = error.what();
            }
            CHECK(message.substr(0, message.find(": ")) == (one.says.empty() ? one.name : one.says));
        }
    }
}
