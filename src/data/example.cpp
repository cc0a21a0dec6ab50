#include <declivity/data/example.hpp>

#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "field_names.hpp"

namespace declivity::data {

std::size_t position_of(std::string_view what, const std::vector<std::string>& names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
        throw ValueError(fmt::format("{}: expected the name of a field, one of {}, got '{}'", what, names, name));
    return static_cast<std::size_t>(found - names.begin());
}

void check_names(std::string_view what, const std::vector<std::string>& names, std::size_t count) {
    if (names.size() != count)
        throw ValueError(fmt::format("{}: expected a name for each of {} tensors, got {}", what, count, names));
    for (std::size_t i = 0; i < names.size(); ++i)
        if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
            names.begin() + static_cast<std::ptrdiff_t>(i))
            throw ValueError(fmt::format("{}: expected each name once, got {}", what, names));
}

FieldNames names_of(std::string_view what, const std::vector<Field>& fields) {
    if (fields.empty()) throw ValueError(fmt::format("{}: expected at least one field, got none", what));
    std::vector<std::string> names;
    for (const Field& field : fields) names.push_back(field.name);
    check_names(what, names, fields.size());
    return std::make_shared<const std::vector<std::string>>(std::move(names));
}

void check_field(std::string_view what, const Field& field, const io::HostArray& array, std::int64_t index) {
    if (array.dtype != field.dtype)
        throw TypeError(fmt::format("{}: expected field '{}' of example {} of type {}, got {}", what, field.name, index,
                                    name_of(field.dtype), name_of(array.dtype)));
    if (field.shape && !(array.shape == *field.shape))
        throw ShapeError(fmt::format("{}: expected field '{}' of example {} of shape {}, got {}", what, field.name,
                                     index, field.shape->str(), array.shape.str()));
    if (array.bytes.size() != static_cast<std::size_t>(array.shape.numel()) * size_of(array.dtype))
        throw ShapeError(fmt::format("{}: expected field '{}' of example {} with {} bytes for its shape {}, got {}",
                                     what, field.name, index,
                                     static_cast<std::size_t>(array.shape.numel()) * size_of(array.dtype),
                                     array.shape.str(), array.bytes.size()));
}

Example::Example(std::vector<std::string> names, std::vector<io::HostArray> arrays) : arrays_(std::move(arrays)) {
    check_names("Example", names, arrays_.size());
    names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
}

Example::Example(FieldNames names, std::vector<io::HostArray> arrays, std::int64_t index)
    : names_(std::move(names)), arrays_(std::move(arrays)), index_(index) {}

const std::vector<std::string>& Example::names() const noexcept {
    static const std::vector<std::string> no_names;
    return names_ ? *names_ : no_names;
}

const io::HostArray& Example::operator[](std::size_t position) const {
    if (position >= arrays_.size())
        throw ValueError(fmt::format("Example: expected the position of a field below {}, got {}", arrays_.size(),
                                     static_cast<std::int64_t>(position)));
    return arrays_[position];
}

io::HostArray& Example::operator[](std::size_t position) {
    return const_cast<io::HostArray&>(std::as_const(*this)[position]);
}

const io::HostArray& Example::operator[](std::string_view name) const {
    return arrays_[position_of("Example", names(), name)];
}

io::HostArray& Example::operator[](std::string_view name) { return arrays_[position_of("Example", names(), name)]; }

}  // namespace declivity::data
