"""What a run says while the library trains, and how it is stopped from outside."""

from __future__ import annotations

import ctypes
import logging
import signal
import threading
from typing import Any, Callable, Optional

from . import _ffi, errors
from .data import Lent

LogCallback = Callable[[str, str], Any]

_logger = logging.getLogger("crosstalk")
_LEVELS = (
    ("passing", logging.DEBUG),
    ("line", logging.INFO),
    ("note", logging.INFO),
    ("warning", logging.WARNING),
)


def to_logging(level: str, text: str) -> None:
    """Lines go to the logger "crosstalk" unless somebody else listens."""
    _logger.log(dict(_LEVELS)[level], text)


class Listener:
    """The hooks of a run. Exceptions cannot pass the C code: the first one waits in ``failure``."""

    def __init__(self, on_log: Optional[LogCallback]):
        self._on_log = on_log if on_log is not None else to_logging
        self.wants_stop = False
        self.is_interrupted = False
        self.failure: Optional[BaseException] = None

    def log(self, _context: Any, level: int, text: bytes) -> None:
        try:
            self._on_log(_LEVELS[level][0], errors.with_keywords(_ffi.decode(text)))
        except BaseException as error:
            self.failure = self.failure or error

    def progress(self, _context: Any, _now: int, _total: int) -> bool:
        return not (self.wants_stop or self.is_interrupted or self.failure)

    def take_failure(self) -> Optional[BaseException]:
        failure, self.failure = self.failure, None
        return failure

    def take_interrupt(self) -> bool:
        was, self.is_interrupted = self.is_interrupted, False
        return was

    def as_struct(self) -> Lent:
        hooks = _ffi.ct_hooks(
            log=_ffi.LogFunction(self.log), progress=_ffi.ProgressFunction(self.progress)
        )
        return Lent(hooks, self)


class Interrupts:
    """While it lasts, Ctrl-C asks the run to stop instead of raising inside a callback.

    Only where Python's own handler would raise: a program's own handler is left alone.
    """

    def __init__(self, listener: Listener):
        self._listener = listener
        self._is_ours = False

    def __enter__(self) -> "Interrupts":
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._stop)
            self._is_ours = True
        return self

    def _stop(self, _signal: int, _frame: Any) -> None:
        self._listener.is_interrupted = True

    def __exit__(self, *_failure: Any) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def pointer(lent: Optional[Lent]) -> Any:
    """A pointer to the struct, or NULL."""
    return None if lent is None else ctypes.pointer(lent.struct)
