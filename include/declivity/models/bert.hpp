// Layer 7. BERT encoder, masked language model and sequence classifier.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <declivity/models/causal_lm.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

class BERTEmbeddings;
class BERTEncoder;
class BERTPooler;
class BERTPredictions;

/// Optional inputs in addition to the tokens.
struct BERTInputs {
    Tensor attention_mask = {};  ///< (N, L), bool or numbers: false or 0 at padding
    Tensor token_type_ids = {};  ///< (N, L), i64: sentence of each token, 0 or 1; 0 if undefined
    Tensor position_ids = {};    ///< (N, L), i64; 0, 1, ... if undefined
};
inline std::vector<Tensor> tensors_of(const BERTInputs& inputs) {
    return {inputs.attention_mask, inputs.token_type_ids, inputs.position_ids};
}

struct EncoderOutput {
    Tensor last_hidden_state;  ///< (N, L, hidden_size)
    Tensor pooler_output;      ///< (N, hidden_size), of the first token; undefined without a pooler
};
inline std::vector<Tensor> tensors_of(const EncoderOutput& output) {
    return {output.last_hidden_state, output.pooler_output};
}

/// BERT encoder. Parameter names are those of BertModel in transformers.
class DECLIVITY_API BERT : public nn::Callable<EncoderOutput(Tensor, BERTInputs)> {
  public:
    /// Initialised from a normal distribution with initializer_range. @throws ValueError as config.check()
    explicit BERT(const BERTConfig& config, const ModelOptions& options = {}, bool add_pooling_layer = true);
    /// Loads a folder with config.json and safetensors files, of a model with or without a head.
    /// @throws FormatError naming file and position; IoError; ValueError listing what is missing; ShapeError
    static BERT from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options = {},
                                bool add_pooling_layer = true);
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    /// Writes config.json and the parameters, in the format of from_pretrained here and in transformers.
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] const BERTConfig& config() const noexcept { return config_; }
    /// Word embeddings, (vocab_size, hidden_size).
    [[nodiscard]] Tensor word_embeddings() const;
    [[nodiscard]] std::string type_name() const override { return "BERT"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERT); }

  protected:
    EncoderOutput forward(Tensor input_ids, BERTInputs inputs) override;

  private:
    BERTConfig config_;
    BERTEmbeddings& embeddings_;
    BERTEncoder& encoder_;
    BERTPooler* pooler_ = nullptr;
};

/// BERT masked language model: scores (N, L, vocab_size). Names as in BertForMaskedLM of transformers.
class DECLIVITY_API BERTForMaskedLM : public nn::Callable<Tensor(Tensor, BERTInputs)> {
  public:
    explicit BERTForMaskedLM(const BERTConfig& config, const ModelOptions& options = {});
    static BERTForMaskedLM from_pretrained(const std::filesystem::path& folder, const PretrainedOptions& options = {});
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] BERT& bert() const noexcept { return bert_; }
    [[nodiscard]] std::string type_name() const override { return "BERTForMaskedLM"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTForMaskedLM); }

  protected:
    Tensor forward(Tensor input_ids, BERTInputs inputs) override;

  private:
    BERT& bert_;
    BERTPredictions& predictions_;
};

/// BERT text classifier: scores (N, num_labels). Names as in BertForSequenceClassification of transformers. For files
/// without a classifier use PretrainedOptions::strict = false.
class DECLIVITY_API BERTForSequenceClassification : public nn::Callable<Tensor(Tensor, BERTInputs)> {
  public:
    explicit BERTForSequenceClassification(const BERTConfig& config, const ModelOptions& options = {});
    static BERTForSequenceClassification from_pretrained(const std::filesystem::path& folder,
                                                         const PretrainedOptions& options = {});
    LoadedState load_weights(const std::filesystem::path& path, bool strict = true);
    void save_pretrained(const std::filesystem::path& folder, std::uint64_t max_shard_size = 5'000'000'000) const;
    [[nodiscard]] BERT& bert() const noexcept { return bert_; }
    [[nodiscard]] std::string type_name() const override { return "BERTForSequenceClassification"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(BERTForSequenceClassification); }

  protected:
    Tensor forward(Tensor input_ids, BERTInputs inputs) override;

  private:
    BERT& bert_;
    nn::Layer& dropout_;
    nn::Layer& classifier_;
};

/// @}

}  // namespace declivity::models
