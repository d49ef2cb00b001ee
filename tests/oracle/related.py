"""The methods of the paper's related work in float64, each from its own paper's equations.

As in oracle.py nothing is shared with the C code, and the forms are the papers' own even where the
C code uses another one: D2 with two models, GUT with the tracked y sent along, SGP with its
numerators, CGA's quadratic program by trying every active set.
Writes tests/fixtures/related: cases.txt, expected.txt, expected/ (see README.md).
"""

import math
import os

import torch
import torch.nn.functional as F

import cases
import changing
import files
import oracle
from cases import CCL, CE, COMMON, DECAY, DIFFERENT, SAME, join_options


class GradientTracking:
    """y tracks the mean gradient; x and y are both mixed. beta = 0 is the original. atc mixes what
    the step has made of x."""

    def __init__(self, x, mix, options):
        self.is_atc = options.variant == "atc"
        self.mix, self.beta, self.nesterov = mix, options.momentum, options.nesterov == "on"
        self.y, self.g, self.m = None, None, torch.zeros_like(x)

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        self.y = g if self.y is None else self.y + g - self.g
        self.g = g
        self.m = self.beta * self.m + self.y
        d = self.y + self.beta * self.m if self.nesterov else self.m
        x = self.mix(x - lr * d) if self.is_atc else self.mix(x) - lr * d
        self.y = self.mix(self.y)
        return x, losses


class FederatedAveraging:
    """DFedAvgM: y - eta g + beta (y - y_before) within a round, y_before = y at its beginning."""

    def __init__(self, x, mix, options):
        self.mix, self.beta, self.before = mix, options.momentum, x

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        y = self.mix(x - lr * g + self.beta * (x - self.before))
        self.before = y if self.mix.gossips else x
        return y, losses


class MomentumTracking:
    """tmlr23 begins where agent i's momentum would be after many steps with the first gradients."""

    def __init__(self, x, mix, options):
        self.mix, self.beta = mix, options.momentum
        self.u, self.c = torch.zeros_like(x), torch.zeros_like(x)
        self.starts_apart = options.variant == "tmlr23"

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        if self.starts_apart:
            self.u = self.c = (g - g.mean(0)) / (1 - self.beta)
            self.starts_apart = False
        self.u = self.beta * self.u + g
        x = self.mix(x) - lr * (self.u - self.c)
        self.c = self.mix(self.c - self.u) + self.u
        return x, losses


class DSquared:
    """x+ = W(2 x - x_prev - eta (g - g_prev)); with (x_prev - x) / eta_prev kept when eta moves."""

    def __init__(self, x, mix, options):
        n = len(x)
        w = mix(torch.eye(n, dtype=torch.float64))
        smallest = float(torch.linalg.eigvalsh((w + w.T) / 2)[0])
        self.mix = mix if smallest > -1 / 3 + 1e-9 else lambda v: (v + mix(v)) / 2
        self.before = None

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        half = x - lr * g
        if self.before is not None:
            x_prev, g_prev, lr_prev = self.before
            half = x + lr * (x - x_prev) / lr_prev - lr * (g - g_prev)
        self.before = (x, g, lr)
        return self.mix(half), losses


class GlobalUpdateTracking:
    """y and the gradients of the step before are simply kept; beta = 0 is GUT, else QG-GUTm."""

    def __init__(self, x, mix, options):
        self.mix, self.beta, self.mu = mix, options.momentum, options.gut_mu
        self.before, self.m_hat = None, torch.zeros_like(x)

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        y = g + (x - self.mix(x)) / lr
        if self.before is not None:
            y_prev, g_prev = self.before
            y = y + self.mu * (self.mix(y_prev) - g_prev)
        self.before = (y, g)
        x_next = x - lr * (self.beta * self.m_hat + y)
        self.m_hat = self.beta * self.m_hat + (1 - self.beta) * (x - x_next) / lr
        return x_next, losses


