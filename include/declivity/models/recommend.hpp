// Layer 7. Recommender models: scores of items for users, from ids and from features of both.
//
// Ids of users, items and categories are i32 or i64 and start at 0. They are not checked on the host: an id out of
// range gives NaN.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/functions/reduce.hpp>
#include <declivity/models/config.hpp>
#include <declivity/models/ranking_loss.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/module_list.hpp>
#include <declivity/nn/sequential.hpp>

namespace declivity::models {

/// @addtogroup models
/// @{

struct DECLIVITY_API MatrixFactorizationConfig {
    std::int64_t users = 0;
    std::int64_t items = 0;
    std::int64_t factors = 16;  ///< embedding dimension of users and items
    bool biases = true;         ///< learned bias of each user and each item
    double mean = 0;            ///< global mean of all ratings: the prediction without further information
    double initial_std = 0.1;   ///< standard deviation of initial embeddings; biases start at 0
    /// @throws ValueError naming the field
    void check() const;
};

/// mean + user bias + item bias + inner product of user and item vectors (Y. Koren, R. Bell, C. Volinsky, Matrix
/// factorization techniques for recommender systems, 2009). Called with pairs: ids of users (N) and items (N) -> scores
/// (N). For L2 regularisation use the optimizer's weight_decay.
///
/// Parameters users.weight (users, factors) and items.weight (items, factors), and with biases user_bias.weight (users,
/// 1) and item_bias.weight (items, 1); buffer mean, 0-dimensional.
class DECLIVITY_API MatrixFactorization : public nn::Callable<Tensor(Tensor users, Tensor items)> {
  public:
    explicit MatrixFactorization(const MatrixFactorizationConfig& config, const ModelOptions& options = {});
    /// Scores of all items for users (N): (N, items).
    [[nodiscard]] Tensor scores(const Tensor& users);
    /// The k best items for users (N) and their scores: (N, k) each, in descending order.
    /// @param seen (N, items), bool, optional: true for items to exclude
    /// @throws ValueError unless k is 1 to the number of items
    [[nodiscard]] TopK recommend(const Tensor& users, std::int64_t k, const Tensor& seen = {});
    [[nodiscard]] const MatrixFactorizationConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "MatrixFactorization"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(MatrixFactorization); }

  protected:
    Tensor forward(Tensor users, Tensor items) override;

  private:
    MatrixFactorizationConfig config_;
    nn::Embedding &users_, &items_;
    nn::Embedding *user_bias_ = nullptr, *item_bias_ = nullptr;
    Tensor mean_;
};

struct DECLIVITY_API FactorizationMachineConfig {
    std::vector<std::int64_t> fields = {};  ///< number of categories of each field
    std::int64_t factors = 16;
    double initial_std = 0.05;  ///< standard deviation of initial factors; all else starts at 0
    /// @throws ValueError naming the field
    void check() const;
};

/// Factorization machine: b + sum of w[i] x[i] + sum over pairs of <v[i], v[j]> x[i] x[j] (S. Rendle, Factorization
/// machines, 2010), in time linear in the number of fields: half of (sum of v[i] x[i])^2 - sum of (v[i] x[i])^2. Called
/// with the category of each field (N, F) and, unless they are all 1, their real values x (N, F): scores (N).
///
/// All fields share one table, in order: parameters bias (1), linear.weight (V, 1), factors.weight (V, factors), where
/// V is the sum of `fields`; buffers offsets and sizes (F), i64.
class DECLIVITY_API FactorizationMachine : public nn::Callable<Tensor(Tensor ids, Tensor values)> {
  public:
    explicit FactorizationMachine(const FactorizationMachineConfig& config, const ModelOptions& options = {});
    [[nodiscard]] const FactorizationMachineConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "FactorizationMachine"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(FactorizationMachine); }

  protected:
    Tensor forward(Tensor ids, Tensor values) override;

  private:
    FactorizationMachineConfig config_;
    nn::Embedding &linear_, &factors_;
    Parameter bias_;
    Tensor offsets_, sizes_;
};

struct DECLIVITY_API TowerConfig {
    std::vector<std::int64_t> fields = {};  ///< number of categories of each field; at least one field
    std::int64_t dense_features = 0;        ///< number of real-valued features
    std::int64_t embedding_dim = 32;        ///< embedding dimension of a category
    std::vector<std::int64_t> hidden = {64};
    double initial_std = 0.1;  ///< standard deviation of initial embeddings
    /// @throws ValueError naming the field
    void check() const;
};

