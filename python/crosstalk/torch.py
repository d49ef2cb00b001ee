"""PyTorch modules that train with crosstalk, and trained networks as PyTorch modules.

    >>> import crosstalk, crosstalk.torch
    >>> wrapped = crosstalk.torch.Module(net, images, labels, test=(test_images, test_labels),
    ...                                  features="pool")
    >>> run = crosstalk.train(model=wrapped, algorithm="ccl", agents=8, alpha=0.1, epochs=10, lr=0.05)
    >>> trained = crosstalk.torch.load(run)                # an nn.Module with the consensus model

Features, which the ``ccl`` loss contrasts, are what a module returns beside its logits
(``return logits, features``) or the output of a layer named by ``features``. Other algorithms need
none.

Parameters are not copied: while a job runs, the module's parameters are views of the library's rows,
on the CPU and, through DLPack, on a GPU. Between jobs the module has its own values again.

Running statistics are not exchanged between agents, so that BatchNorm that keeps them is refused: use
GroupNorm, LayerNorm, or ``track_running_stats=False``. Random numbers of dropout follow from the
iteration and the agent, so that a resumed run draws the same.
"""

from __future__ import annotations

import contextlib
import copy
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torch.utils.dlpack import from_dlpack

from . import _networks, _safetensors, errors
from ._dlpack import floats
from .data import Data, as_labels
from .external import External, Job, memory
from .model import Model
from .run import Run

Batch = Tuple[Any, Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]


# ---- where batches come from ----


class _Samples:
    """Inputs by number: a tensor, an array, or anything with [k] (a Dataset)."""

    def __init__(self, inputs: Any, labels: Any, device: torch.device):
        if isinstance(inputs, torch.utils.data.TensorDataset) and len(inputs.tensors) == 2 and labels is None:
            inputs, labels = inputs.tensors
        self._gather: Callable[[np.ndarray], Any] = self._collate
        if isinstance(inputs, np.ndarray):
            inputs = torch.from_numpy(inputs)
        if isinstance(inputs, Tensor):
            self._gather = self._index
        self._inputs, self._device = inputs, device
        self.labels = as_labels(_numbers(labels_of(inputs) if labels is None else labels), len(inputs))

    def _index(self, numbers: np.ndarray) -> Tensor:
        places = torch.from_numpy(numbers.astype(np.int64)).to(self._inputs.device)
        return self._inputs.index_select(0, places)

    def _collate(self, numbers: np.ndarray) -> Any:
        items = [self._inputs[int(k)] for k in numbers]
        if isinstance(items[0], (tuple, list)):
            items = [item[0] for item in items]
        return torch.utils.data.default_collate(items)

    def batch(self, numbers: np.ndarray, labels: np.ndarray) -> Batch:
        inputs = _to(self._gather(numbers), self._device)
        return inputs, torch.from_numpy(labels.astype(np.int64)).to(self._device)

    def some(self) -> Any:
        """A few inputs, to see what the module makes of them."""
        return _to(self._gather(np.arange(min(2, len(self.labels)))), self._device)


class _Loaders:
    """A DataLoader per agent, each read again and again."""

    def __init__(self, loaders: Sequence[DataLoader], labels: Optional[Sequence[Any]], device: torch.device):
        self._loaders, self._device = list(loaders), device
        self._iterators: List[Optional[Iterator[Any]]] = [None] * len(self._loaders)
        given = labels if labels is not None else [labels_of(loader.dataset) for loader in self._loaders]
        if len(given) != len(self._loaders):
            raise errors.InvalidError(f"labels are of {len(given)} agents, loaders of {len(self._loaders)}")
        parts = [as_labels(_numbers(part), None) for part in given]
        self.labels = np.concatenate(parts)
        self.agent_of = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])

    @property
    def batch_size(self) -> int:
        sizes = [loader.batch_size for loader in self._loaders]
        if any(size is None for size in sizes):
            raise errors.InvalidError("a loader has no batch_size", about="loaders")
        return max(sizes)

    def next(self, agent: int) -> Tuple[Any, Tensor]:
        for _ in range(2):
            iterator = self._iterators[agent]
            if iterator is None:
                iterator = self._iterators[agent] = iter(self._loaders[agent])
            try:
                inputs, labels = next(iterator)
                return _to(inputs, self._device), labels.to(self._device)
            except StopIteration:
                self._iterators[agent] = None
        raise errors.InvalidError(f"the loader of agent {agent} has no batches", about="loaders")

    def some(self) -> Any:
        inputs, _ = next(iter(self._loaders[0]))
        return _to(inputs, self._device)


