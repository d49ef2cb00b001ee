#!/usr/bin/env python3
"""The same training iterations on one GPU in PyTorch and in crosstalk: one table, one run.

One iteration: n agents on a ring, 32 samples each, QG-DSGDm-N or CCL with the mean squared
distance, written over rows [n, P] of parameters as the equations have it. PyTorch runs the agents
with vmap or in a loop (with pictures and weights in channels_last), either one recorded as a CUDA
graph, with TF32 or under bf16 autocast; --eager adds both without a graph. Then `crosstalk bench`
runs on the same card: with --before, an older build too. The last column is PyTorch's best time
by crosstalk's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))

import networks  # noqa: E402

BATCH, N_CLASSES = 32, 10
LR, BETA, WEIGHT_DECAY, LAMBDA = 0.01, 0.9, 1e-4, 0.01
# The network, a picture, agents, and crosstalk's data; ResNet-18 gets pictures of random bytes.
MODELS = {
    "resnet18": (lambda: networks.ResNet18("evonorm"), (3, 224, 224), 4, "npy"),
    "mobilenetv2": (lambda: networks.MobileNetV2("evonorm"), (3, 32, 32), 16, "noise"),
    "vgg11": (lambda: networks.Vgg11("evonorm"), (3, 32, 32), 16, "noise"),
    "resnet20": (lambda: networks.ResNetSmall(20, "evonorm"), (3, 32, 32), 16, "noise"),
    "lenet5": (networks.LeNet5, (1, 28, 28), 16, "shapes"),
}


def evonorm(self, x):
    """y = x s(x) / sqrt(var_g + eps) w + b with the hard sigmoid: hardswish."""
    n, c, h, w = x.shape
    variance = x.reshape(n, 8, -1).var(2, unbiased=False)
    scale = (torch.rsqrt(variance + 1e-5)[:, :, None] * self.weight.view(8, -1)).reshape(n, c, 1, 1)
    return F.hardswish(x) * scale + self.bias.view(1, -1, 1, 1)


class Iteration:
    """State and one step of all agents."""

    def __init__(self, model, ccl, precision, channels_last):
        make, shape, n, _ = MODELS[model]
        self.precision = precision
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        torch.manual_seed(1)
        modules = [make().float().cuda() for _ in range(n)]
        for module in modules[1:]:
            module.load_state_dict(modules[0].state_dict())
        self.n, self.ccl, self.base = n, ccl, modules[0]
        params, _ = stack_module_state(modules)
        self.x = {k: v.detach().clone() for k, v in params.items()}
        self.m = {k: torch.zeros_like(v) for k, v in self.x.items()}
        self.images = torch.randn(n, BATCH, *shape, device="cuda")
        if channels_last:
            self.images = self.images.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
        self.labels = torch.randint(0, N_CLASSES, (n, BATCH), device="cuda")

    def network(self, params, images):
        if self.layout == torch.channels_last:
            params = {k: v.contiguous(memory_format=self.layout) if v.dim() == 4 else v
                      for k, v in params.items()}
        with torch.autocast("cuda", torch.bfloat16, enabled=self.precision == "bf16"):
            features, logits = functional_call(self.base, params, (images,))
        return features.float(), logits.float()

    def features(self, params, images):
        return self.network(params, images)[0]

    def loss(self, params, images, labels, left, right, mean):
        features, logits = self.network(params, images)
        value = F.cross_entropy(logits, labels)
        if self.ccl:
            value = value + LAMBDA * (F.mse_loss(features, left) + F.mse_loss(features, right))
            value = value + LAMBDA * F.mse_loss(features, mean[labels])
        return value

    def rows(self, function, *arguments):
        return vmap(function)(*arguments)

    def looped(self, function, *arguments):
        results = []
        for i in range(self.n):
            one = [{k: v[i] for k, v in a.items()} if isinstance(a, dict) else a[i]
                   for a in arguments]
            results.append(function(*one))
        if isinstance(results[0], tuple):
            return ({k: torch.stack([r[0][k] for r in results]) for k in results[0][0]},
                    torch.stack([r[1] for r in results]))
        return torch.stack(results)

    def cross(self, each):
        """Neighbours' features of the own batch, and the class means of the neighbourhood."""
        zeros = torch.zeros(self.n, BATCH, 1, device="cuda")
        if not self.ccl:
            return zeros, zeros, zeros
        with torch.no_grad():
            shifted = [{k: v.roll(s, 0) for k, v in self.x.items()} for s in (1, -1)]
            left, right = [each(self.features, x, self.images) for x in shifted]
            onehot = F.one_hot(self.labels, N_CLASSES).float()
            own = each(self.features, self.x, self.images)
            sums = onehot.transpose(1, 2) @ own
            counts = onehot.sum(1)
            for z, s in ((left, -1), (right, 1)):
                sums = sums + (onehot.transpose(1, 2) @ z).roll(s, 0)
                counts = counts + onehot.sum(1).roll(s, 0)
            return left, right, sums / counts.clamp(min=1)[:, :, None]

    def step(self, each):
        left, right, mean = self.cross(each)
        gradient, _ = each(grad_and_value(self.loss), self.x, self.images, self.labels, left, right,
                           mean)
        with torch.no_grad():
            for k, x in self.x.items():
                g = gradient[k] + WEIGHT_DECAY * x
                m = BETA * self.m[k] + g
                mixed = (x.roll(1, 0) + x + x.roll(-1, 0)) / 3
                move = mixed - x - LR * (g + BETA * m)
                x += move
                self.m[k].mul_(BETA).add_(move, alpha=-(1 - BETA) / LR)


