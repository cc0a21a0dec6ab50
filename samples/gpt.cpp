// Trains a small character-level GPT on a text (A. Radford et al., Language models are unsupervised multitask learners,
// 2019).
//
// The defaults suffice for the synthetic play and take a minute or two on two cores. A real text takes longer:
//
//     ./gpt --text tinyshakespeare.txt --length 128 --epochs 10 --steps-per-epoch 500 --save gpt.ckpt
//     ./gpt --text tinyshakespeare.txt --length 128 --load gpt.ckpt --epochs 0 --prompt "ROMEO:" --generate 1000
#include "text.hpp"

using namespace samples;

int main(int argc, char** argv) {
    LanguageFlags flags;
    std::int64_t layers = 4, width = 128, heads = 4;
    double dropout = 0.1;
    std::string prompt = "\n";
    CLI::App app("Trains a small GPT on a text and generates text with it.");
    flags.add_to(app);
    app.add_option("--layers", layers, "number of transformer blocks")->capture_default_str();
    app.add_option("--width", width, "embedding size")->capture_default_str();
    app.add_option("--heads", heads, "number of attention heads; must divide the width")->capture_default_str();
    app.add_option("--dropout", dropout, "dropout probability")->capture_default_str();
    app.add_option("--prompt", prompt, "prompt of the generated text");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        flags.apply();
        const TextSets sets = characters_of(flags.text);
        models::GPT2 model({.vocab_size = sets.tokenizer.vocab_size(),
                            .n_positions = flags.length,
                            .n_embd = width,
                            .n_layer = layers,
                            .n_head = heads,
                            .resid_pdrop = dropout,
                            .embd_pdrop = dropout,
                            .attn_pdrop = dropout});
        std::printf("%s\n%lld parameters\n", default_device().name().c_str(),
                    static_cast<long long>(parameter_count(model.parameters())));
        const double loss = train_language_model(model, sets, flags, "GPT, nats per token");

        // The context is at most `length` tokens: longer texts are generated window by window, each from the last half
        // of the one before.
        std::vector<std::int64_t> ids = sets.tokenizer.ids(prompt);
        const std::size_t total_length = ids.size() + static_cast<std::size_t>(flags.generate);
        const models::NextToken next =
            flags.temperature > 0 ? models::sampling({.temperature = flags.temperature}) : models::greedy();
        while (ids.size() < total_length) {
            const std::size_t seen = std::min<std::size_t>(ids.size(), static_cast<std::size_t>(flags.length / 2));
            const std::vector<std::int64_t> last(ids.end() - static_cast<std::ptrdiff_t>(seen), ids.end());
            const auto count = static_cast<std::int64_t>(
                std::min(total_length - ids.size(), static_cast<std::size_t>(flags.length) - seen));
            const Tensor read = Tensor::from(last, {1, static_cast<std::int64_t>(seen)});
            const auto written =
                models::generate(model, read, {.max_new_tokens = count, .next = next}).tokens.to_vector<std::int64_t>();
            ids.insert(ids.end(), written.begin() + static_cast<std::ptrdiff_t>(seen), written.end());
        }
        std::printf("\n%s\n\n", sets.tokenizer.decode(ids).c_str());
        std::printf("validation loss: %.4f\n", loss);
        return 0;
    });
}
