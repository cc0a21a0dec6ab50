#include <declivity/data/loader.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/process.hpp"
#include "field_names.hpp"

namespace declivity::data {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

/// A batch whose copies may be in flight.
struct Prepared {
    Batch batch;
    std::vector<Event> uploads;
    std::exception_ptr error;
};

/// If every field has a fixed shape, batches are assembled in place.
bool has_fixed_shapes(const std::vector<Field>& fields) {
    return std::ranges::all_of(fields, [](const Field& field) { return field.shape.has_value(); });
}

/// The field that an image transform changes.
std::size_t image_field(const std::vector<Field>& fields) {
    std::vector<std::string> image_names;
    std::size_t position = 0;
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (fields[i].dtype == DType::f32 && fields[i].shape->rank() == 3) {
            image_names.push_back(fields[i].name);
            position = i;
        }
    if (image_names.size() > 1)
        throw ValueError(fmt::format(
            "Loader: expected one field of images (C, H, W) for a transform, got {}: select one by data::on_fields",
            image_names));
    if (image_names.empty()) {
        std::string description;
        for (const Field& field : fields)
            description += fmt::format("{}'{}' {} {}", description.empty() ? "" : ", ", field.name,
                                       name_of(field.dtype), field.shape->str());
        throw ShapeError(
            fmt::format("Loader: expected images (C, H, W) of f32 for a transform, got examples of {}", description));
    }
    return position;
}

}  // namespace

struct Loader::State {
    State(const Dataset& source, const LoaderOptions& loader_options)
        : dataset(source),
          options(loader_options),
          device(loader_options.device ? *loader_options.device : default_device()),
          fields(source.fields()),
          names(names_of("Loader", fields)),
          in_place(has_fixed_shapes(fields) && !loader_options.collate &&
                   (!loader_options.transform || loader_options.transform.is_image_transform())),
          image(loader_options.transform.is_image_transform() && has_fixed_shapes(fields) ? image_field(fields)
                                                                                          : fields.size()),
          sampler(loader_options.sampler   ? loader_options.sampler
                  : loader_options.shuffle ? std::make_shared<const RandomSampler>()
                                           : std::shared_ptr<const Sampler>(std::make_shared<SequentialSampler>())),
          epoch_batches(batches_of(0)) {}

    std::shared_ptr<const Dataset> dataset_owner;
    const Dataset& dataset;
    const LoaderOptions options;
    const Device device;
    const std::vector<Field> fields;
    const FieldNames names;
    const bool in_place;
    const std::size_t image;  // index of the field of an image transform; the number of fields if there is none
    const std::shared_ptr<const Sampler> sampler;

    mutable std::mutex mutex;
    std::condition_variable work_available, batch_ready;
    std::vector<std::thread> threads;
    bool stopping = false;
    // The current epoch. A worker thread compares the number of starts to detect that its batch belongs to an abandoned
    // epoch.
    std::uint64_t epoch = 0, starts = 0;
    Batches epoch_batches;
    std::size_t next_to_prepare = 0, next_to_return = 0;
    std::map<std::size_t, Prepared> prepared;
    FieldNames collated;  // fields returned by the collate function

    [[nodiscard]] Batches batches_of(std::uint64_t epoch_number) const {
        Batches out = sampler->batches(
            {.examples = dataset.size(), .batch = options.batch, .seed = options.seed, .epoch = epoch_number});
        for (const auto& batch : out) {
            if (batch.empty())
                throw ValueError("Loader: expected at least one index per batch from the sampler, got none");
            for (const std::int64_t index : batch)
                if (index < 0 || index >= dataset.size())
                    throw ValueError(fmt::format("Loader: expected indices in [0, {}) from the sampler, got {}",
                                                 dataset.size(), index));
        }
        if (options.drop_last && !out.empty() && std::cmp_less(out.back().size(), options.batch)) out.pop_back();
        return out;
    }

