#!/usr/bin/env python3
"""The same training iterations in PyTorch and in crosstalk, and the ratio.

One iteration: n agents on a ring, 32 samples each, QG-DSGDm-N or CCL (the equations are in
tests/oracle/oracle.py). PyTorch runs with one thread, with several, with several processes of one
thread each that share the agents, and with vmap; the fastest norm, memory layout and grouping of
the cross-features is found first. Then all of them and `crosstalk bench` take turns,
so that whatever else the machine does hits everyone, and the best PyTorch counts.
bench/README.md says how to repeat the published numbers.
"""

import argparse
import datetime
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import namedtuple

# For PyTorch's processes: glibc gives large blocks back to the system after every use unless told
# otherwise, and then each tensor costs its page faults again; BLAS threads fight with PyTorch's.
# (ATEN_CPU_CAPABILITY=avx512 was tried and gains nothing: the convolutions are oneDNN's.)
PLAIN_ENVIRONMENT = dict(os.environ)
TORCH_ENVIRONMENT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
                     "OPENBLAS_NUM_THREADS": "1"}

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))

import torch
import torch.nn as nn
import torch.nn.functional as F

import networks

BATCH, N_CLASSES, N_SAMPLES = 32, 10, 4096
LR, BETA, WEIGHT_DECAY, LAMBDA = 0.01, 0.9, 1e-4, 1  # this lambda so that --check sees CCL

Model = namedtuple("Model", "make shape dataset")  # dataset: crosstalk's, of the same shape
MODELS = {
    "lenet5": Model(networks.LeNet5, (1, 28, 28), "shapes"),
    "resnet20": Model(lambda: networks.ResNetSmall(20, "evonorm"), (3, 32, 32), "noise"),
    "mobilenetv2": Model(lambda: networks.MobileNetV2("evonorm"), (3, 32, 32), "noise"),
}
ALL = [("lenet5", 16), ("resnet20", 4), ("mobilenetv2", 4)]

Job = namedtuple("Job", "model agents algorithm threads")
Mode = namedtuple("Mode", "name processes threads vmap")
Variant = namedtuple("Variant", "norm layout cross")
LINE = "  %-18s %-13s %-13s %-8s "  # a mode and its variant


# --------------------------------------------------------------------------- EvoNorm
#
# y = x s(x) / sqrt(var_g(x) + eps) * w + b, and x s(x) with the hard sigmoid is hardswish, which
# PyTorch has as one operator. 8 groups, eps 1e-5 (torch.jit.script knows no global names).

def scaled(x, rstd, weight, bias):
    """rstd [N, groups, 1]"""
    scale = (rstd * weight.view(8, -1)).view(x.shape[0], -1, 1, 1)
    return torch.addcmul(bias.view(1, -1, 1, 1), F.hardswish(x), scale)


def moments(x):
    """Mean and variance of each group: two plain sums; torch.var takes longer."""
    n = x.shape[0]
    mean = x.mean((2, 3)).view(n, 8, -1).mean(2, keepdim=True)
    square = (x * x).mean((2, 3)).view(n, 8, -1).mean(2, keepdim=True)
    return mean, square - mean * mean


def norm_moments(x, weight, bias):
    return scaled(x, torch.rsqrt(moments(x)[1] + 1e-5), weight, bias)


