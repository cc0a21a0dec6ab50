// no-oclgrind: it measures times; the kernels that it runs are those of fill
// Choice of an operator's strategy, with a test operator.
#include <array>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include <declivity/ops/copy.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

#include "ops/conv/conv2d_strategy.hpp"
#include "ops/matmul/matmul_strategies.hpp"
#include "ops/support/strategy_choice.hpp"
#include "runtime/capture.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Numbers to fill, with a possibly constant operand. `test` differs for each test, since choices are cached.
struct Problem {
    std::int64_t size = 1;
    bool constant = false;
    std::int64_t test = 0;
    [[nodiscard]] Problem with_constants(bool value) const { return {size, value, test}; }
    friend bool operator==(const Problem&, const Problem&) = default;
    template <class Visit>
    friend void visit_fields(const Problem& problem, Visit&& visit) {
        const auto& [size, constant, test] = problem;
        visit("", size, ops::KeyPart::value);
        visit("constant", constant, ops::KeyPart::value);
        visit("test", test, ops::KeyPart::none);
    }
};

std::string tuning_key(const Problem& problem) { return ops::key_of_fields("test of strategies", problem); }

struct Operands {
    ops::View out;
};

class Filling final : public ops::Strategy<Problem, Operands> {
  public:
    explicit Filling(std::string_view name, std::int64_t min_size = 0) : name_(name), min_size_(min_size) {}
    [[nodiscard]] std::string_view name() const override { return name_; }
    [[nodiscard]] bool is_applicable(const Problem& problem, const Device&) const override {
        ++queries;
        if (when_asked) when_asked();
        return problem.size >= min_size_;
    }
    [[nodiscard]] bool is_profitable(const Problem& problem, const Device&) const override {
        return paying && (!only_constants || problem.constant);
    }
    [[nodiscard]] bool keeps_constants(const Problem& problem) const override {
        return only_constants && problem.constant;
    }
    [[nodiscard]] std::vector<std::string> variants(const Problem&, const Device&) const override {
        return variant_names;
    }
    void run(const Problem&, const Operands& operands, std::string_view variant) const override {
        ran[std::string(variant)]++;
        ops::fill(operands.out, failing_variant == variant ? 2 : 1);
    }

    mutable int queries = 0;
    mutable std::map<std::string, int> ran;
    std::function<void()> when_asked;
    bool paying = true, only_constants = false;
    std::vector<std::string> variant_names{""};
    std::string failing_variant = "none";

  private:
    std::string_view name_;
    std::int64_t min_size_;
};

void with_operands(const Device& device, const Problem& problem,
                   const ops::StrategySet<Filling>::Measurement& measurement) {
    const Operands operands{ops::View::make(device, DType::f32, {problem.size})};
    measurement(operands, operands.out);
}

/// Three strategies, their own tuning file, and the choice among them.
struct Fixture {
    Filling large{"large", 10}, keeping{"keeping"}, plain{"plain"};
    std::array<const Filling*, 3> all{&large, &keeping, &plain};
    ops::StrategySet<Filling> set{"DECLIVITY_TEST_STRATEGY",
                                  [] {
                                      const char* text = std::getenv("DECLIVITY_TEST_STRATEGY");
                                      return std::string(text == nullptr ? "" : text);
                                  },
                                  all, with_operands};
    TempFolder folder;
    std::filesystem::path path = folder / "tuning.json";
    Environment file{"DECLIVITY_TUNING_FILE", path.string()}, none{"DECLIVITY_TEST_STRATEGY", std::nullopt},
        off{"DECLIVITY_TUNE", std::nullopt};
    Device device = default_device();
    ops::TuningTable& table = ops::TuningTable::of(device);

    std::int64_t test;

    Fixture() {
        static std::int64_t tests = 0;
        test = ++tests;
        table.reload();
        keeping.only_constants = true;
    }
    ~Fixture() {
        std::filesystem::remove(path);
        table.reload();
    }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    [[nodiscard]] Problem problem(std::int64_t size, bool constant = false) const { return {size, constant, test}; }
    [[nodiscard]] std::string choose(std::int64_t size, bool constant = false) const {
        const auto choice = ops::choose_strategy(set, problem(size, constant), device);
        return ops::strategies::join_name(choice.strategy->name(), choice.variant);
    }
    void put_entry(std::int64_t size, bool constant, const std::string& winner) const {
        table.put(tuning_key(problem(size, constant)), {.winner = winner});
    }
};

}  // namespace

