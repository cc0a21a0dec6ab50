// Layer 7. DatasetRef: a data set as a function argument, by reference or as a shared pointer.
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <declivity/data/dataset.hpp>
#include <declivity/export.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// Argument type of functions that use a data set during the call: a reference, which must outlive the call, or a
/// std::shared_ptr, which is copied. load_mnist, take and the text readers return shared pointers.
class DECLIVITY_API DatasetRef {
  public:
    DatasetRef(const Dataset& dataset) : dataset_(&dataset) {}  // NOLINT: an argument
    /// @throws ValueError for null, on use
    template <class D>
    requires std::derived_from<std::remove_const_t<D>, Dataset> DatasetRef(std::shared_ptr<D> dataset)  // NOLINT
        : shared_(std::move(dataset)), dataset_(shared_.get()) {}

    /// @throws ValueError, naming `function`, if it was made from a null pointer
    [[nodiscard]] const Dataset& get(std::string_view function = "DatasetRef") const;
    operator const Dataset&() const { return get(); }  // NOLINT
    [[nodiscard]] const Dataset* operator->() const { return &get(); }

  private:
    std::shared_ptr<const Dataset> shared_;
    const Dataset* dataset_;
};

/// @}

}  // namespace declivity::data
