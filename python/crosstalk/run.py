"""Training runs."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _ffi, errors
from ._dlpack import Row
from ._hooks import Interrupts, Listener, LogCallback, pointer
from .config import Config, Value, from_text, kind_of
from .data import Data, Graph, Lent
from .external import External, Layout
from .model import Model
from .record import Record, metric_keys

Metrics = Dict[str, float]
EpochCallback = Callable[["Run", Metrics], Any]
Parameters = Dict[str, np.ndarray]

_ROOM = 4096


class _Row:
    """A row of the library's memory, which it keeps alive, for NumPy."""

    def __init__(self, owned: _ffi.Owned, address: int, count: int):
        self._owned = owned
        self.__array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (address, False), "version": 3}


class Run:
    """A training run, in steps.

    >>> with Run(images, labels, test=(test_images, test_labels), algorithm="ccl", agents=8) as run:
    ...     while run.step(100):
    ...         print(run.iteration, run.metrics.get("consensus_accuracy"))
    ...     weights = run.consensus()

    data, labels   samples in memory (see :class:`crosstalk.Data`, which may be given instead; ``test``,
                   ``agent_of``, ``class_names``, ``n_classes``, ``mean``, ``std``, ``layout`` are its
                   keywords); without them the options ``dataset`` and ``data_dir`` decide
    graph          who talks to whom: pairs of agents, an adjacency matrix, a networkx graph, or the
                   name of a topology
    model          name of a network, or an :class:`crosstalk.External` or ``crosstalk.torch.Module``
    on_epoch       function (run, metrics), called after each epoch; may call every method of the run
    on_log         function (level, text); without it, lines go to the logger "crosstalk"
    callbacks      objects with any of on_start(run), on_epoch(run, metrics), on_end(run, error)
    config         a :class:`crosstalk.Config`; other keywords are options, and go before it

    Files are written only with ``out`` (or ``resume``): a run directory as the program writes it.
    An exception in a callback stops the run and comes out of ``step`` unchanged. Ctrl-C stops it
    after the iteration in progress, with a checkpoint if there is a run directory, and raises
    KeyboardInterrupt; the run may be stepped further after either.
    """

    def __init__(
        self,
        data: Any = None,
        labels: Any = None,
        *,
        config: Optional[Mapping[str, Any]] = None,
        graph: Any = None,
        model: Any = None,
        on_epoch: Optional[EpochCallback] = None,
        on_log: Optional[LogCallback] = None,
        callbacks: Iterable[Any] = (),
        **keywords: Any,
    ):
        self._owned: Optional[_ffi.Owned] = None
        self._lock = threading.Lock()
        self._callbacks = list(callbacks)
        self._on_epoch = on_epoch
        self._history: List[List[Metrics]] = []
        self._listener = Listener(on_log)
        self.external: Optional[External] = model if isinstance(model, External) else None
        inputs = _Inputs(data, labels, graph, model, keywords)
        self._config = inputs.config(config)
        self._create(inputs)
        self._history = [[] for _ in range(self.n_worlds)]
        self._begun = False

    def _create(self, inputs: "_Inputs") -> None:
        struct = inputs.as_struct(self._listener, self.external)
        struct.struct.writes_nothing = not (self._config["out"] or self._config["resume"])
        with Interrupts(self._listener):
            try:
                self._owned = _ffi.Owned(
                    "ct_run_create",
                    "ct_run_free",
                    self._config._owned.address,
                    ctypes.byref(struct.struct),
                    kept=struct,
                )
            except errors.Error:
                self._raise_failure()
                raise
        self._raise_failure()

    # ---- its life ----

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_failure: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the run. Views that are still held keep its memory alive until they are gone."""
        with self._used():
            self._owned = None

    @property
    def is_closed(self) -> bool:
        return self._owned is None

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        """One handle, one thread: others are refused instead of waiting for themselves."""
        if not self._lock.acquire(blocking=False):
            raise errors.BusyError("the run is being used, by a callback of its own or by another thread")
        try:
            yield
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _handle(self) -> Iterator[int]:
        with self._used():
            if self._owned is None:
                raise errors.InvalidError("the run is closed")
            yield self._owned.address

    def _get(self, name: str, *arguments: Any) -> Any:
        with self._handle() as handle:
            return getattr(_ffi.library, name)(handle, *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        """A call that may compute, so that it may call back."""
        error = _ffi.ct_error()
        with self._handle() as handle, Interrupts(self._listener):
            try:
                status = getattr(_ffi.library, name)(handle, *arguments, ctypes.byref(error))
            finally:
                if self.external is not None:
                    self.external.leave()
        self._raise_failure()
        if status == errors.Status.STOPPED and self._listener.wants_stop:
            return
        _ffi.check(status, error)

    def _raise_failure(self) -> None:
        """Raises what a callback raised, or KeyboardInterrupt after Ctrl-C."""
        is_interrupted = self._listener.take_interrupt()
        failure = self.external.take_failure() if self.external is not None else None
        failure = failure or self._listener.take_failure()
        if failure is not None:
            raise failure
        if is_interrupted:
            raise KeyboardInterrupt

    # ---- training ----

    def step(self, n: int = 1) -> bool:
        """Trains n iterations, fewer if the run ends before. True: there are more to come."""
        if n < 1:
            raise errors.InvalidError(f"step takes at least one iteration, not {n}", about="n")
        self._listener.wants_stop = False
        self._begin()
        end = min(self.iteration + n, self.n_iterations)
        while self.iteration < end and not self._listener.wants_stop:
            length = self.epoch_length
            self._call("ct_run_step", min(end - self.iteration, length - self.iteration % length))
            if self.iteration % length == 0 or self.is_done:
                self._end_epoch()
        return not self.is_done

    def run(self) -> "Run":
        """Trains to the end, or until a callback calls ``stop``."""
        failure: Optional[BaseException] = None
        try:
            if not self.is_done:
                self.step(max(self.n_iterations - self.iteration, 1))
            return self
        except BaseException as error:
            failure = error
            raise
        finally:
            self._tell("on_end", self, failure)

    def stop(self) -> None:
        """For callbacks: ends ``step`` or ``run`` after the iteration in progress."""
        self._listener.wants_stop = True

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._tell("on_start", self)

    def _end_epoch(self) -> None:
        for world, rows in enumerate(self._history):
            rows.append(self.metrics_of(world))
        if self._on_epoch is not None:
            self._on_epoch(self, self.metrics)
        self._tell("on_epoch", self, self.metrics)

    def _tell(self, name: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            function = getattr(callback, name, None)
            if function is not None:
                function(*arguments)

    @property
    def is_done(self) -> bool:
        return self._get("ct_run_is_done")

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self._get("ct_run_iteration")

    @property
    def n_iterations(self) -> int:
        return self._get("ct_run_n_iterations")

    @property
    def epoch_length(self) -> int:
        """Iterations of an epoch."""
        return self._get("ct_run_epoch_length")

    def checkpoint(self) -> None:
        """Writes a checkpoint now; ``resume`` continues from it."""
        self._call("ct_run_checkpoint")

    # ---- what it knows ----

    @property
    def n_agents(self) -> int:
        return self._get("ct_run_n_agents")

    @property
    def n_worlds(self) -> int:
        """Several seeds or pairs of lambdas in one run are its worlds; a plain run has one."""
        return self._get("ct_run_n_worlds")

    @property
    def directory(self) -> str:
        """The run directory; "": it has none."""
        return _ffi.decode(self._get("ct_run_directory"))

    def option(self, name: str) -> Value:
        """An option as it was resolved: nothing is "auto" any more."""
        room = ctypes.create_string_buffer(_ROOM)
        self._call("ct_run_option", _ffi.encode(name.replace("_", "-")), room, _ROOM)
        return from_text(_ffi.decode(room.value), kind_of(name))

    def metrics_of(self, world: int = 0) -> Metrics:
        """The numbers of the last epoch or ``evaluate``, as far as they are known."""
        known = {key: self._get("ct_run_metric", world, _ffi.encode(key)) for key in metric_keys()}
        return {key: value for key, value in known.items() if not math.isnan(value)}

    @property
    def metrics(self) -> Metrics:
        """``metrics_of`` the first world."""
        return self.metrics_of(0)

    def history_of(self, world: int = 0) -> Dict[str, np.ndarray]:
        """Metrics of the epochs since this object was made, an array per key; NaN: unknown then."""
        rows = self._history[world]
        keys = [key for key in metric_keys() if any(key in row for row in rows)]
        return {key: np.array([row.get(key, math.nan) for row in rows]) for key in keys}

    @property
    def history(self) -> Dict[str, np.ndarray]:
        """``history_of`` the first world."""
        return self.history_of(0)

    def evaluate(self) -> Metrics:
        """Evaluates the consensus model and every agent now."""
        self._call("ct_run_evaluate")
        return self.metrics

    # ---- parameters ----

    @property
    def layout(self) -> Layout:
        """Names, shapes and places of the parameters in a row."""
        info = _ffi.ct_tensor_info(size=ctypes.sizeof(_ffi.ct_tensor_info))
        shapes: Dict[str, Tuple[int, ...]] = {}
        with self._handle() as handle:
            for k in range(_ffi.library.ct_run_n_tensors(handle)):
                if _ffi.library.ct_run_tensor(handle, k, ctypes.byref(info)):
                    shapes[_ffi.decode(info.name)] = tuple(info.dims[: info.n_dims])
        return Layout(shapes)

    @property
    def n_parameters(self) -> int:
        return self._get("ct_run_n_parameters")

    def row(self, agent: Optional[int] = None, world: int = 0) -> np.ndarray:
        """A copy of all parameters of an agent, flat; None: of the consensus model."""
        row = np.empty(self.n_parameters, np.float32)
        self._call("ct_run_read", world, _agent(agent), row.ctypes.data)
        return row

    def parameters(self, agent: Optional[int] = None, world: int = 0) -> Parameters:
        """A copy of an agent's parameters by name; None: of the consensus model."""
        return self.layout.split(self.row(agent, world))

    def consensus(self, world: int = 0) -> Parameters:
        """The mean of all agents' models, by name."""
        return self.parameters(None, world)

    def view(self, agent: int, world: int = 0) -> np.ndarray:
        """An agent's parameters where they lie, flat and without a copy. Read or change them before
        the next call with this run: they may move then. On a GPU use ``dlpack``."""
        on_device = ctypes.c_bool()
        address = self._get("ct_run_view", world, agent, ctypes.byref(on_device))
        if not address:
            raise errors.InvalidError(f"agent {agent} of world {world} is not in this process", about="agent")
        if on_device.value:
            raise errors.InvalidError("the parameters are on a GPU; use dlpack", about="agent")
        assert self._owned is not None
        return np.asarray(_Row(self._owned, address, self.n_parameters))

    def views(self, agent: int, world: int = 0) -> Parameters:
        """``view`` by name."""
        return self.layout.split(self.view(agent, world))

    def dlpack(self, agent: int, world: int = 0) -> Row:
        """An agent's parameters where they lie, on a GPU or not: ``torch.from_dlpack(run.dlpack(0))``."""
        with self._handle():
            assert self._owned is not None
            return Row(self._owned, world, agent)

    def set_parameters(
        self, values: Union[np.ndarray, Mapping[str, Any]], agent: Optional[int] = None, world: int = 0
    ) -> None:
        """Sets an agent's parameters, flat or by name (names left out stay); None: of all agents."""
        for a in range(self.n_agents) if agent is None else [agent]:
            row = self._row_of(values, a, world)
            self._call("ct_run_write", world, a, row.ctypes.data)

    def _row_of(self, values: Union[np.ndarray, Mapping[str, Any]], agent: int, world: int) -> np.ndarray:
        if isinstance(values, Mapping):
            row = self.row(agent, world)
            _fill(self.layout.split(row), values)
            return row
        row = np.ascontiguousarray(values, dtype=np.float32)
        if row.shape != (self.n_parameters,):
            raise errors.InvalidError(f"a row has shape ({self.n_parameters},), not {row.shape}", about="values")
        return row

    # ---- what it leaves ----

    def save(self, path: "str | os.PathLike[str]", agent: Optional[int] = None, world: int = 0) -> None:
        """Saves the consensus model, or an agent's, as a .safetensors file for :class:`Model`."""
        self._call("ct_run_save", world, _agent(agent), _ffi.encode(path))

    def record(self) -> Record:
        """The record in the run directory."""
        if not self.directory:
            raise errors.InvalidError("the run has no directory: give it out=", about="out")
        return Record(self.directory)

    def model(self, agent: Optional[int] = None, world: int = 0, device: str = "auto") -> Model:
        """The consensus model, or an agent's, ready to predict."""
        return Model.of(self, agent, world, device)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<crosstalk.Run, closed>"
        return f"<crosstalk.Run: {self.n_agents} agents, iteration {self.iteration} of {self.n_iterations}>"


