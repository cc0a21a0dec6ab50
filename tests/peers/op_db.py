#!/usr/bin/env python3
"""Writes PyTorch's own samples of its operators with their results, for declivity_op_db to compare.

    op_db.py OUT.json [NAME...]

Writes the calls to OUT.json, and the elements of tensors to OUT.bin. Requires the Python packages torch, numpy, expecttest
and hypothesis; without torch it exits with 77, which ctest shows as skipped. The samples are those of
torch.testing._internal.common_methods_invocations.op_db, in float32, float64 and integers. In addition, float32 samples
are modified, according to a call's "variant":

    f16, bf16    elements are rounded to the type, and PyTorch computes in float32, so that a result may differ by its own
                 rounding alone
    ties         small integers, many of them equal
    breakpoints  breakpoints of piecewise functions, with second derivatives
    extremes     small integers, infinities and NaN
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

out_path, selected = sys.argv[1], set(sys.argv[2:])
elements = open(out_path.rsplit(".", 1)[0] + ".bin", "wb")
dtypes = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8",
          torch.int8: "i8", torch.int16: "i16", torch.bool: "bool", torch.float16: "f16", torch.bfloat16: "bf16"}
MAX_SAMPLES = 40  # max samples per operator and type
MAX_CHANGED = 10  # max samples per operator and variant
LARGEST = 20000  # max elements
REDUCED = {"f16": torch.float16, "bf16": torch.bfloat16}
POINTS = torch.tensor([-6.0, -3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0])
# Operators whose results depend on the algorithm for equal, infinite or random numbers, or whose modified arguments are
# invalid: unsorted boundaries, values that are not log-probabilities, singular factors.
UNCHANGED = ("linalg.", "fft.", "stft", "istft", "svd", "lu", "qr", "cholesky", "ormqr", "pinverse", "geqrf", "eig",
             "triangular_solve", "logdet", "normal", "bernoulli", "multinomial", "rand", "uniform", "nn.functional.dropout",
             "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "empty",
             "new_empty", "searchsorted", "bucketize", "unique", "mode", "cholesky_inverse", "cholesky_solve",
             "nn.functional.ctc_loss", "_upsample_bilinear2d_aa")
# These read out of bounds if an index is NaN.
OUT_OF_BOUNDS = {"extremes": ("grid_sampler_2d", "grid_sampler_3d", "nn.functional.grid_sample")}
CREATION = {"linspace", "logspace"}  # whose dtype is an argument
PAIRS = ("fft.", "stft", "istft", "complex", "polar", "real", "imag", "angle")  # complex numbers as pairs


class Unsupported(Exception):
    pass


def takes_pairs(name):
    return any(name == item or (item.endswith(".") and name.startswith(item)) for item in PAIRS)


def tensor(t):
    if t.is_complex() and takes_pairs(name):
        return dict(tensor(torch.view_as_real(t.detach().resolve_conj())), complex=True, grad=t.requires_grad)
    if t.dtype not in dtypes or t.layout != torch.strided or t.numel() > LARGEST:
        raise Unsupported(str(t.dtype))
    plain = t.detach().contiguous()
    if plain.dtype == torch.bfloat16:
        plain = plain.view(torch.int16)
    data = plain.numpy().tobytes()
    at = elements.tell()
    elements.write(data)
    return {"tensor": [at, len(data)], "shape": list(t.shape), "dtype": dtypes[t.dtype], "grad": t.requires_grad}


def value(v):
    if isinstance(v, torch.Tensor):
        return tensor(v)
    if isinstance(v, torch.dtype):
        if name not in CREATION or v not in dtypes:
            raise Unsupported("a dtype")
        return {"dtype": dtypes[v]}
    if isinstance(v, (list, tuple, torch.Size)):
        return {"list": [value(item) for item in v]}
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if np.isfinite(v) else {"number": str(v)}
    raise Unsupported(type(v).__name__)


def changed(v, variant, generator):
    """An argument with its floating tensors modified for the variant."""
    if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
        return type(v)(changed(item, variant, generator) for item in v)
    if not isinstance(v, torch.Tensor) or v.dtype != torch.float32:
        return v
    with torch.no_grad():
        if variant in REDUCED:
            variant_value = v.detach().to(REDUCED[variant]).float()
        elif variant == "breakpoints":
            variant_value = POINTS[torch.randint(len(POINTS), v.shape, generator=generator)]
        else:
            variant_value = torch.round(v.detach() / 3)
            if variant == "extremes":
                which = torch.randint(15, v.shape, generator=generator)
                for at, number in enumerate((float("inf"), float("-inf"), float("nan"))):
                    variant_value = torch.where(which == at, torch.full_like(variant_value, number), variant_value)
    return variant_value.requires_grad_(v.requires_grad)


def in_variant_format(v, variant):
    """A tensor in the format of the variant."""
    return v.detach().to(REDUCED[variant]).requires_grad_(v.requires_grad) \
        if isinstance(v, torch.Tensor) and variant in REDUCED and v.dtype == torch.float32 else v


def arguments(v, variant):
    if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
        return {"list": [arguments(item, variant) for item in v]}
    return value(in_variant_format(v, variant))


def tensors_in(v):
    if isinstance(v, torch.Tensor):
        yield v
    elif isinstance(v, (list, tuple)):
        for item in v:
            yield from tensors_in(item)
    elif isinstance(v, dict):
        for item in v.values():
            yield from tensors_in(item)


calls = []


def record(op, name, sample, variant):
    """The call of a sample with its results. Raises Unsuited, or PyTorch's exception."""
    call = {"op": name, "args": [arguments(a, variant) for a in (sample.input, *sample.args)],
            "kwargs": {k: arguments(v, variant) for k, v in sample.kwargs.items()}}
    if variant:
        call["variant"] = variant
    state = torch.get_rng_state()
    result = op(sample.input, *sample.args, **sample.kwargs)
    torch.set_rng_state(state)
    results = [result] if isinstance(result, torch.Tensor) else list(tensors_in(result)) \
        if isinstance(result, (list, tuple)) else None
    if results is None:
        raise Unsupported(type(result).__name__)
    call["results"] = [tensor(r) for r in results]
    keyword_values = [sample.kwargs[name] for name in sorted(sample.kwargs)]
    inputs = [t for t in tensors_in([sample.input, sample.args, keyword_values]) if t.requires_grad]
    differentiable_results = [r for r in results if r.requires_grad]
    if inputs and differentiable_results:
        flat = [torch.view_as_real(r.resolve_conj()) if r.is_complex() else r for r in results]
        weights = [torch.randn(r.shape, dtype=r.dtype) if r.requires_grad else None for r in flat]
        if variant in REDUCED:
            weights = [None if w is None else w.to(REDUCED[variant]).float() for w in weights]
        total = sum((r * w).sum() for r, w in zip(flat, weights) if w is not None)
        twice = variant == "breakpoints" and op.supports_gradgrad
        gradients = torch.autograd.grad(total, inputs, allow_unused=True, create_graph=twice)
        call["weights"] = [None if w is None else tensor(in_variant_format(w, variant)) for w in weights]
        call["gradients"] = [None if g is None else tensor(g) for g in gradients]
        if twice and any(g is not None and g.requires_grad for g in gradients):
            second_weights = [torch.randn(g.shape) if g is not None and g.requires_grad else None for g in gradients]
            total = sum((g * w).sum() for g, w in zip(gradients, second_weights) if w is not None)
            second = [None if g is None else g + torch.zeros(g.shape)  # which may have no storage, but are zero by definition
                      for g in torch.autograd.grad(total, inputs, allow_unused=True)]
            call["second_weights"] = [None if w is None else tensor(w) for w in second_weights]
            call["second_gradients"] = [None if g is None else tensor(g) for g in second]
    return call


