"""The networks, as PyTorch modules in float64 that return (features, logits).

The order of named_parameters() is the order of the flat parameter vector.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mlp(nn.Module):
    def __init__(self, n_inputs, n_classes, hidden):
        super().__init__()
        self.fc1 = nn.Linear(n_inputs, hidden)
        self.fc2 = nn.Linear(hidden, n_classes)

    def forward(self, x):
        z = F.relu(self.fc1(x.flatten(1)))
        return z, self.fc2(z)


class LeNet5(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, n_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        z = F.relu(self.fc2(x))
        return z, self.fc3(z)


class FlatNet:
    """A module seen as a function of its flat parameter vector."""

    def __init__(self, module):
        self.module = module.double()
        self.shapes = [(name, p.shape) for name, p in module.named_parameters()]
        self.n_params = sum(p.numel() for p in module.parameters())

    def named(self, flat):
        """{name: view of flat}"""
        sizes = [shape.numel() for _, shape in self.shapes]
        parts = torch.split(flat, sizes)
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes, parts)}

    def flat(self, tensors):
        """The flat vector of {name: array}."""
        return torch.cat([torch.tensor(tensors[name], dtype=torch.float64).flatten()
                          for name, _ in self.shapes])

    def forward(self, flat, inputs):
        return torch.nn.utils.stateless.functional_call(self.module, self.named(flat), (inputs,))

    def features(self, flat, inputs):
        with torch.no_grad():
            return self.forward(flat, inputs)[0]
