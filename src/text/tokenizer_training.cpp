// Training, and tokenizers that are created from a corpus only.
#include <algorithm>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "bpe_training.hpp"
#include "byte_level.hpp"
#include "tokenizer_state.hpp"

namespace declivity::text {
namespace {

constexpr const char* kByteLevelParts =
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},)"
    R"("post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true},)"
    R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
constexpr const char* kMetaspaceParts =
    R"("pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always","split":true},)"
    R"("decoder":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always","split":true})";
constexpr const char* kEmptyBpe = R"("model":{"type":"BPE","vocab":{},"merges":[]})";

void set_default(std::vector<std::string>& tokens, std::vector<std::string> default_tokens) {
    if (tokens.empty()) tokens = std::move(default_tokens);
}

void ensure_unknown_token(TrainOptions& options, const std::string& default_token) {
    if (options.unk_token.empty()) options.unk_token = default_token;
    auto& special = options.special_tokens;
    if (std::ranges::find(special, options.unk_token) == special.end())
        special.insert(special.begin(), options.unk_token);
}

Tokenizer train_from(const std::string& parts, const Corpus& corpus, const TrainOptions& options) {
    return Tokenizer::from_json("{" + parts + "}").train_new(corpus, options);
}

/// Copy of a tokenizer with another value of one component.
Tokenizer replace_component(const Tokenizer& tokenizer, const char* name, const std::string& value) {
    Json json = Json::parse(tokenizer.to_json());
    json[name] = Json::parse(value);
    return Tokenizer::from_json(json.dump());
}

}  // namespace

Tokenizer Tokenizer::train_new(const Corpus& corpus, const TrainOptions& options) const {
    check_train_options(options);
    Model::Counts counts;
    corpus.for_each([&](const std::string& text) {
        NormalizedText normalized(text, 0);
        if (state_->normalizer) state_->normalizer->apply(normalized);
        const std::size_t size = normalized.str().size();
        if (size == 0) return;
        Pieces pieces{std::move(normalized), {{0, size}}};
        if (state_->pre_tokenizer) state_->pre_tokenizer->apply(pieces);
        for (const Range& piece : pieces.pieces) {
            const std::string_view word = pieces.text.view(piece);
            if (const auto known = counts.find(word); known != counts.end()) ++known->second;
            else counts.emplace(word, 1);
        }
    });
    auto state = std::make_shared<State>(*state_);
    state->model = state_->model->train(counts, options);
    state->added = {};
    for (const std::string& token : options.special_tokens)
        state->added.add({.content = token, .special = true, .normalized = false}, *state->model);
    state->added.refresh(state->normalizer.get());
    return Tokenizer(std::move(state));
}

Tokenizer byte_tokenizer(const std::vector<std::string>& special_tokens) {
    TrainOptions options{.special_tokens = special_tokens};
    for (unsigned byte = 0; byte < 256; ++byte)
        options.initial_alphabet.push_back(utf8(byte_character(static_cast<std::uint8_t>(byte))));
    const std::string parts = std::string(kEmptyBpe) + "," + kByteLevelParts;
    Tokenizer out = train_from(parts, Corpus(std::vector<std::string>()), options);
    Json json = Json::parse(out.to_json());
    // Each byte is a token, so words need not be found.
    json["pre_tokenizer"]["use_regex"] = false;
    return Tokenizer::from_json(json.dump());
}

Tokenizer train_character(const Corpus& corpus, TrainOptions options) {
    check_train_options(options);
    ensure_unknown_token(options, "[UNK]");
    // All characters that fit, and no merges.
    options.limit_alphabet =
        std::max<std::int64_t>(options.vocab_size - static_cast<std::int64_t>(options.special_tokens.size()), 0);
    options.vocab_size = 1;
    return train_from(std::string(kEmptyBpe) + R"(,"decoder":{"type":"Fuse"})", corpus, options);
}

Tokenizer train_word(const Corpus& corpus, TrainOptions options) {
    ensure_unknown_token(options, "[UNK]");
    return train_from(
        R"("model":{"type":"WordLevel","vocab":{},"unk_token":"[UNK]"},"pre_tokenizer":{"type":"Whitespace"})", corpus,
        options);
}