def labels_of(dataset: Any) -> Any:
    """The labels of a data set: its ``targets``, its last tensor, or those of its items."""
    if isinstance(dataset, torch.utils.data.Subset):
        return np.asarray(_numbers(labels_of(dataset.dataset)))[np.asarray(dataset.indices)]
    if hasattr(dataset, "targets"):
        return dataset.targets
    if isinstance(dataset, torch.utils.data.TensorDataset):
        return dataset.tensors[-1]
    if isinstance(dataset, Tensor) or not hasattr(dataset, "__len__"):
        raise errors.InvalidError("labels are missing", about="labels")
    return [int(dataset[k][1]) for k in range(len(dataset))]


def _numbers(labels: Any) -> Any:
    return labels.detach().cpu().numpy() if isinstance(labels, Tensor) else labels


def _to(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, (tuple, list)):
        return tuple(_to(item, device) for item in inputs)
    return inputs.to(device)


# ---- the module ----


class Module(External):
    """An ``nn.Module`` as a model of a run.

    module      float32, on the CPU or a GPU (then pass ``device="cuda"`` to the run)
    inputs      tensor, array, TensorDataset or any Dataset; the library splits it over the agents
                (``partition``, ``alpha``, or ``agent_of``) and says which samples a batch has
    labels      [n]; None: the data set's
    loaders     instead: a DataLoader per agent, whose batches are taken as they come
    test        (inputs, labels) or a Dataset; None: nothing is tested
    features    name of the layer whose output ``ccl`` contrasts; None: forward returns
                (logits, features), or logits alone
    loss        function (logits, labels) -> mean over the batch
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Any = None,
        labels: Any = None,
        *,
        loaders: Optional[Sequence[DataLoader]] = None,
        test: Any = None,
        features: Optional[str] = None,
        loss: Loss = F.cross_entropy,
        agent_of: Any = None,
        n_classes: Optional[int] = None,
        class_names: Optional[Sequence[str]] = None,
        name: Optional[str] = None,
    ):
        self.module, self._loss = module, loss
        named = [(key, value) for key, value in module.named_parameters() if value.requires_grad]
        _check(module, named)
        self._parameters = [value for _, value in named]
        self._own = [value.data for value in self._parameters]
        self.device = self._own[0].device
        self._capture = _Capture(module, features)
        self._batches: Dict[Tuple[int, int], Batch] = {}
        self._iteration = -1
        self._open_source(inputs, labels, loaders, agent_of)
        self._test = None if test is None else _Samples(*_pair(test), self.device)
        self._rows: Dict[int, List[Tensor]] = {}
        self._bound: Optional[int] = None
        self._seed = torch.initial_seed() if _is_random(module) else None
        super().__init__(
            {key: value.detach().cpu().numpy() for key, value in named},
            self._run_gradient,
            self._run_features,
            self._run_evaluate if self._test is not None else None,
            n_features=self._probe(),
            name=name or type(module).__name__,
            on_device=self.device.type == "cuda",
        )
        self.data = Data(
            None,
            self._source.labels,
            test=None if self._test is None else (None, self._test.labels),
            agent_of=self._agent_of,
            n_classes=n_classes,
            class_names=class_names,
            name=type(inputs).__name__ if loaders is None else "loaders",
        )

    def _open_source(self, inputs: Any, labels: Any, loaders: Optional[Sequence[DataLoader]], agent_of: Any) -> None:
        self.options: Dict[str, Any] = {"device": "cuda" if self.device.type == "cuda" else "cpu"}
        if (inputs is None) == (loaders is None):
            raise errors.InvalidError("a module needs either inputs or loaders", about="inputs")
        if loaders is None:
            self._source: Union[_Samples, _Loaders] = _Samples(inputs, labels, self.device)
            self._agent_of = agent_of
            return
        self._source = _Loaders(loaders, labels, self.device)
        self._agent_of = self._source.agent_of
        self.options.update(agents=len(loaders), batch_size=self._source.batch_size)

    def _probe(self) -> int:
        """Features of a sample, 0 without any; one forward pass that leaves no trace."""
        was_training = self.module.training
        with torch.random.fork_rng(), torch.no_grad():
            self.module.eval()
            try:
                _, z = self._forward(self._source.some())
            finally:
                self.module.train(was_training)
        return 0 if z is None else z.shape[1]

    # ---- jobs ----

    def _forward(self, inputs: Any) -> Tuple[Tensor, Optional[Tensor]]:
        outputs = self.module(*inputs) if isinstance(inputs, tuple) else self.module(inputs)
        z = self._capture.take()
        if isinstance(outputs, tuple):
            logits, second = outputs
            z = second if z is None else z
        else:
            logits = outputs
        return logits, None if z is None else z.flatten(1)

    def _batch(self, job: Job) -> Batch:
        """The batch of an agent, the same for all its jobs of an iteration."""
        if job.iteration != self._iteration:
            self._iteration = job.iteration
            self._batches.clear()
        if isinstance(self._source, _Loaders):
            return self._own_batch(job, self._source)
        key = (job.world, job.agent)
        if key not in self._batches:
            self._batches[key] = self._source.batch(job.index, job.labels)
        return self._batches[key]

    def _own_batch(self, job: Job, loaders: _Loaders) -> Batch:
        """Of the agent's loader; the library is told what is in it."""
        key = (0, job.agent)
        if key not in self._batches:
            self._batches[key] = loaders.next(job.agent)
        _, labels = self._batches[key]
        if len(labels) > job.n:
            raise errors.InvalidError(
                f"the loader of agent {job.agent} has a batch of {len(labels)}, more than batch_size {job.n}"
            )
        job.n = len(labels)
        job.labels[:] = labels.cpu().numpy()
        return self._batches[key]

    def _run_gradient(self, job: Job) -> None:
        inputs, labels = self._batch(job)
        self._bind(job.x_address)
        with self._mode(job, training=True):
            logits, z = self._forward(inputs)
            loss = self._loss(logits, labels)
            outputs, seeds = [loss], [None]
            if job.needs_features:
                dz = self._contrast(job, z)
                outputs, seeds = [loss, z], [None, dz]
            gradients = torch.autograd.grad(outputs, self._parameters, seeds, allow_unused=True)
        for place, value in zip(self._row(job.g_address), gradients):
            place.zero_() if value is None else place.copy_(value)
        job.n_correct = int((logits.argmax(1) == labels).sum())
        job.loss = loss.item()  # waits for the device: g is written when this returns

    def _contrast(self, job: Job, z: Tensor) -> Tensor:
        torch.from_numpy(job.z).copy_(z.detach())
        return torch.from_numpy(job.contrast()).to(self.device)

    def _run_features(self, job: Job) -> None:
        inputs, _ = self._batch(job)
        self._bind(job.x_address)
        with self._mode(job, training=True), torch.no_grad():
            _, z = self._forward(inputs)
            torch.from_numpy(job.z).copy_(z)

    def _run_evaluate(self, job: Job) -> None:
        assert self._test is not None
        inputs, labels = self._test.batch(job.index, job.labels)
        self._bind(job.x_address)
        with self._mode(job, training=False), torch.no_grad():
            logits, _ = self._forward(inputs)
            torch.from_numpy(job.predictions).copy_(logits.argmax(1))
            job.loss = self._loss(logits, labels).item()

    @contextlib.contextmanager
    def _mode(self, job: Job, training: bool) -> Iterator[None]:
        """Training or not; random numbers of the agent's batch in this iteration."""
        if self.module.training != training:
            self.module.train(training)
        if self._seed is None or not training:
            yield
            return
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(hash((self._seed, job.iteration, job.world, job.agent)) & (2**63 - 1))
            yield

    # ---- parameters ----

    def _row(self, address: int) -> List[Tensor]:
        """The tensors of a row of the library, in the order of the parameters."""
        if address not in self._rows:
            self._rows[address] = list(self.layout.split(self._flat(address)).values())
        return self._rows[address]

    def _flat(self, address: int) -> Tensor:
        if self.on_device:
            return from_dlpack(floats(address, self.layout.count, True, self.device.index or 0))
        return torch.from_numpy(memory(address, (self.layout.count,), np.float32))

    def _bind(self, address: int) -> None:
        """Makes the module's parameters those of a row."""
        if address == self._bound:
            return
        for parameter, values in zip(self._parameters, self._row(address)):
            parameter.data = values
        self._bound = address

    def leave(self) -> None:
        """The module's parameters are its own again."""
        for parameter, values in zip(self._parameters, self._own):
            parameter.data = values
        self._bound = None
        self._batches.clear()


