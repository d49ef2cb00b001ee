"""Methods of 2023 to 2025 in float64: exact diffusion with momentum, sharpness-aware gradients (SADDLe,
DFedSAM) and MoTEF, each from its own paper's equations.

As in oracle.py nothing is shared with the C code, and the forms are the papers' own even where the C code
uses another one: EDM with psi and phi, MoTEF with the matrices H, V, G and M of its Algorithm 1.
Writes tests/fixtures/recent: cases.txt, expected.txt, expected/ (see README.md).
"""

import os

import torch
import torch.nn.functional as F

import cases
import changing
import compressed
import files
import oracle
import related
from cases import CCL, CE, COMMON, DECAY, DIFFERENT, SAME, join_options

SECOND = 8  # index of the random numbers of what is shared beside x


class ExactDiffusion:
    """psi+ = x - eta m, phi = psi+ + x - psi, x+ = W phi; x - psi is rescaled when eta moves."""

    def __init__(self, x, mix, options):
        w = mix.w + (1 - options.gamma) * (torch.eye(len(x), dtype=torch.float64) - mix.w)
        smallest = float(torch.linalg.eigvalsh((w + w.T) / 2)[0])
        self.mix = mix if smallest > -1 / 3 + 1e-9 else lambda v: (v + mix(v)) / 2
        self.beta, self.m, self.psi, self.lr = options.momentum, torch.zeros_like(x), None, None

    def step(self, x, gradients, lr):
        g, losses = gradients(x, x)
        self.m = self.beta * self.m + (1 - self.beta) * g
        psi = x - lr * self.m
        phi = psi if self.psi is None else psi + lr / self.lr * (x - self.psi)
        self.psi, self.lr = psi, lr
        return self.mix(phi), losses


class MoTEF:
    """H and G are what neighbours know of X and V."""

    def __init__(self, x, mix, options):
        self.mix, self.gamma, self.part = mix, options.gamma, 1 - options.momentum
        self.v, self.m, self.pull = None, None, None

    def step(self, x, gradients, lr):
        h, w = self.mix.share(x), self.mix.w
        g, losses = gradients(x, x)
        if self.v is None:
            self.v = self.m = g
        else:
            m = (1 - self.part) * self.m + self.part * g
            self.v, self.m = self.v + self.pull + m - self.m, m
        known = self.mix.share_second(self.v)
        self.pull = self.gamma * (w @ known - known)
        return x + self.gamma * (w @ h - h) - lr * self.v, losses


class Sharing(compressed.Sharing):
    """There is a second matrix to share, of which nobody knows anything at first."""

    second = None

    def share_second(self, v):
        if self.copy is None:
            return v
        if self.second is None:
            self.second = torch.zeros_like(v)
        if self.gossips:
            compress = compressed.compressor(self.options.compress, self.shapes)
            sent = [compress((v[i] - self.second[i]).numpy(), compressed.Stream(self, i, SECOND))
                    for i in range(len(v))]
            self.second = self.second + torch.stack([torch.tensor(q) for q in sent])
        return self.second


def uphill(x, g, radius):
    return x + radius * g / g.norm() if radius > 0 else x


class Sharp:
    """Gradients at x + rho g / |g|; decay and clipping as without. Losses are those at x."""

    def loss_gradient(self, i, x, sent, batches, lambdas):
        x = x.clone().requires_grad_(True)
        z, logits = self.net.forward(x, batches[i].inputs)
        ce = F.cross_entropy(logits, batches[i].labels, label_smoothing=self.options.label_smoothing)
        loss, mv, dv = ce, torch.zeros(()), torch.zeros(())
        if lambdas is not None:
            mv, dv = self.ccl_terms(i, z, sent, batches)
            loss = ce + lambdas[0] * mv + lambdas[1] * dv
        (g,) = torch.autograd.grad(loss, x)
        return g, oracle.Losses(float(ce), float(mv), float(dv))

    def gradient(self, i, at, sent, batches):
        o = self.options
        contrasts = o.loss == "ccl" and self.gossips and self.t % o.ccl_every == 0
        lambdas = self.lambdas(i) if contrasts else None
        g, losses = self.loss_gradient(i, at[i], sent, batches, lambdas)
        if contrasts:
            self.remember(i, losses)
        if o.sam > 0:
            g, _ = self.loss_gradient(i, uphill(at[i], g, o.sam), sent, batches, lambdas)
        g = g + o.weight_decay * at[i]
        if o.clip_norm > 0:
            g = g * min(1.0, o.clip_norm / float(g.norm()))
        return g, losses


