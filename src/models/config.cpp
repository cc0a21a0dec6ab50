#include <declivity/models/config.hpp>

#include <concepts>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include <declivity/io/atomic_file.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

#include "activation.hpp"
#include "checks.hpp"
#include "config_file.hpp"

namespace declivity::models {
namespace {

using nlohmann::json;

void write(const char* function, const std::filesystem::path& path, const json& config) {
    const std::string text = detail::dump_json(function, config, 2) + "\n";
    io::write_file(path, std::as_bytes(std::span(text)));
}

constexpr int kMaxDepth = 32;  // as in files

/// Fields without a member of the config, which save() writes first.
json unmapped_fields(const char* function, const OtherFields& fields) {
    json config = json::object();
    for (const auto& [key, value] : fields) {
        bool deep = false;
        json parsed = json::parse(
            value,
            [&](int depth, json::parse_event_t, json&) {
                deep = deep || depth > kMaxDepth;
                return !deep;
            },
            false);
        if (deep || parsed.is_discarded())
            throw ValueError(
                fmt::format("{}: expected other_fields[\"{}\"] in JSON, got '{}'", function, key, value.substr(0, 40)));
        config[key] = std::move(parsed);
    }
    return config;
}

/// Overwrites fields of the file where members differ: a token stored as a list of one element stays a list.
template <class Config>
void write_tokens(json& config, const Config& from) {
    const auto put = [&](const char* key, const json& value, const json& as_list) {
        const auto existing = config.find(key);
        if (existing != config.end() && (*existing == value || *existing == as_list)) return;
        if (existing != config.end() || !value.is_null()) config[key] = value;
    };
    const auto token = [](const std::optional<std::int64_t>& item) { return item ? json(*item) : json(); };
    put("bos_token_id", token(from.bos_token_id), token(from.bos_token_id));
    put("pad_token_id", token(from.pad_token_id), token(from.pad_token_id));
    const json eos_ids(from.eos_token_id);
    put("eos_token_id", eos_ids.empty() ? json() : eos_ids.size() == 1 ? eos_ids[0] : eos_ids, eos_ids);
}

template <class Config>
void read_tokens(const ConfigFile& file, Config& config) {
    file.read_token("bos_token_id", config.bos_token_id);
    file.read_tokens("eos_token_id", config.eos_token_id);
    file.read_token("pad_token_id", config.pad_token_id);
}
constexpr auto kTokenFields = {"bos_token_id", "eos_token_id", "pad_token_id"};

// Config fields by their keys in the file: read if present; null is written for none.
auto field_reader(const ConfigFile& file) {
    return [&file](const char* key, auto& value) { file.read(key, value); };
}
auto field_writer(json& config) {
    return [&config]<class T>(const char* key, const T& value) {
        if constexpr (requires { value.value(); }) config[key] = value ? json(*value) : json();
        else config[key] = value;
    };
}

void require_type(const ConfigFile& file, std::initializer_list<const char*> supported, std::string& type) {
    file.read("model_type", type);
    for (const char* supported_type : supported)
        if (type == supported_type) return;
    std::string names;
    for (std::size_t i = 0; i < supported.size(); ++i)
        names += fmt::format("{}'{}'", i == 0 ? "" : i + 1 < supported.size() ? ", " : " or ", supported.begin()[i]);
    file.refuse("model_type", names, type);
}

/// Writes the number of classes as label names: those of the file if their number matches.
void write_labels(json& config, std::int64_t count) {
    config.erase("num_labels");
    if (const auto existing = config.find("id2label");
        existing != config.end() && static_cast<std::int64_t>(existing->size()) == count)
        return;
    json names = json::object();
    for (std::int64_t i = 0; i < count; ++i) names[std::to_string(i)] = fmt::format("LABEL_{}", i);
    config["id2label"] = std::move(names);
    config.erase("label2id");
}

void read_labels(const ConfigFile& file, std::int64_t& count) {
    file.read("num_labels", count);
    if (const auto label_count = file.count("id2label"); label_count && *label_count > 0) count = *label_count;
    // Each label is written with its own name.
    constexpr std::int64_t kMaxLabels = INT64_C(1) << 20;
    if (count > kMaxLabels) file.refuse("num_labels", fmt::format("at most {}", kMaxLabels), count);
}

// Fields with the same type in files and configs. @param field called with a key and the field
template <class Config, class Field>
requires std::same_as<std::remove_const_t<Config>, GPT2Config>
void fields(Config& config, const Field& field) {
    field("vocab_size", config.vocab_size);
    field("n_positions", config.n_positions);
    field("n_embd", config.n_embd);
    field("n_layer", config.n_layer);
    field("n_head", config.n_head);
    field("n_inner", config.n_inner);
    field("activation_function", config.activation_function);
    field("resid_pdrop", config.resid_pdrop);
    field("embd_pdrop", config.embd_pdrop);
    field("attn_pdrop", config.attn_pdrop);
    field("layer_norm_epsilon", config.layer_norm_epsilon);
    field("initializer_range", config.initializer_range);
    field("scale_attn_weights", config.scale_attn_weights);
    field("scale_attn_by_inverse_layer_idx", config.scale_attn_by_inverse_layer_idx);
    field("tie_word_embeddings", config.tie_word_embeddings);
}
template <class Config, class Field>
requires std::same_as<std::remove_const_t<Config>, LlamaConfig>
void fields(Config& config, const Field& field) {
    field("vocab_size", config.vocab_size);
    field("hidden_size", config.hidden_size);
    field("intermediate_size", config.intermediate_size);
    field("num_hidden_layers", config.num_hidden_layers);
    field("num_attention_heads", config.num_attention_heads);
    field("hidden_act", config.hidden_act);
    field("max_position_embeddings", config.max_position_embeddings);
    field("initializer_range", config.initializer_range);
    field("rms_norm_eps", config.rms_norm_eps);
    field("tie_word_embeddings", config.tie_word_embeddings);
    field("attention_dropout", config.attention_dropout);
}
/// Fields of an encoder.
template <class Config, class Field>
void encoder_fields(Config& config, const Field& field) {
    field("hidden_size", config.hidden_size);
    field("num_hidden_layers", config.num_hidden_layers);
    field("num_attention_heads", config.num_attention_heads);
    field("intermediate_size", config.intermediate_size);
    field("hidden_act", config.hidden_act);
    field("hidden_dropout_prob", config.hidden_dropout_prob);
    field("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
    field("initializer_range", config.initializer_range);
    field("layer_norm_eps", config.layer_norm_eps);
}
template <class Config, class Field>
requires std::same_as<std::remove_const_t<Config>, BERTConfig>
void fields(Config& config, const Field& field) {
    encoder_fields(config, field);
    field("vocab_size", config.vocab_size);
    field("max_position_embeddings", config.max_position_embeddings);
    field("type_vocab_size", config.type_vocab_size);
    field("classifier_dropout", config.classifier_dropout);
    field("tie_word_embeddings", config.tie_word_embeddings);
}
template <class Config, class Field>
requires std::same_as<std::remove_const_t<Config>, ViTConfig>
void fields(Config& config, const Field& field) {
    encoder_fields(config, field);
    field("image_size", config.image_size);
    field("patch_size", config.patch_size);
    field("num_channels", config.num_channels);
    field("qkv_bias", config.qkv_bias);
    field("pooler_output_size", config.pooler_output_size);
    field("pooler_act", config.pooler_act);
}

// The JSON object written by save().
json json_of(const GPT2Config& from) {
    json config = unmapped_fields("GPT2Config::save", from.other_fields);
    config["architectures"] = json::array({"GPT2LMHeadModel"});
    config["model_type"] = "gpt2";
    fields(from, field_writer(config));
    write_tokens(config, from);
    return config;
}

json json_of(const LlamaConfig& from) {
    const bool mistral = from.model_type == "mistral", qwen2 = from.model_type == "qwen2";
    // Values that the file format cannot represent are an error: the file would be read as another model.
    const auto require = [&](bool condition, const char* expectation) {
        if (!condition)
            throw ValueError(
                fmt::format("LlamaConfig::save: expected {} for model_type {}, whose files have no field for it",
                            expectation, from.model_type));
    };
    require(mistral || qwen2 || !from.sliding_window, "no sliding_window");
    require(qwen2 || from.max_window_layers == 0, "max_window_layers of 0");
    require(qwen2 == from.qkv_bias, qwen2 ? "qkv_bias" : "no qkv_bias");
    require(!(mistral || qwen2) || !(from.attention_bias || from.mlp_bias), "no attention_bias and mlp_bias");
    json config = unmapped_fields("LlamaConfig::save", from.other_fields);
    // Rotary position settings that are written from members of the config.
    json rope = json::object();
    for (const char* key : {"rope_parameters", "rope_scaling"})
        if (const auto existing = config.find(key); existing != config.end() && existing->is_object() && rope.empty())
            rope = *existing;
    for (const char* key :
         {"type", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
        rope.erase(key);
    rope["rope_type"] = from.rope_scaling.rope_type;
    rope["rope_theta"] = from.rope_theta;
    if (from.rope_scaling.rope_type != "default") rope["factor"] = from.rope_scaling.factor;
    if (from.rope_scaling.rope_type == "llama3") {
        rope["low_freq_factor"] = from.rope_scaling.low_freq_factor;
        rope["high_freq_factor"] = from.rope_scaling.high_freq_factor;
        rope["original_max_position_embeddings"] = from.rope_scaling.original_max_position_embeddings;
    }
    config["architectures"] = json::array({mistral ? "MistralForCausalLM"
                                           : qwen2 ? "Qwen2ForCausalLM"
                                                   : "LlamaForCausalLM"});
    config["model_type"] = from.model_type;
    config["num_key_value_heads"] = from.kv_heads();
    config["head_dim"] = from.head_width();
    config["rope_theta"] = from.rope_theta;
    config["rope_parameters"] = rope;
    fields(from, field_writer(config));
    write_tokens(config, from);
    // transformers before version 5 reads it under this name.
    if (from.rope_scaling.rope_type != "default") config["rope_scaling"] = rope;
    else config.erase("rope_scaling");
    if (!mistral && !qwen2) {
        config["attention_bias"] = from.attention_bias;
        config["mlp_bias"] = from.mlp_bias;
    } else {
        field_writer(config)("sliding_window", from.sliding_window);
    }
    if (qwen2) {
        config["use_sliding_window"] = from.sliding_window.has_value();
        config["max_window_layers"] = from.max_window_layers;
    }
    return config;
}

json json_of(const BERTConfig& from) {
    json config = unmapped_fields("BERTConfig::save", from.other_fields);
    config["model_type"] = "bert";
    write_labels(config, from.num_labels);
    fields(from, field_writer(config));
    return config;
}

json json_of(const ViTConfig& from) {
    json config = unmapped_fields("ViTConfig::save", from.other_fields);
    config["model_type"] = "vit";
    write_labels(config, from.num_labels);
    fields(from, field_writer(config));
    return config;
}

/// Other fields, without those that save() always writes from members; no member has the class name of the file.
template <class Config>
Config without_member_fields(Config config) {
    OtherFields loaded = std::exchange(config.other_fields, {});
    const json written = json_of(config);
    for (auto& [key, text] : loaded)
        if (const auto found = written.find(key);
            key == "architectures" || found == written.end() || found->dump() != text)
            config.other_fields.emplace(key, std::move(text));
    return config;
}

}  // namespace

void GPT2Config::check() const {
    require_sizes("GPT2Config", {{"vocab_size", vocab_size},
                                 {"n_positions", n_positions},
                                 {"n_embd", n_embd},
                                 {"n_layer", n_layer},
                                 {"n_head", n_head},
                                 {"n_inner", n_inner.value_or(1)}});
    require_divides("GPT2Config", "n_head", n_head, "n_embd", n_embd);
    require_probabilities("GPT2Config",
                          {{"resid_pdrop", resid_pdrop}, {"embd_pdrop", embd_pdrop}, {"attn_pdrop", attn_pdrop}});
    require_not_negative("GPT2Config",
                         {{"layer_norm_epsilon", layer_norm_epsilon}, {"initializer_range", initializer_range}});
    (void)activation_of("GPT2Config::activation_function", activation_function);
}

GPT2Config GPT2Config::load(const std::filesystem::path& path) {
    const FunctionScope function("GPT2Config::load");
    const ConfigFile file(path);
    GPT2Config config;
    std::string type = "gpt2";
    require_type(file, {"gpt2"}, type);
    fields(config, field_reader(file));
    read_tokens(file, config);
    file.require_false("add_cross_attention");
    config.other_fields = file.other_fields(kTokenFields);
    return without_member_fields(file.checked(config, "n_embd"));
}

void GPT2Config::save(const std::filesystem::path& path) const {
    const FunctionScope function("GPT2Config::save");
    write("GPT2Config::save", path, json_of(*this));
}

void LlamaConfig::check() const {
    constexpr const char* name = "LlamaConfig";
    if (model_type != "llama" && model_type != "mistral" && model_type != "qwen2")
        throw ValueError(fmt::format("{}: expected model_type llama, mistral or qwen2, got '{}'", name, model_type));
    require_sizes(name, {{"vocab_size", vocab_size},
                         {"hidden_size", hidden_size},
                         {"intermediate_size", intermediate_size},
                         {"num_hidden_layers", num_hidden_layers},
                         {"num_attention_heads", num_attention_heads},
                         {"num_key_value_heads", kv_heads()},
                         {"max_position_embeddings", max_position_embeddings},
                         {"sliding_window", sliding_window.value_or(1)}});
    if (!head_dim) require_divides(name, "num_attention_heads", num_attention_heads, "hidden_size", hidden_size);
    require_sizes(name, {{"head_dim", head_width()}});
    require_divides(name, "an even number", 2, "head_dim", head_width());
    require_divides(name, "num_key_value_heads", kv_heads(), "num_attention_heads", num_attention_heads);
    require_probabilities(name, {{"attention_dropout", attention_dropout}});
    require_not_negative(name, {{"rms_norm_eps", rms_norm_eps}, {"initializer_range", initializer_range}});
    require_above_0(name, {{"rope_theta", rope_theta}, {"factor", rope_scaling.factor}});
    const RopeScaling& scaling = rope_scaling;
    if (scaling.rope_type != "default" && scaling.rope_type != "linear" && scaling.rope_type != "llama3")
        throw ValueError(
            fmt::format("{}: expected rope_type default, linear or llama3, got '{}'", name, scaling.rope_type));
    if (scaling.rope_type == "llama3" &&
        (!(scaling.low_freq_factor > 0) || !(scaling.high_freq_factor > scaling.low_freq_factor) ||
         scaling.original_max_position_embeddings < 1))
        throw ValueError(fmt::format(
            "{}: expected 0 < low_freq_factor < high_freq_factor and original_max_position_embeddings of at "
            "least 1, got {}, {} and {}",
            name, scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_max_position_embeddings));
    (void)activation_of("LlamaConfig::hidden_act", hidden_act);
}

LlamaConfig LlamaConfig::load(const std::filesystem::path& path) {
    const FunctionScope function("LlamaConfig::load");
    ConfigFile file(path);
    LlamaConfig config;
    require_type(file, {"llama", "mistral", "qwen2"}, config.model_type);
    if (config.model_type == "mistral") {
        config.intermediate_size = 14336;
        config.num_key_value_heads = 8;
        config.max_position_embeddings = 4096 * 32;
        config.sliding_window = 4096;
    } else if (config.model_type == "qwen2") {
        config.vocab_size = 151936;
        config.intermediate_size = 22016;
        config.num_key_value_heads = 32;
        config.max_position_embeddings = 32768;
        config.qkv_bias = true;
    }
    fields(config, field_reader(file));
    file.read_or_null("num_key_value_heads", config.num_key_value_heads);
    file.read("head_dim", config.head_dim);
    file.read("attention_bias", config.attention_bias);
    file.read("mlp_bias", config.mlp_bias);
    if (config.model_type == "qwen2") {
        bool use_sliding_window = false;
        file.read("use_sliding_window", use_sliding_window);
        config.max_window_layers = 28;
        file.read("max_window_layers", config.max_window_layers, 0);
        config.sliding_window = 4096;
        file.read_or_null("sliding_window", config.sliding_window);
        if (!use_sliding_window) config.sliding_window = std::nullopt;
    } else if (config.model_type == "mistral") {
        file.read_or_null("sliding_window", config.sliding_window);
    }
    file.read("rope_theta", config.rope_theta);
    // The name since transformers 5, and the earlier one.
    for (const char* key : {"rope_parameters", "rope_scaling"}) {
        if (!file.enter(key)) continue;
        file.read("rope_theta", config.rope_theta);
        file.read("type", config.rope_scaling.rope_type);
        file.read("rope_type", config.rope_scaling.rope_type);
        file.read("factor", config.rope_scaling.factor);
        file.read("low_freq_factor", config.rope_scaling.low_freq_factor);
        file.read("high_freq_factor", config.rope_scaling.high_freq_factor);
        file.read("original_max_position_embeddings", config.rope_scaling.original_max_position_embeddings);
        file.leave();
        break;
    }
    read_tokens(file, config);
    config.other_fields =
        file.other_fields({"bos_token_id", "eos_token_id", "pad_token_id", "rope_parameters", "rope_scaling"});
    return without_member_fields(file.checked(config, "hidden_size"));
}

void LlamaConfig::save(const std::filesystem::path& path) const {
    const FunctionScope function("LlamaConfig::save");
    write("LlamaConfig::save", path, json_of(*this));
}

void BERTConfig::check() const {
    constexpr const char* name = "BERTConfig";
    require_sizes(name, {{"vocab_size", vocab_size},
                         {"hidden_size", hidden_size},
                         {"num_hidden_layers", num_hidden_layers},
                         {"num_attention_heads", num_attention_heads},
                         {"intermediate_size", intermediate_size},
                         {"max_position_embeddings", max_position_embeddings},
                         {"type_vocab_size", type_vocab_size},
                         {"num_labels", num_labels}});
    require_divides(name, "num_attention_heads", num_attention_heads, "hidden_size", hidden_size);
    require_probabilities(name, {{"hidden_dropout_prob", hidden_dropout_prob},
                                 {"attention_probs_dropout_prob", attention_probs_dropout_prob},
                                 {"classifier_dropout", classifier_dropout.value_or(0)}});
    require_not_negative(name, {{"layer_norm_eps", layer_norm_eps}, {"initializer_range", initializer_range}});
    (void)activation_of("BERTConfig::hidden_act", hidden_act);
}

BERTConfig BERTConfig::load(const std::filesystem::path& path) {
    const FunctionScope function("BERTConfig::load");
    const ConfigFile file(path);
    BERTConfig config;
    std::string type = "bert", positions = "absolute";
    require_type(file, {"bert"}, type);
    fields(config, field_reader(file));
    file.read("position_embedding_type", positions);
    if (positions != "absolute") file.refuse("position_embedding_type", "'absolute'", positions);
    file.require_false("is_decoder");
    file.require_false("add_cross_attention");
    read_labels(file, config.num_labels);
    config.other_fields = file.other_fields({"id2label"});
    return without_member_fields(file.checked(config, "hidden_size"));
}

void BERTConfig::save(const std::filesystem::path& path) const {
    const FunctionScope function("BERTConfig::save");
    write("BERTConfig::save", path, json_of(*this));
}

void ViTConfig::check() const {
    constexpr const char* name = "ViTConfig";
    require_sizes(name, {{"hidden_size", hidden_size},
                         {"num_hidden_layers", num_hidden_layers},
                         {"num_attention_heads", num_attention_heads},
                         {"intermediate_size", intermediate_size},
                         {"image_size", image_size},
                         {"patch_size", patch_size},
                         {"num_channels", num_channels},
                         {"pooler_output_size", pooler_output_size.value_or(1)},
                         {"num_labels", num_labels}});
    require_divides(name, "num_attention_heads", num_attention_heads, "hidden_size", hidden_size);
    if (patch_size > image_size)
        throw ValueError(
            fmt::format("{}: expected patch_size up to image_size, got {} and {}", name, patch_size, image_size));
    require_probabilities(name, {{"hidden_dropout_prob", hidden_dropout_prob},
                                 {"attention_probs_dropout_prob", attention_probs_dropout_prob}});
    require_not_negative(name, {{"layer_norm_eps", layer_norm_eps}, {"initializer_range", initializer_range}});
    (void)activation_of("ViTConfig::hidden_act", hidden_act);
    (void)activation_of("ViTConfig::pooler_act", pooler_act);
}

ViTConfig ViTConfig::load(const std::filesystem::path& path) {
    const FunctionScope function("ViTConfig::load");
    const ConfigFile file(path);
    ViTConfig config;
    std::string type = "vit";
    require_type(file, {"vit"}, type);
    fields(config, field_reader(file));
    read_labels(file, config.num_labels);
    config.other_fields = file.other_fields({"id2label"});
    return without_member_fields(file.checked(config, "hidden_size"));
}

void ViTConfig::save(const std::filesystem::path& path) const {
    const FunctionScope function("ViTConfig::save");
    write("ViTConfig::save", path, json_of(*this));
}

}  // namespace declivity::models
