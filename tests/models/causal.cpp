// GPT-2 and Llama compared with plain C++ in double; parameter names; a training step.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/models/gpt2.hpp>
#include <declivity/models/llama.hpp>
#include <declivity/nn/lora.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/temp_folder.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // of tokens
using Weights = std::map<std::string, Row>;

/// Replaces the initial values by larger ones, so that omissions show.
template <class Model>
Weights randomized(Model& model) {
    const NoGrad no_grad;
    Weights out;
    std::uint64_t seed = 100;
    for (const auto& [name, tensor] : model.state_dict()) {
        Tensor to = tensor;
        to.copy_(random_tensor(tensor.shape(), ++seed, tensor.dtype(), -0.6, 0.7));
    }
    for (const auto& [name, tensor] : model.state_dict()) out[name] = values(tensor);
    return out;
}

Row linear_row(const Row& x, const Row& weight, const Row* bias) {
    Row y(weight.size() / x.size());
    for (std::size_t o = 0; o < y.size(); ++o) {
        y[o] = bias != nullptr ? (*bias)[o] : 0;
        for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    }
    return y;
}

struct Reference {
    const Weights& weights;
    std::int64_t heads, kv_heads;
    std::int64_t window = 1 << 20;
    std::function<void(Row& head, std::size_t position)> rotate = [](Row&, std::size_t) {};

    [[nodiscard]] const Row* find(const std::string& name) const {
        const auto found = weights.find(name);
        return found == weights.end() ? nullptr : &found->second;
    }
    [[nodiscard]] Row linear(const std::string& name, const Row& x) const {
        return linear_row(x, weights.at(name + ".weight"), find(name + ".bias"));
    }
    [[nodiscard]] Row norm(const std::string& name, const Row& x, double eps, bool centred) const {
        double mean = 0, squares = 0;
        for (const double v : x) mean += v / static_cast<double>(x.size());
        if (!centred) mean = 0;
        for (const double v : x) squares += (v - mean) * (v - mean) / static_cast<double>(x.size());
        Row y;
        for (std::size_t i = 0; i < x.size(); ++i)
            y.push_back((x[i] - mean) / std::sqrt(squares + eps) * weights.at(name + ".weight")[i] +
                        (centred ? weights.at(name + ".bias")[i] : 0));
        return y;
    }
    /// Rows of queries, keys and values with concatenated heads.
    [[nodiscard]] Rows attended(Rows q, Rows k, const Rows& v) const {
        const std::size_t width = q[0].size() / static_cast<std::size_t>(heads);
        const auto part = [&](const Row& row, std::size_t head) {
            return Row(row.begin() + static_cast<std::ptrdiff_t>(head * width),
                       row.begin() + static_cast<std::ptrdiff_t>((head + 1) * width));
        };
        Rows out;
        for (std::size_t i = 0; i < q.size(); ++i) {
            Row y;
            for (std::size_t head = 0; head < static_cast<std::size_t>(heads); ++head) {
                const std::size_t kv_head = head / static_cast<std::size_t>(heads / kv_heads);
                Row query = part(q[i], head), sum(width), scores;
                rotate(query, i);
                double total = 0;
                const std::size_t from =
                    i + 1 > static_cast<std::size_t>(window) ? i + 1 - static_cast<std::size_t>(window) : 0;
                for (std::size_t j = from; j <= i; ++j) {
                    Row key = part(k[j], kv_head);
                    rotate(key, j);
                    double score = 0;
                    for (std::size_t d = 0; d < width; ++d) score += query[d] * key[d];
                    const double weight = std::exp(score / std::sqrt(static_cast<double>(width)));
                    total += weight;
                    for (std::size_t d = 0; d < width; ++d) sum[d] += weight * part(v[j], kv_head)[d];
                }
                for (const double value : sum) y.push_back(value / total);
            }
            out.push_back(y);
        }
        return out;
    }
};

Row plus(Row a, const Row& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}