class OwnBackward(torch.autograd.Function):
    """The same with the gradient written by hand: fewer passes, and only x is kept."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        mean, variance = moments(x)
        rstd = torch.rsqrt(variance + 1e-5)
        ctx.save_for_backward(x, weight.view(8, -1), mean, rstd)
        return scaled(x, rstd, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        n, c, h, w = x.shape
        inner = (dy * F.hardswish(x)).sum((2, 3)).view(n, 8, -1)  # dL/dscale
        d_variance = -0.5 * rstd ** 3 * (inner * weight).sum(2, keepdim=True)
        k = (d_variance * (2 * 8 / (c * h * w))).expand_as(inner)
        dx = torch.ops.aten.hardswish_backward(dy * (rstd * weight).view(n, c, 1, 1), x)
        dx.addcmul_(x, k.reshape(n, c, 1, 1)).sub_((k * mean).reshape(n, c, 1, 1))
        return dx, (inner * rstd).sum(0).view(c), dy.sum((0, 2, 3))


NORMS = {
    "no norm": lambda: None,
    "moments": lambda: norm_moments,
    "script": lambda: torch.jit.script(norm_moments),  # compiled once, then found again
    "own backward": lambda: OwnBackward.apply,
}
if hasattr(torch, "compile"):
    NORMS["compile"] = lambda: torch.compile(norm_moments)


def use_norm(name):
    """All EvoNorms of this process take this form from now on."""
    function = NORMS[name]()
    networks.EvoNorm.forward = lambda self, x: function(x, self.weight, self.bias)


def make_module(model):
    torch.manual_seed(1)  # all agents, in all processes, start from the same weights
    return MODELS[model].make().float()


def views(flat, shapes, layout):
    """The parameters inside a flat vector [P], or inside [n, P], with n in front."""
    result, front = [], flat.shape[:-1]
    for part, shape in zip(flat.split([shape.numel() for shape in shapes], -1), shapes):
        if layout == "channels_last" and len(shape) == 4:
            o, i, h, w = shape
            result.append(part.view(*front, o, h, w, i).movedim(-1, -3))
        else:
            result.append(part.view(*front, *shape))
    return result


def bind(module, row, layout, gradient=None):
    """Makes the module's parameters views of `row`, and their gradients views of `gradient`."""
    parameters = list(module.parameters())
    shapes = [p.shape for p in parameters]
    gradients = views(gradient, shapes, layout) if gradient is not None else itertools.repeat(None)
    for p, view, gradient_view in zip(parameters, views(row, shapes, layout), gradients):
        p.data = view.copy_(p.data)
        p.requires_grad_(gradient is not None)
        p.grad = gradient_view
    return module


def without_head(module):
    """The network up to its features; the last layer keeps its place in the flat vector."""
    head = [child for child in module.children() if isinstance(child, nn.Linear)][-1]
    head.forward = lambda z: z
    return module


# --------------------------------------------------------------------------- a ring of agents
class Ring:
    """near[i]: i's neighbours; slot[i][k]: where i stands among those of its k-th neighbour."""

    def __init__(self, n):
        self.near = [sorted({(i - 1) % n, (i + 1) % n}) for i in range(n)]
        self.slot = [[self.near[j].index(i) for j in self.near[i]] for i in range(n)]
        self.weights = sum(torch.eye(n).roll(k, 0) for k in (-1, 0, 1)) / 3


class Shared:
    """What the processes of a team see together."""

    def __init__(self, job):
        n, shape = job.agents, MODELS[job.model].shape
        module = make_module(job.model)
        with torch.no_grad():
            n_features = module(torch.zeros(2, *shape))[0].shape[1]
        self.x = torch.zeros(n, sum(p.numel() for p in module.parameters()))
        self.inputs = torch.zeros(n, BATCH, shape[0] * shape[1] * shape[2])
        self.labels = torch.zeros(n, BATCH, dtype=torch.int64)
        self.one_hot = torch.zeros(n, BATCH, N_CLASSES)
        self.cross = torch.zeros(n, 2, BATCH, n_features)  # [i, k]: of i's batch, by its near[k]
        for tensor in vars(self).values():
            tensor.share_memory_()


def random_data(model):
    """uint8 images [N, C, H, W] and labels: what is in them does not matter here."""
    generator = torch.Generator().manual_seed(2)
    shape = (N_SAMPLES, *MODELS[model].shape)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    return images, torch.arange(N_SAMPLES) % N_CLASSES


def draw(generator, n):
    return torch.randint(0, N_SAMPLES, (n, BATCH), generator=generator)