class GlobalUpdateTracking23:
    """The authors' program with its accumulated moves, W (x - x_prev) + b (W - I) x_prev."""

    def __init__(self, x, mix, options):
        beta, nesterov = options.momentum, options.nesterov == "on"
        self.mix, self.mu = mix, options.gut_mu
        self.momentum = oracle.Momentum(beta, nesterov)
        self.b = 1 + beta + beta * beta if nesterov else 1 + beta
        self.before, self.m, self.lr = None, torch.zeros_like(x), None

    def step(self, x, gradients, lr):
        lr_prev = self.lr or lr
        mixed = self.mix(x)
        g, losses = gradients(mixed, x)
        y = delta = g - (mixed - x) / lr_prev
        if self.before is not None:
            x_prev, delta_prev = self.before
            moves = self.mix(x - x_prev) + self.b * (self.mix(x_prev) - x_prev)
            y = delta - self.mu * moves / lr_prev - self.mu * delta_prev
        self.before, self.lr = (x, delta), lr
        self.m, d = self.momentum.accumulate(self.m, y)
        return x - lr * d, losses


class AllReduce:
    """One model, one gradient: the mean of all agents'. All start from the mean of the starts."""

    def __init__(self, x, mix, options):
        self.momentum = oracle.Momentum(options.momentum, options.nesterov == "on")
        self.m = torch.zeros_like(x[0])
        self.x = x.mean(0)

    def step(self, x, gradients, lr):
        same = self.x.expand_as(x)
        g, losses = gradients(same, same)
        self.m, d = self.momentum.accumulate(self.m, g.mean(0))
        self.x = self.x - lr * d
        return self.x.repeat(len(x), 1), losses


class Local(oracle.Dsgdm):
    """Nobody talks to anybody."""

    def __init__(self, x, mix, options):
        super().__init__(x, torch.eye(len(x), dtype=torch.float64),
                         oracle.Momentum(options.momentum, options.nesterov == "on"))


class CrossGradients:
    """What CGA and NGC share: x+ = W x - eta d with momentum on the gradient they make of
    g[i][i], g[j][i] (neighbour j's model on my batch) and g[i][j] (my model on j's batch)."""

    def __init__(self, x, mix, options):
        self.mix, self.options = mix, options
        self.momentum = oracle.Momentum(options.momentum, options.nesterov == "on")
        self.m = torch.zeros_like(x)
        self.sizes = None

    def step(self, x, gradients, lr):
        self.sizes = [math.prod(shape) for _, shape in gradients.objective.net.shapes]
        own, losses = gradients(x, x)
        sources, receivers = gradients.objective.sources, gradients.objective.receivers
        g = torch.stack([self.combine(own[i], [gradients.cross(j, i) for j in sources[i]],
                                      [gradients.cross(i, j) for j in receivers[i]],
                                      Shares(self.mix.w, i, sources[i], receivers[i]))
                         for i in range(len(x))])
        self.m, d = self.momentum.accumulate(self.m, g)
        return self.mix(x) - lr * d, losses


class Shares:
    """Entries of W: agent i's own, what it takes of its sources, what its receivers take of it."""

    def __init__(self, w, i, sources, receivers):
        self.own = w[i, i]
        self.sources = [w[i, j] for j in sources]
        self.receivers = [w[j, i] for j in receivers]


class Ngc(CrossGradients):
    def combine(self, own, model_variant, data_variant, shares):
        a = self.options.ngc_alpha
        if self.options.variant == "weighted":
            parts = [(1 - a) * s * g for s, g in zip(shares.sources, model_variant)]
            parts += [a * s * g for s, g in zip(shares.receivers, data_variant)]
            return shares.own * own + sum(parts)
        model_mean, data_mean = (torch.stack([own] + more).mean(0)
                                 for more in (model_variant, data_variant))
        return (1 - a) * model_mean + a * data_mean


