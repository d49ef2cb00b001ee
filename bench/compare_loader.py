#!/usr/bin/env python3
"""compare_loader.py DIR BENCH_DECODE [SIZE ...]: pictures a second to augmented batches, crosstalk's
loader beside torchvision's ImageFolder + DataLoader, turn by turn on the same two cores.

DIR is a folder with train/<class>/; BENCH_DECODE the program built from bench/bench_decode.c. Both
sides: resize the shorter side to SIZE, RandomResizedCrop(SIZE), horizontal flip, batches of 32 in a
random order, two workers. torchvision also turns the pixels into normalised float tensors, which
crosstalk leaves to the backend; --no-tensor takes that out. Needs torch and torchvision.
"""
import json
import os
import subprocess
import sys
import time

import torch
import torchvision
from torchvision import transforms as T

ROUNDS = 3


def torchvision_rate(path, size, tensors):
    steps = [T.Resize(size), T.RandomResizedCrop(size), T.RandomHorizontalFlip()]
    if tensors:
        steps += [T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    else:
        steps += [T.PILToTensor()]
    data = torchvision.datasets.ImageFolder(os.path.join(path, "train"), T.Compose(steps))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=2)
    began = time.time()
    n = sum(len(labels) for _, labels in loader)
    return n / (time.time() - began)


def crosstalk_rate(path, program, size):
    lines = subprocess.run([program, path, str(size), "2", "1"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return {line["what"]: line["pictures_per_s"] for line in map(json.loads, lines)}


def main():
    arguments = [a for a in sys.argv[1:] if a != "--no-tensor"]
    tensors = "--no-tensor" not in sys.argv
    if len(arguments) < 2:
        sys.exit(__doc__)
    path, program = arguments[:2]
    torch.set_num_threads(1)
    for size in map(int, arguments[2:] or ["32", "144"]):
        best = {}
        for _ in range(ROUNDS):
            rates = crosstalk_rate(path, program, size)
            rates["torchvision"] = torchvision_rate(path, size, tensors)
            for name, rate in rates.items():
                best[name] = max(best.get(name, 0), rate)
        ratio = best["streamed"] / best["torchvision"]
        print("size %d: %s; streamed / torchvision = %.2f" % (
            size, ", ".join("%s %.0f/s" % item for item in best.items()), ratio), flush=True)


if __name__ == "__main__":
    main()
