// Layer 7, private. Fields of a config.json, each checked as it is read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "io/json_file.hpp"

namespace declivity::models {

class ConfigFile {
  public:
    explicit ConfigFile(const std::filesystem::path& path)
        : file_(path, std::uint64_t{4} << 20), object_(&file_.root()) {}

    /// Enters a nested object, whose fields are read next; false if it is missing or null.
    bool enter(const char* key) {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return false;
        if (!found->is_object()) refuse(key, "an object", *found);
        object_ = found;
        return true;
    }
    void leave() { object_ = &file_.root(); }

    /// Fields that are missing, or null, keep their values.
    void read(const char* key, std::int64_t& value, std::int64_t min_value = 1) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return;
        if (!found->is_number_integer()) refuse(key, "an integer", *found);
        if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxSize))
            refuse(key, fmt::format("at most {}", kMaxSize), *found);
        value = found->get<std::int64_t>();
        if (value < min_value) refuse(key, fmt::format("at least {}", min_value), *found);
    }
    void read(const char* key, std::optional<std::int64_t>& value) const {
        if (find(key) == nullptr) return;
        std::int64_t parsed = 1;
        read(key, parsed);
        value = parsed;
    }
    void read(const char* key, double& value) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return;
        if (!found->is_number() || !std::isfinite(found->get<double>())) refuse(key, "a number", *found);
        value = found->get<double>();
    }
    void read(const char* key, std::optional<double>& value) const {
        if (find(key) == nullptr) return;
        double parsed = 0;
        read(key, parsed);
        value = parsed;
    }
    void read(const char* key, bool& value) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return;
        if (!found->is_boolean()) refuse(key, "true or false", *found);
        value = found->get<bool>();
    }
    void read(const char* key, std::string& value) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return;
        if (!found->is_string()) refuse(key, "a text", *found);
        value = found->get<std::string>();
    }
    /// null resets the field.
    void read_or_null(const char* key, std::optional<std::int64_t>& value) const {
        read_keys_.insert(key);
        const auto found = object_->find(key);
        if (found == object_->end()) return;
        value = std::nullopt;
        read(key, value);
    }
    /// Number of entries of a list or object.
    [[nodiscard]] std::optional<std::int64_t> count(const char* key) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return std::nullopt;
        if (!found->is_object() && !found->is_array()) refuse(key, "a list or an object", *found);
        return static_cast<std::int64_t>(found->size());
    }
    /// A token id; some models have one outside of their vocabulary.
    void read_token(const char* key, std::optional<std::int64_t>& value) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return;
        require_token(key, *found);
        value = found->get<std::int64_t>();
    }
    /// One token id, or a list of them.
    void read_tokens(const char* key, std::vector<std::int64_t>& values) const {
        const nlohmann::json* found = find(key);
        if (found == nullptr) return;
        for (const nlohmann::json& token : found->is_array() ? *found : nlohmann::json::array({*found})) {
            require_token(key, token);
            values.push_back(token.get<std::int64_t>());
        }
    }
    /// All keys that were not read, and those of `always_included` that exist.
    [[nodiscard]] std::map<std::string, std::string> other_fields(
        std::initializer_list<const char*> always_included = {}) const {
        std::map<std::string, std::string> out;
        for (const auto& [key, value] : file_.root().items())
            if (!read_keys_.contains(key) || std::ranges::find(always_included, key) != always_included.end())
                out[key] = value.dump();
        return out;
    }
    [[nodiscard]] const nlohmann::json* find(const char* key) const {
        if (object_ == &file_.root()) read_keys_.insert(key);
        const auto found = object_->find(key);
        return found == object_->end() || found->is_null() ? nullptr : &*found;
    }
    void require_false(const char* key) const {
        bool value = false;
        read(key, value);
        if (value) refuse(key, "false", true);
    }
    [[noreturn]] void refuse(const char* key, const std::string& expected, const nlohmann::json& value) const {
        std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        if (text.size() > 40) text = text.substr(0, 40) + "...";
        file_.fail(key, fmt::format("'{}' expected {}, got {}", key, expected, text));
    }
    /// Reports the errors of a config's check() at the position of a key.
    template <class Config>
    const Config& checked(const Config& config, const char* key) const {
        try {
            const ResumedScope no_scope{ScopePath()};  // the enclosing message names the function
            config.check();
        } catch (const ValueError& error) {
            file_.fail(key, error.what());
        }
        return config;
    }

  private:
    void require_token(const char* key, const nlohmann::json& token) const {
        if (!token.is_number_integer() ||
            (token.is_number_unsigned() && token.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)))
            refuse(key, "a token", token);
    }

    io::JsonFile file_;
    const nlohmann::json* object_;
    mutable std::set<std::string> read_keys_;  // keys of the root that were read
};

}  // namespace declivity::models
