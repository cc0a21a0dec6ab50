// no-oclgrind: it reads call records; its kernels are those of the catalogue
// The call record, used by errors and observers, for each function of the catalogue.
#include <declivity/tensor/function_call.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/cases.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

#include "tensor/access.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

struct CallRecord {
    std::string name = {}, text = {};
    int depth = 0;
    std::vector<Tensor> inputs = {}, results = {};
    bool returned = false;
};

/// Stores the observed calls.
struct CallRecorder final : CallObserver {
    std::vector<CallRecord> calls;
    std::vector<std::size_t> open;

    void called(const FunctionCall& call) override {
        CallRecord record{.name = std::string(call.name())};
        for (const FunctionCall* at = call.caller(); at != nullptr; at = at->caller()) ++record.depth;
        for (const CallInput& input : call.inputs()) {
            record.text += std::string(input.name) + " ";
            record.inputs.insert(record.inputs.end(), input.tensors.begin(), input.tensors.end());
        }
        for (const CallAttribute& attribute : call.attributes())
            record.text += std::string(attribute.name) + "=" + attribute.str() + " ";
        while (!open.empty() && calls[open.back()].depth >= record.depth) open.pop_back();
        open.push_back(calls.size());
        calls.push_back(std::move(record));
    }
    void returned(const FunctionCall&, std::span<const Tensor> results) override {
        CallRecord& record = calls[open.back()];
        record.results.assign(results.begin(), results.end());
        record.returned = true;
        open.pop_back();
    }
};

bool among(const Tensor& tensor, const std::vector<Tensor>& all) {
    return std::ranges::any_of(all, [&](const Tensor& item) { return state_of(item) == state_of(tensor); });
}

}  // namespace

TEST_CASE("function call: name, inputs, attributes and results, as data") {
    const Tensor x = random_tensor({2, 4, 6, 5}, 1, DType::f32), weight = random_tensor({6, 2, 3, 3}, 2, DType::f32);
    CallRecorder recorder;
    const Tensor y = relu(conv2d(x, weight, {}, {.stride = 2, .padding = {1, 0}, .groups = 2}));
    const Tensor z = leaky_relu(y, 0.25), joined = concat({y, z}, -1);
    const auto [values, indices] = topk(reshape(joined, {-1}), 3, 0, false);
    REQUIRE(recorder.calls.size() >= 5);
    CHECK(recorder.calls[0].name == "conv2d");
    CHECK(recorder.calls[0].text == "x weight bias stride=(2, 2) padding=(1, 0) dilation=(1, 1) groups=2 ");
    CHECK(recorder.calls[0].depth == 0);
    CHECK(among(x, recorder.calls[0].inputs));
    CHECK(among(weight, recorder.calls[0].inputs));
    CHECK(recorder.calls[1].name == "relu");
    CHECK(among(y, recorder.calls[1].results));
    CHECK(recorder.calls[2].text == "x p=0.25 ");
    CHECK(recorder.calls[3].name == "concat");
    CHECK(recorder.calls[3].text == "parts axis=-1 ");
    CHECK(recorder.calls[3].inputs.size() == 2);
    CHECK(recorder.calls[4].text == "x shape=(-1,) ");
    CHECK(recorder.calls[5].text == "x k=3 axis=0 largest=False ");
    CHECK(among(values, recorder.calls[5].results));
    CHECK(among(indices, recorder.calls[5].results));
    // Functions called within topk are observed separately.
    CHECK(std::ranges::any_of(recorder.calls, [](const CallRecord& call) { return call.depth == 1; }));
}

TEST_CASE("function call: every function of the catalogue has a call record") {
    for (const catalogue::Case& test_case : catalogue::cases()) {
        CAPTURE(test_case.name);
        catalogue::Tensors inputs =
            catalogue::tensors_of(test_case, catalogue::inputs_of(test_case), DType::f32, catalogue::Layout::dense);
        for (const bool graph : {false, true}) {
            CAPTURE(graph);
            if (graph && test_case.differentiable)
                for (std::size_t i = 0; i < inputs.size(); ++i)
                    if (test_case.inputs[i].kind == catalogue::Kind::real) inputs[i].set_requires_grad();
            CallRecorder recorder;
            const Tensor out = test_case.call(inputs);
            std::vector<Tensor> inputs_seen, results_seen;
            for (const CallRecord& record : recorder.calls) {
                CAPTURE(record.name);
                CHECK(record.returned);
                if (record.depth > 0) continue;
                inputs_seen.insert(inputs_seen.end(), record.inputs.begin(), record.inputs.end());
                results_seen.insert(results_seen.end(), record.results.begin(), record.results.end());
            }
            for (const Tensor& input : inputs) CHECK(among(input, inputs_seen));
            CHECK(among(out, results_seen));
        }
    }
}

