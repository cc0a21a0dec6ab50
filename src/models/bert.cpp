#include <declivity/models/bert.hpp>

#include <utility>

#include <declivity/nn/embedding.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/runtime/scope.hpp>

#include "encoder.hpp"
#include "weights.hpp"

namespace declivity::models {
namespace {

constexpr FileLayout kBERTLayout{.prefix = "bert."};

nn::LayerNorm make_norm(const BERTConfig& config, const ModelOptions& options) {
    return nn::LayerNorm(config.hidden_size,
                         {.eps = config.layer_norm_eps, .dtype = options.dtype, .device = options.device});
}

/// norm(residual + dropout(dense(x))).
class Output : public nn::Callable<Tensor(Tensor, Tensor)> {
  public:
    Output(std::int64_t in, const BERTConfig& config, const ModelOptions& options)
        : dense_(add("dense", nn::Linear(in, config.hidden_size, linear_options(true, options)))),
          norm_(add("LayerNorm", make_norm(config, options))),
          dropout_(add("dropout", nn::Dropout(config.hidden_dropout_prob))) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Output); }

  protected:
    Tensor forward(Tensor x, Tensor residual) override { return norm_(dropout_(dense_(std::move(x))) + residual); }

  private:
    nn::Linear& dense_;
    nn::LayerNorm& norm_;
    nn::Dropout& dropout_;
};

class BERTBlock : public nn::Callable<Tensor(Tensor, Tensor)> {
  public:
    BERTBlock(const BERTConfig& config, const ModelOptions& options)
        : attention_(add("attention", Container())),
          self_(attention_.add("self", SelfAttention(config.hidden_size, config.num_attention_heads, true,
                                                     config.attention_probs_dropout_prob, options))),
          attention_output_(attention_.add("output", Output(config.hidden_size, config, options))),
          intermediate_(add("intermediate", Dense(config.hidden_size, config.intermediate_size, options,
                                                  activation_of("BERTConfig::hidden_act", config.hidden_act)))),
          output_(add("output", Output(config.intermediate_size, config, options))) {}
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTBlock); }

  protected:
    Tensor forward(Tensor x, Tensor mask) override {
        x = attention_output_(self_(x, std::move(mask)), x);
        return output_(intermediate_(x), x);
    }

  private:
    Container& attention_;
    SelfAttention& self_;
    Output& attention_output_;
    Dense& intermediate_;
    Output& output_;
};

}  // namespace

class BERTEmbeddings : public nn::Callable<Tensor(Tensor, Tensor, Tensor)> {
  public:
    BERTEmbeddings(const BERTConfig& config, const ModelOptions& options)
        : word_embeddings_(add("word_embeddings", make_embedding(config.vocab_size, config, options))),
          position_embeddings_(
              add("position_embeddings", make_embedding(config.max_position_embeddings, config, options))),
          token_type_embeddings_(add("token_type_embeddings", make_embedding(config.type_vocab_size, config, options))),
          norm_(add("LayerNorm", make_norm(config, options))),
          dropout_(add("dropout", nn::Dropout(config.hidden_dropout_prob))) {}
    [[nodiscard]] Tensor word_weight() const { return word_embeddings_.weight(); }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTEmbeddings); }

  protected:
    Tensor forward(Tensor tokens, Tensor token_type_ids, Tensor position_ids) override {
        if (!position_ids.defined()) position_ids = arange(0, tokens.size(1), 1, {DType::i64, tokens.device()});
        if (!token_type_ids.defined()) token_type_ids = zeros({1, tokens.size(1)}, {DType::i64, tokens.device()});
        return dropout_(norm_(word_embeddings_(tokens) + token_type_embeddings_(token_type_ids) +
                              position_embeddings_(position_ids)));
    }

  private:
    static nn::Embedding make_embedding(std::int64_t rows, const BERTConfig& config, const ModelOptions& options) {
        return nn::Embedding(rows, config.hidden_size, {.dtype = options.dtype, .device = options.device});
    }

    nn::Embedding &word_embeddings_, &position_embeddings_, &token_type_embeddings_;
    nn::LayerNorm& norm_;
    nn::Dropout& dropout_;
};

class BERTEncoder : public nn::Callable<Tensor(Tensor, Tensor)> {
  public:
    BERTEncoder(const BERTConfig& config, const ModelOptions& options)
        : layer_(add("layer", nn::ModuleList<BERTBlock>())) {
        for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) layer_.append(BERTBlock(config, options));
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTEncoder); }

  protected:
    Tensor forward(Tensor x, Tensor mask) override {
        for (BERTBlock& block : layer_) x = block(x, mask);
        return x;
    }

  private:
    nn::ModuleList<BERTBlock>& layer_;
};

