// Layer 7, private. Names of fields.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <declivity/data/example.hpp>

namespace declivity::data {

/// @throws ValueError naming `what`, such as "Batch", if there is no such name
std::size_t position_of(std::string_view what, const std::vector<std::string>& names, std::string_view name);
/// @throws ValueError naming `what` unless there are `count` names, each once
void check_names(std::string_view what, const std::vector<std::string>& names, std::size_t count);
/// @throws ValueError naming `what` for no field, or a duplicate name
FieldNames names_of(std::string_view what, const std::vector<Field>& fields);
/// Checks an array against its field. @throws TypeError, ShapeError naming field and example
void check_field(std::string_view what, const Field& field, const io::HostArray& array, std::int64_t index);

}  // namespace declivity::data
