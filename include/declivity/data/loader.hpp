// Layer 5. Loader: examples of a data set as batches on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

#include <declivity/data/batch.hpp>
#include <declivity/data/collate.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/sampler.hpp>
#include <declivity/data/transforms.hpp>

namespace declivity::data {

struct LoaderOptions {
    std::int64_t batch = 64;
    bool shuffle = false;    ///< another order each epoch, from (seed, epoch)
    bool drop_last = false;  ///< leave out the last batch when it is smaller than `batch`
    std::uint64_t seed = 0;
    Transform transform = {};  ///< its random numbers come from (seed, epoch, index) alone
    Collate collate = {};      ///< stacks each field if none
    /// Order and choice of examples, in place of `shuffle`.
    std::shared_ptr<const Sampler> sampler = nullptr;
    int threads = 1;  ///< that read and transform in the background
    int ahead = 3;    ///< batches prepared before they are asked for, on their way to the device
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

class LoaderEpoch;
class LoaderIterator;

/// Prepares batches in background threads and copies them to the device ahead of their use. What a batch holds depends
/// on seed and epoch alone, not on the number of threads.
///
///     for (const data::Batch& batch : loader.epoch(3)) train(batch["image"], batch["label"]);
///     for (const data::Batch& batch : loader) ...   // the epoch after that of before, 0 at first
class DECLIVITY_API Loader {
  public:
    /// The data set must outlive the loader.
    /// @throws ValueError for an empty data set, a batch, threads or ahead below 1, a data set of no fields or with a
    /// name that comes twice, and a transform of an image where there is no such field, or several
    Loader(const Dataset& dataset, const LoaderOptions& options);
    Loader(const Dataset&& dataset, const LoaderOptions& options) = delete;  // it would end before the loader
    /// The loader holds the data set. @throws ValueError for null, and as above
    Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// Batches of the epoch under way; before the first one, those of epoch 0.
    [[nodiscard]] std::int64_t batches() const;
    /// Examples of that epoch.
    [[nodiscard]] std::int64_t examples() const;
    /// Of one of its batches. @throws ValueError when there is none
    [[nodiscard]] std::int64_t examples(std::int64_t batch) const;
    [[nodiscard]] const LoaderOptions& options() const noexcept;
    [[nodiscard]] const Dataset& dataset() const noexcept;

    /// The batches of an epoch, from one of them on, to go through once. To leave early is no harm.
    /// @throws ValueError as start() does
    [[nodiscard]] LoaderEpoch epoch(std::uint64_t epoch, std::int64_t first_batch = 0);
    /// Begins the next epoch: the one after that of the last start(), or 0.
    [[nodiscard]] LoaderIterator begin();
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /// Begins an epoch at one of its batches; what is left of an earlier one is dropped.
    /// @throws ValueError for a batch that there is not, and for a sampler's index that there is not; whatever the
    /// sampler throws
    void start(std::uint64_t epoch, std::int64_t first_batch = 0);
    /// The next batch of the epoch, or nothing when it is over. Waits for the background threads, not for the device.
    /// @throws whatever reading, transforming or collating an example threw; ShapeError, TypeError and ValueError
    /// naming field and example where they do not fit together
    [[nodiscard]] std::optional<Batch> next();

  private:
    friend class LoaderIterator;
    struct State;
    std::unique_ptr<State> state_;
};

/// Of a range-for over batches.
class DECLIVITY_API LoaderIterator {
  public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    LoaderIterator() = default;
    explicit LoaderIterator(Loader& loader);
    [[nodiscard]] const Batch& operator*() const { return *batch_; }
    [[nodiscard]] const Batch* operator->() const { return &*batch_; }
    /// @throws ValueError when the loader has begun another epoch meanwhile; what Loader::next() throws
    LoaderIterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const LoaderIterator& at, std::default_sentinel_t) noexcept { return !at.batch_; }

  private:
    Loader* loader_ = nullptr;
    std::uint64_t start_ = 0;
    std::optional<Batch> batch_;
};

/// What Loader::epoch gives.
class LoaderEpoch {
  public:
    explicit LoaderEpoch(Loader& loader) : loader_(&loader) {}
    [[nodiscard]] LoaderIterator begin() const { return LoaderIterator(*loader_); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  private:
    Loader* loader_;
};

}  // namespace declivity::data
