// Compares tokenizers with the Python package tokenizers, on data from tokenizer_facts.py.
//
//     declivity_tokenizers FOLDER [NAME...]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <declivity/text/tokenizer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace declivity::text;
using Json = nlohmann::json;

namespace {

Json read(const std::filesystem::path& path) {
    std::ifstream in(path);
    return Json::parse(in);
}

int failures = 0;
int shown = 0;

void fail(const std::string& name, const Json& texts, const std::string& what) {
    ++failures;
    if (++shown <= 12)
        std::printf("%s %s: %s\n", name.c_str(), texts.dump().substr(0, 200).c_str(), what.substr(0, 500).c_str());
}

/// The same facts as the script's. Its offsets count characters.
Json facts(const Encoding& of, const std::vector<std::string>& texts) {
    Json offsets = Json::array();
    for (std::size_t i = 0; i < of.size(); ++i) {
        Offsets span = of.offsets[i];
        if (of.sequence_ids[i] >= 0) span = in_characters(texts[static_cast<std::size_t>(of.sequence_ids[i])], span);
        offsets.push_back({span.begin, span.end});
    }
    Json overflowing = Json::array();
    for (const Encoding& encoding : of.overflowing) overflowing.push_back(facts(encoding, texts));
    return {{"ids", of.ids},
            {"tokens", of.tokens},
            {"offsets", offsets},
            {"type_ids", of.type_ids},
            {"attention_mask", of.attention_mask},
            {"special_tokens_mask", of.special_tokens_mask},
            {"word_ids", of.word_ids},
            {"sequence_ids", of.sequence_ids},
            {"overflowing", overflowing}};
}

/// Removes peculiarities of the package: the overflow of pairs has its own nested overflow lists, with types and texts
/// that differ from the template; padding counts as a part of the first text if no post-processor numbers them.
Json normalized(Json of, bool inside = false) {
    for (std::size_t i = 0; i < of.at("ids").size(); ++i)
        if (of.at("attention_mask")[i] == 0) of["sequence_ids"][i] = -1;
    if (inside) of["overflowing"] = of["sequence_ids"] = of["type_ids"] = Json::array();
    for (Json& json : of["overflowing"]) json = normalized(json, true);
    return of;
}

/// Describes where two values differ.
std::string difference(const Json& got, const Json& expected) {
    if (got.is_structured() && got.type() == expected.type() && got.size() == expected.size()) {
        for (const auto& [key, value] : expected.items()) {
            const Json& our_value = got.is_array() ? got.at(std::stoul(key)) : got.at(key);
            if (our_value != value) return fmt::format("{}/{}", key, difference(our_value, value));
        }
    }
    return fmt::format(": {}, wanted {}", got.dump().substr(0, 200), expected.dump().substr(0, 200));
}

void compare(const std::string& name, const Json& call, const Json& ours, const Json& theirs) {
    const Json got = normalized(ours), expected = normalized(theirs);
    if (got != expected)
        fail(name, call, fmt::format("{} of {}", difference(got, expected), expected.at("tokens").dump()));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const std::filesystem::path folder = argv[1];
    const std::set<std::string> only(argv + 2, argv + argc);
    const Json index = read(folder / "index.json");
    std::printf("compared with tokenizers %s\n", index.at("version").get<std::string>().c_str());
    for (const std::string name : index.at("names")) {
        if (!only.empty() && !only.contains(name)) continue;
        const int before = failures;
        shown = 0;
        const Json all = read(folder / (name + ".facts.json"));
        Tokenizer tokenizer = Tokenizer::from_file(folder / (name + ".json"));
        // A saved file loads as the same tokenizer.
        tokenizer = Tokenizer::from_json(tokenizer.to_json());
        if (tokenizer.vocab_size() != all.at("vocab_size"))
            fail(name, nullptr,
                 fmt::format("{} tokens, wanted {}", tokenizer.vocab_size(), all.at("vocab_size").dump()));
        for (const Json& call : all.at("calls")) {
            const std::string text = call.at("text");
            const Encoding encoding = tokenizer.encode(text);
            compare(name, text, facts(encoding, {text}), call.at("encoding"));
            if (tokenizer.encode(text, {.add_special_tokens = false}).ids != call.at("plain"))
                fail(name, text, "plain ids");
            if (tokenizer.ids(text) != encoding.ids) fail(name, text, "ids()");
            const std::vector<std::int64_t> ids = call.at("encoding").at("ids");
            for (const bool skip : {true, false}) {
                const std::string expected = call.at(skip ? "decoded" : "decoded_all"),
                                  got = tokenizer.decode(ids, skip);
                if (got != expected)
                    fail(name, text, fmt::format("decoded {}\n  wanted {}", Json(got).dump(), Json(expected).dump()));
            }
            if (call.contains("pair")) {
                const std::string pair = call.at("pair");
                compare(name, {text, pair}, facts(tokenizer.encode(text, pair), {text, pair}),
                        call.at("pair_encoding"));
            }
        }
        for (const Json& batch : all.at("batches")) {
            Tokenizer other = tokenizer;
            if (const Json& options = batch.at("truncation"); !options.is_null())
                other.set_truncation(
                    Truncation{.max_length = options.at("max_length"),
                               .stride = options.at("stride"),
                               .direction = options.at("direction") == "left" ? Side::left : Side::right});
            if (const Json& options = batch.at("padding"); !options.is_null()) {
                Padding padding{.direction = options.at("direction") == "left" ? Side::left : Side::right,
                                .pad_id = options.at("pad_id"),
                                .pad_type_id = options.at("pad_type_id"),
                                .pad_token = options.at("pad_token")};
                if (!options.at("length").is_null()) padding.length = options.at("length").get<std::int64_t>();
                if (!options.at("pad_to_multiple_of").is_null())
                    padding.pad_to_multiple_of = options.at("pad_to_multiple_of").get<std::int64_t>();
                other.set_padding(padding);
            }
            // Settings are saved as well.
            other = Tokenizer::from_json(other.to_json());
            const Json& inputs = batch.at("batch");
            const bool pairs = inputs[0].is_array();
            std::vector<Encoding> encodings;
            if (pairs) encodings = other.encode_batch(inputs.get<std::vector<std::pair<std::string, std::string>>>());
            else encodings = other.encode_batch(inputs.get<std::vector<std::string>>());
            for (std::size_t i = 0; i < encodings.size(); ++i)
                compare(name, {inputs[i], batch.at("truncation"), batch.at("padding")},
                        facts(encodings[i],
                              pairs ? inputs[i].get<std::vector<std::string>>() : std::vector<std::string>{inputs[i]}),
                        batch.at("encodings")[i]);
        }
        std::printf("%-20s %zu texts, %d differ\n", name.c_str(), all.at("calls").size(), failures - before);
    }
    return failures == 0 ? 0 : 1;
}
