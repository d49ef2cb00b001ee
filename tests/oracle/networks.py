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


# --------------------------------------------------------------------------- norms

class EvoNorm(nn.Module):
    """EvoNorm-S0: y = x s(x) / sqrt(var_g(x) + eps) * w + b; norm and activation in one.
    var over the channels of a group and the image of one sample, biased.
    s = clamp(x/6 + 1/2, 0, 1), or sigmoid(v x) with `learned`."""

    def __init__(self, channels, learned, groups=8, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.v = nn.Parameter(torch.ones(channels)) if learned else None

    def gate(self, x):
        if self.v is None:
            return torch.clamp(x / 6 + 0.5, 0, 1)
        return torch.sigmoid(self.v[:, None, None] * x)

    def forward(self, x):
        n, c, h, w = x.shape
        grouped = x.view(n, self.groups, -1)
        variance = ((grouped - grouped.mean(2, keepdim=True)) ** 2).mean(2)
        std = torch.sqrt(variance + self.eps).repeat_interleave(c // self.groups, 1)
        y = x * self.gate(x) / std[:, :, None, None]
        return y * self.weight[:, None, None] + self.bias[:, None, None]


def make_norm(norm, channels):
    if norm in ("evonorm", "evonorm-s0"):
        return EvoNorm(channels, learned=norm == "evonorm-s0")
    if norm == "groupnorm":
        return nn.GroupNorm(2, channels)
    if norm == "batchnorm":
        return nn.BatchNorm2d(channels)  # statistics of the batch: the module stays in training
    assert norm == "none", norm
    return nn.Identity()


def activation(norm):
    """EvoNorm is its own activation, so with it there is no ReLU anywhere, not even after an
    addition."""
    return nn.Identity() if norm.startswith("evonorm") else nn.ReLU()


def conv(n_in, n_out, kernel, stride=1, groups=1, bias=False):
    return nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups, bias=bias)


# --------------------------------------------------------------------------- ResNet

class BasicBlock(nn.Module):
    def __init__(self, n_in, n_out, stride, norm):
        super().__init__()
        self.conv1 = conv(n_in, n_out, 3, stride)
        self.bn1 = make_norm(norm, n_out)
        self.conv2 = conv(n_out, n_out, 3)
        self.bn2 = make_norm(norm, n_out)
        self.act = activation(norm)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(conv(n_in, n_out, 1, stride), make_norm(norm, n_out))

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.act(y + (x if self.downsample is None else self.downsample(x)))


def basic_stage(n_in, n_out, n_blocks, stride, norm):
    blocks = [BasicBlock(n_in, n_out, stride, norm)]
    blocks += [BasicBlock(n_out, n_out, 1, norm) for _ in range(n_blocks - 1)]
    return nn.Sequential(*blocks)


class ResNetSmall(nn.Module):
    """Depth 6k + 2 for images of about 32 x 32."""

    def __init__(self, depth, norm, n_channels=3, n_classes=10):
        super().__init__()
        k = (depth - 2) // 6
        self.conv1 = conv(n_channels, 16, 3)
        self.bn1 = make_norm(norm, 16)
        self.act = activation(norm)
        self.layer1 = basic_stage(16, 16, k, 1, norm)
        self.layer2 = basic_stage(16, 32, k, 2, norm)
        self.layer3 = basic_stage(32, 64, k, 2, norm)
        self.fc = nn.Linear(64, n_classes)

    def forward(self, x):
        x = self.act(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        z = x.mean((2, 3))
        return z, self.fc(z)


class ResNet18(nn.Module):
    def __init__(self, norm, n_classes=10):
        super().__init__()
        self.conv1 = conv(3, 64, 7, 2)
        self.bn1 = make_norm(norm, 64)
        self.act = activation(norm)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = basic_stage(64, 64, 2, 1, norm)
        self.layer2 = basic_stage(64, 128, 2, 2, norm)
        self.layer3 = basic_stage(128, 256, 2, 2, norm)
        self.layer4 = basic_stage(256, 512, 2, 2, norm)
        self.fc = nn.Linear(512, n_classes)

    def forward(self, x):
        x = self.maxpool(self.act(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        z = x.mean((2, 3))
        return z, self.fc(z)


# --------------------------------------------------------------------------- MobileNet-V2

class InvertedResidual(nn.Module):
    """Expand, depthwise, project; no activation after the projection's norm (EvoNorm is one)."""

    def __init__(self, n_in, n_out, expansion, stride, norm):
        super().__init__()
        wide = expansion * n_in
        self.stride = stride
        self.conv1 = conv(n_in, wide, 1)
        self.bn1 = make_norm(norm, wide)
        self.conv2 = conv(wide, wide, 3, stride, groups=wide)
        self.bn2 = make_norm(norm, wide)
        self.conv3 = conv(wide, n_out, 1)
        self.bn3 = make_norm(norm, n_out)
        self.act = activation(norm)
        self.shortcut = nn.Sequential()
        if stride == 1 and n_in != n_out:
            self.shortcut = nn.Sequential(conv(n_in, n_out, 1), make_norm(norm, n_out))

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.act(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return y + self.shortcut(x) if self.stride == 1 else y


class MobileNetV2(nn.Module):
    STAGES = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2),
              (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))  # expansion, out, blocks, stride

    def __init__(self, norm, n_classes=10):
        super().__init__()
        self.conv1 = conv(3, 32, 3)
        self.bn1 = make_norm(norm, 32)
        self.act = activation(norm)
        self.layers = nn.Sequential(*self.blocks(norm))
        self.conv2 = conv(320, 1280, 1)
        self.bn2 = make_norm(norm, 1280)
        self.linear = nn.Linear(1280, n_classes)

    def blocks(self, norm):
        n_in = 32
        for expansion, n_out, n_blocks, stride in self.STAGES:
            for b in range(n_blocks):
                yield InvertedResidual(n_in, n_out, expansion, stride if b == 0 else 1, norm)
                n_in = n_out

    def forward(self, x):
        x = self.layers(self.act(self.bn1(self.conv1(x))))
        x = self.act(self.bn2(self.conv2(x)))
        z = F.avg_pool2d(x, 4).flatten(1)
        return z, self.linear(z)


# --------------------------------------------------------------------------- VGG-11

class Vgg11(nn.Module):
    """The CCL authors' narrow one: widths 16 .. 128, a single linear layer at the end."""

    LAYERS = (16, "M", 32, "M", 64, 64, "M", 128, 128, "M", 128, 128, "M")

    def __init__(self, norm, n_classes=10):
        super().__init__()
        layers, n_in = [], 3
        for width in self.LAYERS:
            if width == "M":
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [conv(n_in, width, 3, bias=True), make_norm(norm, width)]
            if not norm.startswith("evonorm"):
                layers.append(nn.ReLU())
            n_in = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(128, n_classes))

    def forward(self, x):
        z = self.features(x).flatten(1)
        return z, self.classifier(z)


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
