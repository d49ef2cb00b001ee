"""Agents that wait for nobody: AD-PSGD and SWIFT in float64, event by event.

As in oracle.py nothing is shared with the C code: models are changed one event after the other, where
the C code puts an iteration's events together as matrices. Random numbers are those of its
counter-based generator (compressed.py has it once more).
Writes tests/fixtures/async (see README.md).
"""

import os

import torch

import cases
import compressed
import files
import oracle
import related
from cases import CCL, CE, COMMON, DECAY, DIFFERENT, SAME, join_options

SPEED_USE, PARTNER = 11, 1
SPEEDS = [0.3, 1.0, 1.7, 1.0, 0.9]  # tests/fixtures/async/speeds.txt


def first_words(seed, agent, step, index):
    key = (seed & 0xffffffff, (seed >> 32) ^ (SPEED_USE * 0x9E3779B1 & 0xffffffff))
    return compressed.philox((0, index, step, agent), key)


def partner(seed, agent, step, near):
    """One of the neighbours: a word times their number, without bias."""
    for word in first_words(seed, agent, step, PARTNER):
        product = word * len(near)
        if product & 0xffffffff >= (1 << 32) % len(near):
            return near[product >> 32]
    raise ValueError("more words are needed")


class Events:
    """Time of every agent's next event; agents of the same time in their order."""

    def __init__(self, speeds):
        self.speeds, self.done = speeds, [0] * len(speeds)
        self.next = [1 / s for s in speeds]

    def of_iteration(self):
        """Agents in the order of their events, until one's turn comes again."""
        seen = []
        while True:
            i = min(range(len(self.next)), key=lambda k: (self.next[k], k))
            if i in seen:
                return
            seen.append(i)
            yield i
            self.done[i] += 1
            self.next[i] += 1 / self.speeds[i]


class Asynchronous:
    def __init__(self, x, near, options):
        self.near, self.options = near, options
        self.beta, self.nesterov = options.momentum, options.nesterov == "on"
        self.x, self.m, self.start = x.clone(), torch.zeros_like(x), x.clone()
        self.events = Events(SPEEDS if options.speed else [1.0] * len(x))

    def step(self, x, gradients, lr):
        g, losses = gradients(self.start, self.start)
        for i in self.events.of_iteration():
            self.meet(i)
            self.m[i] = self.beta * self.m[i] + g[i]
            self.x[i] -= lr * (g[i] + self.beta * self.m[i] if self.nesterov else self.m[i])
            self.start[i] = self.x[i]
        return self.x.clone(), losses


class AdPsgd(Asynchronous):
    def meet(self, i):
        j = partner(self.options.seed, i, self.events.done[i], self.near[i])
        mean = (self.x[i] + self.x[j]) / 2
        self.x[i], self.x[j] = mean, mean


class Swift(Asynchronous):
    def meet(self, i):
        w = oracle.mixing_matrix(self.near)
        self.x[i] += self.options.gamma * (w[i] @ self.x - self.x[i])


METHODS = {"adpsgd": AdPsgd, "swift": Swift}


def case_list():
    result = []

    def add(name, algorithm, *parts):
        result.append((name, join_options("--algorithm " + algorithm, "--topology ring", COMMON,
                                          SAME, *parts)))

    beta, speeds = " --momentum 0.9", "--speed file:async/speeds.txt"
    add("adpsgd-ce", "adpsgd --momentum 0", CE, DIFFERENT)
    add("adpsgd-ce-speeds-star", "adpsgd" + beta, CE, DIFFERENT, speeds,
        "--nesterov on --topology star")
    add("adpsgd-ccl-speeds", "adpsgd" + beta, CCL, DIFFERENT, speeds, "--nesterov off")
    add("adpsgd-ce-speeds-lrdecay", "adpsgd" + beta, CE, speeds, DECAY)
    add("swift-ce", "swift --momentum 0", CE, DIFFERENT)
    add("swift-ce-speeds-chain-gamma", "swift" + beta, CE, DIFFERENT, speeds,
        "--nesterov on --topology chain --gamma 0.8")
    add("swift-ccl-speeds", "swift" + beta, CCL, DIFFERENT, speeds, "--nesterov off")
    return result


def option_parser():
    p = related.option_parser()
    p.add_argument("--speed", default="")
    p.add_argument("--seed", type=int, default=1)
    return p


def run(problem, options):
    near = oracle.neighbour_lists(oracle.graph_edges(options.topology, cases.N_AGENTS), cases.N_AGENTS)
    objective = related.Objective(problem.net, cases.N_CLASSES, options)
    x = problem.start(options.init)
    method = METHODS[options.algorithm](x, near, options)
    per_epoch = -(-cases.PER_AGENT // options.batch_size)
    losses = None
    for t in range(cases.ITERATIONS):
        objective.connect(oracle.mixing_matrix(near), t, True)
        batches = [oracle.batch_at(problem.images, problem.labels, s, options.batch_size,
                                   t % per_epoch) for s in problem.lists]
        x, losses = method.step(x, related.Gradients(objective, batches, x),
                                oracle.step_size(options, t // per_epoch))
    return x, losses


def write(fixtures):
    folder = os.path.join(fixtures, "async")
    os.makedirs(os.path.join(folder, "expected"), exist_ok=True)
    with open(os.path.join(folder, "speeds.txt"), "w") as f:
        f.write("\n".join(str(s) for s in SPEEDS) + "\n")
    problem = cases.Problem(fixtures)
    with open(os.path.join(folder, "cases.txt"), "w") as listing, \
            open(os.path.join(folder, "expected.txt"), "w") as expected:
        for name, text in case_list():
            x, losses = run(problem, option_parser().parse_args(text.split()))
            assert torch.isfinite(x).all(), name
            files.write_safetensors(os.path.join(folder, "expected", name + ".safetensors"),
                                    cases.agent_tensors(problem.net, x))
            listing.write("%s %s --seed 1\n" % (name, text))
            expected.write("%s %.9g %.9g %.9g\n" % ((name,) + losses))