class Batches:
    """Fills the shared batches of some agents, normalised, in the layout asked for."""

    def __init__(self, job, shared, mine, layout):
        self.n, self.shared, self.mine = job.agents, shared, mine
        self.generator = torch.Generator().manual_seed(3)
        self.images, self.labels = random_data(job.model)
        c, h, w = MODELS[job.model].shape
        self.inputs = shared.inputs.view(self.n, BATCH, c, h, w)
        if layout == "channels_last":
            self.images = self.images.permute(0, 2, 3, 1)
            self.inputs = shared.inputs.view(self.n, BATCH, h, w, c).permute(0, 1, 4, 2, 3)
        self.images = self.images.flatten(1)

    def next(self):
        chosen, shared = draw(self.generator, self.n)[self.mine], self.shared
        shared.inputs[self.mine].copy_(self.images[chosen]).mul_(2 / 255).sub_(1)
        shared.labels[self.mine] = self.labels[chosen]
        shared.one_hot[self.mine] = F.one_hot(self.labels[chosen], N_CLASSES).float()


# --------------------------------------------------------------------------- the iteration
def total_loss(z, logits, labels, *ccl):
    """Of one agent: L_ce, and with CCL's constants + lambda (L_mv + L_dv)."""
    loss = F.cross_entropy(logits, labels)
    if not ccl:
        return loss
    one_hot, cross, sums, per_sample = ccl
    means = (sums + one_hot.t() @ z.detach()) * per_sample
    model_variant = len(cross) * F.mse_loss(z.expand_as(cross), cross)
    return loss + LAMBDA * (model_variant + F.mse_loss(z, one_hot @ means))


class Trainer:
    """The agents `mine` (a slice), in this process; wait() lets the other processes catch up."""

    def __init__(self, job, variant, shared, mine, wait):
        use_norm(variant.norm)
        self.model, self.ring, self.ccl = job.model, Ring(job.agents), job.algorithm == "ccl"
        self.shared, self.wait, self.mine, self.cross = shared, wait, mine, variant.cross
        self.batches = Batches(job, shared, mine, variant.layout)
        self.x, self.numbers = shared.x[mine], range(*mine.indices(job.agents))
        self.x_next, self.m_hat, self.gradient = (torch.zeros_like(self.x) for _ in range(3))
        self.near, self.slot = (torch.tensor(a)[mine] for a in (self.ring.near, self.ring.slot))
        self.make_networks(variant.layout)
        wait()

    def make_networks(self, layout):
        """One network for each of my agents; for cross-features also those of the neighbours,
        straight from their rows in shared memory."""
        self.networks = [bind(make_module(self.model), row, layout, gradient)
                         for row, gradient in zip(self.x, self.gradient)]
        seen = set(self.numbers).union(*(self.ring.near[i] for i in self.numbers))
        self.bodies = {j: bind(without_head(make_module(self.model)), self.shared.x[j], layout)
                       for j in seen}

    def step(self):
        self.batches.next()
        if self.ccl:
            self.wait()
            self.cross_features()
            self.wait()
        self.gradients(self.constants() if self.ccl else ())
        self.update()

    @torch.no_grad()
    def cross_features(self):
        """z_ji = phi(x_j; d_i): one pass for each pair, or one for each model over the batches of
        both its neighbours, which is the same work in fewer, larger calls."""
        inputs, cross, ring = self.batches.inputs, self.shared.cross, self.ring
        for i in self.numbers:
            if self.cross == "by pair":
                for k, j in enumerate(ring.near[i]):
                    cross[i, k] = self.bodies[j](inputs[i])[0]
            else:
                z = self.bodies[i](torch.cat([inputs[j] for j in ring.near[i]]))[0]
                for j, slot, part in zip(ring.near[i], ring.slot[i], z.split(BATCH)):
                    cross[j, slot] = part

    def constants(self):
        """What total_loss needs of my agents. Their neighbours' part of the class means: sums
        [m, C, r], and one by the number of samples, own ones included."""
        one_hot, cross = self.shared.one_hot, self.shared.cross
        there = one_hot[self.near].flatten(1, 2).transpose(1, 2)
        sums = there @ cross[self.near, self.slot].flatten(1, 2)
        counts = there.sum(2) + one_hot[self.mine].sum(1)
        return one_hot[self.mine], cross[self.mine], sums, 1 / counts.clamp(min=1)[:, :, None]

    def gradients(self, ccl):
        torch.mul(self.x, WEIGHT_DECAY, out=self.gradient)  # backward() adds to it
        for k, i in enumerate(self.numbers):
            outputs = self.networks[k](self.batches.inputs[i])
            total_loss(*outputs, self.shared.labels[i], *(c[k] for c in ccl)).backward()

    @torch.no_grad()
    def update(self):
        """d = g + beta (beta m_hat + g); x+ = W x - lr d; m_hat follows x - x+."""
        direction = self.gradient.mul_(1 + BETA).add_(self.m_hat, alpha=BETA * BETA)
        w = self.ring.weights[self.mine]
        torch.addmm(direction, w, self.shared.x, beta=-LR, out=self.x_next)
        self.m_hat.mul_(BETA).add_(self.x - self.x_next, alpha=(1 - BETA) / LR)
        self.wait()  # everyone has read x
        self.x.copy_(self.x_next)
        self.wait()


