// Reading and writing tokenizer.json.
#include <array>
#include <span>
#include <utility>

#include <declivity/io/atomic_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "tokenizer_state.hpp"

namespace declivity::text {
namespace {

constexpr std::array<const char*, 3> kStrategies{"LongestFirst", "OnlyFirst", "OnlySecond"};
constexpr std::int64_t kMaxTokens = INT64_C(1) << 40;

Side side_of(const JsonValue& description) {
    const std::string side = description.string("direction", "Right");
    if (side != "Right" && side != "Left")
        description["direction"].fail(fmt::format("expected Right or Left, got '{}'", side));
    return side == "Left" ? Side::left : Side::right;
}
const char* name_of(Side side) { return side == Side::left ? "Left" : "Right"; }

Truncation read_truncation(const JsonValue& description) {
    Truncation out{.max_length = description["max_length"].integer(0, kMaxTokens),
                   .stride = description.integer("stride", 0, kMaxTokens, 0),
                   .direction = side_of(description)};
    const std::string strategy = description.string("strategy", "LongestFirst");
    bool known = false;
    for (std::size_t i = 0; i < kStrategies.size(); ++i)
        if (strategy == kStrategies[i]) out.strategy = static_cast<TruncationStrategy>(i), known = true;
    if (!known)
        description["strategy"].fail(fmt::format("expected LongestFirst, OnlyFirst or OnlySecond, got '{}'", strategy));
    if (out.stride > 0 && out.stride >= out.max_length)
        description["stride"].fail(
            fmt::format("expected a stride below the max_length {}, got {}", out.max_length, out.stride));
    return out;
}

Padding read_padding(const JsonValue& description) {
    Padding out{.direction = side_of(description),
                .pad_id = description.integer("pad_id", 0, UINT32_MAX, 0),
                .pad_type_id = description.integer("pad_type_id", 0, UINT32_MAX, 0),
                .pad_token = description.string("pad_token", "[PAD]")};
    if (description.has("pad_to_multiple_of") && description["pad_to_multiple_of"].integer(0, kMaxPaddedLength) > 0)
        out.pad_to_multiple_of = description["pad_to_multiple_of"].integer(0, kMaxPaddedLength);
    const JsonValue strategy = description["strategy"];
    if (strategy.json().is_object()) out.length = strategy["Fixed"].integer(0, kMaxPaddedLength);
    else if (strategy.string() != "BatchLongest")
        strategy.fail(fmt::format("expected BatchLongest or {{\"Fixed\": length}}, got '{}'", strategy.string()));
    return out;
}

void read_added(const JsonValue& list, AddedVocabulary& added, const Model& model) {
    for (std::size_t i = 0; i < list.size(); ++i) {
        const JsonValue entry = list.at(i);
        const bool special = entry.boolean("special", false);
        check_piece(entry["content"]);
        added.add({.content = entry["content"].string(),
                   .special = special,
                   .single_word = entry.boolean("single_word", false),
                   .lstrip = entry.boolean("lstrip", false),
                   .rstrip = entry.boolean("rstrip", false),
                   .normalized = entry.boolean("normalized", !special)},
                  model);
        (void)entry.integer("id", 0, UINT32_MAX, 0);
    }
}

}  // namespace

std::shared_ptr<Tokenizer::State> read_tokenizer(const JsonValue& description) {
    auto state = std::make_shared<Tokenizer::State>();
    const auto read_component = [&](const char* name, Json& json, auto& component, auto make) {
        if (!description.has(name)) return;
        component = make(description[name]);
        json = description[name].json();
    };
    read_component("normalizer", state->normalizer_json, state->normalizer, make_normalizer);
    read_component("pre_tokenizer", state->pre_tokenizer_json, state->pre_tokenizer, make_pre_tokenizer);
    read_component("post_processor", state->post_processor_json, state->post_processor, make_post_processor);
    read_component("decoder", state->decoder_json, state->decoder, make_decoder);
    state->model = make_model(description["model"]);
    if (description.has("added_tokens")) read_added(description["added_tokens"], state->added, *state->model);
    try {
        state->added.refresh(state->normalizer.get());
    } catch (const ValueError& error) {
        description["added_tokens"].fail(error.what());
    }
    if (description.has("truncation")) state->truncation = read_truncation(description["truncation"]);
    if (description.has("padding")) state->padding = read_padding(description["padding"]);
    return state;
}

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& name) {
    const JsonValue::Document document(name, std::string(json));
    return Tokenizer(read_tokenizer(JsonValue(document)));
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path) {
    const FunctionScope function("Tokenizer::from_file");
    const JsonValue::Document document(path.string(), detail::read_json_text(path));
    return Tokenizer(read_tokenizer(JsonValue(document)));
}

std::string Tokenizer::to_json() const {
    const State& state = *state_;
    std::string out = "{\n\"version\":\"1.0\",\n\"truncation\":";
    if (const auto& truncation = state.truncation)
        out += fmt::format(R"({{"direction":"{}","max_length":{},"strategy":"{}","stride":{}}})",
                           name_of(truncation->direction), truncation->max_length,
                           kStrategies[static_cast<std::size_t>(truncation->strategy)], truncation->stride);
    else out += "null";
    out += ",\n\"padding\":";
    if (const auto& padding = state.padding)
        out += fmt::format(
            R"({{"strategy":{},"direction":"{}","pad_to_multiple_of":{},"pad_id":{},"pad_type_id":{},"pad_token":{}}})",
            padding->length ? fmt::format(R"({{"Fixed":{}}})", *padding->length) : R"("BatchLongest")",
            name_of(padding->direction),
            padding->pad_to_multiple_of ? std::to_string(*padding->pad_to_multiple_of) : "null", padding->pad_id,
            padding->pad_type_id, json_string(padding->pad_token));
    else out += "null";
    out += ",\n\"added_tokens\":[";
    bool first = true;
    for (const auto& [id, token] : state.added.all()) {
        out += fmt::format(
            R"({}{{"id":{},"content":{},"single_word":{},"lstrip":{},"rstrip":{},"normalized":{},"special":{}}})",
            first ? "\n" : ",\n", id, json_string(token.content), token.single_word, token.lstrip, token.rstrip,
            token.normalized, token.special);
        first = false;
    }
    out += "]";
    for (const auto& [name, json] : {std::pair<const char*, const Json*>{"normalizer", &state.normalizer_json},
                                     {"pre_tokenizer", &state.pre_tokenizer_json},
                                     {"post_processor", &state.post_processor_json},
                                     {"decoder", &state.decoder_json}})
        out += fmt::format(",\n\"{}\":{}", name, json->dump());
    return out + ",\n\"model\":" + state.model->to_json() + "\n}\n";
}

void Tokenizer::save(const std::filesystem::path& path) const {
    const FunctionScope function("Tokenizer::save");
    const std::string json = to_json();
    io::write_file(path, std::as_bytes(std::span(json)));
}

}  // namespace declivity::text
