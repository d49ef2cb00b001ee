"""The algorithm fixtures: a tiny data set, start values, and what five iterations give."""

import os
import shlex

import numpy as np
import torch

import files
import networks
import oracle

N_AGENTS, N_CLASSES, SIDE, HIDDEN = 5, 4, 6, 8
N_TRAIN, N_TEST, PER_AGENT, ITERATIONS = 150, 20, 27, 5
# Chosen so that no ReLU and no |.| of any case comes near its kink (sensitivity.py checks).
SEED = 23

CE = "--loss ce"
CCL = "--loss ccl --lambda-m 2 --lambda-d 1 --ccl-distance mse --ccl-reduction mean"
COMMON = "--lr 0.2 --weight-decay 0.01 --batch-size 8 --epochs 4"
DECAY_ONCE = "--batch-size 9 --epochs 2 --lr-milestones 0.5 --lr-decay 0.4"
DECAY = "--batch-size 14 --epochs 4 --lr-milestones 0.25,0.5 --lr-decay 0.5"
MOMENTUM = "--momentum 0.9 --nesterov on"
SAME, DIFFERENT = "--init init.safetensors", "--init init-agents.safetensors"


def ccl(lambda_m, lambda_d, distance, reduction):
    return ("--loss ccl --lambda-m %g --lambda-d %g --ccl-distance %s --ccl-reduction %s"
            % (lambda_m, lambda_d, distance, reduction))


def case_list():
    """[(name, options)]; a later mention of an option replaces the earlier one."""
    cases = []

    def add(name, algorithm, *parts):
        cases.append((name, join_options("--algorithm " + algorithm, *parts)))

    def ring(name, algorithm, *parts):
        add(name, algorithm, "--topology ring", COMMON, SAME, *parts)

    dsgdm = "dsgdm " + MOMENTUM
    ring("dsgd-ce-ring", "dsgd", CE)
    ring("dsgd-ccl-ring", "dsgd", CCL)
    ring("dsgd-ce-chain", "dsgd", CE, "--topology chain")
    ring("dsgdm-ce-ring", dsgdm, CE)
    ring("dsgdm-ce-heavyball", dsgdm, CE, "--nesterov off")
    ring("dsgdm-ce-full-nodecay", dsgdm, CE, "--topology full --weight-decay 0")
    ring("dsgdm-ce-lrdecay", dsgdm, CE, DECAY_ONCE)
    ring("dsgdm-ccl-ring", dsgdm, CCL)
    ring("dsgdm-ccl-star", dsgdm, CCL, "--topology star")
    ring("dsgdm-ccl-agents", dsgdm, CCL, DIFFERENT)

    paper = "qg-dsgdm --variant paper --gamma 1 " + MOMENTUM
    ring("qg-paper-ce-ring", paper, CE)
    ring("qg-paper-ce-gamma", paper, CE, "--gamma 0.9")
    ring("qg-paper-ce-heavyball", paper, CE, "--nesterov off")
    ring("qg-paper-ce-nodecay", paper, CE, "--weight-decay 0")
    ring("qg-paper-ce-agents", paper, CE, DIFFERENT)
    ring("qg-paper-ccl-mse-mean", paper, CCL)
    ring("qg-paper-ccl-mse-sum", paper, ccl(0.25, 0.12, "mse", "sum"))
    # |.| has a kink where two agents agree, so the agents start apart
    ring("qg-paper-ccl-l1-mean", paper, ccl(0.8, 0.6, "l1", "mean"), DIFFERENT)
    ring("qg-paper-ccl-l1-sum", paper, ccl(0.1, 0.08, "l1", "sum"), DIFFERENT)
    ring("qg-paper-ccl-cosine-mean", paper, ccl(0.8, 0.6, "cosine", "mean"))
    ring("qg-paper-ccl-cosine-sum", paper, ccl(0.5, 0.9, "cosine", "sum"), DIFFERENT)
    ring("qg-paper-ccl-mv-only", paper, ccl(2, 0, "mse", "mean"))
    ring("qg-paper-ccl-dv-only", paper, ccl(0, 1, "mse", "mean"))
    ring("qg-paper-ccl-heavyball", paper, CCL, "--nesterov off")
    ring("qg-paper-ccl-chain-gamma", paper, CCL, "--topology chain --gamma 0.9")
    ring("qg-paper-ccl-star", paper, CCL, "--topology star")
    ring("qg-paper-ccl-full-nodecay", paper, CCL, "--topology full --weight-decay 0")
    ring("qg-paper-ccl-lrdecay", paper, CCL, DECAY)
    ring("qg-paper-ce-lrdecay-once", paper, CE, DECAY_ONCE)
    ring("qg-paper-ccl-agents", paper, CCL, DIFFERENT)

    atc = paper.replace("paper", "atc")
    ring("qg-atc-ce-ring", atc, CE)
    ring("qg-atc-ce-heavyball-star", atc, CE, "--nesterov off --topology star")
    ring("qg-atc-ccl-gamma", atc, CCL, "--gamma 0.9")
    ring("qg-atc-ccl-agents-lrdecay", atc, CCL, DECAY, DIFFERENT)

    wacv24 = paper.replace("paper", "wacv24")
    ring("qg-wacv24-ce-ring", wacv24, CE)
    ring("qg-wacv24-ce-heavyball", wacv24, CE, "--nesterov off --gamma 0.9")
    ring("qg-wacv24-ccl-ring", wacv24, CCL)
    ring("qg-wacv24-ccl-agents-gamma", wacv24, CCL, DIFFERENT, "--gamma 0.9 --weight-decay 0.2")
    ring("qg-wacv24-ccl-lrdecay", wacv24, CCL, DECAY)
    ring("qg-wacv24-ccl-l1-chain", wacv24, ccl(0.8, 0.6, "l1", "mean"), DIFFERENT,
         "--topology chain")

    init, keep = ("relaysgd --relay-fill %s %s" % (f, MOMENTUM) for f in ("init", "self"))
    ring("relay-init-ce-chain", init, CE, "--topology chain")
    ring("relay-self-ce-chain", keep, CE, "--topology chain")
    ring("relay-init-ce-ring-heavyball", init, CE, "--nesterov off")
    ring("relay-init-ccl-ring", init, CCL)
    ring("relay-self-ccl-star", keep, CCL, "--topology star")
    ring("relay-init-ccl-agents-lrdecay", init, CCL, DIFFERENT, DECAY, "--topology chain")
    return cases


