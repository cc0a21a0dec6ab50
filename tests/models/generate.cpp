// Text generation with a KV cache: the same as without, for prompts of different lengths, paged, in reduced precision,
// captured or not; sampling, and end tokens.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/models/generate.hpp>
#include <declivity/models/gpt2.hpp>
#include <declivity/models/llama.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::models;
using namespace declivity::test;

namespace {

using Tokens = std::vector<std::int64_t>;

template <class Model>
Model randomized(Model model) {
    const NoGrad no_grad;
    std::uint64_t seed = 40;
    for (const auto& [name, tensor] : model.named_parameters()) {
        Tensor to = tensor;
        to.copy_(random_tensor(tensor.shape(), ++seed, tensor.dtype(), -0.6, 0.6));
    }
    return model;
}

GPT2 gpt2() { return randomized(GPT2({.vocab_size = 23, .n_positions = 40, .n_embd = 24, .n_layer = 2, .n_head = 3})); }
Llama llama() {
    return randomized(Llama({.vocab_size = 23,
                             .hidden_size = 24,
                             .intermediate_size = 32,
                             .num_hidden_layers = 2,
                             .num_attention_heads = 4,
                             .num_key_value_heads = 2,
                             .max_position_embeddings = 40,
                             .sliding_window = 6}));
}

Tokens written(CausalLM& model, const Tensor& prompts, GenerationOptions options) {
    if (options.max_new_tokens == 20) options.max_new_tokens = 12;
    return generate(model, prompts, options).tokens.to_vector<std::int64_t>();
}

Tensor prompts_of(std::int64_t texts, std::int64_t length) {
    Tokens tokens;
    for (std::int64_t i = 0; i < texts * length; ++i) tokens.push_back((i * i * 7 + 3 * i + 1) % 23);
    return Tensor::from(tokens, {texts, length});
}

}  // namespace

TEST_CASE("generate: with a cache as without, captured or not, paged or not") {
    GPT2 gpt = gpt2();
    Llama llama_model = llama();
    for (CausalLM* model : std::initializer_list<CausalLM*>{&gpt, &llama_model})
        for (const std::int64_t texts : {1, 3}) {
            const Tensor prompts = prompts_of(texts, 5);
            const Tokens expected = written(*model, prompts, {.use_cache = false});
            CHECK(expected.size() == static_cast<std::size_t>(texts * 17));
            CHECK(std::set<std::int64_t>(expected.begin(), expected.end()).size() > 4);
            CHECK(written(*model, prompts, {}) == expected);
            CHECK(written(*model, prompts, {.capture = false}) == expected);
            CHECK(written(*model, prompts, {.cache = {.page_size = 4}}) == expected);
            CHECK(written(*model, prompts, {.cache = {.page_size = 4, .pages = 5 * texts}}) == expected);
            CHECK_THROWS_AS((void)written(*model, prompts, {.cache = {.page_size = 4, .pages = 5 * texts - 1}}),
                            ValueError);
            CHECK(model->training());
        }
}

TEST_CASE("generate: several prompts of different lengths, each as if alone") {
    Llama model = llama();
    const Tensor prompts = prompts_of(3, 6), lengths = Tensor::from<std::int64_t>({6, 2, 4}, {3});
    Tokens all;
    for (std::int64_t text = 0; text < 3; ++text) {
        const std::int64_t length = lengths.to_vector<std::int64_t>()[static_cast<std::size_t>(text)];
        Tokens single = written(model, slice(slice(prompts, 0, text, text + 1), 1, 0, length), {});
        single.resize(18, 21);
        all.insert(all.end(), single.begin(), single.end());
    }
    CHECK(written(model, prompts, {.lengths = lengths, .pad_token_id = 21}) == all);
    CHECK(written(model, prompts, {.lengths = lengths, .pad_token_id = 21, .use_cache = false}) == all);
    // The same prompts, left-padded.
    Tokens rows(18, 9);
    const Tokens from = prompts.to_vector<std::int64_t>(), count = lengths.to_vector<std::int64_t>();
    for (std::size_t text = 0; text < 3; ++text)
        for (std::size_t t = 0; t < static_cast<std::size_t>(count[text]); ++t)
            rows[text * 6 + 6 - static_cast<std::size_t>(count[text]) + t] = from[text * 6 + t];
    CHECK(written(model, Tensor::from(rows, {3, 6}),
                  {.lengths = lengths, .padding = PromptPadding::left, .pad_token_id = 21}) == all);
}

