#!/usr/bin/env python3
"""compare_predict.py CROSSTALK [N [SIDE]]: pictures a second from JPEG files to probabilities, crosstalk
predict beside PyTorch, on this machine, in one run.

Writes N (10000) JPEG files of 160x120 pixels into a scratch folder, trains a ResNet-20 with batchnorm on
a few of them for pictures of SIDE (32) pixels, and lets both sides predict all files: Pillow decodes and
resizes for PyTorch in DataLoader workers, convolutions are PyTorch's own. Of PyTorch's settings (workers,
threads, batch size) the fastest on 1000 pictures is taken. Both must agree on every picture. Prints
seconds of the clock and of the processors (all processes together; on a busy machine those count) and
their ratios. Needs torch, Pillow and numpy.
"""
import csv
import itertools
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from PIL import Image
from torch import nn

CLASSES = 10


def write_pictures(folder, n):
    """Coarse colours of a class and noise, enlarged: files of about 5 kB, as photographs of this size."""
    rng = np.random.default_rng(1)
    for i in range(n):
        label = i % CLASSES
        os.makedirs(f"{folder}/{label}", exist_ok=True)
        small = rng.integers(0, 256, (15, 20, 3), dtype=np.uint8) // 2 + 12 * label
        picture = Image.fromarray(small.astype(np.uint8)).resize((160, 120), Image.BICUBIC)
        picture.save(f"{folder}/{label}/{i:05}.jpg", quality=85)


class Block(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = nn.Sequential()
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False),
                                            nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.downsample(x))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        widths = [16, 16, 32, 64]
        for stage in (1, 2, 3):
            blocks = [Block(widths[stage - 1] if k == 0 else widths[stage], widths[stage],
                            2 if stage > 1 and k == 0 else 1) for k in range(3)]
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def read_model(path):
    """The tensors of a .safetensors file and what it says about itself."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    notes = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors, notes


class Files(torch.utils.data.Dataset):
    """As the model was trained: the shorter side to SIDE pixels, the middle, normalised."""

    def __init__(self, paths, side, notes):
        self.paths, self.side = paths, side
        self.mean = np.array(notes["mean"].split(","), np.float32).reshape(3, 1, 1)
        self.std = np.array(notes["deviation"].split(","), np.float32).reshape(3, 1, 1)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        picture = Image.open(self.paths[i]).convert("RGB")
        short, side = min(picture.size), self.side
        size = tuple(side if x == short else int(side * x / short) for x in picture.size)
        picture = picture.resize(size, Image.BILINEAR)
        left, top = round((size[0] - side) / 2), round((size[1] - side) / 2)
        pixels = np.asarray(picture)[top:top + side, left:left + side].transpose(2, 0, 1)
        return torch.from_numpy((pixels.astype(np.float32) / 255 - self.mean) / self.std)


def run_torch(module, files, workers, threads, batch):
    torch.set_num_threads(threads)
    loader = torch.utils.data.DataLoader(files, batch_size=batch, num_workers=workers)
    with torch.inference_mode():
        return torch.cat([torch.softmax(module(x), 1) for x in loader]).numpy()


def timed(call):
    """(seconds of the clock, of the processors, result)"""
    def used():
        return sum(sum(resource.getrusage(who)[:2])
                   for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    began, busy = time.time(), used()
    result = call()
    return time.time() - began, used() - busy, result


def choose_settings(module, files):
    best = None
    for workers, threads, batch in itertools.product((0, 1, 2), (1, 2), (32, 256)):
        wall, _, _ = timed(lambda: run_torch(module, files, workers, threads, batch))
        if best is None or wall < best[0]:
            best = (wall, workers, threads, batch)
    return best[1:]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    n, side = int((sys.argv + [0, 0])[2] or 10000), int((sys.argv + [0, 0, 0])[3] or 32)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        write_pictures("pictures", n)
        write_pictures("few", 200)
        subprocess.run([program, "train", "--quiet", "--dataset", "folder", "--data-dir", "few",
                        "--image-size", str(side), "--test-fraction", "0.2", "--model", "resnet20",
                        "--norm", "batchnorm", "--agents", "2", "--iterations", "20", "--device", "cpu",
                        "--batch-size", "16", "--out", "run"], check=True)
        tensors, notes = read_model("run/consensus.safetensors")
        module = ResNet20().eval()
        module.load_state_dict(tensors, strict=False)
        paths = sorted(os.path.join(at, name) for at, _, names in os.walk("pictures") for name in names)
        command = [program, "predict", "run", "pictures", "--device", "cpu", "--out", "p.csv", "--quiet"]
        chosen = choose_settings(module, Files(paths[:1000], side, notes))
        theirs = timed(lambda: run_torch(module, Files(paths, side, notes), *chosen))
        ours = timed(lambda: subprocess.run(command, check=True))
        with open("p.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["file"] for row in rows] == paths
        worst = max(abs(float(row["probability"]) - theirs[2][k].max()) for k, row in enumerate(rows))
    print("machine: %d cores, load %.1f" % (os.cpu_count(), os.getloadavg()[0]))
    print("crosstalk: %.0f pictures/s, %.1f s of the processors" % (n / ours[0], ours[1]))
    print("PyTorch %s, %d workers, %d threads, batches of %d: %.0f pictures/s, %.1f s of the processors"
          % (torch.__version__, *chosen, n / theirs[0], theirs[1]))
    print("ratio: %.2f by the clock, %.2f by the processors; probabilities differ by at most %.1e"
          % (theirs[0] / ours[0], theirs[1] / ours[1], worst))


if __name__ == "__main__":
    main()