TEST_CASE("strategies: the key and the hash of a problem are made from its fields") {
    CHECK(tuning_key({.size = 5, .constant = false, .test = 3}) == "test of strategies 5");
    CHECK(tuning_key({.size = 5, .constant = true, .test = 4}) == "test of strategies 5 constant");
    const ops::MatmulProblem product{
        .m = 4, .n = 100, .k = 3, .a_strides = {12, 3, 1}, .b_strides = {300, 1, 3}, .constant_b = true};
    CHECK(ops::tuning_key(product) == "matmul f32 simd batch 1 m 4 n 96 k 3 NT constant");
    const ops::Conv2dProblem convolution =
        ops::conv2d_problem("test", ops::Conv2dDirection::backward_input, DType::f16, KernelStyle::simt, {2, 6, 9, 10},
                            {4, 3, 3, 5}, {.stride = {1, 2}, .padding = {0, 1}, .groups = 2});
    CHECK(ops::tuning_key(convolution) ==
          "conv2d_backward_input f16 simt N 2 C 6 H 8 W 12 K 4 R 3 S 5 stride 1,2 padding 0,1 dilation 1,1 groups 2");
    // The seed of the hash is the device.
    std::set<std::uint64_t> hashes{ops::hash_of_fields(product, 1), ops::hash_of_fields(product, 2)};
    const auto add = [&](auto change) {
        ops::MatmulProblem other = product;
        change(other);
        hashes.insert(ops::hash_of_fields(other, 1));
    };
    add([](auto& problem) { problem.dtype = DType::f64; });
    add([](auto& problem) { problem.style = KernelStyle::simt; });
    add([](auto& problem) { problem.batch = 2; });
    add([](auto& problem) { problem.m = 5; });
    add([](auto& problem) { problem.n = 101; });
    add([](auto& problem) { problem.k = 4; });
    add([](auto& problem) { problem.a_strides[1] = 4; });
    add([](auto& problem) { problem.b_strides[2] = 4; });
    add([](auto& problem) { problem.constant_b = false; });
    CHECK(hashes.size() == 11);
}

TEST_CASE("strategy: by name, else measured, else the first applicable and profitable, else the last") {
    Fixture f;
    CHECK(f.choose(9) == "plain");
    CHECK(f.choose(10) == "large");
    f.plain.paying = f.large.paying = false;
    CHECK(f.choose(11) == "plain");
    f.plain.paying = f.large.paying = true;
    f.put_entry(10, false, "plain");
    CHECK(f.choose(10) == "plain");
    CHECK(f.choose(12) == "large");
    f.put_entry(10, false, "large some thing");
    CHECK(f.choose(10) == "large some thing");
    f.put_entry(9, false, "large");  // not applicable
    CHECK(f.choose(9) == "plain");
    f.put_entry(10, false, "gone");
    CHECK(f.choose(10) == "large");
    {
        const Environment named("DECLIVITY_TEST_STRATEGY", "plain");
        CHECK(f.choose(12) == "plain");
    }
    {
        const Environment named("DECLIVITY_TEST_STRATEGY", "large");
        CHECK(f.choose(9) == "plain");
    }
    const Environment invalid("DECLIVITY_TEST_STRATEGY", "larg");
    CHECK_THROWS_WITH_AS(f.choose(12), "DECLIVITY_TEST_STRATEGY: expected one of large, keeping, plain, got \"larg\"",
                         ValueError);
}

TEST_CASE("strategy: a choice is cached until the table changes") {
    Fixture f;
    CHECK(f.choose(20) == "large");
    const int queries = f.large.queries;
    for (int i = 0; i < 5; ++i) CHECK(f.choose(20) == "large");
    CHECK(f.large.queries == queries);
    f.put_entry(20, false, "plain");
    CHECK(f.choose(20) == "plain");
    std::filesystem::copy_file(f.path, f.folder / "kept");
    f.put_entry(20, false, "large");
    CHECK(f.choose(20) == "large");
    // Another file with as many entries is another table.
    std::filesystem::rename(f.folder / "kept", f.path);
    f.table.reload();
    CHECK(f.choose(20) == "plain");
    std::filesystem::remove(f.path);
    f.table.reload();
    CHECK(f.choose(20) == "large");
    std::string chosen_by_thread;
    std::thread([&] { chosen_by_thread = f.choose(20); }).join();
    CHECK(chosen_by_thread == "large");
}