TEST_CASE("generate: a text ends with an end token") {
    GPT2 model = gpt2();
    const Tensor prompts = prompts_of(2, 5);
    const Generated generated = generate(model, prompts, {.max_new_tokens = 12});
    CHECK(generated.lengths.to_vector<std::int64_t>() == Tokens{17, 17});
    const Tokens tokens = generated.tokens.to_vector<std::int64_t>();
    const std::int64_t end = tokens[5 + 3];  // text 0 has it at this position, or earlier
    for (const std::int64_t interval : {1, 5, 100}) {
        const Generated got =
            generate(model, prompts,
                     {.max_new_tokens = 12, .eos_token_ids = {22, end}, .pad_token_id = 19, .eos_interval = interval});
        const Tokens ended = got.tokens.to_vector<std::int64_t>(), lengths = got.lengths.to_vector<std::int64_t>();
        for (std::size_t text = 0; text < 2; ++text) {
            std::size_t length = 17;
            for (std::size_t t = 16; t >= 5; --t)
                if (tokens[text * 17 + t] == end || tokens[text * 17 + t] == 22) length = t + 1;
            CHECK(lengths[text] == static_cast<std::int64_t>(length));
            for (std::size_t t = 0; t < 17; ++t)
                CHECK(ended[text * 17 + t] == (t < length ? tokens[text * 17 + t] : 19));
        }
        CHECK(lengths[0] <= 9);
    }
}

TEST_CASE("generate: sampled tokens") {
    GPT2 model = gpt2();
    const Tensor prompts = prompts_of(2, 4);
    const Tokens best = written(model, prompts, {});
    CHECK(written(model, prompts, {.next = sampling({.top_k = 1})}) == best);
    CHECK(written(model, prompts, {.next = sampling({.top_p = 1e-6})}) == best);
    CHECK(written(model, prompts, {.next = sampling({.temperature = 1e-4})}) == best);
    const auto seeded = [&](std::uint64_t seed, bool record) {
        manual_seed(seed);
        return written(model, prompts, {.next = sampling({.temperature = 2}), .capture = record});
    };
    CHECK(seeded(1, true) == seeded(1, true));
    CHECK(seeded(1, true) == seeded(1, false));
    CHECK(seeded(1, true) != seeded(2, true));
    // A user-defined function that reads on the host.
    int calls = 0;
    const NextToken custom_sampling{[&](const Tensor& scores) {
        ++calls;
        (void)scores.to_vector<float>();
        return argmin(scores, -1);
    }};
    CHECK(written(model, prompts, {.next = custom_sampling}) != best);
    CHECK(calls == 12);
    CHECK_THROWS_AS((void)sampling({.temperature = 0}), ValueError);
    CHECK_THROWS_AS((void)sampling({.top_k = 0}), ValueError);
    CHECK_THROWS_AS((void)sampling({.top_p = 1.5}), ValueError);
}

TEST_CASE("sampling: frequency of each token") {
    manual_seed(5);
    // Probabilities 0.5, 0.3, 0.15, 0.05.
    const Tensor scores = broadcast_to(log(Tensor::from<float>({0.3F, 0.05F, 0.5F, 0.15F}, {1, 4})), {20000, 4});
    const auto shares = [&](const SamplingOptions& options) {
        std::vector<double> out(4);
        for (const std::int64_t token : sampling(options).choose(scores).to_vector<std::int64_t>())
            out[static_cast<std::size_t>(token)] += 1.0 / 20000;
        return out;
    };
    const auto check_close = [](const std::vector<double>& got, const std::vector<double>& expected) {
        for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(got[i] - expected[i]) < (expected[i] == 0 ? 1e-9 : 0.02));
    };
    check_close(shares({}), {0.3, 0.05, 0.5, 0.15});
    check_close(shares({.top_k = 2}), {0.375, 0, 0.625, 0});
    check_close(shares({.top_p = 0.81}), {0.3 / 0.95, 0, 0.5 / 0.95, 0.15 / 0.95});
    check_close(shares({.top_p = 0.79}), {0.375, 0, 0.625, 0});
    // Square roots of the odds.
    const double total = std::sqrt(0.3) + std::sqrt(0.05) + std::sqrt(0.5) + std::sqrt(0.15);
    check_close(shares({.temperature = 2}),
                {std::sqrt(0.3) / total, std::sqrt(0.05) / total, std::sqrt(0.5) / total, std::sqrt(0.15) / total});
}

