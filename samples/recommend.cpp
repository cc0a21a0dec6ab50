// Recommender systems. Explicit ratings: matrix factorisation (Y. Koren et al. 2009), a factorisation machine (S.
// Rendle 2010) and two towers predict held-out ratings. Implicit feedback: two towers rank all items, trained by
// softmax over the batch (X. Yi et al. 2019), sampled softmax, and BPR pairs (S. Rendle et al. 2009). The data is
// sampled from hidden factors, so that the best possible score is known.
//
//     ./recommend --plot recommend.png
#include <algorithm>
#include <cmath>
#include <numeric>

#include "common.hpp"

using namespace samples;

namespace {

constexpr std::int64_t kUsers = 800, kItems = 400, kGroups = 8, kGenres = 10, kFactors = 4;
constexpr std::int64_t kChoicesPerUser = 40, kHeldOut = 10,
                       kTop = 10;  // choices per user, test choices per user, list length
constexpr float kNoise = 0.4F;     // standard deviation of a rating's noise

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Hidden factors: users are similar within their group, items within their genre.
struct World {
    std::vector<float> user_factors, item_factors, user_bias, item_quality;
    std::vector<std::int64_t> group, genre;

    explicit World(std::uint64_t seed) {
        data::Random random(seed, 0, 0, data::Purpose::user);
        const auto vectors = [&](std::int64_t count, std::int64_t kinds, std::vector<std::int64_t>& kind) {
            std::vector<float> common(at(kinds * kFactors)), all;
            for (float& value : common) value = 0.5F * random.normal();
            for (std::int64_t i = 0; i < count; ++i) {
                kind.push_back(random.below(kinds));
                for (std::int64_t k = 0; k < kFactors; ++k)
                    all.push_back(common[at(kind.back() * kFactors + k)] + 0.45F * random.normal());
            }
            return all;
        };
        user_factors = vectors(kUsers, kGroups, group);
        item_factors = vectors(kItems, kGenres, genre);
        for (std::int64_t i = 0; i < kUsers; ++i) user_bias.push_back(0.4F * random.normal());
        for (std::int64_t i = 0; i < kItems; ++i) item_quality.push_back(0.4F * random.normal());
    }
    [[nodiscard]] float factor_product(std::int64_t user, std::int64_t item) const {
        float sum = 0;
        for (std::int64_t k = 0; k < kFactors; ++k)
            sum += user_factors[at(user * kFactors + k)] * item_factors[at(item * kFactors + k)];
        return sum;
    }
    /// The rating without noise.
    [[nodiscard]] float rating(std::int64_t user, std::int64_t item) const {
        return 3.2F + user_bias[at(user)] + item_quality[at(item)] + factor_product(user, item);
    }
    /// Log-probability of choosing an item, up to a constant: some items are much more popular.
    [[nodiscard]] float choice_score(std::int64_t user, std::int64_t item) const {
        return 2 * factor_product(user, item) + 2.5F * item_quality[at(item)];
    }
    /// Input fields of the models: user, group, item, genre.
    [[nodiscard]] std::vector<std::int64_t> fields(std::int64_t user, std::int64_t item) const {
        return {user, group[at(user)], item, genre[at(item)]};
    }
};

// ---- ratings

struct Ratings {
    std::vector<std::int64_t> user, item;
    std::vector<float> rating;

    /// Random pairs without repetition.
    Ratings(const World& world, std::uint64_t seed, std::int64_t first, std::int64_t last) {
        const std::vector<std::int64_t> order = data::shuffled_order(kUsers * kItems, seed, 0);
        for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t pair = order[at(i)];
            data::Random random(seed, 1, static_cast<std::uint64_t>(pair), data::Purpose::user);
            user.push_back(pair / kItems);
            item.push_back(pair % kItems);
            rating.push_back(world.rating(user.back(), item.back()) + kNoise * random.normal());
        }
    }
    /// Ratings minus the mean, with all input fields of the models.
    [[nodiscard]] data::TensorDataset dataset(const World& world, float mean) const {
        const auto count = static_cast<std::int64_t>(user.size());
        std::vector<std::int64_t> fields, user_fields, item_fields;
        std::vector<float> centred;
        for (std::size_t i = 0; i < user.size(); ++i) {
            const std::vector<std::int64_t> row = world.fields(user[i], item[i]);
            fields.insert(fields.end(), row.begin(), row.end());
            user_fields.insert(user_fields.end(), row.begin(), row.begin() + 2);
            item_fields.insert(item_fields.end(), row.begin() + 2, row.end());
            centred.push_back(rating[i] - mean);
        }
        return data::TensorDataset({{"user", io::HostArray::of({count}, user)},
                                    {"item", io::HostArray::of({count}, item)},
                                    {"fields", io::HostArray::of({count, 4}, fields)},
                                    {"user_fields", io::HostArray::of({count, 2}, user_fields)},
                                    {"item_fields", io::HostArray::of({count, 2}, item_fields)},
                                    {"rating", io::HostArray::of({count}, centred)}});
    }
};

