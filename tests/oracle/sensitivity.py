"""Are the cases worth comparing with? Two checks on the written inputs.

Sensitivity: change one thing at a time in the oracle - an option, or a line of an equation - and
see how far the result moves, relative to the distance the agents moved. What moves it by less
than ten times the tolerance of the comparison could be wrong without anybody noticing.

Margins: float32 must not land on the other side of a ReLU or of an |a - b| than float64, nor
see features so short that the epsilon of the cosine matters.
"""

import contextlib
import copy

import torch

import cases
import oracle

SMALLEST_EFFECT = 5e-3  # 25 times the tolerance of compare.py
SMALLEST_MARGIN = 1e-5  # about 100 roundings of a value of order one


def relative_change(x, reference, start):
    return float(((x - reference).norm(dim=1) / (reference - start).norm(dim=1)).max())


# --------------------------------------------------------------------------- mutations

def is_ccl(o):
    return o.loss == "ccl"


def is_qg(o, *variants):
    return o.algorithm == "qg-dsgdm" and (not variants or o.variant in variants)


def decays(o):
    return o.lr_milestones != "0.5,0.75"


def option(name, applies, value):
    """Mutation of one option: value(o) is what it becomes."""
    def change(o):
        setattr(o, name, value(o))
    return "option " + name, applies, change, contextlib.nullcontext


OPTION_MUTATIONS = [
    option("gamma", is_qg, lambda o: 0.9 if o.gamma == 1 else 1.0),
    option("weight_decay", lambda o: True, lambda o: 0.01 if o.weight_decay == 0 else 0.0),
    option("nesterov", lambda o: o.algorithm != "dsgd",
           lambda o: "off" if o.nesterov == "on" else "on"),
    option("momentum", lambda o: o.algorithm != "dsgd", lambda o: 0.8),
    option("lambda_m", lambda o: is_ccl(o) and o.lambda_m > 0, lambda o: 0.0),
    option("lambda_d", lambda o: is_ccl(o) and o.lambda_d > 0, lambda o: 0.0),
    option("ccl_reduction", lambda o: is_ccl(o) and o.ccl_distance != "cosine",
           lambda o: "sum" if o.ccl_reduction == "mean" else "mean"),
    option("ccl_distance", is_ccl,
           lambda o: {"mse": "cosine", "cosine": "l1", "l1": "mse"}[o.ccl_distance]),
    option("variant", is_qg,
           lambda o: {"paper": "atc", "atc": "paper", "wacv24": "paper"}[o.variant]),
    option("relay_fill", lambda o: o.algorithm == "relaysgd",
           lambda o: "self" if o.relay_fill == "init" else "init"),
    option("topology", lambda o: o.algorithm != "relaysgd",
           lambda o: "chain" if o.topology == "ring" else "ring"),
    option("lr_decay", decays, lambda o: 1.0),
]


def patched(text, applies, owner, name, replacement):
    """Mutation of one function: replacement(original) stands in for it."""
    @contextlib.contextmanager
    def active():
        original = getattr(owner, name)
        setattr(owner, name, replacement(original))
        try:
            yield
        finally:
            setattr(owner, name, original)
    return text, applies, lambda o: None, active


def uniform_by_own_degree(neighbours):
    w = torch.zeros(len(neighbours), len(neighbours), dtype=torch.float64)
    for i, near in enumerate(neighbours):
        w[i, near + [i]] = 1.0 / (len(near) + 1)
    return w


def chatty_exchange(self, half):
    """Messages that already contain what arrived in this very iteration, in one sweep."""
    for _ in range(2):
        self.arrived = [{j: self.message(j, i, half) for j in near}
                        for i, near in enumerate(self.tree)]
    return self.arrived


def wrapped_batch(images, labels, samples, size, k):
    """The last batch filled up from the start of the list instead of being short."""
    chosen = [samples[(k * size + q) % len(samples)] for q in range(size)]
    return oracle.Batch(images[chosen], labels[chosen])


def own_sums_before_mixing(self, i, z, sent, batches):
    """The agent's own class sums from the model it sent, like those of its neighbours."""
    own = self.net.features(sent[i], batches[i].inputs)
    keep = oracle.class_sums
    oracle.class_sums = lambda f, y, c: keep(own if f.shape == z.shape and
                                             bool((f == z).all()) else f, y, c)
    try:
        return ORIGINAL_TERMS(self, i, z, sent, batches)
    finally:
        oracle.class_sums = keep


def decay_before_mixing(original):
    def gradient(self, i, at, sent, batches):
        g, losses = original(self, i, at, sent, batches)
        return g + self.options.weight_decay * (sent[i] - at[i]), losses
    return gradient


ORIGINAL_TERMS = oracle.Objective.ccl_terms
WITH_DV = lambda o: is_ccl(o) and o.lambda_d > 0
WITH_MV = lambda o: is_ccl(o) and o.lambda_m > 0
OBJECTIVE = oracle.Objective

