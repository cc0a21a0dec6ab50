#!/usr/bin/env python3
"""Creates small random models with the package transformers and saves them with their results, for declivity_models to compare.

    models.py FOLDER            each model in its own folder, listed by FOLDER/cases.txt
    models.py --check FOLDER    loads the models saved by declivity_models next to them, and compares logits

Requires the Python packages torch, safetensors and transformers; if one is missing it exits with 77, which ctest
shows as skipped. With the package peft causal models have low-rank adapters as well.
"""
import os
import sys

try:
    import torch
    import transformers as hf
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

try:
    import peft
except ImportError:
    peft = None

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()
torch.set_num_threads(1)

SMALL = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=56, vocab_size=61)
GPT2 = dict(n_embd=32, n_layer=3, n_head=4, vocab_size=61, n_positions=48, bos_token_id=0, eos_token_id=60)
IDS = dict(bos_token_id=1, eos_token_id=2)
VIT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=56, image_size=20, patch_size=6)


def rope(**parameters):
    return {"rope_parameters": {"rope_theta": 500.0, **parameters}}


LLAMA3 = rope(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
CASES = {
    "gpt2": ("gpt2", hf.GPT2LMHeadModel, hf.GPT2Config(**GPT2)),
    "gpt2_other": ("gpt2", hf.GPT2LMHeadModel, hf.GPT2Config(**GPT2, n_inner=40, scale_attn_by_inverse_layer_idx=True,
                                                            activation_function="relu", tie_word_embeddings=False)),
    "llama": ("llama", hf.LlamaForCausalLM, hf.LlamaConfig(**SMALL, **IDS, num_key_value_heads=2, max_position_embeddings=64)),
    "llama3": ("llama", hf.LlamaForCausalLM, hf.LlamaConfig(**SMALL, **IDS, **LLAMA3, num_key_value_heads=1,
                                                          tie_word_embeddings=True, max_position_embeddings=64)),
    "llama_linear": ("llama", hf.LlamaForCausalLM, hf.LlamaConfig(**SMALL, **IDS, **rope(rope_type="linear", factor=2.5),
                                                                head_dim=10, attention_bias=True, mlp_bias=True,
                                                                max_position_embeddings=64)),
    "mistral": ("llama", hf.MistralForCausalLM, hf.MistralConfig(**SMALL, **IDS, num_key_value_heads=2, sliding_window=5,
                                                               max_position_embeddings=64)),
    "qwen2": ("llama", hf.Qwen2ForCausalLM, hf.Qwen2Config(**SMALL, **IDS, num_key_value_heads=4, use_sliding_window=True,
                                                         sliding_window=4, max_window_layers=1, max_position_embeddings=64)),
    "bert": ("bert", hf.BertModel, hf.BertConfig(**SMALL, max_position_embeddings=40)),
    "bert_masked": ("bert_masked", hf.BertForMaskedLM, hf.BertConfig(**SMALL, max_position_embeddings=40)),
    "bert_classes": ("bert_classes", hf.BertForSequenceClassification, hf.BertConfig(**SMALL, max_position_embeddings=40,
                                                                                    num_labels=3)),
    "vit": ("vit", hf.ViTModel, hf.ViTConfig(**VIT, qkv_bias=False)),
    "vit_classes": ("vit_classes", hf.ViTForImageClassification, hf.ViTConfig(**VIT, num_labels=5)),
}


ADAPTERS = {} if peft is None else {
    "gpt2": peft.LoraConfig(r=3, lora_alpha=5, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True, task_type="CAUSAL_LM"),
    "llama": peft.LoraConfig(r=4, lora_alpha=6, target_modules=["q_proj", "down_proj"], use_rslora=True, task_type="CAUSAL_LM"),
}


def inputs_of(kind):
    if kind.startswith("vit"):
        return {"pixel_values": torch.randn(3, 3, 20, 20)}
    inputs = {"input_ids": torch.randint(3, 60, (3, 13))}
    if kind.startswith("bert"):
        inputs["token_type_ids"] = torch.randint(0, 2, (3, 13))
        inputs["attention_mask"] = (torch.arange(13) < torch.tensor([[13], [7], [10]])).long()
    return inputs


def outputs_of(model, inputs):
    out = model(**inputs)
    if "logits" in out:
        return {"logits": out.logits}
    return {"last_hidden_state": out.last_hidden_state, "pooler_output": out.pooler_output}


def spread(model):
    """Large weights, so that omissions show."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.dim() > 1 else 0.5) + ("norm" in name.lower() or "ln_" in name))


def write(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "cases.txt"), "w") as cases:
        for name, (kind, make, config) in CASES.items():
            torch.manual_seed(len(name))
            model = make(config)
            spread(model)
            model.eval()
            path = os.path.join(folder, name)
            model.save_pretrained(path, max_shard_size="20KB" if len(name) % 2 == 0 else "5GB")
            if name == "llama3":
                model.to(torch.bfloat16).save_pretrained(path)
                model = make.from_pretrained(path, dtype=torch.float32).eval()
            inputs = inputs_of(kind)
            saved = {f"in.{key}": value for key, value in inputs.items()}
            outputs = outputs_of(model, inputs)
            saved.update({f"out.{key}": value.detach() for key, value in outputs.items()})
            # Gradients of the mean of squares, so that every parameter has one.
            sum((value ** 2).mean() for value in outputs.values()).backward()
            # Saved in the format of a model, with gradients in place of the parameters.
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
            model.save_pretrained(os.path.join(path, "gradients"))
            model = make.from_pretrained(path, dtype=torch.float32).eval()
            if kind in ("gpt2", "llama"):
                # Prompts of different lengths, left-padded.
                mask = (torch.arange(13) >= torch.tensor([[0], [6], [3]])).long()
                tokens = model.generate(inputs["input_ids"], attention_mask=mask, max_new_tokens=20, do_sample=False,
                                        pad_token_id=0)
                saved["generate.mask"], saved["generate.tokens"] = mask, tokens
                if peft is not None:
                    adapted = peft.get_peft_model(model, ADAPTERS[kind])
                    with torch.no_grad():
                        for key, parameter in adapted.named_parameters():
                            if "lora_B" in key:
                                parameter.normal_(0, 0.2)
                        saved["peft.logits"] = adapted.eval()(**inputs).logits
                    adapted.save_pretrained(os.path.join(path, "peft"))
            save_file({key: value.contiguous() for key, value in saved.items()}, os.path.join(path, "expected.safetensors"))
            cases.write(f"{kind} {name}\n")


def check(folder):
    for line in open(os.path.join(folder, "cases.txt")):
        kind, name = line.split()
        saved = load_file(os.path.join(folder, name, "expected.safetensors"))
        model, info = CASES[name][1].from_pretrained(os.path.join(folder, name, "saved"), output_loading_info=True)
        lost = {key: value for key, value in info.items() if value}
        assert not lost, f"{name}: {lost}"
        model.eval()
        inputs = {key[3:]: value for key, value in saved.items() if key.startswith("in.")}
        with torch.no_grad():
            for key, value in outputs_of(model, inputs).items():
                error = (value - saved[f"out.{key}"]).abs().max().item()
                assert error < 1e-4, f"{name}: what was saved gives {key} that is off by {error}"
        if "peft.logits" in saved:
            model = CASES[name][1].from_pretrained(os.path.join(folder, name), dtype=torch.float32)
            adapted = peft.PeftModel.from_pretrained(model, os.path.join(folder, name, "peft_saved")).eval()
            with torch.no_grad():
                error = (adapted(**inputs).logits - saved["peft.logits"]).abs().max().item()
            assert error < 1e-4, f"{name}: saved adapters give logits that are off by {error}"
    print("what was saved is loaded by transformers" + ("" if peft is None else ", and adapters by PEFT"))


if sys.argv[1] == "--check":
    check(sys.argv[2])
else:
    write(sys.argv[1])