TEST_CASE("sampling: with equal scores exactly k remain, the same as with GenerationOptions") {
    manual_seed(6);
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<std::vector<float>> rows{{1, 1, 1, 1, 1, 1},
                                               {1, 3, 0, 3, 3, 1},
                                               {-1, -2, -3, -4, -5, -6},
                                               {0, inf, -inf, inf, 2, 1},
                                               {-inf, 0, 0, -inf, 0, 0}};
    struct Case {
        SamplingOptions device;
        text::GenerationOptions host;
    };
    for (const Case& test_case :
         {Case{{.top_k = 2}, {.top_k = 2}}, Case{{.top_k = 4}, {.top_k = 4}}, Case{{.top_p = 0.4}, {.top_p = 0.4}},
          Case{{.temperature = 0.5, .top_k = 4, .top_p = 0.7}, {.temperature = 0.5, .top_k = 4, .top_p = 0.7}},
          Case{{.min_p = 0.3}, {.min_p = 0.3}}, Case{{.temperature = 1e-45}, {.temperature = 1e-45}}, Case{{}, {}}})
        for (const std::vector<float>& row : rows) {
            text::GenerationOptions options = test_case.host;
            options.do_sample = true;
            std::vector<float> left = row;
            text::process_logits(left, {}, 0, options);
            std::set<std::int64_t> expected, got;
            for (std::size_t i = 0; i < left.size(); ++i)
                // If one score is infinite, no other has a probability.
                if (left[i] > -inf && (left[i] == inf || *std::ranges::max_element(left) < inf))
                    expected.insert(static_cast<std::int64_t>(i));
            const Tensor scores = broadcast_to(Tensor::from(row, {1, 6}), {3000, 6});
            for (const std::int64_t token : sampling(test_case.device).choose(scores).to_vector<std::int64_t>())
                got.insert(token);
            if (test_case.device.temperature == 1 || test_case.device.temperature < 1e-3) CHECK(got == expected);
            else CHECK(std::ranges::includes(expected, got));
        }
}

TEST_CASE("generate: scores without any valid token are an error") {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    const Tensor scores = Tensor::from<float>({1, 2, 1, nan, 1, 2, nan, nan, nan, -inf, -inf, -inf}, {4, 3});
    CHECK(greedy().choose(scores).to_vector<std::int64_t>() == Tokens{1, -1, -1, -1});
    for (const SamplingOptions& options :
         {SamplingOptions{.temperature = 1e-4}, SamplingOptions{.top_k = 1}, SamplingOptions{.top_p = 0.1}})
        CHECK(sampling(options).choose(scores).to_vector<std::int64_t>() == Tokens{1, -1, -1, -1});
    CHECK_THROWS_AS((void)sampling({.temperature = inf}), ValueError);
    CHECK_THROWS_AS((void)sampling({.top_p = nan}), ValueError);
    CHECK_THROWS_AS((void)sampling({.min_p = 2}), ValueError);
    GPT2 model = gpt2();
    const Tensor prompts = prompts_of(2, 4);
    for (const auto& [name, tensor] : model.named_parameters())
        if (name == "transformer.ln_f.bias") {
            const NoGrad no_grad;
            Tensor(tensor).fill_(nan);
        }
    for (const GenerationOptions& options : {GenerationOptions{},
                                             {.next = greedy()},
                                             {.next = sampling()},
                                             {.do_sample = true},
                                             {.num_beams = 2},
                                             {.use_cache = false}})
        CHECK_THROWS_AS((void)generate(model, prompts, options), ValueError);
    CHECK(model.training());
}

