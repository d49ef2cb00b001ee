"""Small data and programs that the tests share."""

import os
import tempfile
import unittest

import numpy as np

import crosstalk

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("CROSSTALK_PROGRAM", os.path.join(ROOT, "build", "crosstalk"))

try:
    import torch

    has_torch = True
except ImportError:
    has_torch = False

needs_torch = unittest.skipUnless(has_torch, "PyTorch is not installed")
needs_program = unittest.skipUnless(os.path.exists(PROGRAM), f"{PROGRAM} is not built")

N_CLASSES = 4


def pictures(n, seed=0, side=8):
    """uint8 [n, 1, side, side], a bright quarter per class, and labels [n]."""
    random = np.random.default_rng(seed)
    labels = (np.arange(n) % N_CLASSES).astype(np.int32)
    images = random.integers(0, 100, (n, 1, side, side), dtype=np.uint8)
    half = side // 2
    for image, label in zip(images, labels):
        top, left = half * (label // 2), half * (label % 2)
        image[0, top : top + half, left : left + half] += 100
    return images, labels


# Options of a run of a second at most.
QUICK = dict(agents=4, model="mlp:8", batch_size=8, epochs=2, lr=0.05, alpha=1.0, threads=1, device="cpu")


def quick(n=160, **keywords):
    """A run on small pictures."""
    images, labels = pictures(n)
    return crosstalk.Run(images, labels, test=pictures(40, seed=1), **{**QUICK, **keywords})


class Folder(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)
