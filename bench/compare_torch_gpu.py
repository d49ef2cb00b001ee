#!/usr/bin/env python3
"""The same training iterations on one GPU in PyTorch and in crosstalk, and the ratio.

One iteration: n agents on a ring, 32 samples each, QG-DSGDm-N or CCL with the mean squared
distance, written over rows [n, P] of parameters as the equations have it. PyTorch runs the agents
in a loop, with vmap, and with vmap recorded as a CUDA graph, all with TF32 convolutions; then
`crosstalk bench` runs in the same process order on the same machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))

import networks  # noqa: E402

BATCH, N_CLASSES = 32, 10
LR, BETA, WEIGHT_DECAY, LAMBDA = 0.01, 0.9, 1e-4, 0.01
MODELS = {
    "lenet5": (networks.LeNet5, (1, 28, 28), "shapes"),
    "resnet20": (lambda: networks.ResNetSmall(20, "evonorm"), (3, 32, 32), "noise"),
}


def evonorm(self, x):
    """y = x s(x) / sqrt(var_g + eps) w + b with the hard sigmoid: hardswish."""
    n, c, h, w = x.shape
    variance = x.reshape(n, 8, -1).var(2, unbiased=False)
    scale = (torch.rsqrt(variance + 1e-5)[:, :, None] * self.weight.view(8, -1)).reshape(n, c, 1, 1)
    return F.hardswish(x) * scale + self.bias.view(1, -1, 1, 1)


class Iteration:
    """State and one step of all agents."""

    def __init__(self, model, n, ccl):
        make, shape, _ = MODELS[model]
        torch.manual_seed(1)
        modules = [make().float().cuda() for _ in range(n)]
        for module in modules[1:]:
            module.load_state_dict(modules[0].state_dict())
        self.n, self.ccl, self.base = n, ccl, modules[0]
        params, _ = stack_module_state(modules)
        self.x = {k: v.detach().clone() for k, v in params.items()}
        self.m = {k: torch.zeros_like(v) for k, v in self.x.items()}
        self.images = torch.randn(n, BATCH, *shape, device="cuda")
        self.labels = torch.randint(0, N_CLASSES, (n, BATCH), device="cuda")

    def network(self, params, images):
        return functional_call(self.base, params, (images,))

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


def graphed(iteration):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            iteration.step(iteration.rows)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        iteration.step(iteration.rows)
    return graph.replay


def crosstalk_ms(program, model, n, algorithm, precision):
    command = [program, "bench", "--json", "--device", "cuda", "--precision", precision, "--model",
               model, "--dataset", MODELS[model][2], "--agents", str(n), "--algorithm", algorithm,
               "--lambda-m", str(LAMBDA), "--lambda-d", str(LAMBDA), "--warmup", "20", "--repeat",
               "50"]
    if algorithm != "ccl":
        del command[command.index("--lambda-m"):command.index("--warmup")]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit("crosstalk: " + said.stderr.strip())
    return json.loads(said.stdout)["ms_per_iteration"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "crosstalk"))
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--models", default="resnet20,lenet5")
    parser.add_argument("--precision", default="tf32")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    networks.EvoNorm.forward = evonorm
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, ms per iteration (median)")
    print(f"{'':24}{'loop':>9}{'vmap':>9}{'graph':>9}{'crosstalk':>11}{'graph / crosstalk':>19}")
    for model in options.models.split(","):
        for algorithm in ("ccl", "qg-dsgdm"):
            it = Iteration(model, options.agents, algorithm == "ccl")
            loop = time_ms(lambda: it.step(it.looped), 2, 5)
            rows = time_ms(lambda: it.step(it.rows), 3, 10)
            graph = time_ms(graphed(it), 3, 20)
            own = crosstalk_ms(options.program, model, options.agents, algorithm, options.precision)
            print(f"{model + ' ' + algorithm:24}{loop:9.2f}{rows:9.2f}{graph:9.2f}{own:11.3f}"
                  f"{graph / own:19.1f}", flush=True)


if __name__ == "__main__":
    main()
