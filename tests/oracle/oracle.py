"""Decentralized training in float64, written from the paper's equations alone.

Nothing here is fast and nothing is shared with the C code: it exists to say what five
iterations of every algorithm must give. Notation: n agents; x is [n, P], one row of
parameters per agent; W the mixing matrix; r = W x - x the gossip residual; eta the step size
(`lr`), beta the momentum, gamma the averaging rate. z = phi(x; d) are the features (last hidden
layer) of a batch d.
"""

import argparse
from collections import namedtuple

import torch
import torch.nn.functional as F

torch.set_num_threads(1)

Batch = namedtuple("Batch", "inputs labels")
Losses = namedtuple("Losses", "ce mv dv")


# --------------------------------------------------------------------------- graphs

def graph_edges(name, n):
    """Undirected edges, agents numbered from 0."""
    if name == "ring":
        return [(i, (i + 1) % n) for i in range(n)]
    if name == "chain":
        return [(i, i + 1) for i in range(n - 1)]
    if name == "star":
        return [(0, i) for i in range(1, n)]
    if name == "full":
        return [(i, j) for i in range(n) for j in range(i)]
    raise ValueError("no topology " + name)


def neighbour_lists(edges, n):
    """Sorted neighbours of each agent, the agent itself left out."""
    return [sorted({a + b - i for a, b in edges if i in (a, b)}) for i in range(n)]


def mixing_matrix(neighbours):
    """1/(p+1) on a regular graph, Metropolis-Hastings otherwise: both doubly stochastic."""
    n = len(neighbours)
    degree = [len(p) for p in neighbours]
    w = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in neighbours[i]:
            w[i, j] = 1.0 / (1 + max(degree[i], degree[j]))
        w[i, i] = 1.0 - w[i].sum()
    return w


def residual(w, x):
    """r_i = sum_j w_ij (x_j - x_i), which is W x - x because the rows of W sum to one, but
    exactly zero when all agents agree."""
    return torch.stack([(w[i, :, None] * (x - x[i])).sum(0) for i in range(len(x))])


def relay_tree(topology, neighbours):
    """The tree RelaySGD runs on: of a ring the chain 0 .. n-1; chain and star are trees."""
    if topology == "ring":
        return neighbour_lists(graph_edges("chain", len(neighbours)), len(neighbours))
    assert topology in ("chain", "star"), "no tree for " + topology
    return neighbours


# --------------------------------------------------------------------------- losses

def distance_mse(a, b, reduction):
    """(3) of the paper is `sum`: squared norm over the features, mean over the samples."""
    d = (a - b) ** 2
    return d.mean() if reduction == "mean" else d.sum(1).mean()


def distance_l1(a, b, reduction):
    d = (a - b).abs()
    return d.mean() if reduction == "mean" else d.sum(1).mean()


def distance_cosine(a, b, _reduction):
    """1 - cos per sample, mean over the samples; there is no feature axis left to reduce."""
    eps = 1e-8
    cos = (a * b).sum(1) / (a.norm(dim=1).clamp(min=eps) * b.norm(dim=1).clamp(min=eps))
    return (1 - cos).mean()


DISTANCES = {"mse": distance_mse, "l1": distance_l1, "cosine": distance_cosine}


def class_sums(z, labels, n_classes):
    """Sum of the features of each class [C, r] and how many samples it has [C]."""
    sums = torch.zeros(n_classes, z.shape[1], dtype=z.dtype)
    counts = torch.zeros(n_classes, dtype=z.dtype)
    sums.index_add_(0, labels, z)
    counts.index_add_(0, labels, torch.ones(len(labels), dtype=z.dtype))
    return sums, counts


def class_means(parts):
    """z_bar(c): all sums of a class over all its samples; a class nobody has stays zero."""
    sums = sum(s for s, _ in parts)
    counts = sum(c for _, c in parts)
    return sums / counts.clamp(min=1)[:, None]


def model_variant_loss(z, cross_features, distance):
    """L_mv: a sum, not a mean, over the neighbours."""
    total = torch.zeros((), dtype=z.dtype)
    for z_j in cross_features:
        total = total + distance(z, z_j)
    return total


