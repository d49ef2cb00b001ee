"""Methods that distil in float64: Def-KT and IDKD.

As in oracle.py nothing is shared with the C code: models are lists of rows that agents pass on, and soft targets
are torch's own divergence. Random numbers are those of its counter-based generator (compressed.py has it once more).
Writes tests/fixtures/distill: cases.txt, expected.txt, expected/ (see README.md).
"""

import os

import numpy as np
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

PAIRS_USE, PUBLIC_USE = 12, 13
SEED = 3
N_PUBLIC = 40


class Words:
    """A stream of random numbers by its name."""

    def __init__(self, seed, use, agent, epoch, index):
        self.key = (seed & 0xffffffff, (seed >> 32) ^ (use * 0x9E3779B1 & 0xffffffff))
        self.name, self.left, self.block = (index, epoch, agent), [], 0

    def shuffle(self, items):
        for last in range(len(items) - 1, 0, -1):
            k = self.below(last + 1)
            items[last], items[k] = items[k], items[last]
        return items

    def below(self, n):
        while True:
            if not self.left:
                self.left = compressed.philox((self.block,) + self.name, self.key)
                self.block += 1
            product = self.left.pop(0) * n
            if product & 0xffffffff >= (1 << 32) % n:
                return product >> 32


def draw_pairs(w, seed, turn):
    """{receiver: sender}, greedily from the shuffled edges (receiver, sender)."""
    n, host = len(w), {}
    edges = [(i, j) for i in range(n) for j in range(n) if j != i and w[i, j] > 0]
    for i, j in Words(seed, PAIRS_USE, 0, turn, 0).shuffle(edges):
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


class PublicObjective(related.Objective):
    """Beside its own batch an agent may have samples with the probabilities of their classes."""

    def connect(self, w, t, gossips):
        super().connect(w, t, gossips)
        self.lessons = {}

    def gradient(self, i, at, sent, batches):
        g, losses = super().gradient(i, at, sent, batches)
        if i not in self.lessons:
            return g, losses
        inputs, targets = self.lessons[i]
        x = at[i].clone().requires_grad_(True)
        entropy = -(targets * F.log_softmax(self.net.forward(x, inputs)[1], 1)).sum(1).mean()
        other = torch.autograd.grad(entropy, x)[0] + self.options.weight_decay * at[i]
        n, b = len(batches[i].labels), len(targets)
        return (n * g + b * other) / (n + b), losses


def best_threshold(own, others):
    """The largest of those own values that part the two best."""
    def apart(t):
        return int((own >= t).sum()) * len(others) - int((others >= t).sum()) * len(own)
    most = max(apart(t) for t in own)
    return max(t for t in own if apart(t) == most) if most > 0 else own.max()


