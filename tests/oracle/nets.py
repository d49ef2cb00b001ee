"""Gradient fixtures: weights and inputs from a hash a C program can repeat bit for bit, and the
loss, features, logits and gradients they give in float64."""

import copy
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import networks

torch.set_num_threads(1)

BATCH, N_CLASSES, N_PROBES, N_FEATURES = 3, 10, 8, 64
INPUT_OFFSET, PROBE_STEP = 0x9E3779B9, 0x7F4A7C15


def convs_only(name):
    """For a second file of a network: enough to place every gradient. (Under batchnorm some
    biases only feed another norm: their gradient is zero, and nothing relative can be said.)"""
    return "bn" not in name and "shortcut.1" not in name


def everything(_name):
    return True


class Net:
    """One fixture. ReLU networks on large images always have some activations within rounding
    of zero, and one that flips moves a gradient by about 1/sqrt(activations of the layer). So
    they get small images, an input (shift) without such activations, or a wide tolerance;
    perturbed_error() tells."""

    def __init__(self, model, norm, shape, make, tag="", keep=everything, gain=1.0, shift=0,
                 tolerance=1e-4):
        self.file = model + tag + "-" + norm
        self.model, self.norm, self.shape, self.make = model, norm, shape, make
        self.keep, self.gain, self.tolerance = keep, gain, tolerance
        self.input_offset = INPUT_OFFSET + shift


def resnet20(norm, side, n_channels=3, **more):
    return Net("resnet20", norm, (n_channels, side, side),
               lambda: networks.ResNetSmall(20, norm, n_channels), **more)


def mobilenetv2(norm, **more):
    return Net("mobilenetv2", norm, (3, 32, 32), lambda: networks.MobileNetV2(norm), **more)


NETS = [
    Net("lenet5", "none", (1, 28, 28), networks.LeNet5),
    resnet20("evonorm", 32),
    resnet20("evonorm-s0", 32),
    resnet20("groupnorm", 8),
    resnet20("batchnorm", 8, shift=17),
    resnet20("none", 8),
    resnet20("evonorm", 28, n_channels=1, tag="-28x28", keep=convs_only),
    mobilenetv2("evonorm", gain=0.7),
    mobilenetv2("batchnorm", keep=convs_only, tolerance=0.1),
    Net("vgg11", "evonorm", (3, 32, 32), lambda: networks.Vgg11("evonorm")),
    Net("resnet18", "evonorm", (3, 64, 64), lambda: networks.ResNet18("evonorm")),
]

KNOWN_COUNTS = {"lenet5-none": 61706, "resnet20-evonorm": 272474, "mobilenetv2-evonorm": 2296922}


def hash32(k):
    """The finaliser of MurmurHash3 on an array of uint32; products wrap."""
    k = np.array(k, dtype=np.uint32)
    k ^= k >> np.uint32(16)
    k *= np.uint32(0x85EBCA6B)
    k ^= k >> np.uint32(13)
    k *= np.uint32(0xC2B2AE35)
    k ^= k >> np.uint32(16)
    return k


def u(first, count):
    """u(k) for k = first .. first + count - 1 (mod 2^32): multiples of 2^-23 in [-1, 1), so
    exact in float32 too."""
    k = (np.arange(count, dtype=np.uint64) + np.uint64(first)).astype(np.uint32)
    return (hash32(k) >> np.uint32(8)) * 2.0 ** -23 - 1.0


def is_norm(module):
    return isinstance(module, (networks.EvoNorm, nn.GroupNorm, nn.BatchNorm2d))


def fill_parameters(net, gain):
    """k runs over all parameters, in the order of named_parameters()."""
    modules = dict(net.named_modules())
    k = 0
    for name, p in net.named_parameters():
        owner, leaf = name.rsplit(".", 1)
        values = u(k, p.numel())
        k += p.numel()
        if is_norm(modules[owner]):
            values = 0.1 * values if leaf == "bias" else 1 + 0.1 * values
        elif leaf == "bias":
            values = 0.1 * values
        else:
            values = gain * math.sqrt(3.0 / p[0].numel()) * values  # p[0].numel() = fan_in
        p.data = torch.tensor(values.astype(np.float32).reshape(p.shape)).double()


