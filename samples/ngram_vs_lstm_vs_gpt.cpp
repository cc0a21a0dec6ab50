// Compares three character-level language models: n-gram counts (R. Kneser, H. Ney, 1995), an LSTM (S. Hochreiter, J.
// Schmidhuber, 1997) and a small GPT (A. Radford et al., 2019), by perplexity and generated text.
//
//     ./ngram_vs_lstm_vs_gpt --text tinyshakespeare.txt --length 128 --epochs 10 --steps-per-epoch 500
#include <cmath>

#include "text.hpp"

using namespace samples;

namespace {

struct Lstm : nn::Layer {
    Lstm(std::int64_t tokens, std::int64_t width, std::int64_t layers)
        : embedding(add("letters", nn::Embedding(tokens, width))),
          lstm(add("lstm", nn::LSTM(width, width, {.num_layers = layers, .batch_first = true}))),
          head(add("head", nn::Linear(width, tokens))) {}
    Tensor forward(Tensor tokens) override { return head(lstm(embedding(tokens)).y); }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Lstm); }

    nn::Embedding& embedding;
    nn::LSTM& lstm;
    nn::Linear& head;
};

/// Generates `count` tokens after a prompt, with a context of the last `length` tokens.
std::string written(const train::Model& model, const TextSets& sets, std::vector<std::int64_t> ids, std::int64_t length,
                    const LanguageFlags& flags) {
    const NoGrad no_grad;
    model.module().eval();
    const models::NextToken next =
        flags.temperature > 0 ? models::sampling({.temperature = flags.temperature}) : models::greedy();
    for (std::int64_t i = 0; i < flags.generate; ++i) {
        const auto context = std::min<std::size_t>(ids.size(), static_cast<std::size_t>(length));
        const std::vector<std::int64_t> last(ids.end() - static_cast<std::ptrdiff_t>(context), ids.end());
        const Tensor scores = model({Tensor::from(last, {1, static_cast<std::int64_t>(context)})});
        ids.push_back(next.choose(select(scores, 1, -1)).to_vector<std::int64_t>()[0]);
    }
    return sets.tokenizer.decode(ids);
}

}  // namespace

int main(int argc, char** argv) {
    LanguageFlags flags;
    flags.generate = 300, flags.steps = 50;
    std::int64_t width = 128, lstm_layers = 2, layers = 4;
    int order = 6;
    CLI::App app("Compares an n-gram model, an LSTM and a small GPT on a text.");
    flags.add_to(app);
    app.add_option("--order", order, "order of the n-gram model")->capture_default_str();
    app.add_option("--width", width, "embedding size of the networks")->capture_default_str();
    app.add_option("--lstm-layers", lstm_layers, "number of LSTM layers")->capture_default_str();
    app.add_option("--layers", layers, "number of GPT blocks")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        flags.apply();
        const TextSets sets = characters_of(flags.text);
        const std::int64_t tokens = sets.tokenizer.vocab_size();
        const std::vector<std::int64_t> prompt = sets.tokenizer.ids("\n");

        text::NgramModel ngrams(tokens, {.order = order});
        ngrams.train(sets.train);
        double log_probability = 0;
        const std::vector<double> token_log_probabilities = ngrams.log_probabilities(sets.test);
        for (std::size_t i = 1; i < token_log_probabilities.size(); ++i) log_probability += token_log_probabilities[i];
        const double ngram_loss = -log_probability / static_cast<double>(token_log_probabilities.size() - 1);
        std::printf("%d-grams: %.4f nats per token\n", order, ngram_loss);

        Lstm lstm(tokens, 2 * width, lstm_layers);
        std::printf("LSTM: %lld parameters\n", static_cast<long long>(parameter_count(lstm.parameters())));
        const double lstm_loss = train_language_model(lstm, sets, flags, "LSTM, nats per token");

        models::GPT2 gpt(
            {.vocab_size = tokens, .n_positions = flags.length, .n_embd = width, .n_layer = layers, .n_head = 4});
        std::printf("GPT: %lld parameters\n", static_cast<long long>(parameter_count(gpt.parameters())));
        const double gpt_loss = train_language_model(gpt, sets, flags, "GPT, nats per token");

        data::Random random(flags.seed, 0, 0, data::Purpose::user);
        std::printf("\n--- n-grams\n%s\n",
                    sets.tokenizer.decode(ngrams.sample(flags.generate, random, prompt)).c_str());
        std::printf("\n--- LSTM\n%s\n", written(lstm, sets, prompt, flags.length, flags).c_str());
        std::printf("\n--- GPT\n%s\n", written(gpt, sets, prompt, flags.length, flags).c_str());
        std::printf("\n%-8s %14s %12s\n", "", "nats per token", "perplexity");
        for (const auto& [name, loss] :
             {std::pair("n-grams", ngram_loss), std::pair("LSTM", lstm_loss), std::pair("GPT", gpt_loss)})
            std::printf("%-8s %14.4f %12.3f\n", name, loss, std::exp(loss));
        return 0;
    });
}
