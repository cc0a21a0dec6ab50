#!/usr/bin/env python3
"""Writes tokenizers, and results of the Python package tokenizers on difficult texts, for declivity_tokenizers to compare.

    tokenizer_facts.py FOLDER [SEED]

Writes the tokenizers to FOLDER/NAME.json, their results to NAME.facts.json, and the training texts to texts.txt. Without the
package it exits with 77, which ctest shows as skipped. All texts are generated here.
"""
import json
import os
import random
import sys
import unicodedata

try:
    import tokenizers
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                            trainers)
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 20240229)

WORDS = """the of and to in is that it was for on are as with his they at be this from have or by one had not but what all
were when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down only
way find use may water long little very after words called just where most know get through back much go good new write our
used me man too any day same right look think also around another came come work three word must because does part even
place well such here take why things help put years different away again off went old number great tell men say small every
found still between name should Mr. home big give air line set own under read last never us left end along while might next
sound below saw something thought both few those always looked show large often together asked house don't world going want
school important until form food keep children feet land side without boy once animals life enough took sometimes four head
above kind began almost live page got earth need far hand high year mother light parts country father let night following
picture being study second eyes soon times story boys since white days ever paper hard near sentence better best across
during today others however sure means knew it's try told young miles sun ways thing whole hear example heard several change
answer room sea against top turned learn point city play toward five using himself usually tokenization unbelievable""".split()
OTHERS = ["der schöne Straßenübergang", "où est l'hôtel près de la forêt?", "el niño pequeño está aquí", "Привет, как дела?",
          "Ελληνικά κείμενα και ΣΊΣΥΦΟΣ", "日本語のテキストです。", "中文文本,没有空格", "한국어 문장입니다", "שלום עולם", "مرحبا بالعالم", "हिन्दी में पाठ", "ภาษาไทยไม่มีช่องว่าง",
          "naïve façade coöperate", "İstanbul ılık", "ﬁne ligatures ﬂow", "½ of ⅓ is x² + y³"]
CODE = ["for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }", "def f(x):\n    return x ** 2\n", "\tif (x != y) goto end;",
        "std::vector<std::pair<int, double>> v{{1, 2.5}};", "SELECT * FROM t WHERE id = 42;", "https://example.org/a/b?c=d&e=f#g",
        "user.name+tag@example.com", "{\"key\": [1, 2.0e-3, null]}", "a=b&&c||d", "x_1 <- y$z", "#include <cstdio>"]


def sentence():
    if draw.random() < 0.15:
        return draw.choice(OTHERS)
    if draw.random() < 0.1:
        return draw.choice(CODE)
    words = [draw.choice(WORDS) for _ in range(draw.randint(3, 14))]
    if draw.random() < 0.3:
        words.insert(draw.randint(0, len(words)), str(draw.randint(0, 10 ** draw.randint(1, 7))))
    text = " ".join(words)
    return text[0].upper() + text[1:] + draw.choice([".", "!", "?", "...", ", and so on.", ""])


corpus = [sentence() for _ in range(3000)]

PIECES = ["\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "\U0001F44D\U0001F3FD", "\U0001F1E9\U0001F1EA\U0001F1EB", "\u2764\uFE0F", "\U0001FAE0", "e\u0301",
          "a\u0323\u0307", "o\u0308\u0304", "\u1E69", "s\u0307\u0323", "\u212B", "\uAC00\u11A8", "\u1100\u1161\u11A8", "\u0958", "\uFB01", "\u3392", "\uFF21\uFF22\uFF11", "\u00BD",
          "\u2167", "\u2460", "\u24B6", "漢字", "カタカナ", "ﾊﾟ", "中", "\U00020BB7", "עברית", "עִבְרִית", "العربية", "\u202Eabc\u202C", "\u200F", "\x00", "\x01", "\x07", "\x1b[0m",
          "\x7f", "\x85", "\xa0", "\xad", "\u180e", "\u200b", "\u2003", "\u2028", "\u2029", "\u3000", "\ufeff", "\ufffd", "\ue000", "\U000F0000", "\u0378", " ", "  ", "   ",
          " " * 17, "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\v", "\f", "0", "1", "12", "123", "1234567", "3.14159", "1,000,000", "٣٤٥", "१२३", "𝟙𝟚", "²", "don't", "I'm",
          "we'll", "they've", "he'd", "you're", "it's", "IT'S", "DON'T", "'ſ", "'S", "rock'n'roll", "'", "''", "\"", "´", "‘quoted’", "“x”", "«y»", "—", "…", "!!!", "?!", "---", "___",
          "$", "€", "£5", "±", "×", "∑", "√2", "A", "Zz", "Ünï", "ÇA", "ŞIŞ", "İ", "ı", "ß", "ẞ", "ΑΣ", "Σ", "ǅ", "ŉ", "ﬃ", "\u1E9B\u0323", "\u0345", "\u0301", "\u20DD", "\u093F", "a\u0301\u0301\u0301",
          "<s>", "</s>", "<unk>", "<|endoftext|>", "<|end|>", "[CLS]", "[SEP]", "[MASK]", "[cls]", "<mask>", "<0x41>", "▁", "▁▁", "Ġ", "##ing", "##", "ing", "<|", "|>", "yesno", "yes", "NO",
          "x" * 120, "ab" * 60, "\U0001F600" * 9, "z\u0306\u0306" * 3, "\\", "/", "\\n", "%20", "&amp;", "0x7f", "1e-9", "a_b", "camelCase", "snake_case_name", "x.y.z", "C++", "#", "@me", "~", "^", "`"]