class Objective:
    """L = L_ce + lambda_m L_mv + lambda_d L_dv of one agent, and its gradient."""

    def __init__(self, net, neighbours, n_classes, options):
        self.net, self.neighbours, self.n_classes = net, neighbours, n_classes
        self.options = options

    def distance(self, a, b):
        return DISTANCES[self.options.ccl_distance](a, b, self.options.ccl_reduction)

    def ccl_terms(self, i, z, sent, batches):
        """L_mv and L_dv of agent i. z carries the gradient; everything else is constant.
        sent [n, P] are the models on the wire: the neighbours' ones give z_ji on my batch, my
        own one is what the neighbours evaluated on their batches."""
        own, near = batches[i], self.neighbours[i]
        z_ji = [self.net.features(sent[j], own.inputs) for j in near]
        parts = [class_sums(z.detach(), own.labels, self.n_classes)]
        for j in near:
            z_ij = self.net.features(sent[i], batches[j].inputs)
            parts.append(class_sums(z_ij, batches[j].labels, self.n_classes))
        mv = model_variant_loss(z, z_ji, self.distance)
        dv = self.distance(z, class_means(parts)[own.labels])
        return mv, dv

    def gradient(self, i, at, sent, batches):
        """Gradient of agent i's loss at the row at[i], weight decay included, and the losses."""
        x = at[i].clone().requires_grad_(True)
        z, logits = self.net.forward(x, batches[i].inputs)
        ce = F.cross_entropy(logits, batches[i].labels)
        loss, mv, dv = ce, torch.zeros(()), torch.zeros(())
        if self.options.loss == "ccl":
            mv, dv = self.ccl_terms(i, z, sent, batches)
            loss = ce + self.options.lambda_m * mv + self.options.lambda_d * dv
        (g,) = torch.autograd.grad(loss, x)
        g = g + self.options.weight_decay * at[i]
        return g, Losses(float(ce), float(mv), float(dv))

    def gradients(self, at, sent, batches):
        """All agents: gradients [n, P] and the losses averaged over the agents."""
        results = [self.gradient(i, at, sent, batches) for i in range(len(at))]
        losses = Losses(*(sum(v) / len(at) for v in zip(*(l for _, l in results))))
        return torch.stack([g for g, _ in results]), losses


# --------------------------------------------------------------------------- algorithms
#
# step(x, gradients, lr) gives the next x and the losses of this step;
# gradients(at, sent) evaluates all agents at `at` while `sent` is what the neighbours hold.

class Momentum:
    """m <- beta m + g; direction g + beta m (Nesterov) or m."""

    def __init__(self, beta, nesterov):
        self.beta, self.nesterov = beta, nesterov

    def accumulate(self, m, g):
        m = self.beta * m + g
        return m, self.direction(m, g)

    def direction(self, m, g):
        return g + self.beta * m if self.nesterov else m


class Dsgdm:
    """Algorithm 1, adapt then combine; the buffers are local. DSGD is beta = 0."""

    def __init__(self, x, w, momentum):
        self.w, self.momentum, self.m = w, momentum, torch.zeros_like(x)

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        self.m, d = self.momentum.accumulate(self.m, g)
        return self.w @ (x - lr * d), losses


class QuasiGlobal:
    """What `paper` and `atc` share: m_hat follows the movement of the model, which holds both
    the own step and what mixing did."""

    def __init__(self, x, w, momentum, gamma):
        self.w, self.momentum, self.gamma = w, momentum, gamma
        self.m_hat = torch.zeros_like(x)

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        _, d = self.momentum.accumulate(self.m_hat, g)
        x_next = self.move(x, d, lr)
        self.m_hat = self.track(x, x_next, lr)
        return x_next, losses

    def track(self, x, x_next, lr):
        beta = self.momentum.beta
        return beta * self.m_hat + (1 - beta) * (x - x_next) / lr


class QgPaper(QuasiGlobal):
    """Algorithm 2: combine then adapt."""

    def move(self, x, d, lr):
        return x + self.gamma * residual(self.w, x) - lr * d


class QgAtc(QuasiGlobal):
    """The order of the QGM authors: step, then mix the result."""

    def move(self, x, d, lr):
        half = x - lr * d
        return half + self.gamma * residual(self.w, half)


class QgWacv24:
    """The CCL authors' code: mix, correct the momentum by what mixing did, then a plain
    momentum step from the mixed model, with no (1 - beta) average."""

    def __init__(self, x, w, momentum, gamma):
        self.w, self.momentum, self.gamma = w, momentum, gamma
        self.m, self.lr_before = torch.zeros_like(x), None

    def step(self, x, gradients, lr):
        r = self.gamma * residual(self.w, x)
        self.m = self.m - r / self.previous_lr(lr)
        mixed = x + r
        g, losses = gradients(mixed, x)  # the neighbours only know the model before mixing
        self.m, d = self.momentum.accumulate(self.m, g)
        self.lr_before = lr
        return mixed - lr * d, losses

    def previous_lr(self, lr):
        return lr if self.lr_before is None else self.lr_before