struct Outcome {
    std::string name;
    double value;
};

/// Trains one rating model; returns its error on the held-out ratings, by epoch and at the end.
Outcome train_on_ratings(const std::string& name, train::Model model, std::vector<std::string> inputs,
                         const data::TensorDataset& train_part, const data::TensorDataset& test_part,
                         std::int64_t epochs, double decay, std::uint64_t seed, std::vector<train::Series>& curves) {
    std::printf("%s\n", name.c_str());
    optim::AdamW optimizer(model.module().parameters(), {.lr = 0.01, .weight_decay = decay});
    train::Trainer trainer(model, optimizer, nn::MSELoss(), {.inputs = std::move(inputs), .target = "rating"});
    trainer.fit(train_part, {{"kept", test_part}},
                {.epochs = epochs,
                 .batch = 512,
                 .seed = seed,
                 .callbacks = {std::make_shared<train::LearningRate>(optim::cosine(epochs, 0.01),
                                                                     train::LearningRate::Unit::epoch)}});
    train::Series curve{.name = name, .x = {}, .y = {}};
    for (const train::EpochMetrics& metrics : trainer.progress().history) {
        curve.x.push_back(static_cast<double>(metrics.epoch));
        curve.y.push_back(std::sqrt(metrics["kept_loss"]));
    }
    curves.push_back(curve);
    return {name, std::sqrt(trainer.evaluate(test_part)["loss"])};
}

// ---- choices

struct Choices {
    std::vector<std::vector<std::int64_t>> train_part, test_part;  // per user
    std::vector<double> popularity;                                // how often each item occurs in the training choices

    /// Samples without replacement: the items with the largest pull + Gumbel noise.
    Choices(const World& world, std::uint64_t seed) : popularity(at(kItems)) {
        for (std::int64_t user = 0; user < kUsers; ++user) {
            data::Random random(seed, 2, static_cast<std::uint64_t>(user), data::Purpose::user);
            std::vector<std::pair<float, std::int64_t>> order;
            for (std::int64_t item = 0; item < kItems; ++item)
                order.emplace_back(world.choice_score(user, item) - std::log(-std::log(random.uniform(1e-6F, 1))),
                                   item);
            std::ranges::sort(order, std::greater());
            std::vector<std::int64_t> user_items;
            for (std::int64_t i = 0; i < kChoicesPerUser; ++i) user_items.push_back(order[at(i)].second);
            for (std::int64_t i = 0; i < kHeldOut; ++i)
                std::swap(user_items[at(i)], user_items[at(i + random.below(kChoicesPerUser - i))]);
            test_part.emplace_back(user_items.begin(), user_items.begin() + kHeldOut);
            train_part.emplace_back(user_items.begin() + kHeldOut, user_items.end());
            for (const std::int64_t item : train_part.back()) popularity[at(item)] += 1;
        }
    }
    [[nodiscard]] data::TensorDataset dataset(const World& world) const {
        std::vector<std::int64_t> users, items, item;
        for (std::int64_t user = 0; user < kUsers; ++user)
            for (const std::int64_t chosen : train_part[at(user)]) {
                users.insert(users.end(), {user, world.group[at(user)]});
                items.insert(items.end(), {chosen, world.genre[at(chosen)]});
                item.push_back(chosen);
            }
        const auto count = static_cast<std::int64_t>(item.size());
        return data::TensorDataset({{"users", io::HostArray::of({count, 2}, users)},
                                    {"items", io::HostArray::of({count, 2}, items)},
                                    {"item", io::HostArray::of({count}, item)}});
    }
    /// Recall and NDCG of the held-out choices (K. Jarvelin, J. Kekalainen 2002), from scores (users, items).
    [[nodiscard]] std::pair<double, double> ranking_metrics(const std::vector<float>& scores) const {
        double recall = 0, gain = 0, ideal = 0;
        for (std::int64_t i = 0; i < std::min(kTop, kHeldOut); ++i) ideal += 1 / std::log2(static_cast<double>(i + 2));
        for (std::int64_t user = 0; user < kUsers; ++user) {
            std::vector<float> user_items(scores.begin() + user * kItems, scores.begin() + (user + 1) * kItems);
            for (const std::int64_t item : train_part[at(user)]) user_items[at(item)] = -INFINITY;
            std::vector<std::int64_t> order(at(kItems));
            std::iota(order.begin(), order.end(), 0);
            std::ranges::partial_sort(order, order.begin() + kTop, [&](std::int64_t a, std::int64_t b) {
                return user_items[at(a)] > user_items[at(b)];
            });
            for (std::int64_t i = 0; i < kTop; ++i)
                if (std::ranges::find(test_part[at(user)], order[at(i)]) != test_part[at(user)].end()) {
                    recall += 1 / static_cast<double>(kHeldOut);
                    gain += 1 / std::log2(static_cast<double>(i + 2)) / ideal;
                }
        }
        return {recall / kUsers, gain / kUsers};
    }
};

