"""crosstalk: decentralized deep learning.

n agents on a graph, each with its own data and its own copy of a model, talk only to their
neighbours and end with one good model.

    >>> import crosstalk
    >>> run = crosstalk.train(images, labels, model="lenet5", algorithm="ccl", agents=8, epochs=10)
    >>> run.metrics["consensus_accuracy"]
    >>> run.model().predict(images[:5])

:func:`train` and :class:`Run` train, :class:`Record` reads what a run wrote, :class:`Model` predicts,
:mod:`crosstalk.torch` trains an ``nn.Module`` of your own. Options are those of ``crosstalk train``
with underscores; :func:`options` lists them.
"""

from ._ffi import decode as _decode
from ._ffi import library as _library
from .config import Config, Option, options
from .data import Data, Graph
from .errors import (
    BusyError,
    DiffersError,
    DivergedError,
    Error,
    FileError,
    InvalidError,
    InvalidTypeError,
    NotBuiltError,
    OutOfMemoryError,
    Status,
    StoppedError,
)
from .external import External, Job
from .model import Model
from .record import Record, State
from .run import Run, train

__version__ = _decode(_library.ct_version())

__all__ = [
    "BusyError",
    "Config",
    "Data",
    "DiffersError",
    "DivergedError",
    "Error",
    "External",
    "FileError",
    "Graph",
    "InvalidError",
    "InvalidTypeError",
    "Job",
    "Model",
    "NotBuiltError",
    "Option",
    "OutOfMemoryError",
    "Record",
    "Run",
    "State",
    "Status",
    "StoppedError",
    "options",
    "train",
]