Tokenizer train_word_piece(const Corpus& corpus, TrainOptions options) {
    set_default(options.special_tokens, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
    ensure_unknown_token(options, "[UNK]");
    const Tokenizer out = train_from(
        fmt::format(R"("normalizer":{{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)"
                    R"("strip_accents":null,"lowercase":true}},)"
                    R"("pre_tokenizer":{{"type":"BertPreTokenizer"}},)"
                    R"("decoder":{{"type":"WordPiece","prefix":"##","cleanup":true}},)"
                    R"("model":{{"type":"WordPiece","unk_token":{},"continuing_subword_prefix":"##",)"
                    R"("max_input_chars_per_word":100,"vocab":{{}}}})",
                    json_string(options.unk_token)),
        corpus, options);
    const auto cls = out.token_to_id("[CLS]"), sep = out.token_to_id("[SEP]");
    if (!cls || !sep) return out;
    const auto token = [](const char* name, std::int64_t id) {
        return fmt::format(R"("{0}":{{"id":"{0}","ids":[{1}],"tokens":["{0}"]}})", name, id);
    };
    const auto template_piece = [](const char* kind, const char* id, int type) {
        return fmt::format(R"({{"{}":{{"id":"{}","type_id":{}}}}})", kind, id, type);
    };
    const std::string single = template_piece("SpecialToken", "[CLS]", 0) + "," + template_piece("Sequence", "A", 0) +
                               "," + template_piece("SpecialToken", "[SEP]", 0);
    return replace_component(
        out, "post_processor",
        fmt::format(
            R"({{"type":"TemplateProcessing","single":[{0}],"pair":[{0},{1},{2}],"special_tokens":{{{3},{4}}}}})",
            single, template_piece("Sequence", "B", 1), template_piece("SpecialToken", "[SEP]", 1),
            token("[CLS]", *cls), token("[SEP]", *sep)));
}

Tokenizer train_byte_level_bpe(const Corpus& corpus, TrainOptions options) {
    for (unsigned byte = 0; byte < 256; ++byte)
        options.initial_alphabet.push_back(utf8(byte_character(static_cast<std::uint8_t>(byte))));
    return train_from(std::string(kEmptyBpe) + "," + kByteLevelParts, corpus, options);
}

Tokenizer train_sentencepiece_bpe(const Corpus& corpus, TrainOptions options) {
    set_default(options.special_tokens, {"<unk>", "<s>", "</s>"});
    ensure_unknown_token(options, "<unk>");
    const std::vector<std::string> special = options.special_tokens;
    // Byte tokens follow the special ones, but are not special.
    for (unsigned byte = 0; byte < 256; ++byte)
        options.special_tokens.push_back(byte_token(static_cast<std::uint8_t>(byte)));
    const Tokenizer out = train_from(
        fmt::format(
            R"("normalizer":{{"type":"Sequence","normalizers":[{{"type":"Prepend","prepend":"\u2581"}},)"
            R"({{"type":"Replace","pattern":{{"String":" "}},"content":"\u2581"}}]}},)"
            // Words are split for training only; a text is encoded as a whole.
            R"("pre_tokenizer":{{"type":"Split","pattern":{{"String":"\u2581"}},"behavior":"MergedWithNext",)"
            R"("invert":false}},)"
            R"("decoder":{{"type":"Sequence","decoders":[{{"type":"Replace",)"
            R"("pattern":{{"String":"\u2581"}},"content":" "}},)"
            R"({{"type":"ByteFallback"}},{{"type":"Fuse"}},{{"type":"Strip","content":" ","start":1,"stop":0}}]}},)"
            R"("model":{{"type":"BPE","unk_token":{},"fuse_unk":true,"byte_fallback":true,"vocab":{{}},"merges":[]}})",
            json_string(options.unk_token)),
        corpus, options);
    Json json = Json::parse(out.to_json());
    json["pre_tokenizer"] = nullptr;
    Json special_only = Json::array();
    for (const Json& token : json["added_tokens"])
        if (std::ranges::find(special, token["content"].get<std::string>()) != special.end())
            special_only.push_back(token);
    json["added_tokens"] = special_only;
    return Tokenizer::from_json(json.dump());
}

Tokenizer train_unigram(const Corpus& corpus, TrainOptions options) {
    set_default(options.special_tokens, {"<unk>"});
    ensure_unknown_token(options, "<unk>");
    return train_from(
        std::string(R"("normalizer":{"type":"NFKC"},"model":{"type":"Unigram","unk_id":null,"vocab":[]},)") +
            kMetaspaceParts,
        corpus, options);
}

}  // namespace declivity::text
