"""Child process of declivity_bench that times PyTorch interleaved with it: a JSON line in, a line out. PyTorch runs on the CPU,
or on the device DECLIVITY_BENCH_TORCH_DEVICE ("cuda"), in full float32.

  {"load": [{"path", "shape", "dtype"}, ...]}     x[0], x[1], ...: raw elements
  {"case": CODE, "out": PATH}                     defines `def call(): return CODE`, calls it once, writes its first result as f64
  {"run": N}                                      calls it N times

Answers "ok", or the error. With a number "leaves" in the case, CODE's result is differentiated with respect to the first inputs, with the last x as
the output gradient, and the gradient of x[0] is written.
"""
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
import torch
import torch.nn.functional as F  # used by the code of cases

import pytorch_gpt as gpt  # used by the code of cases

device = os.environ.get("DECLIVITY_BENCH_TORCH_DEVICE", "cpu")
torch.set_default_device(device)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
x = []
call = None


def first(result):
    return result if isinstance(result, torch.Tensor) else first(result[0])


for line in sys.stdin:
    request = json.loads(line)
    try:
        if "load" in request:
            files = [np.fromfile(item["path"], dtype=item["dtype"]).reshape(item["shape"]) for item in request["load"]]
            x = [torch.from_numpy(elements).to(device) for elements in files]
        elif "case" in request:
            code = compile(request["case"], "case", "eval")
            leaves = x[: request.get("leaves", 0)]
            if leaves:
                for leaf in leaves:
                    leaf.requires_grad_()

                def call():
                    return torch.autograd.grad(first(eval(code)), leaves, x[-1])[0]
            else:

                def call():
                    with torch.no_grad():
                        return eval(code)
            first(call()).detach().to(torch.float64).cpu().numpy().tofile(request["out"])
        else:
            for _ in range(request["run"]):
                call()
            if device != "cpu":
                torch.cuda.synchronize()
        print("ok", flush=True)
    except Exception as problem:  # reported as the answer
        print(f"{type(problem).__name__}: {problem}".replace("\n", " "), flush=True)
