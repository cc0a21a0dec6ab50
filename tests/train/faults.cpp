// Each OpenCL call of a training step fails once: the error is reported, no state is lost, and the next step succeeds.
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tests/support/devices.hpp>
#include <tests/support/opencl_faults.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using test::OpenClFault;
using test::OpenClHandles;

namespace {

/// Calls with a fallback: a cached program that cannot be read or stored, source that does not build after the
/// library's own declarations, unavailable kernel information, memory that is requested again after the queues are
/// drained.
const std::set<std::string> kFallbacks{"clCreateProgramWithBinary",
                                       "clCreateProgramWithSource",
                                       "clBuildProgram",
                                       "clGetProgramBuildInfo",
                                       "clGetProgramInfo",
                                       "clRetainDevice",
                                       "clGetKernelArgInfo",
                                       "clCreateBuffer",
                                       "clEnqueueMigrateMemObjects",
                                       "clGetEventProfilingInfo"};

class RestoredDefaultDevice {
  public:
    explicit RestoredDefaultDevice(const Device& device) : before_(default_device()) { set_default_device(device); }
    ~RestoredDefaultDevice() { set_default_device(before_); }

  private:
    Device before_;
};

/// A small network in the middle of its training.
class FaultyTraining {
  public:
    explicit FaultyTraining(const Device& device)
        : default_(device),
          device_(device),
          model_(nn::Conv2d(1, 4, 3), nn::BatchNorm(4), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(4, 6, 3), nn::ReLU(),
                 nn::Dropout(0.25), nn::Flatten(), nn::Linear(24, 3)),
          optimizer_(model_.parameters(), {.lr = 0.01}),
          x_(test::random_tensor({6, 1, 10, 10}, 1)),
          labels_(Tensor::from(std::vector<std::int32_t>{0, 2, 1, 1, 0, 2}, {6})) {
        for (const auto& [name, parameter] : model_.named_parameters()) {
            const NoGrad no_grad;
            Tensor(parameter).copy_(
                test::random_tensor(parameter.shape(), name.size() + static_cast<std::uint64_t>(parameter.numel())) *
                0.2);
        }
        for (const NamedTensor& item : model_.state_dict())
            model_state_.push_back({item.name, item.tensor.detach().clone()});
        for (const auto& [name, tensor] : optimizer_.state_dict())
            optimizer_state_.push_back({name, tensor.detach().clone()});
        for (const auto& [name, tensor] : model_state_)
            test::values(tensor);  // evaluated now, not at the first restore()
    }

    void restore() {
        model_.zero_grad();
        const NoGrad no_grad;
        model_.load_state_dict(model_state_);
        optimizer_.load_state_dict(optimizer_state_);
        set_random_state(device_, {7, 0});
        device_.synchronize();
    }

    /// Memory in use without gradients.
    std::uint64_t memory_at_rest() {
        model_.zero_grad();
        if (recapture) captured_.reset();
        return device_.memory().in_use;
    }

    double step() {
        const Tensor x = send_ahead ? uploaded() : x_;
        if (recapture) captured_.reset();
        const Tensor loss = replay || recapture ? captured_(x) : commands(x);
        const double read = loss.item<float>();
        if (at_end) at_end();
        return read;
    }

    Tensor commands(const Tensor& x) {
        const Tensor loss = cross_entropy(model_(x), labels_);
        loss.backward();
        optimizer_.step();
        optimizer_.zero_grad();
        return loss.detach();
    }

    /// Everything that the step changes, after it.
    std::vector<std::vector<double>> state() {
        std::vector<std::vector<double>> all;
        for (const NamedTensor& item : model_.state_dict()) all.push_back(test::values(item.tensor));
        for (const auto& [name, tensor] : optimizer_.state_dict()) all.push_back(test::values(tensor));
        device_.synchronize();
        return all;
    }

    [[nodiscard]] const Device& device() const { return device_; }

    bool send_ahead = false;            ///< each step uploads its batch asynchronously
    bool replay = false;                ///< steps are captured once and replayed
    bool recapture = false;             ///< each step is captured
    std::function<void()> at_end = {};  ///< called after each step

  private:
    Tensor uploaded() {
        const auto batch = test::random_values(600, 1);
        const std::vector<float> elements(batch.begin(), batch.end());
        const ops::View x = ops::View::make(device_, DType::f32, {6, 1, 10, 10}, BufferUse::transfer);
        Queue::compute(device_).wait_for(upload_async(x.buffer, 0, std::as_bytes(std::span(elements))));
        return Tensor(x);
    }

