// Model folders: config.json is compared with the files before anything is allocated; a call that throws changes
// nothing; unknown fields are written back.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/io/safetensors_reader.hpp>
#include <declivity/models/bert.hpp>
#include <declivity/models/gpt2.hpp>
#include <declivity/models/llama.hpp>
#include <declivity/models/vit.hpp>
#include <declivity/nn/lora.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::models;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

GPT2Config gpt2() { return {.vocab_size = 11, .n_positions = 12, .n_embd = 12, .n_layer = 2, .n_head = 3}; }
LlamaConfig llama() {
    return {.vocab_size = 11,
            .hidden_size = 12,
            .intermediate_size = 17,
            .num_hidden_layers = 2,
            .num_attention_heads = 4,
            .num_key_value_heads = 2,
            .head_dim = 6,
            .max_position_embeddings = 16};
}
BERTConfig bert() {
    return {.vocab_size = 11,
            .hidden_size = 12,
            .num_hidden_layers = 2,
            .num_attention_heads = 3,
            .intermediate_size = 17,
            .max_position_embeddings = 16,
            .num_labels = 3};
}
ViTConfig vit() {
    return {.hidden_size = 12,
            .num_hidden_layers = 2,
            .num_attention_heads = 3,
            .intermediate_size = 17,
            .image_size = 10,
            .patch_size = 4,
            .num_channels = 2,
            .num_labels = 3};
}

template <class Error>
std::string error_message(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string text_of(const fs::path& path) {
    const Bytes bytes = get_file(path);
    return {bytes.begin(), bytes.end()};
}

/// Replaces a number in config.json, given as `"key": number`.
void set_config_field(const fs::path& folder, const std::string& key, const std::string& number) {
    std::string text = text_of(folder / "config.json");
    const std::size_t at = text.find("\"" + key + "\": ") + key.size() + 4;
    REQUIRE(at > key.size() + 4);
    text.replace(at, text.find_first_of(",\n", at) - at, number);
    put_file(folder / "config.json", bytes_of(text));
}

/// Values of all parameters and buffers.
std::vector<double> state_of(const nn::Module& model) {
    std::vector<double> all;
    for (const auto& [name, tensor] : model.state_dict())
        for (const double value : values(tensor)) all.push_back(value);
    return all;
}

/// Saved in one file and in several, and read again: the same values, in evaluation mode.
template <class Model, class Config>
void check_returns(const Config& config) {
    const TempFolder folder;
    const Model model{config};
    for (const std::uint64_t max_shard_size : {std::uint64_t{2000}, std::uint64_t{1} << 30}) {
        model.save_pretrained(folder / "m", max_shard_size);
        const Model read = Model::from_pretrained(folder / "m");
        CHECK(state_of(read) == state_of(model));
        CHECK(!read.training());
        for (const auto& [name, child] : read.children()) CHECK(!child->training());
    }
}

/// Each wrong size in config.json is refused by name, without allocating its memory.
template <class Model, class Config>
void check_size_errors(const Config& config, const std::vector<std::pair<std::string, std::string>>& fields) {
    const TempFolder folder;
    const Model model{config};
    model.save_pretrained(folder / "m");
    const std::string original = text_of(folder / "m" / "config.json");
    for (const auto& [key, number] : fields)
        for (const bool strict : {true, false}) {
            CAPTURE(key);
            set_config_field(folder / "m", key, number);
            device().reset_peak_memory();
            const std::uint64_t before = device().memory().in_use;
            const std::string message =
                error_message<Error>([&] { (void)Model::from_pretrained(folder / "m", {.strict = strict}); });
            CHECK_MESSAGE(has(message, "::from_pretrained: expected "), message);
            CHECK_MESSAGE(has(message, (folder / "m").string()), message);
            CHECK_MESSAGE(has(message, "as config.json says"), message);
            CHECK(device().memory().peak - before < 1 << 20);
            put_file(folder / "m" / "config.json", bytes_of(original));
        }
}

}  // namespace