def make_batch(shape, offset):
    count = BATCH * int(np.prod(shape))
    inputs = torch.tensor(2 * u(offset, count)).reshape((BATCH,) + shape)
    labels = torch.tensor([(7 * b + 3) % N_CLASSES for b in range(BATCH)])
    return inputs, labels


def evaluate(net, inputs, labels):
    z, logits = net(inputs)
    loss = F.cross_entropy(logits, labels)
    names, parameters = zip(*net.named_parameters())
    return loss, z, logits, dict(zip(names, torch.autograd.grad(loss, parameters)))


def probes(gradient):
    """gradient . r_p, r_p[k] = u(k + (p + 1) PROBE_STEP), k counted within the tensor."""
    flat = gradient.flatten().numpy()
    return [float(flat @ u((p + 1) * PROBE_STEP % 2 ** 32, len(flat))) for p in range(N_PROBES)]


def line(head, values):
    return head + "".join(" %.17g" % float(v) for v in values) + "\n"


def write_header(f, net, n_params):
    f.write("model %s\nnorm %s\nparameters %d\n" % (net.model, net.norm, n_params))
    f.write("batch %d\ninput %d %d %d\nclasses %d\n" % ((BATCH,) + net.shape + (N_CLASSES,)))
    f.write("input_offset %d\ngain %g\n" % (net.input_offset, net.gain))
    f.write("tolerance %g\n" % net.tolerance)


def write_net(folder, net, module, batch):
    loss, z, logits, gradients = evaluate(module, *batch)
    with open(os.path.join(folder, net.file + ".txt"), "w") as f:
        write_header(f, net, sum(p.numel() for p in module.parameters()))
        f.write(line("loss", [loss]))
        f.write(line("logits %d" % logits.numel(), logits.flatten()))
        f.write(line("features %d" % min(N_FEATURES, z.numel()), z.flatten()[:N_FEATURES]))
        for name, g in gradients.items():
            if net.keep(name):
                f.write(line("grad %s %d" % (name, g.numel()), [g.norm()] + probes(g)))
    return {name: g for name, g in gradients.items() if net.keep(name)}


# --------------------------------------------------------------------------- robustness

def worst_error(got, gradients):
    return max(float((got[k].double() - g).norm() / g.norm()) for k, g in gradients.items())


def perturbed_error(module, batch, gradients):
    """The worst tensor after every weight and input moved by 3e-6 of itself: more than float32
    does, about what a Winograd convolution does."""
    torch.manual_seed(0)
    moved = copy.deepcopy(module)
    for p in moved.parameters():
        p.data *= 1 + 3e-6 * torch.randn_like(p)
    inputs = batch[0] * (1 + 3e-6 * torch.randn_like(batch[0]))
    return worst_error(evaluate(moved, inputs, batch[1])[3], gradients)


def float32_error(module, batch, gradients):
    module = copy.deepcopy(module).float()
    return worst_error(evaluate(module, batch[0].float(), batch[1])[3], gradients)


def write(folder):
    os.makedirs(folder, exist_ok=True)
    for net in NETS:
        module = net.make().double()
        fill_parameters(module, net.gain)
        batch = make_batch(net.shape, net.input_offset)
        gradients = write_net(folder, net, module, batch)
        n_params = sum(p.numel() for p in module.parameters())
        assert KNOWN_COUNTS.get(net.file, n_params) == n_params, net.file
        rounded, moved = (error(module, batch, gradients)
                          for error in (float32_error, perturbed_error))
        print("%-24s %9d parameters; gradients in float32 within %.1e, all moved by 3e-6 %.1e"
              % (net.file, n_params, rounded, moved))
        assert max(rounded, moved) < net.tolerance, net.file