TEST_CASE("function call: new tensors") {
    const Tensor x = zeros({2, 3}, {DType::i32});
    const auto check_creation = [](const char* name, const char* text, auto&& make) {
        CAPTURE(name);
        CallRecorder recorder;
        const Tensor result = make();
        REQUIRE(!recorder.calls.empty());
        CHECK(recorder.calls[0].name == name);
        CHECK(recorder.calls[0].text == text);
        CHECK(recorder.calls[0].depth == 0);
        CHECK(among(result, recorder.calls[0].results));
        for (const CallRecord& record : recorder.calls) CHECK(record.depth == (&record == &recorder.calls[0] ? 0 : 1));
    };
    check_creation("full", "shape=(2, 3) value=1.5 dtype='f32' ", [] { return full({2, 3}, 1.5); });
    check_creation("zeros", "shape=(4,) dtype='i64' ", [] { return zeros({4}, {DType::i64}); });
    check_creation("ones", "shape=() dtype='f32' ", [] { return ones({}); });
    check_creation("zeros_like", "like ", [&] { return zeros_like(x); });
    check_creation("ones_like", "like ", [&] { return ones_like(x); });
    check_creation("arange", "start=0 end=3 step=1 dtype='bf16' ", [] { return arange(0, 3, 1, {DType::bf16}); });
    check_creation("uniform", "shape=(3,) low=-1.0 high=2.0 dtype='i32' ",
                   [] { return uniform({3}, -1, 2, {DType::i32}); });
    check_creation("normal", "shape=(3,) mean=1.0 std=2.0 dtype='f32' ", [] { return normal({3}, 1, 2); });
    check_creation("rand", "shape=(3,) dtype='f32' ", [] { return rand({3}); });
    check_creation("randn", "shape=(3,) dtype='f16' ", [] { return randn({3}, {DType::f16}); });
    check_creation("bernoulli", "shape=(3,) probability=0.25 dtype='f32' ", [] { return bernoulli({3}, 0.25); });
    CHECK_THROWS_WITH_AS(zeros_like({}), "zeros_like: expected a tensor, got an undefined one", ValueError);
}

TEST_CASE("function call: an error names the called function") {
    const Tensor x = zeros({2, 3});
    CHECK_THROWS_WITH_AS(x * zeros({4}), doctest::Contains("operator*: "), ShapeError);
    struct Own {
        static Tensor outer(const Tensor& in) {
            const FunctionCall call("outer", {{"x", in}});
            call.require_defined({"x"});
            return call.result(reshape(in, {5}));
        }
    };
    CHECK_THROWS_WITH_AS(Own::outer({}), "outer: expected a tensor, got an undefined one", ValueError);
    CHECK_THROWS_WITH_AS(Own::outer(x),
                         "reshape: expected a shape of 6 elements (as [2, 3]), got [5] (called by outer)", ShapeError);
    const Scope scope("Net");
    CHECK_THROWS_WITH_AS(Own::outer(x),
                         "reshape: expected a shape of 6 elements (as [2, 3]), got [5] (called by outer, in Net)",
                         ShapeError);
    // The observer is not notified after the call has returned.
    CHECK_THROWS_WITH_AS(reshape(x, {5}), "reshape: expected a shape of 6 elements (as [2, 3]), got [5] (in Net)",
                         ShapeError);
}

TEST_CASE("function call: an error in backward names the function whose gradient it is") {
    Tensor x = zeros({2, 3});
    x.set_requires_grad();
    const Tensor y = attach_backward("mine", {x}, x.value(), [](const GradientContext& context) {
        return std::vector{reshape(context.gradient(), {5})};
    });
    CHECK_THROWS_WITH_AS(sum(y).backward(),
                         "reshape: expected a shape of 6 elements (as [2, 3]), got [5] (called by backward of mine)",
                         ShapeError);
}

TEST_CASE("function call: an observer may compute, and is not called for that") {
    struct NestedObserver final : CallObserver {
        int calls = 0;
        void called(const FunctionCall&) override { ++calls; }
        void returned(const FunctionCall&, std::span<const Tensor> results) override { (void)(results[0] + 1.0); }
    };
    const Tensor x = zeros({3});
    NestedObserver observer;
    (void)relu(x);
    CHECK(observer.calls == 1);
}

TEST_CASE("function call: too many attributes are refused") {
    const std::array<CallAttribute, FunctionCall::kMaxAttributes + 1> many{};
    CHECK_THROWS_WITH_AS(
        FunctionCall("many", "many", {}, many),
        "FunctionCall: expected at most 8 inputs and 12 attributes of many, got 0 and 13 (called by many)", ValueError);
}

TEST_CASE("function call: errors describe the call and its arguments") {
    const auto message_of = [](const auto& call) {
        try {
            call();
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    const Tensor x = zeros({2, 3, 9}), weight = zeros({5, 4, 3});
    CHECK(message_of([&] { (void)conv1d(x, weight); }) ==
          "conv1d: expected a weight of 3 input channels for x [2, 3, 9] in 1 group, got [5, 4, 3]");
    CHECK(message_of([&] {
              (void)conv1d(x, zeros({5, 3, 3}), zeros({4}));
          }) == "conv1d: expected bias of shape [5], got [4]");
    CHECK(message_of([&] {
              (void)conv1d(zeros({2, 3, 2}), zeros({5, 3, 3}));
          }) ==
          "conv1d: expected x at least as large as the filter, got x [2, 3, 2] with padding 0 and weight [5, 3, 3] "
          "with dilation 1");
    CHECK(message_of([&] {
              (void)conv1d(x, zeros({5, 3, 3}), {}, {.stride = 0});
          }) == "conv1d: expected a stride of at least 1, got 0");
    CHECK(message_of([&] {
              (void)conv1d(zeros({2, 3, 3, 9}), zeros({5, 3, 3}));
          }) == "conv1d: expected x of shape (N, C, L), got [2, 3, 3, 9]");
    CHECK(message_of([&] { (void)where(x, x, x); }) ==
          "where: expected a condition of bool, got f32, f32, f32 (compare, as in x > 0)");
    CHECK(message_of([&] {
              (void)concat({x, Tensor(), x}, 0);
          }) == "concat: expected a tensor as parts[1], got an undefined one");
    CHECK(message_of([&] { (void)result_type(x, Tensor()); }) ==
          "result_type: expected tensors or numbers, got an undefined tensor as b");
    CHECK(message_of([&] {
              Tensor written = zeros({3, 5});
              written[0] = zeros({4});
          }) == "operator[]=: expected a shape that broadcasts to [5], got [4]");
}
