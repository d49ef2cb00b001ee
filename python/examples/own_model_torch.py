"""Trains a PyTorch module of one's own over eight agents: attention over patches of a picture.

Needs PyTorch. The module returns (logits, features); features are what the ccl loss contrasts.
"""

# %%
import numpy as np
import torch
from torch import nn

import crosstalk
import crosstalk.torch


class PatchAttention(nn.Module):
    """Patches of 4 x 4 pixels look at each other; what they make of it together is the features."""

    def __init__(self, width=16, n_classes=4):
        super().__init__()
        self.embed = nn.Linear(16, width)
        self.attention = nn.MultiheadAttention(width, num_heads=2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.join = nn.Linear(16 * width, width)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        patches = x.unfold(2, 4, 4).unfold(3, 4, 4).flatten(4).flatten(1, 3)
        tokens = self.embed(patches)
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        features = torch.tanh(self.join(self.norm(tokens + mixed).flatten(1)))
        return self.head(features), features


# %% Data: tensors here; a Dataset, or a DataLoader per agent (loaders=[...]), works as well.
random = np.random.default_rng(0)
labels = np.arange(1200) % 4
pictures = random.normal(0, 1, (1200, 1, 16, 16)).astype(np.float32)
for picture, label in zip(pictures, labels):
    picture[0, 8 * (label // 2) :, 8 * (label % 2) :][:8, :8] += 1
inputs, targets = torch.from_numpy(pictures), torch.from_numpy(labels)

# %% The library splits the data, calls the module for gradients and features, and does the rest.
torch.manual_seed(0)
module = crosstalk.torch.Module(
    PatchAttention(), inputs[:1000], targets[:1000], test=(inputs[1000:], targets[1000:])
)
run = crosstalk.train(
    model=module,
    algorithm="ccl",
    lambda_m=0.01,
    lambda_d=0.01,
    agents=8,
    alpha=0.1,
    epochs=5,
    lr=0.05,
    batch_size=16,
    on_epoch=lambda run, metrics: print({key: round(metrics[key], 4) for key in ("ce", "mv", "dv")}),
)
print(f"consensus model: {run.metrics['consensus_accuracy']:.3f}")

# %% An nn.Module again, with the consensus model's parameters.
trained = crosstalk.torch.load(run)
with torch.no_grad():
    logits, _ = trained(inputs[1000:])
print(f"the same, by PyTorch: {(logits.argmax(1) == targets[1000:]).float().mean().item():.3f}")
