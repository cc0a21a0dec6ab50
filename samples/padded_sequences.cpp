// Sequences of different lengths: a recurrent network (Hochreiter and Schmidhuber 1997) predicts which key token came
// last, at any distance.
#include <cstdio>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kPadding = 0, kKeys = 4, kTokens = 12;  // 1 .. 4 are keys, 5 .. 11 are not

data::FunctionDataset sequences(std::int64_t count, std::uint64_t seed) {
    const std::vector<data::Field> fields = {{.name = "tokens", .dtype = DType::i64},
                                             {.name = "label", .dtype = DType::i64, .shape = Shape{}}};
    return data::FunctionDataset(count, fields, [seed](std::int64_t index) {
        data::Random random(seed, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
        std::vector<std::int64_t> tokens = {1 + random.below(kKeys)};
        std::int64_t last = tokens[0];
        for (std::int64_t remaining = 2 + random.below(13); remaining > 0; --remaining) {
            tokens.push_back(random.chance(0.2F) ? 1 + random.below(kKeys) : 5 + random.below(kTokens - 5));
            if (tokens.back() <= kKeys) last = tokens.back();
        }
        return std::vector{io::HostArray::of({static_cast<std::int64_t>(tokens.size())}, tokens),
                           io::HostArray::of(last - 1)};
    });
}

/// Maps tokens (N, T) and lengths (N) to scores (N, kKeys) from the state after each sequence's last token.
struct Classifier : nn::Callable<Tensor(Tensor tokens, Tensor length)> {
    nn::Embedding& embedding = add("embedding", nn::Embedding(kTokens, 16, {.padding_idx = kPadding}));
    nn::LSTMCell& cell = add("cell", nn::LSTMCell(16, 32));
    nn::Linear& head = add("head", nn::Linear(32, kKeys));

    Tensor forward(Tensor tokens, Tensor length) override {
        const Tensor embedded = embedding(tokens);
        Tensor last = zeros({tokens.size(0), 32});
        LstmState state;
        for (std::int64_t t = 0; t < tokens.size(1); ++t) {
            state = cell(select(embedded, 1, t), state);
            last = where(reshape(length == t + 1, {-1, 1}), state.hidden, last);
        }
        return head(last);
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Classifier); }
};

}  // namespace

int main() {
    manual_seed(1);
    const data::FunctionDataset train_set = sequences(3000, 1), test_set = sequences(500, 2);
    const data::Collate collate = data::pad({.values = {{"tokens", kPadding}}, .multiple = 15});

    Classifier model;
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});
    train::Trainer trainer(model, optimizer, nn::CrossEntropyLoss(),
                           {.inputs = {"tokens", "tokens_length"}, .target = "label"});
    trainer.fit(train_set, test_set, {.epochs = 3, .batch = 50, .collate = collate, .clip_norm = 5});

    const double accuracy = trainer.evaluate(test_set, {.collate = collate})["accuracy"];
    std::printf("%d steps were replayed\n", static_cast<int>(trainer.replays().replayed));
    std::printf("test accuracy: %.4f\n", accuracy);
    return accuracy > 0.97 ? 0 : 1;  // 0.25 by chance, 0.93 without the last token
}