class _Capture:
    """Keeps the output of a layer."""

    def __init__(self, module: nn.Module, layer: Optional[str]):
        self._output: Optional[Tensor] = None
        if layer is None:
            return
        layers = dict(module.named_modules())
        if layer not in layers:
            raise errors.InvalidError(
                f"the module has no layer {layer}; known: {', '.join(filter(None, layers))}", about="features"
            )
        layers[layer].register_forward_hook(self._keep)

    def _keep(self, _layer: nn.Module, _inputs: Any, output: Tensor) -> None:
        self._output = output

    def take(self) -> Optional[Tensor]:
        output, self._output = self._output, None
        return output


def _pair(test: Any) -> Tuple[Any, Any]:
    return (test[0], test[1]) if isinstance(test, (tuple, list)) else (test, None)


def _check(module: nn.Module, named: Sequence[Tuple[str, nn.Parameter]]) -> None:
    if not named:
        raise errors.InvalidError("the module has no parameters to train", about="model")
    for key, value in named:
        if value.dtype != torch.float32:
            raise errors.InvalidTypeError(f"parameter {key} is {value.dtype}; float32 is taken", about="model")
    if len({value.device for _, value in named}) != 1:
        raise errors.InvalidError("the module's parameters are on several devices", about="model")
    for key, layer in module.named_modules():
        if getattr(layer, "track_running_stats", False) and getattr(layer, "running_mean", None) is not None:
            raise errors.InvalidError(
                f"layer {key} keeps running statistics, which agents do not exchange; use GroupNorm or "
                "track_running_stats=False",
                about="model",
            )


