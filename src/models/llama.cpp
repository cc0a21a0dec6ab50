#include <declivity/models/llama.hpp>

#include <numbers>
#include <utility>
#include <vector>

#include <declivity/nn/embedding.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/runtime/scope.hpp>

#include "activation.hpp"
#include "parts.hpp"
#include "weights.hpp"

namespace declivity::models {
namespace {

constexpr FileLayout kLlamaLayout{.prefix = "model."};

/// Radians per token of each pair of elements (J. Su et al., RoFormer, 2021), scaled according to RopeScaling.
std::vector<double> rotary_frequencies(const LlamaConfig& config) {
    const RopeScaling& scaling = config.rope_scaling;
    const auto original = static_cast<double>(scaling.original_max_position_embeddings);
    const std::int64_t width = config.head_width();
    std::vector<double> out;
    for (std::int64_t i = 0; i < width / 2; ++i) {
        double frequency = std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
        if (scaling.rope_type == "linear") frequency /= scaling.factor;
        if (scaling.rope_type == "llama3") {
            const double rotations = original * frequency / (2 * std::numbers::pi);  // in the original length
            const double ramp =
                (rotations - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
            const double smooth = std::min(1.0, std::max(0.0, ramp));
            frequency = (1 - smooth) * frequency / scaling.factor + smooth * frequency;
        }
        out.push_back(frequency);
    }
    return out;
}

class LlamaAttention : public nn::Callable<Tensor(Tensor, LayerInputs, Tensor)> {
  public:
    LlamaAttention(const LlamaConfig& config, std::int64_t layer, const ModelOptions& options)
        : q_proj_(add("q_proj", projection(config, config.num_attention_heads, options))),
          k_proj_(add("k_proj", projection(config, config.kv_heads(), options))),
          v_proj_(add("v_proj", projection(config, config.kv_heads(), options))),
          o_proj_(add("o_proj", nn::Linear(config.num_attention_heads * config.head_width(), config.hidden_size,
                                           linear_options(config.attention_bias, options)))),
          layer_(layer),
          heads_(config.num_attention_heads),
          kv_heads_(config.kv_heads()),
          dropout_(config.attention_dropout) {
        if (layer >= config.max_window_layers) window_ = config.sliding_window;
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LlamaAttention); }

  protected:
    Tensor forward(Tensor x, LayerInputs inputs, Tensor frequencies) override {
        const auto rotate = [&](const Tensor& projected, std::int64_t heads) {
            return rotary_embedding(split_heads(projected, heads),
                                    {.frequencies = frequencies, .positions = inputs.positions});
        };
        const Tensor q = rotate(q_proj_(x), heads_), k = rotate(k_proj_(x), kv_heads_),
                     v = split_heads(v_proj_(x), kv_heads_);
        const Tensor y = inputs.cache.defined() ? inputs.cache.attend(layer_, q, k, v, {.window = window_})
                                                : scaled_dot_product_attention(q, k, v,
                                                                               {.attn_mask = inputs.mask,
                                                                                .dropout_p = training() ? dropout_ : 0,
                                                                                .is_causal = true,
                                                                                .enable_gqa = heads_ != kv_heads_,
                                                                                .window = window_});
        return o_proj_(merge_heads(y));
    }

  private:
    static nn::Linear projection(const LlamaConfig& config, std::int64_t heads, const ModelOptions& options) {
        return nn::Linear(config.hidden_size, heads * config.head_width(),
                          linear_options(config.attention_bias || config.qkv_bias, options));
    }

    nn::Linear &q_proj_, &k_proj_, &v_proj_, &o_proj_;
    std::int64_t layer_, heads_, kv_heads_;
    double dropout_;
    std::optional<std::int64_t> window_;
};

class LlamaFeedforward : public nn::Layer {
  public:
    LlamaFeedforward(const LlamaConfig& config, const ModelOptions& options)
        : gate_proj_(add("gate_proj", up(config, options))),
          up_proj_(add("up_proj", up(config, options))),
          down_proj_(add("down_proj", nn::Linear(config.intermediate_size, config.hidden_size,
                                                 linear_options(config.mlp_bias, options)))),
          activation_(activation_of("LlamaConfig::hidden_act", config.hidden_act)) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LlamaFeedforward); }

