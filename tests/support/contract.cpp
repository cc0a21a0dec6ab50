#include <tests/support/contract.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/values.hpp>

#include "autograd/decomposition.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::test {
namespace {

using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

/// Makes calls with the same random numbers each time.
class Call {
  public:
    explicit Call(const Contract& contract) : contract_(contract), state_(random_state(contract.inputs[0].device())) {}

    Tensors operator()(const Tensors& inputs) const {
        if (contract_.random) set_random_state(contract_.inputs[0].device(), state_);
        return contract_.call(inputs);
    }

  private:
    const Contract& contract_;
    RandomState state_;
};

std::vector<Values> values_of(const Tensors& tensors) {
    std::vector<Values> all;
    for (const Tensor& item : tensors) all.push_back(values(item));
    return all;
}

/// Copies, so that no state is shared with another check.
Tensors clones(const Tensors& tensors) {
    Tensors all;
    for (const Tensor& tensor : tensors) all.push_back(tensor.detach().clone());
    return all;
}

/// Other values for the inputs that may vary.
Tensors with_other_values(const Contract& contract, std::uint64_t seed) {
    Tensors all = clones(contract.inputs);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!contract.arbitrary[i]) continue;
        // In the same range: some functions accept only positive numbers.
        Values old = values(all[i]);
        std::rotate(old.begin(), old.begin() + static_cast<std::ptrdiff_t>((seed * 7 + 1) % (old.size() + 1)),
                    old.end());
        all[i] = tensor(old, all[i].shape(), all[i].dtype());
    }
    return all;
}

Tensor residual_for(const Tensor& like) { return random_tensor(like.shape(), 77, like.dtype()); }

struct Consumer {
    const char* name;
    std::function<Tensor(const Tensor&)> apply;
};

std::vector<Consumer> consumers() {
    return {{"an activation", [](const Tensor& y) { return tanh(y); }},
            {"relu and a residual", [](const Tensor& y) { return relu(y * 2.0 + residual_for(y)); }},
            {"a sum", [](const Tensor& y) { return sum(y * residual_for(y)); }},
            {"itself twice", [](const Tensor& y) { return y * y + y; }}};
}

/// Tolerance for unfused functions, whose intermediate results are rounded.
Tolerance reduced_tolerance(DType dtype, double terms) {
    const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
    return {.absolute = 2 * unit * std::sqrt(terms), .relative = 8 * unit};
}

std::string close(const Tensor& got, const Values& expected, double terms = 40) {
    return difference(
        got, expected,
        is_16bit_float(got.dtype()) ? reduced_tolerance(got.dtype(), terms) : tolerance(got.dtype(), terms, 4));
}

/// Equal bit for bit, except f16 and bf16: the number of roundings depends on how a chain is split.
std::string same(const Values& got, const Values& expected, DType dtype) {
    return difference(got, expected, is_16bit_float(dtype) ? reduced_tolerance(dtype, 40) : Tolerance{});
}
std::string same(const Tensor& got, const Values& expected) { return same(values(got), expected, got.dtype()); }

class Check {
  public:
    explicit Check(const Contract& contract) : contract_(contract), call_(contract) {
        expected_results_ = values_of(call_(clones(contract.inputs)));
        // f16 and bf16 are rounded once per kernel, and the number of kernels varies.
        if (!contract.differentiable || std::ranges::any_of(contract.inputs, is_16bit_float, &Tensor::dtype)) return;
        Tensors inputs = leaves();
        weighted_sum(call_(inputs)).backward();
        expected_gradients_ = gradients(inputs);
    }

    std::vector<std::string> run() {
        attempt("fused consumers", [&] { fused_consumers(); });
        attempt("overwritten inputs", [&] { inputs_overwritten(); });
        attempt("computed into a view", [&] { computed_into_view(); });
        attempt("kernel styles", [&] { compare_kernel_styles(); });
        attempt("decomposition", [&] { compare_decomposition(); });
        attempt("replays", [&] { compare_replays(); });
        attempt("invalid inputs", [&] { invalid_inputs(); });
        if (contract_.differentiable) {
            attempt("checkpoint", [&] { compare_checkpoint(); });
            attempt("overwritten saved tensors", [&] { saved_tensors_overwritten(); });
        }
        attempt("memory", [&] { check_memory_released(); });
        return std::move(violations_);
    }

