#include "random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <fmt/format.h>

#include "ops/engine/expression_node.hpp"
#include "runtime/per_device.hpp"
#include "runtime/recorder.hpp"

namespace declivity::ops {
namespace {

struct Generator {
    RandomPosition position;
    View state;  // seed and base, on the device

    /// As the base of another state.
    void write_to(const View& other) const {
        const std::array<std::uint64_t, 2> values{position.seed, position.offset};
        fill(other.buffer, 0, sizeof values, std::as_bytes(std::span(values)));
    }
};

/// New memory each time: calls made before keep the old seed, whenever they are launched.
void set(Generator& generator, const Device& device, const RandomPosition& position) {
    const View state = View::make(device, DType::i64, {2});
    const std::array<std::uint64_t, 2> values{position.seed, 0};
    upload(state.buffer, 0, std::as_bytes(std::span(values)));
    generator = {position, state};
}

/// What a recorded step draws from: the generator as it stands when the step begins.
struct RecordedGenerator {
    View state;
    std::uint64_t first = 0, end = 0;  // positions before and behind the step that was recorded
};

/// Of the process.
struct Seed {
    std::mutex mutex;
    std::uint64_t value = 0;
    std::vector<Device> devices;  // that have a generator

    static Seed& instance() {
        static auto* seed = new Seed;  // never destroyed, as the devices
        return *seed;
    }
};

/// Of a device. Its lock is taken before that of the seed.
struct DeviceGenerator {
    std::mutex mutex;

    static DeviceGenerator& of(const Device& device) {
        declivity::detail::refuse_after_fork("random numbers");
        return declivity::detail::per_device<DeviceGenerator>(device);
    }
    /// The caller holds the mutex.
    Generator& generator(const Device& device) {
        const RecordingPause outside;
        if (!generator_.state.buffer) {
            Seed& seed = Seed::instance();
            const std::scoped_lock lock(seed.mutex);
            if (std::ranges::find(seed.devices, device) == seed.devices.end()) seed.devices.push_back(device);
            set(generator_, device, {seed.value, 0});
        }
        return generator_;
    }

