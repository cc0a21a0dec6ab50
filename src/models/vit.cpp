#include <declivity/models/vit.hpp>

#include <utility>

#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/runtime/scope.hpp>

#include "encoder.hpp"
#include "weights.hpp"

namespace declivity::models {
namespace {

constexpr FileLayout kViTLayout{.prefix = "vit."};

nn::LayerNorm make_norm(const ViTConfig& config, const ModelOptions& options) {
    return nn::LayerNorm(config.hidden_size,
                         {.eps = config.layer_norm_eps, .dtype = options.dtype, .device = options.device});
}

class ViTBlock : public nn::Layer {
  public:
    ViTBlock(const ViTConfig& config, const ModelOptions& options)
        : attention_(add("attention", Container())),
          self_(
              attention_.add("attention", SelfAttention(config.hidden_size, config.num_attention_heads, config.qkv_bias,
                                                        config.attention_probs_dropout_prob, options))),
          attention_output_(attention_.add("output", Dense(config.hidden_size, config.hidden_size, options))),
          intermediate_(add("intermediate", Dense(config.hidden_size, config.intermediate_size, options,
                                                  activation_of("ViTConfig::hidden_act", config.hidden_act)))),
          output_(add("output", Dense(config.intermediate_size, config.hidden_size, options))),
          norm_before_(add("layernorm_before", make_norm(config, options))),
          norm_after_(add("layernorm_after", make_norm(config, options))),
          dropout_(add("dropout", nn::Dropout(config.hidden_dropout_prob))) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ViTBlock); }

  protected:
    Tensor forward(Tensor x) override {
        x = x + dropout_(attention_output_(self_(norm_before_(x))));
        return x + dropout_(output_(intermediate_(norm_after_(x))));
    }

  private:
    Container& attention_;
    SelfAttention& self_;
    Dense &attention_output_, &intermediate_, &output_;
    nn::LayerNorm &norm_before_, &norm_after_;
    nn::Dropout& dropout_;
};

}  // namespace

class ViTEmbeddings : public nn::Layer {
  public:
    ViTEmbeddings(const ViTConfig& config, const ModelOptions& options)
        : patches_(add("patch_embeddings", Container())),
          projection_(patches_.add(
              "projection",
              nn::Conv2d(config.num_channels, config.hidden_size, config.patch_size,
                         {.stride = config.patch_size, .dtype = options.dtype, .device = options.device}))),
          dropout_(add("dropout", nn::Dropout(config.hidden_dropout_prob))),
          image_shape_{config.num_channels, config.image_size, config.image_size} {
        const std::int64_t side = config.image_size / config.patch_size;
        const TensorOptions tensor_options{options.dtype, options.device};
        cls_token_ = parameter("cls_token", zeros({1, 1, config.hidden_size}, tensor_options));
        position_embeddings_ =
            parameter("position_embeddings", zeros({1, side * side + 1, config.hidden_size}, tensor_options));
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ViTEmbeddings); }

  protected:
    Tensor forward(Tensor images) override {
        if (images.rank() != 4 || images.size(1) != image_shape_[0] || images.size(2) != image_shape_[1] ||
            images.size(3) != image_shape_[2])
            throw ShapeError(fmt::format("ViT: expected images (N, {}, {}, {}), got {}", image_shape_[0],
                                         image_shape_[1], image_shape_[2], images.shape().str()));
        const Tensor patches = transpose(flatten(projection_(images), 2), 1, 2), cls_token = cls_token_;
        const Tensor cls_tokens = broadcast_to(cls_token, {images.size(0), 1, cls_token.size(2)});
        return dropout_(concat({cls_tokens, patches}, 1) + position_embeddings_.value());
    }

  private:
    Container& patches_;
    nn::Conv2d& projection_;
    nn::Dropout& dropout_;
    Shape image_shape_;
    Parameter cls_token_, position_embeddings_;
};

class ViTEncoder : public nn::Layer {
  public:
    ViTEncoder(const ViTConfig& config, const ModelOptions& options)
        : layer_(add("layer", nn::ModuleList<ViTBlock>())) {
        for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) layer_.append(ViTBlock(config, options));
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ViTEncoder); }

  protected:
    Tensor forward(Tensor x) override {
        for (ViTBlock& block : layer_) x = block(x);
        return x;
    }

  private:
    nn::ModuleList<ViTBlock>& layer_;
};

ViT::ViT(const ViTConfig& config, const ModelOptions& options, bool add_pooling_layer)
    : config_(config),
      embeddings_((config.check(), add("embeddings", ViTEmbeddings(config, options)))),
      encoder_(add("encoder", ViTEncoder(config, options))),
      layernorm_(add("layernorm", make_norm(config, options))) {
    if (add_pooling_layer)
        pooler_ = &add("pooler", BERTPooler(config.hidden_size, config.pooler_output_size.value_or(config.hidden_size),
                                            activation_of("ViTConfig::pooler_act", config.pooler_act), options));
    initialise(*this, config.initializer_range);
}

