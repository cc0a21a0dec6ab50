// Compares sampling of tokens and text metrics with other packages, on data from text_facts.py: declivity_text_facts
// FILE
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <declivity/text/generation.hpp>
#include <declivity/text/metrics.hpp>
#include <declivity/text/vocabulary.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace declivity::text;
using Json = nlohmann::json;

namespace {

int failures = 0;
std::map<std::string, int> fact_counts;

void check(bool condition, const Json& fact, const std::string& got) {
    ++fact_counts[fact.at("kind")];
    if (condition) return;
    if (++failures <= 10) std::printf("%s\n  got %s\n", fact.dump().substr(0, 600).c_str(), got.c_str());
}

bool is_close(double a, double b) { return std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b)); }

void check_logits(const Json& fact) {
    GenerationOptions options{.do_sample = true};
    const Json& of = fact.at("options");
    options.repetition_penalty = of.value("repetition_penalty", 1.0);
    options.no_repeat_ngram_size = of.value("no_repeat_ngram_size", std::int64_t{0});
    options.suppress_tokens = of.value("suppress_tokens", std::vector<std::int64_t>());
    options.temperature = of.value("temperature", 1.0);
    options.top_k = of.value("top_k", std::int64_t{0});
    options.top_p = of.value("top_p", 1.0);
    options.min_p = of.value("min_p", 0.0);
    options.typical_p = of.value("typical_p", 1.0);
    std::vector<float> logits = fact.at("logits");
    const std::vector<std::int64_t> tokens = fact.at("tokens");
    process_logits(logits, tokens, tokens.size(), options);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const Json& expected = fact.at("out")[i];
        const bool is_minus_infinity = logits[i] == -std::numeric_limits<float>::infinity();
        check(
            expected.is_null() ? is_minus_infinity : !is_minus_infinity && is_close(logits[i], expected.get<double>()),
            fact, fmt::format("{} at {}", logits[i], i));
    }
}

void check_beams(const Json& fact) {
    const Json& options = fact.at("options");
    const std::vector<std::vector<float>> table = fact.at("table");
    const std::vector<std::int64_t> prompt = fact.at("prompt");
    const auto got = generate(
        [&](std::span<const std::int64_t> tokens) { return table[static_cast<std::size_t>(tokens.back())]; }, prompt,
        {.max_new_tokens = options.at("max_new_tokens"),
         .eos_token_id = {1},
         .num_beams = options.at("num_beams"),
         .length_penalty = options.at("length_penalty"),
         .early_stopping = options.at("early_stopping"),
         .num_return_sequences = options.at("num_return_sequences")});
    const std::vector<std::vector<std::int64_t>> expected = fact.at("sequences");
    check(got.size() == expected.size(), fact, "another number");
    for (std::size_t i = 0; i < got.size(); ++i) {
        check(got[i].tokens == expected[i], fact, fmt::format("{} at {}", fmt::join(got[i].tokens, " "), i));
        if (!fact.at("scores").is_null())
            check(is_close(got[i].score, fact.at("scores")[i]), fact, std::to_string(got[i].score));
    }
}

void check_bleu(const Json& fact) {
    const std::map<std::string, BleuSmoothing> methods{{"exp", BleuSmoothing::exp},
                                                       {"none", BleuSmoothing::none},
                                                       {"floor", BleuSmoothing::floor},
                                                       {"add-k", BleuSmoothing::add_k}};
    const std::vector<std::string> lines = fact.at("hypotheses");
    std::vector<Tokens> hypotheses;
    std::vector<std::vector<Tokens>> references(lines.size());
    for (const std::string& line : lines) hypotheses.push_back(split_whitespace(line));
    for (const Json& stream : fact.at("references"))
        for (std::size_t i = 0; i < lines.size(); ++i)
            references[i].push_back(split_whitespace(stream[i].get<std::string>()));
    const Bleu got = corpus_bleu(hypotheses, references,
                                 {.max_order = fact.at("order"),
                                  .smoothing = methods.at(fact.at("method")),
                                  .effective_order = fact.at("effective")});
    bool right = is_close(got.score, fact.at("score")) && is_close(got.brevity_penalty, fact.at("bp")) &&
                 got.hypothesis_length == fact.at("lengths")[0] && got.reference_length == fact.at("lengths")[1];
    for (std::size_t i = 0; i < got.precisions.size(); ++i)
        right = right && is_close(got.precisions[i], fact.at("precisions")[i]);
    check(right, fact,
          fmt::format("{} of {}, {} {} {}", got.score, fmt::join(got.precisions, " "), got.brevity_penalty,
                      got.hypothesis_length, got.reference_length));
}

void check_rouge(const Json& fact) {
    const auto lines = [](const std::string& text) {
        std::vector<Tokens> out;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            if (end > begin) out.push_back(tokenize_rouge(std::string_view(text).substr(begin, end - begin)));
            begin = end + 1;
        }
        return out;
    };
    const std::string hypothesis = fact.at("hypothesis"), reference = fact.at("reference");
    const Tokens a = tokenize_rouge(hypothesis), b = tokenize_rouge(reference);
    for (const auto& [name, got] : {std::pair<std::string, Rouge>{"rouge1", rouge_n(a, b, 1)},
                                    {"rouge2", rouge_n(a, b, 2)},
                                    {"rougeL", rouge_l(a, b)},
                                    {"rougeLsum", rouge_lsum(lines(hypothesis), lines(reference))}}) {
        const Json& expected = fact.at("score").at(name);
        check(
            is_close(got.precision, expected[0]) && is_close(got.recall, expected[1]) && is_close(got.f1, expected[2]),
            fact, fmt::format("{}: {} {} {}", name, got.precision, got.recall, got.f1));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    std::ifstream in(argv[1]);
    for (const Json& fact : Json::parse(in)) {
        const std::string kind = fact.at("kind");
        if (kind == "logits") {
            check_logits(fact);
        } else if (kind == "beams") {
            check_beams(fact);
        } else if (kind == "bleu") {
            check_bleu(fact);
        } else if (kind == "rouge") {
            check_rouge(fact);
        } else if (kind == "13a") {
            const Tokens got = tokenize_13a(fact.at("text").get<std::string>());
            check(got == fact.at("tokens").get<Tokens>(), fact, fmt::format("{}", fmt::join(got, " ")));
        } else if (kind == "errors") {
            const std::vector<std::string> hypotheses = fact.at("hypotheses"), references = fact.at("references");
            const double wer = word_error_rate(hypotheses, references),
                         cer = character_error_rate(hypotheses, references);
            check(is_close(wer, fact.at("wer")) && is_close(cer, fact.at("cer")), fact, fmt::format("{} {}", wer, cer));
        }
    }
    for (const auto& [kind, count] : fact_counts) std::printf("%s: %d comparisons\n", kind.c_str(), count);
    std::printf("%d differ\n", failures);
    return failures == 0 ? 0 : 1;
}
