#!/usr/bin/env python3
"""Writes results of Hugging Face's transformers, sacreBLEU, rouge-score and jiwer on random inputs, for declivity_text_facts.

    text_facts.py FILE

Missing packages are skipped; without any it exits with 77, which ctest shows as skipped.
"""
import json
import random
import sys

draw = random.Random(5)
WORDS = "a b c d e the cat sat on mat dog's 3.5 (x) don't end.".split()
facts, missing = [], []


def sentence(longest=14):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, longest)))


try:
    import torch
    from transformers.generation import logits_process as lp

    for _ in range(60):
        size, length = draw.randint(5, 40), draw.randint(1, 12)
        logits = [draw.gauss(0, 2) for _ in range(size)]
        tokens = [draw.randrange(size) for _ in range(length)]
        ids = torch.tensor([tokens])
        for options, process in [({"repetition_penalty": 1.3}, lp.RepetitionPenaltyLogitsProcessor(1.3)), ({"no_repeat_ngram_size": 2}, lp.NoRepeatNGramLogitsProcessor(2)),
                                 ({"suppress_tokens": [0, 3]}, lp.SuppressTokensLogitsProcessor([0, 3], device="cpu")), ({"temperature": 0.7}, lp.TemperatureLogitsWarper(0.7)),
                                 ({"top_k": 4}, lp.TopKLogitsWarper(4)), ({"top_p": 0.8}, lp.TopPLogitsWarper(0.8)), ({"min_p": 0.1}, lp.MinPLogitsWarper(0.1)),
                                 ({"typical_p": 0.6}, lp.TypicalLogitsWarper(0.6))]:
            out = process(ids, torch.tensor([logits])).tolist()[0]
            facts.append({"kind": "logits", "options": options, "logits": torch.tensor(logits).tolist(), "tokens": tokens, "out": [x if x > -1e30 else None for x in out]})
except ImportError as error:
    missing.append(str(error))

# Beam search of a small model, whose logits depend only on the last token.
try:
    import torch
    from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel
    from transformers.generation import GenerationMixin
    from transformers.modeling_outputs import CausalLMOutput

    class Table(PreTrainedModel, GenerationMixin):
        config_class = PretrainedConfig

        def __init__(self, config, table):
            super().__init__(config)
            self.weight = torch.nn.Parameter(table, requires_grad=False)

        def forward(self, input_ids, attention_mask=None, **_):
            return CausalLMOutput(logits=self.weight[input_ids])

        def prepare_inputs_for_generation(self, input_ids, **kwargs):
            return {"input_ids": input_ids, "attention_mask": None}

        def _supports_default_dynamic_cache(self):
            return False

    for _ in range(25):
        size = draw.randint(6, 14)
        table = torch.tensor([[draw.gauss(0, 1.5) for _ in range(size)] for _ in range(size)])
        options = {"max_new_tokens": draw.randint(2, 9), "num_beams": draw.randint(1, 5), "length_penalty": draw.choice([0.0, 1.0, 1.7]), "early_stopping": draw.choice([True, False])}
        options["num_return_sequences"] = draw.randint(1, options["num_beams"])
        if options["num_beams"] == 1:
            options["num_return_sequences"] = 1
        prompt = [draw.randrange(2, size) for _ in range(draw.randint(1, 3))]
        config = PretrainedConfig()
        config.vocab_size, config.is_encoder_decoder, config.num_hidden_layers = size, False, 1
        model = Table(config, table)
        out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), use_cache=False, return_dict_in_generate=True, output_scores=True,
                             generation_config=GenerationConfig(do_sample=False, eos_token_id=1, pad_token_id=0, **{k: v for k, v in options.items() if options["num_beams"] > 1 or k in ("max_new_tokens", "num_beams")}))
        rows = [row[len(prompt):] for row in out.sequences.tolist()]
        rows = [row[:row.index(1) + 1] if 1 in row else row for row in rows]
        scores = out.sequences_scores.tolist() if options["num_beams"] > 1 else None
        facts.append({"kind": "beams", "table": table.tolist(), "prompt": prompt, "options": options, "sequences": rows, "scores": scores})
except ImportError as error:
    missing.append(str(error))

try:
    from sacrebleu.metrics import BLEU
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    for number in range(80):
        count, references = draw.randint(1, 5), draw.randint(1, 3)
        hypotheses = [sentence() for _ in range(count)]
        streams = [[sentence() for _ in range(count)] for _ in range(references)]
        method = draw.choice(["exp", "none", "floor", "add-k"])
        single = number % 2 == 1
        bleu = BLEU(tokenize="none", smooth_method=method, effective_order=single, max_ngram_order=draw.choice([4, 4, 2]))
        score = bleu.sentence_score(hypotheses[0], [s[0] for s in streams]) if single else bleu.corpus_score(hypotheses, streams)
        facts.append({"kind": "bleu", "hypotheses": hypotheses[:1] if single else hypotheses, "references": [s[:1] if single else s for s in streams], "method": method,
                      "effective": single, "order": bleu.max_ngram_order, "score": score.score, "precisions": score.precisions, "bp": score.bp, "lengths": [score.sys_len, score.ref_len]})
    for text in ["Hello, world!", "It's 3.5% (or 1,000-2,000)...", "a,b 1,2 x.y 3.4 .5 6.", "&quot;quoted&quot; &lt;b&gt; &amp;amp;", "naïve café—dash, “quotes”", "C++ a/b @c #d $e ^f ~g `h` [i] {j} |k|", "hyphen-\nated <skipped> end", "1-2 a-b 3-c"] + [sentence() for _ in range(20)]:
        facts.append({"kind": "13a", "text": text, "tokens": Tokenizer13a()(text).split()})
except ImportError as error:
    missing.append(str(error))

try:
    from rouge_score import rouge_scorer, tokenizers

    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"])
    for _ in range(60):
        a, b = ("\n".join(sentence(8) for _ in range(draw.randint(1, 4))) for _ in range(2))
        score = scorer.score(a, b)
        facts.append({"kind": "rouge", "reference": a, "hypothesis": b, "score": {k: [v.precision, v.recall, v.fmeasure] for k, v in score.items()}})
except ImportError as error:
    missing.append(str(error))

try:
    import jiwer

    for _ in range(60):
        references = [(sentence() + " x").strip() for _ in range(3)]
        hypotheses = [sentence() for _ in range(3)]
        facts.append({"kind": "errors", "hypotheses": hypotheses, "references": references, "wer": jiwer.wer(references, hypotheses), "cer": jiwer.cer(references, hypotheses)})
except ImportError as error:
    missing.append(str(error))

if not facts:
    print("SKIPPED: " + "; ".join(missing))
    sys.exit(77)
for item in missing:
    print(f"without: {one}", file=sys.stderr)
with open(sys.argv[1], "w") as out:
    json.dump(facts, out)