def hard():
    kind = draw.random()
    if kind < 0.25:
        return sentence()
    if kind < 0.35:
        return draw.choice(CODE) + draw.choice(["", "\n", "  "]) + draw.choice(CODE)
    if kind < 0.45:  # any characters
        ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x900, 0xDFF), (0x1E00, 0x20CF), (0x3040, 0x30FF), (0xAC00, 0xAC80), (0xFF00, 0xFFEF), (0x1F300, 0x1F64F)]
        out = []
        for _ in range(draw.randint(1, 30)):
            low, high = draw.choice(ranges)
            c = chr(draw.randint(low, high))
            # The package's tables are of several versions of Unicode: exclude recent punctuation and marks, and everything newer
            # than the tables of this Python or of PCRE2.
            young = unicodedata.ucd_3_2_0.category(c) == "Cn"
            if unicodedata.category(c) != "Cn" and not (young and unicodedata.category(c)[0] in "PM"):
                out.append(c)
        return "".join(out)
    parts = [draw.choice(PIECES) if draw.random() < 0.6 else draw.choice(WORDS) for _ in range(draw.randint(1, 12))]
    out = ""
    for part in parts:
        out += part + draw.choice(["", "", " ", " ", "  "])
    return out


texts = ["", " ", "\n", "a"] + PIECES
while len(texts) < 1000:
    texts.append(hard())

made = {}


def trained(name, tokenizer, trainer, specials=()):
    tokenizer.train_from_iterator(corpus, trainer)
    made[name] = tokenizer
    return tokenizer


def byte_level(name, special="<|endoftext|>", **of):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=of.get("prefix", False))
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=of.get("trim", False))
    trained(name, t, trainers.BpeTrainer(vocab_size=900, special_tokens=[special], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


# GPT-2
byte_level("gpt2")
# RoBERTa: spaces before the first word, trimmed offsets, a mask that takes the space on its left along
t = byte_level("roberta", special="<s>", prefix=True, trim=True)
t.add_special_tokens(["</s>", "<unk>", AddedToken("<mask>", lstrip=True, normalized=False)])
t.add_tokens([AddedToken("yesno", single_word=True), AddedToken("camelCase", rstrip=True), AddedToken("ŞIŞ", normalized=False)])
t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), trim_offsets=True, add_prefix_space=True)
# Llama 3: another pattern of words, merges skipped for whole words, a template at the end
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
t = Tokenizer(models.BPE(ignore_merges=True))
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated", False), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
t.decoder = decoders.ByteLevel()
trained("llama3", t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<|endoftext|>", "<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
    single="<|endoftext|> $A", pair="<|endoftext|> $A <|endoftext|>:1 $B:1", special_tokens=[("<|endoftext|>", 0)])])
# o200k's pattern, with classes of letters
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
t = Tokenizer(models.BPE())
t.normalizer = normalizers.NFC()
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), "removed", True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
t.decoder = decoders.ByteLevel()
trained("o200k", t, trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
# Llama 2: characters, byte fallback for unknown ones
t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
bytes_ = [f"<0x{b:02X}>" for b in range(256)]
trained("llama2", t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>"] + bytes_, limit_alphabet=150, show_progress=False))
description = json.loads(t.to_str())
description["pre_tokenizer"] = None
description["added_tokens"] = description["added_tokens"][:3]
for item in description["added_tokens"]:
    item["normalized"] = False
t = made["llama2"] = Tokenizer.from_str(json.dumps(description))
t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
# The same with Metaspace, only before the first word, as in newer files
description = json.loads(t.to_str())
description["normalizer"] = None
description["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
made["llama2_metaspace"] = Tokenizer.from_str(json.dumps(description))
# Unknown characters, not fused; merges as strings; end-of-word suffix
t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(), normalizers.Strip(left=True, right=False)])
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(individual_digits=True)])
t.decoder = decoders.BPEDecoder("</w>")
trained("suffix", t, trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=60, show_progress=False))
description = json.loads(t.to_str())
description["model"]["merges"] = [" ".join(m) if isinstance(m, list) else m for m in description["model"]["merges"]]
made["suffix"] = Tokenizer.from_str(json.dumps(description))


# BERT
def bert(name, lowercase, strip):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    trained(name, t, trainers.WordPieceTrainer(vocab_size=800, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=150, show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


bert("bert", True, None)
t = bert("bert_cased", False, False)
t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])