class Cga(CrossGradients):
    def combine(self, own, model_variant, data_variant, shares):
        if self.options.variant == "icml21":
            return self.by_tensor(own, data_variant, shares)
        m = torch.stack([own] + data_variant)
        return self.project(own, m)

    def by_tensor(self, own, data_variant, shares):
        """The authors' program: weighted gradients, one problem a tensor, neighbours' rows alone."""
        own = shares.own * own
        if not data_variant:
            return own
        rows = [s * g for s, g in zip(shares.receivers, data_variant)]
        parts = zip(own.split(self.sizes), *[row.split(self.sizes) for row in rows])
        return torch.cat([self.project(part[0], torch.stack(part[1:])) for part in parts])

    def project(self, g, m):
        return m.T @ self.multipliers(m @ m.T, m @ g) + g

    def multipliers(self, k, c):
        """Every set of constraints that may be active, solved exactly; the best that is feasible."""
        n, margin, best = len(c), self.options.cga_margin, None
        for active in range(2 ** n):
            held = [r for r in range(n) if active >> r & 1]
            free = [r for r in range(n) if not active >> r & 1]
            v = torch.full((n,), margin, dtype=torch.float64)
            if free:
                rhs = -c[free] - k[free][:, held] @ v[held]
                v[free] = torch.linalg.lstsq(k[free][:, free], rhs, driver="gelsd").solution
            value = 0.5 * v @ k @ v + c @ v
            if (v >= margin - 1e-12).all() and (best is None or value < best[0]):
                best = (value, v)
        return best[1]


class GradientPush:
    """Numerators u and weights w are pushed; the models are u / w. icml19 decays u instead of u / w."""

    def __init__(self, x, mix, options):
        self.mix = mix
        self.decay = options.weight_decay if options.variant == "icml19" else 0.0
        self.momentum = oracle.Momentum(options.momentum, options.nesterov == "on")
        self.m, self.u = torch.zeros_like(x), x
        self.w = torch.ones(len(x), 1, dtype=torch.float64)

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        g = g - self.decay * x + self.decay * self.u
        self.m, d = self.momentum.accumulate(self.m, g)
        self.u, self.w = self.mix(self.u - lr * d), self.mix(self.w)
        return self.u / self.w, losses


class Dsgdm:
    """The paper's Algorithm 1, for the cases whose graph changes; cta steps from the mixed models."""

    def __init__(self, x, mix, options):
        self.mix, self.is_cta = mix, options.variant == "cta"
        beta = 0.0 if options.algorithm == "dsgd" else options.momentum
        self.momentum = oracle.Momentum(beta, beta > 0 and options.nesterov == "on")
        self.m = torch.zeros_like(x)

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        self.m, d = self.momentum.accumulate(self.m, g)
        return self.mix(x) - lr * d if self.is_cta else self.mix(x - lr * d), losses


class QgPaper(oracle.QgPaper):
    """The paper's Algorithm 2, for the cases whose graph changes."""

    def __init__(self, x, mix, options):
        momentum = oracle.Momentum(options.momentum, options.nesterov == "on")
        super().__init__(x, None, momentum, options.gamma)
        self.mix = mix

    def move(self, x, d, lr):
        return self.mix(x) - lr * d


# The two binary trees over five agents, by hand: the second is the first moved on by one.
TWO_TREES = [[(1, 2), (2, 4), (3, 2), (4, 0)], [(2, 3), (3, 0), (4, 3), (0, 1)]]


class DoubleRelay:
    """RelaySGD with one half of the parameters (cut at a multiple of 16) along each of two trees."""

    def __init__(self, x, mix, options):
        n, middle = len(x), x.shape[1] // 2 // 16 * 16
        self.momentum = oracle.Momentum(options.momentum, options.nesterov == "on")
        self.m = torch.zeros_like(x)
        self.parts = [slice(0, middle), slice(middle, None)]
        self.relays = [oracle.Relay(x[:, part], oracle.neighbour_lists(edges, n), None,
                                    options.relay_fill)
                       for part, edges in zip(self.parts, TWO_TREES)]

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        self.m, d = self.momentum.accumulate(self.m, g)
        half = x - lr * d
        return torch.cat([self.pass_on(relay, half[:, part])
                          for relay, part in zip(self.relays, self.parts)], 1), losses

    @staticmethod
    def pass_on(relay, half):
        relay.arrived = relay.exchange(half)
        return torch.stack([relay.average(i, half[i]) for i in range(len(half))])


METHODS = {"relaysgd": DoubleRelay, "gt": GradientTracking, "mt": MomentumTracking, "d2": DSquared,
           "gut": GlobalUpdateTracking, "allreduce": AllReduce, "local": Local,
           "sgp": GradientPush, "cga": Cga, "ngc": Ngc, "dsgdm": Dsgdm, "dfedavgm": FederatedAveraging,
           "qg-dsgdm": QgPaper, "dsgd": Dsgdm,
           "gut neurips23": GlobalUpdateTracking23}