def _is_random(module: nn.Module) -> bool:
    """It has dropout."""
    return any(isinstance(layer, nn.modules.dropout._DropoutNd) for layer in module.modules())


# ---- trained networks as modules ----


def load(
    source: Union[Run, Model, str, "os.PathLike[str]"],
    agent: Optional[int] = None,
    *,
    pixels: bool = False,
) -> nn.Module:
    """A trained model as an ``nn.Module`` in evaluation mode.

    source   a run, a :class:`crosstalk.Model`, a run directory or a .safetensors file
    agent    of a run: this agent's model instead of the consensus model
    pixels   built-in networks: the module takes uint8 pixels and normalises them itself
    """
    if isinstance(source, Run):
        return _load_run(source, agent, pixels)
    model = source if isinstance(source, Model) else Model(source, device="cpu")
    if agent is not None:
        raise errors.InvalidError("a saved model has no agents; load it from the run", about="agent")
    return _load_model(model, pixels)


def _load_run(run: Run, agent: Optional[int], pixels: bool) -> nn.Module:
    if isinstance(run.external, Module):
        own = copy.deepcopy(run.external.module)
        _networks.set_parameters(own, run.parameters(agent))
        return own.eval()
    if run.external is not None:
        raise errors.InvalidError("the run has a model of the caller's, which is no nn.Module", about="model")
    return _load_model(run.model(agent, device="cpu"), pixels)


def _load_model(model: Model, pixels: bool) -> nn.Module:
    path = os.path.join(model.path, "consensus.safetensors") if os.path.isdir(model.path) else model.path
    _, tensors = _safetensors.read(path)
    facts = model.facts
    if "network" not in facts:
        raise errors.InvalidError(f"{path} does not say which network it is of", about="model")
    network = _networks.build(
        facts["network"], facts.get("norm", "evonorm"), {name: values.shape for name, values in tensors.items()}
    )
    _networks.load_state(network, tensors)
    if pixels:
        network.takes_pixels(*model.normalisation)
    return network.eval()