class VmapTrainer(Trainer):
    """All agents at once: vmap over the stacked parameters, from PyTorch 2 on. (functorch does the
    same for 1.13, where it was about twice as slow as two processes.)"""

    def make_networks(self, layout):
        from torch.func import functional_call, grad, vmap
        module, body = make_module(self.model), without_head(make_module(self.model))
        start = nn.utils.parameters_to_vector(module.parameters()).detach()
        self.x.copy_(start.expand_as(self.x))
        self.names, shapes = zip(*((name, p.shape) for name, p in module.named_parameters()))
        self.parameters = dict(zip(self.names, views(self.x, shapes, layout)))
        self.all_features = vmap(lambda p, inputs: functional_call(body, p, (inputs,))[0])
        self.all_gradients = vmap(grad(lambda p, inputs, *others: total_loss(
            *functional_call(module, p, (inputs,)), *others)))

    @torch.no_grad()
    def cross_features(self):
        z = self.all_features(self.parameters, self.batches.inputs[self.near].flatten(1, 2))
        self.shared.cross[self.near, self.slot] = z.view(len(z), -1, BATCH, z.shape[-1])

    def gradients(self, ccl):
        found = self.all_gradients(self.parameters, self.batches.inputs, self.shared.labels, *ccl)
        torch.cat([found[name].flatten(1) for name in self.names], 1, out=self.gradient)
        self.gradient.add_(self.x, alpha=WEIGHT_DECAY)