double gelu_new(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

Row table_row(const Row& table, std::int64_t row, std::size_t width) {
    const auto from = table.begin() + row * static_cast<std::int64_t>(width);
    return {from, from + static_cast<std::ptrdiff_t>(width)};
}

Row gpt2_reference(const Weights& weights, const std::vector<std::int64_t>& tokens, std::int64_t layers,
                   std::size_t width, std::int64_t heads) {
    const Reference reference{weights, heads, heads};
    Rows x;
    for (std::size_t t = 0; t < tokens.size(); ++t)
        x.push_back(plus(table_row(weights.at("transformer.wte.weight"), tokens[t], width),
                         table_row(weights.at("transformer.wpe.weight"), static_cast<std::int64_t>(t), width)));
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const std::string name = "transformer.h." + std::to_string(layer);
        Rows q, k, v;
        for (const Row& row : x) {
            const Row all = reference.linear(name + ".attn.c_attn", reference.norm(name + ".ln_1", row, 1e-5, true));
            for (Rows* to : {&q, &k, &v}) to->push_back(table_row(all, to == &q ? 0 : to == &k ? 1 : 2, width));
        }
        const Rows y = reference.attended(q, k, v);
        for (std::size_t t = 0; t < x.size(); ++t) {
            x[t] = plus(x[t], reference.linear(name + ".attn.c_proj", y[t]));
            Row inner = reference.linear(name + ".mlp.c_fc", reference.norm(name + ".ln_2", x[t], 1e-5, true));
            for (double& value : inner) value = gelu_new(value);
            x[t] = plus(x[t], reference.linear(name + ".mlp.c_proj", inner));
        }
    }
    Row out;
    for (const Row& row : x)
        for (const double value : reference.linear("lm_head", reference.norm("transformer.ln_f", row, 1e-5, true)))
            out.push_back(value);
    return out;
}

Row llama_reference(const Weights& weights, const std::vector<std::int64_t>& tokens,
                    const models::LlamaConfig& config) {
    Reference reference{weights, config.num_attention_heads, config.kv_heads()};
    reference.window = config.sliding_window.value_or(1 << 20);
    reference.rotate = [&](Row& head, std::size_t position) {
        const std::size_t half = head.size() / 2;
        const Row before = head;
        for (std::size_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(position) / config.rope_scaling.factor *
                                 std::pow(config.rope_theta, -static_cast<double>(i) / static_cast<double>(half));
            head[i] = before[i] * std::cos(angle) - before[i + half] * std::sin(angle);
            head[i + half] = before[i + half] * std::cos(angle) + before[i] * std::sin(angle);
        }
    };
    const auto width = static_cast<std::size_t>(config.hidden_size);
    Rows x;
    for (const std::int64_t token : tokens)
        x.push_back(table_row(weights.at("model.embed_tokens.weight"), token, width));
    for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
        const std::string name = "model.layers." + std::to_string(layer);
        Rows q, k, v;
        for (const Row& row : x) {
            const Row in = reference.norm(name + ".input_layernorm", row, config.rms_norm_eps, false);
            q.push_back(reference.linear(name + ".self_attn.q_proj", in));
            k.push_back(reference.linear(name + ".self_attn.k_proj", in));
            v.push_back(reference.linear(name + ".self_attn.v_proj", in));
        }
        const Rows y = reference.attended(q, k, v);
        for (std::size_t t = 0; t < x.size(); ++t) {
            x[t] = plus(x[t], reference.linear(name + ".self_attn.o_proj", y[t]));
            const Row in = reference.norm(name + ".post_attention_layernorm", x[t], config.rms_norm_eps, false);
            Row gate = reference.linear(name + ".mlp.gate_proj", in);
            const Row up_projection = reference.linear(name + ".mlp.up_proj", in);
            for (std::size_t i = 0; i < gate.size(); ++i)
                gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up_projection[i];
            x[t] = plus(x[t], reference.linear(name + ".mlp.down_proj", gate));
        }
    }
    Row out;
    for (const Row& row : x)
        for (const double value :
             reference.linear("lm_head", reference.norm("model.norm", row, config.rms_norm_eps, false)))
            out.push_back(value);
    return out;
}

const std::vector<std::int64_t> kTokens{3, 0, 7, 7, 10, 2, 5};

models::GPT2Config small_gpt2() {
    return {.vocab_size = 11, .n_positions = 12, .n_embd = 12, .n_layer = 2, .n_head = 3};
}
models::LlamaConfig small_llama() {
    return {.vocab_size = 11,
            .hidden_size = 12,
            .intermediate_size = 17,
            .num_hidden_layers = 2,
            .num_attention_heads = 4,
            .num_key_value_heads = 2,
            .head_dim = 6,
            .max_position_embeddings = 16,
            .rope_theta = 50,
            .rope_scaling = {.rope_type = "linear", .factor = 1.5},
            .sliding_window = 4};
}

}  // namespace

TEST_CASE("GPT-2: logits match plain C++ in each type") {
    const std::vector<std::int64_t> other{1, 1, 4, 9, 0, 6, 8};
    std::vector<std::int64_t> both = kTokens;
    both.insert(both.end(), other.begin(), other.end());
    for (const DType dtype : floats()) {
        models::GPT2 model(small_gpt2(), {.dtype = dtype});
        model.eval();
        const Weights weights = randomized(model);
        Row expected = gpt2_reference(weights, kTokens, 2, 12, 3);
        const Row second = gpt2_reference(weights, other, 2, 12, 3);
        expected.insert(expected.end(), second.begin(), second.end());
        CHECK(difference(model(Tensor::from(both, {2, 7})), expected, tolerance(dtype, 2000, 10)) == "");
    }
}

