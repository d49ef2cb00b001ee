"""Callbacks that feed MLflow and Weights & Biases.

    python3 mlflow_wandb.py mlflow       # or: wandb

A callback is any object with on_start(run), on_epoch(run, metrics) or on_end(run, error).
"""

import os
import sys
import tempfile

import numpy as np

import crosstalk

OPTIONS = ("algorithm", "model", "agents", "topology", "alpha", "lr", "momentum", "batch_size", "epochs", "seed")


def options_of(run):
    return {name: run.option(name) for name in OPTIONS}


class MlflowCallback:
    """A run of MLflow: options as parameters, metrics an epoch, the model as an artifact."""

    def __init__(self, experiment="crosstalk"):
        import mlflow

        self.mlflow, self.experiment = mlflow, experiment

    def on_start(self, run):
        self.mlflow.set_experiment(self.experiment)
        self.mlflow.start_run()
        self.mlflow.log_params(options_of(run))

    def on_epoch(self, run, metrics):
        self.mlflow.log_metrics(metrics, step=run.iteration)

    def on_end(self, run, error):
        if error is None:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "consensus.safetensors")
                run.save(path)
                self.mlflow.log_artifact(path)
        self.mlflow.end_run(status="FINISHED" if error is None else "FAILED")


class WandbCallback:
    """A run of Weights & Biases: options as its config, metrics an epoch, the last ones as its summary."""

    def __init__(self, project="crosstalk"):
        import wandb

        self.wandb, self.project, self.session = wandb, project, None

    def on_start(self, run):
        self.session = self.wandb.init(project=self.project, config=options_of(run))

    def on_epoch(self, run, metrics):
        self.session.log(metrics, step=run.iteration)

    def on_end(self, run, error):
        if error is None:
            self.session.summary.update(run.metrics)
        self.session.finish(exit_code=0 if error is None else 1)


def main(service):
    callback = {"mlflow": MlflowCallback, "wandb": WandbCallback}[service]()
    random = np.random.default_rng(0)
    labels = np.arange(400, dtype=np.int32) % 4
    rows = (random.normal(0, 1, (400, 20)) + np.eye(20)[labels] * 3).astype(np.float32)
    return crosstalk.train(
        rows,
        labels,
        test=(rows[:100], labels[:100]),
        model="mlp:16",
        algorithm="qg-dsgdm",
        agents=4,
        epochs=3,
        lr=0.05,
        callbacks=[callback],
    )


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("mlflow", "wandb"):
        sys.exit("usage: mlflow_wandb.py mlflow|wandb")
    main(sys.argv[1])