  private:
    void report(const std::string& what, const std::string& violation) {
        if (!violation.empty()) violations_.push_back(contract_.name + ": " + what + ": " + violation);
    }

    void attempt(const std::string& what, const std::function<void()>& part) {
        try {
            part();
        } catch (const std::exception& error) {
            report(what, std::string("threw ") + error.what());
        }
    }

    void fused_consumers() {
        for (std::size_t k = 0; k < expected_results_.size(); ++k)
            for (const Consumer& consumer : consumers()) {
                const Tensors plain = call_(clones(contract_.inputs));
                if (!is_floating(plain[k].dtype())) continue;
                const Tensor materialized = tensor(expected_results_[k], plain[k].shape(), plain[k].dtype());
                const Values expected = values(consumer.apply(materialized));
                // The result is donated, so that it may be fused.
                Tensors inputs = clones(contract_.inputs);
                const Tensor got = [&] {
                    Tensors results = call_(inputs);
                    Tensor result = std::move(results[k]);
                    results.clear();
                    return consumer.apply(std::move(result));
                }();
                report(std::string("followed by ") + consumer.name, close(got, expected, 200));
                const Tensors retained = call_(inputs);
                const Tensor fused = consumer.apply(retained[k]);
                report(std::string("followed by ") + consumer.name + ", held", close(fused, expected, 200));
                report("held beside what follows", same(retained[k], expected_results_[k]));
            }
    }

    void inputs_overwritten() {
        for (std::size_t i = 0; i < contract_.inputs.size(); ++i) {
            Tensors inputs = clones(contract_.inputs);
            const Tensors pending = call_(inputs);
            std::vector<bool> alias;  // as slice and reshape return
            for (const Tensor& tensor : pending)
                alias.push_back(tensor.value().computed() &&
                                tensor.value().view().buffer == inputs[i].value().view().buffer);
            inputs[i].fill_(0);
            for (std::size_t k = 0; k < expected_results_.size(); ++k)
                if (!alias[k])
                    report("input " + std::to_string(i) + " written after the call",
                           same(pending[k], expected_results_[k]));
        }
    }

    void computed_into_view() {
        for (std::size_t k = 0; k < expected_results_.size(); ++k) {
            const Tensor like = call_(clones(contract_.inputs))[k];
            if (like.rank() == 0 || !is_floating(like.dtype())) continue;
            Shape larger = like.shape();
            const std::int64_t rows = larger[0];
            larger[0] = rows + 2;
            Tensor cache = full(larger, 7, {like.dtype()});
            slice(cache, 0, 1, rows + 1).copy_(std::move(call_(clones(contract_.inputs))[k]));
            report("computed in a place", same(slice(cache, 0, 1, rows + 1), expected_results_[k]));
            for (const Tensor& surroundings : {slice(cache, 0, 0, 1), slice(cache, 0, rows + 1, rows + 2)})
                for (const double value : values(surroundings))
                    if (value != 7) return report("computed in a place", "wrote beside it");
        }
    }

    void compare_kernel_styles() {
        for (const KernelStyle style : kernel_styles()) {
            const ops::KernelStyleScope scope(style);
            const Tensors results = call_(clones(contract_.inputs));
            for (std::size_t k = 0; k < expected_results_.size(); ++k)
                report("kernels of the other family", close(results[k], expected_results_[k]));
            compare_gradients("kernels of the other family");
        }
    }

    /// Compares the kernels in use with those of the device's own style.
    void compare_gradients(const std::string& what) {
        if (!contract_.differentiable || expected_gradients_.empty()) return;
        Tensors inputs = leaves();
        weighted_sum(call_(inputs)).backward();
        const auto got = gradients(inputs);
        for (std::size_t i = 0; i < got.size(); ++i)
            report(what + ", gradient " + std::to_string(i),
                   difference(got[i], expected_gradients_[i], tolerance(inputs[i].dtype(), 100, 4)));
    }

