#!/usr/bin/env python3
"""Writes tests/text/tokenizer_facts.json: small tokenizers, and results of the Python package tokenizers on a few texts.

    small_facts.py FILE
"""
import json
import sys

from tokenizers import Tokenizer

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def vocab(tokens):
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def bpe(merges, extra="", specials=(), **of):
    tokens = list(specials) + list(ALPHABET) + list(extra) + [a + b for a, b in merges]
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab(tokens), "merges": [list(m) for m in merges], **of}


def added(*tokens):
    base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [{**base, **token} for token in tokens]


def special(name, type_id=0):
    return {"SpecialToken": {"id": name, "type_id": type_id}}


def sequence(name, type_id=0):
    return {"Sequence": {"id": name, "type_id": type_id}}


BYTES = [chr(c) for c in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144))]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
ENGLISH = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("i", "n"), ("in", "g"), ("\u0120", "a"), ("a", "n"), ("l", "l"), ("\u0120", "\u0120"),
           ("o", "n"), ("\u00c3", "\u00a9"), ("'", "s"), ("h", "e"), ("he", "ll"), ("hell", "o"), ("1", "2"), ("w", "or"), ("o", "r")]
ENGLISH = ENGLISH[:16] + [ENGLISH[17], ENGLISH[16]]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
META = "\u2581"
META_MERGES = [("t", "h"), ("th", "e"), (META, "the"), (META, "a"), (META, META), ("i", "n"), ("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), (META, "hello")]

tokenizers = {
    "gpt2": {"added_tokens": added({"id": 0, "content": "<|end|>"}), "pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL,
             "post_processor": {**BYTE_LEVEL, "trim_offsets": False}, "model": bpe(ENGLISH, BYTES, ["<|end|>"])},
    "roberta": {"added_tokens": added({"id": 0, "content": "<s>"}, {"id": 1, "content": "</s>"}, {"id": 2, "content": "<mask>", "lstrip": True}),
                "pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}, "decoder": BYTE_LEVEL,
                "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True},
                "model": bpe(ENGLISH, BYTES, ["<s>", "</s>", "<mask>"])},
    "llama3": {"added_tokens": added({"id": 0, "content": "<|end|>"}), "decoder": BYTE_LEVEL,
               "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False},
                                                                       {**BYTE_LEVEL, "use_regex": False}]},
               "post_processor": {"type": "TemplateProcessing", "single": [special("<|end|>"), sequence("A")],
                                  "pair": [special("<|end|>"), sequence("A"), special("<|end|>", 1), sequence("B", 1)],
                                  "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}}},
               "model": bpe(ENGLISH, BYTES, ["<|end|>"], ignore_merges=True)},
    "llama2": {"added_tokens": added({"id": 0, "content": "<unk>"}, {"id": 1, "content": "<s>"}, {"id": 2, "content": "</s>"}),
               "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": META}, {"type": "Replace", "pattern": {"String": " "}, "content": META}]},
               "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": META}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
               "model": bpe(META_MERGES, META + ".,!", ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)], unk_token="<unk>", fuse_unk=True, byte_fallback=True)},
    "bert": {"added_tokens": added({"id": 0, "content": "[PAD]"}, {"id": 1, "content": "[UNK]"}, {"id": 2, "content": "[CLS]"}, {"id": 3, "content": "[SEP]"}),
             "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
             "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
             "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
             "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 20,
                       "vocab": vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "hello", "##s", "##ing", "do", "##n", "n", "'", "t", ",", ".", "!", "\u4e2d", "cafe", "is", "##e", "t", "h"])}},
    "unigram": {"added_tokens": added({"id": 0, "content": "<unk>"}, {"id": 1, "content": "</s>"}),
                "normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Metaspace", "replacement": META, "prepend_scheme": "always", "split": True},
                "decoder": {"type": "Metaspace", "replacement": META, "prepend_scheme": "always", "split": True},
                "post_processor": {"type": "TemplateProcessing", "single": [sequence("A"), special("</s>")], "pair": [sequence("A"), special("</s>"), sequence("B"), special("</s>")],
                                   "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
                "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
                          "vocab": [["<unk>", 0.0], ["</s>", 0.0], [META, -2.5], ["the", -3.25], [META + "the", -2.75], ["hello", -6.5], [META + "hello", -5.5], ["s", -3.0], ["ing", -4.0],
                                    [".", -3.0], ["!", -4.5], ["fi", -5.0]] + [[c, -4.0 - i / 8] for i, c in enumerate(ALPHABET) if c != "s"]}},
    "words": {"added_tokens": added({"id": 0, "content": "[UNK]"}, {"id": 9, "content": "yes", "single_word": True, "special": False, "normalized": True}),
              "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": True}]},
              "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}]},
              "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocab(["[UNK]", "the", "hello", "cafe", "1", "2", "!", "...", "don"])}},
}
# Texts that contain the unknown token and byte tokens literally, which are not added tokens here.
BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]
LITERAL = {
    "unigram_bytes": {"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                                "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -1.5], ["ab", -1.75], ["\u4e2d\u6587", -3.0]] + [[t, -6.0] for t in BYTE_TOKENS]}},
    "unigram_some_bytes": {"model": {"type": "Unigram", "unk_id": 1, "byte_fallback": True,
                                     "vocab": [["a", -1.0], ["<unk>", 0.0], ["u", -2.0], ["n", -2.5], ["k", -2.25]] + [[t, -6.0] for t in BYTE_TOKENS[0x30:0xC4]]}},
    "unigram_no_bytes": {"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [["<unk>", -3.0], ["a", -1.0], ["b", -1.5], ["<", -1.0]]}},
    "bpe_bytes": {"model": bpe([("u", "n"), ("un", "k"), ("<", "unk"), ("<unk", ">")], "<>", ["<unk>"] + BYTE_TOKENS, unk_token="<unk>", byte_fallback=True)},
    "bpe_some_bytes": {"model": bpe([("u", "n")], "<>", ["<unk>"] + BYTE_TOKENS[0x20:0xC8], unk_token="<unk>", byte_fallback=True, fuse_unk=True)},
    "word_piece_literal": {"pre_tokenizer": {"type": "WhitespaceSplit"},
                           "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 20,
                                     "vocab": vocab(["[UNK]", "a", "##b", "##[UNK]", "##a", "<unk>"])}},
    "word_level_literal": {"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab(["<unk>", "a", "[UNK]"])}},
}
LITERAL_TEXTS = ["<unk>", "a<unk>b", "<unk><unk>", "\u00e9<unk>", "<unk>\u00e9", "a \u4e2d\u6587 <unk> [UNK] b", "<0x41>", "a<0x0A>b", "ab<un", "\U0001F44D\u4e2d", "[UNK]", "a[UNK]",
                 "unk\u0141\u00e9", "<UNK>"]

