"""crosstalk.torch: somebody's nn.Module against a float64 computation of the same iterations."""

import argparse
import copy
import unittest

import numpy as np
from common import Folder, has_torch, needs_torch, pictures

import crosstalk

if has_torch:
    import oracle  # tests/oracle, which shares nothing with the library
    import related
    import torch
    from networks import FlatNet
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

    import crosstalk.torch

    class Attention(nn.Module):
        """Layers that the library has not: self-attention over patches, and a gate."""

        def __init__(self, width=8, n_classes=4, returns_features=True):
            super().__init__()
            self.embed = nn.Linear(4, width)
            self.place = nn.Parameter(torch.randn(16, width) / 4)
            self.query = nn.Linear(width, width, bias=False)
            self.key = nn.Linear(width, width, bias=False)
            self.value = nn.Linear(width, width)
            self.gate = nn.Linear(width, width)
            self.pool = nn.Identity()
            self.head = nn.Linear(width, n_classes)
            self.scale = nn.Parameter(torch.ones(()))
            self.returns_features = returns_features

        def forward(self, x):
            patches = x.unfold(2, 2, 2).unfold(3, 2, 2).reshape(len(x), -1, 4)
            tokens = self.embed(patches) + self.place
            weights = torch.softmax(self.query(tokens) @ self.key(tokens).transpose(1, 2) / 8**0.5, -1)
            mixed = weights @ self.value(tokens) * torch.sigmoid(self.gate(tokens))
            z = self.pool(self.scale * (tokens + mixed).mean(1))
            return (self.head(z), z) if self.returns_features else self.head(z)

    class Double(FlatNet):
        """The same module in float64, as a function of a flat row; the oracle wants (z, logits)."""

        def __init__(self, module):
            super().__init__(copy.deepcopy(module))

        def forward(self, flat, inputs):
            logits, z = super().forward(flat, inputs)
            return z, logits


    has_cuda = torch.cuda.is_available()
else:
    has_cuda = False

N_AGENTS, BATCH, ITERATIONS = 5, 7, 5
OWNERS = np.arange(150) % N_AGENTS
OPTIONS = dict(
    agents=N_AGENTS, batch_size=BATCH, lr=0.3, epochs=10, shuffle=False, weight_decay=1e-3, threads=1
)


def inputs_and_labels(n=150):
    images, labels = pictures(n)
    labels = np.random.default_rng(3).permutation(labels)  # agents differ in what they hold
    return torch.from_numpy(images.astype(np.float32) / 127 - 1), torch.from_numpy(labels.astype(np.int64))


def fresh(**keywords):
    torch.manual_seed(1)
    return Attention(**keywords)


def wrapped(module=None, **keywords):
    inputs, labels = inputs_and_labels()
    keywords.setdefault("agent_of", OWNERS)
    return crosstalk.torch.Module(module or fresh(), inputs, labels, **keywords)


def expected(method, loss):
    """All agents' rows after the iterations, and where they began, in float64."""
    net = Double(fresh())
    start = torch.cat([value.double().flatten() for value in fresh().parameters()]).detach()
    x = start.repeat(N_AGENTS, 1)
    inputs, labels = inputs_and_labels()
    options = argparse.Namespace(
        loss=loss, lambda_m=0.1, lambda_d=0.2, ccl_distance="mse", ccl_reduction="mean", weight_decay=1e-3,
        momentum=0.9, nesterov="on", variant="paper",
    )  # fmt: skip
    neighbours = oracle.neighbour_lists(oracle.graph_edges("ring", N_AGENTS), N_AGENTS)
    objective = oracle.Objective(net, neighbours, 4, options)
    w = oracle.mixing_matrix(neighbours)
    if method == "gt":
        algorithm = related.GradientTracking(x, lambda rows: w @ rows, options)
    else:
        algorithm = oracle.QgPaper(x, w, oracle.Momentum(0.9, True), 1.0)
    for t in range(ITERATIONS):
        chosen = [np.flatnonzero(OWNERS == a)[t * BATCH % 30 :][:BATCH] for a in range(N_AGENTS)]
        batches = [oracle.Batch(inputs[k].double(), labels[k]) for k in chosen]
        x, _ = algorithm.step(x, lambda at, sent: objective.gradients(at, sent, batches), 0.3)
    return x.numpy(), start.numpy()


