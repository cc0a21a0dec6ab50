// Recommender models compared with plain C++ in double, and their errors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/models/ranking_loss.hpp>
#include <declivity/models/recommend.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>
#include <tests/support/weights.hpp>

#include "rows.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

/// Randomises all parameters and means with large values, so that omissions show.
void draw(const nn::Module& model) {
    const NoGrad no_grad;
    std::uint64_t seed = 300;
    for (const auto& [name, tensor] : model.state_dict()) {
        if (!is_floating(tensor.dtype())) continue;
        Tensor to = tensor;
        to.copy_(random_tensor(tensor.shape(), ++seed, tensor.dtype(), -0.8, 0.9));
    }
}

using RowReference = std::function<Row(const Weights&)>;

/// Compares the values of a call with the reference and, in f64, the gradients of all parameters with those of the
/// reference.
void compare(const nn::Module& model, const std::function<Tensor()>& call, const RowReference& reference, DType dtype) {
    const Tensor y = call();
    CHECK(difference(y, reference(weights_of(model)), tolerance(dtype, 60, 4)) == "");
    if (dtype != DType::f64) return;
    const Row factors = random_values(y.numel(), 77);
    y.backward(tensor(factors, y.shape(), dtype));
    std::vector<Tensor> parameters, gradients;
    for (const Tensor& parameter : model.parameters()) {
        CHECK(parameter.grad().defined());
        gradients.push_back(parameter.grad());
        parameters.push_back(parameter);
    }
    const auto loss = [&] {
        const Row out = reference(weights_of(model));
        return std::inner_product(out.begin(), out.end(), factors.begin(), 0.0);
    };
    CHECK(numeric_difference(parameters, gradients, loss, {.max_elements = 25}) == "");
}

/// Linear layers "<name>.0", "<name>.2", ... with ReLU between them.
Row mlp(const Weights& weights, const std::string& name, Row x, bool relu_at_end) {
    for (int layer = 0; weights.contains(name + "." + std::to_string(layer) + ".weight"); layer += 2) {
        const std::string at = name + "." + std::to_string(layer);
        if (layer > 0)
            for (double& value : x) value = std::max(value, 0.0);
        Row y = weights.at(at + ".bias");
        for (std::size_t o = 0; o < y.size(); ++o)
            y[o] += product(row_of(weights.at(at + ".weight"), static_cast<std::int64_t>(o), x.size()), x);
        x = y;
    }
    if (relu_at_end)
        for (double& value : x) value = std::max(value, 0.0);
    return x;
}

Integers random_integers(std::size_t count, std::int64_t limit, std::uint64_t seed) {
    Integers out;
    for (const double random_value :
         random_values(static_cast<std::int64_t>(count), seed, 0, static_cast<double>(limit)))
        out.push_back(std::min(limit - 1, static_cast<std::int64_t>(random_value)));
    return out;
}

/// Random categories (rows, fields).
Integers random_categories(std::size_t rows, const Integers& fields, std::uint64_t seed) {
    Integers out(rows * fields.size());
    for (std::size_t f = 0; f < fields.size(); ++f) {
        const Integers column = random_integers(rows, fields[f], seed + f);
        for (std::size_t i = 0; i < rows; ++i) out[i * fields.size() + f] = column[i];
    }
    return out;
}

Row tower(const Weights& weights, const std::string& name, const Integers& ids, std::size_t fields, std::size_t row,
          std::size_t width, const Row& dense) {
    Row x;
    for (std::size_t f = 0; f < fields; ++f) {
        const Row embedding =
            row_of(weights.at(name + ".embeddings." + std::to_string(f) + ".weight"), ids[row * fields + f], width);
        x.insert(x.end(), embedding.begin(), embedding.end());
    }
    x.insert(x.end(), dense.begin(), dense.end());
    return mlp(weights, name + ".mlp", x, false);
}

Row normalized(Row x) {
    const double length = std::sqrt(product(x, x));
    for (double& value : x) value /= length;
    return x;
}

}  // namespace

