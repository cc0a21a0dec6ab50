#include <declivity/text/vocabulary.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_set>
#include <utility>

#include <declivity/io/atomic_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "json_reader.hpp"
#include "model.hpp"
#include "unicode.hpp"

namespace declivity::text {

struct Vocabulary::State {
    std::vector<std::string> tokens;
    std::vector<std::int64_t> counts;
    Ids ids;
    std::optional<std::string> unk_token;
    std::optional<std::int64_t> unk_id;
};

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::optional<std::string> unk_token,
                       std::vector<std::int64_t> counts) {
    auto state = std::make_shared<State>();
    if (counts.empty()) counts.assign(tokens.size(), 0);
    if (counts.size() != tokens.size())
        throw ValueError(
            fmt::format("Vocabulary: expected a count for each of {} tokens, got {}", tokens.size(), counts.size()));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (!state->ids.try_emplace(tokens[i], static_cast<Id>(i)).second)
            throw ValueError(fmt::format("Vocabulary: expected each token once, got '{}' twice", tokens[i]));
    if (unk_token) {
        const auto found = state->ids.find(*unk_token);
        if (found == state->ids.end())
            throw ValueError(fmt::format("Vocabulary: expected an unk_token among the tokens, got '{}'", *unk_token));
        state->unk_id = found->second;
    }
    state->tokens = std::move(tokens);
    state->counts = std::move(counts);
    state->unk_token = std::move(unk_token);
    state_ = std::move(state);
}