/// Masked-LM head, from token states to word scores; its parameters are named "cls.predictions" in files.
class BERTPredictions : public nn::Layer {
  public:
    BERTPredictions(const BERTConfig& config, const Tensor& word_weight, const ModelOptions& options)
        : transform_(add("transform", Container())),
          dense_(transform_.add("dense",
                                nn::Linear(config.hidden_size, config.hidden_size, linear_options(true, options)))),
          norm_(transform_.add("LayerNorm", make_norm(config, options))),
          decoder_(add("decoder", LMHead(word_weight))),
          activation_(activation_of("BERTConfig::hidden_act", config.hidden_act)) {
        bias_ = parameter("bias", zeros({config.vocab_size}, {options.dtype, options.device}));
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTPredictions); }

  protected:
    Tensor forward(Tensor x) override { return decoder_(norm_(activation_(dense_(std::move(x))))) + bias_; }

  private:
    Container& transform_;
    nn::Linear& dense_;
    nn::LayerNorm& norm_;
    LMHead& decoder_;
    Activation activation_;
    Parameter bias_;
};

BERT::BERT(const BERTConfig& config, const ModelOptions& options, bool add_pooling_layer)
    : config_(config),
      embeddings_((config.check(), add("embeddings", BERTEmbeddings(config, options)))),
      encoder_(add("encoder", BERTEncoder(config, options))) {
    if (add_pooling_layer)
        pooler_ =
            &add("pooler", BERTPooler(config.hidden_size, config.hidden_size, activation_of("BERT", "tanh"), options));
    initialise(*this, config.initializer_range);
}

EncoderOutput BERT::forward(Tensor input_ids, BERTInputs inputs) {
    require_tokens("BERT", input_ids, config_.max_position_embeddings);
    for (const auto& [name, ids] :
         {std::pair{"token_type_ids", &inputs.token_type_ids}, std::pair{"position_ids", &inputs.position_ids}})
        if (ids->defined()) ops::require_shape("BERT", name, ids->shape(), input_ids.shape());
    const Tensor states = encoder_(embeddings_(input_ids, inputs.token_type_ids, inputs.position_ids),
                                   mask_of("BERT", inputs.attention_mask, input_ids));
    return {states, pooler_ != nullptr ? (*pooler_)(states) : Tensor()};
}

Tensor BERT::word_embeddings() const { return embeddings_.word_weight(); }

namespace {

/// @param prefix of the names: that of BERT within a model with a head
void visit_parameters(const BERTConfig& config, const std::string& prefix, bool pooler, const VisitParameter& visit) {
    const std::int64_t width = config.hidden_size, inner = config.intermediate_size;
    const std::string embeddings = prefix + "embeddings.";
    if (config.tie_word_embeddings && !prefix.empty())
        visit({embeddings + "word_embeddings.weight", "cls.predictions.decoder.weight"}, {config.vocab_size, width});
    else visit({embeddings + "word_embeddings.weight"}, {config.vocab_size, width});
    visit({embeddings + "position_embeddings.weight"}, {config.max_position_embeddings, width});
    visit({embeddings + "token_type_embeddings.weight"}, {config.type_vocab_size, width});
    visit_layer(visit, embeddings + "LayerNorm", {width});
    for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
        const std::string name = fmt::format("{}encoder.layer.{}.", prefix, layer);
        for (const char* part : {"attention.self.query", "attention.self.key", "attention.self.value"})
            visit_layer(visit, name + part, {width, width});
        visit_layer(visit, name + "attention.output.dense", {width, width});
        visit_layer(visit, name + "attention.output.LayerNorm", {width});
        visit_layer(visit, name + "intermediate.dense", {inner, width});
        visit_layer(visit, name + "output.dense", {width, inner});
        visit_layer(visit, name + "output.LayerNorm", {width});
    }
    if (pooler) visit_layer(visit, prefix + "pooler.dense", {width, width});
}

}  // namespace

BERT BERT::from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options,
                           bool add_pooling_layer) {
    constexpr const char* name = "BERT::from_pretrained";
    const FunctionScope function(name);
    const BERTConfig config = BERTConfig::load(folder / "config.json");
    return read_pretrained<BERT>(
        name, folder, kBERTLayout, options.strict,
        [&](const VisitParameter& visit) { visit_parameters(config, "", add_pooling_layer, visit); },
        [&] {
            return BERT(config, {options.dtype, options.device}, add_pooling_layer);
        });
}
LoadedState BERT::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("BERT::load_weights");
    return models::load_weights("BERT::load_weights", *this, path, kBERTLayout, strict);
}
void BERT::save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size) const {
    const FunctionScope function("BERT::save_pretrained");
    save_weights(*this, folder, kBERTLayout, max_shard_size);
    BERTConfig config = config_;
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "BertModel");
    config.save(folder / "config.json");
}