CODE_MUTATIONS = [
    patched("own class sums left out", WITH_DV, oracle, "class_means",
            lambda f: lambda parts: f(parts[1:])),
    patched("neighbours' class sums left out", WITH_DV, oracle, "class_means",
            lambda f: lambda parts: f(parts[:1])),
    patched("class means weigh agents, not samples", WITH_DV, oracle, "class_means",
            lambda f: lambda parts: sum(f([p]) for p in parts)
            / sum((c > 0).double() for _, c in parts).clamp(min=1)[:, None]),
    patched("gradient through the class means", WITH_DV, torch.Tensor, "detach",
            lambda f: lambda self: self),
    patched("mean over neighbours in L_mv", WITH_MV, oracle, "model_variant_loss",
            lambda f: lambda z, cross, d: f(z, cross, d) / len(cross)),
    patched("m_hat without (1 - beta)", lambda o: is_qg(o, "paper", "atc"), oracle.QuasiGlobal,
            "track", lambda f: lambda self, x, x_next, lr:
            self.momentum.beta * self.m_hat + (x - x_next) / lr),
    patched("m_hat forgets the past", lambda o: is_qg(o, "paper", "atc"), oracle.QuasiGlobal,
            "track", lambda f: lambda self, x, x_next, lr:
            (1 - self.momentum.beta) * (x - x_next) / lr),
    patched("m_hat divided by the first step size", lambda o: is_qg(o, "paper", "atc")
            and decays(o), oracle.QuasiGlobal, "track",
            lambda f: lambda self, x, x_next, lr: f(self, x, x_next, 0.2)),
    patched("r over this step's lr", lambda o: is_qg(o, "wacv24") and decays(o),
            oracle.QgWacv24, "previous_lr", lambda f: lambda self, lr: lr),
    patched("momentum not corrected by r", lambda o: is_qg(o, "wacv24"), oracle.QgWacv24,
            "previous_lr", lambda f: lambda self, lr: 1e30),
    patched("neighbours see mixed models", lambda o: is_qg(o, "wacv24") and is_ccl(o),
            OBJECTIVE, "gradients", lambda f: lambda self, at, sent, b: f(self, at, at, b)),
    patched("gradient at the unmixed model", lambda o: is_qg(o, "wacv24"),
            OBJECTIVE, "gradients", lambda f: lambda self, at, sent, b: f(self, sent, sent, b)),
    patched("own class sums before mixing", lambda o: is_qg(o, "wacv24") and is_ccl(o),
            OBJECTIVE, "ccl_terms", lambda f: own_sums_before_mixing),
    patched("weight decay before mixing", lambda o: is_qg(o, "wacv24") and o.weight_decay > 0.1,
            OBJECTIVE, "gradient", decay_before_mixing),
    patched("loss on the relay's tree", lambda o: o.algorithm == "relaysgd"
            and o.topology == "ring" and is_ccl(o), OBJECTIVE, "__init__",
            lambda f: lambda self, net, near, c, o: f(self, net, oracle.relay_tree("ring", near),
                                                      c, o)),
    patched("relay without delay", lambda o: o.algorithm == "relaysgd" and o.topology != "star",
            oracle.Relay, "exchange", lambda f: chatty_exchange),
    patched("metropolis weights replaced", lambda o: o.topology in ("chain", "star")
            and o.algorithm != "relaysgd", oracle, "mixing_matrix",
            lambda f: uniform_by_own_degree),
    patched("last batch not short", lambda o: o.batch_size == 8, oracle, "batch_at",
            lambda f: wrapped_batch),
]


def measure_mutations(problem):
    """{mutation: (smallest effect, its case, number of cases)}"""
    effects = {}
    for name, text in cases.case_list():
        options = problem.options(text)
        start, (reference, _) = problem.start(options.init), problem.run(options)
        for title, applies, change, active in OPTION_MUTATIONS + CODE_MUTATIONS:
            if not applies(options):
                continue
            mutant = copy.copy(options)
            change(mutant)
            with active():
                x, _ = problem.run(mutant)
            effects.setdefault(title, []).append((relative_change(x, reference, start), name))
    return {title: min(found) + (len(found),) for title, found in effects.items()}


# --------------------------------------------------------------------------- margins

def measure_margins(problem):
    """The smallest distance to a kink over all cases: {what: (value, case)}."""
    worst = {}

    def note(what, values, case):
        if values.numel() > 0:
            worst[what] = min(worst.get(what, (1e30, "")), (float(values.min()), case))

    for name, text in cases.case_list():
        options = problem.options(text)
        hook = problem.net.module.fc1.register_forward_hook(
            lambda m, i, out: note("relu", out.abs(), name) if out.requires_grad else None)
        spy = spy_on_distances(lambda what, values: note(what, values, name))
        with spy():
            problem.run(options)
        hook.remove()
    return worst


def spy_on_distances(note):
    def l1(f):
        # a = 0: no gradient passes the ReLU, whatever the sign. a = b: the only sample of its
        # class is its own class mean, in float32 too.
        return lambda a, b, r: (note("l1", (a - b).abs()[(a > 0) & (a != b)]), f(a, b, r))[1]

    def cosine(f):
        return lambda a, b, r: (note("cosine", torch.stack([a.norm(dim=1), b.norm(dim=1)])),
                                f(a, b, r))[1]

    @contextlib.contextmanager
    def active():
        original = dict(oracle.DISTANCES)
        oracle.DISTANCES.update(l1=l1(original["l1"]), cosine=cosine(original["cosine"]))
        try:
            yield
        finally:
            oracle.DISTANCES.update(original)
    return active


def report(folder):
    problem = cases.Problem(folder)
    margins = measure_margins(problem)
    for what, (value, case) in sorted(margins.items()):
        print("margin      %-42s %9.2g  (%s)" % (what, value, case))
    effects = measure_mutations(problem)
    for title, (value, case, count) in effects.items():
        print("sensitivity %-42s %9.2g  (%s, least of %d)" % (title, value, case, count))
    assert min(v for v, _ in margins.values()) > SMALLEST_MARGIN
    assert min(v for v, _, _ in effects.values()) > SMALLEST_EFFECT
