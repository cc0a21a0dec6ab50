#include "random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "ops/engine/expression_node.hpp"
#include "runtime/capture.hpp"
#include "runtime/per_device.hpp"

namespace declivity::ops {

struct RandomStream::State {
    explicit State(const Device& on) : device(on) {}
    std::mutex mutex;  // guards the members below
    const Device device;
    const std::uint64_t capture = Capture::current_number();  // capture that was active on creation
    RandomPosition position;
    View location;  // seed and base, on the device

    [[nodiscard]] std::unique_lock<std::mutex> locked() {
        declivity::detail::refuse_after_fork("random numbers");
        return std::unique_lock(mutex);
    }
    /// Writes it as the base of another stream.
    void write_to(const View& other) const {
        const std::array<std::uint64_t, 2> values{position.seed, position.offset};
        fill(other.buffer, 0, sizeof values, std::as_bytes(std::span(values)));
    }
    /// Allocates new memory each time: earlier calls keep the old seed, whenever they are launched.
    void set(const RandomPosition& to) {
        const View created = View::make(device, DType::i64, {2});
        const std::array<std::uint64_t, 2> values{to.seed, 0};
        upload(created.buffer, 0, std::as_bytes(std::span(values)));
        location = created;
        position = to;
    }
};

namespace {

/// The seed of the process.
struct Seed {
    std::mutex mutex;
    std::uint64_t value = 0;
    std::vector<Device> devices;  // that have a stream

    static Seed& instance() {
        static auto* seed = new Seed;  // never destroyed, like the devices
        return *seed;
    }
};

/// The default stream of a device. Its lock is acquired before that of the seed.
struct DeviceStream {
    std::mutex mutex;
    std::shared_ptr<RandomStream::State> stream;

    static std::shared_ptr<RandomStream::State> of(const Device& device) {
        declivity::detail::refuse_after_fork("random numbers");
        auto& own = declivity::detail::per_device<DeviceStream>(device);
        const std::scoped_lock lock(own.mutex);
        if (own.stream) return own.stream;
        const CapturePause outside;
        auto created = std::make_shared<RandomStream::State>(device);
        Seed& seed = Seed::instance();
        const std::scoped_lock of_seed(seed.mutex);
        created->set({seed.value, 0});
        if (std::ranges::find(seed.devices, device) == seed.devices.end()) seed.devices.push_back(device);
        return own.stream = std::move(created);
    }
};

/// The source of random numbers of a captured step: a stream as it stands when the step begins.
struct CapturedStream {
    View location;
    std::uint64_t first = 0, end = 0;  // positions before and after the captured step
};

/// During a capture, numbers are generated from a copy of the stream's state, which each replay first sets to the
/// current position of the stream. The caller holds the mutex.
/// @return the starting position of the call
std::pair<View, std::uint64_t> location_in_capture(Capture& capture,
                                                   const std::shared_ptr<RandomStream::State>& stream) {
    auto& own = capture.user_data(stream.get());
    if (!own) {
        auto created = std::make_shared<CapturedStream>();
        created->first = stream->position.offset;
        {
            const CapturePause outside;
            created->location = View::make(stream->device, DType::i64, {2});
            stream->write_to(created->location);
        }
        own = created;
        // A stream created in the step restarts in each replay.
        if (stream->capture == Capture::current_number()) return {created->location, 0};
        // The number of words left in a block must be the same in a replay.
        capture.guard([stream, words = stream->position.words] {
            const auto lock = stream->locked();
            return stream->position.words == words;
        });
        capture.before_replay([created, stream] {
            const auto lock = stream->locked();
            stream->write_to(created->location);
            stream->position.offset += created->end - created->first;
            stream->position.words = 0;
        });
    }
    const auto& captured = *static_cast<CapturedStream*>(own.get());
    return {captured.location, stream->position.offset - captured.first};
}

thread_local RandomCapture* random_capture = nullptr;
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
        throw TypeError(fmt::format("random: expected f32 or f64, got {}", name_of(dtype)));
    require_supported(random.state.device(), dtype);
    (void)bytes_of(shape, dtype);
    return Expression(std::make_shared<const ExpressionNode>(
        ExpressionNode{.kind = ExpressionNode::Kind::random,
                       .dtype = dtype,
                       .shape = shape,
                       .view = random.state,
                       .parameters = {parameters.begin(), parameters.end()},
                       .distribution = distribution,
                       .random_offset = random.offset * numbers_per_block(dtype) + random.skip}));
}

/// Each replay advances a stream at its beginning by all that the step uses, so host calls cannot use it.
void refuse_in_host_call(const std::shared_ptr<RandomStream::State>& stream) {
    if (host_call_shares(stream.get()))
        throw Unsupported(
            "host_call: expected no random numbers of a generator that its step uses, since a replay generates those "
            "of the step first; use a separate Generator, or generate them before the step");
}

/// Evaluates a random leaf into `out`.
void evaluate_into(const Expression& leaf, const View& out) {
    require_dense("random", "out", out);
    evaluate(leaf, out);
}

}  // namespace

RandomStream::RandomStream(const Device& device, const RandomPosition& position)
    : state_(std::make_shared<State>(device)) {
    const auto lock = state_->locked();
    const CapturePause outside;
    state_->set(position);
}

