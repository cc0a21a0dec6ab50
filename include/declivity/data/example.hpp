// Layer 5. Example: one element of a data set, as tensors on the host with the names of their fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/io/host_array.hpp>

namespace declivity::data {

/// What a data set has of each example: an image, a label, a mask, tokens.
struct Field {
    std::string name;
    DType dtype = DType::f32;
    /// Of one example's tensor; none where it differs from example to example.
    std::optional<Shape> shape = std::nullopt;
    /// Where the field is the number of a class: the names of the classes 0, 1, ...
    std::vector<std::string> class_names = {};
};

/// Names of fields, in order; batches of one loader share them.
using FieldNames = std::shared_ptr<const std::vector<std::string>>;

/// Tensors on the host, in the order of a data set's fields. A collate function makes one of several examples.
class DECLIVITY_API Example {
  public:
    Example() = default;
    /// @throws ValueError unless there is one name for each array, and each name once
    Example(std::vector<std::string> names, std::vector<io::HostArray> arrays);
    /// The same with names that are known to fit.
    Example(FieldNames names, std::vector<io::HostArray> arrays, std::int64_t index);

    [[nodiscard]] std::size_t size() const noexcept { return arrays_.size(); }
    [[nodiscard]] const std::vector<std::string>& names() const noexcept;
    /// By position. @throws ValueError when there is none
    [[nodiscard]] const io::HostArray& operator[](std::size_t position) const;
    [[nodiscard]] io::HostArray& operator[](std::size_t position);
    /// By name. @throws ValueError naming those there are
    [[nodiscard]] const io::HostArray& operator[](std::string_view name) const;
    [[nodiscard]] io::HostArray& operator[](std::string_view name);
    [[nodiscard]] std::vector<io::HostArray>& arrays() noexcept { return arrays_; }
    [[nodiscard]] const std::vector<io::HostArray>& arrays() const noexcept { return arrays_; }
    /// Its place in the data set; -1 where it is of none.
    [[nodiscard]] std::int64_t index() const noexcept { return index_; }

  private:
    FieldNames names_;
    std::vector<io::HostArray> arrays_;
    std::int64_t index_ = -1;
};

}  // namespace declivity::data
