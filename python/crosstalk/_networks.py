"""The built-in networks as PyTorch modules, with the parameter names of the library's.

Each returns logits; ``embed`` gives the features that CCL contrasts. Inputs are normalised pictures
[n, channels, height, width], or uint8 pixels where the module was loaded with ``pixels=True``.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import errors

Shapes = Mapping[str, Tuple[int, ...]]


class EvoNorm(nn.Module):
    """y = x s(x) / sqrt(var_g(x) + eps) w + b over 8 groups of channels (EvoNorm-S0, Liu et al., 2020).

    s(x) = clamp(x / 6 + 1/2, 0, 1), or sigmoid(v x) with a learned v.
    """

    GROUPS, EPSILON = 8, 1e-5

    def __init__(self, channels: int, has_slope: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.v: Optional[nn.Parameter] = nn.Parameter(torch.ones(channels)) if has_slope else None

    def forward(self, x: Tensor) -> Tensor:
        gate = F.hardsigmoid(x) if self.v is None else torch.sigmoid(_broad(self.v) * x)
        groups = x.reshape(x.shape[0], self.GROUPS, -1)
        scale = torch.rsqrt(groups.var(2, unbiased=False) + self.EPSILON)
        scale = scale.repeat_interleave(x.shape[1] // self.GROUPS, dim=1)
        return x * gate * scale[:, :, None, None] * _broad(self.weight) + _broad(self.bias)


def _broad(values: Tensor) -> Tensor:
    return values[None, :, None, None]


class Kind:
    """What a norm option puts behind a convolution."""

    def __init__(self, norm: str):
        makers: Dict[str, Callable[[int], nn.Module]] = {
            "evonorm": lambda channels: EvoNorm(channels, has_slope=False),
            "evonorm-s0": lambda channels: EvoNorm(channels, has_slope=True),
            "groupnorm": lambda channels: nn.GroupNorm(2, channels),
            "batchnorm": nn.BatchNorm2d,
            "none": lambda channels: nn.Identity(),
        }
        if norm not in makers:
            raise errors.InvalidError(f"there is no norm {norm}; known: {', '.join(makers)}", about="norm")
        self.norm = makers[norm]
        self.is_named = norm != "none"
        self.is_active = norm.startswith("evonorm")  # it is an activation itself

    def act(self, x: Tensor) -> Tensor:
        return x if self.is_active else F.relu(x)


class Network(nn.Module):
    """A built-in network. ``forward`` is ``head(embed(x))``; ``embed`` gives the features of CCL."""

    mean: Optional[Tensor]
    std: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", None, persistent=False)
        self.register_buffer("std", None, persistent=False)

    def takes_pixels(self, mean: Sequence[float], std: Sequence[float]) -> None:
        """From now on inputs are uint8 pixels."""
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32), persistent=False)

    def embed(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def head(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if self.mean is not None and self.std is not None:
            x = (x.float() / 255 - _broad(self.mean)) / _broad(self.std)
        return self.head(self.embed(x))


class Logistic(Network):
    def __init__(self, shapes: Shapes):
        super().__init__()
        self.fc = _linear(shapes, "fc")

    def embed(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def head(self, z: Tensor) -> Tensor:
        return self.fc(z)


class Mlp(Network):
    def __init__(self, shapes: Shapes):
        super().__init__()
        self.fc1 = _linear(shapes, "fc1")
        self.fc2 = _linear(shapes, "fc2")

    def embed(self, x: Tensor) -> Tensor:
        return F.relu(self.fc1(x.flatten(1)))

    def head(self, z: Tensor) -> Tensor:
        return self.fc2(z)


class LeNet5(Network):
    def __init__(self, shapes: Shapes):
        super().__init__()
        self.conv1 = nn.Conv2d(shapes["conv1.weight"][1], 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = _linear(shapes, "fc1")
        self.fc2 = _linear(shapes, "fc2")
        self.fc3 = _linear(shapes, "fc3")

    def embed(self, x: Tensor) -> Tensor:
        if x.shape[2] <= 28:  # so that 28x28 and 32x32 pictures both give 400 inputs to fc1
            x = F.pad(x, (2, 2, 2, 2))
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.relu(self.fc2(F.relu(self.fc1(x.flatten(1)))))

    def head(self, z: Tensor) -> Tensor:
        return self.fc3(z)


def _linear(shapes: Shapes, name: str) -> nn.Linear:
    width, inputs = shapes[name + ".weight"]
    return nn.Linear(inputs, width)


def _conv(inputs: int, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, groups=groups, bias=False)


class Residual(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al., 2016)."""

    def __init__(self, inputs: int, channels: int, stride: int, kind: Kind):
        super().__init__()
        self.kind = kind
        self.conv1, self.bn1 = _conv(inputs, channels, 3, stride), kind.norm(channels)
        self.conv2, self.bn2 = _conv(channels, channels, 3), kind.norm(channels)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(_conv(inputs, channels, 1, stride), kind.norm(channels))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.kind.act(self.bn1(self.conv1(x)))
        return self.kind.act(self.bn2(self.conv2(inner)) + self.downsample(x))


