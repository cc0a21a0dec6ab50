#include <declivity/data/loader.hpp>

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/process.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::data {
namespace {

/// A batch whose copies may still be under way.
struct Prepared {
    Batch batch;
    Event features_sent, labels_sent;
    std::exception_ptr error;
};

}  // namespace

struct Loader::State {
    State(const Dataset& set, const LoaderOptions& given)
        : dataset(set), options(given), device(given.device ? *given.device : default_device()) {}

    const Dataset& dataset;
    const LoaderOptions options;
    const Device device;

    std::mutex mutex;
    std::condition_variable wanted, ready;
    std::vector<std::thread> threads;
    bool stopping = false;
    // The epoch under way. Its number of starts tells a thread that its batch belongs to an epoch that was dropped.
    std::uint64_t epoch = 0, starts = 0;
    std::vector<std::int64_t> order;
    std::int64_t to_prepare = 0, to_give = 0;
    std::map<std::int64_t, Prepared> prepared;

    [[nodiscard]] std::int64_t batches() const {
        return options.drop_last ? dataset.size() / options.batch : ceil_div(dataset.size(), options.batch);
    }

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            wanted.wait(lock, [&] {
                return stopping || (to_prepare < batches() && to_prepare < to_give + options.ahead && starts > 0);
            });
            if (stopping) return;
            const std::int64_t number = to_prepare++;
            const std::uint64_t of_start = starts, of_epoch = epoch;
            const std::int64_t first = number * options.batch, last = std::min(first + options.batch, dataset.size());
            const std::vector<std::int64_t> indices(order.begin() + first, order.begin() + last);
            lock.unlock();
            Prepared result;
            try {
                result = prepare(number, of_epoch, indices);
            } catch (...) {
                result.error = std::current_exception();
            }
            lock.lock();
            if (of_start != starts) continue;
            prepared.emplace(number, std::move(result));
            ready.notify_all();
        }
    }

    Prepared prepare(std::int64_t number, std::uint64_t of_epoch, const std::vector<std::int64_t>& indices) const {
        const Span span("prepare batch");
        const Shape shape = dataset.shape();
        const std::int64_t each = shape.numel();
        std::vector<float> features(indices.size() * static_cast<std::size_t>(each));
        std::vector<std::int64_t> labels;
        Image image;
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const std::span<float> place(features.data() + i * static_cast<std::size_t>(each),
                                         static_cast<std::size_t>(each));
            dataset.read(indices[i], place);
            labels.push_back(dataset.label(indices[i]));
            if (options.transform) transform(indices[i], of_epoch, shape, place, image);
        }
        Prepared out;
        Shape batched = shape;
        batched.insert(0, static_cast<std::int64_t>(indices.size()));
        const ops::View x = ops::View::make(device, DType::f32, batched, BufferUse::transfer);
        const ops::View y =
            ops::View::make(device, DType::i64, {static_cast<std::int64_t>(indices.size())}, BufferUse::transfer);
        out.features_sent = upload_ahead(x.buffer, 0, std::as_bytes(std::span(features)));
        out.labels_sent = upload_ahead(y.buffer, 0, std::as_bytes(std::span(labels)));
        out.batch = {Tensor(x), Tensor(y), number, static_cast<std::int64_t>(indices.size())};
        return out;
    }

    void transform(std::int64_t index, std::uint64_t of_epoch, const Shape& shape, std::span<float> place,
                   Image& image) const {
        image.channels = shape[0];
        image.height = shape[1];
        image.width = shape[2];
        image.pixels.assign(place.begin(), place.end());
        Random random(options.seed, of_epoch, static_cast<std::uint64_t>(index));
        options.transform(image, random);
        if (!(image.shape() == shape) || image.pixels.size() != place.size())
            throw ShapeError(fmt::format("Loader: wants a transform that keeps the shape {}, got {}", shape.str(),
                                         image.shape().str()));
        std::copy(image.pixels.begin(), image.pixels.end(), place.begin());
    }
};

Loader::Loader(const Dataset& dataset, const LoaderOptions& options) {
    if (options.batch < 1 || options.threads < 1 || options.ahead < 1)
        throw ValueError(fmt::format("Loader: wants batch, threads and ahead of at least 1, got {}, {} and {}",
                                     options.batch, options.threads, options.ahead));
    if (dataset.size() < 1) throw ValueError("Loader: wants a data set of at least one example, got an empty one");
    if (options.transform && dataset.shape().rank() != 3)
        throw ShapeError(fmt::format("Loader: wants images (C, H, W) for a transform, got examples of shape {}",
                                     dataset.shape().str()));
    state_ = std::make_unique<State>(dataset, options);
    for (int i = 0; i < options.threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->work(); });
}

Loader::~Loader() {
    if (after_fork()) {
        (void)state_.release();  // its threads do not exist here, and its lock may be held by one of them
        return;
    }
    {
        const std::scoped_lock lock(state_->mutex);
        state_->stopping = true;
    }
    state_->wanted.notify_all();
    for (std::thread& thread : state_->threads) thread.join();
}

std::int64_t Loader::batches() const noexcept { return state_->batches(); }
const LoaderOptions& Loader::options() const noexcept { return state_->options; }
const Dataset& Loader::dataset() const noexcept { return state_->dataset; }

void Loader::start(std::uint64_t epoch, std::int64_t first_batch) {
    declivity::detail::refuse_after_fork("Loader::start");
    if (first_batch < 0 || first_batch > batches())
        throw ValueError(fmt::format("Loader::start: wants a batch in [0, {}], got {}", batches(), first_batch));
    std::vector<std::int64_t> order;
    if (state_->options.shuffle) {
        order = shuffled_order(state_->dataset.size(), state_->options.seed, epoch);
    } else {
        order.resize(static_cast<std::size_t>(state_->dataset.size()));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    }
    {
        const std::scoped_lock lock(state_->mutex);
        state_->epoch = epoch;
        ++state_->starts;
        state_->order = std::move(order);
        state_->prepared.clear();
        state_->to_prepare = state_->to_give = first_batch;
    }
    state_->wanted.notify_all();
}

std::optional<Batch> Loader::next() {
    declivity::detail::refuse_after_fork("Loader::next");
    const Span span("next batch", SpanKind::wait);
    std::unique_lock lock(state_->mutex);
    if (state_->starts == 0) throw ValueError("Loader::next: wants an epoch begun by start(), got none");
    if (state_->to_give >= state_->batches()) return std::nullopt;
    state_->ready.wait(lock, [&] { return state_->prepared.contains(state_->to_give); });
    Prepared prepared = std::move(state_->prepared.extract(state_->to_give).mapped());
    ++state_->to_give;
    lock.unlock();
    state_->wanted.notify_all();
    if (prepared.error) std::rethrow_exception(prepared.error);
    const Queue compute = Queue::compute(state_->device);
    for (const Event& sent : {prepared.features_sent, prepared.labels_sent})
        if (!sent.done()) compute.wait_for(sent);
    return std::move(prepared.batch);
}

}  // namespace declivity::data
