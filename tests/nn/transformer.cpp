// Multi-head attention compared with plain C++ in double, with PyTorch's masks and names; transformer layers compared
// with composed functions.
#include <declivity/nn/transformer.hpp>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/functions/random.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

std::string entries_of(const nn::Module& module) {
    std::string out;
    for (const auto& [name, tensor] : module.state_dict()) out += name + " " + tensor.shape().str() + "; ";
    return out;
}

std::map<std::string, Tensor> parameters_of(const nn::Module& module) {
    std::map<std::string, Tensor> out;
    for (const auto& [name, tensor] : module.state_dict()) out[name] = tensor;
    return out;
}

/// Replaces all initial values, including biases.
template <class M>
M randomized(M module) {
    std::uint64_t seed = 70;
    const NoGrad no_grad;
    for (const auto& [name, tensor] : module.named_parameters()) {
        Tensor to = tensor;
        to.copy_(random_tensor(tensor.shape(), ++seed, tensor.dtype(), -0.5, 0.5));
    }
    return module;
}

/// x (N, L, in) times rows [first, first + out) of weight (.., in), plus bias.
Values projected(const Values& x, std::int64_t rows, const Values& weight, const Values& bias, std::int64_t in,
                 std::int64_t out, std::int64_t first) {
    Values y;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t o = first; o < first + out; ++o) {
            double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)];
            for (std::int64_t i = 0; i < in; ++i)
                sum += x[static_cast<std::size_t>(r * in + i)] * weight[static_cast<std::size_t>(o * in + i)];
            y.push_back(sum);
        }
    return y;
}

struct Sizes {
    std::int64_t batch, queries, keys, width, heads, kdim, vdim;
};

/// `hidden(n, head, i, j)` is added to a score.
template <class Hidden>
std::pair<Values, Values> attended(const Sizes& s, const Values& q, const Values& k, const Values& v, Hidden hidden) {
    const std::int64_t head_width = s.width / s.heads;
    Values out(static_cast<std::size_t>(s.batch * s.queries * s.width)), weights;
    for (std::int64_t n = 0; n < s.batch; ++n)
        for (std::int64_t head = 0; head < s.heads; ++head)
            for (std::int64_t i = 0; i < s.queries; ++i) {
                Values scores;
                double largest = -1e300, total = 0;
                for (std::int64_t j = 0; j < s.keys; ++j) {
                    double score = 0;
                    for (std::int64_t d = head * head_width; d < (head + 1) * head_width; ++d)
                        score += q[static_cast<std::size_t>((n * s.queries + i) * s.width + d)] *
                                 k[static_cast<std::size_t>((n * s.keys + j) * s.width + d)];
                    scores.push_back(score / std::sqrt(static_cast<double>(head_width)) + hidden(n, head, i, j));
                    largest = std::max(largest, scores.back());
                }
                for (double& score : scores) total += score = std::exp(score - largest);
                for (std::int64_t j = 0; j < s.keys; ++j) {
                    const double weight = scores[static_cast<std::size_t>(j)] / total;
                    weights.push_back(weight);
                    for (std::int64_t d = head * head_width; d < (head + 1) * head_width; ++d)
                        out[static_cast<std::size_t>((n * s.queries + i) * s.width + d)] +=
                            weight * v[static_cast<std::size_t>((n * s.keys + j) * s.width + d)];
                }
            }
    return {out, weights};
}

Tensor functional(const std::map<std::string, Tensor>& p, const std::string& name, const Tensor& query,
                  const Tensor& memory, std::int64_t heads, bool causal) {
    const Tensor w = p.at(name + ".in_proj_weight"), b = p.at(name + ".in_proj_bias");
    const std::int64_t width = query.size(2);
    const auto part = [&](const Tensor& x, std::int64_t i) {
        const Tensor y = linear(x, slice(w, 0, i * width, (i + 1) * width), slice(b, 0, i * width, (i + 1) * width));
        return permute(reshape(y, {x.size(0), x.size(1), heads, width / heads}), {0, 2, 1, 3});
    };
    const Tensor y =
        scaled_dot_product_attention(part(query, 0), part(memory, 1), part(memory, 2), {.is_causal = causal});
    return linear(reshape(permute(y, {0, 2, 1, 3}), query.shape()), p.at(name + ".out_proj.weight"),
                  p.at(name + ".out_proj.bias"));
}

