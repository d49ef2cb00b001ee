"""Trains eight agents on pictures in memory, looks at the result, and uses the model.

Run it as a script, or cell by cell (``# %%``) in an editor that knows notebooks.
"""

# %% Pictures: four kinds, by which quarter is bright. Yours: uint8 or float32 [n, channels, h, w].
import os
import tempfile

import numpy as np

import crosstalk

random = np.random.default_rng(0)


def pictures(n):
    labels = np.arange(n, dtype=np.int32) % 4
    images = random.integers(0, 120, (n, 1, 16, 16), dtype=np.uint8)
    for image, label in zip(images, labels):
        image[0, 8 * (label // 2) :, 8 * (label % 2) :][:8, :8] += 60
    return images, labels


images, labels = pictures(1600)
test = pictures(400)

# %% One call trains. Options are those of `crosstalk train`; alpha is how much the agents' data differ.
run = crosstalk.train(
    images,
    labels,
    test=test,
    class_names=["upper left", "upper right", "lower left", "lower right"],
    model="mlp:32",
    algorithm="ccl",
    agents=8,
    alpha=0.1,
    epochs=8,
    lr=0.05,
    on_epoch=lambda run, metrics: print(f"epoch {metrics['epoch']:.0f}: ce {metrics['ce']:.3f}"),
)
print(f"consensus model: {run.metrics['consensus_accuracy']:.3f}")

# %% How it went, and what is inside.
print("accuracy by epoch:", np.round(run.history["consensus_accuracy"], 3))
print({name: values.shape for name, values in run.consensus().items()})

# %% Use the model: probabilities, names, a file for later.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "quarters.safetensors")
    run.save(path)
    with crosstalk.Model(path) as model:
        print(model.classify(test[0][:4]), model.predict(test[0][:1]).round(3))

# %% Step by step, with a look at the agents on the way; nothing is written without out=.
with crosstalk.Run(images, labels, test=test, model="mlp:32", algorithm="gt", agents=8, epochs=2) as steps:
    while steps.step(10):
        agents = np.stack([steps.view(agent) for agent in range(steps.n_agents)])
        spread = np.linalg.norm(agents - agents.mean(0), axis=1).mean()
        print(f"iteration {steps.iteration}: agents are {spread:.4f} from their mean")
