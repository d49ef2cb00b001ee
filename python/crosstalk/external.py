"""A model of your own, in any framework: you compute losses and gradients, crosstalk the rest.

A job is "this model on this batch". Its arrays lie in the library's memory: write into them.

    >>> def gradient(job):
    ...     x, y = inputs[job.index], job.labels
    ...     weight = job.tensor("weight")
    ...     ...
    ...     job.gradient("weight")[:] = ...
    ...     job.loss, job.n_correct = loss, n_correct
    >>> model = External({"weight": np.zeros((10, 784))}, gradient)
    >>> crosstalk.train(labels=labels, model=model, algorithm="gt", agents=8)

With ``ccl`` there are features: the model writes them to ``job.z`` and calls ``job.contrast()``,
then adds (dz/dx)^T ``job.dz`` to its gradient; jobs for ``features`` write ``job.z`` alone.
:mod:`crosstalk.torch` does all this for an ``nn.Module``.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _ffi, errors
from .data import Lent

JobCallback = Callable[["Job"], None]


def memory(address: Optional[int], shape: Tuple[int, ...], dtype: Any) -> Optional[np.ndarray]:
    """Memory of the library, of a type of four bytes, as an array; it does not keep the memory alive."""
    if not address:
        return None
    size = 4 * math.prod(shape)
    return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(address))


class Layout:
    """Where each tensor lies in a row of all parameters."""

    def __init__(self, shapes: Mapping[str, Tuple[int, ...]]):
        self.places: Dict[str, Tuple[int, int, Tuple[int, ...]]] = {}
        self.count = 0
        for name, shape in shapes.items():
            size = math.prod(shape)
            self.places[name] = (self.count, size, tuple(shape))
            self.count += size

    def split(self, row: Any) -> Dict[str, Any]:
        """Views of a row (an array or a tensor) by name."""
        return {
            name: row[offset : offset + size].reshape(shape)
            for name, (offset, size, shape) in self.places.items()
        }


class Job:
    """One job. It is only valid while your function runs."""

    __slots__ = ("_struct", "_external", "_x", "_g")

    def __init__(self, struct: _ffi.ct_external_job, external: "External"):
        self._struct = struct
        self._external = external
        self._x: Optional[np.ndarray] = None
        self._g: Optional[np.ndarray] = None

    @property
    def iteration(self) -> int:
        return self._struct.iteration

    @property
    def world(self) -> int:
        """Which seed or pair of lambdas; -1 in evaluations."""
        return self._struct.world

    @property
    def agent(self) -> int:
        """Whose batch; -1 in evaluations."""
        return self._struct.agent

    @property
    def n(self) -> int:
        """Samples in the batch. Batches of your own: write it if you have fewer."""
        return self._struct.n

    @n.setter
    def n(self, value: int) -> None:
        self._struct.n = value

    @property
    def index(self) -> np.ndarray:
        """[n] numbers of the samples."""
        return memory(self._struct.index, (self.n,), np.uint32)

    @property
    def labels(self) -> np.ndarray:
        """[n] Batches of your own: write theirs."""
        return memory(self._struct.labels, (self.n,), np.int32)

    @property
    def x_address(self) -> int:
        return self._struct.x

    @property
    def g_address(self) -> Optional[int]:
        return self._struct.g

    @property
    def x(self) -> np.ndarray:
        """All parameters of the model, flat."""
        if self._x is None:
            self._x = memory(self._struct.x, (self._external.layout.count,), np.float32)
            self._x.flags.writeable = False
        return self._x

    @property
    def g(self) -> np.ndarray:
        """Their gradient, to be written."""
        if self._g is None:
            self._g = memory(self._struct.g, (self._external.layout.count,), np.float32)
        return self._g

    def tensor(self, name: str) -> np.ndarray:
        """A parameter by name."""
        offset, size, shape = self._external.layout.places[name]
        return self.x[offset : offset + size].reshape(shape)

    def gradient(self, name: str) -> np.ndarray:
        """The place of a parameter's gradient, to be written."""
        offset, size, shape = self._external.layout.places[name]
        return self.g[offset : offset + size].reshape(shape)

    @property
    def needs_features(self) -> bool:
        """z is to be written."""
        return bool(self._struct.z)

    @property
    def z(self) -> Optional[np.ndarray]:
        """[n, n_features] to be written; None: not needed."""
        return memory(self._struct.z, (self.n, self._external.n_features), np.float32)

    @property
    def dz(self) -> Optional[np.ndarray]:
        """[n, n_features] of ``contrast``; None without CCL."""
        return memory(self._struct.dz, (self.n, self._external.n_features), np.float32)

    def contrast(self) -> Optional[np.ndarray]:
        """Call it once z is written: the gradient of CCL's terms, which is also ``dz``."""
        _ffi.library.ct_job_contrast(ctypes.byref(self._struct))
        return self.dz

    @property
    def predictions(self) -> Optional[np.ndarray]:
        """[n] evaluation: a class each, to be written."""
        return memory(self._struct.predictions, (self.n,), np.int32)

    @property
    def loss(self) -> float:
        """To be written: the mean over the batch."""
        return self._struct.loss

    @loss.setter
    def loss(self, value: float) -> None:
        self._struct.loss = value

    @property
    def n_correct(self) -> int:
        """To be written by gradient jobs."""
        return self._struct.n_correct

    @n_correct.setter
    def n_correct(self, value: int) -> None:
        self._struct.n_correct = value


