"""What can go wrong, as exceptions.

Every failure of the library is a :class:`Error`. Each status also has a class of its own that
Python's own classes catch: a bad option is a ``ValueError``, a missing file an ``OSError``.

    >>> try:
    ...     crosstalk.Config(lr=-1)
    ... except ValueError as error:
    ...     error.about
    'lr'
"""

from __future__ import annotations

import enum
import re
from typing import Dict, Optional, Type


class Status(enum.IntEnum):
    """ct_status of the C library."""

    OK = 0
    INVAL = 1
    IO = 2
    NOMEM = 3
    NOTBUILT = 4
    DIVERGED = 5
    BUSY = 6
    STOPPED = 7
    DIFFERS = 8


class Error(Exception):
    """A failure of the library. ``status`` says which kind, ``about`` names the keyword (or is "")."""

    status: Status = Status.INVAL
    about: str = ""

    def __init__(self, text: str, *, about: str = "", status: Optional[Status] = None):
        super().__init__(text)
        self.text = text
        self.about = about
        if status is not None:
            self.status = status

    def __str__(self) -> str:
        return self.text


class InvalidError(Error, ValueError):
    """An unknown option, a value out of range, arrays that do not fit together."""

    status = Status.INVAL


class InvalidTypeError(Error, TypeError):
    """An array of a type that is not taken."""

    status = Status.INVAL


class FileError(Error, OSError):
    """A file or folder is missing, damaged or not writable."""

    status = Status.IO


class OutOfMemoryError(Error, MemoryError):
    """The run does not fit into memory."""

    status = Status.NOMEM


class NotBuiltError(Error, NotImplementedError):
    """The library was built without this part; the text says how to build it."""

    status = Status.NOTBUILT


class DivergedError(Error, ArithmeticError):
    """A loss became NaN or infinite."""

    status = Status.DIVERGED


class BusyError(Error, OSError):
    """Another process, thread or callback is using it."""

    status = Status.BUSY


class StoppedError(Error):
    """A time limit or a signal ended the run; what was done is saved."""

    status = Status.STOPPED


class DiffersError(Error, ValueError):
    """A saved run has other options or data than asked for."""

    status = Status.DIFFERS


_CLASSES: Dict[int, Type[Error]] = {
    Status.INVAL: InvalidError,
    Status.IO: FileError,
    Status.NOMEM: OutOfMemoryError,
    Status.NOTBUILT: NotBuiltError,
    Status.DIVERGED: DivergedError,
    Status.BUSY: BusyError,
    Status.STOPPED: StoppedError,
    Status.DIFFERS: DiffersError,
}

_OPTION = re.compile(r"@([a-z](?:[a-z-]*[a-z])?)")


def keyword(name: str) -> str:
    """The keyword of an option: ``batch-size`` is ``batch_size`` in Python."""
    return name.replace("-", "_")


def with_keywords(text: str) -> str:
    """A text of the library with its options (``@batch-size``) spelled as keywords."""
    return _OPTION.sub(lambda match: keyword(match[1]), text)


def make(status: int, about: str, text: str) -> Error:
    """The exception for a status and the library's words."""
    known = Status(status) if status in Status._value2member_map_ else Status.INVAL
    return _CLASSES.get(known, Error)(with_keywords(text), about=keyword(about), status=known)
