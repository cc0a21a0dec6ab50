// Semantic search with sentence embeddings of a pretrained BERT (N. Reimers, I. Gurevych, Sentence-BERT, 2019): ranks
// the lines of a text by their similarity to a query.
//
//     ./embed --model all-MiniLM-L6-v2 --text tinyshakespeare.txt --question "Who is afraid of the dead king?"
#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "common.hpp"

using namespace samples;

namespace {

constexpr std::int64_t
    kMaxTokens = 256,
    kMultiple = 16;  // max tokens of a sentence; number of distinct batch lengths, small to compile few kernels

class SentenceEncoder {
  public:
    explicit SentenceEncoder(const std::string& folder)
        : tokenizer_(text::Tokenizer::from_file(folder + "/tokenizer.json")),
          model_(models::BERT::from_pretrained(folder)) {
        tokenizer_.set_truncation(text::Truncation{.max_length = kMaxTokens});
        tokenizer_.set_padding({});
    }

    /// Returns one unit-length embedding per sentence, (N, hidden_size).
    Tensor operator()(const std::vector<std::string>& sentences, std::int64_t batch) {
        const NoGrad no_grad;
        // Sentences are batched by similar length.
        std::vector<text::Encoding> encodings;
        for (const std::string& sentence : sentences) encodings.push_back(tokenizer_.encode(sentence));
        std::vector<std::int64_t> order(sentences.size());
        std::iota(order.begin(), order.end(), 0);
        const auto length = [&](std::int64_t i) { return encodings[static_cast<std::size_t>(i)].size(); };
        std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return length(a) > length(b); });
        std::vector<Tensor> parts;
        for (std::size_t first = 0; first < order.size(); first += static_cast<std::size_t>(batch)) {
            const std::size_t last = std::min(order.size(), first + static_cast<std::size_t>(batch));
            const auto rows = static_cast<std::int64_t>(last - first);
            const std::int64_t width =
                (static_cast<std::int64_t>(length(order[first])) + kMultiple - 1) / kMultiple * kMultiple;
            std::vector<std::int64_t> ids(static_cast<std::size_t>(rows * width)), mask(ids.size());
            for (std::size_t i = first; i < last; ++i) {
                const auto& sentence_ids = encodings[static_cast<std::size_t>(order[i])].ids;
                const std::size_t at = (i - first) * static_cast<std::size_t>(width);
                std::ranges::copy(sentence_ids, ids.begin() + static_cast<std::ptrdiff_t>(at));
                std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(at), sentence_ids.size(), 1);
            }
            const Tensor mask_tensor = Tensor::from(mask, {rows, width});
            const Tensor states =
                model_(Tensor::from(ids, {rows, width}), {.attention_mask = mask_tensor}).last_hidden_state;
            const Tensor weights = unsqueeze(mask_tensor.to(states.dtype()), 2);
            parts.push_back(normalize(sum(states * weights, {1}) / sum(weights, {1})));
        }
        // Restores the original order of the sentences.
        std::vector<std::int64_t> position(order.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            position[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
        return index_select(concat(parts, 0), 0, Tensor::from(position, {static_cast<std::int64_t>(position.size())}));
    }

  private:
    text::Tokenizer tokenizer_;
    models::BERT model_;
};

/// The distinct lines of a text with at least 20 letters.
std::vector<std::string> sentences_of(const std::string& path, std::int64_t limit) {
    std::vector<std::string> all;
    std::set<std::string> seen_lines;
    text::lines_of({path}).for_each([&](const std::string& line) {
        if (line.size() < 20 || (limit > 0 && static_cast<std::int64_t>(all.size()) >= limit)) return;
        if (seen_lines.insert(line).second) all.push_back(line);
    });
    if (all.empty()) throw ValueError("embed: expected a text with lines of at least 20 letters, got none in " + path);
    return all;
}

/// Cosine similarities of the sentences as an image: darker is more similar.
io::Image8 picture(const std::vector<std::string>& sentences, const std::vector<float>& similarities) {
    constexpr int cell = 24, text_width = 380, edge = 10;
    const auto count = static_cast<int>(sentences.size());
    io::Canvas canvas(text_width + cell * count + 2 * edge, cell * count + 2 * edge, {255, 255, 255});
    for (int i = 0; i < count; ++i) {
        canvas.text(edge, edge + i * cell + 7, sentences[static_cast<std::size_t>(i)].substr(0, 60), {40, 40, 40});
        for (int j = 0; j < count; ++j) {
            const float similarity = std::clamp(similarities[static_cast<std::size_t>(i * count + j)], 0.0F, 1.0F);
            const auto light = static_cast<std::uint8_t>(255 - 225 * similarity);
            canvas.fill_rect(text_width + j * cell, edge + i * cell, cell - 1, cell - 1, {light, light, 255});
        }
    }
    return canvas.image();
}

}  // namespace

int main(int argc, char** argv) {
    std::string model, text_file, question = "Who shall be king?", device, plot, save;
    std::int64_t top = 5, limit = 0, batch = 32;
    CLI::App app("Semantic search in a text with a pretrained sentence encoder.");
    app.add_option("--model", model, "folder of a BERT model with config.json, model.safetensors and tokenizer.json")
        ->required();
    app.add_option("--text", text_file, "text file whose lines are searched")->required();
    app.add_option("--question", question, "search query")->capture_default_str();
    app.add_option("--top", top, "number of lines to show")->capture_default_str();
    app.add_option("--limit", limit, "use only the first lines, this many");
    app.add_option("--batch", batch, "batch size in sentences")->capture_default_str();
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--plot", plot, "PNG file for the similarities of the lines shown");
    app.add_option("--save", save, "file for all embeddings (safetensors)");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        SentenceEncoder encoder(model);
        const std::vector<std::string> sentences = sentences_of(text_file, limit);
        (void)encoder({sentences.begin(), sentences.begin() + 1}, batch)
            .to_vector<float>();  // warm-up: compiles the kernels
        const auto start = std::chrono::steady_clock::now();
        const Tensor vectors = encoder(sentences, batch);
        vectors.device().synchronize();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::printf("%zu sentences, %.1f per second\n", sentences.size(),
                    static_cast<double>(sentences.size()) / seconds);

        const Tensor query = encoder({question}, 1);
        const auto count = std::min(top, static_cast<std::int64_t>(sentences.size()));
        const auto [scores, indices] = topk(squeeze(matmul(vectors, transpose(query, 0, 1)), 1), count, 0);
        const std::vector<float> score = scores.to_vector<float>();
        const std::vector<std::int64_t> index = indices.to_vector<std::int64_t>();
        std::printf("\n%s\n", question.c_str());
        std::vector<std::string> shown{question};
        for (std::size_t i = 0; i < index.size(); ++i) {
            shown.push_back(sentences[static_cast<std::size_t>(index[i])]);
            std::printf("  %.3f  %s\n", static_cast<double>(score[i]), shown.back().c_str());
        }
        if (!plot.empty()) {
            const Tensor all = concat({query, index_select(vectors, 0, indices)}, 0);
            io::write_png(plot, picture(shown, matmul(all, transpose(all, 0, 1)).to_vector<float>()));
        }
        if (!save.empty()) io::save(save, {{"vectors", vectors}});
        return 0;
    });
}