namespace {

Vocabulary from_counts(const Model::Counts& counts, const VocabularyOptions& options) {
    if (options.min_frequency < 1)
        throw ValueError(
            fmt::format("Vocabulary: expected a min_frequency of at least 1, got {}", options.min_frequency));
    require_not_empty("Vocabulary", "specials", options.specials);
    if (options.unk_token) require_not_empty("Vocabulary", "an unk_token", {*options.unk_token});
    std::vector<std::string> tokens = options.specials;
    if (options.unk_token && std::ranges::find(tokens, *options.unk_token) == tokens.end())
        tokens.insert(tokens.begin(), *options.unk_token);
    const std::unordered_set<std::string> special(tokens.begin(), tokens.end());
    const auto max_tokens = static_cast<std::size_t>(options.max_size.value_or(INT64_MAX));
    if (options.max_size.value_or(0) < 0 || max_tokens < tokens.size())
        throw ValueError(fmt::format("Vocabulary: expected a max_size of at least the {} special tokens, got {}",
                                     tokens.size(), options.max_size.value_or(0)));
    std::vector<std::pair<std::string, std::int64_t>> order;
    for (const auto& [token, count] : counts)
        if (count >= options.min_frequency && !special.contains(token)) order.emplace_back(token, count);
    std::ranges::sort(order, [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    order.resize(std::min(order.size(), max_tokens - tokens.size()));
    std::vector<std::int64_t> token_counts(tokens.size(), 0);
    for (auto& [token, count] : order) {
        tokens.push_back(std::move(token));
        token_counts.push_back(count);
    }
    return Vocabulary(std::move(tokens), options.unk_token, std::move(token_counts));
}

}  // namespace

Vocabulary Vocabulary::of(const Corpus& corpus, const Split& split, const VocabularyOptions& options) {
    if (!split) throw ValueError("Vocabulary: expected a function that splits a text into tokens, got an empty one");
    Model::Counts counts;
    corpus.for_each([&](const std::string& text) {
        for (std::string& token : split(text)) ++counts[std::move(token)];
    });
    return from_counts(counts, options);
}

Vocabulary Vocabulary::of(std::span<const std::string> tokens, const VocabularyOptions& options) {
    Model::Counts counts;
    for (const std::string& token : tokens) ++counts[token];
    return from_counts(counts, options);
}

std::int64_t Vocabulary::size() const noexcept { return static_cast<std::int64_t>(state_->tokens.size()); }
bool Vocabulary::has(std::string_view token) const noexcept { return state_->ids.contains(token); }
std::optional<std::int64_t> Vocabulary::unk_id() const noexcept { return state_->unk_id; }
const std::vector<std::string>& Vocabulary::tokens() const noexcept { return state_->tokens; }

std::int64_t Vocabulary::id(std::string_view token) const {
    if (const auto found = state_->ids.find(token); found != state_->ids.end()) return found->second;
    if (state_->unk_id) return *state_->unk_id;
    throw ValueError(
        fmt::format("Vocabulary::id: expected a token of the vocabulary, which has no unk_token, got '{}'", token));
}

std::vector<std::int64_t> Vocabulary::ids(std::span<const std::string> tokens) const {
    std::vector<std::int64_t> out;
    out.reserve(tokens.size());
    for (const std::string& token : tokens) out.push_back(id(token));
    return out;
}

const std::string& Vocabulary::token(std::int64_t id) const {
    if (id < 0 || id >= size())
        throw ValueError(fmt::format("Vocabulary::token: expected an id from 0 to {}, got {}", size() - 1, id));
    return state_->tokens[static_cast<std::size_t>(id)];
}

std::vector<std::string> Vocabulary::tokens(std::span<const std::int64_t> ids) const {
    std::vector<std::string> out;
    out.reserve(ids.size());
    for (const std::int64_t id : ids) out.push_back(token(id));
    return out;
}

std::int64_t Vocabulary::count(std::int64_t id) const {
    (void)token(id);
    return state_->counts[static_cast<std::size_t>(id)];
}

void Vocabulary::save(const std::filesystem::path& path) const {
    const FunctionScope function("Vocabulary::save");
    std::string out = "{\"unk_token\": " + (state_->unk_token ? json_string(*state_->unk_token) : "null");
    out += ",\n\"tokens\": [";
    for (std::size_t i = 0; i < state_->tokens.size(); ++i)
        out += fmt::format("{}{}", i == 0 ? "" : ",", json_string(state_->tokens[i]));
    out += fmt::format("],\n\"counts\": [{}]}}\n", fmt::join(state_->counts, ","));
    io::write_file(path, std::as_bytes(std::span(out)));
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
    const FunctionScope function("Vocabulary::load");
    const JsonValue::Document document(path.string(), detail::read_json_text(path));
    const JsonValue description(document);
    const JsonValue list = description["tokens"], counts = description["counts"];
    if (counts.size() != list.size())
        counts.fail(fmt::format("expected a count for each of {} tokens, got {}", list.size(), counts.size()));
    std::vector<std::string> tokens;
    std::vector<std::int64_t> token_counts;
    for (std::size_t i = 0; i < list.size(); ++i) {
        tokens.push_back(list.at(i).string());
        token_counts.push_back(counts.at(i).integer(0, INT64_MAX));
    }
    std::optional<std::string> unk_token;
    if (description.has("unk_token")) unk_token = description["unk_token"].string();
    try {
        return Vocabulary(std::move(tokens), std::move(unk_token), std::move(token_counts));
    } catch (const ValueError& error) {
        description.fail(error.what());
    }
}

std::vector<std::string> words(std::string_view text) {
    const std::string valid = to_valid(text);
    const auto kind = [](char32_t c) { return is_word(c) ? 1 : is_whitespace(c) ? 0 : 2; };
    std::vector<std::string> out;
    for (std::size_t pos = 0, begin = 0; pos < valid.size();) {
        const Decoded decoded = decode_at(valid, pos);
        const int current_kind = kind(decoded.c);
        pos += decoded.size;
        if (pos < valid.size() && kind(decode_at(valid, pos).c) == current_kind) continue;
        if (current_kind != 0) out.push_back(valid.substr(begin, pos - begin));
        begin = pos;
    }
    return out;
}

std::vector<std::string> characters(std::string_view text) {
    std::vector<std::string> out;
    for (std::size_t pos = 0; pos < text.size();) {
        const Decoded decoded = decode_any(text, pos);
        out.push_back(utf8(decoded.c));
        pos += decoded.size;
    }
    return out;
}

std::vector<std::string> split_whitespace(std::string_view text) {
    const std::string valid = to_valid(text);
    std::vector<std::string> out;
    std::size_t begin = 0;
    for (std::size_t pos = 0; pos <= valid.size();) {
        const Decoded decoded = pos < valid.size() ? decode_at(valid, pos) : Decoded{U' ', 1};
        if (is_whitespace(decoded.c)) {
            if (pos > begin) out.push_back(valid.substr(begin, pos - begin));
            begin = pos + decoded.size;
        }
        pos += decoded.size;
    }
    return out;
}

}  // namespace declivity::text