enum class Loss { batch, sampled, pairs };

/// Trains two towers on choices and returns the scores of all items for all users.
std::vector<float> train_on_choices(Loss loss, const World& world, const Choices& choices, std::int64_t epochs,
                                    std::uint64_t seed) {
    const models::TowerConfig user{.fields = {kUsers, kGroups}, .embedding_dim = 16, .hidden = {}},
        item{.fields = {kItems, kGenres}, .embedding_dim = 16, .hidden = {}};
    models::TwoTower model({.user = user, .item = item, .output_dim = 16, .normalize = false});
    optim::AdamW optimizer(model.parameters(), {.lr = 0.01, .weight_decay = 0.2});
    std::vector<float> counts(choices.popularity.begin(), choices.popularity.end());
    for (float& count : counts) count += 1;  // items without choices may be sampled too
    const models::NegativeSampler popularity_sampler(Tensor::from(counts, {kItems}));
    const models::NegativeSampler uniform = models::NegativeSampler::uniform(kItems);
    const Tensor all_items =
        stack({arange(0, kItems, 1, {.dtype = DType::i64}), Tensor::from(world.genre, {kItems})}, 1);
    const Tensor all_users =
        stack({arange(0, kUsers, 1, {.dtype = DType::i64}), Tensor::from(world.group, {kUsers})}, 1);

    train::Trainer trainer({.modules = {{"model", model}}, .optimizers = {{"optimizer", optimizer}}},
                           [&](train::Step& step, const data::Batch& batch) {
                               const Tensor users = model.user_vectors(batch["users"]);
                               const Tensor items = model.item_vectors(batch["items"]);
                               Tensor value;
                               if (loss == Loss::batch) {
                                   value = models::in_batch_softmax_loss(
                                       users, items, {.log_q = popularity_sampler.log_probability(batch["item"])});
                               } else if (loss == Loss::sampled) {
                                   const Tensor negative_ids = popularity_sampler.sample(200);
                                   value = models::sampled_softmax_loss(
                                       users, items, model.item_vectors(index_select(all_items, 0, negative_ids)),
                                       {.log_q_positive = popularity_sampler.log_probability(batch["item"]),
                                        .log_q_negative = popularity_sampler.log_probability(negative_ids)});
                               } else {
                                   const Tensor negative_ids = uniform.sample(users.size(0));
                                   const Tensor negatives =
                                       model.item_vectors(index_select(all_items, 0, negative_ids));
                                   value = models::bpr_loss(sum(users * items, {1}), sum(users * negatives, {1}));
                               }
                               optimizer.zero_grad();
                               step.backward(value);
                               optimizer.step();
                               step.report("loss", value);
                           });
    trainer.fit(choices.dataset(world), {.epochs = epochs,
                                         .batch = 512,
                                         .seed = seed,
                                         .callbacks = {std::make_shared<train::LearningRate>(
                                             optim::cosine(epochs, 0.01), train::LearningRate::Unit::epoch)},
                                         .capture = true});
    model.eval();
    const NoGrad no_grad;
    return matmul(model.user_vectors(all_users), transpose(model.item_vectors(all_items))).to_vector<float>();
}