TEST_CASE("generate: the same options and seed give the same as text::generate") {
    GPT2 gpt = gpt2();
    Llama llama_model = llama();
    const std::vector<Tokens> lists{{1, 2, 3}, {4}, {7, 7, 7, 7, 9}, {12, 0}};
    const auto decode = [](std::span<const std::int64_t> tokens) {
        std::string out;
        for (const std::int64_t token : tokens) out += static_cast<char>('a' + token);
        return out;
    };
    for (CausalLM* model : std::initializer_list<CausalLM*>{&gpt, &llama_model}) {
        const text::NextLogitsOfTensor logits = [&](const Tensor& tokens) { return (*model)(tokens); };
        for (text::GenerationOptions options :
             {text::GenerationOptions{},
              {.do_sample = true, .temperature = 1.5, .top_k = 7, .top_p = 0.95, .min_p = 0.01, .seed = 4},
              {.do_sample = true, .typical_p = 0.9, .num_return_sequences = 2, .seed = 5},
              {.repetition_penalty = 1.3, .presence_penalty = 0.2, .frequency_penalty = 0.3},
              {.min_new_tokens = 6, .no_repeat_ngram_size = 2, .suppress_tokens = {3, 4}, .eos_token_id = {0, 5, 6}},
              {.eos_token_id = {2}, .num_beams = 3, .num_return_sequences = 2},
              {.do_sample = true, .num_beams = 2, .seed = 6},
              {.stop_sequences = {{3, 4}, {5}}, .stop_strings = {"c", "pq"}, .decode = decode}}) {
            options.max_new_tokens = 12;
            model->eval();
            const auto expected = text::generate(logits, lists, options);
            model->train();
            for (const bool record : {true, false})
                for (const std::optional<std::int64_t> size_of_page :
                     {std::optional<std::int64_t>(), std::optional<std::int64_t>(3)})
                    for (const bool use_cache : {true, false}) {
                        options.capture = record;
                        options.cache.page_size = size_of_page;
                        options.use_cache = use_cache;
                        const auto got = generate(*model, lists, options);
                        REQUIRE(got.size() == expected.size());
                        for (std::size_t i = 0; i < got.size(); ++i) {
                            CHECK(got[i].tokens == expected[i].tokens);
                            CHECK(got[i].score == doctest::Approx(expected[i].score).epsilon(1e-4));
                            CHECK(got[i].reason == expected[i].reason);
                            CHECK(got[i].text == expected[i].text);
                        }
                        CHECK(model->training());
                    }
            // Rows of a tensor, with and without left padding.
            const Tensor lengths = Tensor::from<std::int64_t>({3, 1, 5, 2}, {4});
            Tokens right(20, 22), left(20, 22);
            for (std::size_t row = 0; row < 4; ++row)
                for (std::size_t t = 0; t < lists[row].size(); ++t) {
                    right[row * 5 + t] = lists[row][t];
                    left[row * 5 + 5 - lists[row].size() + t] = lists[row][t];
                }
            options.lengths = lengths;
            options.pad_token_id = -100;
            for (const PromptPadding padding : {PromptPadding::right, PromptPadding::left}) {
                options.padding = padding;
                const Generated rows =
                    generate(*model, Tensor::from(padding == PromptPadding::right ? right : left, {4, 5}), options);
                const std::int64_t sequences_per_prompt = options.num_return_sequences;
                CHECK(rows.tokens.shape() == Shape{4 * sequences_per_prompt, 17});
                const Tokens tokens = rows.tokens.to_vector<std::int64_t>(),
                             counts = rows.lengths.to_vector<std::int64_t>();
                for (std::size_t i = 0; i < expected.size(); ++i) {
                    Tokens row = lists[i / static_cast<std::size_t>(sequences_per_prompt)];
                    row.insert(row.end(), expected[i].tokens.begin(), expected[i].tokens.end());
                    CHECK(counts[i] == static_cast<std::int64_t>(row.size()));
                    row.resize(17, -100);
                    CHECK(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(i * 17),
                                 tokens.begin() + static_cast<std::ptrdiff_t>(i * 17 + 17)) == row);
                }
            }
        }
    }
}

