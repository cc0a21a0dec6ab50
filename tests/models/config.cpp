// config.json of models: defaults, round trips; invalid files are refused with an offset.
#include <functional>
#include <string>

#include <declivity/models/config.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/damage.hpp>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::models;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

template <class Config>
Config parsed(const std::string& text) {
    const TempFolder folder;
    const fs::path path = folder / "config.json";
    put_file(path, Bytes(text.begin(), text.end()));
    return Config::load(path);
}

template <class Config>
std::string error_message(const std::string& text) {
    try {
        (void)parsed<Config>(text);
    } catch (const FormatError& error) {
        const std::string message = error.what();
        CHECK(message.ends_with("Config::load)"));
        const std::size_t from = message.find("config.json: ") + 13;
        return message.substr(from, message.find(" (called by ") - from);
    }
    return "accepted";
}

/// A config written, read, and written again.
template <class Config>
void check_returns(const Config& config) {
    const TempFolder folder;
    config.save(folder / "a.json");
    Config::load(folder / "a.json").save(folder / "b.json");
    CHECK(get_file(folder / "a.json") == get_file(folder / "b.json"));
}

template <class Config>
void check_damaged(const Config& config) {
    const TempFolder folder;
    const fs::path path = folder / "config.json";
    config.save(path);
    const Bytes valid = get_file(path);
    const auto read = [](const fs::path& file) { Config::load(file).check(); };
    CHECK(truncate_everywhere(valid, path, read).accepted <= 1);  // without the final newline
    const Verdicts damaged = damage_at_random(valid, path, 400, read);
    CHECK(damaged.refused > 150);
    CHECK(damaged.accepted > 0);
}

}  // namespace

TEST_CASE("config.json: defaults are those of transformers") {
    const auto gpt2 = parsed<GPT2Config>("{}");
    CHECK(gpt2.n_embd == 768);
    CHECK(gpt2.activation_function == "gelu_new");
    CHECK(gpt2.tie_word_embeddings);
    const auto llama =
        parsed<LlamaConfig>(R"({"model_type":"llama","num_attention_heads":8,"num_key_value_heads":null})");
    CHECK(llama.kv_heads() == 8);
    CHECK(llama.head_width() == 512);
    CHECK(!llama.sliding_window);
    const auto mistral = parsed<LlamaConfig>(R"({"model_type":"mistral"})");
    CHECK(mistral.kv_heads() == 8);
    CHECK(mistral.sliding_window == 4096);
    CHECK(!parsed<LlamaConfig>(R"({"model_type":"mistral","sliding_window":null})").sliding_window);
    const auto qwen2 = parsed<LlamaConfig>(R"({"model_type":"qwen2"})");
    CHECK(qwen2.qkv_bias);
    CHECK(!qwen2.sliding_window);
    CHECK(parsed<LlamaConfig>(R"({"model_type":"qwen2","use_sliding_window":true})").max_window_layers == 28);
    CHECK(parsed<BERTConfig>(R"({"id2label":{"0":"a","1":"b","2":"c"}})").num_labels == 3);
    CHECK(parsed<ViTConfig>("{}").patch_size == 16);
}

TEST_CASE("config.json: rotary frequencies in the formats of transformers 4 and 5") {
    const auto old = parsed<LlamaConfig>(R"({"rope_theta":500000.0,"rope_scaling":{"type":"linear","factor":2.0}})");
    CHECK(old.rope_theta == 500000);
    CHECK(old.rope_scaling.rope_type == "linear");
    CHECK(old.rope_scaling.factor == 2);
    const auto now = parsed<LlamaConfig>(
        R"({"rope_parameters":{"rope_type":"llama3","rope_theta":7.5,"factor":8,"low_freq_factor":1.5,
            "high_freq_factor":3,"original_max_position_embeddings":64}})");
    CHECK(now.rope_theta == 7.5);
    CHECK(now.rope_scaling.original_max_position_embeddings == 64);
    CHECK(now.rope_scaling.low_freq_factor == 1.5);
}

TEST_CASE("config.json: round trip") {
    check_returns(GPT2Config{.vocab_size = 7, .n_inner = 5, .scale_attn_by_inverse_layer_idx = true});
    check_returns(LlamaConfig{.num_key_value_heads = 4, .head_dim = 6, .rope_theta = 3, .attention_bias = true});
    check_returns(LlamaConfig{.model_type = "mistral", .sliding_window = 9});
    check_returns(LlamaConfig{.model_type = "qwen2", .qkv_bias = true, .sliding_window = 9, .max_window_layers = 3});
    check_returns(LlamaConfig{.rope_scaling = {.rope_type = "llama3", .factor = 4}});
    check_returns(BERTConfig{.classifier_dropout = 0.25, .num_labels = 5});
    check_returns(ViTConfig{.image_size = 30, .pooler_output_size = 4, .num_labels = 3});
}

