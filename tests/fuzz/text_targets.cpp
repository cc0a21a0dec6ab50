// Tokenizers, patterns, vocabularies and text.
#include <filesystem>

#include <declivity/text/corpus.hpp>
#include <declivity/text/ngram.hpp>
#include <declivity/text/sequence_dataset.hpp>
#include <declivity/text/tokenizer.hpp>
#include <declivity/text/vocabulary.hpp>

#include "tests/support/temp_folder.hpp"
#include "target.hpp"
#include "text/regex.hpp"
#include "text/unicode.hpp"

namespace declivity::fuzz {
namespace {

namespace fs = std::filesystem;
using test::get_file;
using test::TempFolder;

constexpr std::size_t kLongestText = 200;

/// An input of two parts, separated by a zero byte.
std::pair<std::string_view, std::string_view> parts_of(Input input) {
    const std::string_view all = text_of(input);
    const std::size_t zero = all.find('\0');
    if (zero == std::string_view::npos) return {all, "a <unk> caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87  12\n\xff"};
    return {all.substr(0, zero), all.substr(zero + 1, kLongestText)};
}

Bytes concatenated(std::string_view first, std::string_view second) {
    Bytes out = bytes_of(first);
    out.push_back(0);
    out.insert(out.end(), second.begin(), second.end());
    return out;
}

std::vector<Bytes> tokenizer_seeds() {
    const std::string_view text = "the <unk> caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87, don't\n 12";
    return {
        concatenated(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"<unk>":3,"<0xC3>":4},"merges":["a b"],)"
                     R"("unk_token":"<unk>","byte_fallback":true,"dropout":0.1},"pre_tokenizer":{"type":"ByteLevel"},)"
                     R"("decoder":{"type":"ByteLevel"},"post_processor":{"type":"ByteLevel","trim_offsets":true}})",
                     text),
        concatenated(
            R"({"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],["a",-1.5],)"
            R"(["th",-2],["▁",-3],["<0xC3>",-9]]},"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},)"
            R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "},{"type":"Prepend","prepend":"▁"}]},)"
            R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"},)"
            R"("truncation":{"max_length":6,"stride":2},"padding":{"strategy":{"Fixed":8},"pad_id":0},)"
            R"("added_tokens":[{"id":5,"content":"<s>","special":true,"lstrip":true}],)"
            R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
            R"({"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}}],)"
            R"("special_tokens":{"<s>":{"id":"<s>","ids":[5],"tokens":["<s>"]}}}})",
            text),
        concatenated(R"({"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"the":1,"##e":2,"caf":3}},)"
                     R"("normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},)"
                     R"("decoder":{"type":"WordPiece"},"post_processor":{"type":"BertProcessing","sep":["[UNK]",0],)"
                     R"("cls":["the",1]}})",
                     text),
        concatenated(R"({"model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"the":1}},"pre_tokenizer":)"
                     R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+|\\p{N}"},)"
                     R"("behavior":"MergedWithNext","invert":false},{"type":"Digits","individual_digits":true},)"
                     R"({"type":"Punctuation"},{"type":"FixedLength","length":3}]},"decoder":{"type":"Sequence",)"
                     R"("decoders":[{"type":"Replace","pattern":{"String":"u"},"content":"x"},{"type":"Fuse"},)"
                     R"({"type":"Strip","content":" ","start":1,"stop":1}]}})",
                     text)};
}

bool run_tokenizer(Input input) {
    const auto parts = parts_of(input);
    const std::string_view json = parts.first, text = parts.second;
    return attempt("t.json", [&] {
        const text::Tokenizer tokenizer = text::Tokenizer::from_json(json, "t.json");
        // A saved file must load, and save as the same bytes.
        const std::string saved = tokenizer.to_json();
        try {
            require(text::Tokenizer::from_json(saved, "saved.json").to_json() == saved, "a tokenizer changes");
        } catch (const FormatError& error) {
            throw std::logic_error(std::string("what is saved is not read: ") + error.what());
        }
        const text::Encoding encoding = tokenizer.encode(text);
        for (const text::Offsets& span : encoding.offsets)
            require(span.begin <= span.end && span.end <= text.size(), "offsets outside of the text");
        (void)tokenizer.encode(text, "b");
        (void)tokenizer.ids(text);
        require(text::is_valid(tokenizer.decode(encoding.ids)), "a decoded text is not UTF-8");
    });
}

