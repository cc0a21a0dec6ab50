"""Runs the suite `train` of declivity_bench and pytorch_train.py interleaved, and prints the ratios of their images per second.

Usage: beside_pytorch.py DECLIVITY_BENCH [--rounds N] [--python PYTHON]     PYTHON must have torch
"""
import argparse
import math
import pathlib
import re
import statistics
import subprocess
import sys

LINE = re.compile(r"^(.+ batch \d+ (?:training|inference)) +([0-9.e+]+) images/s$")


def figures(command):
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        match = LINE.match(line.rstrip())
        if match:
            found[match[1]] = float(match[2])
    return found, text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    script = str(pathlib.Path(__file__).with_name("pytorch_train.py"))
    ratios, ours, theirs = {}, {}, {}
    for number in range(options.rounds):
        mine, _ = figures([options.bench, "train"])
        peer, text = figures([options.python, script])
        if number == 0:
            print(text[:text.index("mnist batch")])
        for name, value in mine.items():
            if name in peer:
                ratios.setdefault(name, []).append(value / peer[name])
                ours.setdefault(name, []).append(value)
                theirs.setdefault(name, []).append(peer[name])
    print(f"{'case':<34} {'ours':>9} {'PyTorch':>9}  ratio (images/s, medians of {options.rounds})")
    for name, values in ratios.items():
        print(f"{name:<34} {statistics.median(ours[name]):>9.4g} {statistics.median(theirs[name]):>9.4g}  {statistics.median(values):.2f}")
    for kind in ("training", "inference"):
        medians = [statistics.median(v) for name, v in ratios.items() if name.endswith(kind)]
        if medians:
            print(f"{kind} vs PyTorch: geomean {math.exp(sum(map(math.log, medians)) / len(medians)):.2f}, worst {min(medians):.2f}")


if __name__ == "__main__":
    main()