EncoderOutput ViT::forward(Tensor pixel_values) {
    const Tensor states = layernorm_(encoder_(embeddings_(std::move(pixel_values))));
    return {states, pooler_ != nullptr ? (*pooler_)(states) : Tensor()};
}

namespace {

/// @param prefix of the names: that of ViT within a model with a head
void visit_parameters(const ViTConfig& config, const std::string& prefix, bool pooler, const VisitParameter& visit) {
    const std::int64_t width = config.hidden_size, inner = config.intermediate_size,
                       side = config.image_size / config.patch_size;
    const std::string embeddings = prefix + "embeddings.";
    visit({embeddings + "cls_token"}, {1, 1, width});
    visit({embeddings + "position_embeddings"}, {1, side * side + 1, width});
    visit_layer(visit, embeddings + "patch_embeddings.projection",
                {width, config.num_channels, config.patch_size, config.patch_size});
    for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
        const std::string name = fmt::format("{}encoder.layer.{}.", prefix, layer);
        for (const char* part : {"attention.attention.query", "attention.attention.key", "attention.attention.value"})
            visit_layer(visit, name + part, {width, width}, config.qkv_bias);
        visit_layer(visit, name + "attention.output.dense", {width, width});
        visit_layer(visit, name + "intermediate.dense", {inner, width});
        visit_layer(visit, name + "output.dense", {width, inner});
        visit_layer(visit, name + "layernorm_before", {width});
        visit_layer(visit, name + "layernorm_after", {width});
    }
    visit_layer(visit, prefix + "layernorm", {width});
    if (pooler) visit_layer(visit, prefix + "pooler.dense", {config.pooler_output_size.value_or(width), width});
}

}  // namespace

ViT ViT::from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options,
                         bool add_pooling_layer) {
    constexpr const char* name = "ViT::from_pretrained";
    const FunctionScope function(name);
    const ViTConfig config = ViTConfig::load(folder / "config.json");
    return read_pretrained<ViT>(
        name, folder, kViTLayout, options.strict,
        [&](const VisitParameter& visit) { visit_parameters(config, "", add_pooling_layer, visit); },
        [&] {
            return ViT(config, {options.dtype, options.device}, add_pooling_layer);
        });
}
LoadedState ViT::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("ViT::load_weights");
    return models::load_weights("ViT::load_weights", *this, path, kViTLayout, strict);
}
void ViT::save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size) const {
    const FunctionScope function("ViT::save_pretrained");
    save_weights(*this, folder, kViTLayout, max_shard_size);
    ViTConfig config = config_;
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "ViTModel");
    config.save(folder / "config.json");
}

ViTForImageClassification::ViTForImageClassification(const ViTConfig& config, const ModelOptions& options)
    : vit_(add("vit", ViT(config, options, false))),
      classifier_(add("classifier", nn::Linear(config.hidden_size, config.num_labels, linear_options(true, options)))) {
    initialise(*this, config.initializer_range);
}
Tensor ViTForImageClassification::forward(Tensor pixel_values) {
    return classifier_(select(vit_(std::move(pixel_values)).last_hidden_state, 1, 0));
}
ViTForImageClassification ViTForImageClassification::from_pretrained(const std::filesystem::path& folder,
                                                                     const PretrainedOptions& options) {
    constexpr const char* name = "ViTForImageClassification::from_pretrained";
    const FunctionScope function(name);
    const ViTConfig config = ViTConfig::load(folder / "config.json");
    const ParameterList parameters = [&](const VisitParameter& visit) {
        visit_parameters(config, "vit.", false, visit);
        visit_layer(visit, "classifier", {config.num_labels, config.hidden_size});
    };
    return read_pretrained<ViTForImageClassification>(name, folder, kViTLayout, options.strict, parameters, [&] {
        return ViTForImageClassification(config, {options.dtype, options.device});
    });
}
LoadedState ViTForImageClassification::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("ViTForImageClassification::load_weights");
    return models::load_weights("ViTForImageClassification::load_weights", *this, path, kViTLayout, strict);
}
void ViTForImageClassification::save_pretrained(const std::filesystem::path& folder,
                                                std::uint64_t max_shard_size) const {
    const FunctionScope function("ViTForImageClassification::save_pretrained");
    save_weights(*this, folder, kViTLayout, max_shard_size);
    ViTConfig config = vit_.config();
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "ViTForImageClassification");
    config.save(folder / "config.json");
}

}  // namespace declivity::models