  protected:
    Tensor forward(Tensor x) override { return down_proj_(activation_(gate_proj_(x)) * up_proj_(x)); }

  private:
    static nn::Linear up(const LlamaConfig& config, const ModelOptions& options) {
        return nn::Linear(config.hidden_size, config.intermediate_size, linear_options(config.mlp_bias, options));
    }

    nn::Linear &gate_proj_, &up_proj_, &down_proj_;
    Activation activation_;
};

nn::RMSNorm make_norm(const LlamaConfig& config, const ModelOptions& options) {
    return nn::RMSNorm(config.hidden_size,
                       {.eps = config.rms_norm_eps, .dtype = options.dtype, .device = options.device});
}

class LlamaBlock : public nn::Callable<Tensor(Tensor, LayerInputs, Tensor)> {
  public:
    LlamaBlock(const LlamaConfig& config, std::int64_t layer, const ModelOptions& options)
        : self_attn_(add("self_attn", LlamaAttention(config, layer, options))),
          mlp_(add("mlp", LlamaFeedforward(config, options))),
          input_layernorm_(add("input_layernorm", make_norm(config, options))),
          post_attention_layernorm_(add("post_attention_layernorm", make_norm(config, options))) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LlamaBlock); }

  protected:
    Tensor forward(Tensor x, LayerInputs inputs, Tensor frequencies) override {
        x = x + self_attn_(input_layernorm_(x), std::move(inputs), std::move(frequencies));
        return x + mlp_(post_attention_layernorm_(x));
    }

  private:
    LlamaAttention& self_attn_;
    LlamaFeedforward& mlp_;
    nn::RMSNorm &input_layernorm_, &post_attention_layernorm_;
};

}  // namespace

class LlamaModel : public nn::Callable<Tensor(Tensor, CausalInputs)> {
  public:
    LlamaModel(const LlamaConfig& config, const ModelOptions& options)
        : embed_tokens_(add("embed_tokens", nn::Embedding(config.vocab_size, config.hidden_size,
                                                          {.dtype = options.dtype, .device = options.device}))),
          layers_(add("layers", nn::ModuleList<LlamaBlock>())),
          norm_([&]() -> nn::RMSNorm& {
              for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
                  layers_.append(LlamaBlock(config, layer, options));
              return add("norm", make_norm(config, options));
          }()),
          max_positions_(config.max_position_embeddings),
          frequencies_(as_tensor(rotary_frequencies(config), options)) {}
    [[nodiscard]] Tensor embedding() const { return embed_tokens_.weight(); }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LlamaModel); }

  protected:
    Tensor forward(Tensor input_ids, CausalInputs inputs) override {
        require_tokens("Llama", input_ids, max_positions_);
        Tensor x = embed_tokens_(input_ids);
        // It is not part of the state dict, but is moved with the model.
        if (!(frequencies_.device() == x.device())) frequencies_ = frequencies_.to(x.device());
        const Tensor frequencies = frequencies_.to(compute_type(x.dtype()));
        const Tensor positions = resolve_positions("Llama", input_ids, inputs);
        const LayerInputs layer_inputs{inputs.cache, mask_of("Llama", inputs.attention_mask, input_ids),
                                       positions.defined() ? unsqueeze(positions, 1) : Tensor()};
        return norm_(run_blocks(layers_, std::move(x), inputs, layer_inputs, frequencies));
    }

  private:
    static Tensor as_tensor(const std::vector<double>& values, const ModelOptions& options) {
        const Shape shape{static_cast<std::int64_t>(values.size())};
        if (options.dtype == DType::f64) return Tensor::from(values, shape, options.device);
        return Tensor::from(std::vector<float>(values.begin(), values.end()), shape, options.device);
    }

    nn::Embedding& embed_tokens_;
    nn::ModuleList<LlamaBlock>& layers_;
    nn::RMSNorm& norm_;
    std::int64_t max_positions_;
    Tensor frequencies_;
};

