// Layer 7. Model configurations: the config.json of Hugging Face models. Fields have the names and defaults of the
// package transformers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/ops/dtype.hpp>
#include <declivity/runtime/device.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

/// Type and device of the parameters.
struct ModelOptions {
    DType dtype = DType::f32;
    std::optional<Device> device = std::nullopt;  ///< default_device() if none
};

/// Fields of a config.json without a corresponding member, by key: values as JSON, such as "\"float32\"" for
/// "torch_dtype". Members take precedence.
using OtherFields = std::map<std::string, std::string>;

// load() reads a config.json. Unknown keys are kept in other_fields, and save() writes them back; a key for an
// unsupported feature (cross-attention, for example) is refused.
// @throws FormatError naming file and position for invalid contents or another model_type; IoError
// save() writes a config.json that transformers can read, atomically. @throws IoError; ValueError if other_fields are
// not valid JSON
// check() validates the sizes. @throws ValueError naming the field

/// GPT-2 (A. Radford et al., Language models are unsupervised multitask learners, 2019).
struct DECLIVITY_API GPT2Config {
    std::int64_t vocab_size = 50257;
    std::int64_t n_positions = 1024;  ///< maximum sequence length
    std::int64_t n_embd = 768;
    std::int64_t n_layer = 12;
    std::int64_t n_head = 12;
    std::optional<std::int64_t> n_inner = std::nullopt;  ///< width of the feed-forward block; 4 n_embd if none
    std::string activation_function = "gelu_new";
    double resid_pdrop = 0.1;
    double embd_pdrop = 0.1;
    double attn_pdrop = 0.1;
    double layer_norm_epsilon = 1e-5;
    double initializer_range = 0.02;
    bool scale_attn_weights = true;
    bool scale_attn_by_inverse_layer_idx = false;
    bool tie_word_embeddings = true;
    // Special tokens of the config, for GenerationOptions and tokenizers; not used by the model itself.
    std::optional<std::int64_t> bos_token_id = std::nullopt;
    std::vector<std::int64_t> eos_token_id = {};  ///< a single token or a list in the file; empty if none
    std::optional<std::int64_t> pad_token_id = std::nullopt;
    OtherFields other_fields = {};

    static GPT2Config load(const std::filesystem::path& path);
    void save(const std::filesystem::path& path) const;
    void check() const;
};

/// Scaling of rotary frequencies (RoPE) for sequences longer than in training.
struct RopeScaling {
    std::string rope_type = "default";  ///< default, linear (all divided by factor) or llama3
    double factor = 1;
    /// For llama3: wavelengths above original_max_position_embeddings / low_freq_factor are stretched by factor, those
    /// below original_max_position_embeddings / high_freq_factor are unchanged, with interpolation in between.
    double low_freq_factor = 1, high_freq_factor = 4;
    std::int64_t original_max_position_embeddings = 8192;
};

/// Llama (H. Touvron et al., LLaMA, 2023; The Llama 3 herd of models, 2024), and models of the same architecture:
/// Mistral, Qwen2.
struct DECLIVITY_API LlamaConfig {
    std::string model_type = "llama";  ///< llama, mistral or qwen2
    std::int64_t vocab_size = 32000;
    std::int64_t hidden_size = 4096;
    std::int64_t intermediate_size = 11008;
    std::int64_t num_hidden_layers = 32;
    std::int64_t num_attention_heads = 32;
    std::optional<std::int64_t> num_key_value_heads = std::nullopt;  ///< num_attention_heads if none
    std::optional<std::int64_t> head_dim = std::nullopt;             ///< hidden_size / num_attention_heads if none
    std::string hidden_act = "silu";
    std::int64_t max_position_embeddings = 2048;
    double initializer_range = 0.02;
    double rms_norm_eps = 1e-6;
    bool tie_word_embeddings = false;
    double rope_theta = 10000;
    RopeScaling rope_scaling = {};
    bool attention_bias = false;  ///< biases of all four projections
    bool qkv_bias = false;        ///< biases of query, key and value only, as in Qwen2
    bool mlp_bias = false;
    double attention_dropout = 0;
    std::optional<std::int64_t> sliding_window = std::nullopt;  ///< a token attends to those less than this far away
    std::int64_t max_window_layers = 0;                         ///< number of first layers without a sliding window
    // Special tokens of the config, for GenerationOptions and tokenizers; not used by the model itself.
    std::optional<std::int64_t> bos_token_id = std::nullopt;
    std::vector<std::int64_t> eos_token_id = {};  ///< a single token or a list in the file; empty if none
    std::optional<std::int64_t> pad_token_id = std::nullopt;
    OtherFields other_fields = {};

    /// For Mistral and Qwen2, defaults are those of their own configurations.
    static LlamaConfig load(const std::filesystem::path& path);
    void save(const std::filesystem::path& path) const;
    void check() const;
    [[nodiscard]] std::int64_t kv_heads() const { return num_key_value_heads.value_or(num_attention_heads); }
    [[nodiscard]] std::int64_t head_width() const { return head_dim.value_or(hidden_size / num_attention_heads); }
};

/// BERT (J. Devlin et al., 2018).
struct DECLIVITY_API BERTConfig {
    std::int64_t vocab_size = 30522;
    std::int64_t hidden_size = 768;
    std::int64_t num_hidden_layers = 12;
    std::int64_t num_attention_heads = 12;
    std::int64_t intermediate_size = 3072;
    std::string hidden_act = "gelu";
    double hidden_dropout_prob = 0.1;
    double attention_probs_dropout_prob = 0.1;
    std::int64_t max_position_embeddings = 512;
    std::int64_t type_vocab_size = 2;
    double initializer_range = 0.02;
    double layer_norm_eps = 1e-12;
    std::optional<double> classifier_dropout = std::nullopt;  ///< hidden_dropout_prob if none
    bool tie_word_embeddings = true;                          ///< of the masked language model head
    std::int64_t num_labels = 2;                              ///< number of entries of id2label
    OtherFields other_fields = {};

    static BERTConfig load(const std::filesystem::path& path);
    void save(const std::filesystem::path& path) const;
    void check() const;
};

/// Vision transformer (A. Dosovitskiy et al., An image is worth 16x16 words, 2020).
struct DECLIVITY_API ViTConfig {
    std::int64_t hidden_size = 768;
    std::int64_t num_hidden_layers = 12;
    std::int64_t num_attention_heads = 12;
    std::int64_t intermediate_size = 3072;
    std::string hidden_act = "gelu";
    double hidden_dropout_prob = 0;
    double attention_probs_dropout_prob = 0;
    double initializer_range = 0.02;
    double layer_norm_eps = 1e-12;
    std::int64_t image_size = 224;  ///< pixels, of both axes
    std::int64_t patch_size = 16;
    std::int64_t num_channels = 3;
    bool qkv_bias = true;
    std::optional<std::int64_t> pooler_output_size = std::nullopt;  ///< hidden_size if none
    std::string pooler_act = "tanh";
    std::int64_t num_labels = 2;  ///< number of entries of id2label
    OtherFields other_fields = {};

    static ViTConfig load(const std::filesystem::path& path);
    void save(const std::filesystem::path& path) const;
    void check() const;
};

/// @}

}  // namespace declivity::models
