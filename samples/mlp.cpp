// Multilayer perceptrons: a two-class ReLU network on points in the plane, and softmax regression on digits.
#include "common.hpp"

#include <cmath>

using namespace declivity;

namespace {

/// Two interleaved spirals, one for each class.
data::InMemoryDataset spirals(std::int64_t count, std::uint64_t seed) {
    data::Random random(seed, 0, 0, data::Purpose::user);
    std::vector<float> points;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) {
        const float along = random.uniform(0.2F, 1), angle = 9 * along + (i % 2 == 0 ? 0.0F : 3.1415927F);
        points.push_back(along * std::cos(angle) + 0.02F * random.normal());
        points.push_back(along * std::sin(angle) + 0.02F * random.normal());
        labels.push_back(i % 2);
    }
    return {{2}, std::move(points), std::move(labels), 2};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Trains a two-class ReLU network (spirals), or softmax regression on MNIST or synthetic digits.");
    samples::Flags flags{.epochs = 60, .batch = 64, .lr = 3e-3};
    flags.add_to(app);
    flags.add_dtype_to(app);
    std::string network = "spirals";
    app.add_option("--network", network, "spirals or softmax")
        ->check(CLI::IsMember({"spirals", "softmax"}))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return samples::guarded([&] {
        flags.apply();
        samples::Sets sets;
        nn::Sequential model;
        if (network == "spirals") {
            sets = {std::make_shared<data::InMemoryDataset>(spirals(4000, 1)),
                    std::make_shared<data::InMemoryDataset>(spirals(1000, 2))};
            model.append(nn::Linear(2, 64));
            model.append(nn::ReLU());
            model.append(nn::Linear(64, 64));
            model.append(nn::ReLU());
            model.append(nn::Linear(64, 2));
        } else {
            if (flags.data.empty())
                sets = {std::make_shared<data::SyntheticDigits>(10000, 1),
                        std::make_shared<data::SyntheticDigits>(2000, 2)};
            else
                sets = {data::load_mnist(flags.data, data::Split::train),
                        data::load_mnist(flags.data, data::Split::test)};
            model.append(nn::Flatten());
            model.append(nn::Linear(sets.train->field("image").shape->numel(), 10));
        }
        sets.train = samples::limited(sets.train, flags.limit);
        model.to(flags.dtype);
        optim::Adam optimizer(model.parameters(), {.lr = flags.lr});
        return samples::train_and_report(flags, model, optimizer, sets, {}, "mlp");
    });
}
