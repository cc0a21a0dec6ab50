#include <declivity/models/gpt2.hpp>

#include <utility>

#include <declivity/nn/dropout.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/runtime/scope.hpp>

#include "activation.hpp"
#include "parts.hpp"
#include "weights.hpp"

namespace declivity::models {
namespace {

constexpr FileLayout kGPT2Layout{.prefix = "transformer.", .is_transposed = [](std::string_view name) {
                                     return name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") ||
                                            name.ends_with("c_fc.weight");
                                 }};

class GPT2Attention : public nn::Callable<Tensor(Tensor, LayerInputs)> {
  public:
    GPT2Attention(const GPT2Config& config, std::int64_t layer, const ModelOptions& options)
        : c_attn_(add("c_attn", nn::Linear(config.n_embd, 3 * config.n_embd, linear_options(true, options)))),
          c_proj_(add("c_proj", nn::Linear(config.n_embd, config.n_embd, linear_options(true, options)))),
          resid_dropout_(add("resid_dropout", nn::Dropout(config.resid_pdrop))),
          layer_(layer),
          heads_(config.n_head),
          dropout_(config.attn_pdrop) {
        if (config.scale_attn_weights) scale_ = 1 / std::sqrt(static_cast<double>(config.n_embd / config.n_head));
        if (config.scale_attn_by_inverse_layer_idx) scale_ /= static_cast<double>(layer + 1);
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GPT2Attention); }

  protected:
    Tensor forward(Tensor x, LayerInputs inputs) override {
        // One product; the heads are views of its result.
        const Tensor qkv = reshape(c_attn_(x), {x.size(0), x.size(1), 3, heads_, x.size(2) / heads_});
        const auto part = [&](std::int64_t i) { return permute(select(qkv, 2, i), {0, 2, 1, 3}); };
        const Tensor q = part(0), k = part(1), v = part(2);
        const Tensor y = inputs.cache.defined() ? inputs.cache.attend(layer_, q, k, v, {.scale = scale_})
                                                : scaled_dot_product_attention(q, k, v,
                                                                               {.attn_mask = inputs.mask,
                                                                                .dropout_p = training() ? dropout_ : 0,
                                                                                .is_causal = true,
                                                                                .scale = scale_});
        return resid_dropout_(c_proj_(merge_heads(y)));
    }

  private:
    nn::Linear &c_attn_, &c_proj_;
    nn::Dropout& resid_dropout_;
    std::int64_t layer_, heads_;
    double dropout_, scale_ = 1;
};

class GPT2Feedforward : public nn::Layer {
  public:
    GPT2Feedforward(const GPT2Config& config, const ModelOptions& options)
        : c_fc_(add("c_fc", nn::Linear(config.n_embd, config.n_inner.value_or(4 * config.n_embd),
                                       linear_options(true, options)))),
          c_proj_(add("c_proj", nn::Linear(config.n_inner.value_or(4 * config.n_embd), config.n_embd,
                                           linear_options(true, options)))),
          dropout_(add("dropout", nn::Dropout(config.resid_pdrop))),
          activation_(activation_of("GPT2Config::activation_function", config.activation_function)) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GPT2Feedforward); }

  protected:
    Tensor forward(Tensor x) override { return dropout_(c_proj_(activation_(c_fc_(std::move(x))))); }

  private:
    nn::Linear &c_fc_, &c_proj_;
    nn::Dropout& dropout_;
    Activation activation_;
};

nn::LayerNorm make_norm(const GPT2Config& config, const ModelOptions& options) {
    return nn::LayerNorm(config.n_embd,
                         {.eps = config.layer_norm_epsilon, .dtype = options.dtype, .device = options.device});
}

class GPT2Block : public nn::Callable<Tensor(Tensor, LayerInputs)> {
  public:
    GPT2Block(const GPT2Config& config, std::int64_t layer, const ModelOptions& options)
        : ln_1_(add("ln_1", make_norm(config, options))),
          attn_(add("attn", GPT2Attention(config, layer, options))),
          ln_2_(add("ln_2", make_norm(config, options))),
          mlp_(add("mlp", GPT2Feedforward(config, options))) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GPT2Block); }

  protected:
    Tensor forward(Tensor x, LayerInputs inputs) override {
        x = x + attn_(ln_1_(x), std::move(inputs));
        return x + mlp_(ln_2_(x));
    }

  private:
    nn::LayerNorm& ln_1_;
    GPT2Attention& attn_;
    nn::LayerNorm& ln_2_;
    GPT2Feedforward& mlp_;
};

}  // namespace

