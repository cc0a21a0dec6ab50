// Language models: tokens per second of training, and of text generation with a KV cache, compared with plain PyTorch.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>
#include <fmt/format.h>

#include "measure.hpp"
#include "peer_pytorch.hpp"
#include "report.hpp"

namespace declivity::bench {
namespace {

struct Net {
    std::string name;
    models::GPT2Config config;
    std::int64_t batch, length;  ///< of a training step
};

models::GPT2Config sizes(std::int64_t vocabulary, std::int64_t width, std::int64_t layers, std::int64_t heads) {
    return {.vocab_size = vocabulary,
            .n_positions = 1024,
            .n_embd = width,
            .n_layer = layers,
            .n_head = heads,
            .resid_pdrop = 0,
            .embd_pdrop = 0,
            .attn_pdrop = 0};
}

std::vector<Net> nets() {
    return {{"GPT 6 x 384", sizes(65, 384, 6, 6), 8, 256}, {"GPT 12 x 768", sizes(65, 768, 12, 12), 1, 256}};
}

std::string python_sizes(const models::GPT2Config& config) {
    return fmt::format("({}, {}, {}, {}, {})", config.vocab_size, config.n_positions, config.n_embd, config.n_layer,
                       config.n_head);
}

/// Reports the tokens per second of Declivity and, interleaved, of PyTorch if it is available.
void report_tokens(Report& report, const std::string& name, std::int64_t tokens, const Contender& ours,
                   const std::string& python, const std::vector<Tensor>& inputs) {
    std::vector<Contender> peers;
    if (report.with_peers() && has_pytorch()) peers.push_back(pytorch({.code = python, .inputs = inputs}).contender);
    const Comparison comparison = compare(ours, peers, 7);
    report.note(name, static_cast<double>(tokens) / comparison.ours.seconds, "tokens/s");
    if (peers.empty()) return;
    report.note(name + ", PyTorch", static_cast<double>(tokens) / comparison.peers[0].seconds, "tokens/s");
    report.note(name + ", ratio", comparison.ratios[0], "");
}

void run(Report& report) {
    report.begin("gpt");
    const Device device = report.device();
    const auto wait = [device] { device.synchronize(); };
    for (const Net& net : nets()) {
        models::GPT2 model(net.config);
        optim::AdamW optimizer(model.parameters(), {.lr = 1e-4});
        const Tensor tokens = randint(0, net.config.vocab_size, {net.batch, net.length}),
                     targets = randint(0, net.config.vocab_size, {net.batch, net.length});
        const std::string python = python_sizes(net.config);
        if (const std::string name = fmt::format("{} training, batch {} length {}", net.name, net.batch, net.length);
            report.is_selected(name)) {
            CapturedAction step([&](const std::vector<Tensor>&) {
                optimizer.zero_grad();
                const Tensor logits = model(tokens);
                cross_entropy(reshape(logits, {-1, net.config.vocab_size}), flatten(targets, 0)).backward();
                optimizer.step();
                return std::vector<Tensor>{};
            });
            report_tokens(report, name, net.batch * net.length, {"ours", [&](int) { step(); }, wait},
                          fmt::format("gpt.train({}, x[0], x[1])", python), {tokens, targets});
        }
        constexpr std::int64_t count = 128, prompt = 32;
        for (const std::int64_t batch : {1, 8}) {
            const std::string name = fmt::format("{} generation, batch {}", net.name, batch);
            if (!report.is_selected(name)) continue;
            const Tensor prompts = randint(0, net.config.vocab_size, {batch, prompt});
            const auto write = [&](int) {
                (void)models::generate(model, prompts, {.max_new_tokens = count}).tokens.view();
            };
            report_tokens(report, name, batch * count, {"ours", write, wait},
                          fmt::format("gpt.generate({}, x[0], {})", python, count), {prompts});
        }
    }
    report.end();
}

const Suite suite("gpt", "language models, training and generation, compared with PyTorch", run);

}  // namespace
}  // namespace declivity::bench