    RestoredDefaultDevice default_;
    Device device_;
    nn::Sequential model_;
    optim::Adam optimizer_;
    Tensor x_, labels_;
    CapturedFunction captured_{[this](const std::vector<Tensor>& in) { return std::vector{commands(in[0])}; }};
    StateDict model_state_;
    StateDict optimizer_state_;
};

struct Step {
    double loss = 0;
    std::vector<std::vector<double>> state;
    bool operator==(const Step&) const = default;
};

Step fault_free_step(FaultyTraining& training) {
    training.restore();
    Step done;
    done.loss = training.step();
    done.state = training.state();
    return done;
}

/// The outcome of an attempt with one failed call; "" if all is as expected.
std::string attempt(FaultyTraining& training, long number, const Step& expected, std::map<std::string, int>& failures) {
    std::optional<Step> done;
    std::string message, function;
    int code = 0;
    {
        const OpenClFault fault(number);
        try {
            done.emplace();
            done->loss = training.step();
        } catch (const DeviceError& error) {
            message = error.what();
            done.reset();
        } catch (const OutOfMemory& error) {
            message = error.what();
            done.reset();
        } catch (const std::exception& error) {
            return fmt::format("call {} ({}, status {}): neither a DeviceError nor an OutOfMemory: {}", number,
                               fault.function(), fault.code(), error.what());
        }
        function = fault.function();
        code = fault.code();
    }
    const std::string call = fmt::format("call {} ({}, status {})", number, function, code);
    ++failures[function];
    if (function.empty()) {  // steps that reuse memory make a call or two less
        done->state = training.state();
        return *done == expected ? "" : call + ": nothing was refused, to another result";
    }
    if (Scope::path() != "") return call + ": a scope stays open: " + Scope::path().str();
    if (!grad_enabled()) return call + ": nothing is recorded any more";
    if (done) {
        done->state = training.state();
        // Memory of an uploaded batch is freed by destructors, which cannot report errors; it is reused only once its
        // readers are known.
        const bool batch = training.send_ahead && (function == "clEnqueueMarkerWithWaitList" || function == "clFlush");
        if (!kFallbacks.contains(function) && !batch) return call + ": no error";
        if (!(*done == expected)) return call + ": another way was found, to another result";
        return "";
    }
    const std::string name = training.device().name();
    if (message.find(name) == std::string::npos) return call + ": the error does not name the device: " + message;
    if (message.find("CL_") == std::string::npos && message.find("is exhausted") == std::string::npos &&
        message.find("by CLBlast") == std::string::npos)
        return call + ": the error does not name the status: " + message;
    return "";
}

struct Metrics {
    std::uint64_t in_use = 0;
    OpenClHandles handles;
};

Metrics metrics(const FaultyTraining& training) {
    training.device().synchronize();
    return {training.device().memory().in_use, test::opencl_handles()};
}

/// Describes both counts, ignoring a few events: whether a block of the pool still holds its last reader's event
/// depends on timing.
std::string without_few_events(OpenClHandles handles, const OpenClHandles& expected) {
    if (std::abs(handles.events - expected.events) <= 4) handles.events = expected.events;
    return handles.text();
}

/// Fails each call of a step separately, in one continued training.
void refuse_each(FaultyTraining& training) {
    const Step expected = fault_free_step(training);
    REQUIRE(fault_free_step(training) == expected);
    training.restore();
    long calls = 0;
    {
        const OpenClFault count;
        training.step();
        calls = static_cast<long>(count.calls().size());
    }
    REQUIRE(calls > (training.replay ? 25 : 50));
    REQUIRE(fault_free_step(training) == expected);
    const Metrics before = metrics(training);
    const std::uint64_t at_rest = training.memory_at_rest();
    REQUIRE(fault_free_step(training) == expected);
    std::map<std::string, int> failures;
    for (long number = 0; number < calls; ++number) {
        training.restore();
        const std::string fault = attempt(training, number, expected, failures);
        CHECK(fault == "");
        CAPTURE(number);
        CHECK(training.memory_at_rest() == at_rest);
        CHECK(fault_free_step(training) == expected);
        const Metrics after = metrics(training);
        CHECK(after.in_use == before.in_use);
        CHECK(without_few_events(after.handles, before.handles) == before.handles.text());
    }
    // The number of event queries depends on timing, too.
    CHECK(failures[""] <= 4 + calls / 8);
    std::string all;
    for (const auto& [function, count] : failures) all += fmt::format(" {}:{}", function, count);
    MESSAGE("refused", all);
}

}  // namespace

TEST_CASE("faults: each call of a repeated step") {
    FaultyTraining training(test::device());
    refuse_each(training);
}

TEST_CASE("faults: each call of a profiled step") {
    FaultyTraining training(test::device());
    Profiler profiler(test::device());
    training.at_end = [&] { (void)profiler.rows(); };
    refuse_each(training);
    CHECK(!profiler.rows().empty());
}

TEST_CASE("faults: each call of a step with an asynchronous upload through pinned memory") {
    const test::Environment pinned("DECLIVITY_STAGING", "pinned");
    FaultyTraining training(test::fresh_device());
    training.send_ahead = true;
    refuse_each(training);
}

TEST_CASE("faults: each call of a replayed step") {
    FaultyTraining training(test::device());
    training.replay = true;
    refuse_each(training);
}

TEST_CASE("faults: each call of a replayed step with an asynchronous upload") {
    FaultyTraining training(test::device());
    training.replay = training.send_ahead = true;
    refuse_each(training);
}

