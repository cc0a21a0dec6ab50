// Floor 1, private. Environment variables, which the README lists. They are read anew at each call; one that is empty
// counts as unset, but where said otherwise. What is not understood is an error where the variable is first needed,
// never a value by default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace declivity::detail {

/// The variable's text, empty when it is unset.
std::string_view environment_text(const char* name);
/// The same where an empty text means something; none when it is unset.
std::optional<std::string_view> environment_given(const char* name);
/// True for 1, false for 0, `otherwise` when it is unset.
/// @throws ValueError for anything else
bool environment_switch(const char* name, bool otherwise);
/// Which of `words` it is, none when it is unset.
/// @throws ValueError for anything else
std::optional<std::size_t> environment_choice(const char* name, std::initializer_list<std::string_view> words);
/// Bytes, or with a K, M or G behind the number; none when it is unset.
/// @throws ValueError for anything else
std::optional<std::uint64_t> environment_bytes(const char* name);
/// A folder that exists; empty when it is unset.
/// @throws ValueError for anything else
std::string_view environment_folder(const char* name);

/// Where compiled programs and measurements are kept: DECLIVITY_CACHE_DIR, or a folder of the user's. Empty: nowhere,
/// as when the variable is empty.
std::filesystem::path cache_folder();

}  // namespace declivity::detail
