"""The examples run; services that are not installed are stood in for by modules that take notes."""

import contextlib
import importlib.util
import io
import os
import sys
import types
import unittest

from common import ROOT, needs_torch

EXAMPLES = os.path.join(ROOT, "python", "examples")


def example(name):
    """Runs an example as a module; returns it and what it printed."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(EXAMPLES, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        spec.loader.exec_module(module)
    return module, said.getvalue()


class Notes:
    """A stand-in: remembers the calls of its functions."""

    def __init__(self):
        self.calls = []
        self.summary = {}

    def __getattr__(self, name):
        def note(*arguments, **keywords):
            if name == "log_artifact":
                keywords["size"] = os.path.getsize(arguments[0])
            self.calls.append((name, arguments, keywords))
            return self

        return note

    def names(self):
        return [name for name, _, _ in self.calls]


@contextlib.contextmanager
def standing_in(name):
    notes = Notes()
    module = types.ModuleType(name)
    module.__getattr__ = notes.__getattr__
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield notes
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


class Examples(unittest.TestCase):
    def test_quickstart(self):
        module, said = example("quickstart")
        self.assertGreater(module.run.metrics["consensus_accuracy"], 0.9)
        self.assertIn("upper left", said)

    @needs_torch
    def test_own_model_torch(self):
        module, said = example("own_model_torch")
        self.assertGreater(module.run.metrics["consensus_accuracy"], 0.9)
        self.assertIn(f"by PyTorch: {module.run.metrics['consensus_accuracy']:.3f}", said)

    def test_mlflow_hears_options_metrics_and_the_model(self):
        module, _ = example("mlflow_wandb")
        with standing_in("mlflow") as notes:
            run = module.main("mlflow")
        self.assertEqual(
            notes.names(),
            ["set_experiment", "start_run", "log_params"] + 3 * ["log_metrics"] + ["log_artifact", "end_run"],
        )
        options = notes.calls[2][1][0]
        self.assertEqual((options["agents"], options["algorithm"]), (4, "qg-dsgdm"))
        _, (metrics,), keywords = notes.calls[5]
        self.assertEqual(metrics["consensus_accuracy"], run.metrics["consensus_accuracy"])
        self.assertEqual(keywords["step"], run.n_iterations)
        self.assertGreater(notes.calls[-2][2]["size"], 4 * run.n_parameters)

    def test_wandb_hears_options_and_metrics(self):
        module, _ = example("mlflow_wandb")
        with standing_in("wandb") as notes:
            run = module.main("wandb")
        self.assertEqual(notes.names(), ["init"] + 3 * ["log"] + ["finish"])
        self.assertEqual(notes.calls[0][2]["config"]["lr"], 0.05)
        self.assertEqual(notes.summary["ce"], run.metrics["ce"])
        self.assertEqual(notes.calls[-1][2], {"exit_code": 0})


if __name__ == "__main__":
    unittest.main()
