// Layer 5. Batch: some examples together, on a device.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/data/example.hpp>
#include <declivity/tensor/tensor.hpp>

namespace declivity::data {

/// The fields of some examples, each a tensor (size, shape of one example...) unless a collate function made it
/// otherwise: `batch["mask"]`, `batch[0]`, `const auto [image, mask] = batch.tensors<2>()`.
class DECLIVITY_API Batch {
  public:
    Batch() = default;
    /// @throws ValueError unless there is one name for each tensor, and each name once
    Batch(std::vector<std::string> names, std::vector<Tensor> tensors, std::int64_t number, std::int64_t size);
    /// The same with names that are known to fit.
    Batch(FieldNames names, std::vector<Tensor> tensors, std::int64_t number, std::int64_t size);

    /// By name. @throws ValueError naming those there are
    [[nodiscard]] const Tensor& operator[](std::string_view name) const;
    /// By position. @throws ValueError when there is none
    template <std::integral Position>
    [[nodiscard]] const Tensor& operator[](Position position) const {
        return at(static_cast<std::int64_t>(position));
    }
    /// All of them. @throws ValueError when they are not so many
    template <std::size_t Count>
    [[nodiscard]] std::array<Tensor, Count> tensors() const {
        require_count(Count);
        std::array<Tensor, Count> all;
        for (std::size_t i = 0; i < Count; ++i) all[i] = tensors_[i];
        return all;
    }
    [[nodiscard]] const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
    [[nodiscard]] const std::vector<std::string>& names() const noexcept;
    [[nodiscard]] bool has(std::string_view name) const noexcept;
    /// The same batch with other tensors: those of a recorded step, say. @throws ValueError when they are not as many
    [[nodiscard]] Batch with(std::vector<Tensor> tensors) const;

    std::int64_t number = 0;  ///< position in the epoch, from 0
    std::int64_t size = 0;    ///< examples

  private:
    [[nodiscard]] const Tensor& at(std::int64_t position) const;
    void require_count(std::size_t count) const;

    FieldNames names_;
    std::vector<Tensor> tensors_;
};

}  // namespace declivity::data