def method_of(options):
    return METHODS.get(options.algorithm + " " + options.variant) or METHODS[options.algorithm]


def steps_of(topology, n):
    if topology == "double-binary-tree":
        return [oracle.mixing_matrix(oracle.neighbour_lists(TWO_TREES[0] + TWO_TREES[1], n))]
    if topology == "one-peer-exponential":
        return changing.one_peer_steps(n)
    if topology == "schedule:related/directed.txt":
        return changing.directed_steps(n)
    if topology in ("epidemic:4", "epidemic-local:4"):  # of five agents: to everyone else
        return [torch.full((n, n), 1.0 / n, dtype=torch.float64)]
    return [oracle.mixing_matrix(oracle.neighbour_lists(oracle.graph_edges(topology, n), n))]


class Mixing:
    """v -> v + gamma (W v - v) with the W of the step."""

    def __init__(self, gamma, w):
        self.gamma, self.w, self.gossips = gamma, w, True

    def __call__(self, v):
        return v + self.gamma * (self.w @ v - v)


class Objective(oracle.Objective):
    """On one-way edges: I see the models of those I receive from, and hear about my own from
    those I send to. Knows what CCL may leave out, label smoothing and clipping."""

    def __init__(self, net, n_classes, options):
        super().__init__(net, None, n_classes, options)
        self.t, self.means = 0, {}

    def connect(self, w, t, gossips):
        """t counts rounds of gossip."""
        n, o, self.t, self.gossips = len(w), self.options, t, gossips
        self.sources = [[j for j in range(n) if j != i and w[i, j] > 0] for i in range(n)]
        self.receivers = [[j for j in range(n) if j != i and w[j, i] > 0] for i in range(n)]
        self.chosen = [self.due(near, o.ccl_neighbours, t // o.ccl_every) for near in self.sources]

    @staticmethod
    def due(near, m, turn):
        """m neighbours at a time, moving on by m every turn."""
        if m == 0 or m >= len(near):
            return near
        return [near[(turn * m + k) % len(near)] for k in range(m)]

    def some(self, batch):
        n = math.ceil(self.options.ccl_batch_fraction * len(batch.labels))
        return oracle.Batch(batch.inputs[:n], batch.labels[:n])

    def ccl_terms(self, i, z, sent, batches):
        own, mine = batches[i], self.some(batches[i])
        z_ji = [self.net.features(sent[j], mine.inputs) for j in self.chosen[i]]
        parts = [oracle.class_sums(z.detach(), own.labels, self.n_classes)]
        for j in self.receivers[i]:
            if i in self.chosen[j]:
                theirs = self.some(batches[j])
                z_ij = self.net.features(sent[i], theirs.inputs)
                parts.append(oracle.class_sums(z_ij, theirs.labels, self.n_classes))
        mv = oracle.model_variant_loss(z[:len(mine.labels)], z_ji, self.distance)
        dv = self.distance(z, oracle.class_means(parts)[own.labels])
        return mv, dv

    def lambdas(self, i):
        o = self.options
        if o.ccl_adaptive == 0:
            return o.lambda_m, o.lambda_d
        if i not in self.means:
            return 0.0, 0.0
        ce, mv, dv = self.means[i]
        return tuple(min(1.0, o.ccl_adaptive * ce / v) if v > 0 else 1.0 for v in (mv, dv))

    def remember(self, i, losses):
        old = self.means.get(i, losses)
        self.means[i] = tuple(0.9 * a + 0.1 * b for a, b in zip(old, losses))

    def gradient(self, i, at, sent, batches):
        o = self.options
        x = at[i].clone().requires_grad_(True)
        z, logits = self.net.forward(x, batches[i].inputs)
        ce = F.cross_entropy(logits, batches[i].labels, label_smoothing=o.label_smoothing)
        loss, mv, dv = ce, torch.zeros(()), torch.zeros(())
        contrasts = o.loss == "ccl" and self.gossips and self.t % o.ccl_every == 0
        if contrasts:
            mv, dv = self.ccl_terms(i, z, sent, batches)
            lambda_m, lambda_d = self.lambdas(i)
            loss = ce + lambda_m * mv + lambda_d * dv
        (g,) = torch.autograd.grad(loss, x)
        losses = oracle.Losses(float(ce), float(mv), float(dv))
        if contrasts:
            self.remember(i, losses)
        g = g + o.weight_decay * at[i]
        if o.clip_norm > 0:
            g = g * min(1.0, o.clip_norm / float(g.norm()))
        return g, losses


# --------------------------------------------------------------------------- cases

def case_list():
    result = []

    def add(name, algorithm, *parts):
        result.append((name, join_options("--algorithm " + algorithm, "--topology ring", COMMON,
                                          SAME, *parts)))

    beta = " --momentum 0.9"
    add("gt-ce-plain", "gt --momentum 0", CE)
    add("gt-ce-nesterov-agents", "gt" + beta, CE, DIFFERENT, "--nesterov on")
    add("gt-ccl-chain-gamma", "gt" + beta, CCL, "--nesterov off --topology chain --gamma 0.9")
    add("gt-ce-lrdecay", "gt --momentum 0", CE, DECAY)
    add("gt-atc-ce-agents", "gt --variant atc --momentum 0", CE, DIFFERENT)
    add("gt-atc-ccl-chain-gamma", "gt --variant atc" + beta, CCL,
        "--nesterov on --topology chain --gamma 0.9")
    add("mt-ce", "mt" + beta, CE)
    add("mt-ccl-agents-gamma", "mt" + beta, CCL, DIFFERENT, "--gamma 0.9 --topology star")
    add("mt-ce-lrdecay", "mt --momentum 0.5", CE, DECAY)
    add("mt-tmlr23-ce", "mt --variant tmlr23" + beta, CE)
    add("mt-tmlr23-ccl-agents-gamma", "mt --variant tmlr23" + beta, CCL, DIFFERENT,
        "--gamma 0.9 --topology star")
    add("mt-tmlr23-ce-every-2", "mt --variant tmlr23 --momentum 0.5", CE, DIFFERENT,
        "--local-steps 2 --topology chain")
    add("d2-ce", "d2", CE, DIFFERENT)
    add("d2-ccl-chain", "d2", CCL, "--topology chain")
    add("d2-ce-lrdecay", "d2", CE, DECAY, DIFFERENT)
    add("gut-ce-plain", "gut --momentum 0 --gut-mu 0.6", CE)
    add("gut-ce-momentum-agents", "gut --gut-mu 0.3" + beta, CE, DIFFERENT)
    add("gut-ccl-chain-gamma", "gut --gut-mu 0.5" + beta, CCL, "--topology chain --gamma 0.9")
    add("gut-ce-lrdecay", "gut --gut-mu 0.3 --momentum 0.5", CE, DECAY)
    authors = "gut --variant neurips23 --gut-mu "
    add("gut-neurips23-ce-plain-agents", authors + "0.9 --momentum 0", CE, DIFFERENT)
    add("gut-neurips23-ccl-chain-gamma", authors + "0.08" + beta, CCL,
        "--nesterov on --topology chain --gamma 0.9")
    add("gut-neurips23-ce-heavyball-lrdecay", authors + "0.3" + beta, CE, DECAY, DIFFERENT,
        "--nesterov off")
    add("allreduce-ce", "allreduce" + beta, CE, "--nesterov on")
    add("allreduce-ccl-heavyball-agents", "allreduce" + beta, CCL, DIFFERENT, "--nesterov off")
    add("local-ce", "local" + beta, CE, "--nesterov on")
    directed, one_peer = "--topology schedule:related/directed.txt", "--topology one-peer-exponential"
    add("sgp-ce-directed-agents", "sgp" + beta, CE, DIFFERENT, directed, "--nesterov on")
    add("sgp-ccl-directed-gamma", "sgp" + beta, CCL, directed, "--nesterov off --gamma 0.8")
    add("sgp-ccl-ring", "sgp --momentum 0", CCL, DIFFERENT)
    add("sgp-ce-one-peer-lrdecay", "sgp" + beta, CE, DECAY, one_peer, "--nesterov on")
    decays = "--weight-decay 0.1"
    add("sgp-icml19-ce-directed-agents", "sgp --variant icml19" + beta, CE, DIFFERENT, directed,
        decays, "--nesterov on")
    add("sgp-icml19-ccl-directed-gamma", "sgp --variant icml19" + beta, CCL, directed, decays,
        "--nesterov off --gamma 0.8")
    add("dsgd-cta-ce-agents", "dsgd --variant cta", CE, DIFFERENT)
    add("dsgdm-cta-ccl-chain-gamma", "dsgdm --variant cta" + beta, CCL, DIFFERENT,
        "--nesterov off --topology chain --gamma 0.9")
    add("dsgdm-ccl-one-peer", "dsgdm" + beta, CCL, DIFFERENT, one_peer, "--nesterov on")
    add("gt-ce-one-peer", "gt --momentum 0", CE, DIFFERENT, one_peer)
    # CGA on agents that start apart: with equal ones no constraint is active
    add("cga-ce-agents", "cga" + beta, CE, DIFFERENT, "--nesterov on")
    add("cga-ce-margin-chain", "cga --momentum 0 --cga-margin 0.3", CE, "--topology chain")
    add("cga-ccl-one-peer", "cga" + beta, CCL, DIFFERENT, one_peer, "--nesterov off --gamma 0.9")
    authors = "cga --variant icml21"
    add("cga-icml21-ce-agents", authors + beta, CE, DIFFERENT, "--nesterov on")
    add("cga-icml21-ce-margin-star", authors + " --cga-margin 0.5" + beta, CE, DIFFERENT,
        "--topology star --nesterov on")
    add("cga-icml21-ccl-one-peer", authors + " --cga-margin 0.2" + beta, CCL, DIFFERENT, one_peer,
        "--nesterov off --gamma 0.9")
    add("cga-icml21-ce-every-2", authors + " --momentum 0", CE, DIFFERENT, "--local-steps 2")
    add("ngc-ce", "ngc" + beta, CE, "--nesterov on")
    add("ngc-ccl-star-agents", "ngc --ngc-alpha 0.3" + beta, CCL, DIFFERENT, "--topology star "
        "--nesterov off")
    add("ngc-ce-model-variant-one-peer", "ngc --ngc-alpha 0" + beta, CE, DIFFERENT, one_peer,
        "--nesterov on")
    add("ngc-weighted-ccl-star-agents", "ngc --variant weighted --ngc-alpha 0.3" + beta, CCL,
        DIFFERENT, "--topology star --nesterov off")
    add("ngc-weighted-ce-chain", "ngc --variant weighted" + beta, CE, DIFFERENT,
        "--topology chain --nesterov on")
    add("ngc-weighted-ce-one-peer", "ngc --variant weighted --ngc-alpha 0.6 --momentum 0", CE,
        DIFFERENT, one_peer)
    add("local-ccl-agents", "local" + beta, CCL, DIFFERENT, "--nesterov off")
    add("relay-double-ccl-agents", "relaysgd --relay-fill init" + beta, CCL, DIFFERENT,
        "--nesterov off --topology double-binary-tree")
    nesterov = "--nesterov on"
    add("ccl-every-2-neighbours-1", "dsgdm" + beta, CCL, DIFFERENT, nesterov,
        "--ccl-every 2 --ccl-neighbours 1 --topology star")
    add("ccl-batch-fraction", "dsgdm" + beta, CCL, DIFFERENT, nesterov, "--ccl-batch-fraction 0.4")
    add("ccl-adaptive", "dsgdm" + beta, "--loss ccl --ccl-adaptive 0.1", DIFFERENT, nesterov)
    add("dfedavgm-ce-every-3", "dfedavgm" + beta, CE, "--local-steps 3")
    add("dfedavgm-ccl-every-2-agents-gamma", "dfedavgm" + beta, CCL, DIFFERENT,
        "--local-steps 2 --topology star --gamma 0.8")
    add("dfedavgm-ce-agents-growing", "dfedavgm" + beta, CE, DIFFERENT, "--local-steps 1:4 --epochs 2")
    add("dsgdm-ccl-every-2-one-peer", "dsgdm" + beta, CCL, DIFFERENT, one_peer, nesterov,
        "--local-steps 2")
    add("dsgdm-ccl-every-2-contrast-2", "dsgdm" + beta, CCL, DIFFERENT, nesterov,
        "--local-steps 2 --ccl-every 2 --ccl-neighbours 1")
    add("qg-ccl-every-2", "qg-dsgdm" + beta, CCL, DIFFERENT, nesterov, "--local-steps 2")
    add("gt-ce-every-2", "gt" + beta, CE, DIFFERENT, nesterov, "--local-steps 2")
    add("mt-ce-every-2", "mt" + beta, CE, DIFFERENT, "--local-steps 2 --topology chain")
    add("sgp-ce-directed-every-2", "sgp" + beta, CE, DIFFERENT, directed, nesterov,
        "--local-steps 2")
    add("ngc-ce-every-2", "ngc" + beta, CE, DIFFERENT, nesterov, "--local-steps 2")
    add("cga-ce-every-2", "cga" + beta, CE, DIFFERENT, nesterov, "--local-steps 2")
    add("dsgdm-ce-epidemic", "dsgdm" + beta, CE, DIFFERENT, nesterov, "--topology epidemic:4")
    add("dsgdm-ccl-epidemic-local", "dsgdm" + beta, CCL, DIFFERENT, nesterov,
        "--topology epidemic-local:4")
    add("smoothing-clip", "dsgdm" + beta, CE, nesterov, "--label-smoothing 0.2 --clip-norm 0.8")
    return result


def option_parser():
    p = oracle.option_parser()
    p.add_argument("--gut-mu", type=float, default=0.3)
    p.add_argument("--ngc-alpha", type=float, default=1.0)
    p.add_argument("--cga-margin", type=float, default=0.0)
    p.add_argument("--ccl-every", type=int, default=1)
    p.add_argument("--ccl-neighbours", type=int, default=0)
    p.add_argument("--ccl-batch-fraction", type=float, default=1.0)
    p.add_argument("--ccl-adaptive", type=float, default=0.0)
    p.add_argument("--label-smoothing", type=float, default=0.0)
    p.add_argument("--clip-norm", type=float, default=0.0)
    p.add_argument("--local-steps", default="1")
    return p


def run(problem, options):
    steps = steps_of(options.topology, cases.N_AGENTS)
    objective = Objective(problem.net, cases.N_CLASSES, options)
    x = problem.start(options.init)
    mix = Mixing(options.gamma, steps[0])
    method = method_of(options)(x, mix, options)
    per_epoch = -(-cases.PER_AGENT // options.batch_size)
    losses, turn = None, 0
    gossips = changing.gossiping(options.local_steps, int(options.epochs) * per_epoch)
    for t in range(cases.ITERATIONS):
        mix.gossips = gossips[t]
        mix.w = steps[turn % len(steps)] if gossips[t] else torch.eye(len(x), dtype=torch.float64)
        objective.connect(mix.w, turn, gossips[t])
        turn += gossips[t]
        batches = [oracle.batch_at(problem.images, problem.labels, s, options.batch_size,
                                   t % per_epoch) for s in problem.lists]
        x, losses = method.step(x, Gradients(objective, batches, x),
                                oracle.step_size(options, t // per_epoch))
    return x, losses


class Gradients:
    """gradients(at, sent) of all agents, and cross(m, d): model m on agent d's batch, of the
    cross-entropy alone."""

    def __init__(self, objective, batches, x):
        self.objective, self.batches, self.x = objective, batches, x

    def __call__(self, at, sent):
        return self.objective.gradients(at, sent, self.batches)

    def cross(self, m, d):
        x = self.x[m].clone().requires_grad_(True)
        _, logits = self.objective.net.forward(x, self.batches[d].inputs)
        (g,) = torch.autograd.grad(F.cross_entropy(logits, self.batches[d].labels), x)
        return g + self.objective.options.weight_decay * self.x[m]


def write(fixtures):
    folder = os.path.join(fixtures, "related")
    os.makedirs(os.path.join(folder, "expected"), exist_ok=True)
    with open(os.path.join(folder, "directed.txt"), "w") as f:
        f.write(changing.DIRECTED)
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
