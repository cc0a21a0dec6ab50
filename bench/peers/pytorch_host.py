"""Host overhead per call in PyTorch on the CPU: the cases of declivity_bench's suite `host`.

Usage: pytorch_host.py
"""
import os
import statistics
import time

import torch


def us_each(calls, call, rounds=41):
    times = []
    for number in range(rounds + 1):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        if number:
            times.append((time.perf_counter() - begin) * 1e6 / calls)
    return statistics.median(times)


def backward_node(nodes):
    x = torch.ones(16, requires_grad=True)
    times = []
    for number in range(42):
        y = x
        for _ in range(nodes):
            y = y + 1.0
        seed = torch.ones(16)
        begin = time.perf_counter()
        y.backward(seed)
        seconds = time.perf_counter() - begin
        x.grad = None
        if number:
            times.append(seconds * 1e6 / nodes)
    return statistics.median(times)


STEPS, BATCH, INPUTS, UNITS = 20, 32, 64, 128


def lstm(by_hand):
    x = [torch.randn(BATCH, INPUTS) for _ in range(STEPS)]
    wi = (torch.randn(4 * UNITS, INPUTS) * 0.1).requires_grad_()
    wh = (torch.randn(4 * UNITS, UNITS) * 0.1).requires_grad_()
    bias = torch.zeros(4 * UNITS).requires_grad_()
    none = torch.zeros(4 * UNITS)
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        h, c = torch.zeros(BATCH, UNITS), torch.zeros(BATCH, UNITS)
        for step in x:
            if by_hand:
                gates = torch.nn.functional.linear(step, wi, bias) + torch.nn.functional.linear(h, wh)
                i, f, g, o = gates.chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
            else:
                h, c = torch.lstm_cell(step, (h, c), wi, wh, bias, none)
        h.sum().backward()
        wi.grad = wh.grad = bias.grad = None
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main():
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    print("PyTorch", torch.__version__, "with", torch.get_num_threads(), "threads")
    a, b, rows = torch.randn(16), torch.randn(16), torch.randn(16, 16)
    w = torch.randn(16, requires_grad=True)
    print(f"{'call, a + b of 16':<52} {us_each(200, lambda: a + b):>9.4g} us")
    print(f"{'call with a graph, a + w':<52} {us_each(200, lambda: a + w):>9.4g} us")
    print(f"{'call, matmul of 16 x 16':<52} {us_each(200, lambda: rows @ rows):>9.4g} us")
    print(f"{'backward node, x + 1':<52} {backward_node(1000):>9.4g} us")
    print(f"{'LSTM by hand, 20 steps, forward and backward':<52} {lstm(True):>9.4g} ms")
    print(f"{'LSTM by lstm_cell, 20 steps, forward and backward':<52} {lstm(False):>9.4g} ms")


if __name__ == "__main__":
    main()
