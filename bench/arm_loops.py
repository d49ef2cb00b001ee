#!/usr/bin/env python3
"""The inner loops of the cpu kernels for 64-bit ARM, without such a processor: what a multiply-add
costs in instructions, and in cycles as llvm-mca models them.

    bench/arm_loops.py [--cpu NAME...] [--set portable|neon]... [KERNEL...]

Compiles src/backend/cpu/kernels with aarch64-linux-gnu-gcc for both sets and takes, of every function
named in HOT, the innermost loop with the most vector multiply-adds. A line of the table:
  loop       instructions of one round of the loop
  fma        of them vector multiply-adds (4 floats each)
  loads      of them loads that are no spills; a pair (ldp) counts once
  spills     of them loads and stores of the stack
  dup        of them broadcasts (dup, ld1r), which take a place in the vector pipes
  per fma    instructions per multiply-add
  NAME       predicted share of that processor's peak, in %: cycles that the multiply-adds alone
             need, over cycles of the loop, when every load hits the first-level cache
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ["-std=c11", "-O3", "-DNDEBUG", "-fPIC", "-ffp-contract=fast", "-fno-math-errno",
         "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE"]

# What is computed, its file, and the function that holds the loop (without the set's name).
HOT = [
    ("5x5 convolution, direct", "conv", "row_of_tile"),
    ("its weights' gradient", "conv_wgrad", "tile_of"),
    ("LeNet-5, first 5x5 layer", "winograd5_rows", "ct_rows5_pool_"),
    ("its weights' gradient, Winograd", "winograd5_rows", "ct_rows5_backward_"),
    ("LeNet-5, second 5x5 layer", "winograd5", "ct_winograd5_product_"),
    ("its weights' gradient, 2-d Winograd", "winograd5_backward", ""),
    ("3x3 Winograd products", "winograd_tile4", "winograd_products"),
    ("3x3 Winograd weights' gradient", "winograd_tile4", "winograd_backward"),
    ("3x3 Winograd products, stride 2", "winograd2", "conv"),
    ("linear layer", "matrix", "ct_linear_"),
    ("linear layer, weights' gradient", "matrix", "ct_outer_"),
    ("1x1 convolution, weights' gradient", "lanes_outer", "ct_lanes_outer_"),
    ("depthwise 3x3", "depthwise", "ct_depthwise_"),
    ("EvoNorm-S0", "group_norms", "ct_norm_"),
]


def compile_kernel(name, kind, folder):
    out = os.path.join(folder, f"{name}-{kind}.s")
    neon = ["-DCT_NEON=1", "-fno-schedule-insns"] if kind == "neon" else []
    subprocess.run(["aarch64-linux-gnu-gcc", *FLAGS, f"-DCT_ISA={kind}", *neon, "-I" + ROOT + "/src", "-S",
                    f"{ROOT}/src/backend/cpu/kernels/{name}.c", "-o", out], check=True)
    return open(out).read()


def functions(text):
    """name -> lines of its assembly."""
    found, name = {}, None
    for line in text.splitlines():
        m = re.match(r"([A-Za-z_][\w.]*):$", line)
        if m and not line.startswith(".L"):
            name = m.group(1)
            found[name] = []
        elif name is not None:
            found[name].append(line.strip())
    return found


def is_code(line):
    return line and not line.startswith((".", "//", "#")) and not line.endswith(":")


def innermost_loops(lines):
    """Lists of instructions between a label and a jump back to it, with no other such loop inside."""
    label = {l[:-1]: i for i, l in enumerate(lines) if re.match(r"\.L\w+:$", l)}
    spans = []
    for i, line in enumerate(lines):
        m = re.match(r"(b\.?\w*|cbn?z|tbn?z)\s.*?(\.L\w+)$", line)
        if m and label.get(m.group(2), i) < i:
            spans.append((label[m.group(2)], i))
    inner = [s for s in spans if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return [[l for l in lines[a:b + 1] if is_code(l)] for a, b in inner]


FMA = re.compile(r"fml[as]\s+v\d+\.4s")
STACK = re.compile(r"\[(sp|x29)\b")


def count(loop):
    n = {"loop": len(loop), "fma": sum(bool(FMA.match(l)) for l in loop)}
    memory = [l for l in loop if re.match(r"(ld|st)", l)]
    n["spills"] = sum(bool(STACK.search(l)) for l in memory)
    n["loads"] = sum(l.startswith("ld") and not STACK.search(l) for l in memory)
    n["dup"] = sum(l.startswith(("dup", "ld1r")) for l in loop)
    return n


def mca_program():
    for name in ("llvm-mca-22", "llvm-mca-19", "llvm-mca-18", "llvm-mca-17", "llvm-mca"):
        if shutil.which(name):
            return name
    sys.exit("llvm-mca is not installed (Debian: llvm-19)")


PIPES = {"neoverse-n1": 2, "neoverse-v1": 4, "neoverse-n2": 2, "neoverse-v2": 4, "cortex-a57": 2,
         "cortex-a55": 1}


def share_of_peak(loop, n_fma, cpu):
    text = "\n".join(l for l in loop if not re.match(r"(b\.?\w*|cbn?z|tbn?z)\s", l))
    said = subprocess.run([mca_program(), "-mtriple=aarch64", f"-mcpu={cpu}", "-iterations=200"],
                          input=text, capture_output=True, text=True, check=True).stdout
    cycles = int(re.search(r"Total Cycles:\s+(\d+)", said).group(1)) / 200
    return 100 * n_fma / PIPES[cpu] / cycles


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cpu", action="append", choices=sorted(PIPES))
    p.add_argument("--set", action="append", choices=["portable", "neon"])
    p.add_argument("--show", action="store_true", help="print the loops")
    p.add_argument("--all", action="store_true", help="every inner loop with multiply-adds")
    p.add_argument("kernels", nargs="*", help="parts of names in the table")
    a = p.parse_args()
    cpus, sets = a.cpu or [], a.set or ["portable", "neon"]
    print("| loop of | set | loop | fma | loads | spills | dup | per fma |" + "".join(f" {c} |" for c in cpus))
    print("|---|---|" + "---:|" * (6 + len(cpus)))
    with tempfile.TemporaryDirectory() as folder:
        for title, file, function in HOT:
            if a.kernels and not any(k in title for k in a.kernels):
                continue
            for kind in sets:
                code = functions(compile_kernel(file, kind, folder))
                loops = [(count(l), l, f)
                         for f in code if f.startswith(function) for l in innermost_loops(code[f])]
                loops = sorted((l for l in loops if l[0]["fma"] >= 1), key=lambda l: -l[0]["fma"])
                for n, loop, f in loops if a.all else loops[:1]:
                    row = [n[k] for k in ("loop", "fma", "loads", "spills", "dup")]
                    row.append(f"{n['loop'] / n['fma']:.2f}")
                    row += [f"{share_of_peak(loop, n['fma'], c):.0f}" for c in cpus]
                    print(f"| {title}{' ' + f if a.all else ''} | {kind} | " + " | ".join(map(str, row)) + " |")
                    if a.show:
                        print("\n".join("    " + l for l in loop))
                if not loops:
                    print(f"| {title} | {kind} | no loop with multiply-adds in {function}* |")


if __name__ == "__main__":
    main()