TEST_CASE("model folders: round trip in evaluation mode, for each model") {
    check_returns<GPT2>(gpt2());
    GPT2Config config = gpt2();
    config.n_inner = 7;
    config.tie_word_embeddings = false;
    check_returns<GPT2>(config);
    check_returns<Llama>(llama());
    LlamaConfig with_bias = llama();
    with_bias.attention_bias = with_bias.mlp_bias = with_bias.tie_word_embeddings = true;
    check_returns<Llama>(with_bias);
    LlamaConfig qwen2 = llama();
    qwen2.model_type = "qwen2";
    qwen2.qkv_bias = true;
    check_returns<Llama>(qwen2);
    LlamaConfig mistral = llama();
    mistral.model_type = "mistral";
    mistral.sliding_window = 4;
    check_returns<Llama>(mistral);
    check_returns<BERT>(bert());
    check_returns<BERTForMaskedLM>(bert());
    BERTConfig untied = bert();
    untied.tie_word_embeddings = false;
    check_returns<BERTForMaskedLM>(untied);
    check_returns<BERTForSequenceClassification>(bert());
    check_returns<ViT>(vit());
    ViTConfig pooled_config = vit();
    pooled_config.qkv_bias = false;
    pooled_config.pooler_output_size = 5;
    check_returns<ViT>(pooled_config);
    check_returns<ViTForImageClassification>(vit());
}

TEST_CASE("model folders: sizes that the files do not have are refused before allocation") {
    check_size_errors<GPT2>(gpt2(),
                            {{"n_layer", "2147483648"}, {"vocab_size", "200000000"}, {"n_positions", "2000000000"}});
    check_size_errors<Llama>(llama(), {{"num_hidden_layers", "2147483648"},
                                       {"vocab_size", "2000000000"},
                                       {"intermediate_size", "2147483648"},
                                       {"num_key_value_heads", "1"}});
    check_size_errors<BERTForMaskedLM>(
        bert(), {{"num_hidden_layers", "2147483648"}, {"max_position_embeddings", "2147483648"}});
    check_size_errors<BERTForSequenceClassification>(bert(), {{"type_vocab_size", "2147483648"}});
    check_size_errors<BERT>(bert(), {{"vocab_size", "2147483648"}});
    check_size_errors<ViT>(vit(), {{"image_size", "2147483648"}, {"num_channels", "2147483648"}});
    check_size_errors<ViTForImageClassification>(
        vit(), {{"num_hidden_layers", "2147483648"}, {"intermediate_size", "2147483648"}});
}

TEST_CASE("model folders: a head missing in the files may be new, one of another size is refused") {
    const TempFolder folder;
    BERT(bert()).save_pretrained(folder / "m");
    CHECK_THROWS_AS((void)BERTForSequenceClassification::from_pretrained(folder / "m"), ValueError);
    const auto model = BERTForSequenceClassification::from_pretrained(folder / "m", {.strict = false});
    CHECK(!model.training());
    put_file(folder / "m" / "config.json",
             bytes_of(R"({"model_type":"bert","vocab_size":11,"hidden_size":12,"num_hidden_layers":2,
                          "num_attention_heads":3,"intermediate_size":17,"max_position_embeddings":16,
                          "num_labels":2147483648})"));
    CHECK(has(error_message<FormatError>(
                  [&] { (void)BERTForSequenceClassification::from_pretrained(folder / "m", {.strict = false}); }),
              "'num_labels' expected at most"));
}

TEST_CASE("model folders: errors of missing folders name the called function") {
    const auto check_open_error = [](const std::string& function, const std::function<void()>& call) {
        const std::string message = error_message<IoError>(call);
        CHECK_MESSAGE(has(message, "No such file or directory (called by " + function + ")"), message);
        CHECK_MESSAGE(has(message, "cannot open '/nowhere"), message);
    };
    check_open_error("GPT2::from_pretrained", [] { (void)GPT2::from_pretrained("/nowhere"); });
    check_open_error("Llama::from_pretrained", [] { (void)Llama::from_pretrained("/nowhere"); });
    check_open_error("BERT::from_pretrained", [] { (void)BERT::from_pretrained("/nowhere"); });
    check_open_error("BERTForMaskedLM::from_pretrained", [] { (void)BERTForMaskedLM::from_pretrained("/nowhere"); });
    check_open_error("BERTForSequenceClassification::from_pretrained",
                     [] { (void)BERTForSequenceClassification::from_pretrained("/nowhere"); });
    check_open_error("ViT::from_pretrained", [] { (void)ViT::from_pretrained("/nowhere"); });
    check_open_error("ViTForImageClassification::from_pretrained",
                     [] { (void)ViTForImageClassification::from_pretrained("/nowhere"); });
    check_open_error("GPT2Config::load", [] { (void)GPT2Config::load("/nowhere/config.json"); });
    GPT2 model(gpt2());
    check_open_error("GPT2::load_weights", [&] { (void)model.load_weights("/nowhere/model.safetensors"); });
}