class GPT2Model : public nn::Callable<Tensor(Tensor, CausalInputs)> {
  public:
    GPT2Model(const GPT2Config& config, const ModelOptions& options)
        : wte_(add("wte", nn::Embedding(config.vocab_size, config.n_embd,
                                        {.dtype = options.dtype, .device = options.device}))),
          wpe_(add("wpe", nn::Embedding(config.n_positions, config.n_embd,
                                        {.dtype = options.dtype, .device = options.device}))),
          drop_(add("drop", nn::Dropout(config.embd_pdrop))),
          h_(add("h", nn::ModuleList<GPT2Block>())),
          ln_f_([&]() -> nn::LayerNorm& {
              for (std::int64_t layer = 0; layer < config.n_layer; ++layer)
                  h_.append(GPT2Block(config, layer, options));
              return add("ln_f", make_norm(config, options));
          }()),
          max_positions_(config.n_positions) {}
    [[nodiscard]] Tensor embedding() const { return wte_.weight(); }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(GPT2Model); }

  protected:
    Tensor forward(Tensor input_ids, CausalInputs inputs) override {
        require_tokens("GPT2", input_ids, max_positions_);
        Tensor positions = resolve_positions("GPT2", input_ids, inputs);
        if (!positions.defined()) positions = arange(0, input_ids.size(1), 1, {DType::i64, input_ids.device()});
        Tensor x = drop_(wte_(input_ids) + wpe_(positions));
        const LayerInputs layer_inputs{inputs.cache, mask_of("GPT2", inputs.attention_mask, input_ids), {}};
        return ln_f_(run_blocks(h_, std::move(x), inputs, layer_inputs));
    }

  private:
    nn::Embedding &wte_, &wpe_;
    nn::Dropout& drop_;
    nn::ModuleList<GPT2Block>& h_;
    nn::LayerNorm& ln_f_;
    std::int64_t max_positions_;
};

GPT2::GPT2(const GPT2Config& config, const ModelOptions& options)
    : config_(config),
      transformer_((config.check(), add("transformer", GPT2Model(config, options)))),
      lm_head_(add("lm_head", LMHead(config.tie_word_embeddings ? transformer_.embedding()
                                                                : zeros({config.vocab_size, config.n_embd},
                                                                        {options.dtype, options.device})))) {
    initialise(*this, config.initializer_range);
    // Residual projections are scaled by the number of residual branches, 2 n_layer.
    for (const auto& [name, tensor] : named_parameters())
        if (name.ends_with("c_proj.weight"))
            nn::normal_(tensor, 0, config.initializer_range / std::sqrt(2 * static_cast<double>(config.n_layer)));
}

Tensor GPT2::hidden_states(Tensor input_ids, CausalInputs inputs) {
    return transformer_(std::move(input_ids), std::move(inputs));
}
Tensor GPT2::logits(Tensor hidden) { return lm_head_(std::move(hidden)); }

nn::KeyValueCache GPT2::make_cache(std::int64_t batch, std::int64_t max_length,
                                   const nn::KeyValueCacheOptions& options) const {
    require_cache_length("GPT2", max_length, config_.n_positions);
    return nn::KeyValueCache(config_.n_layer, batch, config_.n_head, config_.n_embd / config_.n_head, max_length,
                             cache_options(*this, options));
}

namespace {

void visit_parameters(const GPT2Config& config, const VisitParameter& visit) {
    const std::int64_t width = config.n_embd, inner = config.n_inner.value_or(4 * width);
    if (config.tie_word_embeddings) visit({"transformer.wte.weight", "lm_head.weight"}, {config.vocab_size, width});
    else visit({"transformer.wte.weight"}, {config.vocab_size, width});
    visit({"transformer.wpe.weight"}, {config.n_positions, width});
    for (std::int64_t layer = 0; layer < config.n_layer; ++layer) {
        const std::string name = fmt::format("transformer.h.{}.", layer);
        visit_layer(visit, name + "ln_1", {width});
        visit_layer(visit, name + "attn.c_attn", {3 * width, width});
        visit_layer(visit, name + "attn.c_proj", {width, width});
        visit_layer(visit, name + "ln_2", {width});
        visit_layer(visit, name + "mlp.c_fc", {inner, width});
        visit_layer(visit, name + "mlp.c_proj", {width, inner});
    }
    visit_layer(visit, "transformer.ln_f", {width});
    if (!config.tie_word_embeddings) visit({"lm_head.weight"}, {config.vocab_size, width});
}

}  // namespace

GPT2 GPT2::from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options) {
    constexpr const char* name = "GPT2::from_pretrained";
    const FunctionScope function(name);
    const GPT2Config config = GPT2Config::load(folder / "config.json");
    return read_pretrained<GPT2>(
        name, folder, kGPT2Layout, options.strict,
        [&](const VisitParameter& visit) { visit_parameters(config, visit); },
        [&] {
            return GPT2(config, {options.dtype, options.device});
        });
}
LoadedState GPT2::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("GPT2::load_weights");
    return models::load_weights("GPT2::load_weights", *this, path, kGPT2Layout, strict);
}
void GPT2::save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size) const {
    const FunctionScope function("GPT2::save_pretrained");
    save_weights(*this, folder, kGPT2Layout, max_shard_size);
    GPT2Config config = config_;
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "GPT2LMHeadModel");
    config.save(folder / "config.json");
}

}  // namespace declivity::models
