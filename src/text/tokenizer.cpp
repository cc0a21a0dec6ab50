#include <declivity/text/tokenizer.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "checks.hpp"
#include "tokenizer_state.hpp"

namespace declivity::text {
namespace {

void check(const Truncation& truncation) {
    if (truncation.max_length < 0 || truncation.stride < 0 ||
        (truncation.stride > 0 && truncation.stride >= truncation.max_length))
        throw ValueError(fmt::format(
            "Tokenizer::set_truncation: expected a max_length of at least 0 and a stride from 0 to below it, "
            "got {} and {}",
            truncation.max_length, truncation.stride));
}

std::optional<data::Random> dropout_of(const EncodeOptions& options) {
    if (!options.dropout_seed) return std::nullopt;
    return data::Random(*options.dropout_seed, 0, 0, data::Purpose::draw);
}

}  // namespace

std::vector<Tokenizer::State::Part> Tokenizer::State::parts_of(std::string_view text) const {
    std::vector<Part> out;
    const NormalizedText full_text(text, 0);
    std::vector<AddedVocabulary::Segment> segments, normalized_segments;
    added.split(full_text.str(), false, segments);
    for (const auto& [range, id] : segments) {
        NormalizedText part(full_text, range);
        if (id) {
            out.push_back({{std::move(part), {{0, range.end - range.begin}}}, id});
            continue;
        }
        if (normalizer) normalizer->apply(part);
        added.split(part.str(), true, normalized_segments);
        for (const auto& [inner, inner_id] : normalized_segments) {
            const bool covers_part = inner.begin == 0 && inner.end == part.str().size();
            Pieces pieces{covers_part ? std::move(part) : NormalizedText(part, inner), {{0, inner.end - inner.begin}}};
            if (!inner_id && pre_tokenizer) pre_tokenizer->apply(pieces);
            out.push_back({std::move(pieces), inner_id});
            if (covers_part) break;
        }
    }
    return out;
}

Encoding Tokenizer::State::encode(std::string_view text, std::int64_t type, const EncodeOptions& options) const {
    Encoding out;
    std::optional<data::Random> dropout = dropout_of(options);
    std::vector<ModelToken> tokens;
    std::int64_t word = 0;
    const auto put = [&](Id id, std::string_view token, Offsets span) {
        out.ids.push_back(id);
        out.tokens.emplace_back(token);
        out.offsets.push_back(span);
        out.word_ids.push_back(word);
    };
    for (const Part& part : parts_of(text)) {
        const NormalizedText& source = part.pieces.text;
        if (part.token) {
            put(*part.token, source.str(), source.original({0, source.str().size()}));
            ++word;
            continue;
        }
        for (const Range& piece : part.pieces.pieces) {
            const std::string_view view = source.view(piece);
            tokens.clear();
            model->tokenize(view, dropout ? &*dropout : nullptr, tokens);
            for (const ModelToken& token : tokens) {
                const std::size_t begin = std::min<std::size_t>(token.begin, view.size()),
                                  end = std::min<std::size_t>(token.end, view.size());
                put(token.id,
                    token.literal ? view.substr(begin, end - begin) : std::string_view(*model->table().token(token.id)),
                    source.original({piece.begin + begin, piece.begin + end}));
            }
            ++word;
        }
    }
    out.type_ids.assign(out.size(), type);
    out.attention_mask.assign(out.size(), 1);
    out.special_tokens_mask.assign(out.size(), 0);
    out.sequence_ids.assign(out.size(), type);
    return out;
}

Encoding Tokenizer::State::finish(std::vector<Encoding> encodings, std::span<const std::string_view> texts,
                                  const EncodeOptions& options) const {
    const bool pair = encodings.size() == 2;
    if (truncation) {
        const std::size_t special_count =
            post_processor && options.add_special_tokens ? post_processor->added_count(pair) : 0;
        const auto max_length = static_cast<std::size_t>(truncation->max_length),
                   stride = static_cast<std::size_t>(truncation->stride);
        if (max_length < special_count)
            throw ValueError(fmt::format("Tokenizer: expected a truncation to at least the {} special tokens, got {}",
                                         special_count, max_length));
        const std::size_t available = max_length - special_count,
                          total = encodings[0].size() + (pair ? encodings[1].size() : 0);
        const auto cut = [&](std::size_t index, std::size_t length) {
            truncate(encodings[index], length, stride, truncation->direction);
        };
        if (available == 0) {
            for (std::size_t i = 0; i < encodings.size(); ++i) cut(i, 0);
        } else if (total > available && truncation->strategy == TruncationStrategy::longest_first) {
            if (!pair) {
                cut(0, available);
            } else {
                std::size_t shorter = encodings[0].size(), longer = encodings[1].size();
                const bool swapped = shorter > longer;
                if (swapped) std::swap(shorter, longer);
                longer = shorter > available ? shorter : std::max(shorter, available - shorter);
                if (shorter + longer > available) {
                    shorter = available / 2;
                    longer = shorter + available % 2;
                }
                cut(0, swapped ? longer : shorter);
                cut(1, swapped ? shorter : longer);
            }
        } else if (total > available) {
            const std::size_t index = truncation->strategy == TruncationStrategy::only_first ? 0 : 1;
            if (index >= encodings.size())
                throw ValueError("Tokenizer: expected a pair of texts to truncate the second one, got one text");
            if (encodings[index].size() <= total - available)
                throw ValueError(
                    fmt::format("Tokenizer: expected a text of more than the {} tokens to truncate, got {}",
                                total - available, encodings[index].size()));
            cut(index, encodings[index].size() - (total - available));
        }
    }
    if (post_processor) {
        for (std::size_t i = 0; i < encodings.size(); ++i) {
            set_sequence(encodings[i], static_cast<std::int64_t>(i));
            set_type(encodings[i], static_cast<std::int64_t>(i));
        }
        post_processor->apply(encodings, texts, options.add_special_tokens);
    }
    Encoding out = std::move(encodings[0]);
    for (std::size_t i = 1; i < encodings.size(); ++i) merge(out, encodings[i]);
    return out;
}

void Tokenizer::State::pad_all(std::vector<Encoding>& encodings) const {
    if (!padding) return;
    std::size_t length = 0;
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.size());
    if (padding->length) length = static_cast<std::size_t>(*padding->length);
    if (padding->pad_to_multiple_of) {
        const auto multiple = static_cast<std::size_t>(*padding->pad_to_multiple_of);
        length = (length + multiple - 1) / multiple * multiple;
    }
    for (Encoding& encoding : encodings) pad(encoding, length, *padding);
}