# Unigram
def unigram(name, normalizer, pre_tokenizer, decoder, **of):
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre_tokenizer, decoder
    trained(name, t, trainers.UnigramTrainer(vocab_size=800, special_tokens=["<pad>", "</s>", "<unk>"] + of.get("more", []), unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


unigram("unigram", normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(), decoders.Metaspace())
t = unigram("unigram_bytes", normalizers.NFKD(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first", split=True)]),
            decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), more=bytes_)
description = json.loads(t.to_str())
description["model"]["byte_fallback"] = True
description["added_tokens"] = description["added_tokens"][:3]
made["unigram_bytes"] = Tokenizer.from_str(json.dumps(description))
# With the character map of SentencePiece, if that package is installed as well
try:
    import io
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=stream, vocab_size=700, normalization_rule_name="nmt_nfkc_cf", minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(stream.getvalue())
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=0))
    t.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    t.pre_tokenizer, t.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made["precompiled"] = t
except Exception as error:  # noqa: BLE001: the rest is compared
    print(f"without SentencePiece's table: {error}", file=sys.stderr)
# Words and characters
t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.Lowercase()])
t.pre_tokenizer = pre_tokenizers.Whitespace()
trained("words", t, trainers.WordLevelTrainer(vocab_size=500, special_tokens=["[UNK]"], show_progress=False))
# Each behavior of a split, and other pre-tokenizers
model = json.loads(made["gpt2"].to_str())["model"]
for name, pre in {"removed": pre_tokenizers.Split("e", "removed"), "isolated": pre_tokenizers.Split(Regex(r"\d+|\W"), "isolated"),
                  "previous": pre_tokenizers.Split(Regex(r"\w\b"), "merged_with_previous"), "next": pre_tokenizers.Split(Regex(r"[aeiou]|^ "), "merged_with_next"),
                  "contiguous": pre_tokenizers.Split(Regex(r"[^\S\n]|[a-f]{2,3}+"), "contiguous"), "inverted": pre_tokenizers.Split(Regex(r"\p{L}+"), "contiguous", invert=True),
                  "delimiter": pre_tokenizers.CharDelimiterSplit("-"), "punctuation": pre_tokenizers.Punctuation("merged_with_previous"), "digits": pre_tokenizers.Digits(False)}.items():
    t = Tokenizer.from_str(json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                                       "post_processor": None, "decoder": None, "model": model}))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    made["split_" + name] = t


def facts(e):
    return {"ids": e.ids, "tokens": e.tokens, "offsets": [list(o) for o in e.offsets], "type_ids": e.type_ids, "attention_mask": e.attention_mask,
            "special_tokens_mask": e.special_tokens_mask, "word_ids": [-1 if w is None else w for w in e.word_ids],
            "sequence_ids": [-1 if s is None else s for s in e.sequence_ids], "overflowing": [facts(o) for o in e.overflowing]}


with open(os.path.join(folder, "texts.txt"), "w") as out:
    out.write("\n".join(item.replace("\n", " ") for item in corpus) + "\n")
index = []
for name, t in made.items():
    path = os.path.join(folder, name)
    t.save(path + ".json")
    few = texts if not name.startswith("split_") else texts[:400]
    calls = []
    for i, text in enumerate(few):
        e = t.encode(text)
        call = {"text": text, "encoding": facts(e), "plain": t.encode(text, add_special_tokens=False).ids,
                "decoded": t.decode(e.ids), "decoded_all": t.decode(e.ids, skip_special_tokens=False)}
        if i % 5 == 0:
            call["pair"] = texts[(7 * i + 3) % len(texts)]
            call["pair_encoding"] = facts(t.encode(text, call["pair"]))
        calls.append(call)
    batches = []
    for number in range(24):
        truncation = {"max_length": draw.randint(8, 24), "stride": draw.randint(0, 1), "strategy": "longest_first", "direction": draw.choice(["left", "right"])}
        padding = {"direction": draw.choice(["left", "right"]), "pad_id": draw.randint(0, 9), "pad_type_id": draw.randint(0, 1), "pad_token": "[P]",
                   "length": draw.choice([None, draw.randint(1, 40)]), "pad_to_multiple_of": draw.choice([None, 8])}
        batch = [draw.choice(texts) for _ in range(5)]
        if number % 2 == 1:
            batch = [(item, draw.choice(texts)) for item in batch]
        if number % 3 != 0:
            t.enable_truncation(**truncation)
        else:
            truncation = None
        if number % 4 != 3:
            t.enable_padding(**padding)
        else:
            padding = None
        batches.append({"batch": batch, "truncation": truncation, "padding": padding, "encodings": [facts(e) for e in t.encode_batch(batch)]})
        t.no_truncation()
        t.no_padding()
    with open(path + ".facts.json", "w") as out:
        json.dump({"calls": calls, "batches": batches, "vocab_size": t.get_vocab_size()}, out)
    index.append(name)
with open(os.path.join(folder, "index.json"), "w") as out:
    json.dump({"version": tokenizers.__version__, "names": index}, out)