class Idkd:
    """Labels of public samples, and which of them are learnt from in an iteration."""

    def __init__(self, problem, options, public):
        self.problem, self.options, self.public = problem, options, public
        self.labels, self.epoch, self.margin = None, None, 1.0

    def say(self, row, lists):
        """{sample: probabilities} of those that an agent is sure of."""
        o, net = self.options, self.problem.net
        with torch.no_grad():
            t = F.softmax(net.forward(row, self.public)[1] / o.distil_temperature, 1)
            own = F.softmax(net.forward(row, self.problem.images[lists])[1] / o.distil_temperature, 1)
        sure, own = t.max(1)[0], own.max(1)[0]
        tau = o.distil_threshold or best_threshold(own, sure)
        self.margin = min(self.margin, float((sure - tau).abs().min()))
        return {u: t[u] for u in range(len(t)) if sure[u] >= tau}

    def label(self, x, w, epoch):
        said = [self.say(row, lists) for row, lists in zip(x, self.problem.lists)]
        self.epoch, self.labels = epoch, []
        for i in range(len(x)):
            near = [said[j] for j in range(len(x)) if w[i, j] > 0]
            self.labels.append({u: torch.stack([s[u] for s in near if u in s]).mean(0)
                                for u in range(len(self.public)) if any(u in s for s in near)})

    def lessons(self, since):
        result = {}
        for i, labels in enumerate(self.labels or []):
            known, size = sorted(labels), self.options.batch_size
            if not known:
                continue
            b = int(np.floor(size * len(known) / len(self.problem.lists[i]) + 0.5))
            b = max(1, min(b, size, len(known)))
            order = []
            while len(order) < (since + 1) * b:
                words = Words(self.options.seed, PUBLIC_USE, i, self.epoch, len(order) // len(known))
                order += words.shuffle(list(known))
            chosen = order[since * b:(since + 1) * b]
            result[i] = (self.public[chosen], torch.stack([labels[u] for u in chosen]))
        return result


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

    public = "--public-data distill/public --distil-epochs 1"
    qg, three, two = "qg-dsgdm --nesterov on" + beta, "--batch-size 9", "--batch-size 14"
    add("idkd-ce", qg, CE, three, public)
    add("idkd-ccl-agents", qg, CCL, DIFFERENT, three, public)
    add("idkd-ce-twice-temperature", qg, CE, DIFFERENT, two, public, "--distil-epochs 1,2 "
        "--distil-temperature 2 --topology star")
    add("idkd-ce-threshold-lrdecay", qg, CE, DIFFERENT, DECAY, public, "--distil-threshold 0.4")
    add("idkd-atc-ccl-full-some", "qg-dsgdm --variant atc --nesterov off" + beta, CCL, DIFFERENT, two,
        public, "--topology full --public-samples 17 --distil-threshold 0.3")
    add("idkd-wacv24-ce-chain", "qg-dsgdm --variant wacv24 --nesterov on" + beta, CE, DIFFERENT, two,
        public, "--topology chain")
    add("idkd-dsgdm-ce", "dsgdm --nesterov on" + beta, CE, two, public)
    add("idkd-dsgd-ccl-smoothing", "dsgd", CCL, DIFFERENT, two, public, "--label-smoothing 0.2")
    return result


def option_parser():
    p = recent.option_parser()
    p.add_argument("--kt-weight", type=float, default=1.0)
    p.add_argument("--kt-temperature", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--public-data")
    p.add_argument("--public-samples", type=int, default=N_PUBLIC)
    p.add_argument("--distil-epochs", default="")
    p.add_argument("--distil-threshold", type=float, default=0.0)
    p.add_argument("--distil-temperature", type=float, default=1.0)
    return p


def run_idkd(problem, options, public):
    w = related.steps_of(options.topology, cases.N_AGENTS)[0]
    x = problem.start(options.init)
    mix = recent.Sharing(x, w, options, options.seed, problem.net.shapes)
    objective = PublicObjective(problem.net, cases.N_CLASSES, options)
    name = options.algorithm + " " + options.variant
    method = (recent.METHODS.get(name) or recent.METHODS[options.algorithm])(x, mix, options)
    idkd = Idkd(problem, options, public[:options.public_samples])
    per_epoch = -(-cases.PER_AGENT // options.batch_size)
    after, losses = [int(e) for e in options.distil_epochs.split(",")], None
    for t in range(cases.ITERATIONS):
        mix.begin(w, t, True)
        objective.connect(w, t, True)
        if t % per_epoch == 0 and t // per_epoch in after:
            idkd.label(x, w, t // per_epoch)
        if idkd.labels:
            objective.lessons = idkd.lessons(t - idkd.epoch * per_epoch)
        batches = [oracle.batch_at(problem.images, problem.labels, s, options.batch_size,
                                   t % per_epoch) for s in problem.lists]
        gradients = recent.Gradients(objective, batches, x, lambda v: v)
        x, losses = method.step(x, gradients, oracle.step_size(options, t // per_epoch))
    print("%-36s margin %.1e, labels %s" % (name, idkd.margin, [len(l) for l in idkd.labels]))
    return x, losses


def write_public(fixtures):
    """Noisy test images, and noise; the labels mean nothing."""
    rng = np.random.RandomState(41)
    folder = os.path.join(fixtures, "distill", "public")
    os.makedirs(folder, exist_ok=True)
    test = files.read_idx(os.path.join(fixtures, "data", "t10k-images-idx3-ubyte")).astype(float)
    near = test[rng.randint(0, len(test), N_PUBLIC - 12)]
    images = np.concatenate([near + rng.normal(0, 30, near.shape),
                             rng.uniform(0, 255, (12,) + near.shape[1:])])
    images = np.clip(np.rint(images), 0, 255).astype(np.uint8)[rng.permutation(N_PUBLIC)]
    labels = np.arange(N_PUBLIC) % cases.N_CLASSES
    for name, values in (("train-images-idx3-ubyte", images), ("train-labels-idx1-ubyte", labels),
                         ("t10k-images-idx3-ubyte", images[:4]), ("t10k-labels-idx1-ubyte", labels[:4])):
        files.write_idx(os.path.join(folder, name), values)
    return oracle.tensor_images(images)


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
    problem, public = cases.Problem(fixtures), write_public(fixtures)
    with open(os.path.join(folder, "cases.txt"), "w") as listing, \
            open(os.path.join(folder, "expected.txt"), "w") as expected:
        for name, text in case_list():
            options = option_parser().parse_args(text.split())
            x, losses = run_idkd(problem, options, public) if options.public_data else run(problem, options)
            assert torch.isfinite(x).all(), name
            files.write_safetensors(os.path.join(folder, "expected", name + ".safetensors"),
                                    cases.agent_tensors(problem.net, x))
            listing.write(name + " " + text + "\n")
            expected.write("%s %.9g %.9g %.9g\n" % ((name,) + losses))
