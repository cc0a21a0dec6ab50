// Layer 7. Loader: loads examples of a data set as batches on a device.
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

/// @addtogroup data
/// @{

struct LoaderOptions {
    std::int64_t batch = 64;
    bool shuffle = false;    ///< shuffle each epoch, by (seed, epoch)
    bool drop_last = false;  ///< drop the last batch if it is smaller than `batch`
    std::uint64_t seed = 0;
    Transform transform = {};  ///< its random numbers depend on (seed, epoch, index) only
    Collate collate = {};      ///< stack() if empty
    /// Order and selection of examples; replaces `shuffle`.
    std::shared_ptr<const Sampler> sampler = nullptr;
    int threads = 1;                              ///< background threads that read and transform
    int ahead = 3;                                ///< prefetched batches, whose copies to the device are in flight
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

class LoaderEpoch;
class LoaderIterator;

/// Prepares batches in background threads and prefetches them to the device. The contents of a batch depend on seed and
/// epoch only, not on the number of threads.
///
///     for (const data::Batch& batch : loader.epoch(3)) train(batch["image"], batch["label"]);
///     for (const data::Batch& batch : loader) ...   // the epoch after the previous one, initially 0
class DECLIVITY_API Loader {
  public:
    /// The data set must outlive the loader.
    /// @throws ValueError for an empty data set; for batch, threads or ahead below 1; for a data set without fields or
    /// with duplicate field names; and for an image transform unless exactly one field is an image
    Loader(const Dataset& dataset, const LoaderOptions& options);
    Loader(const Dataset&& dataset, const LoaderOptions& options) = delete;  // the loader would outlive a temporary
    /// The loader shares ownership of the data set. @throws ValueError for null, and as above
    Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// Number of batches of the current epoch; before the first one, of epoch 0.
    [[nodiscard]] std::int64_t batches() const;
    /// Number of examples of that epoch.
    [[nodiscard]] std::int64_t examples() const;
    /// Number of examples of one of its batches. @throws ValueError if there is no such batch
    [[nodiscard]] std::int64_t examples(std::int64_t batch) const;
    [[nodiscard]] const LoaderOptions& options() const noexcept;
    [[nodiscard]] const Dataset& dataset() const noexcept;

    /// The batches of an epoch, starting at `first_batch`, as a single-pass range. The loop may be left early.
    /// @throws ValueError as start()
    [[nodiscard]] LoaderEpoch epoch(std::uint64_t epoch, std::int64_t first_batch = 0);
    /// Starts the next epoch: the one after that of the last start(), or 0.
    [[nodiscard]] LoaderIterator begin();
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /// Starts an epoch at one of its batches; the rest of the previous epoch is discarded.
    /// @throws ValueError for a batch out of range or an index of the sampler out of range; any exception of the
    /// sampler
    void start(std::uint64_t epoch, std::int64_t first_batch = 0);
    /// Returns the next batch of the epoch, or nothing at its end. Blocks for the background threads, not for the
    /// device.
    /// @throws any exception thrown while reading, transforming or collating an example; ShapeError, TypeError and
    /// ValueError naming field and example if they do not match
    [[nodiscard]] std::optional<Batch> next();

  private:
    friend class LoaderIterator;
    struct State;
    std::unique_ptr<State> state_;
};

/// Input iterator over batches.
class DECLIVITY_API LoaderIterator {
  public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    LoaderIterator() = default;
    explicit LoaderIterator(Loader& loader);
    [[nodiscard]] const Batch& operator*() const { return *batch_; }
    [[nodiscard]] const Batch* operator->() const { return &*batch_; }
    /// @throws ValueError if the loader has started another epoch in the meantime; as Loader::next()
    LoaderIterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const LoaderIterator& at, std::default_sentinel_t) noexcept { return !at.batch_; }

  private:
    Loader* loader_ = nullptr;
    std::uint64_t start_ = 0;
    std::optional<Batch> batch_;
};

/// Range returned by Loader::epoch.
class LoaderEpoch {
  public:
    explicit LoaderEpoch(Loader& loader) : loader_(&loader) {}
    [[nodiscard]] LoaderIterator begin() const { return LoaderIterator(*loader_); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  private:
    Loader* loader_;
};

/// @}

}  // namespace declivity::data