    void compare_decomposition() {
        const detail::DecompositionScope scope;
        const Tensors results = call_(clones(contract_.inputs));
        for (std::size_t k = 0; k < expected_results_.size(); ++k)
            if (is_floating(results[k].dtype())) report("its composition", close(results[k], expected_results_[k]));
            else report("its composition", same(results[k], expected_results_[k]));
        compare_gradients("its composition");
    }

    void compare_replays() {
        if (contract_.random) return;  // each replay has its own random numbers
        const auto doubled = [](Tensors results) {
            for (Tensor& result : results)
                if (is_floating(result.dtype())) result = std::move(result) * 2.0;
            return results;
        };
        auto step = capture([&](const Tensors& in) { return doubled(contract_.call(in)); });
        for (std::uint64_t round = 0; round < 5; ++round) {
            const Tensors inputs = with_other_values(contract_, round);
            const Tensors got = step(inputs);
            const Tensors plain = doubled(contract_.call(inputs));
            for (std::size_t k = 0; k < plain.size(); ++k)
                report("recorded, call " + std::to_string(round), same(got[k], values(plain[k])));
        }
        if (step.replayed() == 0) report("recorded", "was never replayed: " + step.refused());
    }

    [[nodiscard]] Tensors leaves() const {
        Tensors inputs = clones(contract_.inputs);
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (contract_.arbitrary[i]) inputs[i].set_requires_grad();
        return inputs;
    }

    static Tensor weighted_sum(const Tensors& results) {
        Tensor all;
        for (const Tensor& result : results) {
            if (!result.requires_grad()) continue;
            const Tensor part = sum(result * residual_for(result));
            all = all.defined() ? all + part : part;
        }
        return all;
    }

    [[nodiscard]] std::vector<Values> gradients(const Tensors& inputs) const {
        std::vector<Values> all;
        for (const Tensor& input : inputs)
            all.push_back(input.requires_grad() && input.grad().defined() ? values(input.grad()) : Values{});
        return all;
    }

    void compare_checkpoint() {
        Tensors plain = leaves(), again = leaves();
        weighted_sum(call_(plain)).backward();
        const Tensors results = checkpoint([&](const Tensors& in) { return call_(in); }, again);
        for (std::size_t k = 0; k < expected_results_.size(); ++k)
            report("in a checkpoint", close(results[k], expected_results_[k]));
        weighted_sum(results).backward();
        const auto expected = gradients(plain), got = gradients(again);
        for (std::size_t i = 0; i < expected.size(); ++i)
            report("gradient " + std::to_string(i) + " in a checkpoint", same(got[i], expected[i], plain[i].dtype()));
    }

    /// Overwrites the tensors saved for backward before the gradient function runs.
    void saved_tensors_overwritten() {
        Tensors plain = leaves();
        weighted_sum(call_(plain)).backward();
        const auto expected = gradients(plain);
        for (std::size_t i = 0; i < contract_.inputs.size(); ++i) {
            Tensors inputs = leaves();
            const Tensor total = weighted_sum(call_(inputs));
            (void)values(total);
            {
                const NoGrad no_grad;
                inputs[i].fill_(1);
            }
            try {
                total.backward();
            } catch (const ValueError&) {
                continue;  // refused
            }
            const auto got = gradients(inputs);
            for (std::size_t k = 0; k < expected.size(); ++k)
                report("gradient " + std::to_string(k) + ", input " + std::to_string(i) + " overwritten",
                       same(got[k], expected[k], plain[k].dtype()));
        }
    }

