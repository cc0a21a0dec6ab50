// A recommender learns what users think of items that they have not rated: matrix factorisation (Koren, Bell and
// Volinsky 2009), a model of two inputs.
#include <cstdio>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kUsers = 200, kItems = 100, kTastes = 4;

/// Numbers of users (N) and items (N) to ratings (N).
struct Recommender : nn::Callable<Tensor(Tensor user, Tensor item)> {
    nn::Embedding& users = add("users", nn::Embedding(kUsers, kTastes));
    nn::Embedding& items = add("items", nn::Embedding(kItems, kTastes));
    nn::Embedding& kindness = add("kindness", nn::Embedding(kUsers, 1));
    nn::Embedding& quality = add("quality", nn::Embedding(kItems, 1));

    Tensor forward(Tensor user, Tensor item) override {
        return sum(users(user) * items(item), 1) + flatten(kindness(user), 0) + flatten(quality(item), 0);
    }
    [[nodiscard]] const std::type_info& replayable() const override { return typeid(Recommender); }
};

/// Each user rated some of the items: by how well tastes and properties agree, and by chance.
data::TensorDataset ratings(std::int64_t count, std::uint64_t chance) {
    data::Random world(1, 0, 0, data::Purpose::user), random(chance, 0, 1, data::Purpose::user);
    std::vector<float> taste(kUsers * 3), property(kItems * 3);
    for (float& one : taste) one = world.normal();
    for (float& one : property) one = world.normal();
    std::vector<std::int64_t> user, item;
    std::vector<float> rating;
    for (std::int64_t i = 0; i < count; ++i) {
        user.push_back(random.below(kUsers));
        item.push_back(random.below(kItems));
        rating.push_back(3 + 0.1F * random.normal());
        for (std::int64_t k = 0; k < 3; ++k)
            rating.back() += taste[static_cast<std::size_t>(user.back() * 3 + k)] *
                             property[static_cast<std::size_t>(item.back() * 3 + k)];
    }
    return data::TensorDataset({{"user", io::HostArray::of({count}, user)},
                                {"item", io::HostArray::of({count}, item)},
                                {"rating", io::HostArray::of({count}, rating)}});
}

}  // namespace

int main() {
    manual_seed(1);
    const data::TensorDataset known = ratings(8000, 1), unknown = ratings(2000, 2);

    Recommender model;
    optim::Adam optimizer(model.parameters(), {.lr = 0.03});
    train::Trainer trainer(model, optimizer, nn::MSELoss(),
                           {.metrics = {{"error", std::make_shared<train::MeanAbsoluteError>()}}});
    trainer.fit(known, unknown, {.epochs = 12, .batch = 100});

    const double error = trainer.evaluate(unknown)["error"];
    std::printf("mean absolute error: %.4f\n", error);
    return error < 0.4 ? 0 : 1;  // 1.2 for whoever says 3 of everything; chance alone is 0.08
}
