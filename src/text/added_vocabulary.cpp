#include "added_vocabulary.hpp"

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::text {

void AddedVocabulary::Matcher::put(std::string_view content, Id id) {
    if (content.empty()) return;
    trie.put(content, id);
    first[static_cast<unsigned char>(content[0])] = true;
    any = true;
}

bool AddedVocabulary::add(const AddedToken& token, const Model& model) {
    if (token.content.empty()) return false;
    const bool is_new = !id(token.content) && !model.table().id(token.content);
    Id new_id = 0;
    if (const auto existing = id(token.content)) new_id = *existing;
    else if (const auto model_id = model.table().id(token.content)) new_id = *model_id;
    else {
        new_id = static_cast<Id>(model.table().size());
        if (!tokens_.empty()) new_id = std::max(new_id, tokens_.rbegin()->first + 1);
        // Ids of a model may have gaps, so that some are above the number of tokens.
        if (model.table().token(new_id) != nullptr) new_id = std::max(new_id, model.table().end());
    }
    tokens_[new_id] = token;
    ids_[token.content] = new_id;
    return is_new;
}

void AddedVocabulary::refresh(const Normalizer* normalizer) {
    matchers_ = {};
    // A normalizer may expand short texts to long ones.
    constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
    std::size_t bytes = 0;
    for (const auto& [id, token] : tokens_) {
        if (!token.normalized) {
            matchers_[0].put(token.content, id);
            continue;
        }
        NormalizedText content(token.content, 0);
        if (normalizer != nullptr) normalizer->apply(content);
        bytes += content.str().size();
        if (bytes > kMaxBytes)
            throw ValueError(
                fmt::format("Tokenizer: expected added tokens of at most {} bytes when they are normalized, "
                            "got more",
                            kMaxBytes));
        matchers_[1].put(content.str(), id);
    }
}

std::optional<Id> AddedVocabulary::id(std::string_view content) const {
    const auto found = ids_.find(content);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const AddedToken* AddedVocabulary::token(std::int64_t id) const {
    if (id < 0 || id > static_cast<std::int64_t>(UINT32_MAX)) return nullptr;
    const auto found = tokens_.find(static_cast<Id>(id));
    return found == tokens_.end() ? nullptr : &found->second;
}

std::size_t AddedVocabulary::count_missing_in(const Model& model) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(tokens_, [&](const auto& token) { return !model.table().id(token.second.content); }));
}

void AddedVocabulary::split(std::string_view text, bool normalized, std::vector<Segment>& out) const {
    out.clear();
    const Matcher& matcher = matchers_[normalized ? 1 : 0];
    std::size_t done = 0;
    for (std::size_t pos = 0; matcher.any && pos < text.size();) {
        if (!matcher.first[static_cast<unsigned char>(text[pos])]) {
            ++pos;
            continue;
        }
        Range match{pos, pos};
        Id id = 0;
        matcher.trie.prefixes(text, pos, [&](std::size_t length, Id prefix_id) {  // the longest is last
            match.end = pos + length;
            id = prefix_id;
        });
        if (match.end == pos) {
            ++pos;
            continue;
        }
        pos = match.end;
        const AddedToken& token = tokens_.at(id);
        if (token.single_word) {
            const bool left_boundary = match.begin == 0 || !is_word(decode_before(text, match.begin).c);
            const bool right_boundary = match.end == text.size() || !is_word(decode_at(text, match.end).c);
            if (!left_boundary || !right_boundary) continue;
        }
        if (token.lstrip)
            while (match.begin > done && is_whitespace(decode_before(text, match.begin).c))
                match.begin -= decode_before(text, match.begin).size;
        if (token.rstrip)
            while (match.end < text.size() && is_whitespace(decode_at(text, match.end).c))
                match.end += decode_at(text, match.end).size;
        if (done < match.begin) out.push_back({{done, match.begin}, std::nullopt});
        out.push_back({match, id});
        done = match.end;
        pos = std::max(pos, done);
    }
    if (done < text.size()) out.push_back({{done, text.size()}, std::nullopt});
}

}  // namespace declivity::text