TEST_CASE("Llama: logits match plain C++ in each type, with grouped queries, a window and scaled positions") {
    for (const DType dtype : floats()) {
        models::LlamaConfig config = small_llama();
        config.attention_bias = config.mlp_bias = dtype == DType::f32;
        models::Llama model(config, {.dtype = dtype});
        model.eval();
        const Weights weights = randomized(model);
        CHECK(difference(model(Tensor::from(kTokens, {1, 7})), llama_reference(weights, kTokens, config),
                         tolerance(dtype, 2000, 10)) == "");
    }
}

TEST_CASE("causal models: padded rows, explicit positions, and shape errors") {
    models::GPT2 model(small_gpt2());
    model.eval();
    (void)randomized(model);
    const Tensor row = Tensor::from<std::int64_t>({3, 0, 7}, {1, 3}),
                 filled = Tensor::from<std::int64_t>({9, 9, 3, 0, 7}, {1, 5});
    const Tensor mask = Tensor::from<std::int64_t>({0, 0, 1, 1, 1}, {1, 5}),
                 positions = Tensor::from<std::int64_t>({0, 0, 0, 1, 2}, {1, 5});
    const Tensor expected = model(row),
                 got = slice(model(filled, {.attention_mask = mask, .position_ids = positions}), 1, 2, 5);
    CHECK(difference(got, values(expected), {1e-5, 1e-5}) == "");
    CHECK_THROWS_AS((void)model(zeros({2, 3})), TypeError);
    CHECK_THROWS_AS((void)model(zeros({3}, {DType::i64})), ShapeError);
    CHECK_THROWS_AS((void)model(zeros({1, 13}, {DType::i64})), ShapeError);
    CHECK_THROWS_AS((void)model(row, {.attention_mask = mask}), ShapeError);
    CHECK_THROWS_AS((void)model(row, {.cache = model.make_cache(1, 5), .attention_mask = zeros({1, 3})}), Unsupported);
    CHECK_THROWS_AS(models::GPT2(models::GPT2Config{.n_embd = 10, .n_head = 3}), ValueError);
}

TEST_CASE("causal models: names, tied heads, and a save and load round trip") {
    models::GPT2 model(small_gpt2());
    std::vector<std::string> names;
    for (const auto& [name, tensor] : model.state_dict()) names.push_back(name);
    CHECK(std::ranges::count(names, "lm_head.weight") == 1);
    CHECK(std::ranges::count(names, "transformer.h.1.attn.c_attn.weight") == 1);
    CHECK(std::ranges::count(names, "transformer.ln_f.bias") == 1);
    CHECK(model.parameters().size() == 2 + 2 * 12 + 2);  // the head is tied to the token embedding
    (void)randomized(model);
    const TempFolder folder;
    model.save_pretrained(folder / "m", 2000);
    models::GPT2 other = models::GPT2::from_pretrained(folder / "m");
    model.eval(), other.eval();
    const Tensor tokens = Tensor::from(kTokens, {1, 7});
    CHECK(values(other(tokens)) == values(model(tokens)));
    models::GPT2 model_bf16 = models::GPT2::from_pretrained(folder / "m", {.dtype = DType::bf16});
    CHECK(model_bf16.parameters()[0].dtype() == DType::bf16);

    models::GPT2 larger(
        models::GPT2Config{.vocab_size = 12, .n_positions = 12, .n_embd = 12, .n_layer = 2, .n_head = 3});
    CHECK_THROWS_AS((void)larger.load_weights(folder / "m"), ShapeError);
    models::GPT2 deeper(
        models::GPT2Config{.vocab_size = 11, .n_positions = 12, .n_embd = 12, .n_layer = 3, .n_head = 3});
    CHECK_THROWS_AS((void)deeper.load_weights(folder / "m"), ValueError);
    const LoadedState found = deeper.load_weights(folder / "m", false);
    CHECK(found.missing.size() == 12);
    CHECK(found.unexpected.empty());
}

TEST_CASE("causal models: training reduces the loss through all layers") {
    manual_seed(3);
    models::Llama model(small_llama());
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});
    const Tensor text = Tensor::from(kTokens, {1, 7}), before = slice(text, 1, 0, 6), next = slice(text, 1, 1, 7);
    double first = 0, last = 0;
    for (int step = 0; step < 30; ++step) {
        const Tensor loss = cross_entropy(reshape(model(before), {6, 11}), reshape(next, {6}));
        optimizer.zero_grad();
        loss.backward();
        for (const Tensor& parameter : model.parameters()) CHECK(parameter.grad().defined());
        optimizer.step();
        (step == 0 ? first : last) = values(loss)[0];
    }
    CHECK(last < 0.3 * first);
}