TEST_CASE("config.json: invalid files are refused with an offset") {
    CHECK(error_message<GPT2Config>(R"({"n_layer": "x"})") == R"(at byte 1: 'n_layer' expected an integer, got "x")");
    CHECK(error_message<GPT2Config>(R"({"n_layer": 0})") == "at byte 1: 'n_layer' expected at least 1, got 0");
    CHECK(error_message<GPT2Config>(R"({"n_layer": 18446744073709551615})") ==
          "at byte 1: 'n_layer' expected at most 2147483648, got 18446744073709551615");
    CHECK(error_message<GPT2Config>(R"({"model_type":"bert"})") ==
          R"(at byte 1: 'model_type' expected 'gpt2', got "bert")");
    CHECK(error_message<GPT2Config>(R"({"n_embd":10,"n_head":3})") ==
          "at byte 1: GPT2Config: expected n_head that divides n_embd, got 3 and 10");
    CHECK(error_message<GPT2Config>(R"({"add_cross_attention":true})") ==
          "at byte 1: 'add_cross_attention' expected false, got true");
    CHECK(error_message<GPT2Config>(R"({"activation_function":"no"})").find("expected one of gelu, gelu_new") !=
          std::string::npos);
    CHECK(error_message<LlamaConfig>(R"({"rope_scaling":{"rope_type":"yarn","factor":2}})").find("got 'yarn'") !=
          std::string::npos);
    CHECK(error_message<LlamaConfig>(R"({"rope_scaling":3})") == "at byte 1: 'rope_scaling' expected an object, got 3");
    CHECK(error_message<BERTConfig>(R"({"is_decoder":true})") == "at byte 1: 'is_decoder' expected false, got true");
    CHECK(error_message<ViTConfig>(R"({"patch_size":[16,16]})") ==
          "at byte 1: 'patch_size' expected an integer, got [16,16]");
    CHECK(error_message<ViTConfig>("{").starts_with("at byte 1: not valid JSON"));
    CHECK(error_message<BERTConfig>(R"({"num_labels":2147483648})") ==
          "at byte 1: 'num_labels' expected at most 1048576, got 2147483648");
    CHECK(error_message<GPT2Config>(R"({"x":)" + std::string(80'000, '[')).find("nested deeper than 64 levels") !=
          std::string::npos);
    CHECK(error_message<LlamaConfig>(R"({"rms_norm_eps":-1})") ==
          "at byte 0: LlamaConfig: expected a finite rms_norm_eps of at least 0, got -1");
    CHECK(error_message<LlamaConfig>(R"({"initializer_range":-0.5})") ==
          "at byte 0: LlamaConfig: expected a finite initializer_range of at least 0, got -0.5");
    CHECK(error_message<GPT2Config>(R"({"layer_norm_epsilon":-1})") ==
          "at byte 0: GPT2Config: expected a finite layer_norm_epsilon of at least 0, got -1");
    for (const char* const text : {R"({"layer_norm_eps":-1})", R"({"initializer_range":-1})"}) {
        CHECK(error_message<BERTConfig>(text).find("of at least 0, got -1") != std::string::npos);
        CHECK(error_message<ViTConfig>(text).find("of at least 0, got -1") != std::string::npos);
    }
    CHECK_THROWS_AS(GPT2Config{.initializer_range = NAN}.check(), ValueError);
    CHECK_THROWS_AS(LlamaConfig{.initializer_range = HUGE_VAL}.check(), ValueError);
    CHECK_THROWS_AS(LlamaConfig{.rope_theta = HUGE_VAL}.check(), ValueError);
    CHECK_THROWS_AS((GPT2Config{.activation_function = "\xff"}.save("/tmp/never written")), ValueError);
    CHECK_THROWS_AS((void)GPT2Config::load("/nowhere/config.json"), IoError);
}

TEST_CASE("config.json: unknown fields are written back") {
    const auto returned = []<class Config>(Config, const std::string& text) {
        const TempFolder folder;
        parsed<Config>(text).save(folder / "config.json");
        const Bytes bytes = get_file(folder / "config.json");
        std::string all;
        for (const auto byte : bytes)
            if (const char c = static_cast<char>(byte); c != ' ' && c != '\n') all += c;
        return all;
    };
    const auto has = [](const std::string& text, const std::string& part) {
        CHECK_MESSAGE(text.find(part) != std::string::npos, part, " in ", text);
    };
    const std::string gpt2 = returned(GPT2Config{}, R"({"bos_token_id":7,"eos_token_id":[7],"pad_token_id":null,
        "torch_dtype":"float16","task_specific_params":{"text":{"do_sample":true}},"n_ctx":1024,"x\u00e9":[1.5,"y"]})");
    for (const char* part :
         {R"("bos_token_id":7)", R"("eos_token_id":[7])", R"("pad_token_id":null)", R"("torch_dtype":"float16")",
          R"("task_specific_params":{"text":{"do_sample":true}})", R"("n_ctx":1024)", R"("xé":[1.5,"y"])"})
        has(gpt2, part);
    const std::string llama = returned(LlamaConfig{}, R"({"model_type":"llama","eos_token_id":[3,4],"bos_token_id":1,
        "rope_scaling":{"rope_type":"linear","factor":2.0,"own":5},"pretraining_tp":1})");
    for (const char* part : {R"("eos_token_id":[3,4])", R"("bos_token_id":1)", R"("pretraining_tp":1)", R"("own":5)",
                             R"("rope_type":"linear")"})
        has(llama, part);
    const std::string bert = returned(BERTConfig{}, R"({"id2label":{"0":"bad","1":"good"},"label2id":{"bad":0,"good":1},
        "pad_token_id":0,"gradient_checkpointing":false})");
    for (const char* part : {R"("id2label":{"0":"bad","1":"good"})", R"("label2id":{"bad":0,"good":1})",
                             R"("pad_token_id":0)", R"("gradient_checkpointing":false)"})
        has(bert, part);
    has(returned(ViTConfig{}, R"({"encoder_stride":16})"), R"("encoder_stride":16)");

    // Known members are not written twice.
    const auto unknown_fields = []<class Config>(Config config) {
        const TempFolder folder;
        config.save(folder / "config.json");
        OtherFields read = Config::load(folder / "config.json").other_fields;
        read.erase("architectures");
        return read;
    };
    CHECK(unknown_fields(GPT2Config{.bos_token_id = 3, .eos_token_id = {4, 5}, .pad_token_id = 6}).empty());
    CHECK(
        unknown_fields(LlamaConfig{.rope_scaling = {.rope_type = "llama3", .factor = 4}, .eos_token_id = {4}}).empty());
    CHECK(unknown_fields(BERTConfig{.num_labels = 4}).empty());
    CHECK(unknown_fields(ViTConfig{.num_labels = 4, .other_fields = {{"own", "[1]"}}}).size() == 1);

    auto config = parsed<GPT2Config>(R"({"eos_token_id":5,"bos_token_id":5,"n_embd":24})");
    CHECK(config.eos_token_id == std::vector<std::int64_t>{5});
    CHECK(config.bos_token_id == 5);
    CHECK(!config.pad_token_id);
    CHECK(!config.other_fields.contains("n_embd"));
    // Members override the fields of the file.
    config.eos_token_id = {6, 8};
    config.bos_token_id = std::nullopt;
    const TempFolder folder;
    config.save(folder / "config.json");
    const auto again = GPT2Config::load(folder / "config.json");
    CHECK(again.eos_token_id == std::vector<std::int64_t>{6, 8});
    CHECK(!again.bos_token_id);
    CHECK(again.n_embd == 24);
    CHECK(error_message<GPT2Config>(R"({"eos_token_id":[1,"x"]})") ==
          R"(at byte 1: 'eos_token_id' expected a token, got "x")");
    for (const char* text : {"", "{", "nonsense", "1 2"}) {
        config.other_fields["own"] = text;
        CHECK_THROWS_AS(config.save(folder / "config.json"), ValueError);
    }
    config.other_fields["own"] = std::string(100'000, '[') + std::string(100'000, ']');
    CHECK_THROWS_AS(config.save(folder / "config.json"), ValueError);
    config.other_fields.clear();
    config.other_fields["\xff"] = "1";
    CHECK_THROWS_AS(config.save(folder / "config.json"), ValueError);
}

TEST_CASE("config.json: an unsupported model_type lists the supported ones") {
    CHECK(error_message<LlamaConfig>(R"({"model_type":"gemma"})") ==
          R"(at byte 1: 'model_type' expected 'llama', 'mistral' or 'qwen2', got "gemma")");
}

TEST_CASE("config.json: damaged files are refused or read") {
    check_damaged(GPT2Config{});
    check_damaged(LlamaConfig{.rope_scaling = {.rope_type = "llama3", .factor = 4}});
    check_damaged(BERTConfig{});
    check_damaged(ViTConfig{});
}