TEST_CASE("generate: one function for each kind of model") {
    struct Last : nn::Layer {
        Tensor forward(Tensor tokens) override { return one_hot((tokens + 1) % 7, 7).to(DType::f32); }
    };
    Last model;
    CHECK(models::generate(model, Tokens{2}, {.max_new_tokens = 3})[0].tokens == Tokens{3, 4, 5});
    CHECK(models::generate([&](const Tensor& tokens) { return model(tokens); }, Tokens{5}, {.max_new_tokens = 2})[0]
              .tokens == Tokens{6, 0});
}

TEST_CASE("generate: a callback per token, and shape errors") {
    GPT2 model = gpt2();
    const Tokens prompt{1, 2, 3};
    const auto complete = generate(model, prompt, {.max_new_tokens = 8})[0];
    Tokens streamed;
    const auto stopped =
        generate(model, prompt, {.max_new_tokens = 8, .on_token = [&](const GeneratedToken& generated_token) {
                                     streamed.push_back(generated_token.token);
                                     return streamed.size() < 5;
                                 }})[0];
    CHECK(streamed == Tokens(complete.tokens.begin(), complete.tokens.begin() + 5));
    CHECK(stopped.tokens == streamed);
    CHECK(stopped.reason == FinishReason::callback);
    struct CallbackError : std::exception {};
    CHECK_THROWS_AS(
        (void)generate(model, prompt, {.on_token = [](const GeneratedToken&) -> bool { throw CallbackError(); }}),
        CallbackError);
    CHECK(model.training());
    for (const GenerationOptions& options :
         std::initializer_list<GenerationOptions>{{.max_new_tokens = 38},
                                                  {.max_new_tokens = -1},
                                                  {.max_new_tokens = 3, .min_new_tokens = 4},
                                                  {.temperature = -1},
                                                  {.top_p = 1.5},
                                                  {.eos_token_id = {23}},
                                                  {.eos_token_ids = {-1}},
                                                  {.stop_strings = {"a"}},
                                                  {.eos_interval = 0}}) {
        CHECK_THROWS_AS((void)generate(model, prompt, options), ValueError);
        CHECK_THROWS_AS((void)generate(model, prompts_of(1, 3), options), ValueError);
    }
    CHECK_THROWS_AS((void)generate(model, Tokens{23}), ValueError);
    CHECK_THROWS_AS((void)generate(model, std::vector<Tokens>{{1}, {}}), ValueError);
    CHECK_THROWS_AS((void)generate(model, prompts_of(1, 3), {.do_sample = true, .next = greedy()}), ValueError);
    CHECK_THROWS_AS((void)generate(model, prompt, {.next = greedy()}), ValueError);
    CHECK_THROWS_AS((void)generate(model, prompt, {.lengths = ones({1})}), ValueError);
    CHECK(generate(model, prompt, {.max_new_tokens = 0})[0].tokens.empty());
    CHECK(generate(model, std::vector<Tokens>{}).empty());
    // A module fixed in evaluation mode remains in it.
    nn::Module& part = *model.children()[0].second;
    part.eval();
    (void)generate(model, prompts_of(1, 3), {.max_new_tokens = 2});
    CHECK(model.training());
    CHECK(!part.training());
    CHECK(!part.children()[0].second->training());
}

