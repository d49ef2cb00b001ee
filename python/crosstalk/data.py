"""Samples and graphs in the caller's memory.

Arrays are lent to the library, not copied, where they are as it wants them: ``uint8`` or
``float32``, C order, ``[n][channels][height][width]`` (also ``[n][height][width]`` and rows of
numbers ``[n][width]``). ``layout="NHWC"`` and arrays that are not contiguous are copied once.
"""

from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _ffi, errors

_TYPES = {np.dtype(np.uint8): 0, np.dtype(np.float32): 1}  # CT_UINT8, CT_FLOAT32


class Samples(NamedTuple):
    """Values [n, channels, height, width] (None: the caller's model has them) and labels [n]."""

    values: Optional[np.ndarray]
    labels: np.ndarray


def as_images(values: Any, layout: str = "NCHW", what: str = "data") -> np.ndarray:
    """[n, channels, height, width] of an array; a copy only where its layout asks for one."""
    array = np.asarray(values)
    if array.dtype not in _TYPES:
        raise errors.InvalidTypeError(
            f"{what} is {array.dtype}; uint8 or float32 is taken, as in .astype(numpy.float32)", about=what
        )
    if layout not in ("NCHW", "NHWC"):
        raise errors.InvalidError(f"layout is NCHW or NHWC, not {layout}", about="layout")
    if array.ndim not in (2, 3, 4):
        raise errors.InvalidError(
            f"{what} has {array.ndim} dimensions; [n, channels, height, width], [n, height, width] or "
            "[n, width] is taken",
            about=what,
        )
    if array.ndim == 4 and layout == "NHWC":
        array = array.transpose(0, 3, 1, 2)
    n, *rest = array.shape
    shape = (n, *([1] * (3 - len(rest))), *rest)
    return np.ascontiguousarray(array).reshape(shape)


def as_labels(labels: Any, n: Optional[int], what: str = "labels") -> np.ndarray:
    """int32 [n]; other whole numbers are copied."""
    array = np.asarray(labels)
    if array.dtype.kind not in "iu":
        raise errors.InvalidTypeError(f"{what} are {array.dtype}; whole numbers are taken", about=what)
    if array.ndim != 1 or (n is not None and len(array) != n):
        wanted = "one dimension" if n is None else f"shape ({n},)"
        raise errors.InvalidError(f"{what} have shape {array.shape}; {wanted} is taken", about=what)
    if array.size and (array.min() < -1 or array.max() > np.iinfo(np.int32).max):
        raise errors.InvalidError(f"{what} go from {array.min()} to {array.max()}", about=what)
    return np.ascontiguousarray(array, dtype=np.int32)


def joined(parts: Sequence[Tuple[Any, Any]], layout: str) -> Tuple[Samples, np.ndarray]:
    """One training set of the agents' own ones (a copy), and who holds a sample."""
    if not parts:
        raise errors.InvalidError("data has no agents", about="data")
    values = [as_images(value, layout) for value, _ in parts]
    labels = [as_labels(label, len(value)) for value, (_, label) in zip(values, parts)]
    shapes = {(value.dtype, value.shape[1:]) for value in values}
    if len(shapes) != 1:
        raise errors.InvalidError(
            "the agents' data differ in type or shape: "
            + ", ".join(sorted(f"{kind} {list(shape)}" for kind, shape in shapes)),
            about="data",
        )
    agent_of = np.repeat(np.arange(len(parts), dtype=np.int32), [len(label) for label in labels])
    return Samples(np.concatenate(values), np.concatenate(labels)), agent_of


def _is_per_agent(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(part, tuple) and len(part) == 2 for part in data)


