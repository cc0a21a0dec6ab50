#include <declivity/models/recommend.hpp>

#include <cmath>
#include <string_view>
#include <utility>

#include <declivity/nn/functional.hpp>

#include "checks.hpp"
#include "parts.hpp"

namespace declivity::models {
namespace {

void require_sizes(const char* config, const char* field, const std::vector<std::int64_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] < 1)
            throw ValueError(fmt::format("{}::{}[{}]: expected at least 1, got {}", config, field, i, sizes[i]));
}

void require_fields(const char* config, const std::vector<std::int64_t>& fields) {
    if (fields.empty()) throw ValueError(fmt::format("{}::fields: expected at least one field, got none", config));
    require_sizes(config, "fields", fields);
}

void require_std(std::string_view field, double stddev) {
    if (!(stddev >= 0) || !std::isfinite(stddev))
        throw ValueError(fmt::format("{}: expected at least 0, got {}", field, stddev));
}

void require_integer_ids(const char* name, const char* what, const Tensor& ids) {
    if (ids.dtype() != DType::i64 && ids.dtype() != DType::i32)
        throw TypeError(fmt::format("{}: expected {} of i64 or i32, got {}", name, what, name_of(ids.dtype())));
}

/// Checks ids (N) of an integer type.
void require_id_vector(const char* name, const char* what, const Tensor& ids) {
    require_integer_ids(name, what, ids);
    ops::require_rank(name, what, ids.shape(), 1, "N");
}

/// Checks categorical features of fields, (N, F).
void require_categories(const char* name, const char* what, const Tensor& ids, std::size_t fields) {
    require_integer_ids(name, what, ids);
    if (ids.rank() != 2 || ids.size(1) != static_cast<std::int64_t>(fields))
        throw ShapeError(
            fmt::format("{}: expected {} of shape (N, {}), got {}", name, what, fields, ids.shape().str()));
}

/// Checks real features (rows, columns), or undefined if there are no columns.
void require_dense_features(const char* name, const char* what, const Tensor& dense, std::int64_t rows,
                            std::int64_t columns) {
    if (columns == 0) {
        if (dense.defined())
            throw ValueError(
                fmt::format("{}: expected no {}, without dense_features, got {}", name, what, dense.shape().str()));
        return;
    }
    if (!dense.defined())
        throw ValueError(
            fmt::format("{}: expected {} of shape ({}, {}), got an undefined tensor", name, what, rows, columns));
    ops::require_real(name, what, dense.dtype());
    ops::require_shape(name, what, dense.shape(), {rows, columns});
}

nn::Embedding make_embedding(std::int64_t rows, std::int64_t columns, double stddev, const ModelOptions& options) {
    nn::Embedding layer(rows, columns, {.dtype = options.dtype, .device = options.device});
    if (stddev > 0) nn::normal_(layer.weight().detach(), 0, stddev);
    else layer.weight().detach().fill_(0);
    return layer;
}

/// MLP from `in` through the hidden sizes to `out`, with ReLU between the layers, and optionally after the last.
nn::Sequential make_mlp(std::int64_t in, const std::vector<std::int64_t>& hidden, std::int64_t out, bool relu_at_end,
                        const ModelOptions& options) {
    nn::Sequential mlp;
    for (const std::int64_t size : hidden) {
        mlp.append(nn::Linear(in, size, linear_options(true, options)));
        mlp.append(nn::ReLU());
        in = size;
    }
    mlp.append(nn::Linear(in, out, linear_options(true, options)));
    if (relu_at_end) mlp.append(nn::ReLU());
    return mlp;
}

std::int64_t sum_of(const std::vector<std::int64_t>& sizes) {
    std::int64_t total = 0;
    for (const std::int64_t size : sizes) total += size;
    return total;
}

}  // namespace

// ---- matrix factorisation