Tensor fed_forward(const std::map<std::string, Tensor>& p, const Tensor& x) {
    return linear(gelu(linear(x, p.at("linear1.weight"), p.at("linear1.bias"))), p.at("linear2.weight"),
                  p.at("linear2.bias"));
}

}  // namespace

TEST_CASE("multi-head attention: names are PyTorch's") {
    CHECK(entries_of(nn::MultiheadAttention(6, 2)) ==
          "in_proj_weight [18, 6]; in_proj_bias [18]; out_proj.weight [6, 6]; out_proj.bias [6]; ");
    CHECK(entries_of(nn::MultiheadAttention(6, 2, {.bias = false, .kdim = 5})) ==
          "q_proj_weight [6, 6]; k_proj_weight [6, 5]; v_proj_weight [6, 6]; out_proj.weight [6, 6]; ");
    CHECK(entries_of(nn::TransformerEncoder(4, 2, 1, {.dim_feedforward = 8}, true)) ==
          "layers.0.self_attn.in_proj_weight [12, 4]; layers.0.self_attn.in_proj_bias [12]; "
          "layers.0.self_attn.out_proj.weight [4, 4]; layers.0.self_attn.out_proj.bias [4]; "
          "layers.0.linear1.weight [8, 4]; layers.0.linear1.bias [8]; layers.0.linear2.weight [4, 8]; "
          "layers.0.linear2.bias [4]; layers.0.norm1.weight [4]; layers.0.norm1.bias [4]; layers.0.norm2.weight [4]; "
          "layers.0.norm2.bias [4]; norm.weight [4]; norm.bias [4]; ");
}

TEST_CASE("multi-head attention: values match plain C++ with every mask") {
    const Sizes s{2, 5, 7, 6, 2, 4, 3};
    enum class Kind { plain, causal, mask, head_masks, added, padding, both, mixed };
    for (const bool packed : {false, true})  // separate weights, and self-attention with packed ones
        for (const Kind kind : {Kind::plain, Kind::causal, Kind::mask, Kind::head_masks, Kind::added, Kind::padding,
                                Kind::both, Kind::mixed})
            for (const bool batch_first : {false, true}) {
                CAPTURE(packed);
                CAPTURE(static_cast<int>(kind));
                CAPTURE(batch_first);
                Sizes sizes = s;
                if (packed) sizes.keys = s.queries, sizes.kdim = sizes.vdim = s.width;
                nn::MultiheadAttentionOptions options{.batch_first = batch_first};
                if (!packed) options.kdim = sizes.kdim, options.vdim = sizes.vdim;
                nn::MultiheadAttention attention = randomized(nn::MultiheadAttention(s.width, s.heads, options));
                const Tensor q = random_tensor({s.batch, s.queries, s.width}, 1),
                             k = packed ? q : random_tensor({s.batch, sizes.keys, sizes.kdim}, 2),
                             v = packed ? q : random_tensor({s.batch, sizes.keys, sizes.vdim}, 3);
                const Tensor mask = kind == Kind::head_masks
                                        ? random_tensor({s.batch * s.heads, s.queries, sizes.keys}, 4)
                                        : random_tensor({s.queries, sizes.keys}, 4);
                const Tensor padding = random_tensor({s.batch, sizes.keys}, 5);
                nn::AttentionMasks masks;
                masks.is_causal = kind == Kind::causal;
                const bool masked = kind == Kind::mask || kind == Kind::head_masks || kind == Kind::both;
                if (masked) masks.attn_mask = mask > 0.3;
                if (kind == Kind::added || kind == Kind::mixed) masks.attn_mask = mask;
                if (kind == Kind::padding || kind == Kind::both || kind == Kind::mixed)
                    masks.key_padding_mask = padding > 0.4;
                const Values m = values(mask), padding_values = values(padding);
                auto p = parameters_of(attention);
                const auto part = [&](const Tensor& x, std::int64_t i, const char* name, std::int64_t in) {
                    const Values weight = values(packed ? p["in_proj_weight"] : p[name]);
                    Values bias = values(p["in_proj_bias"]);
                    if (!packed) bias = Values(bias.begin() + i * s.width, bias.begin() + (i + 1) * s.width);
                    return projected(values(x), x.size(0) * x.size(1), weight, bias, in, s.width,
                                     packed ? i * s.width : 0);
                };
                const auto [y, weights] = attended(
                    sizes, part(q, 0, "q_proj_weight", s.width), part(k, 1, "k_proj_weight", sizes.kdim),
                    part(v, 2, "v_proj_weight", sizes.vdim),
                    [&](std::int64_t n, std::int64_t head, std::int64_t i, std::int64_t j) {
                        const std::int64_t row = kind == Kind::head_masks ? (n * s.heads + head) * s.queries + i : i;
                        const double element = m[static_cast<std::size_t>(row * sizes.keys + j)];
                        double hidden = 0;
                        if (masked && element > 0.3) hidden = -1e4;
                        if (kind == Kind::added || kind == Kind::mixed) hidden += element;
                        if (masks.key_padding_mask.defined() &&
                            padding_values[static_cast<std::size_t>(n * sizes.keys + j)] > 0.4)
                            hidden = -1e4;
                        return kind == Kind::causal && j > i ? -1e4 : hidden;
                    });
                const Values expected = projected(y, s.batch * s.queries, values(p["out_proj.weight"]),
                                                  values(p["out_proj.bias"]), s.width, s.width, 0);
                const auto in_layout = [&](const Tensor& x) { return batch_first ? x : transpose(x, 0, 1); };
                const Tensor got = packed ? attention(in_layout(q), {}, {}, masks)
                                          : attention(in_layout(q), in_layout(k), in_layout(v), masks);
                CHECK(difference(in_layout(got), expected, {1e-5, 1e-5}) == "");
                CHECK(difference(attention.weights(in_layout(q), packed ? Tensor() : in_layout(k), masks), weights,
                                 {1e-5, 1e-5}) == "");
            }
}