Encoding Tokenizer::State::encode(std::span<const std::string_view> texts, const EncodeOptions& options) const {
    std::vector<Encoding> encodings;
    for (std::size_t i = 0; i < texts.size(); ++i)
        encodings.push_back(encode(texts[i], static_cast<std::int64_t>(i), options));
    return finish(std::move(encodings), texts, options);
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    std::vector<Encoding> batch;
    batch.push_back(state_->encode({&text, 1}, options));
    state_->pad_all(batch);
    return std::move(batch[0]);
}

Encoding Tokenizer::encode(std::string_view text, std::string_view pair, const EncodeOptions& options) const {
    const std::array<std::string_view, 2> pair_texts{text, pair};
    std::vector<Encoding> batch;
    batch.push_back(state_->encode(pair_texts, options));
    state_->pad_all(batch);
    return std::move(batch[0]);
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts, const EncodeOptions& options) const {
    std::vector<Encoding> out;
    out.reserve(texts.size());
    for (const std::string_view text : texts) out.push_back(state_->encode({&text, 1}, options));
    state_->pad_all(out);
    return out;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::pair<std::string, std::string>> pairs,
                                              const EncodeOptions& options) const {
    std::vector<Encoding> out;
    out.reserve(pairs.size());
    for (const auto& [first, second] : pairs) {
        const std::array<std::string_view, 2> pair_texts{first, second};
        out.push_back(state_->encode(pair_texts, options));
    }
    state_->pad_all(out);
    return out;
}

std::vector<std::int64_t> Tokenizer::ids(std::string_view text, const EncodeOptions& options) const {
    std::vector<std::int64_t> out;
    std::optional<data::Random> dropout = dropout_of(options);
    std::vector<ModelToken> tokens;
    for (const State::Part& part : state_->parts_of(text)) {
        if (part.token) {
            out.push_back(*part.token);
            continue;
        }
        tokens.clear();
        for (const Range& piece : part.pieces.pieces)
            state_->model->tokenize(part.pieces.text.view(piece), dropout ? &*dropout : nullptr, tokens);
        for (const ModelToken& token : tokens) out.push_back(token.id);
    }
    if (!state_->post_processor || !options.add_special_tokens) return out;
    // Special tokens are located by encoding an encoding of no tokens and matching its neighbours.
    Encoding marker;
    marker.ids = {0};
    marker.tokens = {""};
    marker.offsets = {Offsets{}};
    marker.type_ids = marker.attention_mask = marker.special_tokens_mask = marker.word_ids = {0};
    std::vector<Encoding> processed;
    processed.push_back(std::move(marker));
    set_sequence(processed[0], 0);
    const std::string_view empty_text;
    state_->post_processor->apply(processed, {&empty_text, 1}, true);
    std::vector<std::int64_t> result;
    result.reserve(out.size() + 4);
    for (const Encoding& encoding : processed)
        for (std::size_t i = 0; i < encoding.size(); ++i) {
            if (encoding.special_tokens_mask[i] != 0) result.push_back(encoding.ids[i]);
            else result.insert(result.end(), out.begin(), out.end());
        }
    return result;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const std::int64_t id : ids) {
        const AddedToken* added = state_->added.token(id);
        if (added != nullptr) {
            if (!added->special || !skip_special_tokens) tokens.push_back(added->content);
        } else if (const std::string* token = state_->model->table().token(id)) {
            tokens.push_back(*token);
        }
    }
    std::string out;
    if (!state_->decoder) {
        for (std::size_t i = 0; i < tokens.size(); ++i) out += (i > 0 ? " " : "") + tokens[i];
        return out;
    }
    state_->decoder->apply(tokens);
    for (const std::string& token : tokens) out += token;
    return out;
}

