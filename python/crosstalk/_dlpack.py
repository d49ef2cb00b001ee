"""Rows of parameters as DLPack tensors, for frameworks that take them (PyTorch, JAX, CuPy, NumPy).

A description made here keeps the run alive as long as a consumer holds it. Consumers from before
DLPack 1.0 get the older form.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, Dict, Optional, Tuple

from . import _ffi

_CPU, _CUDA = 1, 2
_FLOAT = 2


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_Deleter = CFUNCTYPE(None, c_void_p)


class _Managed(Structure):
    """DLManagedTensor of DLPack before 1.0."""

    _fields_ = [("tensor", _DLTensor), ("context", c_void_p), ("deleter", _Deleter)]


class _ManagedVersioned(Structure):
    """DLManagedTensorVersioned of DLPack 1.x."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", c_void_p),
        ("deleter", _Deleter),
        ("flags", c_uint64),
        ("tensor", _DLTensor),
    ]


_Destructor = CFUNCTYPE(None, c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [c_void_p, c_char_p, _Destructor]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [c_void_p, c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [c_void_p, c_char_p]

_OLD, _NEW = b"dltensor", b"dltensor_versioned"  # capsules keep these addresses

# Descriptions that a consumer may still hold, and what they keep alive.
_held: Dict[int, Tuple[Any, Any]] = {}


@_Deleter
def _forget(address: int) -> None:
    _held.pop(address, None)


@_Destructor
def _destroy(capsule: int) -> None:
    """Frees the description of a capsule that nobody took (who takes it renames it)."""
    for name, kind in ((_OLD, _Managed), (_NEW, _ManagedVersioned)):
        if _is_valid(capsule, name):
            address = _pointer(capsule, name)
            kind.from_address(address).deleter(address)


def describe(tensor: _DLTensor, kept: Any, versioned: bool = False) -> Any:
    """A capsule of a tensor; `kept` lives as long as whoever takes it."""
    managed: Any = _Managed(tensor, None, _forget)
    if versioned:
        managed = _ManagedVersioned(1, 0, None, _forget, 0, tensor)
    where = ctypes.addressof(managed)
    _held[where] = (managed, kept)
    return _new(where, _NEW if versioned else _OLD, _destroy)


def floats(address: int, count: int, on_device: bool, device_id: int = 0) -> Any:
    """A capsule of count floats at an address that somebody else keeps alive."""
    shape = (c_int64 * 1)(count)
    device = _CUDA if on_device else _CPU
    return describe(_DLTensor(address, device, device_id, 1, _FLOAT, 32, 1, shape, None, 0), shape)


class Row:
    """An agent's parameters where they lie, for ``from_dlpack``."""

    def __init__(self, owned: _ffi.Owned, world: int, agent: int):
        self._owned = owned
        self._address = c_void_p()
        _ffi.call("ct_run_dlpack", owned.address, world, agent, ctypes.byref(self._address))
        self._managed = _ManagedVersioned.from_address(self._address.value or 0)

    def __del__(self) -> None:
        if self._address:
            self._managed.deleter(self._address)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._managed.tensor.device_type, self._managed.tensor.device_id

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Any = None,
        copy: Optional[bool] = None,
    ) -> Any:
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("parameters are lent where they are, not copied")
        return describe(self._managed.tensor, self, max_version is not None and max_version[0] >= 1)
