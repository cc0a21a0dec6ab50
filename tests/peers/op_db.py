#!/usr/bin/env python3
"""Writes PyTorch's own samples of its operators, with what they give, for declivity_op_db to compare.

    op_db.py OUT.json [NAME...]

OUT.json gets the calls, OUT.bin beside it the elements of tensors. Wants the Python packages torch, numpy, expecttest and
hypothesis; where torch is missing it says so and ends with 77, which ctest shows as skipped. The samples are those of
torch.testing._internal.common_methods_invocations.op_db, in float32, float64 and integers.
"""
import json
import random
import sys
import warnings

try:
    import numpy as np
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore")
torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
torch.set_num_threads(1)

out_path, wanted = sys.argv[1], set(sys.argv[2:])
elements = open(out_path.rsplit(".", 1)[0] + ".bin", "wb")
dtypes = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8",
          torch.int8: "i8", torch.int16: "i16", torch.bool: "bool"}
MOST = 40  # samples of an operator and a type
LARGEST = 20000  # elements
CREATION = {"linspace", "logspace"}  # whose dtype is an argument
PAIRS = ("fft.", "stft", "istft", "complex", "polar", "real", "imag", "angle")  # complex numbers as pairs


class Unsuited(Exception):
    pass


def takes_pairs(name):
    return any(name == one or (one.endswith(".") and name.startswith(one)) for one in PAIRS)


def tensor(t):
    if t.is_complex() and takes_pairs(name):
        return dict(tensor(torch.view_as_real(t.detach().resolve_conj())), complex=True, grad=t.requires_grad)
    if t.dtype not in dtypes or t.layout != torch.strided or t.numel() > LARGEST:
        raise Unsuited(str(t.dtype))
    data = t.detach().contiguous().numpy().tobytes()
    at = elements.tell()
    elements.write(data)
    return {"tensor": [at, len(data)], "shape": list(t.shape), "dtype": dtypes[t.dtype], "grad": t.requires_grad}


def value(v):
    if isinstance(v, torch.Tensor):
        return tensor(v)
    if isinstance(v, torch.dtype):
        if name not in CREATION or v not in dtypes:
            raise Unsuited("a dtype")
        return {"dtype": dtypes[v]}
    if isinstance(v, (list, tuple, torch.Size)):
        return {"list": [value(one) for one in v]}
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if np.isfinite(v) else {"number": str(v)}
    raise Unsuited(type(v).__name__)


def tensors_in(v):
    if isinstance(v, torch.Tensor):
        yield v
    elif isinstance(v, (list, tuple)):
        for one in v:
            yield from tensors_in(one)
    elif isinstance(v, dict):
        for one in v.values():
            yield from tensors_in(one)


calls = []
for op in op_db:
    name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
    if wanted and op.name not in wanted and name not in wanted:
        continue
    complexes = (torch.complex64, torch.complex128) if takes_pairs(op.name) else ()
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8) + complexes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        grads = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex) and dtype in op.supported_backward_dtypes("cpu")
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=grads))
        except Exception:
            continue
        if len(samples) > MOST:
            samples = random.Random(1).sample(samples, MOST)
        for sample in samples:
            start = elements.tell()
            try:
                call = {"op": name, "args": [value(sample.input)] + [value(a) for a in sample.args],
                        "kwargs": {k: value(v) for k, v in sample.kwargs.items()}}
                state = torch.get_rng_state()
                result = op(sample.input, *sample.args, **sample.kwargs)
                torch.set_rng_state(state)
                results = [result] if isinstance(result, torch.Tensor) else list(tensors_in(result)) \
                    if isinstance(result, (list, tuple)) else None
                if results is None:
                    raise Unsuited(type(result).__name__)
                call["results"] = [tensor(r) for r in results]
                named = [sample.kwargs[name] for name in sorted(sample.kwargs)]
                inputs = [t for t in tensors_in([sample.input, sample.args, named]) if t.requires_grad]
                flowing = [r for r in results if r.requires_grad]
                if inputs and flowing:
                    flat = [torch.view_as_real(r.resolve_conj()) if r.is_complex() else r for r in results]
                    weights = [torch.randn(r.shape, dtype=r.dtype) if r.requires_grad else None for r in flat]
                    total = sum((r * w).sum() for r, w in zip(flat, weights) if w is not None)
                    gradients = torch.autograd.grad(total, inputs, allow_unused=True)
                    call["weights"] = [None if w is None else tensor(w) for w in weights]
                    call["gradients"] = [None if g is None else tensor(g) for g in gradients]
                calls.append(call)
            except Exception as problem:
                elements.seek(start)
                elements.truncate()
                if not isinstance(problem, Unsuited):
                    print(f"{name} {dtype}: {str(problem)[:80]}", file=sys.stderr)
json.dump(calls, open(out_path, "w"))
print(f"{len(calls)} samples of {len({c['op'] for c in calls})} operators")