class ResNet(Network):
    """Residual stages, each after the first of half the resolution and twice the channels."""

    def __init__(self, shapes: Shapes, norm: str, blocks: Sequence[int]):
        super().__init__()
        self.kind = Kind(norm)
        stem = shapes["conv1.weight"]
        channels = stem[0]
        self.is_large = stem[2] == 7
        self.conv1 = _conv(stem[1], channels, stem[2], 2 if self.is_large else 1)
        self.bn1 = self.kind.norm(channels)
        self.stages: List[str] = []
        for stage, n_blocks in enumerate(blocks):
            self.stages.append(f"layer{stage + 1}")
            setattr(self, self.stages[-1], self._stage(stage, n_blocks, channels << stage))
        self.fc = _linear(shapes, "fc")

    def _stage(self, stage: int, n_blocks: int, channels: int) -> nn.Sequential:
        inputs, stride = (channels, 1) if stage == 0 else (channels // 2, 2)
        first = Residual(inputs, channels, stride, self.kind)
        return nn.Sequential(first, *[Residual(channels, channels, 1, self.kind) for _ in range(n_blocks - 1)])

    def embed(self, x: Tensor) -> Tensor:
        x = self.kind.act(self.bn1(self.conv1(x)))
        if self.is_large:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in self.stages:
            x = getattr(self, stage)(x)
        return x.mean((2, 3))

    def head(self, z: Tensor) -> Tensor:
        return self.fc(z)


class Inverted(nn.Module):
    """Expand, depthwise, project (Sandler et al., 2018)."""

    def __init__(self, inputs: int, channels: int, expansion: int, stride: int, kind: Kind):
        super().__init__()
        wide = inputs * expansion
        self.kind, self.has_shortcut = kind, stride == 1
        self.conv1, self.bn1 = _conv(inputs, wide, 1), kind.norm(wide)
        self.conv2, self.bn2 = _conv(wide, wide, 3, stride, groups=wide), kind.norm(wide)
        self.conv3, self.bn3 = _conv(wide, channels, 1), kind.norm(channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride == 1 and inputs != channels:
            self.shortcut = nn.Sequential(_conv(inputs, channels, 1), kind.norm(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.kind.act(self.bn1(self.conv1(x)))
        y = self.kind.act(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return y + self.shortcut(x) if self.has_shortcut else y


class MobileNetV2(Network):
    # expansion, channels, blocks, stride of the first
    GROUPS = (
        (1, 16, 1, 1),
        (6, 24, 2, 1),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, shapes: Shapes, norm: str):
        super().__init__()
        self.kind = Kind(norm)
        self.conv1, self.bn1 = _conv(shapes["conv1.weight"][1], 32, 3), self.kind.norm(32)
        layers, inputs = [], 32
        for expansion, channels, n_blocks, stride in self.GROUPS:
            for block in range(n_blocks):
                layers.append(Inverted(inputs, channels, expansion, stride if block == 0 else 1, self.kind))
                inputs = channels
        self.layers = nn.Sequential(*layers)
        self.conv2, self.bn2 = _conv(inputs, 1280, 1), self.kind.norm(1280)
        self.linear = _linear(shapes, "linear")

    def embed(self, x: Tensor) -> Tensor:
        x = self.layers(self.kind.act(self.bn1(self.conv1(x))))
        return self.kind.act(self.bn2(self.conv2(x))).mean((2, 3))

    def head(self, z: Tensor) -> Tensor:
        return self.linear(z)


class Vgg11(Network):
    """The narrow one of the CCL authors; numbers in the names count the layers of the usual sequence."""

    LAYERS = (16, 0, 32, 0, 64, 64, 0, 128, 128, 0, 128, 128, 0)  # 0: pooling

    def __init__(self, shapes: Shapes, norm: str):
        super().__init__()
        kind = Kind(norm)
        inputs = shapes["features.0.weight"][1]
        layers: List[nn.Module] = []
        for channels in self.LAYERS:
            if channels == 0:
                layers.append(nn.MaxPool2d(2))
                continue
            layers.append(nn.Conv2d(inputs, channels, 3, padding=1))
            layers += [kind.norm(channels)] if kind.is_named else []
            layers += [] if kind.is_active else [nn.ReLU()]
            inputs = channels
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(_linear(shapes, "classifier.0"))

    def embed(self, x: Tensor) -> Tensor:
        return self.features(x).mean((2, 3))

    def head(self, z: Tensor) -> Tensor:
        return self.classifier(z)


_RESNETS = {
    "resnet20": (3, 3, 3),
    "resnet32": (5, 5, 5),
    "resnet44": (7, 7, 7),
    "resnet56": (9, 9, 9),
    "resnet110": (18, 18, 18),
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
}


def build(network: str, norm: str, shapes: Shapes) -> Network:
    """The module of a network by name, for parameters of these shapes."""
    name = network.split(":")[0]
    if name in _RESNETS:
        return ResNet(shapes, norm, _RESNETS[name])
    if name in ("mobilenetv2", "vgg11"):
        return {"mobilenetv2": MobileNetV2, "vgg11": Vgg11}[name](shapes, norm)
    plain = {"logistic": Logistic, "mlp": Mlp, "lenet5": LeNet5}
    if name not in plain:
        raise errors.InvalidError(f"there is no PyTorch module of the network {network}", about="model")
    return plain[name](shapes)


def load_state(module: nn.Module, tensors: Mapping[str, np.ndarray]) -> None:
    """Sets all parameters and running statistics; names must match."""
    state = {name: torch.from_numpy(np.array(values)) for name, values in tensors.items()}
    missing, extra = module.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or extra:
        raise errors.FileError(
            f"the parameters do not fit the network: missing {missing or 'none'}, unknown {extra or 'none'}"
        )


def set_parameters(module: nn.Module, values: Mapping[str, np.ndarray]) -> None:
    """Sets the named parameters of a module; others stay."""
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(torch.from_numpy(value))