TEST_CASE("multi-head attention: unbatched input, dropout only in training, and shape errors") {
    nn::MultiheadAttention attention = randomized(nn::MultiheadAttention(8, 4, {.dropout = 0.5, .batch_first = true}));
    const Tensor x = random_tensor({1, 6, 8}, 1), unbatched = select(x, 0, 0);
    attention.eval();
    CHECK(values(attention(unbatched)) == values(attention(x)));
    CHECK(values(attention(x)) == values(attention(x)));
    attention.train();
    CHECK(values(attention(x)) != values(attention(x)));
    CHECK_THROWS_AS(nn::MultiheadAttention(8, 3), ValueError);
    CHECK_THROWS_AS(nn::MultiheadAttention(8, 2, {.dropout = 2}), ValueError);
    CHECK_THROWS_AS((void)attention(x, unbatched), ShapeError);
    CHECK_THROWS_AS((void)attention(random_tensor({8}, 1)), ShapeError);
    CHECK_THROWS_AS((void)attention(x, {}, {}, {.attn_mask = zeros({5, 6})}), ShapeError);
    CHECK_THROWS_AS((void)attention(x, {}, {}, {.key_padding_mask = zeros({2, 6})}), ShapeError);
}

TEST_CASE("transformer layers: encoder and decoder, pre-norm and post-norm") {
    for (const bool norm_first : {false, true}) {
        CAPTURE(norm_first);
        const nn::TransformerLayerOptions options{.dim_feedforward = 10,
                                                  .dropout = 0.2,
                                                  .activation = [](Tensor x) { return gelu(std::move(x)); },
                                                  .layer_norm_eps = 1e-3,
                                                  .batch_first = true,
                                                  .norm_first = norm_first};
        const Tensor x = random_tensor({2, 5, 6}, 1), memory = random_tensor({2, 4, 6}, 2);
        const auto block = [&](const std::map<std::string, Tensor>& p, const char* norm, const Tensor& in,
                               const auto& part) {
            const auto normalised = [&](const Tensor& input) {
                return layer_norm(input, {6}, p.at(std::string(norm) + ".weight"), p.at(std::string(norm) + ".bias"),
                                  1e-3);
            };
            return norm_first ? in + part(normalised(in)) : normalised(in + part(in));
        };
        nn::TransformerEncoderLayer encoder = randomized(nn::TransformerEncoderLayer(6, 2, options));
        encoder.eval();
        const auto e = parameters_of(encoder);
        Tensor expected =
            block(e, "norm1", x, [&](const Tensor& in) { return functional(e, "self_attn", in, in, 2, true); });
        expected = block(e, "norm2", expected, [&](const Tensor& in) { return fed_forward(e, in); });
        CHECK(difference(encoder(x, {.is_causal = true}), values(expected), {1e-5, 1e-5}) == "");

        nn::TransformerDecoderLayer decoder = randomized(nn::TransformerDecoderLayer(6, 3, options));
        decoder.eval();
        const auto d = parameters_of(decoder);
        expected = block(d, "norm1", x, [&](const Tensor& in) { return functional(d, "self_attn", in, in, 3, true); });
        expected = block(d, "norm2", expected,
                         [&](const Tensor& in) { return functional(d, "multihead_attn", in, memory, 3, false); });
        expected = block(d, "norm3", expected, [&](const Tensor& in) { return fed_forward(d, in); });
        CHECK(difference(decoder(x, memory, {.is_causal = true}), values(expected), {1e-5, 1e-5}) == "");
        decoder.train();
        CHECK(values(decoder(x, memory)) != values(decoder(x, memory)));
    }
}