def join_options(*parts):
    """One line of options, each mentioned once."""
    words = " ".join(parts).split()
    chosen = dict(zip(words[0::2], words[1::2]))
    return " ".join(name + " " + value for name, value in chosen.items())


# --------------------------------------------------------------------------- data

def make_images(rng, labels):
    """A pattern per class, plus noise strong enough that the classes overlap."""
    patterns = rng.uniform(0, 255, (N_CLASSES, SIDE, SIDE))
    noise = rng.normal(0, 60, (len(labels), SIDE, SIDE))
    return np.clip(np.rint(0.6 * patterns[labels] + 50 + noise), 0, 255).astype(np.uint8)


def skewed_lists(rng, labels):
    """27 samples for each agent, mostly of two classes; what is left over belongs to nobody."""
    free = list(rng.permutation(len(labels)))
    lists = []
    for agent in range(N_AGENTS):
        weight = np.full(N_CLASSES, 0.04)
        weight[agent % N_CLASSES] += 0.6
        weight[(agent + 1) % N_CLASSES] += 0.24
        chosen = []
        for c in rng.choice(N_CLASSES, PER_AGENT, p=weight / weight.sum()):
            same = [s for s in free if labels[s] == c] or free
            chosen.append(same[0])
            free.remove(same[0])
        lists.append(chosen)
    return lists