class Objective(Sharp, related.Objective):
    pass


class PackedObjective(Sharp, compressed.Objective):
    pass


class Gradients(related.Gradients):
    """Cross-gradients are sharpness-aware as well, each on its own."""

    def __init__(self, objective, batches, x, share):
        super().__init__(objective, batches, x)
        self.share = share

    def __call__(self, at, sent):
        return self.objective.gradients(at, self.share(sent), self.batches)

    def plain(self, x, d):
        x = x.clone().requires_grad_(True)
        _, logits = self.objective.net.forward(x, self.batches[d].inputs)
        (g,) = torch.autograd.grad(F.cross_entropy(logits, self.batches[d].labels), x)
        return g

    def cross(self, m, d):
        o, x = self.objective.options, self.x[m]
        return self.plain(uphill(x, self.plain(x, d), o.sam), d) + o.weight_decay * x


METHODS = {**related.METHODS, **compressed.METHODS, "edm": ExactDiffusion, "motef": MoTEF}


# --------------------------------------------------------------------------- cases

def case_list():
    result = []

    def add(name, algorithm, *parts):
        result.append((name, join_options("--algorithm " + algorithm, "--topology ring", COMMON,
                                          SAME, *parts)))

    beta, nesterov = " --momentum 0.9", "--nesterov on"
    one_peer = "--topology one-peer-exponential"
    add("edm-ce-agents", "edm" + beta, CE, DIFFERENT, "--lr 0.8")
    add("edm-ccl-chain-gamma", "edm" + beta, CCL, "--topology chain --gamma 0.8")
    add("edm-ce-lrdecay-star", "edm --momentum 0.5", CE, DECAY, DIFFERENT, "--topology star")
    add("edm-ccl-full-agents", "edm" + beta, CCL, DIFFERENT, "--topology full")
    add("edm-sam-ce", "edm" + beta, CE, "--lr 0.8 --sam 0.3")

    add("sam-qg-ce", "qg-dsgdm" + beta, CE, nesterov, "--sam 0.2")
    add("sam-qg-ccl-agents-gamma", "qg-dsgdm" + beta, CCL, DIFFERENT, nesterov, "--gamma 0.9 --sam 0.2")
    add("sam-qg-atc-ce-heavyball", "qg-dsgdm --variant atc" + beta, CE, DIFFERENT,
        "--nesterov off --sam 0.3")
    add("sam-qg-wacv24-ccl", "qg-dsgdm --variant wacv24" + beta, CCL, DIFFERENT, nesterov, "--sam 0.2")
    add("sam-qg-ccl-quantize-4", "qg-dsgdm" + beta, CCL, DIFFERENT, nesterov,
        "--compress quantize:4 --gamma 0.8 --sam 0.2")
    add("sam-ngc-ce-agents", "ngc" + beta, CE, DIFFERENT, nesterov, "--sam 0.2")
    add("sam-ngc-ccl-star", "ngc --ngc-alpha 0.3" + beta, CCL, DIFFERENT,
        "--topology star --nesterov off --sam 0.1")
    add("sam-ngc-weighted-ce-one-peer", "ngc --variant weighted --momentum 0", CE, DIFFERENT, one_peer,
        "--sam 0.2")
    add("sam-cga-ce-agents", "cga" + beta, CE, DIFFERENT, nesterov, "--sam 0.2")
    add("sam-dfedavgm-ce-every-3", "dfedavgm --momentum 0", CE, "--local-steps 3 --sam 0.2")
    add("sam-dfedavgm-ccl-every-2-agents", "dfedavgm" + beta, CCL, DIFFERENT,
        "--local-steps 2 --topology star --sam 0.2")
    add("sam-gt-ccl-chain", "gt" + beta, CCL, nesterov, "--topology chain --sam 0.2")
    add("sam-dsgdm-ccl-adaptive", "dsgdm" + beta, "--loss ccl --ccl-adaptive 0.1", DIFFERENT, nesterov,
        "--sam 0.2")
    add("sam-dsgdm-ce-clip-smoothing", "dsgdm" + beta, CE, nesterov,
        "--clip-norm 0.8 --label-smoothing 0.2 --sam 0.2")

    add("motef-ce", "motef" + beta, CE, "--lr 0.8")
    add("motef-ccl-chain-agents-gamma", "motef" + beta, CCL, DIFFERENT, "--topology chain --gamma 0.8")
    add("motef-ce-lrdecay", "motef --momentum 0.5", CE, DECAY, DIFFERENT)
    add("motef-ce-one-peer-every-2", "motef" + beta, CE, DIFFERENT, one_peer, "--local-steps 2")
    add("motef-ce-top-k", "motef" + beta, CE, DIFFERENT, "--lr 0.8 --compress top-k:0.2 --gamma 0.5")
    add("motef-ccl-quantize-4", "motef" + beta, CCL, DIFFERENT, "--compress quantize:4 --gamma 0.8")
    add("motef-ce-quantize-2-star", "motef" + beta, CE, "--compress quantize:2 --gamma 0.4 --topology star")
    add("motef-ce-sign-agents", "motef --momentum 0", CE, DIFFERENT, "--compress sign --gamma 0.4")
    add("motef-ccl-random-k-every-2", "motef" + beta, CCL, DIFFERENT,
        "--compress random-k:0.3 --gamma 0.3 --local-steps 2")
    add("motef-sam-ccl-top-k", "motef" + beta, CCL, DIFFERENT, "--compress top-k:0.3 --gamma 0.5 --sam 0.2")
    return result


