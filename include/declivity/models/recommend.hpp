// Layer 5. Models that recommend: what users think of items, from their numbers and from features of both.
//
// Numbers of users, items and categories are i32 or i64 and count from 0. They are never looked at on the host: one
// that there is not gives NaN.
#pragma once

#include <cstdint>
#include <vector>

#include <declivity/models/config.hpp>
#include <declivity/models/ranking_loss.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/module_list.hpp>
#include <declivity/nn/sequential.hpp>
#include <declivity/tensor/functions/reduce.hpp>

namespace declivity::models {

struct DECLIVITY_API MatrixFactorizationConfig {
    std::int64_t users = 0;
    std::int64_t items = 0;
    std::int64_t factors = 16;  ///< elements of the vector of a user, and of an item
    bool biases = true;         ///< how kind each user is, and how good each item, beside what the vectors say
    double mean = 0;            ///< of all ratings: what is said where nothing else is known
    double initial_std = 0.1;   ///< of the vectors; biases start at 0
    /// @throws ValueError naming the field
    void check() const;
};

/// mean + bias of the user + bias of the item + product of both vectors (Y. Koren, R. Bell, C. Volinsky, Matrix
/// factorization techniques for recommender systems, 2009). Called with pairs: numbers of users (N) and items (N) give
/// scores (N). Their penalty on large numbers is the optimizer's weight_decay.
///
/// Parameters users.weight (users, factors) and items.weight (items, factors), and with biases user_bias.weight (users,
/// 1) and item_bias.weight (items, 1); buffer mean, without axes.
class DECLIVITY_API MatrixFactorization : public nn::Callable<Tensor(Tensor users, Tensor items)> {
  public:
    explicit MatrixFactorization(const MatrixFactorizationConfig& config, const ModelOptions& options = {});
    /// Of all items for users (N): (N, items).
    [[nodiscard]] Tensor scores(const Tensor& users);
    /// The k best items for users (N) and their scores: (N, k) each, the best first.
    /// @param seen (N, items), bool, where it is defined: true for items that are not to be recommended
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
    std::vector<std::int64_t> fields = {};  ///< how many categories each field has
    std::int64_t factors = 16;
    double initial_std = 0.05;  ///< of the vectors; what else there is starts at 0
    /// @throws ValueError naming the field
    void check() const;
};

/// b + sum of w[i] x[i] + sum over pairs of <v[i], v[j]> x[i] x[j] (S. Rendle, Factorization machines, 2010), in time
/// linear in the number of fields: half of (sum of v[i] x[i])^2 - sum of (v[i] x[i])^2. Called with the category of
/// each field (N, F) and, where they are not all 1, their real values x (N, F): scores (N).
///
/// All categories stand in one table, those of field f behind those of the fields before it: parameters bias (1),
/// linear.weight (V, 1), factors.weight (V, factors), where V is the sum of `fields`; buffers offsets and sizes (F),
/// i64.
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
    std::vector<std::int64_t> fields = {};  ///< how many categories each field has, of one field at least
    std::int64_t dense_features = 0;        ///< real numbers beside them
    std::int64_t embedding_dim = 32;        ///< elements of the vector of a category
    std::vector<std::int64_t> hidden = {64};
    double initial_std = 0.1;  ///< of the vectors of categories
    /// @throws ValueError naming the field
    void check() const;
};

/// Features of a user, or an item, to a vector: categories (N, F) become vectors, which are joined with real numbers
/// (N, dense_features) and pass through linear layers with ReLU between them: (N, output_dim). Without dense_features
/// the numbers are left out.
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
    bool normalize = true;   ///< vectors have length 1
    double temperature = 1;  ///< products of vectors are divided by it; with vectors of length 1 about 0.05 to 0.2
    /// @throws ValueError naming the field
    void check() const;
};

/// Two networks that give vectors of users and of items, whose product is the score (P.-S. Huang et al., Learning deep
/// structured semantic models for web search using clickthrough data, 2013; X. Yi et al. 2019, see
/// in_batch_softmax_loss): items can be searched by vectors that are computed once. Called with pairs: categories
/// of users (N, Fu) and items (N, Fi) and, where the towers have them, real features of both, give scores (N).
///
/// Parameters user.* and item.*, see Tower.
class DECLIVITY_API TwoTower
    : public nn::Callable<Tensor(Tensor users, Tensor items, Tensor user_dense, Tensor item_dense)> {
  public:
    explicit TwoTower(const TwoTowerConfig& config, const ModelOptions& options = {});
    /// (N, output_dim), of length 1 where config().normalize, for the losses of ranking_loss.hpp.
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
    std::vector<std::int64_t> fields = {};  ///< how many categories each field has
    std::int64_t embedding_dim = 16;
    std::vector<std::int64_t> bottom = {64, 32};  ///< hidden layers of the network for dense features
    std::vector<std::int64_t> top = {64, 32};     ///< and of that for what both come to
    /// @throws ValueError naming the field
    void check() const;
};

/// Whether somebody clicks (M. Naumov et al., Deep learning recommendation model for personalization and recommendation
/// systems, 2019). Dense features (N, dense_features) pass through a network, each category becomes a vector of as many
/// elements, the products of all pairs of these vectors and the first one itself pass through another: logits (N).
/// Categories are (N, F), or several for each field (N, F, L), whose vectors are added up; numbers below 0 fill up and
/// count for nothing.
///
/// Parameters bottom.0.weight, ..., embeddings.0.weight, ... (fields[i], embedding_dim), uniform in +-1 /
/// sqrt(fields[i]), top.0.weight, ...; each layer of both networks but the last of `top` is followed by ReLU. Buffer
/// pairs, i64: which elements of the products lie below their diagonal.
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

}  // namespace declivity::models