    void run_worker() {
        std::unique_lock lock(mutex);
        for (;;) {
            work_available.wait(lock, [&] {
                return stopping || (starts > 0 && next_to_prepare < epoch_batches.size() &&
                                    next_to_prepare < next_to_return + static_cast<std::size_t>(options.ahead));
            });
            if (stopping) return;
            const std::size_t number = next_to_prepare++;
            const std::uint64_t start_number = starts, epoch_number = epoch;
            const std::vector<std::int64_t> indices = epoch_batches[number];
            lock.unlock();
            Prepared result;
            try {
                result = prepare(static_cast<std::int64_t>(number), epoch_number, indices);
            } catch (...) {
                result.error = std::current_exception();
            }
            lock.lock();
            if (start_number != starts) continue;
            prepared.emplace(number, std::move(result));
            batch_ready.notify_all();
        }
    }

    Prepared prepare(std::int64_t number, std::uint64_t epoch_number, const std::vector<std::int64_t>& indices) {
        const Span span("prepare batch");
        FieldNames batch_names = names;
        std::vector<io::HostArray> arrays;
        if (in_place) {
            arrays = assemble(epoch_number, indices);
        } else {
            Example batch_example = collate(epoch_number, indices);
            batch_names = check_collated(batch_example);
            arrays = std::move(batch_example.arrays());
        }
        Prepared out;
        std::vector<Tensor> tensors;
        for (const io::HostArray& array : arrays) {
            const ops::View view = ops::View::make(device, array.dtype, array.shape, BufferUse::transfer);
            if (!array.bytes.empty()) out.uploads.push_back(upload_async(view.buffer, 0, array.bytes));
            tensors.emplace_back(view);
        }
        out.batch = {std::move(batch_names), std::move(tensors), number, static_cast<std::int64_t>(indices.size())};
        return out;
    }

