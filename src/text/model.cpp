#include "model.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace declivity::text {

void TokenTable::reserve(std::size_t tokens) {
    ids_.reserve(tokens);
    tokens_.reserve(tokens);
}

void TokenTable::put(const std::string& token, Id id) {
    const auto [entry, inserted] = ids_.try_emplace(token, id);
    if (!inserted) entry->second = id;
    if (id >= tokens_.size()) tokens_.resize(id + 1, nullptr);
    tokens_[id] = &entry->first;
}

Id TokenTable::add(const std::string& token) {
    if (const auto existing = id(token)) return *existing;
    const Id next = end();
    put(token, next);
    return next;
}

std::vector<std::pair<std::string, Id>> TokenTable::sorted() const {
    std::vector<std::pair<std::string, Id>> out(ids_.begin(), ids_.end());
    std::ranges::sort(
        out, [](const auto& a, const auto& b) { return std::tie(a.second, a.first) < std::tie(b.second, b.first); });
    return out;
}

void check_piece(const JsonValue& text) {
    constexpr std::size_t kMaxPieceBytes = 4096;
    if (text.string().size() > kMaxPieceBytes)
        text.fail(fmt::format("expected a token of at most {} bytes, got {}", kMaxPieceBytes, text.string().size()));
}

TokenTable read_vocab(const JsonValue& vocab) {
    vocab.require_object();
    TokenTable table;
    const std::size_t count = vocab.json().size();
    table.reserve(count);
    const auto max_id =
        static_cast<std::int64_t>(std::min<std::size_t>(8 * count + (std::size_t{1} << 20), UINT32_MAX - 1));
    for (const auto& [token, id] : vocab.json().items()) {
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() > static_cast<std::uint64_t>(max_id))
            (void)vocab.at(token).integer(0, max_id);
        const auto parsed_id = id.get<Id>();
        if (const std::string* other = table.token(parsed_id))
            vocab.at(token).fail(
                fmt::format("expected an id for each token, got {} for '{}' and '{}'", parsed_id, *other, token));
        table.put(token, parsed_id);
    }
    return table;
}

std::string json_string(std::string_view text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string vocab_json(const TokenTable& table) {
    std::string out = "{";
    for (const auto& [token, id] : table.sorted())
        out += fmt::format("{}{}:{}", out.size() > 1 ? "," : "", json_string(token), id);
    return out + "}";
}

std::shared_ptr<const Model> make_model(const JsonValue& description) {
    // Files of early versions have no type.
    const std::string type = description.has("type")                       ? description.type()
                             : description.has("merges")                   ? "BPE"
                             : description.has("unk_id")                   ? "Unigram"
                             : description.has("max_input_chars_per_word") ? "WordPiece"
                                                                           : "WordLevel";
    if (type == "BPE") return make_bpe(description);
    if (type == "WordPiece") return make_word_piece(description);
    if (type == "Unigram") return make_unigram(description);
    if (type == "WordLevel") return make_word_level(description);
    description["type"].fail(
        fmt::format("'{}' is not a known model: expected BPE, WordPiece, Unigram or WordLevel", type));
}

}  // namespace declivity::text
