"""Models of the caller's, without any framework: softmax regression in NumPy."""

import unittest

import numpy as np
from common import Folder, pictures

import crosstalk

OPTIONS = dict(agents=4, batch_size=8, epochs=4, lr=0.2, alpha=1.0, device="cpu", weight_decay=0)


class Softmax:
    """logits = z W^T + b with features z = x; gradients by hand."""

    def __init__(self, n=160):
        images, self.labels = pictures(n)
        self.inputs = images.reshape(n, -1).astype(np.float32) / 255
        self.jobs = []

    def model(self, **keywords):
        start = {"weight": np.zeros((4, 64)), "bias": np.zeros(4)}
        return crosstalk.External(start, self.gradient, self.features, self.evaluate, n_features=64, **keywords)

    def run(self, **keywords):
        data = crosstalk.Data(None, self.labels, test=(None, self.labels))
        return crosstalk.Run(data, model=self.model(), **{**OPTIONS, **keywords})

    def probabilities(self, job):
        logits = self.inputs[job.index] @ job.tensor("weight").T + job.tensor("bias")
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    def gradient(self, job):
        self.jobs.append((job.iteration, job.agent, job.n))
        p, hot = self.probabilities(job), np.eye(4, dtype=np.float32)[job.labels]
        if job.needs_features:
            job.z[:] = self.inputs[job.index]
            job.contrast()
        job.gradient("weight")[:] = (p - hot).T @ self.inputs[job.index] / job.n
        job.gradient("bias")[:] = (p - hot).mean(0)
        job.loss = -np.log(p[np.arange(job.n), job.labels]).mean()
        job.n_correct = int((p.argmax(1) == job.labels).sum())

    def features(self, job):
        job.z[:] = self.inputs[job.index]

    def evaluate(self, job):
        p = self.probabilities(job)
        job.predictions[:] = p.argmax(1)
        job.loss = -np.log(p[np.arange(job.n), job.labels]).mean()


class Externals(Folder):
    def test_a_model_without_a_framework_learns_with_every_kind_of_algorithm(self):
        for algorithm in ("dsgdm", "ccl", "gt", "cga", "relaysgd"):
            with self.subTest(algorithm), Softmax().run(algorithm=algorithm) as run:
                run.run()
                self.assertGreater(run.metrics["consensus_accuracy"], 0.9)
                self.assertEqual(run.parameters(0)["weight"].shape, (4, 64))

    def test_every_agent_has_one_job_an_iteration(self):
        softmax = Softmax()
        with softmax.run(algorithm="dsgd") as run:
            run.step(2)
        self.assertEqual([(t, a) for t, a, _ in softmax.jobs], [(t, a) for t in range(2) for a in range(4)])

    def test_start_values_are_taken(self):
        softmax = Softmax()
        model = crosstalk.External({"w": np.full((4, 64), 0.5), "b": np.ones(4)}, softmax.gradient)
        with crosstalk.Run(crosstalk.Data(None, softmax.labels), model=model, **OPTIONS) as run:
            np.testing.assert_array_equal(run.parameters(3)["w"], np.full((4, 64), 0.5, np.float32))

    def test_it_stops_and_resumes_with_the_same_bits(self):
        with Softmax().run(out=self.path("whole")) as run:
            expected = run.run().row()
        with Softmax().run(out=self.path("run")) as run:
            run.step(7)
            run.checkpoint()
        with Softmax().run(out=self.path("run"), resume=self.path("run")) as run:
            np.testing.assert_array_equal(run.run().row(), expected)

    def test_what_a_gradient_raises_comes_out(self):
        softmax = Softmax()
        problem = KeyError("mine")

        def gradient(job):
            if job.iteration == 2:
                raise problem
            softmax.gradient(job)

        model = crosstalk.External({"weight": np.zeros((4, 64)), "bias": np.zeros(4)}, gradient)
        with crosstalk.Run(crosstalk.Data(None, softmax.labels), model=model, **OPTIONS) as run:
            with self.assertRaises(KeyError) as caught:
                run.run()
            self.assertIs(caught.exception, problem)
            self.assertTrue(np.isfinite(run.row()).all())
            with self.assertRaises(crosstalk.Error):
                run.step()

    def test_ccl_without_features_is_refused(self):
        softmax = Softmax()
        model = crosstalk.External({"weight": np.zeros((4, 64)), "bias": np.zeros(4)}, softmax.gradient)
        with self.assertRaises(crosstalk.InvalidError):
            crosstalk.Run(crosstalk.Data(None, softmax.labels), model=model, algorithm="ccl", **OPTIONS)

    def test_a_gradient_that_forgets_to_contrast_is_told(self):
        softmax = Softmax()

        def gradient(job):
            job.g[:] = 0

        model = crosstalk.External(
            {"weight": np.zeros((4, 64))}, gradient, softmax.features, n_features=64
        )
        with crosstalk.Run(crosstalk.Data(None, softmax.labels), model=model, algorithm="ccl", **OPTIONS) as run:
            with self.assertRaises(crosstalk.InvalidError):
                run.step()


if __name__ == "__main__":
    unittest.main()