std::optional<std::int64_t> Tokenizer::token_to_id(std::string_view token) const {
    if (const auto id = state_->added.id(token)) return *id;
    if (const auto id = state_->model->table().id(token)) return *id;
    return std::nullopt;
}

std::optional<std::string> Tokenizer::id_to_token(std::int64_t id) const {
    if (const AddedToken* token = state_->added.token(id)) return token->content;
    if (const std::string* token = state_->model->table().token(id)) return *token;
    return std::nullopt;
}

std::int64_t Tokenizer::vocab_size() const {
    return static_cast<std::int64_t>(state_->model->table().size() + state_->added.count_missing_in(*state_->model));
}

std::map<std::string, std::int64_t> Tokenizer::vocab() const {
    std::map<std::string, std::int64_t> out;
    for (const auto& [token, id] : state_->model->table().sorted()) out[token] = id;
    for (const auto& [id, token] : state_->added.all()) out[token.content] = id;
    return out;
}

Tokenizer::State& Tokenizer::own() {
    if (state_.use_count() > 1) state_ = std::make_shared<State>(*state_);
    return *state_;
}

std::int64_t Tokenizer::add_tokens(std::span<const AddedToken> tokens) {
    for (const AddedToken& token : tokens) require_not_empty("Tokenizer::add_tokens", "tokens", {token.content});
    State& state = own();
    std::int64_t new_count = 0;
    for (const AddedToken& token : tokens) {
        AddedToken valid = token;
        valid.content = to_valid(token.content);
        new_count += state.added.add(valid, *state.model) ? 1 : 0;
    }
    state.added.refresh(state.normalizer.get());
    return new_count;
}

std::int64_t Tokenizer::add_special_tokens(const std::vector<std::string>& tokens) {
    std::vector<AddedToken> special_tokens;
    for (const std::string& token : tokens)
        special_tokens.push_back({.content = token, .special = true, .normalized = false});
    return add_tokens(special_tokens);
}

std::vector<std::pair<std::int64_t, AddedToken>> Tokenizer::added_tokens() const {
    return {state_->added.all().begin(), state_->added.all().end()};
}

void Tokenizer::set_truncation(std::optional<Truncation> truncation) {
    if (truncation) check(*truncation);
    own().truncation = truncation;
}

void Tokenizer::set_padding(std::optional<Padding> padding) {
    const auto check = [](const char* name, std::int64_t min_value, const std::optional<std::int64_t>& value) {
        if (value && (*value < min_value || *value > kMaxPaddedLength))
            throw ValueError(fmt::format("Tokenizer::set_padding: expected a {} in [{}, {}], got {}", name, min_value,
                                         kMaxPaddedLength, *value));
    };
    if (padding) {
        check("length", 0, padding->length);
        check("multiple", 1, padding->pad_to_multiple_of);
    }
    own().padding = std::move(padding);
}

const std::optional<Truncation>& Tokenizer::truncation() const noexcept { return state_->truncation; }
const std::optional<Padding>& Tokenizer::padding() const noexcept { return state_->padding; }

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string StreamDecoder::step(std::int64_t id) {
    ids_.push_back(id);
    std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
    if (text.size() <= given_.size() || text.ends_with("\xEF\xBF\xBD")) return {};
    std::string new_text = text.substr(given_.size());
    // The previous text is kept, since the first token of a text may be decoded differently from those that follow.
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(known_));
    known_ = ids_.size();
    given_ = tokenizer_.decode(ids_, skip_special_tokens_);
    return new_text;
}

std::string StreamDecoder::finish() {
    const std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
    std::string rest = text.size() > given_.size() ? text.substr(given_.size()) : std::string();
    ids_.clear();
    known_ = 0;
    given_.clear();
    return rest;
}

}  // namespace declivity::text