TEST_CASE("transformer: encoder and decoder learn to reverse sequences") {
    if (small_cases()) return;
    manual_seed(2);
    constexpr std::int64_t tokens = 8, length = 6, width = 16;
    nn::Embedding embedding(tokens, width);
    nn::TransformerEncoder encoder(width, 2, 1, {.dim_feedforward = 32, .dropout = 0, .batch_first = true});
    nn::TransformerDecoder decoder(width, 2, 1, {.dim_feedforward = 32, .dropout = 0, .batch_first = true}, true);
    nn::Linear head(width, tokens);
    std::vector<Tensor> all;
    for (const nn::Module* module : std::initializer_list<const nn::Module*>{&embedding, &encoder, &decoder, &head})
        for (const Tensor& parameter : module->parameters()) all.push_back(parameter);
    const Tensor positions = normal({length, width}).set_requires_grad();
    all.push_back(positions);
    optim::Adam optimizer(all, {.lr = 0.01});
    float loss = 0;
    for (int step = 0; step < 150; ++step) {
        const Tensor text = randint(0, tokens, {32, length}), reversed = flip(text, {1});
        const Tensor memory = encoder(embedding(text) + positions);
        // Each position gets the token before it.
        const Tensor before = concat({zeros({32, 1}, {DType::i64}), slice(reversed, 1, 0, length - 1)}, 1);
        const Tensor scores = head(decoder(embedding(before) + positions, memory, {.is_causal = true}));
        const Tensor missed = cross_entropy(reshape(scores, {-1, tokens}), flatten(reversed, 0));
        optimizer.zero_grad();
        missed.backward();
        optimizer.step();
        if (step == 149) loss = missed.item<float>();
    }
    CHECK(loss < 0.5);  // log(8) is 2.08
}

TEST_CASE("attention and decoder: ambiguous arguments are refused") {
    CHECK_THROWS_WITH_AS(nn::TransformerEncoderLayer(8, 2, {.activation = nullptr}),
                         "TransformerEncoderLayer: expected an activation, got an empty function", ValueError);
    nn::MultiheadAttention attention(8, 2);
    const Tensor x = ones({3, 2, 8});
    CHECK_THROWS_WITH_AS(
        attention(x, {}, {}, {.key_padding_mask = zeros({2, 3}, {DType::i64})}),
        "MultiheadAttention: expected key_padding_mask of bool, or an additive mask of a floating type, got i64 (in "
        "MultiheadAttention)",
        TypeError);
    CHECK_THROWS_AS(attention(x, {}, {}, {.attn_mask = zeros({3, 3}, {DType::i32})}), TypeError);
    CHECK_THROWS_WITH_AS(attention(ones({3, 2, 7})),
                         "MultiheadAttention: expected query of embed_dim 8, got [3, 2, 7] (in MultiheadAttention)",
                         ShapeError);
    CHECK_THROWS_AS(attention(x, ones({3, 1, 8})), ShapeError);
    nn::TransformerDecoder decoder(8, 2, 1);
    CHECK_THROWS_AS(decoder(x), ValueError);
    CHECK_THROWS_AS((void)decoder.attention_to_memory(x, Tensor()), ValueError);
}
