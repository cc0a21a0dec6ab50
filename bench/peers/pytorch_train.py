"""Training steps and inference of the networks of declivity_bench's suite `train`, in PyTorch on the CPU.

Prints PyTorch's build, then lines in the format of the suite: "mnist batch 128 training   1234 images/s".
Usage: pytorch_train.py [NAME...]     with NAME such as "mnist batch 128"
"""
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def mnist():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(64 * 5 * 5, 10))


def cifar10():
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 8 * 8, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.second_norm(self.second(F.relu(self.first_norm(self.first(x)))))
        return F.relu(y + self.shortcut(x))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for out in (16, 32, 64):
        for block in range(3):
            layers.append(Block(channels, out, 2 if block == 0 and out != 16 else 1))
            channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETS = [("mnist", 128, (1, 28, 28), mnist), ("mnist", 32, (1, 28, 28), mnist), ("cifar10", 64, (3, 32, 32), cifar10),
        ("resnet20", 64, (3, 32, 32), resnet20)]


def images_per_second(batch, call):
    call()
    begin = time.perf_counter()
    call()
    calls = max(1, int(0.012 / (time.perf_counter() - begin)) + 1)
    rounds = []
    for _ in range(9):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - begin) / calls)
    return batch / statistics.median(rounds)


def main():
    if "OMP_NUM_THREADS" not in os.environ:  # its default was one thread on a machine with two processors
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    print("PyTorch", torch.__version__, "with", torch.get_num_threads(), "threads")
    print(torch.__config__.show())
    torch.manual_seed(0)
    for name, batch, shape, make in NETS:
        title = f"{name} batch {batch}"
        if len(sys.argv) > 1 and title not in sys.argv[1:]:
            continue
        model = make()
        optimizer = torch.optim.Adam(model.parameters())
        images, labels = torch.rand(batch, *shape), torch.randint(0, 10, (batch,))

        def step():
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()

        def infer():
            with torch.no_grad():
                model(images)

        model.train()
        print(f"{title + ' training':<52} {images_per_second(batch, step):>9.4g} images/s", flush=True)
        model.eval()
        print(f"{title + ' inference':<52} {images_per_second(batch, infer):>9.4g} images/s", flush=True)


if __name__ == "__main__":
    main()