/// Maps features of a user or an item to a vector: categories (N, F) are embedded, concatenated with real-valued
/// features (N, dense_features) and passed through linear layers with ReLU between them: (N, output_dim). Without
/// dense_features the second argument is omitted.
///
/// Parameters embeddings.0.weight, ... (fields[i], embedding_dim), mlp.0.weight and mlp.0.bias, mlp.2.weight, ...
class DECLIVITY_API Tower : public nn::Callable<Tensor(Tensor ids, Tensor dense)> {
  public:
    Tower(const TowerConfig& config, std::int64_t output_dim, const ModelOptions& options = {});
    [[nodiscard]] const TowerConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "Tower"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Tower); }

  protected:
    Tensor forward(Tensor ids, Tensor dense) override;

  private:
    TowerConfig config_;
    nn::ModuleList<nn::Embedding>& embeddings_;
    nn::Sequential& mlp_;
};

struct DECLIVITY_API TwoTowerConfig {
    TowerConfig user = {};
    TowerConfig item = {};
    std::int64_t output_dim = 32;
    bool normalize = true;   ///< normalises vectors to length 1
    double temperature = 1;  ///< divisor of the scores; about 0.05 to 0.2 with normalised vectors
    /// @throws ValueError naming the field
    void check() const;
};

/// Two-tower model: a user and an item network, whose inner product is the score (P.-S. Huang et al., Learning deep
/// structured semantic models for web search using clickthrough data, 2013; X. Yi et al. 2019, see
/// in_batch_softmax_loss). Item vectors can be precomputed and searched. Called with pairs: categories of users (N, Fu)
/// and items (N, Fi) and, if the towers use them, real-valued features of both -> scores (N).
///
/// Parameters user.* and item.*, see Tower.
class DECLIVITY_API TwoTower
    : public nn::Callable<Tensor(Tensor users, Tensor items, Tensor user_dense, Tensor item_dense)> {
  public:
    explicit TwoTower(const TwoTowerConfig& config, const ModelOptions& options = {});
    /// (N, output_dim), of length 1 if config().normalize, for the losses of ranking_loss.hpp.
    [[nodiscard]] Tensor user_vectors(const Tensor& ids, const Tensor& dense = {});
    [[nodiscard]] Tensor item_vectors(const Tensor& ids, const Tensor& dense = {});
    [[nodiscard]] const TwoTowerConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "TwoTower"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(TwoTower); }

  protected:
    Tensor forward(Tensor users, Tensor items, Tensor user_dense, Tensor item_dense) override;

  private:
    TwoTowerConfig config_;
    Tower &user_, &item_;
};

struct DECLIVITY_API DLRMConfig {
    std::int64_t dense_features = 0;
    std::vector<std::int64_t> fields = {};  ///< number of categories of each field
    std::int64_t embedding_dim = 16;
    std::vector<std::int64_t> bottom = {64, 32};  ///< hidden layers of the bottom network for dense features
    std::vector<std::int64_t> top = {64, 32};     ///< hidden layers of the top network for the interactions
    /// @throws ValueError naming the field
    void check() const;
};

/// DLRM: click-through rate prediction (M. Naumov et al., Deep learning recommendation model for personalization and
/// recommendation systems, 2019). Dense features (N, dense_features) pass through the bottom network to a vector of
/// embedding_dim, each category is embedded; the inner products of all pairs of these vectors and the first vector
/// itself pass through the top network: logits (N). Categories are (N, F), or several for each field (N, F, L), whose
/// embeddings are summed; negative ids are padding and are ignored.
///
/// Parameters bottom.0.weight, ..., embeddings.0.weight, ... (fields[i], embedding_dim), uniform in +-1 /
/// sqrt(fields[i]), top.0.weight, ...; each layer of both networks but the last of `top` is followed by ReLU. Buffer
/// pairs, i64: indices of the products below the diagonal.
class DECLIVITY_API DLRM : public nn::Callable<Tensor(Tensor dense, Tensor ids)> {
  public:
    explicit DLRM(const DLRMConfig& config, const ModelOptions& options = {});
    [[nodiscard]] const DLRMConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::string type_name() const override { return "DLRM"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(DLRM); }

  protected:
    Tensor forward(Tensor dense, Tensor ids) override;

  private:
    DLRMConfig config_;
    nn::Sequential& bottom_;
    nn::ModuleList<nn::EmbeddingBag>& embeddings_;
    nn::Sequential& top_;
    Tensor pairs_;
};

/// @}

}  // namespace declivity::models