TEST_CASE("model folders: loading changes nothing if a later weight is invalid") {
    const TempFolder folder;
    GPT2 model(gpt2()), other(gpt2());
    other.save_pretrained(folder / "m", 2000);
    const std::vector<double> before = state_of(model);
    // The index and the headers are valid, and the data of the last file is gone when it is read.
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder / "m"))
        if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    std::ranges::sort(files);
    REQUIRE(files.size() > 2);
    const auto check_load_error = [&] {
        CHECK_THROWS_AS((void)model.load_weights(folder / "m"), Error);
        CHECK(state_of(model) == before);
    };
    const Bytes complete = get_file(files.back());
    put_file(files.back(), std::span(complete).first(complete.size() - 4));
    check_load_error();
    put_file(files.back(), complete);
    // An invalid bool in place of a weight is found only when it is read.
    io::Safetensors content = io::read_safetensors(files.back());
    auto& [name, array] = *content.arrays.rbegin();
    array.dtype = DType::boolean;
    array.bytes.assign(static_cast<std::size_t>(array.shape.numel()), std::byte{7});
    io::write_safetensors(files.back(), content);
    check_load_error();
    put_file(files.back(), complete);
    (void)model.load_weights(folder / "m");
    CHECK(state_of(model) == state_of(other));
    // Shape errors name the file.
    GPT2Config wide_config = gpt2();
    wide_config.vocab_size = 13;
    GPT2 larger(wide_config);
    CHECK(has(error_message<ShapeError>([&] { (void)larger.load_weights(folder / "m"); }),
              "in '" + (folder / "m").string()));
}

TEST_CASE("model folders: merged adapters leave nothing in the files") {
    const TempFolder folder;
    Llama model(llama());
    (void)nn::add_lora(model, {.r = 2, .lora_alpha = 4, .target_modules = {"q_proj"}});
    {
        const NoGrad no_grad;
        std::uint64_t seed = 7;
        for (const Tensor& lora_parameter : nn::lora_parameters(model))
            Tensor(lora_parameter).copy_(random_tensor(lora_parameter.shape(), ++seed));
    }
    nn::merge_lora(model);
    model.save_pretrained(folder / "m");
    const io::SafetensorsReader reader(folder / "m");
    for (const auto& [name, array] : reader.arrays()) CHECK_MESSAGE(!has(name, "lora"), name);
    Llama read = Llama::from_pretrained(folder / "m");
    model.eval();
    const Tensor tokens = Tensor::from<std::int64_t>({3, 0, 7}, {1, 3});
    CHECK(values(read(tokens)) == values(model(tokens)));
    // Weights of the base model are read into a model with adapters.
    Llama adapted(llama());
    (void)nn::add_lora(adapted, {.r = 2, .target_modules = {"q_proj"}});
    const LoadedState found = adapted.load_weights(folder / "m");
    CHECK(found.missing.empty());
    CHECK(found.unexpected.empty());
}

TEST_CASE("model folders: fields of config.json are preserved and describe what is saved") {
    const TempFolder folder;
    GPT2(gpt2()).save_pretrained(folder / "m");
    std::string text = text_of(folder / "m" / "config.json");
    text.replace(text.find('{'), 1,
                 R"({"bos_token_id":3,"eos_token_id":4,"torch_dtype":"float32","summary_type":"cls_index",)");
    put_file(folder / "m" / "config.json", bytes_of(text));
    const GPT2 model = GPT2::from_pretrained(folder / "m", {.dtype = DType::bf16});
    CHECK(model.config().eos_token_id == std::vector<std::int64_t>{4});
    model.save_pretrained(folder / "again");
    const GPT2Config again = GPT2Config::load(folder / "again" / "config.json");
    CHECK(again.bos_token_id == 3);
    CHECK(again.eos_token_id == std::vector<std::int64_t>{4});
    CHECK(again.other_fields.at("summary_type") == "\"cls_index\"");
    CHECK(again.other_fields.at("torch_dtype") == "\"bfloat16\"");
    CHECK(again.other_fields.at("architectures") == "[\"GPT2LMHeadModel\"]");
    BERTForMaskedLM(bert()).save_pretrained(folder / "masked");
    CHECK(BERTConfig::load(folder / "masked" / "config.json").other_fields.at("architectures") ==
          "[\"BertForMaskedLM\"]");
}