def make_start(rng):
    """Weights somewhat larger than usual, so that the features are of the order of one, and
    biases that keep every sample's features away from all zero."""
    def uniform(low, high, *shape):
        return rng.uniform(low, high, shape).astype(np.float32)
    return {"fc1.weight": uniform(-0.3, 0.3, HIDDEN, SIDE * SIDE),
            "fc1.bias": uniform(0.1, 0.7, HIDDEN),
            "fc2.weight": uniform(-0.6, 0.6, N_CLASSES, HIDDEN),
            "fc2.bias": uniform(-0.2, 0.2, N_CLASSES)}


def nearby(rng, start):
    """An agent's own start: near enough to the common one that averaging still makes sense."""
    return {name: value + rng.uniform(-0.1, 0.1, value.shape).astype(np.float32)
            for name, value in start.items()}


def write_inputs(folder, seed):
    rng = np.random.RandomState(seed)
    labels = np.arange(N_TRAIN) % N_CLASSES
    rng.shuffle(labels)
    test_labels = np.arange(N_TEST) % N_CLASSES
    images = make_images(rng, np.concatenate([labels, test_labels]))
    for name, values in (("train-images-idx3-ubyte", images[:N_TRAIN]),
                         ("train-labels-idx1-ubyte", labels),
                         ("t10k-images-idx3-ubyte", images[N_TRAIN:]),
                         ("t10k-labels-idx1-ubyte", test_labels)):
        files.write_idx(os.path.join(folder, "data", name), values)
    lists = skewed_lists(rng, labels)
    # line by line over the agents: a reader must sort by agent, and keep each agent's order
    files.write_partition(os.path.join(folder, "partition.csv"),
                          [(lists[a][k], a) for k in range(PER_AGENT) for a in range(N_AGENTS)])
    start = make_start(rng)
    files.write_safetensors(os.path.join(folder, "init.safetensors"), start)
    starts = [nearby(rng, start) for _ in range(N_AGENTS)]
    files.write_safetensors(os.path.join(folder, "init-agents.safetensors"),
                            {"agent.%d.%s" % (a, name): value
                             for a, own in enumerate(starts) for name, value in own.items()})


class Problem:
    """The inputs as written, read back."""

    def __init__(self, folder):
        self.folder = folder
        data = os.path.join(folder, "data")
        self.images = oracle.tensor_images(files.read_idx(data + "/train-images-idx3-ubyte"))
        labels = files.read_idx(data + "/train-labels-idx1-ubyte")
        self.labels = torch.tensor(labels, dtype=torch.int64)
        self.lists = files.read_partition(os.path.join(folder, "partition.csv"), N_AGENTS)
        self.net = networks.FlatNet(networks.Mlp(SIDE * SIDE, N_CLASSES, HIDDEN))

    def start(self, name):
        """[n, P] from an init file: one model for all, or agent.<i>.<name> for each."""
        tensors = files.read_safetensors(os.path.join(self.folder, name))
        rows = []
        for a in range(N_AGENTS):
            own = {n[len("agent.%d." % a):]: v for n, v in tensors.items()
                   if n.startswith("agent.%d." % a)}
            rows.append(self.net.flat(own or tensors))
        return torch.stack(rows)

    def options(self, text):
        return oracle.option_parser().parse_args(shlex.split(text))

    def run(self, options):
        return oracle.train(self.net, self.start(options.init), self.images, self.labels,
                            self.lists, N_CLASSES, options, ITERATIONS)


def agent_tensors(net, x):
    return {"agent.%d.%s" % (a, name): value.numpy()
            for a, row in enumerate(x) for name, value in net.named(row).items()}


def write_cases(folder):
    problem = Problem(folder)
    with open(os.path.join(folder, "cases.txt"), "w") as cases, \
            open(os.path.join(folder, "expected.txt"), "w") as expected:
        for name, text in case_list():
            x, losses = problem.run(problem.options(text))
            assert torch.isfinite(x).all(), name
            files.write_safetensors(os.path.join(folder, "expected", name + ".safetensors"),
                                    agent_tensors(problem.net, x))
            cases.write(name + " " + text + "\n")
            expected.write("%s %.9g %.9g %.9g\n" % ((name,) + losses))


def write(folder):
    for part in ("data", "expected"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    write_inputs(folder, SEED)
    write_cases(folder)
