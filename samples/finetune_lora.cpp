// LoRA fine-tuning (E. Hu et al., LoRA, 2021): a Llama pretrained on one kind of text is fine-tuned on another, first
// with all parameters, then with adapters on frozen layers; compares loss, time and peak memory.
//
//     ./finetune_lora --text tinyshakespeare.txt --width 256 --layers 6 --batch 16 --length 128 --save adapters
#include <chrono>
#include <filesystem>
#include <functional>

#include "text.hpp"

using namespace samples;

namespace {

/// Synthetic recipes, the fine-tuning data.
std::string synthetic_recipes(std::int64_t count, std::uint64_t seed) {
    const std::vector<std::string> verbs{"Chop", "Boil", "Fry", "Bake", "Stir"},
        ingredients{"onions", "eggs", "beans", "apples", "a fish"}, with{"salt", "butter", "honey", "thyme"},
        times{"two", "five", "ten"};
    data::Random random(seed, 0, 0, data::Purpose::user);
    const auto pick = [&](const std::vector<std::string>& choices) {
        return choices[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(choices.size())))];
    };
    std::string all;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::string ingredient = pick(ingredients);
        all += "Recipe: " + ingredient + " with " + pick(with) + "\n";
        for (std::int64_t remaining = 2 + random.below(2); remaining > 0; --remaining)
            all += "- " + pick(verbs) + " the " + ingredient + " for " + pick(times) + " hours.\n";
        all += "\n";
    }
    return all;
}

struct Tuning {
    std::int64_t steps, batch, length;
    double lr;
    std::uint64_t seed;
};

/// Trains `parameters` on windows of `tokens`.
void tune(models::Llama& model, std::vector<Tensor> parameters, const std::vector<std::int64_t>& tokens,
          const Tuning& tuning) {
    const text::WindowDataset windows(tokens, {.length = tuning.length, .stride = 1});
    optim::AdamW optimizer(std::move(parameters), {.lr = tuning.lr, .weight_decay = 0.01});
    train::Trainer trainer(model, optimizer, train::Loss(token_loss));
    train::FitOptions options{.epochs = 1,
                              .batch = tuning.batch,
                              .seed = tuning.seed,
                              .sampler = std::make_shared<data::RandomSampler>(data::RandomSamplerOptions{
                                  .replacement = true, .count = tuning.steps * tuning.batch}),
                              .clip_norm = 1};
    trainer.fit(windows, options);
}

double loss_of(models::Llama& model, const std::vector<std::int64_t>& tokens, const Tuning& tuning) {
    const NoGrad no_grad;
    model.eval();
    double sum = 0;
    std::int64_t batches = 0;
    const text::WindowDataset windows(tokens, {.length = tuning.length});
    for (const data::Batch& batch : data::Loader(windows, {.batch = 16})) {
        sum += token_loss(model(batch["input"]), batch["target"]).item<float>();
        ++batches;
    }
    return sum / static_cast<double>(batches);
}

std::string written(models::Llama& model, const text::Tokenizer& tokenizer, const std::string& prompt,
                    std::int64_t count) {
    const std::vector<std::int64_t> ids = tokenizer.ids(prompt);
    const Tensor read = Tensor::from(ids, {1, static_cast<std::int64_t>(ids.size())});
    model.eval();
    return tokenizer.decode(models::generate(model, read, {.max_new_tokens = count}).tokens.to_vector<std::int64_t>());
}

}  // namespace