TEST_CASE("strategy: a constant operand has its own measurements, which override its rule") {
    Fixture f;
    CHECK(f.choose(5, true) == "keeping");
    CHECK(f.choose(5) == "plain");
    // Measurements with a changing operand do not apply if the rule for a constant one differs.
    f.put_entry(5, false, "plain quick");
    CHECK(f.choose(5) == "plain quick");
    CHECK(f.choose(5, true) == "keeping");
    f.put_entry(5, true, "plain slow");
    CHECK(f.choose(5, true) == "plain slow");
    CHECK(f.choose(5) == "plain quick");
    // If the rule is the same, they apply until the constant operand is measured.
    CHECK(f.choose(30, true) == "large");
    f.put_entry(30, false, "plain");
    CHECK(f.choose(30, true) == "plain");
    f.put_entry(30, true, "keeping");
    CHECK(f.choose(30, true) == "keeping");
    // Without cached operands: one entry for both.
    f.keeping.only_constants = false;
    f.put_entry(31, false, "plain");
    CHECK(f.choose(31, true) == "plain");
}

TEST_CASE("strategy: the tuner measures all applicable ones, and for a constant operand those that cache it") {
    Fixture f;
    f.large.variant_names = {"a", "b"};
    f.large.failing_variant = "b";
    const std::string report = ops::tune_strategies(f.set, f.problem(40), f.device, false);
    const auto changing = f.table.find(tuning_key(f.problem(40))),
               constant = f.table.find(tuning_key(f.problem(40, true)));
    REQUIRE(changing);
    REQUIRE(constant);
    for (const auto& entry : {*changing, *constant}) {
        CHECK(entry.microseconds.contains("large a"));
        CHECK(entry.microseconds.contains("keeping"));
        CHECK(entry.microseconds.contains("plain"));
        CHECK(entry.rejected.contains("large b"));
        CHECK(entry.microseconds.contains(entry.winner));
    }
    if (changing->winner != "large a")
        CHECK(constant->microseconds.at("large a") == changing->microseconds.at("large a"));
    CHECK(report.find("test of strategies 40\n") != std::string::npos);
    CHECK(report.find("test of strategies 40 constant\n") != std::string::npos);
    CHECK(ops::tune_strategies(f.set, f.problem(40), f.device, false).empty());
    CHECK(f.choose(40) == changing->winner);
    CHECK(f.choose(40, true) == constant->winner);
    const std::string explained = ops::explain_strategies(f.set, f.problem(40), f.device);
    CHECK(explained.find("chosen: " + changing->winner + " (measured as the fastest on this device)") !=
          std::string::npos);
    CHECK(ops::explain_strategies(f.set, f.problem(3), f.device).find("large                    not applicable") !=
          std::string::npos);
    CHECK(ops::explain_strategies(f.set, f.problem(3), f.device)
              .find("keeping                  applicable, not profitable by the heuristic") != std::string::npos);

    // At first use.
    CHECK(!f.table.find(tuning_key(f.problem(50))));
    CHECK(f.choose(50) == "large");
    const Environment on("DECLIVITY_TUNE", "1");
    const std::string chosen = f.choose(50);
    REQUIRE(f.table.find(tuning_key(f.problem(50))));
    CHECK(chosen == f.table.find(tuning_key(f.problem(50)))->winner);
    const int runs = f.plain.ran[""];
    CHECK(f.choose(50) == chosen);
    CHECK(f.plain.ran[""] == runs);
}

TEST_CASE("strategy: strategies are queried without grad mode, and may query the table themselves") {
    Fixture f;
    bool captured = false;
    f.large.when_asked = [&] {
        captured = captured || Capture::current() != nullptr;
        CHECK(!f.table.find("nothing"));                     // without holding its lock
        CHECK(&ops::TuningTable::of(f.device) == &f.table);  // nor that of all tables
    };
    Capture capture(f.device);
    CHECK(f.choose(60) == "large");
    f.put_entry(61, false, "plain");
    CHECK(f.choose(61) == "plain");
    CHECK(f.choose(62, true) == "large");
    const Environment on("DECLIVITY_TUNE", "1");
    CHECK(!f.choose(63).empty());
    CHECK(Capture::current() == &capture);
    CHECK(!captured);
    CHECK(f.large.queries > 0);
    (void)capture.finish();
}