    /// Invalid inputs must give an error of the library that begins with a name; never a crash.
    void invalid_inputs() {
        for (std::size_t i = 0; i < contract_.inputs.size(); ++i) {
            const Tensor& in = contract_.inputs[i];
            Tensors invalid{zeros({}, {in.dtype()}), zeros({1}, {in.dtype()}), zeros({0}, {in.dtype()})};
            if (in.rank() > 0) {
                invalid.push_back(slice(in, 0, 0, 0));
                invalid.push_back(slice(in, 0, 0, 1));
                invalid.push_back(slice(in, -1, 0, in.size(-1) - 1));
                invalid.push_back(reshape(in, [&] {
                    Shape shape = in.shape();
                    shape.insert(0, 1);
                    return shape;
                }()));
            }
            for (const DType dtype : {DType::i32, DType::boolean, DType::u8, DType::f16})
                if (dtype != in.dtype()) invalid.push_back(zeros(in.shape(), {dtype}));
            for (const Tensor& tensor : invalid) {
                Tensors inputs = clones(contract_.inputs);
                inputs[i] = tensor;
                const std::string what = "input " + std::to_string(i) + " of " + std::string(name_of(tensor.dtype())) +
                                         " " + tensor.shape().str();
                try {
                    (void)values_of(call_(inputs));
                } catch (const Error& error) {
                    const std::string_view message = error.what();
                    const auto colon = message.find(':');
                    const std::string_view name = message.substr(0, std::min(colon, message.size()));
                    if (colon == std::string_view::npos || name.empty() || name.find(' ') != std::string_view::npos)
                        report(what, "names no function: " + std::string(message));
                }
            }
        }
    }

    void check_memory_released() {
        const Device device = contract_.inputs[0].device();
        const auto run_once = [&] {
            Tensors inputs = leaves();
            Tensors results = call_(inputs);
            if (contract_.differentiable) {
                const Tensor total = weighted_sum(results);
                const Tensors leaf_inputs = [&] {
                    Tensors all;
                    for (const Tensor& input : inputs)
                        if (input.requires_grad()) all.push_back(input);
                    return all;
                }();
                const Tensors first =
                    grad({total}, leaf_inputs, {.retain_graph = true, .create_graph = true, .allow_unused = true});
                total.backward();
            }
            (void)values_of(results);
            (void)call_(inputs);  // dropped while it is pending
        };
        run_once();  // caches are filled now
        device.synchronize();
        const auto before = device.memory().in_use;
        for (int round = 0; round < 3; ++round) run_once();
        device.synchronize();
        const auto after = device.memory().in_use;
        if (after > before) report("memory", std::to_string(after - before) + " bytes are held by what was dropped");
    }

    const Contract& contract_;
    Call call_;
    std::vector<Values> expected_results_, expected_gradients_;
    std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> violations(const Contract& contract) { return Check(contract).run(); }

std::vector<std::string> second_order_violations(const Contract& contract) {
    const Call call(contract);
    Tensors inputs, leaf_inputs;
    for (std::size_t i = 0; i < contract.inputs.size(); ++i) {
        inputs.push_back(contract.arbitrary[i] ? contract.inputs[i].detach().to(DType::f64).clone()
                                               : contract.inputs[i]);
        if (contract.arbitrary[i]) leaf_inputs.push_back(inputs[i].set_requires_grad());
    }
    // A scalar to which each element of each gradient contributes.
    const auto weighted_gradients = [&](bool create_graph) {
        Tensor total;
        for (const Tensor& y : call(inputs)) {
            if (!y.requires_grad()) continue;
            const Tensor part = sum((y + square(y)) * residual_for(y));
            total = total.defined() ? total + part : part;
        }
        Tensor all;
        std::uint64_t seed = 20;
        for (const Tensor& tensor : grad({total}, leaf_inputs, {.create_graph = create_graph, .allow_unused = true})) {
            ++seed;
            if (!tensor.defined()) continue;
            const Tensor part = sum(tensor * random_tensor(tensor.shape(), seed, DType::f64));
            all = all.defined() ? all + part : part;
        }
        return all;
    };
    const Tensors second = grad({weighted_gradients(true)}, leaf_inputs, {.allow_unused = true});
    const std::string found =
        numeric_difference(leaf_inputs, second, [&] { return weighted_gradients(false).item<double>(); },
                           {.step = 1e-5, .tolerance = 1e-5, .max_elements = 12});
    if (found.empty()) return {};
    return {contract.name + ": second derivative, " + found};
}

}  // namespace declivity::test