RandomStream RandomStream::of(const Device& device) { return RandomStream(DeviceStream::of(device)); }

Device RandomStream::device() const { return state_->device; }
RandomPosition RandomStream::position() const {
    const auto lock = state_->locked();
    return state_->position;
}
void RandomStream::set_position(const RandomPosition& position) const {
    refuse_in_host_call(state_);
    const auto lock = state_->locked();
    state_->set(position);
}

RandomCall RandomStream::take(DType dtype, std::int64_t count, const RandomPart& part) const {
    const std::int64_t words_each = 4 / numbers_per_block(dtype);
    const auto take = [&]() -> RandomCall {
        if (replay != nullptr) return replay->next(state_->device, count);
        refuse_in_host_call(state_);
        const auto lock = state_->locked();
        RandomPosition& position = state_->position;
        const std::int64_t skipped = ceil_div(static_cast<std::int64_t>(position.words), words_each);  // f64: pairs
        RandomCall call{state_->location, static_cast<std::int64_t>(position.offset), skipped + part.first};
        if (Capture* const capture = Capture::current(); capture != nullptr && capture->host_calls_use(state_.get()))
            capture->refuse("random numbers of a generator that a host_call of the step uses, too",
                            "a replay generates the step's numbers first", "use a separate Generator in the host_call");
        Capture* const capture = Capture::current();
        if (capture != nullptr) {
            const auto [location, offset] = location_in_capture(*capture, state_);
            call.state = location;
            call.offset = static_cast<std::int64_t>(offset);
        }
        position.offset += static_cast<std::uint64_t>(ceil_div((skipped + part.whole) * words_each, 4));
        position.words = 0;
        if (capture != nullptr)
            static_cast<CapturedStream*>(capture->user_data(state_.get()).get())->end = position.offset;
        return call;
    };
    RandomCall call = take();
    if (random_capture != nullptr) random_capture->add({call, count});
    return call;
}

void RandomStream::draw_on_host(std::string_view function,
                                const std::function<std::uint64_t(const RandomPosition& position)>& generate) const {
    if (replay != nullptr || random_capture != nullptr)
        throw ValueError(
            fmt::format("{}: expected to be called outside of checkpoint(), which cannot reproduce random numbers "
                        "generated on the host",
                        function));
    if (Capture* const capture = Capture::current())
        capture->refuse(fmt::format("{} (random numbers generated on the host)", function));
    refuse_in_host_call(state_);
    const auto lock = state_->locked();
    RandomPosition& position = state_->position;
    const RandomPosition from{position.seed, position.offset + (position.words > 0 ? 1 : 0)};
    position.offset = from.offset + generate(from);
    position.words = 0;
}

RandomCall take_random(const Device& device, DType dtype, std::int64_t count) {
    return RandomStream::of(device).take(dtype, count);
}

RandomPosition random_position(const Device& device) { return RandomStream::of(device).position(); }

void set_random_position(const Device& device, const RandomPosition& position) {
    RandomStream::of(device).set_position(position);
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
    for (const Device& device : devices) RandomStream::of(device).set_position({.seed = seed});
}

RandomCapture::RandomCapture() : previous_(std::exchange(random_capture, this)) {}
RandomCapture::~RandomCapture() { random_capture = previous_; }

void RandomCapture::add(const Call& call) {
    calls_.push_back(call);
    if (previous_ != nullptr) previous_->add(call);
}

RandomReplay::RandomReplay(std::vector<RandomCapture::Call> calls)
    : calls_(std::move(calls)), previous_(std::exchange(replay, this)) {}
RandomReplay::~RandomReplay() { replay = previous_; }

RandomCall RandomReplay::next(const Device& device, std::int64_t count) {
    if (at_ == calls_.size() || !(calls_[at_].call.state.device() == device) || calls_[at_].count != count)
        throw ValueError(
            "random numbers: expected the same calls when a checkpointed function is recomputed, got others");
    return calls_[at_++].call;
}

Expression random_uniform(DType dtype, const Shape& shape, double low, double high, const RandomCall& random) {
    // Rounding could give `high` itself or more, so results are limited to the largest number below it.
    return leaf(Distribution::uniform, dtype, shape, {low, high - low, std::max(low, below(dtype, high))}, random);
}
Expression random_normal(DType dtype, const Shape& shape, double mean, double std, const RandomCall& random) {
    return leaf(Distribution::normal, dtype, shape, {mean, std}, random);
}
Expression random_bernoulli(DType dtype, const Shape& shape, double probability, const RandomCall& random) {
    return leaf(Distribution::bernoulli, dtype, shape, {probability}, random);
}

void random_uniform(const View& out, double low, double high, const RandomCall& random) {
    evaluate_into(random_uniform(out.dtype, out.shape, low, high, random), out);
}
void random_normal(const View& out, double mean, double std, const RandomCall& random) {
    evaluate_into(random_normal(out.dtype, out.shape, mean, std, random), out);
}
void random_bernoulli(const View& out, double probability, const RandomCall& random) {
    evaluate_into(random_bernoulli(out.dtype, out.shape, probability, random), out);
}

}  // namespace declivity::ops