TEXTS = ["", " ", "the", "hello the end", " Hello  the\nthing!  ", "don't IT'S 'ſ", "caf\u00e9 cafe\u0301 CAF\u00c9", "\u4e2d\u6587 \u65e5\u672c", "12345 1,2",
         "\U0001F468\u200D\U0001F469\U0001F44D\U0001F3FD", "\u05e2\u05b4\u05d1 \u0627\u0644", "a\tb\r\n\r\n  c", "\x00\x07\x7f\x85\xa0\u180e\u200b\u3000\ufeff",
         "<s>the</s> <mask><|end|> [SEP]x[CLS]", "yes yesno yes!", "\ufb01 \u00bd \u212b \u1e9b\u0323", "helloing hellos", "x" * 25, "for(i=0;i<n;++i)", "the thethe  the "]


def facts(e):
    return {"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets], "type_ids": e.type_ids, "special_tokens_mask": e.special_tokens_mask,
            "word_ids": [-1 if w is None else w for w in e.word_ids]}


out = []
for name, description in {**tokenizers, **LITERAL}.items():
    parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, **description}
    t = Tokenizer.from_str(json.dumps(parts))
    calls = [{"text": text, "encoding": facts(t.encode(text)), "decoded": t.decode(t.encode(text).ids)} for text in (LITERAL_TEXTS if name in LITERAL else TEXTS)]
    for call in calls[3::5]:
        call["pair"] = facts(t.encode(call["text"], "the end"))
    out.append({"name": name, "tokenizer": parts, "calls": calls})
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write("[\n" + ",\n".join(json.dumps(fact, ensure_ascii=False, separators=(",", ":")) for fact in out) + "\n]\n")
