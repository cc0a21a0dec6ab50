// Floor 5. Loader: examples of a data set as batches on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <declivity/data/dataset.hpp>
#include <declivity/data/transforms.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::data {

/// Some examples, on the device.
struct Batch {
    Tensor features;          ///< f32, (size, shape of one example...)
    Tensor labels;            ///< i64, (size)
    std::int64_t number = 0;  ///< position in the epoch, from 0
    std::int64_t size = 0;
};

struct LoaderOptions {
    std::int64_t batch = 64;
    bool shuffle = false;    ///< another order each epoch, from (seed, epoch)
    bool drop_last = false;  ///< leave out the last batch when it is smaller than the others
    std::uint64_t seed = 0;
    Transform transform = {};  ///< for images (C, H, W); its random numbers come from (seed, epoch, index) alone
    int threads = 1;           ///< that read and transform in the background
    int ahead = 3;             ///< batches prepared before they are asked for, on their way to the device
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Prepares batches in background threads and copies them to the device ahead of their use. What a batch holds depends
/// on seed and epoch alone, not on the number of threads.
class DECLIVITY_API Loader {
  public:
    /// The data set must outlive the loader.
    /// @throws ValueError for an empty data set or a batch, threads or ahead below 1
    Loader(const Dataset& dataset, const LoaderOptions& options);
    Loader(const Dataset&& dataset, const LoaderOptions& options) = delete;  // it would end before the loader
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// Batches of an epoch.
    [[nodiscard]] std::int64_t batches() const noexcept;
    [[nodiscard]] const LoaderOptions& options() const noexcept;
    [[nodiscard]] const Dataset& dataset() const noexcept;

    /// Begins an epoch at one of its batches; what is left of an earlier one is dropped.
    void start(std::uint64_t epoch, std::int64_t first_batch = 0);
    /// The next batch of the epoch, or nothing when it is over. Waits for the background threads, not for the device.
    /// @throws whatever reading or transforming an example threw
    [[nodiscard]] std::optional<Batch> next();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace declivity::data
