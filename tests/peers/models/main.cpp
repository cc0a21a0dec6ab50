// Loads the models saved by models.py and compares results, gradients and generated text; saves them again for
// models.py --check.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <declivity/declivity.hpp>
#include <fmt/format.h>

using namespace declivity;
namespace fs = std::filesystem;

namespace {

constexpr double kAllowed = 1e-4;

int failures = 0;

void compare(const std::string& what, const Tensor& got, const Tensor& expected) {
    if (!(got.shape() == expected.shape())) {
        fmt::print("FAILED: {}: {} instead of {}\n", what, got.shape().str(), expected.shape().str());
        ++failures;
        return;
    }
    const double scale = std::max(1.0, static_cast<double>(max(abs(expected)).item<float>()));
    const double error = static_cast<double>(max(abs(got - expected)).item<float>());
    if (error <= kAllowed * scale) return;
    fmt::print("FAILED: {}: off by {}, of {}\n", what, error, scale);
    ++failures;
}

struct Case {
    fs::path folder;
    std::string name;
    std::map<std::string, Tensor> cache = {};

    [[nodiscard]] Tensor at(const std::string& key) const {
        const auto found = cache.find(key);
        return found == cache.end() ? Tensor() : found->second;
    }
    [[nodiscard]] models::BERTInputs bert_inputs() const {
        return {.attention_mask = at("in.attention_mask"), .token_type_ids = at("in.token_type_ids")};
    }
};

/// The results of a call, the model after one step of gradient descent, and the saved model.
template <class Model>
void check(const Case& test_case, Model& model, const std::vector<std::pair<std::string, Tensor>>& outputs) {
    Tensor loss = zeros({});
    for (const auto& [key, tensor] : outputs) {
        compare(test_case.name + " " + key, tensor.detach(), test_case.at("out." + key));
        loss = loss + mean(square(tensor));
    }
    loss.backward();
    model.save_pretrained(test_case.folder / "saved", test_case.name.size() % 3 == 0 ? 20000 : 5'000'000'000);
    // The gradients are stored in the parameters' format.
    std::map<std::string, Tensor> gradients;
    for (const auto& [name, tensor] : model.named_parameters())
        gradients[name] = tensor.grad().defined() ? tensor.grad().clone() : zeros(tensor.shape());
    (void)model.load_weights(test_case.folder / "gradients");
    for (const auto& [name, tensor] : model.named_parameters())
        compare(test_case.name + " gradient of " + name, gradients.at(name), tensor.detach());
    (void)model.load_weights(test_case.folder);
}

template <class Model>
void check_causal(const Case& test_case) {
    Model model = Model::from_pretrained(test_case.folder);
    model.eval();
    check(test_case, model, {{"logits", model(test_case.at("in.input_ids"))}});
    const Tensor mask = test_case.at("generate.mask"), expected = test_case.at("generate.tokens"),
                 prompts = test_case.at("in.input_ids");
    const std::vector<std::int64_t> ends{test_case.name.starts_with("gpt2") ? 60 : 2};
    if (test_case.at("peft.logits").defined()) {
        const NoGrad no_grad;
        Model adapted = Model::from_pretrained(test_case.folder);
        adapted.eval();
        io::load_lora(adapted, test_case.folder / "peft");
        compare(test_case.name + " with adapters", adapted(prompts), test_case.at("peft.logits"));
        io::save_lora(adapted, test_case.folder / "peft_saved");
        nn::merge_lora(adapted);
        compare(test_case.name + " with adapters in its weights", adapted(prompts), test_case.at("peft.logits"));
    }
    for (const bool paged : {false, true}) {
        nn::KeyValueCacheOptions cache;
        if (paged) cache.page_size = 3;
        const models::Generated got = models::generate(model, prompts,
                                                       {.max_new_tokens = 20,
                                                        .lengths = sum(mask, {1}),
                                                        .padding = models::PromptPadding::left,
                                                        .eos_token_ids = ends,
                                                        .cache = cache});
        // In transformers, texts begin after their left padding.
        const std::vector<std::int64_t> ours = got.tokens.to_vector<std::int64_t>(),
                                        theirs = expected.to_vector<std::int64_t>();
        const std::vector<std::int64_t> filled = (13 - sum(mask, {1})).to_vector<std::int64_t>();
        const auto width = static_cast<std::size_t>(got.tokens.size(1)),
                   columns = static_cast<std::size_t>(expected.size(1));
        for (std::size_t row = 0; row < filled.size(); ++row)
            for (std::size_t column = static_cast<std::size_t>(filled[row]); column < columns; ++column)
                if (ours[row * width + column - static_cast<std::size_t>(filled[row])] !=
                    theirs[row * columns + column]) {
                    fmt::print("FAILED: {}: text {} differs at token {}\n", test_case.name, row, column);
                    ++failures;
                    break;
                }
    }
}

void check_case(const std::string& kind, const Case& test_case) {
    const Tensor ids = test_case.at("in.input_ids"), images = test_case.at("in.pixel_values");
    if (kind == "gpt2") return check_causal<models::GPT2>(test_case);
    if (kind == "llama") return check_causal<models::Llama>(test_case);
    if (kind == "bert") {
        auto model = models::BERT::from_pretrained(test_case.folder);
        model.eval();
        const auto [states, pooled] = model(ids, test_case.bert_inputs());
        return check(test_case, model, {{"last_hidden_state", states}, {"pooler_output", pooled}});
    }
    if (kind == "bert_masked") {
        auto model = models::BERTForMaskedLM::from_pretrained(test_case.folder);
        model.eval();
        return check(test_case, model, {{"logits", model(ids, test_case.bert_inputs())}});
    }
    if (kind == "bert_classes") {
        auto model = models::BERTForSequenceClassification::from_pretrained(test_case.folder);
        model.eval();
        return check(test_case, model, {{"logits", model(ids, test_case.bert_inputs())}});
    }
    if (kind == "vit") {
        auto model = models::ViT::from_pretrained(test_case.folder);
        model.eval();
        const auto [states, pooled] = model(images);
        return check(test_case, model, {{"last_hidden_state", states}, {"pooler_output", pooled}});
    }
    if (kind == "vit_classes") {
        auto model = models::ViTForImageClassification::from_pretrained(test_case.folder);
        model.eval();
        return check(test_case, model, {{"logits", model(images)}});
    }
    throw std::runtime_error("no such kind: " + kind);
}

}  // namespace

int main(int count, char** arguments) try {
    if (count != 2) return 2;
    const fs::path folder = arguments[1];
    std::ifstream cases(folder / "cases.txt");
    int case_count = 0;
    for (std::string kind, name; cases >> kind >> name; ++case_count) {
        Case test_case{folder / name, name};
        for (const auto& [key, tensor] : io::load(test_case.folder / "expected.safetensors"))
            test_case.cache[key] = tensor;
        try {
            check_case(kind, test_case);
        } catch (const std::exception& error) {
            fmt::print("FAILED: {}: {}\n", name, error.what());
            ++failures;
        }
    }
    fmt::print("{} models compared with transformers, {} differences\n", case_count, failures);
    return failures == 0 && case_count > 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "declivity_models: %s\n", error.what());
    return 1;
}