void MatrixFactorizationConfig::check() const {
    require_at_least("MatrixFactorizationConfig::users", users, 1);
    require_at_least("MatrixFactorizationConfig::items", items, 1);
    require_at_least("MatrixFactorizationConfig::factors", factors, 1);
    require_std("MatrixFactorizationConfig::initial_std", initial_std);
    if (!std::isfinite(mean))
        throw ValueError(fmt::format("MatrixFactorizationConfig::mean: expected a finite number, got {}", mean));
}

MatrixFactorization::MatrixFactorization(const MatrixFactorizationConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      users_(add("users", make_embedding(config.users, config.factors, config.initial_std, options))),
      items_(add("items", make_embedding(config.items, config.factors, config.initial_std, options))) {
    if (config.biases) {
        user_bias_ = &add("user_bias", make_embedding(config.users, 1, 0, options));
        item_bias_ = &add("item_bias", make_embedding(config.items, 1, 0, options));
    }
    mean_ = buffer("mean", full({}, config.mean, {options.dtype, options.device}));
}

Tensor MatrixFactorization::forward(Tensor users, Tensor items) {
    require_id_vector("MatrixFactorization", "users", users);
    if (!items.defined()) throw ValueError("MatrixFactorization: expected items, got an undefined tensor");
    require_id_vector("MatrixFactorization", "items", items);
    ops::require_shape("MatrixFactorization", "items", items.shape(), users.shape());
    Tensor y = sum(users_(users) * items_(items), {1}) + mean_;
    if (user_bias_ != nullptr) y = y + squeeze((*user_bias_)(users), 1) + squeeze((*item_bias_)(items), 1);
    return y;
}

Tensor MatrixFactorization::scores(const Tensor& users) {
    if (!users.defined()) throw ValueError("MatrixFactorization::scores: expected users, got an undefined tensor");
    require_id_vector("MatrixFactorization::scores", "users", users);
    Tensor y = matmul(users_(users), transpose(items_.weight())) + mean_;
    if (user_bias_ != nullptr) y = y + (*user_bias_)(users) + transpose(item_bias_->weight());
    return y;
}

TopK MatrixFactorization::recommend(const Tensor& users, std::int64_t k, const Tensor& seen) {
    constexpr const char* kName = "MatrixFactorization::recommend";
    if (!users.defined()) throw ValueError(fmt::format("{}: expected users, got an undefined tensor", kName));
    require_id_vector(kName, "users", users);
    if (k < 1 || k > config_.items)
        throw ValueError(fmt::format("{}: expected a k of 1 to {}, got {}", kName, config_.items, k));
    if (seen.defined()) {
        if (seen.dtype() != DType::boolean)
            throw TypeError(fmt::format("{}: expected seen of bool, got {}", kName, name_of(seen.dtype())));
        ops::require_shape(kName, "seen", seen.shape(), {users.size(0), config_.items});
    }
    const NoGrad no_grad;
    Tensor y = scores(users);
    if (seen.defined()) y = masked_fill(y, seen, -INFINITY);
    return topk(y, k, 1);
}

// ---- factorisation machine

void FactorizationMachineConfig::check() const {
    require_fields("FactorizationMachineConfig", fields);
    require_at_least("FactorizationMachineConfig::factors", factors, 1);
    require_std("FactorizationMachineConfig::initial_std", initial_std);
}

FactorizationMachine::FactorizationMachine(const FactorizationMachineConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      linear_(add("linear", make_embedding(sum_of(config.fields), 1, 0, options))),
      factors_(add("factors", make_embedding(sum_of(config.fields), config.factors, config.initial_std, options))),
      bias_(parameter("bias", zeros({1}, {options.dtype, options.device}))) {
    std::vector<std::int64_t> offsets;
    std::int64_t offset = 0;
    for (const std::int64_t size : config.fields) {
        offsets.push_back(offset);
        offset += size;
    }
    const Device device = factors_.weight().device();
    const auto count = static_cast<std::int64_t>(offsets.size());
    offsets_ = buffer("offsets", Tensor::from(offsets, {count}, device));
    sizes_ = buffer("sizes", Tensor::from(config.fields, {count}, device));
}

Tensor FactorizationMachine::forward(Tensor ids, Tensor values) {
    require_categories("FactorizationMachine", "ids", ids, config_.fields.size());
    if (values.defined()) {
        const Tensor weight = factors_.weight();
        ops::require_alike("FactorizationMachine", "the parameters", weight.dtype(), weight.device(), "values",
                           values.dtype(), values.device());
        ops::require_shape("FactorizationMachine", "values", values.shape(), ids.shape());
    }
    // An id out of range of its field must not become one of the next field's.
    const Tensor ids_i64 = ids.to(DType::i64);
    const Tensor rows = where(logical_and(ids_i64 >= 0, ids_i64 < sizes_), ids_i64 + offsets_, -1);
    Tensor linear = linear_(rows), vectors = factors_(rows);  // (N, F, 1), (N, F, factors)
    if (values.defined()) {
        const Tensor x = unsqueeze(values, 2);
        linear = linear * x;
        vectors = vectors * x;
    }
    const Tensor pairs = square(sum(vectors, {1})) - sum(square(vectors), {1});
    return sum(linear, {1, 2}) + 0.5 * sum(pairs, {1}) + bias_.value();
}

// ---- two towers

void TowerConfig::check() const {
    require_fields("TowerConfig", fields);
    require_at_least("TowerConfig::dense_features", dense_features, 0);
    require_at_least("TowerConfig::embedding_dim", embedding_dim, 1);
    require_sizes("TowerConfig", "hidden", hidden);
    require_std("TowerConfig::initial_std", initial_std);
}

Tower::Tower(const TowerConfig& config, std::int64_t output_dim, const ModelOptions& options)
    : config_((config.check(), require_at_least("Tower: output_dim", output_dim, 1), config)),
      embeddings_(add("embeddings", nn::ModuleList<nn::Embedding>())),
      mlp_(add("mlp",
               make_mlp(static_cast<std::int64_t>(config.fields.size()) * config.embedding_dim + config.dense_features,
                        config.hidden, output_dim, false, options))) {
    for (const std::int64_t size : config.fields)
        embeddings_.append(make_embedding(size, config.embedding_dim, config.initial_std, options));
}

Tensor Tower::forward(Tensor ids, Tensor dense) {
    require_categories("Tower", "ids", ids, config_.fields.size());
    require_dense_features("Tower", "dense", dense, ids.size(0), config_.dense_features);
    std::vector<Tensor> parts;
    std::int64_t field = 0;
    for (nn::Embedding& embedding_layer : embeddings_) parts.push_back(embedding_layer(select(ids, 1, field++)));
    if (dense.defined()) parts.push_back(dense);
    return mlp_(parts.size() == 1 ? parts[0] : concat(parts, 1));
}

void TwoTowerConfig::check() const {
    user.check();
    item.check();
    require_at_least("TwoTowerConfig::output_dim", output_dim, 1);
    if (!(temperature > 0))
        throw ValueError(fmt::format("TwoTowerConfig::temperature: expected a number above 0, got {}", temperature));
}

TwoTower::TwoTower(const TwoTowerConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      user_(add("user", Tower(config.user, config.output_dim, options))),
      item_(add("item", Tower(config.item, config.output_dim, options))) {}

Tensor TwoTower::user_vectors(const Tensor& ids, const Tensor& dense) {
    const Tensor y = user_(ids, dense);
    return config_.normalize ? declivity::normalize(y) : y;
}
Tensor TwoTower::item_vectors(const Tensor& ids, const Tensor& dense) {
    const Tensor y = item_(ids, dense);
    return config_.normalize ? declivity::normalize(y) : y;
}

Tensor TwoTower::forward(Tensor users, Tensor items, Tensor user_dense, Tensor item_dense) {
    require_categories("TwoTower", "users", users, config_.user.fields.size());
    if (!items.defined()) throw ValueError("TwoTower: expected items, got an undefined tensor");
    require_categories("TwoTower", "items", items, config_.item.fields.size());
    if (items.size(0) != users.size(0))
        throw ShapeError(
            fmt::format("TwoTower: expected as many items as users, {}, got {}", users.size(0), items.size(0)));
    return sum(user_vectors(users, user_dense) * item_vectors(items, item_dense), {1}) * (1 / config_.temperature);
}

// ---- DLRM

void DLRMConfig::check() const {
    require_at_least("DLRMConfig::dense_features", dense_features, 1);
    require_fields("DLRMConfig", fields);
    require_at_least("DLRMConfig::embedding_dim", embedding_dim, 1);
    require_sizes("DLRMConfig", "bottom", bottom);
    require_sizes("DLRMConfig", "top", top);
}

DLRM::DLRM(const DLRMConfig& config, const ModelOptions& options)
    : config_((config.check(), config)),
      bottom_(add("bottom", make_mlp(config.dense_features, config.bottom, config.embedding_dim, true, options))),
      embeddings_(add("embeddings", nn::ModuleList<nn::EmbeddingBag>())),
      top_(add("top", [&] {
          const auto vectors = static_cast<std::int64_t>(config.fields.size()) + 1;
          return make_mlp(config.embedding_dim + vectors * (vectors - 1) / 2, config.top, 1, false, options);
      }())) {
    for (const std::int64_t size : config.fields) {
        nn::EmbeddingBag& bag = embeddings_.append(nn::EmbeddingBag(
            size, config.embedding_dim, {.mode = BagMode::sum, .dtype = options.dtype, .device = options.device}));
        const double bound = 1 / std::sqrt(static_cast<double>(size));
        nn::uniform_(bag.weight().detach(), -bound, bound);
    }
    const auto vectors = static_cast<std::int64_t>(config.fields.size()) + 1;
    std::vector<std::int64_t> pairs;
    for (std::int64_t i = 0; i < vectors; ++i)
        for (std::int64_t j = 0; j < i; ++j) pairs.push_back(i * vectors + j);
    pairs_ = buffer("pairs", Tensor::from(pairs, {static_cast<std::int64_t>(pairs.size())}, options.device));
}

Tensor DLRM::forward(Tensor dense, Tensor ids) {
    const auto fields = static_cast<std::int64_t>(config_.fields.size());
    ops::require_real("DLRM", "dense", dense.dtype());
    if (dense.rank() != 2 || dense.size(1) != config_.dense_features)
        throw ShapeError(
            fmt::format("DLRM: expected dense of shape (N, {}), got {}", config_.dense_features, dense.shape().str()));
    if (!ids.defined()) throw ValueError("DLRM: expected ids, got an undefined tensor");
    require_integer_ids("DLRM", "ids", ids);
    if (ids.rank() < 2 || ids.rank() > 3 || ids.size(0) != dense.size(0) || ids.size(1) != fields)
        throw ShapeError(fmt::format("DLRM: expected ids of shape ({0}, {1}) or ({0}, {1}, L), got {2}", dense.size(0),
                                     fields, ids.shape().str()));
    const Tensor bags = ids.rank() == 3 ? ids : unsqueeze(ids, 2);
    std::vector<Tensor> vectors{bottom_(dense)};
    std::int64_t field = 0;
    for (nn::EmbeddingBag& bag_layer : embeddings_) {
        const Tensor field_ids = select(bags, 1, field++);
        if (ids.rank() == 2) {
            vectors.push_back(bag_layer(field_ids));
            continue;
        }
        const Tensor valid = field_ids >= 0;
        vectors.push_back(bag_layer(where(valid, field_ids, 0), Tensor(), valid.to(bag_layer.weight().dtype())));
    }
    const Tensor features = stack(vectors, 1);  // (N, F + 1, embedding_dim)
    const Tensor products = index_select(flatten(matmul(features, transpose(features))), 1, pairs_);
    return squeeze(top_(concat({vectors[0], products}, 1)), 1);
}

}  // namespace declivity::models