TEST_CASE("KV cache: beam reordering") {
    Llama model = llama();
    model.eval();
    const NoGrad no_grad;
    const Tensor text = prompts_of(3, 9), head = slice(text, 1, 0, 6), tail = slice(text, 1, 6, 9);
    const std::vector<std::int64_t> from{2, 0, 2};
    const Tensor index = Tensor::from(from, {3});
    const Tensor expected = slice(model(concat({index_select(head, 0, index), tail}, 1)), 1, 6, 9);
    for (const nn::KeyValueCacheOptions& options :
         {nn::KeyValueCacheOptions{}, {.page_size = 4}, {.page_size = 2, .pages = 20}}) {
        nn::KeyValueCache cache = model.make_cache(3, 9, options);
        if (options.pages)
            for (std::int64_t sample = 0; sample < 3; ++sample) cache.reserve(sample, 9);
        (void)model(head, {.cache = cache}).view();
        cache.reorder(from, options.pages ? std::nullopt : std::optional<std::int64_t>(6));
        CHECK(difference(model(tail, {.cache = cache}), values(expected), {1e-4, 1e-4}) == "");
        CHECK_THROWS_AS(cache.reorder({0, 1}), ValueError);
        CHECK_THROWS_AS(cache.reorder({0, 1, 3}), ValueError);
    }
    CHECK_THROWS_AS(nn::KeyValueCache().reorder({}), ValueError);
}

TEST_CASE("KV cache: calls with several tokens, types, and shape errors") {
    Llama model = llama();
    model.eval();
    const NoGrad no_grad;
    const Tensor text = prompts_of(2, 11);
    const Tensor expected = model(text);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        nn::KeyValueCache cache = model.make_cache(2, 11, {.dtype = dtype});
        std::vector<Tensor> parts;
        for (const auto& [from, to] : {std::pair{0, 4}, std::pair{4, 5}, std::pair{5, 8}, std::pair{8, 11}})
            parts.push_back(model(slice(text, 1, from, to), {.cache = cache}));
        const double allowed = dtype == DType::f32 ? 1e-4 : dtype == DType::f16 ? 0.02 : 0.2;
        CHECK(difference(concat(parts, 1), values(expected), {allowed, allowed}) == "");
        CHECK(cache.lengths().to_vector<std::int64_t>() == Tokens{11, 11});
        CHECK_THROWS_AS((void)model(slice(text, 1, 0, 1), {.cache = cache}), ValueError);
        cache.reset();
        CHECK(difference(model(slice(text, 1, 0, 3), {.cache = cache}), values(slice(expected, 1, 0, 3)),
                         {1e-4, 1e-4}) == "");
        CHECK(cache.bytes() == 2U * 2 * 2 * 2 * 11 * 6 * size_of(dtype));
    }
    nn::KeyValueCache paged = model.make_cache(2, 11, {.page_size = 4, .pages = 5});
    CHECK(paged.free_pages() == 5);
    paged.reserve(0, 9);
    CHECK(paged.free_pages() == 2);
    CHECK_THROWS_AS(paged.reserve(1, 9), ValueError);
    paged.release(0);
    paged.reserve(1, 11);
    CHECK(paged.free_pages() == 2);
    CHECK_THROWS_AS(paged.reserve(2, 1), ValueError);
    CHECK_THROWS_AS(model.make_cache(2, 11).reserve(0, 3), ValueError);
    CHECK_THROWS_AS((void)model.make_cache(0, 11), ValueError);
    CHECK_THROWS_AS((void)nn::KeyValueCache().lengths(), ValueError);
    CHECK_THROWS_AS((void)generate(model, text, {.max_new_tokens = 30}), ValueError);
    CHECK_THROWS_AS((void)generate(model, zeros({2, 3})), TypeError);
    CHECK_THROWS_AS((void)generate(model, full({1, 3}, 10000, {DType::i64}), {.max_new_tokens = 2}), ValueError);
    CHECK_THROWS_AS((void)model.make_cache(2, 10000), ValueError);
    nn::KeyValueCache cache = model.make_cache(2, 11);
    CHECK_THROWS_AS((void)model(slice(text, 0, 0, 1), {.cache = cache}), ShapeError);
    CHECK_THROWS_AS(cache.set_lengths(ones({2})), TypeError);
    CHECK_THROWS_AS(paged.reserve(0, 12), ValueError);
    CHECK_THROWS_AS(paged.reserve(0, -1), ValueError);
    const Tensor step = zeros({2, 2, 1, 6});
    CHECK_THROWS_AS((void)cache.attend(0, zeros({2, 4, 1, 6}), step, step), ShapeError);  // before advance()
}