TEST_CASE("matrix factorisation") {
    const Integers users{4, 0, 6, 0, 3}, items{1, 10, 0, 10, 7};
    for (const DType dtype : floats())
        for (const bool biases : {true, false}) {
            models::MatrixFactorization model({.users = 7, .items = 11, .factors = 3, .biases = biases, .mean = 3.25},
                                              {.dtype = dtype});
            CHECK((weights_of(model).at("mean") == Row{3.25}));
            draw(model);
            const auto score = [&](const Weights& w, std::int64_t user, std::int64_t item) {
                const double both =
                    product(row_of(w.at("users.weight"), user, 3), row_of(w.at("items.weight"), item, 3)) +
                    w.at("mean")[0];
                return biases ? both + w.at("user_bias.weight")[to_size(user)] + w.at("item_bias.weight")[to_size(item)]
                              : both;
            };
            compare(
                model, [&] { return model(int64_tensor(users, {5}), int64_tensor(items, {5})); },
                [&](const Weights& w) {
                    Row out;
                    for (std::size_t i = 0; i < users.size(); ++i) out.push_back(score(w, users[i], items[i]));
                    return out;
                },
                dtype);
            const auto all = [&](const Weights& w) {
                Row out;
                for (const std::int64_t user : users)
                    for (std::int64_t item = 0; item < 11; ++item) out.push_back(score(w, user, item));
                return out;
            };
            model.zero_grad();
            compare(
                model, [&] { return model.scores(int64_tensor(users, {5})); }, all, dtype);

            // The best items that were not seen.
            std::vector<std::int64_t> excluded(55, 0);
            for (std::size_t i = 0; i < excluded.size(); i += 3) excluded[i] = 1;
            const TopK best = model.recommend(int64_tensor(users, {5}), 4, int64_tensor(excluded, {5, 11}) != 0);
            const Row scores = all(weights_of(model));
            for (std::size_t i = 0; i < users.size(); ++i) {
                Integers order(11);
                std::iota(order.begin(), order.end(), 0);
                std::erase_if(order, [&](std::int64_t item) { return excluded[i * 11 + to_size(item)] != 0; });
                std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
                    return scores[i * 11 + to_size(a)] > scores[i * 11 + to_size(b)];
                });
                const Integers got =
                    slice(best.indices, 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1)
                        .to_vector<std::int64_t>();
                CHECK(got == Integers(order.begin(), order.begin() + 4));
            }
            CHECK(best.values.shape() == Shape{5, 4});
            CHECK(std::isnan(values(model(int64_tensor({7}, {1}), int64_tensor({0}, {1})))[0]));
        }
}

TEST_CASE("factorisation machine") {
    const Integers fields{3, 1, 5};
    const std::size_t rows = 7;
    const Integers ids = random_categories(rows, fields, 5), offsets{0, 3, 4};
    for (const DType dtype : floats())
        for (const bool with_values : {false, true}) {
            models::FactorizationMachine model({.fields = fields, .factors = 4}, {.dtype = dtype});
            draw(model);
            const Tensor x = with_values ? random_tensor({7, 3}, 9, dtype) : Tensor();
            const Row real = with_values ? values(x) : Row(rows * 3, 1.0);
            compare(
                model,
                [&] {
                    return model(int64_tensor(ids, {7, 3}), x);
                },
                [&](const Weights& w) {
                    Row out;
                    for (std::size_t i = 0; i < rows; ++i) {
                        double y = w.at("bias")[0];
                        for (std::size_t f = 0; f < 3; ++f) {
                            const std::int64_t a = ids[i * 3 + f] + offsets[f];
                            y += w.at("linear.weight")[to_size(a)] * real[i * 3 + f];
                            for (std::size_t g = 0; g < f; ++g)
                                y += product(row_of(w.at("factors.weight"), a, 4),
                                             row_of(w.at("factors.weight"), ids[i * 3 + g] + offsets[g], 4)) *
                                     real[i * 3 + f] * real[i * 3 + g];
                        }
                        out.push_back(y);
                    }
                    return out;
                },
                dtype);
            // An index beyond its own field must not select a category of the next one.
            CHECK(std::isnan(values(model(int64_tensor({3, 0, 0}, {1, 3})))[0]));
            CHECK(std::isnan(values(model(int64_tensor({0, 0, -1}, {1, 3})))[0]));
        }
}