// ---- plots

/// Red for low ratings, blue for high ones.
io::Color shade(double rating) {
    const double x = std::clamp((rating - 3.2) / 2.5, -1.0, 1.0);
    const auto fade = [](double y) { return static_cast<std::uint8_t>(255 - 200 * y); };
    return x < 0 ? io::Color{255, fade(-x), fade(-x)} : io::Color{fade(x), fade(x), 255};
}

io::Image8 picture(const World& world, const std::vector<float>& predicted, const std::vector<train::Series>& curves,
                   const std::vector<Outcome>& recalls) {
    const io::Image8 curve =
        train::learning_curve({.title = "Held-out ratings", .losses = curves, .losses_label = "RMSE"});
    constexpr int kCell = 4, kRows = 100, kColumns = 120, kEdge = 16;
    const int width = std::max(curve.width, 2 * kCell * kColumns + 3 * kEdge), curve_height = curve.height;
    io::Canvas canvas(width, curve_height + kCell * kRows + 60 + 30 * static_cast<int>(recalls.size()) + 40,
                      {255, 255, 255});
    canvas.draw(0, 0, curve);
    // Rows and columns are sorted by group and genre.
    const auto sorted = [](std::int64_t count, const std::vector<std::int64_t>& kind) {
        std::vector<std::int64_t> order(at(count));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return kind[at(a)] < kind[at(b)]; });
        return order;
    };
    const auto users = sorted(kUsers, world.group), items = sorted(kItems, world.genre);
    for (int side = 0; side < 2; ++side) {
        const int left = kEdge + side * (kCell * kColumns + kEdge);
        canvas.text(left, curve_height + 8,
                    side == 0 ? "noise-free ratings: users by items" : "predictions of matrix factorisation",
                    {40, 40, 40});
        for (int row = 0; row < kRows; ++row)
            for (int column = 0; column < kColumns; ++column) {
                const std::int64_t user = users[at(row * kUsers / kRows)], item = items[at(column * kItems / kColumns)];
                const double rating = side == 0 ? world.rating(user, item) : predicted[at(user * kItems + item)];
                canvas.fill_rect(left + column * kCell, curve_height + 28 + row * kCell, kCell, kCell, shade(rating));
            }
    }
    int y = curve_height + 28 + kCell * kRows + 16;
    canvas.text(kEdge, y, "recall@10 on held-out choices", {40, 40, 40});
    y += 24;
    for (const auto& [name, value] : recalls) {
        canvas.text(kEdge, y + 4, name, {40, 40, 40});
        const int length = static_cast<int>(value * 1000);
        canvas.fill_rect(kEdge + 260, y, length, 20, {70, 110, 200});
        char number[16];
        std::snprintf(number, sizeof number, "%.3f", value);
        canvas.text(kEdge + 270 + length, y + 4, number, {40, 40, 40});
        y += 30;
    }
    return canvas.image();
}

}  // namespace

