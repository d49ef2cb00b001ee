"""Methods that distil in float64: Def-KT.

As in oracle.py nothing is shared with the C code: models are lists of rows that agents pass on, and soft targets
are torch's own divergence. Random numbers are those of its counter-based generator (compressed.py has it once more).
Writes tests/fixtures/distill: cases.txt, expected.txt, expected/ (see README.md).
"""

import os

import torch
import torch.nn.functional as F

import cases
import changing
import compressed
import files
import oracle
import recent
import related
from cases import CCL, CE, COMMON, DECAY, DIFFERENT, SAME, join_options

PAIRS_USE = 12
SEED = 3


class Words:
    """The stream of one round."""

    def __init__(self, seed, turn):
        self.key = (seed & 0xffffffff, (seed >> 32) ^ (PAIRS_USE * 0x9E3779B1 & 0xffffffff))
        self.turn, self.left, self.block = turn, [], 0

    def below(self, n):
        while True:
            if not self.left:
                self.left = compressed.philox((self.block, 0, self.turn, 0), self.key)
                self.block += 1
            product = self.left.pop(0) * n
            if product & 0xffffffff >= (1 << 32) % n:
                return product >> 32


def draw_pairs(w, seed, turn):
    """{receiver: sender}, greedily from the shuffled edges (receiver, sender)."""
    n, words, host = len(w), Words(seed, turn), {}
    edges = [(i, j) for i in range(n) for j in range(n) if j != i and w[i, j] > 0]
    for last in range(len(edges) - 1, 0, -1):
        k = words.below(last + 1)
        edges[last], edges[k] = edges[k], edges[last]
    for i, j in edges:
        if not {i, j} & (set(host) | set(host.values())):
            host[i] = j
    return host


class Objective(related.Objective):
    """With a teacher's logits at the batch: + weight T^2 KL(softmax(theirs / T) || softmax(ours / T))."""

    def logits(self, x, batch):
        with torch.no_grad():
            return self.net.forward(x, batch.inputs)[1]

    def loss(self, i, x, sent, batches, lambdas, teacher):
        o, batch = self.options, batches[i]
        z, logits = self.net.forward(x, batch.inputs)
        ce = F.cross_entropy(logits, batch.labels, label_smoothing=o.label_smoothing)
        total, mv, dv = ce, torch.zeros(()), torch.zeros(())
        if lambdas is not None:
            mv, dv = self.ccl_terms(i, z, sent, batches)
            total = total + lambdas[0] * mv + lambdas[1] * dv
        if teacher is not None:
            t = o.kt_temperature
            total = total + o.kt_weight * t * t * F.kl_div(
                F.log_softmax(logits / t, 1), F.log_softmax(teacher / t, 1), log_target=True,
                reduction="batchmean")
        return total, oracle.Losses(float(ce), float(mv), float(dv))

    def slope(self, i, x, sent, batches, lambdas, teacher):
        x = x.clone().requires_grad_(True)
        total, losses = self.loss(i, x, sent, batches, lambdas, teacher)
        return torch.autograd.grad(total, x)[0], losses

    def taught(self, i, x, sent, batches, lambdas, teacher):
        o = self.options
        g, losses = self.slope(i, x, sent, batches, lambdas, teacher)
        if o.sam > 0:
            g, _ = self.slope(i, recent.uphill(x, g, o.sam), sent, batches, lambdas, teacher)
        g = g + o.weight_decay * x
        if o.clip_norm > 0:
            g = g * min(1.0, o.clip_norm / float(g.norm()))
        return g, losses


class Learner:
    """Heavy-ball SGD that begins anew."""

    def __init__(self, row, beta):
        self.row, self.beta, self.m = row, beta, None

    def move(self, g, lr):
        self.m = g if self.m is None else self.beta * self.m + g
        self.row = self.row - lr * self.m