@needs_torch
class Modules(Folder):
    def check(self, method, objective, device="cpu", **keywords):
        rows, start = expected(method, objective)
        with crosstalk.Run(model=wrapped(fresh().to(device)), algorithm=method, **OPTIONS, **keywords) as run:
            run.step(ITERATIONS)
            for agent, row in enumerate(rows):
                moved = np.linalg.norm(row - start)
                error = np.linalg.norm(run.row(agent) - row) / moved
                self.assertLess(error, 2e-4, f"agent {agent}")
                self.assertGreater(moved, 0.05)

    def test_ccl_is_what_float64_computes(self):
        self.check("ccl", "ccl", lambda_m=0.1, lambda_d=0.2)

    def test_gradient_tracking_is_what_float64_computes(self):
        self.check("gt", "ce")

    def test_gradient_tracking_with_ccl_is_what_float64_computes(self):
        self.check("gt", "ccl", loss="ccl", lambda_m=0.1, lambda_d=0.2)

    @unittest.skipUnless(has_cuda, "PyTorch has no GPU")
    def test_on_a_gpu_rows_are_lent_and_agree_with_float64(self):
        torch.backends.cuda.matmul.allow_tf32 = False
        self.check("ccl", "ccl", device="cuda", lambda_m=0.1, lambda_d=0.2)
        self.check("gt", "ce", device="cuda")
        with crosstalk.Run(model=wrapped(fresh().cuda()), algorithm="gt", **OPTIONS) as run:
            row = torch.from_dlpack(run.dlpack(1))
            self.assertEqual(row.device.type, "cuda")
            np.testing.assert_array_equal(row.cpu().numpy(), run.row(1))
            with self.assertRaises(crosstalk.InvalidError):
                run.view(1)

    def test_features_of_a_named_layer_are_those_that_are_returned(self):
        rows = []
        for module in (wrapped(), wrapped(fresh(returns_features=False), features="pool")):
            with crosstalk.Run(model=module, algorithm="ccl", **OPTIONS) as run:
                run.step(3)
                rows.append(run.row())
        np.testing.assert_array_equal(*rows)

    def test_a_module_learns_and_is_loaded_back(self):
        inputs, labels = inputs_and_labels()[0], torch.from_numpy(pictures(150)[1].astype(np.int64))
        torch.manual_seed(1)
        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 4))
        before = copy.deepcopy(net.state_dict())
        module = crosstalk.torch.Module(net, TensorDataset(inputs, labels), test=(inputs, labels))
        options = {**OPTIONS, "alpha": 1.0, "shuffle": True, "epochs": 8, "lr": 0.05}
        run = crosstalk.train(model=module, algorithm="qg-dsgdm", **options)
        self.assertGreater(run.metrics["consensus_accuracy"], 0.8)
        for name, value in net.state_dict().items():  # the module itself is as it was
            self.assertTrue(torch.equal(value, before[name]), name)
        trained = crosstalk.torch.load(run)
        with torch.no_grad():
            accuracy = (trained(inputs).argmax(1) == labels).float().mean().item()
        self.assertAlmostEqual(accuracy, run.metrics["consensus_accuracy"], places=6)
        agent = crosstalk.torch.load(run, agent=2)
        np.testing.assert_array_equal(agent[3].weight.detach().numpy(), run.parameters(2)["3.weight"])

    def test_loaders_of_every_agent_give_the_bits_of_the_same_order(self):
        inputs, labels = inputs_and_labels()
        whole = TensorDataset(inputs, labels)
        parts = [Subset(whole, np.flatnonzero(OWNERS == a).tolist()) for a in range(N_AGENTS)]
        loaders = [DataLoader(part, batch_size=BATCH) for part in parts]
        for algorithm in ("ccl", "gt"):
            with crosstalk.Run(model=wrapped(), algorithm=algorithm, **OPTIONS) as split:
                split.step(ITERATIONS + 3)  # over the end of an epoch, whose last batch is short
                want = split.row()
            module = crosstalk.torch.Module(fresh(), loaders=loaders)
            options = {key: OPTIONS[key] for key in ("lr", "epochs", "weight_decay", "threads")}
            with crosstalk.Run(model=module, algorithm=algorithm, **options) as own:
                own.step(ITERATIONS + 3)
                np.testing.assert_array_equal(own.row(), want)

    def test_any_dataset_is_taken(self):
        inputs, labels = inputs_and_labels()

        class Pairs(Dataset):
            def __len__(self):
                return len(inputs)

            def __getitem__(self, k):
                return inputs[k], int(labels[k])

        rows = []
        for module in (wrapped(), crosstalk.torch.Module(fresh(), Pairs(), agent_of=OWNERS)):
            with crosstalk.Run(model=module, algorithm="ccl", **OPTIONS) as run:
                run.step(2)
                rows.append(run.row())
        np.testing.assert_array_equal(*rows)

    def test_dropout_draws_the_same_after_a_resume(self):
        def run_of(**keywords):
            torch.manual_seed(5)
            net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 4))
            return crosstalk.Run(model=wrapped(net), **OPTIONS, **keywords)

        with run_of(out=self.path("whole")) as run:
            run.step(6)
            want = run.row()
        with run_of(out=self.path("run")) as run:
            run.step(3)
            run.checkpoint()
        with run_of(out=self.path("run"), resume=self.path("run")) as run:
            state = torch.get_rng_state()
            run.step(3)
            np.testing.assert_array_equal(run.row(), want)
            self.assertTrue(torch.equal(state, torch.get_rng_state()))  # the caller's own draws go on

    def test_frozen_parameters_stay(self):
        net = fresh()
        net.embed.weight.requires_grad_(False)
        module = wrapped(net)
        with crosstalk.Run(model=module, algorithm="dsgd", **OPTIONS) as run:
            run.step(2)
            self.assertNotIn("embed.weight", run.parameters(0))

    def test_modules_that_cannot_be_trained_are_refused(self):
        running = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 4))
        for module, keywords, kind in (
            (running, {}, ValueError),
            (fresh().double(), {}, TypeError),
            (fresh(), dict(features="nothing"), ValueError),
            (nn.Flatten(), {}, ValueError),
        ):
            with self.assertRaises(kind) as caught:
                wrapped(module, **keywords)
            self.assertIsInstance(caught.exception, crosstalk.Error)
        with self.assertRaises(crosstalk.InvalidError):
            crosstalk.torch.Module(fresh())

    def test_a_module_that_raises_ends_the_run_and_has_its_own_values_again(self):
        class Fails(Attention):
            n = 0

            def forward(self, x):
                Fails.n += 1
                if Fails.n == 8:
                    raise ZeroDivisionError("mine")
                return super().forward(x)

        torch.manual_seed(1)
        net = Fails()
        storage = net.head.weight.data_ptr()
        with crosstalk.Run(model=wrapped(net), algorithm="dsgd", **OPTIONS) as run:
            with self.assertRaisesRegex(ZeroDivisionError, "mine"):
                run.run()
        self.assertEqual(net.head.weight.data_ptr(), storage)