std::vector<Bytes> regex_seeds() {
    std::vector<Bytes> out;
    for (const char* pattern :
         {R"('s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
          R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})", R"([[a-z]&&[^aeiou]]+|\bx\B|\w{2,}+)",
          R"((?<n>a\g<n>?b)|x\Ky|\uFF00)", R"((a|b)*?c(?>d+)(?<!x)y\1)"})
        out.push_back(concatenated(pattern, "it's abc 123 caf\xc3\xa9 \xe4\xb8\xad aabb  x"));
    return out;
}

bool run_regex(Input input) {
    const auto parts = parts_of(input);
    const std::string_view pattern = parts.first;
    const std::string text = text::to_valid(parts.second);
    return attempt("", [&] {
        std::size_t last = 0, count = 0;
        text::Regex(pattern).for_each(text, [&](text::Range match) {
            require(last <= match.begin && match.begin <= match.end && match.end <= text.size(), "matches overlap");
            require(text::is_valid(std::string_view(text).substr(match.begin, match.end - match.begin)),
                    "a match splits a character");
            require(++count <= 2 * text.size() + 2, "matching does not end");
            last = match.end;
        });
    });
}

std::vector<Bytes> vocabulary_seeds() {
    return {bytes_of("{\"unk_token\": \"u\",\n\"tokens\": [\"u\",\"a\"],\n\"counts\": [0,3]}\n"),
            bytes_of(R"({"tokens": [], "counts": []})")};
}

bool run_vocabulary(Input input) {
    const InputFile file(input);
    return attempt(file.path(), [&] { (void)text::Vocabulary::load(file.path()).size(); });
}

std::vector<Bytes> ngram_seeds() {
    const TempFolder folder;
    text::NgramModel model(5, {.order = 3});
    model.train(std::vector<std::int64_t>{0, 1, 2, 3, 1, 2, 4});
    model.save(folder / "f");
    return {get_file(folder / "f")};
}

bool run_ngram(Input input) {
    const InputFile file(input);
    return attempt(file.path(), [&] { (void)text::NgramModel::load(file.path()); });
}

std::vector<Bytes> token_seeds() {
    const TempFolder folder;
    std::vector<std::int64_t> tokens(40);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int64_t>(i * 3 % 17);
    text::write_tokens(folder / "f", tokens);
    return {get_file(folder / "f")};
}

bool run_tokens(Input input) {
    const InputFile file(input);
    return attempt(file.path(), [&] {
        const text::WindowDataset windows(fs::path(file.path()), {.length = 4});
        for (std::int64_t i = 0; i < std::min<std::int64_t>(windows.size(), 20); ++i) (void)windows.example(i);
    });
}

std::vector<Bytes> corpus_seeds() { return {bytes_of("one\r\ntwo\n\nthree"), bytes_of("caf\xc3\xa9\n")}; }

bool run_corpus(Input input) {
    const InputFile file(input);
    std::size_t size = 0;
    text::lines_of({file.path()}).for_each([&](const std::string& line) { size += line.size() + 1; });
    require(size <= input.size() + 1, "lines of more bytes than the file");
    (void)text::words(text_of(input));
    (void)text::characters(text_of(input));
    (void)text::split_whitespace(text_of(input));
    return true;
}

}  // namespace

std::vector<Target> text_targets() {
    return {{"tokenizer", tokenizer_seeds, run_tokenizer, 4000},
            {"regex", regex_seeds, run_regex, 2000},
            {"vocabulary", vocabulary_seeds, run_vocabulary},
            {"ngram", ngram_seeds, run_ngram},
            {"tokens", token_seeds, run_tokens},
            {"corpus", corpus_seeds, run_corpus}};
}

}  // namespace declivity::fuzz