# --------------------------------------------------------------------------- who takes turns
def work(rank, job, mode, shared, barrier, commands):
    """A process of a team: builds trainers and times steps until told to stop."""
    torch.set_num_threads(mode.threads)
    wait = barrier.wait if mode.processes > 1 else lambda: None
    mine = slice(*(r * job.agents // mode.processes for r in (rank, rank + 1)))
    for variant, n_steps in iter(commands.recv, None):
        if variant is not None:
            trainer = (VmapTrainer if mode.vmap else Trainer)(job, variant, shared, mine, wait)
        times = []
        for _ in range(n_steps):
            start = time.perf_counter()
            trainer.step()
            times.append(1e3 * (time.perf_counter() - start))
        commands.send(times)


class Team:
    """The processes of one mode. They stay, asleep, while the others have their turn."""

    def __init__(self, job, mode):
        context = torch.multiprocessing.get_context("spawn")
        self.job, self.mode, self.shared = job, mode, Shared(job)
        self.barrier = context.Barrier(mode.processes, timeout=300)  # kept: opened by name
        self.pipes, self.processes = [], []
        for rank in range(mode.processes):
            here, there = context.Pipe()
            arguments = (rank, job, mode, self.shared, self.barrier, there)
            self.processes.append(context.Process(target=work, args=arguments, daemon=True))
            self.processes[-1].start()
            self.pipes.append(here)
            there.close()  # so that a process that dies is noticed

    def steps(self, n, variant=None):
        """ms of each of n iterations; with a variant, starts afresh with it."""
        for pipe in self.pipes:
            pipe.send((variant, n))
        return [pipe.recv() for pipe in self.pipes][0]

    def stop(self):
        for pipe, process in zip(self.pipes, self.processes):
            pipe.send(None)
            process.join()


def modes(job):
    n_processes = min(job.threads, job.agents)
    result = [Mode("1 thread", 1, 1, False)]
    if job.threads > 1:
        result += [Mode("%d threads" % job.threads, 1, job.threads, False),
                   Mode("%d processes" % n_processes, n_processes, 1, False)]
    if hasattr(torch, "func"):
        result.append(Mode("vmap, %d threads" % job.threads, 1, job.threads, True))
    return result


def alternatives(job, mode):
    """What to try for each field of a variant."""
    has_norms = any(isinstance(m, networks.EvoNorm) for m in make_module(job.model).modules())
    if mode.vmap:
        return Variant(["moments" if has_norms else "no norm"], ["contiguous"], ["by model"])
    return Variant([name for name in NORMS if (name != "no norm") == has_norms],
                   ["contiguous", "channels_last"],
                   ["by model", "by pair"] if job.algorithm == "ccl" else ["by model"])


def time_variant(team, variant, n_steps, log):
    ms = min(team.steps(1 + n_steps, variant)[1:])  # one to warm up
    log(LINE % (team.mode.name, *variant) + "%9.1f ms" % ms)
    return ms


def tune(team, n_steps, log):
    """The fastest variant and its ms: one field after the other, keeping the best so far."""
    fields, times = alternatives(team.job, team.mode), {}
    best = Variant._make(values[0] for values in fields)
    for field, values in fields._asdict().items():
        for variant in (best._replace(**{field: value}) for value in values):
            if variant not in times:
                times[variant] = time_variant(team, variant, n_steps, log)
        best = min(times, key=times.get)
    return best, times[best]


def crosstalk_says(program, words):
    """Its output, in the environment the user has: PyTorch's settings are not for it."""
    return subprocess.run([program] + words, check=True, stdout=subprocess.PIPE, text=True,
                          env=PLAIN_ENVIRONMENT).stdout


def crosstalk_steps(program, job, n_steps):
    """What `crosstalk bench` says of the same work."""
    algorithm = {"ccl": "--algorithm ccl --lambda-m %g --lambda-d %g" % (LAMBDA, LAMBDA),
                 "qg": "--algorithm qg-dsgdm --loss ce"}[job.algorithm]
    words = ("bench --json --warmup 2 --repeat %d --model %s --dataset %s --agents %d --topology "
             "ring --batch-size %d --lr %g --device cpu --threads %d %s"
             % (n_steps, job.model, MODELS[job.model].dataset, job.agents, BATCH, LR, job.threads,
                algorithm))
    return json.loads(crosstalk_says(program, words.split()))


def check_same_work(program, job):
    """The images, parameters and features of a model, which must be the same in both."""
    listed = crosstalk_says(program, ["list", "models", "--classes", str(N_CLASSES)])
    theirs = [line.split()[1:4] for line in listed.splitlines() if job.model in line.split()[:1]]
    shared, shape = Shared(job), "x".join(map(str, MODELS[job.model].shape))
    ours = [shape, str(shared.x.shape[1]), str(shared.cross.shape[-1])]
    if theirs != [ours]:
        sys.exit("not the same network: PyTorch's %s, crosstalk's %s" % (ours, theirs))
    return {"images": ours[0], "parameters": int(ours[1]), "features": int(ours[2])}


# --------------------------------------------------------------------------- the comparison
def slot_steps(ms, slot_s):
    """How many iterations fill a turn."""
    return max(3, min(100, int(1e3 * slot_s / ms)))


def tuned_teams(job, options, log):
    """(team, variant, ms) of every mode that could win. The variant is found with one thread,
    which the rest of the machine disturbs least."""
    teams, variant = [], None
    for mode in modes(job):
        team = Team(job, mode)
        try:
            if variant is None or mode.vmap:
                variant, ms = tune(team, options.tune_steps, log)
            else:
                ms = time_variant(team, variant, options.tune_steps, log)
            teams.append((team, variant, ms))
        except (EOFError, ConnectionError):  # a process died, and said why
            log("  %-18s failed, left out" % mode.name)
    best = min(ms for _, _, ms in teams)
    for team, variant, ms in teams:
        if ms > 3 * best:
            log("  %-18s more than three times as slow as the best, left out" % team.mode.name)
            team.stop()
        else:
            team.steps(1, variant)
    return [t for t in teams if t[2] <= 3 * best]


def take_turns(job, options, teams, log):
    """{name: [(median, fastest) of each round]} of every team and crosstalk, and what crosstalk
    said last."""
    n_ours = slot_steps(crosstalk_steps(options.crosstalk, job, 3)["ms_fastest"], options.slot)
    times = {name: [] for name in [team.mode.name for team, _, _ in teams] + ["crosstalk"]}
    for _ in range(options.rounds):
        for team, _, ms in teams:
            past = times[team.mode.name]
            steps = team.steps(1 + slot_steps(past[-1][0] if past else ms, options.slot))[1:]
            past.append((statistics.median(steps), min(steps)))
        last = crosstalk_steps(options.crosstalk, job, n_ours)
        times["crosstalk"].append((last["ms_per_iteration"], last["ms_fastest"]))
        log("  round: " + ", ".join("%s %.1f" % (name, t[-1][0]) for name, t in times.items()))
    return times, last


def compare(job, options, log):
    log("%s, %d agents, %s: looking for the best PyTorch" % job[:3])
    same = check_same_work(options.crosstalk, job)
    teams = tuned_teams(job, options, log)
    times, last = take_turns(job, options, teams, log)
    for team, _, _ in teams:
        team.stop()
    median = {name: statistics.median(m for m, _ in t) for name, t in times.items()}
    fastest = {name: min(f for _, f in t) for name, t in times.items()}
    ratio = lambda ms: min(ms[team.mode.name] for team, _, _ in teams) / ms["crosstalk"]
    return {**job._asdict(), **same, "rounds": options.rounds,
            "variants": {team.mode.name: ", ".join(variant) for team, variant, _ in teams},
            "ms_median": median, "ms_fastest": fastest, "ratio_of_medians": ratio(median),
            "ratio_of_fastest": ratio(fastest), "crosstalk": last}


def print_result(r):
    print("\n%(model)s, %(agents)d agents on a ring, %(algorithm)s, batch 32 each, images "
          "%(images)s, %(parameters)s parameters, %(features)s features" % r)
    print("  %-18s     median    fastest   ms per iteration, %d rounds" % ("", r["rounds"]))
    for name, median in r["ms_median"].items():
        print("  %-18s %10.2f %10.2f   %s"
              % (name, median, r["ms_fastest"][name], r["variants"].get(name, "")))
    print("  best PyTorch / crosstalk: %(ratio_of_medians).2f (medians), "
          "%(ratio_of_fastest).2f (fastest)" % r, flush=True)


def oracle_rows(job, n_steps):
    """[n, P] before and after n_steps of tests/oracle, in float64, on the same batches."""
    import oracle
    net, generator = networks.FlatNet(make_module(job.model)), torch.Generator().manual_seed(3)
    images, labels = random_data(job.model)
    lists = torch.cat([draw(generator, job.agents) for _ in range(n_steps)], 1)
    options = oracle.option_parser().parse_args((
        "--algorithm qg-dsgdm --loss %s --lambda-m %g --lambda-d %g --lr %g --weight-decay %g "
        "--batch-size %d --epochs 100 --init none"
        % ({"qg": "ce", "ccl": "ccl"}[job.algorithm], LAMBDA, LAMBDA, LR, WEIGHT_DECAY,
           BATCH)).split())
    start = nn.utils.parameters_to_vector(net.module.parameters()).detach().repeat(job.agents, 1)
    return start, oracle.train(net, start, images.double() * 2 / 255 - 1, labels, list(lists),
                               N_CLASSES, options, n_steps)[0]


def check(job):
    """Two iterations of every mode and variant must arrive where the oracle does."""
    print("distance from the oracle after two iterations, as a part of the way they went")
    start, expected = oracle_rows(job, 2)
    shapes, errors = [p.shape for p in make_module(job.model).parameters()], []
    for mode in modes(job):
        team = Team(job, mode)
        for variant in map(Variant._make, itertools.product(*alternatives(job, mode))):
            team.steps(2, variant)
            got = [v.flatten(1) for v in views(team.shared.x, shapes, variant.layout)]
            errors.append(float((torch.cat(got, 1) - expected).norm() / (expected - start).norm()))
            print(LINE % (mode.name, *variant) + "%9.1e" % errors[-1], flush=True)
        team.stop()
    same = all(error < 2e-4 for error in errors)  # and none is nan
    print("the same work" if same else "NOT THE SAME")
    return 0 if same else 1


# --------------------------------------------------------------------------- the command line
def machine():
    with open("/proc/cpuinfo") as lines:
        names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    return {"cpu": ", ".join(names) or platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0], "torch": torch.__version__,
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M")}


def take_options():
    p = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=MODELS, default="lenet5")
    p.add_argument("--agents", type=int, help="3 or more [16 for lenet5, else 4]")
    p.add_argument("--algorithm", choices=["qg", "ccl"], default="ccl")
    p.add_argument("--all", action="store_true", help="all three models, with their usual agents")
    p.add_argument("--rounds", type=int, default=7, help="turns of everyone [7]")
    p.add_argument("--slot", type=float, default=1.5, help="seconds of a turn [1.5]")
    p.add_argument("--tune-steps", type=int, default=3, help="iterations of a tuning try [3]")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                   help="of crosstalk, and the most PyTorch gets [all cores]")
    p.add_argument("--crosstalk", default=os.path.join(ROOT, "build", "crosstalk"), metavar="PATH")
    p.add_argument("--autograd-only", action="store_true", help="no EvoNorm gradient by hand")
    p.add_argument("--check", action="store_true", help="compare with tests/oracle, time nothing")
    p.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = p.parse_args()
    options.agents = options.agents or dict(ALL)[options.model]
    if options.agents < 3 or min(options.rounds, options.threads, options.tune_steps) < 1:
        p.error("--agents starts at 3 (a ring), --rounds, --threads and --tune-steps at 1")
    return options


def main():
    options = take_options()
    os.environ.update(TORCH_ENVIRONMENT)
    if options.autograd_only:
        del NORMS["own backward"]
    if options.check:
        return check(Job(options.model, 4, options.algorithm, options.threads))
    here, results = machine(), []
    log = lambda text: print(text, file=sys.stderr, flush=True)
    if not options.json:
        print("%(cpu)s, %(cores)d cores, load %(load).1f; PyTorch %(torch)s; %(date)s"
              % here, flush=True)
    for job in ALL if options.all else [(options.model, options.agents)]:
        results.append(compare(Job(*job, options.algorithm, options.threads), options, log))
        if not options.json:
            print_result(results[-1])
    if options.json:
        print(json.dumps({"machine": here, "results": results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
