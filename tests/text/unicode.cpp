// Unicode: normal forms, categories and case, by examples of the standard and by properties of all characters.
#include "text/unicode.hpp"

#include <doctest/doctest.h>

#include "text/normalized_text.hpp"

using namespace declivity::text;

namespace {

std::string in_form(std::string_view text, NormalForm form) {
    std::string out;
    for (const Change& change : normalize(text, form)) append(out, change.c);
    return out;
}

}  // namespace

TEST_CASE("unicode: normal forms") {
    const auto all = [](const char* text, const char* nfc, const char* nfd, const char* nfkc, const char* nfkd) {
        CHECK(in_form(text, NormalForm::nfc) == nfc);
        CHECK(in_form(text, NormalForm::nfd) == nfd);
        CHECK(in_form(text, NormalForm::nfkc) == nfkc);
        CHECK(in_form(text, NormalForm::nfkd) == nfkd);
    };
    // UAX #15, figures 3 to 6.
    all("\u212B", "\u00C5", "A\u030A", "\u00C5", "A\u030A");
    all("\u1E69", "\u1E69", "s\u0323\u0307", "\u1E69", "s\u0323\u0307");
    all("\u1E0B\u0323", "\u1E0D\u0307", "d\u0323\u0307", "\u1E0D\u0307", "d\u0323\u0307");
    all("q\u0307\u0323", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307");
    all("\uFB01", "\uFB01", "\uFB01", "fi", "fi");
    all("2\u2075", "2\u2075", "2\u2075", "25", "25");
    all("\u1E9B\u0323", "\u1E9B\u0323", "\u017F\u0323\u0307", "\u1E69", "s\u0323\u0307");
    all("\uAC00\u11A8", "\uAC01", "\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8");
    all("\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C");  // composition exclusion
    all("a\u0315\u0300\u05AE\u0062", "\u00E0\u05AE\u0315b", "a\u05AE\u0300\u0315b", "\u00E0\u05AE\u0315b",
        "a\u05AE\u0300\u0315b");
    // A mark of the same class is between.
    all("o\u0312\u0301", "o\u0312\u0301", "o\u0312\u0301", "o\u0312\u0301", "o\u0312\u0301");
    all("plain text", "plain text", "plain text", "plain text", "plain text");
}

TEST_CASE("unicode: normal forms of all characters are stable") {
    int changed = 0;
    for (char32_t c = 1; c < 0x30000; ++c) {
        if (c >= 0xD800 && c < 0xE000) continue;
        const std::string text = utf8(c), d = in_form(text, NormalForm::nfd), kd = in_form(text, NormalForm::nfkd);
        if (d == text && kd == text) continue;
        ++changed;
        CHECK(in_form(d, NormalForm::nfd) == d);
        CHECK(in_form(kd, NormalForm::nfkd) == kd);
        const std::string decomposed = in_form(text, NormalForm::nfc);
        CHECK(in_form(decomposed, NormalForm::nfc) == decomposed);
        CHECK(in_form(decomposed, NormalForm::nfd) == d);
        CHECK(in_form(d, NormalForm::nfc) == decomposed);
    }
    CHECK(changed > 15000);  // including 11172 Hangul syllables
}

TEST_CASE("unicode: normalised characters keep their original offsets") {
    const std::string text = "xe\u0301\uFB01";  // bytes 0, 1, 2-3, 4-6
    NormalizedText nfc(text, 10);
    nfc.transform(normalize(text, NormalForm::nfkc));
    CHECK(nfc.str() == "x\u00E9fi");
    CHECK(nfc.original({0, 1}) == Offsets{10, 11});
    CHECK(nfc.original({1, 3}) == Offsets{11, 12});  // the start of the first of both, as in the package
    CHECK(nfc.original({3, 4}) == Offsets{14, 17});
    CHECK(nfc.original({4, 5}) == Offsets{14, 17});
    nfc.prepend("__");
    CHECK(nfc.original({0, 2}) == Offsets{10, 11});
    nfc.replace(Regex("f|_+"), "ab");
    CHECK(nfc.str() == "abx\u00E9abi");
    CHECK(nfc.original({5, 7}) == Offsets{14, 17});
    CHECK(nfc.original({7, 7}) == Offsets{14, 14});
    nfc.crop({2, 5});
    CHECK(nfc.str() == "x\u00E9");
    CHECK(nfc.original({1, 3}) == Offsets{11, 12});
}

TEST_CASE("unicode: character classes") {
    CHECK(is_whitespace(0x3000));
    CHECK(is_whitespace(0x85));
    CHECK(!is_whitespace(0x200B));
    CHECK(is_punctuation('$'));  // for ASCII, all non-alphanumeric printable characters
    CHECK(is_punctuation(0x3002));
    CHECK(!is_punctuation(0x20AC));
    CHECK(is_numeric(0x2167));
    CHECK(is_numeric(0xBD));
    CHECK(!is_numeric('a'));
    CHECK(is_mark(0x93F));
    CHECK(!is_nonspacing_mark(0x93F));
    CHECK(is_nonspacing_mark(0x301));
    CHECK(is_chinese(0x4E2D));
    CHECK(!is_chinese(0x3042));
    CHECK(is_word(0x24B6));
    CHECK(is_word(0x200D));
    CHECK(!is_word(0xB2));
    std::u32string lower;
    for (const char32_t c : std::u32string_view(U"AΣİẞǅ中")) append_lower(lower, c);
    CHECK(lower == U"aσi\u0307ßǆ中");
    CHECK(grapheme_ends("e\u0301\r\nx") == std::vector<std::size_t>{3, 5, 6});
    CHECK(grapheme_ends("") == std::vector<std::size_t>{});
}

TEST_CASE("unicode: UTF-8 round trip") {
    for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
        if (c >= 0xD800 && c < 0xE000) continue;
        const std::string text = utf8(c);
        CHECK(decode_any(text, 0).valid);
        CHECK(decode_any(text, 0).c == c);
        CHECK(decode_at(text, 0).size == text.size());
        CHECK(decode_before(text, text.size()).c == c);
    }
    for (const char* bad : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                            "\xF5", "\xE2\x82"})
        CHECK(!is_valid(bad));
    CHECK(to_valid("a\xE2\x82z") == "a\uFFFDz");
    CHECK(count_characters("é中👍") == 3);
}