int main(int argc, char** argv) {
    std::string device, plot;
    std::int64_t epochs = 20, count = 100000;
    std::uint64_t seed = 1;
    CLI::App app("Recommender systems on synthetic ratings and choices, compared with the best possible result.");
    app.add_option("--ratings", count, "number of training ratings")
        ->check(CLI::Range(1000, 290000))
        ->capture_default_str();
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--epochs", epochs, "epochs")->capture_default_str();
    app.add_option("--seed", seed, "random seed")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for the results");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(seed);
        const World world(seed);
        const Ratings train_part(world, seed, 0, count), test_part(world, seed, count, count + 20000);
        const float mean = std::accumulate(train_part.rating.begin(), train_part.rating.end(), 0.0F) /
                           static_cast<float>(train_part.rating.size());
        double noise = 0, deviation = 0;
        for (std::size_t i = 0; i < test_part.rating.size(); ++i) {
            noise += std::pow(test_part.rating[i] - world.rating(test_part.user[i], test_part.item[i]), 2);
            deviation += std::pow(test_part.rating[i] - mean, 2);
        }
        noise = std::sqrt(noise / static_cast<double>(test_part.rating.size()));
        deviation = std::sqrt(deviation / static_cast<double>(test_part.rating.size()));

        const data::TensorDataset train = train_part.dataset(world, mean), test = test_part.dataset(world, mean);
        std::vector<train::Series> curves;
        models::MatrixFactorization factors({.users = kUsers, .items = kItems, .factors = 6});
        models::FactorizationMachine machine({.fields = {kUsers, kGroups, kItems, kGenres}, .factors = 6});
        models::TwoTower towers({.user = {.fields = {kUsers, kGroups}, .embedding_dim = 8, .hidden = {}},
                                 .item = {.fields = {kItems, kGenres}, .embedding_dim = 8, .hidden = {}},
                                 .output_dim = 8,
                                 .normalize = false});
        std::vector<Outcome> errors;
        errors.push_back(train_on_ratings("matrix factorisation", factors, {"user", "item"}, train, test, epochs, 0.05,
                                          seed, curves));
        errors.push_back(
            train_on_ratings("factorisation machine", machine, {"fields"}, train, test, epochs, 0.05, seed, curves));
        errors.push_back(train_on_ratings("two towers", towers, {"user_fields", "item_fields"}, train, test, epochs,
                                          0.05, seed, curves));

        const Choices choices(world, seed);
        std::vector<std::pair<std::string, std::pair<double, double>>> rankings;
        std::vector<float> popular_scores, true_scores;
        for (std::int64_t user = 0; user < kUsers; ++user)
            for (std::int64_t item = 0; item < kItems; ++item) {
                popular_scores.push_back(static_cast<float>(choices.popularity[at(item)]));
                true_scores.push_back(world.choice_score(user, item));
            }
        rankings.emplace_back("most popular", choices.ranking_metrics(popular_scores));
        const auto rank = [&](const char* name, Loss loss) {
            std::printf("two towers, %s\n", name);
            rankings.emplace_back(name, choices.ranking_metrics(train_on_choices(loss, world, choices, epochs, seed)));
        };
        rank("pairs (BPR)", Loss::pairs);
        rank("softmax over the batch", Loss::batch);
        rank("sampled softmax", Loss::sampled);
        rankings.emplace_back("hidden factors", choices.ranking_metrics(true_scores));

        if (!plot.empty()) {
            train::Series baseline{
                .name = "noise", .x = {1, static_cast<double>(std::max<std::int64_t>(epochs, 1))}, .y = {noise, noise}};
            curves.push_back(baseline);
            std::vector<Outcome> recalls;
            for (const auto& [name, metrics] : rankings) recalls.push_back({name, metrics.first});
            const NoGrad no_grad;
            std::vector<float> predicted =
                (factors.scores(arange(0, kUsers, 1, {.dtype = DType::i64})) + mean).to_vector<float>();
            io::write_png(plot, picture(world, predicted, curves, recalls));
        }
        std::puts("\nheld-out choices              recall@10   NDCG@10");
        for (const auto& [name, metrics] : rankings)
            std::printf("  %-28s %9.3f %9.3f\n", name.c_str(), metrics.first, metrics.second);
        std::puts("\nheld-out ratings                   RMSE   / noise");
        std::printf("  %-28s %9.4f %9.3f\n  %-28s %9.4f %9.3f\n", "constant prediction", deviation, deviation / noise,
                    "noise alone", noise, 1.0);
        bool within_noise = true;
        for (const auto& [name, error] : errors) {
            std::printf("  %-28s %9.4f %9.3f\n", name.c_str(), error, error / noise);
            within_noise = within_noise && error < 1.05 * noise;
        }
        std::printf("within 5 %% of the noise: %s\n", within_noise ? "all" : "not all");
        return 0;
    });
}