TEST_CASE("faults: each call of a replayed and profiled step") {
    FaultyTraining training(test::device());
    Profiler profiler(test::device());
    training.replay = true;
    training.at_end = [&] { (void)profiler.rows(); };
    refuse_each(training);
}

TEST_CASE("faults: each call of a step during capture") {
    FaultyTraining training(test::fresh_device());
    training.recapture = true;
    refuse_each(training);
}

TEST_CASE("faults: each call of a step with separate memory per tensor") {
    const test::Environment exact("DECLIVITY_POOL", "exact");
    FaultyTraining training(test::fresh_device());
    training.send_ahead = true;
    refuse_each(training);
}

TEST_CASE("faults: each call of a step with CLBlast products") {
    const test::Environment strategy_variable("DECLIVITY_MATMUL", "clblast");
    FaultyTraining training(test::device());
    refuse_each(training);
}

TEST_CASE("faults: each call of the first step on a device") {
    const auto new_training = [] {
        const test::Environment pinned("DECLIVITY_STAGING", "pinned");
        return test::fresh_device();
    };
    (void)test::device();  // whose context remains
    const auto run = [&](long number, const Step* expected, std::map<std::string, int>& failures) {
        const OpenClHandles before = test::opencl_handles();
        FaultyTraining training(new_training());
        training.send_ahead = true;
        training.restore();
        if (expected != nullptr) CHECK(attempt(training, number, *expected, failures) == "");
        const Step done = fault_free_step(training);
        for (int i = 0; i < 20; ++i) training.restore();  // until each block of pinned memory has its event
        if (expected != nullptr) CHECK(done == *expected);
        const Metrics after = metrics(training);
        return std::tuple(done, after.in_use, after.handles - before);
    };
    std::map<std::string, int> failures;
    const auto [expected, in_use, handles] = run(-1, nullptr, failures);
    std::vector<std::string> calls;
    {
        FaultyTraining training(new_training());
        training.send_ahead = true;
        training.restore();
        const OpenClFault count;
        training.step();
        calls = count.calls();
    }
    std::map<std::string, int> call_counts;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        // Querying and setting kernel arguments are single lines of code, which repeated steps cover as well.
        const int nth = call_counts[calls[i]]++;
        if ((calls[i] == "clSetKernelArg" || calls[i] == "clGetKernelArgInfo") && nth > 3 && nth % 13 != 0) continue;
        const auto number = static_cast<long>(i);
        CAPTURE(number);
        const auto [done, in_use_after, handles_after] = run(number, &expected, failures);
        CHECK(in_use_after == in_use);
        CHECK(without_few_events(handles_after, handles) == handles.text());
    }
    std::string all;
    for (const auto& [function, count] : failures) all += fmt::format(" {}:{}", function, count);
    MESSAGE("refused", all);
}

TEST_CASE("faults: a parameter table whose upload failed is uploaded again") {
    const auto run = [](bool fault) {
        Tensor a = test::random_tensor({5}, 1).set_requires_grad(), b = test::random_tensor({9}, 2).set_requires_grad();
        optim::SGD optimizer({a, b}, {.lr = 0.1});
        a.set_grad(test::random_tensor({5}, 3));
        optimizer.step();
        b.set_grad(test::random_tensor({9}, 4));
        const auto a_before = test::values(a);
        if (fault) {
            const test::FailingFunction writes("clEnqueueWriteBuffer");  // the table for both, longer and in new memory
            CHECK_THROWS_AS(optimizer.step(), DeviceError);
        }
        CHECK(test::values(a) == a_before);
        b.zero_grad();
        optimizer.step();
        return std::pair(test::values(a), test::values(b));
    };
    CHECK(run(true) == run(false));
}

TEST_CASE("faults: a learning rate whose upload failed is uploaded again") {
    Tensor a = test::tensor({1}, {1}).set_requires_grad();
    optim::SGD optimizer({a}, {.lr = 0.5});
    a.set_grad(test::tensor({1}, {1}));
    {
        const test::FailingFunction launches("clEnqueueFillBuffer"), or_launches("clEnqueueNDRangeKernel");
        CHECK_THROWS_AS(optimizer.set_learning_rate(0.25), DeviceError);
    }
    optimizer.set_learning_rate(0.25);
    optimizer.step();
    CHECK(test::values(a) == std::vector{0.75});
}

TEST_CASE("faults: a random state whose upload failed is not used") {
    const Device device = test::device();
    set_random_state(device, {5, 0});
    (void)test::values(uniform({20}));
    const auto next = test::values(uniform({20}));
    set_random_state(device, {5, 0});
    (void)test::values(uniform({20}));
    {
        const test::FailingFunction writes("clEnqueueWriteBuffer");
        CHECK_THROWS_AS(set_random_state(device, {6, 0}), DeviceError);
    }
    CHECK(random_state(device).seed == 5);
    CHECK(test::values(uniform({20})) == next);
}