    /// Reads examples of fixed shapes directly into the staging arrays.
    std::vector<io::HostArray> assemble(std::uint64_t epoch_number, const std::vector<std::int64_t>& indices) const {
        std::vector<io::HostArray> out;
        std::vector<std::size_t> example_bytes;  // bytes of an example
        const auto allocate = [&](io::HostArray& array, Shape shape, std::size_t bytes) {
            shape.insert(0, static_cast<std::int64_t>(indices.size()));
            array.shape = shape;
            array.bytes.resize(bytes * indices.size());
        };
        for (const Field& field : fields) {
            example_bytes.push_back(static_cast<std::size_t>(field.shape->numel()) * size_of(field.dtype));
            out.push_back({field.dtype, {}, {}});
            if (out.size() - 1 != image) allocate(out.back(), *field.shape, example_bytes.back());
        }
        std::vector<std::span<std::byte>> buffers(fields.size());
        Image scratch;
        Shape transformed;
        for (std::size_t i = 0; i < indices.size(); ++i) {
            for (std::size_t field = 0; field < fields.size(); ++field)
                if (field != image)
                    buffers[field] =
                        std::span(out[field].bytes).subspan(i * example_bytes[field], example_bytes[field]);
            if (image < fields.size()) {
                const Shape& shape = *fields[image].shape;
                scratch.channels = shape[0];
                scratch.height = shape[1];
                scratch.width = shape[2];
                scratch.pixels.resize(static_cast<std::size_t>(shape.numel()));
                buffers[image] = std::as_writable_bytes(std::span(scratch.pixels));
            }
            dataset.do_read(indices[i], buffers);
            if (image == fields.size()) continue;
            Random random(options.seed, epoch_number, static_cast<std::uint64_t>(indices[i]));
            options.transform(scratch, random);
            if (i == 0) {
                transformed = scratch.shape();
                allocate(out[image], transformed, sizeof(float) * scratch.pixels.size());
            }
            check_transformed(scratch, transformed, indices[i], indices[0]);
            std::ranges::copy(
                std::as_bytes(std::span(scratch.pixels)),
                out[image].bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(float) * scratch.pixels.size()));
        }
        return out;
    }

    void check_transformed(const Image& transformed, const Shape& expected_shape, std::int64_t index,
                           std::int64_t first_index) const {
        if (std::cmp_not_equal(transformed.pixels.size(), transformed.shape().numel()))
            throw ShapeError(
                fmt::format("Loader: expected field '{}' of example {} with as many pixels as its shape {} "
                            "has, got {} from the transform",
                            fields[image].name, index, transformed.shape().str(), transformed.pixels.size()));
        if (!(transformed.shape() == expected_shape))
            throw ShapeError(
                fmt::format("Loader: expected field '{}' of example {} of shape {}, like in example {}, got {} "
                            "from the transform",
                            fields[image].name, index, expected_shape.str(), first_index, transformed.shape().str()));
    }

    [[nodiscard]] Example collate(std::uint64_t epoch_number, const std::vector<std::int64_t>& indices) const {
        std::vector<Example> examples;
        for (const std::int64_t index : indices) {
            std::vector<io::HostArray> arrays = dataset.do_example(index);
            if (arrays.size() != fields.size())
                throw ValueError(fmt::format("Loader: expected {} fields of example {}, {}, got {}", fields.size(),
                                             index, *names, arrays.size()));
            for (std::size_t i = 0; i < fields.size(); ++i) check_field("Loader", fields[i], arrays[i], index);
            examples.emplace_back(names, std::move(arrays), index);
            if (!options.transform) continue;
            Random random(options.seed, epoch_number, static_cast<std::uint64_t>(index));
            options.transform(examples.back(), random);
            if (examples.back().size() != fields.size())
                throw ValueError(
                    fmt::format("Loader: expected a transform that keeps the {} fields of example {}, got {}",
                                fields.size(), index, examples.back().size()));
        }
        return options.collate ? options.collate(examples) : stack(examples);
    }

    /// Checks that data matches its declared shape: otherwise copies would read out of bounds.
    FieldNames check_collated(const Example& batch_example) {
        check_names("Loader: collate", batch_example.names(), batch_example.size());
        if (batch_example.size() == 0) throw ValueError("Loader: expected fields from the collate function, got none");
        for (const io::HostArray& array : batch_example.arrays()) array.check("Loader: collate");
        const std::scoped_lock lock(mutex);
        if (!collated) collated = std::make_shared<const std::vector<std::string>>(batch_example.names());
        if (*collated != batch_example.names())
            throw ValueError(
                fmt::format("Loader: expected the same fields for each batch from the collate function, {}, "
                            "got {}",
                            *collated, batch_example.names()));
        return collated;
    }
};

namespace {

void check(const Dataset& dataset, const LoaderOptions& options) {
    if (options.batch < 1 || options.threads < 1 || options.ahead < 1)
        throw ValueError(fmt::format("Loader: expected batch, threads and ahead of at least 1, got {}, {} and {}",
                                     options.batch, options.threads, options.ahead));
    if (dataset.size() < 1) throw ValueError("Loader: expected a data set of at least one example, got an empty one");
    if (options.sampler && options.shuffle) throw ValueError("Loader: expected a sampler or shuffle, got both");
}

const Dataset& require_dataset(const std::shared_ptr<const Dataset>& dataset) {
    if (!dataset) throw ValueError("Loader: expected a data set, got null");
    return *dataset;
}

}  // namespace

