"""The record of a run: its directory, finished or still being written, read back."""

from __future__ import annotations

import ctypes
import enum
import math
import os
from typing import Any, Dict, List, NamedTuple

import numpy as np

from . import _ffi, errors
from .config import Value, from_text, kind_of


class State(enum.IntEnum):
    """How far a run came."""

    NONE = 0
    BEGUN = 1
    DONE = 2
    DIVERGED = 3
    FAILED = 4


class End(NamedTuple):
    """How a run ended: its state and, if it diverged or failed, where and why."""

    state: State
    iteration: int
    reason: str


def metric_keys() -> List[str]:
    """The keys of all metrics, as in metrics.jsonl."""
    keys: List[str] = []
    while True:
        key = _ffi.library.ct_metric_key(len(keys))
        if key is None:
            return keys
        keys.append(_ffi.decode(key))


class Record:
    """What a run directory says.

    >>> record = crosstalk.Record("runs/ccl")
    >>> record.metrics["consensus_accuracy"]
    array([0.61, 0.72, 0.78])
    >>> record.frame().plot(x="epoch", y="consensus_accuracy")     # where pandas is installed
    """

    def __init__(self, directory: "str | os.PathLike[str]"):
        self.directory = os.fspath(directory)
        self._owned = _ffi.Owned("ct_record_open", "ct_record_free", _ffi.encode(directory))

    def _get(self, name: str, *arguments: Any) -> Any:
        return getattr(_ffi.library, name)(self._owned.address, *arguments)

    @property
    def end(self) -> End:
        iteration, reason = ctypes.c_long(), ctypes.create_string_buffer(1024)
        state = self._get("ct_record_state_of", ctypes.byref(iteration), reason, len(reason))
        return End(State(state), iteration.value, errors.with_keywords(_ffi.decode(reason.value)))

    @property
    def state(self) -> State:
        return self.end.state

    @property
    def options(self) -> Dict[str, Value]:
        """Every saved option by keyword."""
        name, value = ctypes.c_char_p(), ctypes.c_char_p()
        found: Dict[str, Value] = {}
        for k in range(self._get("ct_record_n_options")):
            if self._get("ct_record_option_at", k, ctypes.byref(name), ctypes.byref(value)):
                key = errors.keyword(_ffi.decode(name.value))
                found[key] = from_text(_ffi.decode(value.value), kind_of(key))
        return found

    @property
    def n_epochs(self) -> int:
        """Rows of metrics."""
        return self._get("ct_record_n_epochs")

    @property
    def metrics(self) -> Dict[str, np.ndarray]:
        """An array per metric, one number a row; NaN: not evaluated then."""
        rows = range(self.n_epochs)
        found = {
            key: np.array([self._get("ct_record_metric", row, _ffi.encode(key)) for row in rows])
            for key in metric_keys()
        }
        return {key: values for key, values in found.items() if not np.isnan(values).all()}

    def frame(self) -> Any:
        """The metrics as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise ImportError("Record.frame needs pandas; Record.metrics has the same as arrays") from None
        return pandas.DataFrame(self.metrics)

    @property
    def summary(self) -> Dict[str, float]:
        """The numbers of summary.json by key; empty while the run is not finished."""
        found = {key: self._get("ct_record_summary", _ffi.encode(key)) for key in metric_keys()}
        return {key: value for key, value in found.items() if not math.isnan(value)}

    @property
    def n_agents(self) -> int:
        return self._get("ct_record_n_agents")

    @property
    def n_classes(self) -> int:
        return self._get("ct_record_n_classes")

    @property
    def class_names(self) -> List[str]:
        """Names of the classes, or their numbers."""
        names = [self._get("ct_record_class_name", k) for k in range(self.n_classes)]
        return [_ffi.decode(name) if name else str(k) for k, name in enumerate(names)]

    @property
    def edges(self) -> np.ndarray:
        """[n_edges, 2] pairs of agents that talk to each other."""
        a, b = ctypes.c_int(), ctypes.c_int()
        found = []
        for k in range(self._get("ct_record_n_edges")):
            if self._get("ct_record_edge", k, ctypes.byref(a), ctypes.byref(b)):
                found.append((a.value, b.value))
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    @property
    def split(self) -> np.ndarray:
        """[n_agents, n_classes] training samples of each class that an agent holds; -1: unknown."""
        return self._table("ct_record_class_count", self.n_agents, self.n_classes)

    @property
    def agent_accuracy(self) -> np.ndarray:
        """[n_agents] of the last evaluation; NaN: unknown."""
        return np.array([self._get("ct_record_agent_accuracy", a) for a in range(self.n_agents)])

    @property
    def confusion(self) -> np.ndarray:
        """[n_classes, n_classes] test samples of a class (row) that the consensus model took for
        another (column); -1: unknown."""
        return self._table("ct_record_confusion", self.n_classes, self.n_classes)

    def _table(self, name: str, n_rows: int, n_columns: int) -> np.ndarray:
        return np.array(
            [[self._get(name, i, j) for j in range(n_columns)] for i in range(n_rows)], dtype=np.int64
        ).reshape(n_rows, n_columns)

    def __repr__(self) -> str:
        return f"<crosstalk.Record: {self.directory}, {self.state.name.lower()}, {self.n_epochs} epochs>"
