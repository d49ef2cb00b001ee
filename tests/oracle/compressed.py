"""Models and class sums that travel in fewer bytes, in float64: public copies (CHOCO-SGD) and AdaGossip.

As in oracle.py nothing is shared with the C code. Random numbers are those of its counter-based
generator, computed here once more. Rounding is a matter of which side of a threshold a number is on:
of every case that is random, the seed is the one whose numbers stay farthest from it.
Writes tests/fixtures/compress (see README.md).
"""

import os

import numpy as np
import torch

import cases
import changing
import files
import oracle
import related
from cases import CCL, CE, COMMON, DECAY, DIFFERENT, SAME, join_options

COMPRESS_USE, FIRST_RECEIVER, BUCKET = 10, 16, 256
SEEDS = range(1, 41)


def philox(counter, key):
    """Philox4x32-10 of one counter."""
    x, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(p1 >> 32) ^ x[1] ^ k[0], p1 & 0xffffffff, (p0 >> 32) ^ x[3] ^ k[1], p0 & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return x


def random_words(seed, agent, iteration, index, n):
    key = (seed & 0xffffffff, (seed >> 32) ^ (COMPRESS_USE * 0x9E3779B1 & 0xffffffff))
    blocks = [philox((b, index, iteration, agent), key) for b in range(-(-n // 4))]
    return [word for block in blocks for word in block][:n]


class Stream:
    """The random numbers of one message, and how near a threshold anything has come."""

    def __init__(self, owner, agent, index):
        self.owner, self.agent, self.index = owner, agent, index

    def words(self, n):
        return random_words(self.owner.seed, self.agent, self.owner.iteration, self.index, n)

    def halves(self, n):
        """n parts of 1 with 16 bits, two of a word, the lower bits first."""
        words = self.words(-(-n // 2))
        return np.array([(words[i // 2] >> 16 * (i % 2) & 0xffff) / 65536 for i in range(n)])

    def note(self, margin):
        self.owner.margin = min(self.owner.margin, float(margin))


def buckets(n, size=BUCKET):
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def round_levels(d, levels, parts, stream):
    """q of a bucket: floor(d L / max|d| + u)."""
    most = np.abs(d).max()
    if most == 0:
        return np.zeros_like(d)
    scaled = d * levels / most
    inner = (d != 0) & (np.abs(d) < most)
    v = scaled[inner] + parts[inner]
    if inner.any():
        stream.note(np.abs(v - np.rint(v)).min() / levels)
    return np.clip(np.floor(scaled + parts), -levels, levels)


def nearest_levels(d, levels, part, stream):
    """q of a bucket: d / t, rounded and cut off; t: a part of the rms, or what reaches the largest."""
    most = np.abs(d).max()
    if most == 0:
        return np.zeros_like(d)
    scaled = d / min(most / levels, part * np.sqrt((d * d).mean()))
    inner = (d != 0) & (np.abs(scaled) < levels)
    if inner.any():
        stream.note(np.abs(scaled[inner] + 0.5 - np.rint(scaled[inner] + 0.5)).min() / levels)
    return np.clip(np.floor(scaled + 0.5), -levels, levels)


def quantize(bits):
    part = {2: 1.4, 3: 0.9, 4: 1.0, 8: 1.0}[bits]

    def compress(d, stream):
        out = np.zeros_like(d)
        for b in buckets(len(d)):
            q = nearest_levels(d[b], 2 ** (bits - 1) - 1, part, stream)
            if q.any():
                out[b] = q * (d[b] @ q) / (q @ q)
        return out
    return compress


def sign(d, stream):
    out = np.zeros_like(d)
    for b in buckets(len(d)):
        out[b] = np.where(d[b] < 0, -1, 1) * np.abs(d[b]).mean()
        if d[b].any():
            stream.note(np.abs(d[b][d[b] != 0]).min() / np.abs(d[b]).mean())
    return out


def top_k(part):
    def compress(d, stream):
        k, out = max(1, int(part * len(d))), np.zeros_like(d)
        order = np.argsort(-np.abs(d), kind="stable")
        out[order[:k]] = d[order[:k]]
        if k < len(d) and d.any():
            stream.note((abs(d[order[k - 1]]) - abs(d[order[k]])) / np.abs(d).max())
        return out
    return compress


def top_k8(part):
    """What top_k keeps, as quantize(8) has it: a row of its own, in the order of the places."""
    choose, shorten = top_k(part), quantize(8)

    def compress(d, stream):
        kept = choose(d, stream)
        places = np.flatnonzero(kept)
        out = np.zeros_like(d)
        out[places] = shorten(kept[places], stream)
        return out
    return compress


def random_k(part):
    def compress(d, stream):
        n, out = len(d), np.zeros_like(d)
        k = max(1, int(part * n))
        for j, word in enumerate(stream.words(k)):
            begin, end = j * n // k, (j + 1) * n // k
            i = begin + (word * (end - begin) >> 32)
            out[i] = d[i]
        return out
    return compress


def low_rank(rank, shapes):
    """Of every matrix D the part in the range of D V, V uniform in (-1, 1); the rest as it is."""
    def compress(d, stream):
        out, first = d.copy(), 0
        parts = 2 * stream.halves(rank * len(d)) + 2.0 ** -16 - 1
        for _, shape in shapes:
            count, a = shape.numel(), shape[0]
            b = count // a
            if rank * (a + b) < a * b:
                matrix = d[first:first + count].reshape(a, b)
                v = parts[rank * first:rank * first + rank * b].reshape(rank, b).T
                u, s, _ = np.linalg.svd(matrix @ v, full_matrices=False)
                basis = u[:, s > 1e-12 * s[0]]
                out[first:first + count] = (basis @ (basis.T @ matrix)).ravel()
            first += count
        return out
    return compress


def compressor(text, shapes):
    name, _, argument = text.partition(":")
    if name == "sign":
        return sign
    if name == "low-rank":
        return low_rank(int(argument), shapes)
    return {"quantize": lambda: quantize(int(argument)), "top-k": lambda: top_k(float(argument)),
            "top-k8": lambda: top_k8(float(argument)), "random-k": lambda: random_k(float(argument))}[name]()


class Sharing:
    """mix(v): v + gamma (W p - p), where p is v itself or what neighbours know of it."""

    def __init__(self, x, w, options, seed, shapes):
        self.w, self.options, self.seed, self.shapes = w, options, seed, shapes
        self.copy = x.clone() if options.compress != "none" else None
        self.shared, self.gossips = None, True
        self.iteration, self.n_shared, self.round = 0, 0, 0
        self.squares, self.margin = torch.zeros_like(x), 1.0

    def begin(self, w, iteration, gossips):
        self.w, self.iteration, self.gossips, self.n_shared = w, iteration, gossips, 0
        self.shared = self.shared if self.options.local_steps == "1" else None

    def share(self, v):
        if self.copy is None:
            return v
        if self.gossips and (self.shared is None or not torch.equal(self.shared, v)):
            compress = compressor(self.options.compress, self.shapes)
            self.copy = self.copy + torch.stack(
                [torch.tensor(compress((v[i] - self.copy[i]).numpy(), Stream(self, i, self.n_shared)))
                 for i in range(len(v))])
            self.shared, self.n_shared = v.clone(), self.n_shared + 1
        return self.copy

    def share_sums(self, sums, counts, sender, receiver):
        if self.copy is None:
            return sums, counts
        stream = Stream(self, sender, FIRST_RECEIVER + receiver)
        width = sums.shape[1] + 1
        parts = stream.halves(len(sums) * width)
        rows = []
        for c, row in enumerate(sums.numpy()):
            q = round_levels(row, 127, parts[c * width:(c + 1) * width - 1], stream)
            rows.append(q * np.abs(row).max() / 127)
        return torch.tensor(np.array(rows)), counts

    def __call__(self, v):
        p = self.share(v)
        r = self.w @ p - p
        if self.options.consensus == "plain" or not self.gossips:
            return v + self.options.gamma * r
        self.round += 1
        self.squares = 0.999 * self.squares + 0.001 * r * r
        rate = self.options.gamma / ((self.squares / (1 - 0.999 ** self.round)).sqrt() + 1e-8)
        return v + rate.clamp(max=1) * r


class Objective(related.Objective):
    """Contrasts with what was shared; class sums of others are rounded."""

    def ccl_terms(self, i, z, sent, batches):
        own = batches[i]
        z_ji = [self.net.features(sent[j], own.inputs) for j in self.sources[i]]
        parts = [oracle.class_sums(z.detach(), own.labels, self.n_classes)]
        for j in self.receivers[i]:
            z_ij = self.net.features(sent[i], batches[j].inputs)
            sums, counts = oracle.class_sums(z_ij, batches[j].labels, self.n_classes)
            parts.append(self.mix.share_sums(sums, counts, j, i))
        return (oracle.model_variant_loss(z, z_ji, self.distance),
                self.distance(z, oracle.class_means(parts)[own.labels]))


class Wacv24:
    """The CCL authors' code: mix, correct the momentum, then a step from the mixed model."""

    def __init__(self, x, mix, options):
        self.mix, self.momentum = mix, oracle.Momentum(options.momentum, options.nesterov == "on")
        self.m, self.lr = torch.zeros_like(x), None

    def step(self, x, gradients, lr):
        mixed = self.mix(x)
        self.m = self.m - (mixed - x) / (self.lr or lr)
        g, losses = gradients(mixed, x)
        self.m, d = self.momentum.accumulate(self.m, g)
        self.lr = lr
        return mixed - lr * d, losses


class QgAtc(related.QgPaper):
    def move(self, x, d, lr):
        return self.mix(x - lr * d)


METHODS = {"dsgd": related.Dsgdm, "dsgdm": related.Dsgdm, "dfedavgm": related.FederatedAveraging,
           "qg-dsgdm": related.QgPaper, "qg-dsgdm atc": QgAtc, "qg-dsgdm wacv24": Wacv24}


def case_list():
    result = []

    def add(name, algorithm, *parts):
        result.append((name, join_options("--algorithm " + algorithm, "--topology ring", COMMON,
                                          SAME, *parts)))

    beta = " --momentum 0.9"
    add("dsgd-ce-top-k", "dsgd", CE, "--compress top-k:0.2 --gamma 0.5")
    add("dsgd-ccl-random-k-agents", "dsgd", CCL, DIFFERENT, "--compress random-k:0.3 --gamma 0.3")
    add("dsgd-ccl-top-k-everything-chain", "dsgd", CCL, DIFFERENT, "--topology chain "
        "--compress top-k:1 --gamma 1")
    add("dsgd-ce-top-k8", "dsgd", CE, DIFFERENT, "--compress top-k8:0.3 --gamma 0.5")
    add("dsgdm-ce-quantize-8", "dsgdm" + beta, CE, "--compress quantize:8 --gamma 1")
    add("dsgdm-ccl-quantize-4-star", "dsgdm" + beta, CCL, DIFFERENT,
        "--compress quantize:4 --gamma 0.8 --topology star")
    add("dsgdm-ccl-quantize-3", "dsgdm" + beta, CCL, DIFFERENT, "--compress quantize:3 --gamma 0.8")
    add("dsgdm-ce-sign", "dsgdm" + beta, CE, "--compress sign --gamma 0.4")
    add("dsgd-cta-ce-top-k", "dsgd --variant cta", CE, DIFFERENT, "--compress top-k:0.2 --gamma 0.5")
    add("dsgdm-cta-ccl-quantize-3-every-2", "dsgdm --variant cta" + beta, CCL, DIFFERENT,
        "--compress quantize:3 --gamma 0.8 --local-steps 2")
    add("dfedavgm-ce-quantize-2-every-2", "dfedavgm" + beta, CE, DIFFERENT,
        "--compress quantize:2 --gamma 0.4 --local-steps 2")
    add("qg-ce-random-k", "qg-dsgdm" + beta, CE, DIFFERENT, "--compress random-k:0.5 --gamma 0.4")
    add("qg-ccl-quantize-2-lrdecay", "qg-dsgdm" + beta, CCL, DIFFERENT, DECAY,
        "--compress quantize:2 --gamma 0.4")
    add("qg-ccl-top-k-every-2", "qg-dsgdm" + beta, CCL, DIFFERENT,
        "--compress top-k:0.1 --gamma 0.3 --local-steps 2")
    add("qg-ccl-top-k8", "qg-dsgdm" + beta, CCL, DIFFERENT, "--compress top-k8:0.1 --gamma 0.3")
    add("qg-atc-ccl-sign", "qg-dsgdm --variant atc" + beta, CCL, DIFFERENT,
        "--compress sign --gamma 0.4")
    add("qg-wacv24-ccl-quantize-8", "qg-dsgdm --variant wacv24" + beta, CCL, DIFFERENT,
        "--compress quantize:8 --gamma 0.9")
    ada = "--consensus adagossip --gamma 0.01"
    add("dsgdm-ce-adagossip-top-k", "dsgdm" + beta, CE, DIFFERENT, "--compress top-k:0.2", ada)
    add("dsgdm-cta-ce-adagossip-sign", "dsgdm --variant cta" + beta, CE, DIFFERENT, "--compress sign", ada)
    add("qg-ccl-adagossip-quantize-4", "qg-dsgdm" + beta, CCL, DIFFERENT, "--compress quantize:4", ada)
    add("qg-atc-ce-adagossip-every-2", "qg-dsgdm --variant atc" + beta, CE, DIFFERENT, ada,
        "--local-steps 2")
    add("qg-wacv24-ce-adagossip-random-k", "qg-dsgdm --variant wacv24" + beta, CE, DIFFERENT,
        "--compress random-k:0.5", ada)
    add("dsgd-ce-low-rank", "dsgd", CE, DIFFERENT, "--compress low-rank:1 --gamma 0.3")
    add("dsgdm-ce-low-rank-star-every-2", "dsgdm" + beta, CE, DIFFERENT, "--topology star "
        "--compress low-rank:2 --gamma 0.5 --local-steps 2")
    add("qg-ccl-low-rank-lrdecay", "qg-dsgdm" + beta, CCL, DIFFERENT, DECAY,
        "--compress low-rank:3 --gamma 0.5")
    return result


def option_parser():
    p = related.option_parser()
    p.add_argument("--compress", default="none")
    p.add_argument("--consensus", default="plain")
    return p


def run(problem, options, seed):
    w = related.steps_of(options.topology, cases.N_AGENTS)[0]
    x = problem.start(options.init)
    mix = Sharing(x, w, options, seed, problem.net.shapes)
    objective = Objective(problem.net, cases.N_CLASSES, options)
    objective.mix = mix
    name = options.algorithm + " " + options.variant
    method = (METHODS.get(name) or METHODS[options.algorithm])(x, mix, options)
    per_epoch = -(-cases.PER_AGENT // options.batch_size)
    gossips = changing.gossiping(options.local_steps, int(options.epochs) * per_epoch)
    losses, turn = None, 0
    for t in range(cases.ITERATIONS):
        now = w if gossips[t] else torch.eye(len(x), dtype=torch.float64)
        mix.begin(now, t, gossips[t])
        objective.connect(now, turn, gossips[t])
        turn += gossips[t]
        batches = [oracle.batch_at(problem.images, problem.labels, s, options.batch_size,
                                   t % per_epoch) for s in problem.lists]

        def gradients(at, sent):
            contrasts = options.loss == "ccl" and gossips[t]
            return objective.gradients(at, mix.share(sent) if contrasts else sent, batches)

        x, losses = method.step(x, gradients, oracle.step_size(options, t // per_epoch))
    return x, losses, mix.margin


def best_seed(problem, options):
    """The seed whose thresholds are missed by most; the first one where nothing is random."""
    is_random = options.loss == "ccl" and options.compress != "none"
    seeds = SEEDS if is_random else SEEDS[:1]
    return max(((run(problem, options, seed), seed) for seed in seeds), key=lambda r: r[0][2])


def write(fixtures):
    folder = os.path.join(fixtures, "compress")
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