def option_parser():
    p = compressed.option_parser()
    p.add_argument("--sam", type=float, default=0.0)
    return p


def run(problem, options, seed):
    steps = related.steps_of(options.topology, cases.N_AGENTS)
    x = problem.start(options.init)
    mix = Sharing(x, steps[0], options, seed, problem.net.shapes)
    kind = Objective if options.compress == "none" else PackedObjective
    objective = kind(problem.net, cases.N_CLASSES, options)
    objective.mix = mix
    name = options.algorithm + " " + options.variant
    method = (METHODS.get(name) or METHODS[options.algorithm])(x, mix, options)
    per_epoch = -(-cases.PER_AGENT // options.batch_size)
    gossips = changing.gossiping(options.local_steps, int(options.epochs) * per_epoch)
    losses, turn = None, 0
    for t in range(cases.ITERATIONS):
        now = steps[turn % len(steps)] if gossips[t] else torch.eye(len(x), dtype=torch.float64)
        mix.begin(now, t, gossips[t])
        objective.connect(now, turn, gossips[t])
        turn += gossips[t]
        batches = [oracle.batch_at(problem.images, problem.labels, s, options.batch_size,
                                   t % per_epoch) for s in problem.lists]
        contrasts = options.loss == "ccl" and gossips[t]
        gradients = Gradients(objective, batches, x, mix.share if contrasts else lambda v: v)
        x, losses = method.step(x, gradients, oracle.step_size(options, t // per_epoch))
    return x, losses, mix.margin


def best_seed(problem, options):
    """The seed whose thresholds are missed by most; the first one where nothing is random."""
    is_random = options.loss == "ccl" and options.compress != "none"
    seeds = compressed.SEEDS if is_random else compressed.SEEDS[:1]
    return max(((run(problem, options, seed), seed) for seed in seeds), key=lambda r: r[0][2])


def write(fixtures):
    folder = os.path.join(fixtures, "recent")
    os.makedirs(os.path.join(folder, "expected"), exist_ok=True)
    problem = cases.Problem(fixtures)
    with open(os.path.join(folder, "cases.txt"), "w") as listing, \
            open(os.path.join(folder, "expected.txt"), "w") as expected:
        for name, text in case_list():
            (x, losses, margin), seed = best_seed(problem, option_parser().parse_args(text.split()))
            assert torch.isfinite(x).all(), name
            print("%-36s seed %2d, margin %.1e" % (name, seed, margin), flush=True)
            files.write_safetensors(os.path.join(folder, "expected", name + ".safetensors"),
                                    cases.agent_tensors(problem.net, x))
            listing.write("%s %s --seed %d\n" % (name, text, seed))
            expected.write("%s %.9g %.9g %.9g\n" % ((name,) + losses))
