"""The C library as ctypes sees it: its structs, its functions, and the way to find it.

Declared by hand after ``include/crosstalk/*.h``; ``tests/test_ffi.py`` compares the two.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_long,
    c_size_t,
    c_void_p,
)
from typing import Any, Dict, List, Tuple

from . import errors

CONSENSUS = -1  # CT_CONSENSUS: as an agent, the mean of all agents' models
MAX_DIMS = 8  # CT_MAX_DIMS: of a tensor


class ct_error(Structure):
    _fields_ = [("status", c_int), ("about", c_char * 64), ("text", c_char * 1024)]


LogFunction = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
ProgressFunction = CFUNCTYPE(c_bool, c_void_p, c_long, c_long)


class ct_hooks(Structure):
    _fields_ = [("context", c_void_p), ("log", LogFunction), ("progress", ProgressFunction)]


class ct_option_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("group", c_char_p),
        ("default_value", c_char_p),
        ("choices", c_char_p),
        ("help", c_char_p),
        ("kind", c_int),
        ("lowest", c_double),
        ("highest", c_double),
        ("is_local", c_bool),
    ]


class ct_samples(Structure):
    _fields_ = [("n", c_size_t), ("values", c_void_p), ("labels", c_void_p)]


class ct_data(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("type", c_int),
        ("channels", c_int),
        ("height", c_int),
        ("width", c_int),
        ("n_classes", c_int),
        ("class_names", POINTER(c_char_p)),
        ("train", ct_samples),
        ("test", ct_samples),
        ("mean", c_void_p),
        ("std", c_void_p),
        ("agent_of", c_void_p),
    ]


class ct_edges(Structure):
    _fields_ = [("size", c_size_t), ("n_edges", c_int), ("edges", c_void_p)]


class ct_external_job(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("iteration", c_long),
        ("world", c_int),
        ("agent", c_int),
        ("n", c_int),
        ("index", c_void_p),
        ("labels", c_void_p),
        ("x", c_void_p),
        ("g", c_void_p),
        ("z", c_void_p),
        ("dz", c_void_p),
        ("predictions", c_void_p),
        ("loss", c_double),
        ("n_correct", c_int),
        ("internal", c_void_p),
    ]


class ct_parameter(Structure):
    _fields_ = [("name", c_char_p), ("n_dims", c_int), ("dims", c_size_t * MAX_DIMS)]


JobFunction = CFUNCTYPE(c_int, c_void_p, POINTER(ct_external_job))


class ct_external(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("context", c_void_p),
        ("name", c_char_p),
        ("parameters", POINTER(ct_parameter)),
        ("n_parameters", c_int),
        ("start", c_void_p),
        ("n_features", c_int),
        ("on_device", c_bool),
        ("gradient", JobFunction),
        ("features", JobFunction),
        ("evaluate", JobFunction),
    ]


class ct_inputs(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("data", POINTER(ct_data)),
        ("graph", POINTER(ct_edges)),
        ("external", POINTER(ct_external)),
        ("hooks", POINTER(ct_hooks)),
        ("writes_nothing", c_bool),
    ]


class ct_tensor_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("n_dims", c_int),
        ("dims", c_size_t * MAX_DIMS),
        ("offset", c_size_t),
        ("count", c_size_t),
    ]


# Handles and plain memory are addresses.
_Handle = c_void_p
_Memory = c_void_p
_Out = POINTER(c_void_p)
_Error = POINTER(ct_error)

FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    # base.h
    "ct_error_text": (None, [_Error, c_char_p, c_char_p, c_size_t]),
    "ct_version": (c_char_p, []),
    # config.h
    "ct_config_create": (c_int, [_Out, _Error]),
    "ct_config_free": (None, [_Out]),
    "ct_config_copy": (c_int, [_Handle, _Out, _Error]),
    "ct_config_set": (c_int, [_Handle, c_char_p, c_char_p, _Error]),
    "ct_config_get": (c_int, [_Handle, c_char_p, c_char_p, c_size_t, _Error]),
    "ct_config_read": (c_int, [_Handle, c_char_p, _Error]),
    "ct_config_write": (c_int, [_Handle, c_char_p, _Error]),
    "ct_schema_n_options": (c_int, []),
    "ct_schema_option": (c_bool, [c_int, POINTER(ct_option_info)]),
    # external.h
    "ct_job_contrast": (None, [POINTER(ct_external_job)]),
    # model.h
    "ct_model_open": (c_int, [c_char_p, c_char_p, _Out, _Error]),
    "ct_model_free": (None, [_Out]),
    "ct_model_n_classes": (c_int, [_Handle]),
    "ct_model_class_name": (c_char_p, [_Handle, c_int]),
    "ct_model_shape": (None, [_Handle, POINTER(c_int), POINTER(c_int), POINTER(c_int)]),
    "ct_model_normalisation": (None, [_Handle, c_int, POINTER(c_double), POINTER(c_double)]),
    "ct_model_fact": (c_char_p, [_Handle, c_char_p]),
    "ct_model_predict": (c_int, [_Handle, _Memory, c_size_t, _Memory, _Error]),
    "ct_model_predict_floats": (c_int, [_Handle, _Memory, c_size_t, _Memory, _Error]),
    "ct_model_predict_files": (
        c_int,
        [_Handle, POINTER(c_char_p), c_size_t, _Memory, _Memory, _Error],
    ),
    "ct_model_export": (c_int, [_Handle, c_char_p, c_bool, _Error]),
    # record.h
    "ct_record_open": (c_int, [c_char_p, _Out, _Error]),
    "ct_record_free": (None, [_Out]),
    "ct_record_state_of": (c_int, [_Handle, POINTER(c_long), c_char_p, c_size_t]),
    "ct_record_option_of": (c_char_p, [_Handle, c_char_p]),
    "ct_record_n_options": (c_int, [_Handle]),
    "ct_record_option_at": (c_bool, [_Handle, c_int, POINTER(c_char_p), POINTER(c_char_p)]),
    "ct_record_n_epochs": (c_int, [_Handle]),
    "ct_record_metric": (c_double, [_Handle, c_int, c_char_p]),
    "ct_record_summary": (c_double, [_Handle, c_char_p]),
    "ct_record_n_agents": (c_int, [_Handle]),
    "ct_record_n_classes": (c_int, [_Handle]),
    "ct_record_class_name": (c_char_p, [_Handle, c_int]),
    "ct_record_n_edges": (c_int, [_Handle]),
    "ct_record_edge": (c_bool, [_Handle, c_int, POINTER(c_int), POINTER(c_int)]),
    "ct_record_class_count": (c_long, [_Handle, c_int, c_int]),
    "ct_record_agent_accuracy": (c_double, [_Handle, c_int]),
    "ct_record_confusion": (c_long, [_Handle, c_int, c_int]),
    # run.h
    "ct_run_create": (c_int, [_Handle, POINTER(ct_inputs), _Out, _Error]),
    "ct_run_free": (None, [_Out]),
    "ct_run_step": (c_int, [_Handle, c_long, _Error]),
    "ct_run_is_done": (c_bool, [_Handle]),
    "ct_run_iteration": (c_long, [_Handle]),
    "ct_run_n_iterations": (c_long, [_Handle]),
    "ct_run_epoch_length": (c_long, [_Handle]),
    "ct_run_checkpoint": (c_int, [_Handle, _Error]),
    "ct_run_option": (c_int, [_Handle, c_char_p, c_char_p, c_size_t, _Error]),
    "ct_run_directory": (c_char_p, [_Handle]),
    "ct_run_n_worlds": (c_int, [_Handle]),
    "ct_run_n_agents": (c_int, [_Handle]),
    "ct_metric_key": (c_char_p, [c_int]),
    "ct_run_metric": (c_double, [_Handle, c_int, c_char_p]),
    "ct_run_evaluate": (c_int, [_Handle, _Error]),
    "ct_run_n_parameters": (c_size_t, [_Handle]),
    "ct_run_n_tensors": (c_int, [_Handle]),
    "ct_run_tensor": (c_bool, [_Handle, c_int, POINTER(ct_tensor_info)]),
    "ct_run_read": (c_int, [_Handle, c_int, c_int, _Memory, _Error]),
    "ct_run_write": (c_int, [_Handle, c_int, c_int, _Memory, _Error]),
    "ct_run_view": (c_void_p, [_Handle, c_int, c_int, POINTER(c_bool)]),
    "ct_run_dlpack": (c_int, [_Handle, c_int, c_int, _Out, _Error]),
    "ct_run_save": (c_int, [_Handle, c_int, c_int, c_char_p, _Error]),
}


def _candidates() -> List[str]:
    given = os.environ.get("CROSSTALK_LIBRARY")
    if given:
        return [given]
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libcrosstalk.so")
    return ([beside] if os.path.exists(beside) else []) + ["libcrosstalk.so.0"]


def _declare(library: ctypes.CDLL, name: str, path: str) -> None:
    """Types of a function. One that an older library lacks says so when it is called."""

    def missing(*_arguments: Any) -> Any:
        raise errors.NotBuiltError(f"{path} has no {name}: it is older than this package")

    try:
        function = getattr(library, name)
        function.restype, function.argtypes = FUNCTIONS[name]
    except AttributeError:
        setattr(library, name, missing)


def _load() -> ctypes.CDLL:
    paths = _candidates()
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            failure = error
            continue
        for name in FUNCTIONS:
            _declare(library, name, path)
        return library
    raise ImportError(
        f"the crosstalk library cannot be loaded: {failure}; "
        "set CROSSTALK_LIBRARY to the path of libcrosstalk.so"
    )


library = _load()


def check(status: int, error: ct_error) -> None:
    """Raises what a call that failed said."""
    if status != errors.Status.OK:
        raise failure_of(status, error)


def failure_of(status: int, error: ct_error) -> errors.Error:
    """The exception of a failed call. The library's sentence still marks its options with @."""
    room = ctypes.create_string_buffer(2048)
    library.ct_error_text(ctypes.byref(error), b"@", room, len(room))
    return errors.make(status, decode(error.about), decode(room.value))


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns ct_status and takes a ct_error last."""
    error = ct_error()
    check(getattr(library, name)(*arguments, ctypes.byref(error)), error)


def encode(text: "str | os.PathLike[str]") -> bytes:
    """Bytes for C; a NUL would cut the text short, so that it is refused."""
    data = os.fsencode(text)
    if b"\0" in data:
        raise errors.InvalidError("a text with a NUL character is not taken")
    return data


def decode(data: "bytes | None") -> str:
    return os.fsdecode(data) if data is not None else ""


class Owned:
    """A handle of the library and all that must live as long as it does.

    Whoever holds the object may use the memory of the handle; the last one frees it.
    """

    def __init__(self, create: str, free: str, *arguments: Any, kept: Any = None):
        self._pointer = c_void_p()
        self._free = free
        self._kept = kept
        call(create, *arguments, ctypes.byref(self._pointer))

    @property
    def address(self) -> int:
        return self._pointer.value or 0

    def __del__(self) -> None:
        if self._pointer:
            getattr(library, self._free)(ctypes.byref(self._pointer))