class External:
    """A model whose gradients your functions compute.

    start       start values of every parameter by name, in the order of a row
    gradient    function of a :class:`Job`, which writes the job's g, loss and n_correct
    features    for CCL: function that writes the job's z
    evaluate    function that writes the job's predictions and loss; None: nothing is tested
    n_features  features of a sample, for CCL
    on_device   x and g are CUDA memory (``device="cuda"``); see :mod:`crosstalk.torch`
    """

    def __init__(
        self,
        start: Mapping[str, Any],
        gradient: JobCallback,
        features: Optional[JobCallback] = None,
        evaluate: Optional[JobCallback] = None,
        *,
        n_features: int = 0,
        name: str = "external",
        on_device: bool = False,
    ):
        arrays = {key: np.asarray(value, dtype=np.float32) for key, value in start.items()}
        for key, value in arrays.items():
            if value.ndim > _ffi.MAX_DIMS:
                raise errors.InvalidError(f"{key} has {value.ndim} dimensions, more than {_ffi.MAX_DIMS}")
        self.layout = Layout({key: value.shape for key, value in arrays.items()})
        self.start = np.concatenate([np.ravel(value) for value in arrays.values()] or [np.zeros(0, np.float32)])
        self.name, self.n_features, self.on_device = name, n_features, on_device
        self._functions = {"gradient": gradient, "features": features, "evaluate": evaluate}
        self.failure: Optional[BaseException] = None

    def run_job(self, kind: str, job: Job) -> None:
        """Computes a job; what it raises ends the run."""
        function = self._functions[kind]
        assert function is not None
        function(job)

    def leave(self) -> None:
        """Called when the library is done with its jobs for now."""

    def take_failure(self) -> Optional[BaseException]:
        failure, self.failure = self.failure, None
        return failure

    def _callback(self, kind: str) -> Any:
        """The C function of a kind of jobs; an exception waits until the call of the library ends."""

        def run(_context: Any, struct: Any) -> int:
            try:
                self.run_job(kind, Job(struct.contents, self))
            except BaseException as error:  # also KeyboardInterrupt: nothing may cross the C code
                self.failure = error
                return 1
            return 0

        return _ffi.JobFunction(run) if self._functions[kind] is not None else _ffi.JobFunction()

    def as_struct(self) -> Lent:
        parameters = (_ffi.ct_parameter * len(self.layout.places))()
        for parameter, (key, (_, _, shape)) in zip(parameters, self.layout.places.items()):
            parameter.name, parameter.n_dims = _ffi.encode(key), len(shape)
            parameter.dims[: len(shape)] = shape
        external = _ffi.ct_external(
            size=ctypes.sizeof(_ffi.ct_external),
            name=_ffi.encode(self.name),
            parameters=parameters,
            n_parameters=len(parameters),
            start=self.start.ctypes.data,
            n_features=self.n_features,
            on_device=self.on_device,
            gradient=self._callback("gradient"),
            features=self._callback("features"),
            evaluate=self._callback("evaluate"),
        )
        return Lent(external, (self, parameters))