Loader::Loader(const Dataset& dataset, const LoaderOptions& options) {
    check(dataset, options);
    state_ = std::make_unique<State>(dataset, options);
    for (int i = 0; i < options.threads; ++i)
        state_->threads.emplace_back([state = state_.get()] { state->run_worker(); });
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : Loader(require_dataset(dataset), options) {
    state_->dataset_owner = std::move(dataset);
}

Loader::~Loader() {
    if (!state_) return;
    if (after_fork()) {
        (void)state_.release();  // after fork(): its threads do not exist here, and its lock may be held by one of them
        return;
    }
    {
        const std::scoped_lock lock(state_->mutex);
        state_->stopping = true;
    }
    state_->work_available.notify_all();
    for (std::thread& thread : state_->threads) thread.join();
}

std::int64_t Loader::batches() const {
    const std::scoped_lock lock(state_->mutex);
    return static_cast<std::int64_t>(state_->epoch_batches.size());
}

std::int64_t Loader::examples() const {
    const std::scoped_lock lock(state_->mutex);
    std::int64_t sum = 0;
    for (const auto& batch : state_->epoch_batches) sum += static_cast<std::int64_t>(batch.size());
    return sum;
}

std::int64_t Loader::examples(std::int64_t batch) const {
    const std::scoped_lock lock(state_->mutex);
    if (batch < 0 || std::cmp_greater_equal(batch, state_->epoch_batches.size()))
        throw ValueError(
            fmt::format("Loader::examples: expected a batch in [0, {}), got {}", state_->epoch_batches.size(), batch));
    return static_cast<std::int64_t>(state_->epoch_batches[static_cast<std::size_t>(batch)].size());
}

const LoaderOptions& Loader::options() const noexcept { return state_->options; }
const Dataset& Loader::dataset() const noexcept { return state_->dataset; }

LoaderEpoch Loader::epoch(std::uint64_t epoch, std::int64_t first_batch) {
    start(epoch, first_batch);
    return LoaderEpoch(*this);
}

LoaderIterator Loader::begin() {
    start(state_->starts == 0 ? 0 : state_->epoch + 1);
    return LoaderIterator(*this);
}

void Loader::start(std::uint64_t epoch, std::int64_t first_batch) {
    declivity::detail::refuse_after_fork("Loader::start");
    Batches epoch_batches = state_->batches_of(epoch);
    if (first_batch < 0 || std::cmp_greater(first_batch, epoch_batches.size()))
        throw ValueError(
            fmt::format("Loader::start: expected a batch in [0, {}], got {}", epoch_batches.size(), first_batch));
    {
        const std::scoped_lock lock(state_->mutex);
        state_->epoch = epoch;
        ++state_->starts;
        state_->epoch_batches = std::move(epoch_batches);
        state_->prepared.clear();
        state_->next_to_prepare = state_->next_to_return = static_cast<std::size_t>(first_batch);
    }
    state_->work_available.notify_all();
}

std::optional<Batch> Loader::next() {
    declivity::detail::refuse_after_fork("Loader::next");
    const Span span("next batch", SpanKind::wait);
    std::unique_lock lock(state_->mutex);
    if (state_->starts == 0) throw ValueError("Loader::next: expected an epoch started by start(), got none");
    if (state_->next_to_return >= state_->epoch_batches.size()) return std::nullopt;
    state_->batch_ready.wait(lock, [&] { return state_->prepared.contains(state_->next_to_return); });
    Prepared prepared = std::move(state_->prepared.extract(state_->next_to_return).mapped());
    ++state_->next_to_return;
    lock.unlock();
    state_->work_available.notify_all();
    if (prepared.error) std::rethrow_exception(prepared.error);
    const Queue compute = Queue::compute(state_->device);
    for (const Event& upload : prepared.uploads)
        if (!upload.done()) compute.wait_for(upload);
    return std::move(prepared.batch);
}

LoaderIterator::LoaderIterator(Loader& loader)
    : loader_(&loader), start_(loader.state_->starts), batch_(loader.next()) {}

LoaderIterator& LoaderIterator::operator++() {
    if (loader_->state_->starts != start_)
        throw ValueError("Loader: expected an epoch in progress, got one abandoned by another start()");
    batch_ = loader_->next();
    return *this;
}

}  // namespace declivity::data