def train(data: Any = None, labels: Any = None, **keywords: Any) -> Run:
    """Trains to the end and returns the :class:`Run`, whose keywords it takes.

    >>> run = crosstalk.train(images, labels, test=(test_images, test_labels), model="lenet5",
    ...                       algorithm="ccl", agents=8, alpha=0.1, epochs=10, lr=0.01)
    >>> run.metrics["consensus_accuracy"], run.consensus()["fc3.weight"].shape
    """
    return Run(data, labels, **keywords).run()


def _agent(agent: Optional[int]) -> int:
    if agent is None:
        return _ffi.CONSENSUS
    if agent < 0:
        raise errors.InvalidError(f"agents are numbered from 0, not {agent}", about="agent")
    return agent


def _fill(tensors: Parameters, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name not in tensors:
            raise errors.InvalidError(f"there is no parameter {name}; known: {', '.join(tensors)}", about=name)
        array = np.asarray(value, dtype=np.float32)
        if array.shape != tensors[name].shape:
            raise errors.InvalidError(
                f"{name} has shape {tensors[name].shape}, not {array.shape}", about=name
            )
        tensors[name][...] = array


class _Inputs:
    """What a run is given beside its options; sorts out keywords that are either."""

    _DATA = ("test", "agent_of", "n_classes", "class_names", "mean", "std", "layout", "name")

    def __init__(self, data: Any, labels: Any, graph: Any, model: Any, keywords: Dict[str, Any]):
        self.options = dict(keywords)
        for name, value in (("labels", labels), ("topology", graph), ("model", model)):
            if isinstance(value, str):
                self.options[name] = value
        of_data = {name: self.options.pop(name) for name in self._DATA if name in self.options}
        self.model = None if isinstance(model, str) else model
        if self.model is not None and not isinstance(self.model, External):
            raise errors.InvalidTypeError(
                "model is a name, a crosstalk.External or a crosstalk.torch.Module, "
                f"not {type(model).__name__}",
                about="model",
            )
        self.graph = None if graph is None or isinstance(graph, str) else Graph(graph)
        self.data = self._data(data, None if isinstance(labels, str) else labels, of_data)

    def _data(self, data: Any, labels: Any, of_data: Dict[str, Any]) -> Optional[Data]:
        own = getattr(self.model, "data", None)
        if isinstance(data, Data) or (data is None and labels is None):
            if of_data or labels is not None:
                given = next(iter(of_data), "labels")
                raise errors.InvalidError(f"{given} belongs to data in memory, which is not given here", about=given)
            return data if data is not None else own
        return Data(data, labels, **of_data)

    def config(self, given: Optional[Mapping[str, Any]]) -> Config:
        config = given.copy() if isinstance(given, Config) else Config(dict(given or {}))
        sizes = (self.graph and self.graph.n_agents, self.data and self.data.n_agents())
        known = next((size for size in sizes if size), None)
        if known is not None and config["agents"] == Config()["agents"]:
            config["agents"] = known
        config.update(getattr(self.model, "options", {}))
        config.update(self.options)
        return config

    def as_struct(self, listener: Listener, external: Optional[External]) -> Lent:
        lent = {
            "data": self.data and self.data.as_struct(),
            "graph": self.graph and self.graph.as_struct(),
            "external": external and external.as_struct(),
            "hooks": listener.as_struct(),
        }
        inputs = _ffi.ct_inputs(size=ctypes.sizeof(_ffi.ct_inputs))
        for name, part in lent.items():
            setattr(inputs, name, pointer(part))
        return Lent(inputs, lent)