int main(int argc, char** argv) {
    std::string file, device, save = (std::filesystem::temp_directory_path() / "finetune_lora").string();
    std::vector<std::string> targets;
    std::int64_t base_steps = 300, width = 192, layers = 4, r = 8;
    Tuning tuning{.steps = 120, .batch = 8, .length = 64, .lr = 3e-3, .seed = 1};
    CLI::App app("Fine-tunes a small Llama with LoRA adapters, compared with fine-tuning all parameters.");
    app.add_option("--text", file, "pretraining text of the base model (default: a synthetic play)");
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--base-steps", base_steps, "pretraining steps of the base model")->capture_default_str();
    app.add_option("--steps", tuning.steps, "fine-tuning steps")->capture_default_str();
    app.add_option("--batch", tuning.batch, "batch size in windows")->capture_default_str();
    app.add_option("--length", tuning.length, "context length in tokens")->capture_default_str();
    app.add_option("--lr", tuning.lr, "learning rate of fine-tuning with adapters; a tenth of it for all parameters")
        ->capture_default_str();
    app.add_option("--width", width, "embedding size")->capture_default_str();
    app.add_option("--layers", layers, "number of transformer blocks")->capture_default_str();
    app.add_option("--rank", r, "rank of the adapters")->capture_default_str();
    app.add_option("--targets", targets, "layers with adapters, such as q_proj,v_proj (default: all linear layers)")
        ->delimiter(',');
    app.add_option("--seed", tuning.seed, "random seed")->capture_default_str();
    app.add_option("--save", save, "folder for the base model and the adapters")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(tuning.seed);
        std::string play;
        if (file.empty()) {
            std::puts("no --text: using a synthetic play");
            play = synthetic_play(2000, 1);
        } else {
            play = text_of(file);
        }
        const std::string recipes = synthetic_recipes(400, 1), test_recipes = synthetic_recipes(60, 2);
        const text::Tokenizer tokenizer = text::train_character({play, recipes});
        const std::vector<std::int64_t> train_tokens = tokenizer.ids(recipes),
                                        test_tokens = tokenizer.ids(test_recipes);

        const std::filesystem::path base = std::filesystem::path(save) / "base",
                                    adapters = std::filesystem::path(save) / "adapters";
        {
            models::Llama model({.vocab_size = tokenizer.vocab_size(),
                                 .hidden_size = width,
                                 .intermediate_size = 3 * width,
                                 .num_hidden_layers = layers,
                                 .num_attention_heads = 4,
                                 .max_position_embeddings = std::max<std::int64_t>(2 * tuning.length, 256)});
            std::printf("%s\nbase model: %lld parameters\n", default_device().name().c_str(),
                        static_cast<long long>(parameter_count(model.parameters())));
            Tuning pretraining = tuning;
            pretraining.steps = base_steps, pretraining.lr = 1e-3;
            tune(model, model.parameters(), tokenizer.ids(play), pretraining);
            std::printf("loss on the recipes: %.4f nats per token\n%s\n\n", loss_of(model, test_tokens, tuning),
                        written(model, tokenizer, "Recipe: ", 100).c_str());
            model.save_pretrained(base);
        }

        struct Variant {
            const char* name;
            bool with_adapters, bf16_base, checkpointing;
        };
        std::string table;
        double full_memory = 0, adapter_memory = 0;
        for (const Variant& variant :
             {Variant{"all parameters, f32", false, false, false}, Variant{"adapters, f32", true, false, false},
              Variant{"adapters on bf16", true, true, false},
              Variant{"adapters on bf16, activation checkpointing", true, true, true}}) {
            manual_seed(tuning.seed);
            models::Llama model = models::Llama::from_pretrained(base);
            std::vector<Tensor> trained = model.parameters();
            Tuning variant_tuning = tuning;
            if (variant.with_adapters) {
                nn::LoraOptions options{.r = r, .lora_alpha = 2.0 * static_cast<double>(r)};
                options.target_modules = targets;
                if (variant.bf16_base) options.base_dtype = DType::bf16;
                nn::add_lora(model, options);
                trained = nn::lora_parameters(model);
            } else variant_tuning.lr = tuning.lr / 10;
            model.set_gradient_checkpointing(variant.checkpointing);
            const std::int64_t trained_count = parameter_count(trained);
            default_device().synchronize();
            default_device().reset_peak_memory();
            const auto begin = std::chrono::steady_clock::now();
            tune(model, std::move(trained), train_tokens, variant_tuning);
            const double memory = static_cast<double>(default_device().memory().peak) / 1e6;
            const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            const double loss = loss_of(model, test_tokens, tuning);
            char line[200];
            std::snprintf(line, sizeof line, "%-40s %10lld %8.1f MB %8.1f s %10.4f\n", variant.name,
                          static_cast<long long>(trained_count), memory, seconds, loss);
            table += line;
            adapter_memory = memory;
            if (!variant.with_adapters) full_memory = memory;
            if (!variant.checkpointing) continue;
            io::save_lora(model, adapters);
            std::printf("\n%s\n", written(model, tokenizer, "Recipe: ", 200).c_str());
            // Reloading the adapters and merging them into the weights gives the same model.
            models::Llama reloaded = models::Llama::from_pretrained(base);
            io::load_lora(reloaded, adapters);
            nn::merge_lora(reloaded);
            std::printf("\nreloaded and merged adapters: %.4f nats per token; the file has %.0f kB\n",
                        loss_of(reloaded, test_tokens, tuning),
                        static_cast<double>(std::filesystem::file_size(adapters / "adapter_model.safetensors")) / 1e3);
        }
        std::printf("\n%-40s %10s %11s %10s %10s\n%s", "", "trained", "memory", "time", "nats", table.c_str());
        std::printf("memory with adapters: %.3f of full fine-tuning\n", adapter_memory / full_memory);
        return 0;
    });
}