def time_ms(function, n_warmup, n_repeat):
    for _ in range(n_warmup):
        function()
    times = []
    for _ in range(n_repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def graphed(step):
    """The step as a CUDA graph, after a few on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def torch_ms(model, algorithm, precision, eager):
    """ms per iteration by way of running it."""
    times = {}
    for way, channels_last in (("vmap", False), ("loop", True)):
        it = Iteration(model, algorithm == "ccl", precision, channels_last)
        each = it.rows if way == "vmap" else it.looped
        if eager:
            times[way] = time_ms(lambda: it.step(each), 2, 5)
        times[way + "+graph"] = time_ms(graphed(lambda: it.step(each)), 3, 10)
        del it
        torch.cuda.empty_cache()
    return times


def write_pictures(folder, shape):
    """Random bytes as the NumPy arrays that `--dataset npy` reads."""
    for name, n in (("train", 1024), ("test", 64)):
        bytes_of = numpy.random.default_rng(1).integers(0, 256, (n, *shape), dtype=numpy.uint8)
        numpy.save(os.path.join(folder, name + "_images.npy"), bytes_of)
        numpy.save(os.path.join(folder, name + "_labels.npy"), numpy.arange(n) % N_CLASSES)


def crosstalk_ms(program, model, algorithm, precision, folder):
    _, shape, n, dataset = MODELS[model]
    command = [program, "bench", "--json", "--device", "cuda", "--precision", precision, "--model",
               model, "--dataset", dataset, "--agents", str(n), "--algorithm", algorithm,
               "--partition", "iid", "--warmup", "10", "--repeat", "30"]
    if dataset == "npy":
        if not os.path.exists(os.path.join(folder, "train_images.npy")):
            write_pictures(folder, shape)
        command += ["--data-dir", folder]
    if algorithm == "ccl":
        command += ["--lambda-m", str(LAMBDA), "--lambda-d", str(LAMBDA)]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit("crosstalk: " + said.stderr.strip())
    return json.loads(said.stdout)["ms_per_iteration"]


def print_rows(options, programs, folder, model):
    for algorithm in options.algorithms.split(","):
        for precision in options.precisions.split(","):
            theirs = torch_ms(model, algorithm, precision, options.eager)
            own = [crosstalk_ms(p, model, algorithm, precision, folder) for p in programs]
            cells = [f"{model}, {MODELS[model][2]} agents, {algorithm}", precision]
            cells += [f"{ms:.2f}" for ms in theirs.values()] + [f"{ms:.3f}" for ms in own]
            cells.append(f"{min(theirs.values()) / own[-1]:.1f}")
            print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "crosstalk"))
    parser.add_argument("--before", help="an older build, to be timed in the same run")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--algorithms", default="ccl")
    parser.add_argument("--precisions", default="tf32,bf16")
    parser.add_argument("--eager", action="store_true")
    options = parser.parse_args()
    programs = [options.before, options.program] if options.before else [options.program]
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    networks.EvoNorm.forward = evonorm
    heads = ["ms per iteration, median", ""]
    for way in ("vmap", "loop, channels_last"):
        heads += ([way] if options.eager else []) + [way + ", graph"]
    heads += (["crosstalk before"] if options.before else []) + ["crosstalk", "ratio"]
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models.split(","):
            print_rows(options, programs, folder, model)


if __name__ == "__main__":
    main()