class DefKT:
    def __init__(self, x, options, seed):
        self.options, self.seed = options, seed
        self.own = [Learner(row, options.momentum) for row in x]
        self.guest = {}

    def meet(self, w, turn):
        beta, host = self.options.momentum, draw_pairs(w, self.seed, turn)
        rows = [learner.row for learner in self.own]
        self.own = [Learner(row, beta) for row in rows]
        self.guest = {i: Learner(rows[j], beta) for i, j in host.items()}
        if self.options.variant == "paper":
            for i in host:
                self.own[i], self.guest[i] = self.guest[i], self.own[i]

    def step(self, objective, batches, w, turn, gossips, lr):
        o, n = self.options, len(self.own)
        if gossips:
            self.meet(w, turn)
        contrasts = o.loss == "ccl" and gossips and turn % o.ccl_every == 0
        sent = torch.stack([learner.row for learner in self.own])
        ours = {i: objective.logits(self.own[i].row, batches[i]) for i in self.guest}
        theirs = {i: objective.logits(self.guest[i].row, batches[i]) for i in self.guest}
        moves, losses = [], []
        for i in range(n):
            lambdas = objective.lambdas(i) if contrasts else None
            g, l = objective.taught(i, sent[i], sent, batches, lambdas, theirs.get(i))
            if contrasts:
                objective.remember(i, l)
            moves.append((self.own[i], g))
            losses.append(l)
            if i in self.guest:
                g, _ = objective.taught(i, self.guest[i].row, sent, batches, None, ours[i])
                moves.append((self.guest[i], g))
        for learner, g in moves:
            learner.move(g, lr)
        return oracle.Losses(*(sum(v) / n for v in zip(*losses)))


# --------------------------------------------------------------------------- cases

def case_list():
    result = []

    def add(name, algorithm, *parts):
        result.append((name, join_options("--algorithm " + algorithm, "--topology ring", COMMON,
                                          SAME, "--seed %d" % SEED, *parts)))

    paper, own, beta = "def-kt", "def-kt --variant own", " --momentum 0.9"
    add("defkt-ce-agents", paper, CE, DIFFERENT)
    add("defkt-ce", paper, CE)
    add("defkt-ce-full-every-2", paper + beta, CE, DIFFERENT, "--topology full --local-steps 2")
    add("defkt-ce-weight-temperature", paper + beta, CE,
        "--local-steps 3 --kt-weight 0.4 --kt-temperature 2.5")
    add("defkt-ccl-agents", paper, CCL, DIFFERENT)
    add("defkt-ccl-star-every-2", paper + beta, CCL, "--topology star --local-steps 2")
    add("defkt-ce-lrdecay-smoothing-clip", paper + " --momentum 0.5", CE, DECAY, DIFFERENT,
        "--local-steps 2 --label-smoothing 0.2 --clip-norm 0.8")
    add("defkt-sam-ce", paper + beta, CE, "--local-steps 2 --sam 0.2")
    add("defkt-ce-one-peer", paper, CE, DIFFERENT, "--topology one-peer-exponential")
    add("defkt-own-ce", own, CE)
    add("defkt-own-ce-agents-every-2", own + beta, CE, DIFFERENT, "--local-steps 2")
    add("defkt-own-ccl-chain-temperature", own, CCL, DIFFERENT,
        "--topology chain --kt-temperature 0.5 --kt-weight 2")
    return result


def option_parser():
    p = recent.option_parser()
    p.add_argument("--kt-weight", type=float, default=1.0)
    p.add_argument("--kt-temperature", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=1)
    return p


def run(problem, options):
    steps = related.steps_of(options.topology, cases.N_AGENTS)
    objective = Objective(problem.net, cases.N_CLASSES, options)
    method = DefKT(problem.start(options.init), options, options.seed)
    per_epoch = -(-cases.PER_AGENT // options.batch_size)
    gossips = changing.gossiping(options.local_steps, int(options.epochs) * per_epoch)
    losses, turn = None, 0
    for t in range(cases.ITERATIONS):
        now = steps[turn % len(steps)] if gossips[t] else torch.eye(cases.N_AGENTS).double()
        objective.connect(now, turn, gossips[t])
        batches = [oracle.batch_at(problem.images, problem.labels, s, options.batch_size,
                                   t % per_epoch) for s in problem.lists]
        losses = method.step(objective, batches, now, turn, gossips[t],
                             oracle.step_size(options, t // per_epoch))
        turn += gossips[t]
    return torch.stack([learner.row for learner in method.own]), losses


def write(fixtures):
    folder = os.path.join(fixtures, "distill")
    os.makedirs(os.path.join(folder, "expected"), exist_ok=True)
    problem = cases.Problem(fixtures)
    with open(os.path.join(folder, "cases.txt"), "w") as listing, \
            open(os.path.join(folder, "expected.txt"), "w") as expected:
        for name, text in case_list():
            x, losses = run(problem, option_parser().parse_args(text.split()))
            assert torch.isfinite(x).all(), name
            files.write_safetensors(os.path.join(folder, "expected", name + ".safetensors"),
                                    cases.agent_tensors(problem.net, x))
            listing.write(name + " " + text + "\n")
            expected.write("%s %.9g %.9g %.9g\n" % ((name,) + losses))