class Data:
    """A data set in memory, for ``Run`` and ``train``.

    >>> Data(images, labels, test=(test_images, test_labels), class_names=["cat", "dog"])
    >>> Data([(images_of_agent_0, labels_of_agent_0), (images_of_agent_1, labels_of_agent_1)])

    data         uint8 or float32, see above; or a list with a pair (values, labels) per agent (copied);
                 None with ``labels`` alone: the caller's own model has the samples
    agent_of     [n] who holds a sample, -1: nobody; None: the option ``partition`` decides
    mean, std    per channel; None: of the training samples
    """

    def __init__(
        self,
        data: Any,
        labels: Any = None,
        *,
        test: Optional[Tuple[Any, Any]] = None,
        agent_of: Any = None,
        n_classes: Optional[int] = None,
        class_names: Optional[Sequence[str]] = None,
        mean: Any = None,
        std: Any = None,
        layout: str = "NCHW",
        name: str = "memory",
    ):
        if _is_per_agent(data):
            if labels is not None or agent_of is not None:
                raise errors.InvalidError("labels and owners are in the agents' data already", about="labels")
            self.train, self.agent_of = joined(data, layout)
        else:
            self.train = _samples(data, labels, layout, "data", "labels")
            n = len(self.train.labels)
            self.agent_of = None if agent_of is None else as_labels(agent_of, n, "agent_of")
        self.test = None if test is None else _samples(*test, layout, "test", "test labels")
        self.class_names = None if class_names is None else [str(name) for name in class_names]
        self.n_classes = self._n_classes(n_classes)
        self.channels, self.height, self.width = self._shape()
        self.mean = _per_channel(mean, self.channels, "mean")
        self.std = _per_channel(std, self.channels, "std")
        self.name = name

    def _n_classes(self, given: Optional[int]) -> int:
        if given is not None:
            return int(given)
        if self.class_names is not None:
            return len(self.class_names)
        return max(int(part.labels.max(initial=-1)) + 1 for part in (self.train, self.test) if part)

    def _shape(self) -> Tuple[int, int, int]:
        if self.train.values is None:
            return 1, 1, 1
        if self.test is not None and self.test.values is not None:
            for what in ("dtype", "shape"):
                train, test = getattr(self.train.values, what), getattr(self.test.values, what)
                if (train[1:] != test[1:]) if what == "shape" else (train != test):
                    raise errors.InvalidError(f"test has {what} {test}, data {train}", about="test")
        channels, height, width = self.train.values.shape[1:]
        return channels, height, width

    def n_agents(self) -> Optional[int]:
        return None if self.agent_of is None else int(self.agent_of.max(initial=-1)) + 1

    def as_struct(self) -> "Lent":
        """The ct_data of it."""
        values = self.train.values
        data = _ffi.ct_data(
            size=ctypes.sizeof(_ffi.ct_data),
            name=_ffi.encode(self.name),
            type=0 if values is None else _TYPES[values.dtype],
            channels=self.channels,
            height=self.height,
            width=self.width,
            n_classes=self.n_classes,
            train=_struct_of(self.train),
            test=_struct_of(self.test) if self.test is not None else _ffi.ct_samples(),
            mean=_address(self.mean),
            std=_address(self.std),
            agent_of=_address(self.agent_of),
        )
        if self.class_names is not None:
            data.class_names = texts(self.class_names)
        return Lent(data, self)


class Lent(NamedTuple):
    """A struct for the library and what it points to."""

    struct: ctypes.Structure
    kept: Any


def texts(words: Sequence[str]) -> Any:
    """A char *[] of them."""
    return (ctypes.c_char_p * len(words))(*[_ffi.encode(word) for word in words])


def _samples(values: Any, labels: Any, layout: str, what: str, labels_are: str) -> Samples:
    images = None if values is None else as_images(values, layout, what)
    if labels is None:
        raise errors.InvalidError(f"{what} without labels", about="labels")
    return Samples(images, as_labels(labels, None if images is None else len(images), labels_are))


def _struct_of(samples: Samples) -> _ffi.ct_samples:
    return _ffi.ct_samples(
        n=len(samples.labels), values=_address(samples.values), labels=_address(samples.labels)
    )


def _address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else array.ctypes.data


def _per_channel(values: Any, channels: int, what: str) -> Optional[np.ndarray]:
    if values is None:
        return None
    array = np.ascontiguousarray(np.atleast_1d(np.asarray(values, dtype=np.float32)))
    if array.shape != (channels,):
        raise errors.InvalidError(f"{what} has shape {array.shape}; one number a channel is taken", about=what)
    return array


class Graph:
    """An undirected graph of agents: pairs, an adjacency matrix, or what networkx has."""

    def __init__(self, graph: Any):
        edges, self.n_agents = _edges(graph)
        self.edges = np.ascontiguousarray(edges, dtype=np.int32).reshape(-1, 2)

    def as_struct(self) -> Lent:
        edges = _ffi.ct_edges(
            size=ctypes.sizeof(_ffi.ct_edges), n_edges=len(self.edges), edges=_address(self.edges)
        )
        return Lent(edges, self)


def _edges(graph: Any) -> Tuple[List[Tuple[int, int]], int]:
    if callable(getattr(graph, "edges", None)) and hasattr(graph, "nodes"):
        place = {node: k for k, node in enumerate(graph.nodes)}
        return [(place[edge[0]], place[edge[1]]) for edge in graph.edges()], len(place)
    array = np.asarray(graph)
    if array.ndim == 2 and array.shape[0] == array.shape[1] and array.shape != (2, 2):
        return _adjacent(array)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise errors.InvalidError(
            "graph is a list of pairs of agents, a square adjacency matrix or a networkx graph", about="graph"
        )
    return [(int(a), int(b)) for a, b in array], int(array.max()) + 1


def _adjacent(matrix: np.ndarray) -> Tuple[List[Tuple[int, int]], int]:
    if not np.array_equal(matrix != 0, matrix.T != 0):
        raise errors.InvalidError("the adjacency matrix is not symmetric: edges have no direction", about="graph")
    upper = np.argwhere(np.triu(matrix != 0, k=1))
    return [(int(a), int(b)) for a, b in upper], len(matrix)