TEST_CASE("causal models: activation checkpointing gives the same gradients and stores less") {
    const Tensor text = Tensor::from(kTokens, {1, 7});
    const auto gradients_of = [&](models::CausalLM& model, bool checkpointing) {
        model.set_gradient_checkpointing(checkpointing);
        manual_seed(4);
        const Tensor loss = cross_entropy(flatten(model(slice(text, 1, 0, 6)), 0, 1), flatten(slice(text, 1, 1, 7), 0));
        for (Tensor parameter : model.parameters()) parameter.zero_grad();
        loss.backward();
        std::vector<double> all;
        for (const Tensor& parameter : model.parameters())
            for (const double value : values(parameter.grad())) all.push_back(value);
        return all;
    };
    manual_seed(3);
    models::Llama llama(small_llama());
    models::GPT2 gpt2(
        {.vocab_size = 11, .n_positions = 9, .n_embd = 12, .n_layer = 3, .n_head = 3, .resid_pdrop = 0.3});
    for (models::CausalLM* model : std::initializer_list<models::CausalLM*>{&llama, &gpt2})
        CHECK(gradients_of(*model, true) == gradients_of(*model, false));

    models::Llama checkpointed_model({.vocab_size = 11,
                                      .hidden_size = 64,
                                      .intermediate_size = 256,
                                      .num_hidden_layers = 6,
                                      .num_attention_heads = 2,
                                      .max_position_embeddings = 256});
    const Tensor long_text = randint(0, 11, {8, 200});
    const auto peak_of = [&](bool checkpointed) {
        checkpointed_model.set_gradient_checkpointing(checkpointed);
        test::device().synchronize();
        test::device().reset_peak_memory();
        const std::uint64_t before = test::device().memory().in_use;
        sum(checkpointed_model(long_text)).backward();
        test::device().synchronize();
        for (Tensor parameter : checkpointed_model.parameters()) parameter.zero_grad();
        return static_cast<double>(test::device().memory().peak - before);
    };
    (void)peak_of(false);
    const double unchecked_peak = peak_of(false), checkpointed = peak_of(true);
    CHECK_MESSAGE(checkpointed < 0.5 * unchecked_peak, checkpointed, " of ", unchecked_peak);
}

TEST_CASE("causal models: files of a different model are refused") {
    const test::TempFolder folder;
    models::LlamaConfig config = small_llama();
    config.model_type = "gemma";
    CHECK_THROWS_WITH_AS(config.check(), "LlamaConfig: expected model_type llama, mistral or qwen2, got 'gemma'",
                         ValueError);
    config = small_llama();
    config.qkv_bias = config.attention_bias = config.mlp_bias = false;
    config.max_window_layers = 0;
    config.sliding_window = std::nullopt;
    const auto saves = [&](const char* type, auto change) {
        models::LlamaConfig changed = config;
        changed.model_type = type;
        changed.sliding_window = std::nullopt;
        change(changed);
        try {
            changed.save(folder.path() / "config.json");
        } catch (const ValueError& error) {
            CHECK(std::string(error.what()).starts_with("LlamaConfig::save: expected "));
            return false;
        }
        return true;
    };
    CHECK(saves("llama", [](auto&) {}));
    CHECK(saves("llama", [](auto& changed) { changed.attention_bias = changed.mlp_bias = true; }));
    CHECK(saves("mistral", [](auto& changed) { changed.sliding_window = 4; }));
    CHECK(saves("qwen2", [](auto& changed) {
        changed.sliding_window = 4, changed.max_window_layers = 1, changed.qkv_bias = true;
    }));
    CHECK_FALSE(saves("llama", [](auto& changed) { changed.sliding_window = 4; }));
    CHECK_FALSE(saves("llama", [](auto& changed) { changed.qkv_bias = true; }));
    CHECK_FALSE(saves("mistral", [](auto& changed) { changed.max_window_layers = 1; }));
    CHECK_FALSE(saves("mistral", [](auto& changed) { changed.attention_bias = true; }));
    CHECK_FALSE(saves("qwen2", [](auto&) {}));

    models::Llama model(config);
    (void)nn::add_lora(model, {.r = 2, .target_modules = {"q_proj"}});
    CHECK_THROWS_AS(model.save_pretrained(folder.path()), ValueError);
    nn::merge_lora(model);
    model.save_pretrained(folder.path());
}
