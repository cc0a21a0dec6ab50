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

constexpr std::int64_t kUsers = 800, kItems = 400, kGroups = 8, kGenres = 10, kTastes = 4;
constexpr std::int64_t kChosen = 40, kKept = 10, kTop = 10;  // choices per user, test choices per user, list length
constexpr float kNoise = 0.4F;                               // standard deviation of a rating's noise

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Hidden factors: users are similar within their group, items within their genre.
struct World {
    std::vector<float> taste, property, kindness, quality;
    std::vector<std::int64_t> group, genre;

    explicit World(std::uint64_t seed) {
        data::Random random(seed, 0, 0, data::Purpose::user);
        const auto vectors = [&](std::int64_t count, std::int64_t kinds, std::vector<std::int64_t>& kind) {
            std::vector<float> common(at(kinds * kTastes)), all;
            for (float& value : common) value = 0.5F * random.normal();
            for (std::int64_t i = 0; i < count; ++i) {
                kind.push_back(random.below(kinds));
                for (std::int64_t k = 0; k < kTastes; ++k)
                    all.push_back(common[at(kind.back() * kTastes + k)] + 0.45F * random.normal());
            }
            return all;
        };
        taste = vectors(kUsers, kGroups, group);
        property = vectors(kItems, kGenres, genre);
        for (std::int64_t i = 0; i < kUsers; ++i) kindness.push_back(0.4F * random.normal());
        for (std::int64_t i = 0; i < kItems; ++i) quality.push_back(0.4F * random.normal());
    }
    [[nodiscard]] float agreement(std::int64_t user, std::int64_t item) const {
        float sum = 0;
        for (std::int64_t k = 0; k < kTastes; ++k)
            sum += taste[at(user * kTastes + k)] * property[at(item * kTastes + k)];
        return sum;
    }
    /// The rating without noise.
    [[nodiscard]] float rating(std::int64_t user, std::int64_t item) const {
        return 3.2F + kindness[at(user)] + quality[at(item)] + agreement(user, item);
    }
    /// Log-probability of choosing an item, up to a constant: some items are much more popular.
    [[nodiscard]] float pull(std::int64_t user, std::int64_t item) const {
        return 2 * agreement(user, item) + 2.5F * quality[at(item)];
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
        std::vector<std::int64_t> fields, of_user, of_item;
        std::vector<float> beside;
        for (std::size_t i = 0; i < user.size(); ++i) {
            const std::vector<std::int64_t> row = world.fields(user[i], item[i]);
            fields.insert(fields.end(), row.begin(), row.end());
            of_user.insert(of_user.end(), row.begin(), row.begin() + 2);
            of_item.insert(of_item.end(), row.begin() + 2, row.end());
            beside.push_back(rating[i] - mean);
        }
        return data::TensorDataset({{"user", io::HostArray::of({count}, user)},
                                    {"item", io::HostArray::of({count}, item)},
                                    {"fields", io::HostArray::of({count, 4}, fields)},
                                    {"user_fields", io::HostArray::of({count, 2}, of_user)},
                                    {"item_fields", io::HostArray::of({count, 2}, of_item)},
                                    {"rating", io::HostArray::of({count}, beside)}});
    }
};

struct Outcome {
    std::string name;
    double value;
};

