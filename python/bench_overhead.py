"""What the library itself costs beside PyTorch, in one run.

    python3 python/bench_overhead.py [resnet|lenet|attention] [ccl|gt|dsgdm] [ITERATIONS]

An iteration with the library is compared with the same work in PyTorch alone: every agent's forward
and backward pass (and with ccl the neighbours' features), without mixing, momentum or losses between
agents. The two take turns on one thread and the medians are shown. Times are the processor's, so that
other programs on the machine count little. PyTorch's share is also timed inside the library's
iteration, job by job.
"""

import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import crosstalk
import crosstalk.torch

N_AGENTS, BATCH, N_CLASSES = 8, 32, 10


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, N_CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        z = F.relu(self.fc2(F.relu(self.fc1(x))))
        return self.fc3(z), z


class Block(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(2, channels), nn.GroupNorm(2, channels)
        same = stride == 1 and inputs == channels
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, channels, 1, stride, bias=False)

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [16, 16, 16, 32, 32, 32, 64, 64, 64]
        self.stem = nn.Conv2d(1, 16, 3, 1, 1, bias=False)
        pairs = zip([16] + widths[:-1], widths)
        self.blocks = nn.Sequential(*[Block(a, b, 1 if a == b else 2) for a, b in pairs])
        self.head = nn.Linear(64, N_CLASSES)

    def forward(self, x):
        z = self.blocks(F.relu(self.stem(x))).mean((2, 3))
        return self.head(z), z


class Attention(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Linear(16, width)
        layer = nn.TransformerEncoderLayer(width, 4, 128, dropout=0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, N_CLASSES)

    def forward(self, x):
        patches = x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(4).flatten(1, 3)
        z = self.encoder(self.embed(patches)).mean(1)
        return self.head(z), z


NETWORKS = {"lenet": LeNet, "resnet": ResNet20, "attention": Attention}


class Timed(crosstalk.torch.Module):
    """Knows how long its jobs took."""

    seconds = 0.0

    def run_job(self, kind, job):
        began = time.process_time()
        super().run_job(kind, job)
        self.seconds += time.process_time() - began


def alone(nets, batches, with_features):
    """The gradients of all agents in PyTorch alone; with ccl two neighbours' features each."""
    for agent, (inputs, labels) in enumerate(batches):
        if with_features:
            with torch.no_grad():
                for neighbour in (agent - 1, (agent + 1) % len(nets)):
                    nets[neighbour](inputs)
    for net, (inputs, labels) in zip(nets, batches):
        logits, z = net(inputs)
        loss = F.cross_entropy(logits, labels)
        parameters = list(net.parameters())
        if with_features:
            torch.autograd.grad([loss, z], parameters, [None, torch.ones_like(z)])
        else:
            torch.autograd.grad(loss, parameters)
        loss.item()


def main(network="resnet", algorithm="ccl", iterations="15"):
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    inputs = torch.from_numpy(random.normal(size=(N_AGENTS * 256, 1, 28, 28)).astype(np.float32))
    labels = torch.from_numpy(random.integers(0, N_CLASSES, len(inputs)))
    nets = [NETWORKS[network]() for _ in range(N_AGENTS)]
    module = Timed(NETWORKS[network](), inputs, labels)
    options = dict(agents=N_AGENTS, batch_size=BATCH, partition="iid", epochs=100, lr=0.01, threads=1)
    library, jobs, pytorch = [], [], []
    with crosstalk.Run(model=module, algorithm=algorithm, **options) as run:
        for k in range(int(iterations) + 2):  # the first two warm up
            module.seconds, began = 0.0, time.process_time()
            run.step()
            library.append(time.process_time() - began)
            jobs.append(module.seconds)
            chosen = torch.from_numpy(random.integers(0, len(inputs), (N_AGENTS, BATCH)))
            began = time.process_time()
            alone(nets, [(inputs[index], labels[index]) for index in chosen], algorithm == "ccl")
            pytorch.append(time.process_time() - began)
    own = statistics.median((a - b) / b for a, b in zip(library[2:], jobs[2:]))
    ratio = statistics.median(a / b for a, b in zip(library[2:], pytorch[2:]))
    middle = [1e3 * statistics.median(times[2:]) for times in (library, jobs, pytorch)]
    print(f"{network}, {algorithm}, {N_AGENTS} agents, {module.layout.count} parameters, batch {BATCH}")
    print(f"  iteration {middle[0]:.2f} ms, of which jobs in PyTorch {middle[1]:.2f} ms; PyTorch alone {middle[2]:.2f} ms")
    print(f"  outside the jobs: {100 * own:.1f} % of them; whole iteration to PyTorch alone: {ratio:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