BERTForMaskedLM::BERTForMaskedLM(const BERTConfig& config, const ModelOptions& options)
    : bert_(add("bert", BERT(config, options, false))),
      predictions_(add("cls", Container())
                       .add("predictions",
                            BERTPredictions(config,
                                            config.tie_word_embeddings ? bert_.word_embeddings()
                                                                       : zeros({config.vocab_size, config.hidden_size},
                                                                               {options.dtype, options.device}),
                                            options))) {
    initialise(*this, config.initializer_range);
}
Tensor BERTForMaskedLM::forward(Tensor input_ids, BERTInputs inputs) {
    return predictions_(bert_(std::move(input_ids), std::move(inputs)).last_hidden_state);
}
BERTForMaskedLM BERTForMaskedLM::from_pretrained(const std::filesystem::path& folder,
                                                 const PretrainedOptions& options) {
    constexpr const char* name = "BERTForMaskedLM::from_pretrained";
    const FunctionScope function(name);
    const BERTConfig config = BERTConfig::load(folder / "config.json");
    const ParameterList parameters = [&](const VisitParameter& visit) {
        visit_parameters(config, "bert.", false, visit);
        const std::string head = "cls.predictions.";
        visit_layer(visit, head + "transform.dense", {config.hidden_size, config.hidden_size});
        visit_layer(visit, head + "transform.LayerNorm", {config.hidden_size});
        if (!config.tie_word_embeddings) visit({head + "decoder.weight"}, {config.vocab_size, config.hidden_size});
        visit({head + "bias"}, {config.vocab_size});
    };
    return read_pretrained<BERTForMaskedLM>(name, folder, kBERTLayout, options.strict, parameters, [&] {
        return BERTForMaskedLM(config, {options.dtype, options.device});
    });
}
LoadedState BERTForMaskedLM::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("BERTForMaskedLM::load_weights");
    return models::load_weights("BERTForMaskedLM::load_weights", *this, path, kBERTLayout, strict);
}
void BERTForMaskedLM::save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size) const {
    const FunctionScope function("BERTForMaskedLM::save_pretrained");
    save_weights(*this, folder, kBERTLayout, max_shard_size);
    BERTConfig config = bert_.config();
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "BertForMaskedLM");
    config.save(folder / "config.json");
}

BERTForSequenceClassification::BERTForSequenceClassification(const BERTConfig& config, const ModelOptions& options)
    : bert_(add("bert", BERT(config, options))),
      dropout_(add("dropout", nn::Dropout(config.classifier_dropout.value_or(config.hidden_dropout_prob)))),
      classifier_(add("classifier", nn::Linear(config.hidden_size, config.num_labels, linear_options(true, options)))) {
    initialise(*this, config.initializer_range);
}
Tensor BERTForSequenceClassification::forward(Tensor input_ids, BERTInputs inputs) {
    return classifier_(dropout_(bert_(std::move(input_ids), std::move(inputs)).pooler_output));
}
BERTForSequenceClassification BERTForSequenceClassification::from_pretrained(const std::filesystem::path& folder,
                                                                             const PretrainedOptions& options) {
    constexpr const char* name = "BERTForSequenceClassification::from_pretrained";
    const FunctionScope function(name);
    const BERTConfig config = BERTConfig::load(folder / "config.json");
    const ParameterList parameters = [&](const VisitParameter& visit) {
        visit_parameters(config, "bert.", true, visit);
        visit_layer(visit, "classifier", {config.num_labels, config.hidden_size});
    };
    return read_pretrained<BERTForSequenceClassification>(name, folder, kBERTLayout, options.strict, parameters, [&] {
        return BERTForSequenceClassification(config, {options.dtype, options.device});
    });
}
LoadedState BERTForSequenceClassification::load_weights(const std::filesystem::path& path, bool strict) {
    const FunctionScope function("BERTForSequenceClassification::load_weights");
    return models::load_weights("BERTForSequenceClassification::load_weights", *this, path, kBERTLayout, strict);
}
void BERTForSequenceClassification::save_pretrained(const std::filesystem::path& folder,
                                                    std::uint64_t max_shard_size) const {
    const FunctionScope function("BERTForSequenceClassification::save_pretrained");
    save_weights(*this, folder, kBERTLayout, max_shard_size);
    BERTConfig config = bert_.config();
    config.other_fields = saved_fields(*this, std::move(config.other_fields), "BertForSequenceClassification");
    config.save(folder / "config.json");
}

}  // namespace declivity::models