TEST_CASE("two towers") {
    const Integers user_fields{6, 2}, item_fields{9};
    const std::size_t rows = 5;
    const Integers users = random_categories(rows, user_fields, 15), items = random_categories(rows, item_fields, 25);
    for (const DType dtype : floats())
        for (const bool normalised : {true, false}) {
            models::TwoTower model(
                {.user = {.fields = user_fields, .embedding_dim = 3, .hidden = {5, 4}},
                 .item = {.fields = item_fields, .dense_features = 2, .embedding_dim = 5, .hidden = {}},
                 .output_dim = 3,
                 .normalize = normalised,
                 .temperature = 0.7},
                {.dtype = dtype});
            draw(model);
            const Tensor dense = random_tensor({5, 2}, 19, dtype);
            const Row real = values(dense);
            compare(
                model,
                [&] {
                    return model(int64_tensor(users, {5, 2}), int64_tensor(items, {5, 1}), Tensor(), dense);
                },
                [&](const Weights& w) {
                    Row out;
                    for (std::size_t i = 0; i < rows; ++i) {
                        Row a = tower(w, "user", users, 2, i, 3, {});
                        Row b = tower(w, "item", items, 1, i, 5, {real[2 * i], real[2 * i + 1]});
                        if (normalised) a = normalized(a), b = normalized(b);
                        out.push_back(product(a, b) / 0.7);
                    }
                    return out;
                },
                dtype);
            CHECK(model.user_vectors(int64_tensor(users, {5, 2})).shape() == Shape{5, 3});
        }
}