NETWORKS = [
    ("lenet5", "none", 1, 28),
    ("lenet5", "none", 3, 32),
    ("mlp:16", "none", 1, 28),
    ("logistic", "none", 3, 32),
    ("resnet20", "evonorm", 3, 32),
    ("resnet20", "evonorm-s0", 3, 32),
    ("resnet20", "groupnorm", 1, 28),
    ("resnet20", "batchnorm", 3, 32),
    ("resnet20", "none", 3, 32),
    ("resnet18", "evonorm", 3, 64),
    ("mobilenetv2", "evonorm", 3, 32),
    ("mobilenetv2", "batchnorm", 3, 32),
    ("vgg11", "evonorm", 3, 32),
    ("vgg11", "groupnorm", 3, 32),
    ("vgg11", "none", 3, 32),
]


@needs_torch
class Networks(Folder):
    def test_built_in_networks_agree_with_predict(self):
        random = np.random.default_rng(0)
        for network, norm, channels, side in NETWORKS:
            with self.subTest(network=network, norm=norm):
                images = random.integers(0, 256, (16, channels, side, side), dtype=np.uint8)
                labels = np.arange(16, dtype=np.int32) % 3
                keywords = dict(model=network, norm=norm, agents=2, batch_size=4, epochs=1, iterations=1, lr=0.01)
                with crosstalk.Run(images, labels, partition="iid", device="cpu", **keywords) as run:
                    run.run()
                    module = crosstalk.torch.load(run, pixels=True)
                    model = run.model(device="cpu")
                with torch.no_grad():
                    own = torch.softmax(module(torch.from_numpy(images)), 1).numpy()
                np.testing.assert_allclose(own, model.predict(images), rtol=0, atol=1e-5)
                mean, std = model.normalisation
                floats = (images / 255 - mean[:, None, None]) / std[:, None, None]
                plain = crosstalk.torch.load(model)
                with torch.no_grad():
                    own = torch.softmax(plain(torch.from_numpy(floats.astype(np.float32))), 1).numpy()
                np.testing.assert_allclose(own, model.predict(floats.astype(np.float32)), rtol=0, atol=1e-5)

    def test_saved_models_have_no_agents(self):
        images, labels = pictures(64)
        run = crosstalk.train(images, labels, model="mlp:4", agents=2, epochs=1, batch_size=8, out=self.path("run"))
        module = crosstalk.torch.load(self.path("run"))
        np.testing.assert_array_equal(module.fc1.weight.detach().numpy(), run.consensus()["fc1.weight"])
        with self.assertRaises(crosstalk.InvalidError):
            crosstalk.torch.load(self.path("run"), agent=1)


if __name__ == "__main__":
    unittest.main()