  private:
    Generator generator_;
};

/// While a step is recorded: from memory of its own, which each replay sets to where the generator stands then. The
/// caller holds the mutex.
RandomCall take_recorded(Recorder& recorder, DeviceGenerator& own_generator, const Device& device,
                         std::int64_t blocks) {
    Generator& generator = own_generator.generator(device);
    auto& own = recorder.attached(&generator);
    if (!own) {
        auto made = std::make_shared<RecordedGenerator>();
        made->first = generator.position.offset;
        {
            const RecordingPause outside;
            made->state = View::make(device, DType::i64, {2});
            generator.write_to(made->state);
        }
        recorder.before_replay([made, device] {
            auto& of_device = DeviceGenerator::of(device);
            const std::scoped_lock lock(of_device.mutex);
            Generator& now = of_device.generator(device);
            now.write_to(made->state);
            now.position.offset += made->end - made->first;
        });
        own = made;
    }
    auto& stream = *static_cast<RecordedGenerator*>(own.get());
    const RandomCall call{stream.state, static_cast<std::int64_t>(generator.position.offset - stream.first)};
    generator.position.offset += static_cast<std::uint64_t>(blocks);
    stream.end = generator.position.offset;
    return call;
}

thread_local RandomRecording* recording = nullptr;
thread_local RandomReplay* replay = nullptr;

/// The largest number of this type below `high`.
double below(DType dtype, double high) {
    return dtype == DType::f64 ? std::nextafter(high, -INFINITY)
                               : static_cast<double>(std::nextafter(static_cast<float>(high), -INFINITY));
}

std::int64_t numbers_per_block(DType dtype) { return dtype == DType::f64 ? 2 : 4; }

Expression leaf(Distribution distribution, DType dtype, const Shape& shape, std::initializer_list<double> parameters,
                const RandomCall& random) {
    if (dtype != DType::f32 && dtype != DType::f64)
        throw TypeError(fmt::format("random: wants f32 or f64, got {}", name_of(dtype)));
    require_supported(random.state.device(), dtype);
    (void)bytes_of(shape, dtype);
    return Expression(
        std::make_shared<const ExpressionNode>(ExpressionNode{.kind = ExpressionNode::Kind::random,
                                                              .dtype = dtype,
                                                              .shape = shape,
                                                              .view = random.state,
                                                              .parameters = {parameters.begin(), parameters.end()},
                                                              .distribution = distribution,
                                                              .random_offset = random.offset}));
}

/// Stores what a leaf stands for.
void store(const Expression& leaf, const View& out) {
    require_dense("random", "out", out);
    evaluate(leaf, out);
}

}  // namespace

RandomCall take_random(const Device& device, DType dtype, std::int64_t count) {
    const std::int64_t blocks = ceil_div(count, numbers_per_block(dtype));
    const auto take = [&] {
        if (replay != nullptr) return replay->next(device, blocks);
        auto& of_device = DeviceGenerator::of(device);
        const std::scoped_lock lock(of_device.mutex);
        if (Recorder* const recorder = Recorder::current()) return take_recorded(*recorder, of_device, device, blocks);
        Generator& generator = of_device.generator(device);
        const RandomCall call{generator.state, static_cast<std::int64_t>(generator.position.offset)};
        generator.position.offset += static_cast<std::uint64_t>(blocks);
        return call;
    };
    RandomCall call = take();
    if (recording != nullptr) recording->add({call, blocks});
    return call;
}

RandomPosition random_position(const Device& device) {
    auto& of_device = DeviceGenerator::of(device);
    const std::scoped_lock lock(of_device.mutex);
    return of_device.generator(device).position;
}

void set_random_position(const Device& device, const RandomPosition& position) {
    auto& of_device = DeviceGenerator::of(device);
    const std::scoped_lock lock(of_device.mutex);
    set(of_device.generator(device), device, position);
}

void seed_all(std::uint64_t seed) {
    declivity::detail::refuse_after_fork("random numbers");
    std::vector<Device> devices;
    {
        Seed& of_process = Seed::instance();
        const std::scoped_lock lock(of_process.mutex);
        of_process.value = seed;
        devices = of_process.devices;
    }
    for (const Device& device : devices) {
        auto& of_device = DeviceGenerator::of(device);
        const std::scoped_lock lock(of_device.mutex);
        set(of_device.generator(device), device, {seed, 0});
    }
}

RandomRecording::RandomRecording() : before_(std::exchange(recording, this)) {}
RandomRecording::~RandomRecording() { recording = before_; }

void RandomRecording::add(const Call& call) {
    calls_.push_back(call);
    if (before_ != nullptr) before_->add(call);
}

RandomReplay::RandomReplay(std::vector<RandomRecording::Call> calls)
    : calls_(std::move(calls)), before_(std::exchange(replay, this)) {}
RandomReplay::~RandomReplay() { replay = before_; }

RandomCall RandomReplay::next(const Device& device, std::int64_t blocks) {
    if (at_ == calls_.size() || !(calls_[at_].call.state.device() == device) || calls_[at_].blocks != blocks)
        throw ValueError("random numbers: a function that is called again wants others than the first time");
    return calls_[at_++].call;
}

Expression random_uniform(DType dtype, const Shape& shape, double low, double high, const RandomCall& random) {
    // Rounding may make a number larger than what lies below `high`.
    return leaf(Distribution::uniform, dtype, shape, {low, high - low, std::max(low, below(dtype, high))}, random);
}
Expression random_normal(DType dtype, const Shape& shape, double mean, double std, const RandomCall& random) {
    return leaf(Distribution::normal, dtype, shape, {mean, std}, random);
}
Expression random_bernoulli(DType dtype, const Shape& shape, double probability, const RandomCall& random) {
    return leaf(Distribution::bernoulli, dtype, shape, {probability}, random);
}

void random_uniform(const View& out, double low, double high, const RandomCall& random) {
    store(random_uniform(out.dtype, out.shape, low, high, random), out);
}
void random_normal(const View& out, double mean, double std, const RandomCall& random) {
    store(random_normal(out.dtype, out.shape, mean, std, random), out);
}
void random_bernoulli(const View& out, double probability, const RandomCall& random) {
    store(random_bernoulli(out.dtype, out.shape, probability, random), out);
}

}  // namespace declivity::ops