class Relay:
    """RelaySGD on a tree: sums of models travel one hop per iteration, with the number of
    models in each sum; what has not arrived yet is filled in."""

    def __init__(self, x, tree, momentum, fill):
        self.tree, self.momentum, self.fill = tree, momentum, fill
        self.m, self.x0 = torch.zeros_like(x), x.clone()
        # arrived[i][k] = (sum, count) of the last message from k to i
        self.arrived = [{k: (torch.zeros_like(x[i]), 0) for k in near}
                        for i, near in enumerate(tree)]

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        self.m, d = self.momentum.accumulate(self.m, g)
        half = x - lr * d
        self.arrived = self.exchange(half)
        return torch.stack([self.average(i, half[i]) for i in range(len(x))]), losses

    def message(self, i, j, half):
        """i -> j: own model plus what the others, not j, told i one iteration ago."""
        others = [self.arrived[i][k] for k in self.tree[i] if k != j]
        return half[i] + sum(m for m, _ in others), 1 + sum(c for _, c in others)

    def exchange(self, half):
        return [{j: self.message(j, i, half) for j in near} for i, near in enumerate(self.tree)]

    def average(self, i, half_i):
        n = len(self.tree)
        missing = n - 1 - sum(c for _, c in self.arrived[i].values())
        filler = self.x0[i] if self.fill == "init" else half_i
        return (half_i + sum(m for m, _ in self.arrived[i].values()) + missing * filler) / n


def make_algorithm(options, x, neighbours):
    w = mixing_matrix(neighbours)
    if options.algorithm == "dsgd":
        return Dsgdm(x, w, Momentum(0.0, False))
    momentum = Momentum(options.momentum, options.nesterov == "on")
    if options.algorithm == "dsgdm":
        return Dsgdm(x, w, momentum)
    if options.algorithm == "relaysgd":
        return Relay(x, relay_tree(options.topology, neighbours), momentum, options.relay_fill)
    assert options.algorithm == "qg-dsgdm", options.algorithm
    variant = {"paper": QgPaper, "atc": QgAtc, "wacv24": QgWacv24}[options.variant]
    return variant(x, w, momentum, options.gamma)


# --------------------------------------------------------------------------- training

def option_parser():
    """The options of `crosstalk train` that change the numbers, spelled the same."""
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("--algorithm", required=True)
    p.add_argument("--variant", default="paper")
    p.add_argument("--relay-fill", default="init")
    p.add_argument("--loss", default="ce")
    p.add_argument("--lambda-m", type=float, default=0.0)
    p.add_argument("--lambda-d", type=float, default=0.0)
    p.add_argument("--ccl-distance", default="mse")
    p.add_argument("--ccl-reduction", default="mean")
    p.add_argument("--topology", default="ring")
    p.add_argument("--gamma", type=float, default=1.0)
    p.add_argument("--lr", type=float, required=True)
    p.add_argument("--lr-decay", type=float, default=0.1)
    p.add_argument("--lr-milestones", default="0.5,0.75")
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--nesterov", default="on")
    p.add_argument("--weight-decay", type=float, default=0.0)
    p.add_argument("--batch-size", type=int, required=True)
    p.add_argument("--epochs", type=int, required=True)
    p.add_argument("--init", required=True)
    return p


def step_size(options, epoch):
    """x lr_decay from the first epoch e (from 0) with e >= milestone * epochs."""
    milestones = [float(m) for m in options.lr_milestones.split(",")]
    passed = sum(epoch >= m * options.epochs for m in milestones)
    return options.lr * options.lr_decay ** passed


def tensor_images(pixels):
    """uint8 [n, h, w] to float64 [n, 1, h, w] in [-1, 1]."""
    x = torch.tensor(pixels, dtype=torch.float64)
    return ((x / 255 - 0.5) / 0.5)[:, None]


def batch_at(images, labels, samples, size, k):
    """Batch k of the epoch, in the order of the agent's list; the last one may be short."""
    chosen = samples[k * size:(k + 1) * size]
    return Batch(images[chosen], labels[chosen])


def train(net, x, images, labels, lists, n_classes, options, iterations):
    """x [n, P] after `iterations` steps and the mean losses of the last one."""
    n = len(lists)
    neighbours = neighbour_lists(graph_edges(options.topology, n), n)
    objective = Objective(net, neighbours, n_classes, options)
    algorithm = make_algorithm(options, x, neighbours)
    per_epoch = -(-len(lists[0]) // options.batch_size)
    losses = None
    for t in range(iterations):
        batches = [batch_at(images, labels, s, options.batch_size, t % per_epoch)
                   for s in lists]
        x, losses = algorithm.step(
            x, lambda at, sent: objective.gradients(at, sent, batches),
            step_size(options, t // per_epoch))
    return x, losses
