#!/usr/bin/env python3
"""gpu_roofline.py FILE: the kernels of one ResNet-20 CCL iteration, from ncu's CSV.

For each kernel: how often it ran, time, bytes that went through device memory (ncu's dram counters;
ncu empties the caches before every kernel), floating-point operations of the matrix products
(counted from the network's shape: ring of 16, batch 32), and the shares of the two rates below.
"""

import collections
import csv
import re
import sys

BANDWIDTH = 4.3e12  # bytes/s of a large copy, measured
TENSOR = 300e12  # flop/s of mma.sync in tf32: about 0.6 of the 494e12 that wgmma reaches
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
LAYER = 2 * 2.359296e6  # flop of a sample in a 3x3 layer of any stage
TRAIN, CROSS = 512, 1024  # samples

# Flop of all launches of a kernel: its name and products.
FLOP = {
    "forward_kernel<16, 1>": TRAIN * LAYER * (6 + 3 / 16), "forward_kernel<32, 1>": TRAIN * LAYER * 5,
    "forward_kernel<64, 1>": TRAIN * LAYER * 5, "forward_kernel<16, 0>": CROSS * LAYER * (6 + 3 / 16),
    "forward_kernel<32, 0>": CROSS * LAYER * 5, "forward_kernel<64, 0>": CROSS * LAYER * 5,
    "back_kernel<16>": TRAIN * LAYER * 6, "back_kernel<32>": TRAIN * LAYER * 5,
    "back_kernel<64>": TRAIN * LAYER * 5, "tile_kernel<32, 16, 1>": (TRAIN + CROSS) * LAYER * 5 / 9,
    "tile_kernel<64, 32, 1>": (TRAIN + CROSS) * LAYER * 5 / 9,
    "tile_kernel<16, 32, 0>": TRAIN * LAYER * 5 / 9, "tile_kernel<32, 64, 0>": TRAIN * LAYER * 5 / 9,
    "wgrad_kernel<16, 16, 3, 4, 4, 4>": TRAIN * LAYER * (6 + 3 / 16),
    "wgrad_kernel<32, 32, 3, 2, 8, 4>": TRAIN * LAYER * 5,
    "wgrad_kernel<64, 64, 3, 1, 8, 4>": TRAIN * LAYER * 5,
    "wgrad_kernel<16, 32, 3, 4, 4, 2>": TRAIN * LAYER / 2,
    "wgrad_kernel<32, 64, 3, 1, 4, 4>": TRAIN * LAYER / 2,
    "strided_kernel<16>": (TRAIN + CROSS) * LAYER * 5 / 9, "strided_kernel<32>": (TRAIN + CROSS) * LAYER * 5 / 9,
    "strided_back_kernel<16>": TRAIN * LAYER * 5 / 9, "strided_back_kernel<32>": TRAIN * LAYER * 5 / 9,
    "strided_wgrad_kernel<16>": TRAIN * LAYER * 5 / 9, "strided_wgrad_kernel<32>": TRAIN * LAYER * 5 / 9,
    "wgrad_kernel<16, 32, 1, 4, 4, 2>": TRAIN * LAYER / 18,
    "wgrad_kernel<32, 64, 1, 1, 4, 4>": TRAIN * LAYER / 18,
}


def read(path):
    """[(kernel, {metric: value in seconds or bytes})] in the order of the launches."""
    with open(path) as file:
        rows = csv.DictReader(line for line in file if line.startswith('"'))
        launches = collections.OrderedDict()
        for row in rows:
            name = re.sub(r"\(.*", "", row["Kernel Name"]).replace("void ", "")
            launch = launches.setdefault(row["ID"], (name, {}))
            value = float(row["Metric Value"].replace(",", ""))
            launch[1][row["Metric Name"]] = value * UNITS.get(row["Metric Unit"], 1.0)
    return list(launches.values())


def last_iteration(launches):
    """From the packing of the weights to the large update; CCL's are longer than plain ones."""
    parts, part = [], []
    for launch in launches:
        if launch[0] == "pack_kernel":
            parts.append(part)
            part = []
        part.append(launch)
    parts.append(part)
    most = max(len(p) for p in parts[1:])
    return [p for p in parts[1:] if len(p) == most][-1]


def main():
    total = collections.OrderedDict()
    for name, metrics in last_iteration(read(sys.argv[1])):
        entry = total.setdefault(name, [0, 0.0, 0.0])
        entry[0] += 1
        entry[1] += metrics["gpu__time_duration.sum"]
        entry[2] += metrics["dram__bytes_read.sum"] + metrics["dram__bytes_write.sum"]
    print("| kernel | launches | us | MB | GFLOP | of 4.3 TB/s | of 300 TFLOP/s |")
    print("|---|---|---|---|---|---|---|")
    for name, (n, seconds, n_bytes) in sorted(total.items(), key=lambda item: -item[1][1]):
        flop = FLOP.get(name, 0.0)
        print(f"| {name} | {n} | {seconds * 1e6:.0f} | {n_bytes / 1e6:.0f} | {flop / 1e9:.1f} | "
              f"{n_bytes / seconds / BANDWIDTH:.2f} | {flop / seconds / TENSOR:.2f} |")
    print(f"all: {sum(e[1] for e in total.values()) * 1e3:.2f} ms in "
          f"{sum(e[0] for e in total.values())} launches")


if __name__ == "__main__":
    main()