TEST_CASE("dlrm") {
    const Integers fields{4, 7, 2};
    const std::size_t rows = 5;
    for (const DType dtype : floats())
        for (const std::size_t max_bag : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {  // 0: without bags
            models::DLRM model({.dense_features = 3, .fields = fields, .embedding_dim = 5, .bottom = {4}, .top = {6}},
                               {.dtype = dtype});
            draw(model);
            const std::size_t length = std::max<std::size_t>(max_bag, 1);
            Integers ids(rows * 3 * length);
            for (std::size_t f = 0; f < 3; ++f)
                for (std::size_t l = 0; l < length; ++l) {
                    const Integers column = random_integers(rows, fields[f], 31 + f + 5 * l);
                    for (std::size_t i = 0; i < rows; ++i)
                        ids[(i * 3 + f) * length + l] = max_bag == 3 && (i + f + l) % 3 == 0 ? -1 : column[i];
                }
            if (max_bag == 3) std::fill(ids.begin(), ids.begin() + 3, -1);  // an empty bag
            const Tensor dense = random_tensor({5, 3}, 29, dtype);
            const Row real = values(dense);
            const Shape shape = max_bag == 0 ? Shape{5, 3} : Shape{5, 3, static_cast<std::int64_t>(length)};
            compare(
                model, [&] { return model(dense, int64_tensor(ids, shape)); },
                [&](const Weights& w) {
                    Row out;
                    for (std::size_t i = 0; i < rows; ++i) {
                        std::vector<Row> vectors{mlp(w, "bottom", row_of(real, static_cast<std::int64_t>(i), 3), true)};
                        for (std::size_t f = 0; f < 3; ++f) {
                            Row bag(5);
                            for (std::size_t l = 0; l < length; ++l) {
                                const std::int64_t id = ids[(i * 3 + f) * length + l];
                                if (id < 0) continue;
                                const Row row = row_of(w.at("embeddings." + std::to_string(f) + ".weight"), id, 5);
                                for (std::size_t d = 0; d < 5; ++d) bag[d] += row[d];
                            }
                            vectors.push_back(bag);
                        }
                        Row x = vectors[0];
                        for (std::size_t a = 0; a < 4; ++a)
                            for (std::size_t b = 0; b < a; ++b) x.push_back(product(vectors[a], vectors[b]));
                        out.push_back(mlp(w, "top", x, false)[0]);
                    }
                    return out;
                },
                dtype);
        }
}

TEST_CASE("recommender models: captured and replayed") {
    manual_seed(1);
    models::DLRM model({.dense_features = 3, .fields = {4, 7}, .embedding_dim = 5});
    models::FactorizationMachine machine({.fields = {4, 7}});
    CHECK(model.not_capture_safe() == "");
    CHECK(machine.not_capture_safe() == "");
    CHECK(models::MatrixFactorization({.users = 2, .items = 3}).not_capture_safe() == "");
    CHECK(models::TwoTower({.user = {.fields = {4}}, .item = {.fields = {7}}}).not_capture_safe() == "");
    auto step = capture([&](const std::vector<Tensor>& in) {
        return std::vector{(model(in.at(0), in.at(1)) + machine(in.at(1))).detach()};
    });
    for (std::uint64_t i = 0; i < 4; ++i) {
        const Tensor dense = random_tensor({5, 3}, i), ids = int64_tensor(random_categories(5, {4, 7}, i), {5, 2});
        CHECK(values(step({dense, ids}).at(0)) == values(model(dense, ids) + machine(ids)));
    }
}

TEST_CASE("recommender models: f16 and bf16") {
    const Tensor ids = int64_tensor({0, 3, 2, 6, 3, 1}, {3, 2}), users = select(ids, 1, 0), items = select(ids, 1, 1);
    const Tensor dense = random_tensor({3, 4}, 1);
    for (const DType half : {DType::f16, DType::bf16}) {
        const auto compared = [&](auto&& make, auto&& call) {
            auto model = make(DType::f32);
            auto other = make(half);
            draw(model);
            for (const auto& [name, tensor] : other.state_dict())
                for (const auto& [source_name, from] : model.state_dict())
                    if (name == source_name && is_floating(from.dtype())) Tensor(tensor).copy_(from.to(half));
            const Tensor y = call(other, half);
            CHECK(y.dtype() == half);
            CHECK(difference(y.to(DType::f32), values(call(model, DType::f32)), {0.08, 0.05}) == "");
        };
        const NoGrad no_grad;
        compared(
            [](DType dtype) {
                return models::MatrixFactorization({.users = 4, .items = 7, .factors = 3}, {.dtype = dtype});
            },
            [&](auto& model, DType) { return model(users, items); });
        compared(
            [](DType dtype) {
                return models::FactorizationMachine({.fields = {4, 7}, .factors = 3}, {.dtype = dtype});
            },
            [&](auto& model, DType) { return model(ids); });
        compared(
            [](DType dtype) {
                return models::TwoTower({.user = {.fields = {4}}, .item = {.fields = {7}, .hidden = {}}},
                                        {.dtype = dtype});
            },
            [&](auto& model, DType) { return model(unsqueeze(users, 1), unsqueeze(items, 1)); });
        compared(
            [](DType dtype) {
                return models::DLRM(
                    {.dense_features = 4, .fields = {4, 7}, .embedding_dim = 3, .bottom = {4}, .top = {3}},
                    {.dtype = dtype});
            },
            [&](auto& model, DType dtype) { return model(dense.to(dtype), unsqueeze(ids, 2)); });
        const Tensor x = random_tensor({3, 4}, 1, half), y = random_tensor({3, 4}, 2, half);
        CHECK(models::in_batch_softmax_loss(x, y, {.log_q = random_tensor({3}, 3)}).dtype() == half);
        CHECK(models::sampled_softmax_loss(x, y, y).dtype() == half);
        CHECK(models::bpr_loss(select(x, 1, 0), y).dtype() == half);
    }
}

TEST_CASE("recommender models: error messages") {
    using namespace models;
    const Tensor ids = zeros({4}, {.dtype = DType::i64}), pairs = zeros({4, 2}, {.dtype = DType::i64});
    MatrixFactorization factors({.users = 3, .items = 5});
    CHECK(error_without_context<ShapeError>([&] { (void)factors(pairs, ids); }).starts_with("MatrixFactorization: "));
    CHECK(error_without_context<ShapeError>([&] { (void)factors(slice(ids, 0, 0, 3), ids); }) ==
          "MatrixFactorization: expected items of shape [3], got [4]");
    CHECK(error_without_context<TypeError>([&] { (void)factors(zeros({4}), ids); }) ==
          "MatrixFactorization: expected users of i64 or i32, got f32");
    CHECK(error_without_context<ValueError>([&] { (void)factors(ids, Tensor()); }) ==
          "MatrixFactorization: expected items, got an undefined tensor");
    CHECK(error_without_context<ValueError>([&] { (void)factors.recommend(ids, 6); }) ==
          "MatrixFactorization::recommend: expected a k of 1 to 5, got 6");
    CHECK(error_without_context<TypeError>([&] {
              (void)factors.recommend(ids, 2, zeros({4, 5}));
          }) == "MatrixFactorization::recommend: expected seen of bool, got f32");
    CHECK(error_without_context<ValueError>([] { (void)MatrixFactorization({.users = 0, .items = 2}); }) ==
          "MatrixFactorizationConfig::users: expected at least 1, got 0");
    CHECK(error_without_context<ValueError>([] {
              (void)MatrixFactorization({.users = 1, .items = 2, .initial_std = -1});
          }) == "MatrixFactorizationConfig::initial_std: expected at least 0, got -1");

    FactorizationMachine machine({.fields = {3, 4}});
    CHECK(error_without_context<ShapeError>([&] { (void)machine(ids); }) ==
          "FactorizationMachine: expected ids of shape (N, 2), got [4]");
    CHECK(error_without_context<ShapeError>([&] {
              (void)machine(pairs, zeros({2, 2}));
          }).starts_with("FactorizationMachine: expected values of shape"));
    CHECK(error_without_context<TypeError>([&] { (void)machine(pairs, pairs); }).starts_with("FactorizationMachine: "));
    CHECK(error_without_context<ValueError>([] { (void)FactorizationMachine({.fields = {}}); }) ==
          "FactorizationMachineConfig::fields: expected at least one field, got none");
    CHECK(error_without_context<ValueError>([] {
              (void)FactorizationMachine({.fields = {2, 0}});
          }) == "FactorizationMachineConfig::fields[1]: expected at least 1, got 0");

    TwoTower towers({.user = {.fields = {3, 4}}, .item = {.fields = {2}, .dense_features = 3}});
    const Tensor items = zeros({4, 1}, {.dtype = DType::i64});
    CHECK(error_without_context<ShapeError>([&] { (void)towers(items, items); }) ==
          "TwoTower: expected users of shape (N, 2), got [4, 1]");
    CHECK(error_without_context<ShapeError>([&] { (void)towers(pairs, slice(items, 0, 0, 3)); }) ==
          "TwoTower: expected as many items as users, 4, got 3");
    CHECK(error_without_context<ValueError>([&] { (void)towers(pairs, items); }) ==
          "Tower: expected dense of shape (4, 3), got an undefined tensor");
    CHECK(error_without_context<ValueError>([&] {
              (void)towers(pairs, items, zeros({4, 1}), zeros({4, 3}));
          }) == "Tower: expected no dense, without dense_features, got [4, 1]");
    CHECK(error_without_context<ValueError>([] {
              (void)TwoTower({.user = {.fields = {3}}, .item = {.fields = {2}}, .temperature = 0});
          }) == "TwoTowerConfig::temperature: expected a number above 0, got 0");
    CHECK(error_without_context<ValueError>([] {
              (void)TwoTower({.user = {.fields = {3}, .hidden = {4, -1}}, .item = {.fields = {2}}});
          }) == "TowerConfig::hidden[1]: expected at least 1, got -1");

    DLRM dlrm({.dense_features = 2, .fields = {3, 4}});
    CHECK(error_without_context<ShapeError>([&] {
              (void)dlrm(zeros({4, 3}), pairs);
          }) == "DLRM: expected dense of shape (N, 2), got [4, 3]");
    CHECK(error_without_context<ShapeError>([&] {
              (void)dlrm(zeros({4, 2}), items);
          }) == "DLRM: expected ids of shape (4, 2) or (4, 2, L), got [4, 1]");
    CHECK(error_without_context<TypeError>([&] {
              (void)dlrm(zeros({4, 2}), zeros({4, 2}));
          }) == "DLRM: expected ids of i64 or i32, got f32");
    CHECK(error_without_context<ValueError>([] { (void)DLRM({.fields = {3}}); }) ==
          "DLRMConfig::dense_features: expected at least 1, got 0");
}