Llama::Llama(const LlamaConfig& config, const ModelOptions& options)
    : config_(config),
      model_((config.check(), add("model", LlamaModel(config, options)))),
      lm_head_(add("lm_head", LMHead(config.tie_word_embeddings ? model_.embedding()
                                                                : zeros({config.vocab_size, config.hidden_size},
                                                                        {options.dtype, options.device})))) {
    initialise(*this, config.initializer_range);
}

Tensor Llama::hidden_states(Tensor input_ids, CausalInputs inputs) {
    return model_(std::move(input_ids), std::move(inputs));
}
Tensor Llama::logits(Tensor hidden) { return lm_head_(std::move(hidden)); }

nn::KeyValueCache Llama::make_cache(std::int64_t batch, std::int64_t max_length,
                                    const nn::KeyValueCacheOptions& options) const {
    require_cache_length("Llama", max_length, config_.max_position_embeddings);
    return nn::KeyValueCache(config_.num_hidden_layers, batch, config_.kv_heads(), config_.head_width(), max_length,
                             cache_options(*this, options));
}

namespace {

void visit_parameters(const LlamaConfig& config, const VisitParameter& visit) {
    const std::int64_t width = config.hidden_size, inner = config.intermediate_size,
                       queries = config.num_attention_heads * config.head_width(),
                       keys = config.kv_heads() * config.head_width();
    const Shape embedding_shape{config.vocab_size, width};
    if (config.tie_word_embeddings) visit({"model.embed_tokens.weight", "lm_head.weight"}, embedding_shape);
    else visit({"model.embed_tokens.weight"}, embedding_shape);
    const bool qkv_bias = config.attention_bias || config.qkv_bias;
    for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
        const std::string name = fmt::format("model.layers.{}.", layer);
        visit_layer(visit, name + "self_attn.q_proj", {queries, width}, qkv_bias);
        visit_layer(visit, name + "self_attn.k_proj", {keys, width}, qkv_bias);
        visit_layer(visit, name + "self_attn.v_proj", {keys, width}, qkv_bias);
        visit_layer(visit, name + "self_attn.o_proj", {width, queries}, config.attention_bias);
        visit_layer(visit, name + "mlp.gate_proj", {inner, width}, config.mlp_bias);
        visit_layer(visit, name + "mlp.up_proj", {inner, width}, config.mlp_bias);
        visit_layer(visit, name + "mlp.down_proj", {width, inner}, config.mlp_bias);
        visit_layer(visit, name + "input_layernorm", {width}, false);
        visit_layer(visit, name + "post_attention_layernorm", {width}, false);
    }
    visit_layer(visit, "model.norm", {width}, false);
    if (!config.tie_word_embeddings) visit({"lm_head.weight"}, embedding_shape);
}

}  // namespace

Llama Llama::from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options) {
    constexpr const char* name = "Llama::from_pretrained";
    const FunctionScope function(name);
    const LlamaConfig config = LlamaConfig::load(folder / "config.json");
    return read_pretrained<Llama>(
        name, folder, kLlamaLayout, options.strict,
        [&](const VisitParameter& visit) { visit_parameters(config, visit); },
        [&] {
            return Llama(config, {options.dtype, options.device});
        });
}
LoadedState Llama::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("Llama::load_weights");
    return models::load_weights("Llama::load_weights", *this, path, kLlamaLayout, strict);
}
void Llama::save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size) const {
    const FunctionScope function("Llama::save_pretrained");
    save_weights(*this, folder, kLlamaLayout, max_shard_size);
    LlamaConfig config = config_;
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "LlamaForCausalLM");
    config.save(folder / "config.json");
}

}  // namespace declivity::models
