// Layer 7. Example: one element of a data set, as host tensors with field names.
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

/// @addtogroup data
/// @{

/// Description of a field of a data set, such as an image, a label, a mask or tokens.
struct Field {
    std::string name;
    DType dtype = DType::f32;
    /// Shape of the tensor of one example; none if it varies between examples.
    std::optional<Shape> shape = std::nullopt;
    /// For class labels: the names of classes 0, 1, ...
    std::vector<std::string> class_names = {};
};

/// Field names, in order; shared by the batches of a loader.
using FieldNames = std::shared_ptr<const std::vector<std::string>>;

/// Host tensors in the order of a data set's fields. A collate function combines several examples into one.
class DECLIVITY_API Example {
  public:
    Example() = default;
    /// @throws ValueError unless there is exactly one unique name for each array
    Example(std::vector<std::string> names, std::vector<io::HostArray> arrays);
    /// Overload that does not validate the names.
    Example(FieldNames names, std::vector<io::HostArray> arrays, std::int64_t index);

    [[nodiscard]] std::size_t size() const noexcept { return arrays_.size(); }
    [[nodiscard]] const std::vector<std::string>& names() const noexcept;
    /// Array at the given position. @throws ValueError if it is out of range
    [[nodiscard]] const io::HostArray& operator[](std::size_t position) const;
    [[nodiscard]] io::HostArray& operator[](std::size_t position);
    /// Array of the given name. @throws ValueError listing the available names if there is none
    [[nodiscard]] const io::HostArray& operator[](std::string_view name) const;
    [[nodiscard]] io::HostArray& operator[](std::string_view name);
    [[nodiscard]] std::vector<io::HostArray>& arrays() noexcept { return arrays_; }
    [[nodiscard]] const std::vector<io::HostArray>& arrays() const noexcept { return arrays_; }
    /// Index in the data set; -1 if it does not come from one.
    [[nodiscard]] std::int64_t index() const noexcept { return index_; }

  private:
    FieldNames names_;
    std::vector<io::HostArray> arrays_;
    std::int64_t index_ = -1;
};

/// @}

}  // namespace declivity::data
