// Text generation with a KV cache: a language model with one attention head (Vaswani et al. 2017) learns to spell words
// backwards ("slope|epols"). It is trained on whole sequences and generates letter by letter.
#include <cmath>
#include <cstdio>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kWord = 7, kLength = 2 * kWord + 1, kBar = 26, kTokens = 27, kWidth = 32, kWords = 100;

/// Maps tokens (N, T) to next-token scores (N, T, kTokens). With a KV cache (N, kLength, 2 kWidth) of all but the last
/// token: scores of the last token only, (N, 1, kTokens); writes its key and value to the cache.
struct LanguageModel : nn::Callable<Tensor(Tensor tokens, Tensor cache)> {
    nn::Embedding& token_embedding = add("letter", nn::Embedding(kTokens, kWidth));
    nn::Embedding& position_embedding = add("place", nn::Embedding(kLength, kWidth));
    nn::Linear& query = add("query", nn::Linear(kWidth, kWidth));
    nn::Linear& key_value = add("key_value", nn::Linear(kWidth, 2 * kWidth));
    nn::Linear& head = add("head", nn::Linear(kWidth, kTokens));

    Tensor forward(Tensor tokens, Tensor cache) override {
        const std::int64_t end = tokens.size(1), first = cache.defined() ? end - 1 : 0;
        const Tensor at = arange(first, end, 1, {DType::i64}),
                     x = token_embedding(slice(tokens, 1, first, end)) + position_embedding(at);
        Tensor memory = key_value(x);
        if (cache.defined()) cache[{Slice(), Slice(first, end)}] = memory;
        if (cache.defined()) memory = slice(cache, 1, 0, end);
        const Tensor scores = matmul(query(x), transpose(slice(memory, 2, 0, kWidth))) / std::sqrt(kWidth);
        const Tensor masked_scores = where(arange(0, end) <= reshape(at, {-1, 1}), scores, -1e9);
        return head(matmul(softmax(masked_scores), slice(memory, 2, kWidth, 2 * kWidth)));
    }
};

data::FunctionDataset palindromes(std::int64_t count, std::uint64_t seed) {
    const data::Field field{.name = "text", .dtype = DType::i64, .shape = Shape{kLength}};
    return data::FunctionDataset(count, {field}, [seed](std::int64_t index) {
        data::Random random(seed, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
        std::vector<std::int64_t> text(kLength, kBar);
        for (std::size_t i = 0; i < kWord; ++i) text[i] = text[kLength - 1 - i] = random.below(26);
        return std::vector{io::HostArray::of({kLength}, text)};
    });
}

/// Scores (kWords, kWord, kTokens) of the letters generated after words and bars.
Tensor written(LanguageModel& model, const Tensor& read, Tensor cache) {
    const NoGrad no_grad;
    Tensor text = zeros({kWords, kLength}, {DType::i64}), scores = zeros({kWords, kLength, kTokens});
    text[{Slice(), Slice(0, kWord + 1)}] = read;
    for (std::int64_t t = 1; t < kLength; ++t) {
        scores[{Slice(), t}] = select(model(slice(text, 1, 0, t), cache), 1, -1);
        if (t > kWord) text[{Slice(), t}] = argmax(scores[{Slice(), t}]);
    }
    return slice(scores, 1, kWord + 1, kLength);
}

}  // namespace

int main() {
    manual_seed(1);
    const data::FunctionDataset train_set = palindromes(4000, 1), test_set = palindromes(kWords, 2);
    LanguageModel model;
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});
    const auto loss = [](const Tensor& scores, const data::Batch& batch) {
        const Tensor next = slice(batch["text"], 1, kWord + 1, kLength);  // no loss on the letters of the prompt
        return cross_entropy(reshape(slice(scores, 1, kWord, kLength - 1), {-1, kTokens}), flatten(next, 0));
    };
    train::Trainer trainer(model, optimizer, loss, {.inputs = {"text"}});
    trainer.fit(train_set, test_set, {.epochs = 3, .batch = 50, .capture = true});

    const data::Batch batch = *data::Loader(test_set, {.batch = kWords}).begin();
    const Tensor read = slice(batch["text"], 1, 0, kWord + 1), expected = slice(batch["text"], 1, kWord + 1, kLength);
    const Tensor uncached = written(model, read, {}),
                 cached = written(model, read, zeros({kWords, kLength, 2 * kWidth}));
    const double share = mean((argmax(cached) == expected).to(DType::f32)).item<float>();
    const double max_difference = max(abs(cached - uncached)).item<float>();
    const long long different_tokens = sum(argmax(cached) != argmax(uncached)).item<std::int64_t>();
    std::printf("letters right: %.4f; different without the cache: %lld, largest difference of scores: %.1e\n", share,
                different_tokens, max_difference);
    return share > 0.99 && different_tokens == 0 && max_difference < 1e-4 ? 0 : 1;
}