def append_call(op, name, sample, dtype, variant):
    start = elements.tell()
    try:
        calls.append(record(op, name, sample, variant))
    except Exception as problem:
        elements.seek(start)
        elements.truncate()
        if not isinstance(problem, Unsupported) and not variant:
            print(f"{name} {dtype}: {str(problem)[:80]}", file=sys.stderr)


for op in op_db:
    name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
    if selected and op.name not in selected and name not in selected:
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
        if len(samples) > MAX_SAMPLES:
            samples = random.Random(1).sample(samples, MAX_SAMPLES)
        for sample in samples:
            append_call(op, name, sample, dtype, None)
        if dtype != torch.float32:
            continue
        if len(samples) > MAX_CHANGED:
            samples = random.Random(2).sample(samples, MAX_CHANGED)
        unchanged_only = any(op.name == item or (item.endswith(".") and op.name.startswith(item)) for item in UNCHANGED)
        for variant in list(REDUCED) + ([] if unchanged_only else ["ties", "breakpoints", "extremes"]):
            if op.name in OUT_OF_BOUNDS.get(variant, ()):
                continue
            generator = torch.Generator().manual_seed(3)
            for sample in samples:
                try:
                    variant_value = type(sample)(changed(sample.input, variant, generator),
                                        args=tuple(changed(a, variant, generator) for a in sample.args),
                                        kwargs={k: changed(v, variant, generator) for k, v in sample.kwargs.items()})
                except Exception:
                    continue
                append_call(op, name, variant_value, dtype, variant)
json.dump(calls, open(out_path, "w"))
print(f"{len(calls)} samples of {len({c['op'] for c in calls})} operators")
