#include <declivity/data/batch.hpp>

#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "field_names.hpp"

namespace declivity::data {

Batch::Batch(std::vector<std::string> names, std::vector<Tensor> tensors, std::int64_t number_in_epoch,
             std::int64_t examples)
    : number(number_in_epoch), size(examples), tensors_(std::move(tensors)) {
    check_names("Batch", names, tensors_.size());
    names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
}

Batch::Batch(FieldNames names, std::vector<Tensor> tensors, std::int64_t number_in_epoch, std::int64_t examples)
    : number(number_in_epoch), size(examples), names_(std::move(names)), tensors_(std::move(tensors)) {}

const std::vector<std::string>& Batch::names() const noexcept {
    static const std::vector<std::string> no_names;
    return names_ ? *names_ : no_names;
}

bool Batch::has(std::string_view name) const noexcept { return std::ranges::find(names(), name) != names().end(); }

const Tensor& Batch::operator[](std::string_view name) const { return tensors_[position_of("Batch", names(), name)]; }

const Tensor& Batch::at(std::int64_t position) const {
    if (position < 0 || std::cmp_greater_equal(position, tensors_.size()))
        throw ValueError(fmt::format("Batch: expected the position of a field in [0, {}), of {}, got {}",
                                     tensors_.size(), names(), position));
    return tensors_[static_cast<std::size_t>(position)];
}

void Batch::require_count(std::size_t count) const {
    if (tensors_.size() != count)
        throw ValueError(
            fmt::format("Batch::tensors: expected {} fields, got a batch of {}: {}", count, tensors_.size(), names()));
}

Batch Batch::with(std::vector<Tensor> tensors) const {
    if (tensors.size() != tensors_.size())
        throw ValueError(fmt::format("Batch::with: expected {} tensors, got {}", tensors_.size(), tensors.size()));
    return {names_, std::move(tensors), number, size};
}

}  // namespace declivity::data