/// Trains one rating model; returns its error on the held-out ratings, by epoch and at the end.
Outcome train_on_ratings(const std::string& name, train::Model model, std::vector<std::string> inputs,
                         const data::TensorDataset& known, const data::TensorDataset& kept, std::int64_t epochs,
                         double decay, std::uint64_t seed, std::vector<train::Series>& curves) {
    std::printf("%s\n", name.c_str());
    optim::AdamW optimizer(model.module().parameters(), {.lr = 0.01, .weight_decay = decay});
    train::Trainer trainer(model, optimizer, nn::MSELoss(), {.inputs = std::move(inputs), .target = "rating"});
    trainer.fit(known, {{"kept", kept}},
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
    return {name, std::sqrt(trainer.evaluate(kept)["loss"])};
}

// ---- choices

struct Choices {
    std::vector<std::vector<std::int64_t>> known, kept;  // per user
    std::vector<double> popularity;                      // how often each item occurs in the training choices

    /// Samples without replacement: the items with the largest pull + Gumbel noise.
    Choices(const World& world, std::uint64_t seed) : popularity(at(kItems)) {
        for (std::int64_t user = 0; user < kUsers; ++user) {
            data::Random random(seed, 2, static_cast<std::uint64_t>(user), data::Purpose::user);
            std::vector<std::pair<float, std::int64_t>> order;
            for (std::int64_t item = 0; item < kItems; ++item)
                order.emplace_back(world.pull(user, item) - std::log(-std::log(random.uniform(1e-6F, 1))), item);
            std::ranges::sort(order, std::greater());
            std::vector<std::int64_t> mine;
            for (std::int64_t i = 0; i < kChosen; ++i) mine.push_back(order[at(i)].second);
            for (std::int64_t i = 0; i < kKept; ++i) std::swap(mine[at(i)], mine[at(i + random.below(kChosen - i))]);
            kept.emplace_back(mine.begin(), mine.begin() + kKept);
            known.emplace_back(mine.begin() + kKept, mine.end());
            for (const std::int64_t item : known.back()) popularity[at(item)] += 1;
        }
    }
    [[nodiscard]] data::TensorDataset dataset(const World& world) const {
        std::vector<std::int64_t> users, items, item;
        for (std::int64_t user = 0; user < kUsers; ++user)
            for (const std::int64_t one : known[at(user)]) {
                users.insert(users.end(), {user, world.group[at(user)]});
                items.insert(items.end(), {one, world.genre[at(one)]});
                item.push_back(one);
            }
        const auto count = static_cast<std::int64_t>(item.size());
        return data::TensorDataset({{"users", io::HostArray::of({count, 2}, users)},
                                    {"items", io::HostArray::of({count, 2}, items)},
                                    {"item", io::HostArray::of({count}, item)}});
    }
    /// Recall and NDCG of the held-out choices (K. Jarvelin, J. Kekalainen 2002), from scores (users, items).
    [[nodiscard]] std::pair<double, double> quality(const std::vector<float>& scores) const {
        double recall = 0, gain = 0, ideal = 0;
        for (std::int64_t i = 0; i < std::min(kTop, kKept); ++i) ideal += 1 / std::log2(static_cast<double>(i + 2));
        for (std::int64_t user = 0; user < kUsers; ++user) {
            std::vector<float> mine(scores.begin() + user * kItems, scores.begin() + (user + 1) * kItems);
            for (const std::int64_t item : known[at(user)]) mine[at(item)] = -INFINITY;
            std::vector<std::int64_t> order(at(kItems));
            std::iota(order.begin(), order.end(), 0);
            std::ranges::partial_sort(order, order.begin() + kTop,
                                      [&](std::int64_t a, std::int64_t b) { return mine[at(a)] > mine[at(b)]; });
            for (std::int64_t i = 0; i < kTop; ++i)
                if (std::ranges::find(kept[at(user)], order[at(i)]) != kept[at(user)].end()) {
                    recall += 1 / static_cast<double>(kKept);
                    gain += 1 / std::log2(static_cast<double>(i + 2)) / ideal;
                }
        }
        return {recall / kUsers, gain / kUsers};
    }
};

enum class Loss { batch, drawn, pairs };

/// Trains two towers on choices and returns the scores of all items for all users.
std::vector<float> train_on_choices(Loss loss, const World& world, const Choices& choices, std::int64_t epochs,
                                    std::uint64_t seed) {
    const models::TowerConfig user{.fields = {kUsers, kGroups}, .embedding_dim = 16, .hidden = {}},
        item{.fields = {kItems, kGenres}, .embedding_dim = 16, .hidden = {}};
    models::TwoTower model({.user = user, .item = item, .output_dim = 16, .normalize = false});
    optim::AdamW optimizer(model.parameters(), {.lr = 0.01, .weight_decay = 0.2});
    std::vector<float> counts(choices.popularity.begin(), choices.popularity.end());
    for (float& count : counts) count += 1;  // items without choices may be sampled too
    const models::NegativeSampler popular(Tensor::from(counts, {kItems}));
    const models::NegativeSampler uniform = models::NegativeSampler::uniform(kItems);
    const Tensor all_items =
        stack({arange(0, kItems, 1, {.dtype = DType::i64}), Tensor::from(world.genre, {kItems})}, 1);
    const Tensor all_users =
        stack({arange(0, kUsers, 1, {.dtype = DType::i64}), Tensor::from(world.group, {kUsers})}, 1);

    train::Trainer trainer(
        {.modules = {{"model", model}}, .optimizers = {{"optimizer", optimizer}}},
        [&](train::Step& step, const data::Batch& batch) {
            const Tensor users = model.user_vectors(batch["users"]);
            const Tensor items = model.item_vectors(batch["items"]);
            Tensor value;
            if (loss == Loss::batch) {
                value = models::in_batch_softmax_loss(users, items, {.log_q = popular.log_probability(batch["item"])});
            } else if (loss == Loss::drawn) {
                const Tensor drawn = popular.sample(200);
                value =
                    models::sampled_softmax_loss(users, items, model.item_vectors(index_select(all_items, 0, drawn)),
                                                 {.log_q_positive = popular.log_probability(batch["item"]),
                                                  .log_q_negative = popular.log_probability(drawn)});
            } else {
                const Tensor drawn = uniform.sample(users.size(0));
                const Tensor others = model.item_vectors(index_select(all_items, 0, drawn));
                value = models::bpr_loss(sum(users * items, {1}), sum(users * others, {1}));
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

io::Image8 picture(const World& world, const std::vector<float>& said, const std::vector<train::Series>& curves,
                   const std::vector<Outcome>& recalls) {
    const io::Image8 curve =
        train::learning_curve({.title = "Held-out ratings", .losses = curves, .losses_label = "RMSE"});
    constexpr int kCell = 4, kRows = 100, kColumns = 120, kEdge = 16;
    const int width = std::max(curve.width, 2 * kCell * kColumns + 3 * kEdge), below = curve.height;
    io::Canvas canvas(width, below + kCell * kRows + 60 + 30 * static_cast<int>(recalls.size()) + 40, {255, 255, 255});
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
        canvas.text(left, below + 8,
                    side == 0 ? "noise-free ratings: users by items" : "predictions of matrix factorisation",
                    {40, 40, 40});
        for (int row = 0; row < kRows; ++row)
            for (int column = 0; column < kColumns; ++column) {
                const std::int64_t user = users[at(row * kUsers / kRows)], item = items[at(column * kItems / kColumns)];
                const double rating = side == 0 ? world.rating(user, item) : said[at(user * kItems + item)];
                canvas.fill_rect(left + column * kCell, below + 28 + row * kCell, kCell, kCell, shade(rating));
            }
    }
    int y = below + 28 + kCell * kRows + 16;
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
        const Ratings known(world, seed, 0, count), kept(world, seed, count, count + 20000);
        const float mean =
            std::accumulate(known.rating.begin(), known.rating.end(), 0.0F) / static_cast<float>(known.rating.size());
        double noise = 0, spread = 0;
        for (std::size_t i = 0; i < kept.rating.size(); ++i) {
            noise += std::pow(kept.rating[i] - world.rating(kept.user[i], kept.item[i]), 2);
            spread += std::pow(kept.rating[i] - mean, 2);
        }
        noise = std::sqrt(noise / static_cast<double>(kept.rating.size()));
        spread = std::sqrt(spread / static_cast<double>(kept.rating.size()));

        const data::TensorDataset train = known.dataset(world, mean), test = kept.dataset(world, mean);
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
        std::vector<float> popular, best;
        for (std::int64_t user = 0; user < kUsers; ++user)
            for (std::int64_t item = 0; item < kItems; ++item) {
                popular.push_back(static_cast<float>(choices.popularity[at(item)]));
                best.push_back(world.pull(user, item));
            }
        rankings.emplace_back("most popular", choices.quality(popular));
        const auto rank = [&](const char* name, Loss loss) {
            std::printf("two towers, %s\n", name);
            rankings.emplace_back(name, choices.quality(train_on_choices(loss, world, choices, epochs, seed)));
        };
        rank("pairs (BPR)", Loss::pairs);
        rank("softmax over the batch", Loss::batch);
        rank("sampled softmax", Loss::drawn);
        rankings.emplace_back("hidden factors", choices.quality(best));

        if (!plot.empty()) {
            train::Series floor{
                .name = "noise", .x = {1, static_cast<double>(std::max<std::int64_t>(epochs, 1))}, .y = {noise, noise}};
            curves.push_back(floor);
            std::vector<Outcome> recalls;
            for (const auto& [name, both] : rankings) recalls.push_back({name, both.first});
            const NoGrad no_grad;
            std::vector<float> said =
                (factors.scores(arange(0, kUsers, 1, {.dtype = DType::i64})) + mean).to_vector<float>();
            io::write_png(plot, picture(world, said, curves, recalls));
        }
        std::puts("\nheld-out choices              recall@10   NDCG@10");
        for (const auto& [name, both] : rankings)
            std::printf("  %-28s %9.3f %9.3f\n", name.c_str(), both.first, both.second);
        std::puts("\nheld-out ratings                   RMSE   / noise");
        std::printf("  %-28s %9.4f %9.3f\n  %-28s %9.4f %9.3f\n", "constant prediction", spread, spread / noise,
                    "noise alone", noise, 1.0);
        bool near = true;
        for (const auto& [name, error] : errors) {
            std::printf("  %-28s %9.4f %9.3f\n", name.c_str(), error, error / noise);
            near = near && error < 1.05 * noise;
        }
        std::printf("within 5 %% of the noise: %s\n", near ? "all" : "not all");
        return 0;
    });
}
