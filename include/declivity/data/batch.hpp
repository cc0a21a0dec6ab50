// Layer 7. Batch: several examples on a device.
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

/// @addtogroup data
/// @{

/// The fields of several examples, each a tensor of shape (size, shape of one example...) unless a custom collate
/// function made it: `batch["mask"]`, `batch[0]`, `const auto [image, mask] = batch.tensors<2>()`.
class DECLIVITY_API Batch {
  public:
    Batch() = default;
    /// @throws ValueError unless there is exactly one unique name for each tensor
    Batch(std::vector<std::string> names, std::vector<Tensor> tensors, std::int64_t number, std::int64_t size);
    /// Overload that does not validate the names.
    Batch(FieldNames names, std::vector<Tensor> tensors, std::int64_t number, std::int64_t size);

    /// Tensor of the given name. @throws ValueError listing the available names if there is none
    [[nodiscard]] const Tensor& operator[](std::string_view name) const;
    /// Tensor at the given position. @throws ValueError if it is out of range
    template <std::integral Position>
    [[nodiscard]] const Tensor& operator[](Position position) const {
        return at(static_cast<std::int64_t>(position));
    }
    /// All tensors, for structured bindings. @throws ValueError unless there are exactly Count of them
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
    /// Copy of the batch with other tensors, such as those of a captured step. @throws ValueError if their number
    /// differs
    [[nodiscard]] Batch with(std::vector<Tensor> tensors) const;

    std::int64_t number = 0;  ///< position in the epoch, from 0
    std::int64_t size = 0;    ///< number of examples

  private:
    [[nodiscard]] const Tensor& at(std::int64_t position) const;
    void require_count(std::size_t count) const;

    FieldNames names_;
    std::vector<Tensor> tensors_;
};

/// @}

}  // namespace declivity::data
