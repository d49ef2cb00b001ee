"""Reads .safetensors files of float32 tensors: eight bytes of length, a JSON header, the values."""

from __future__ import annotations

import json
import os
from typing import Dict, Tuple

import numpy as np

from . import errors


def read(path: "str | os.PathLike[str]") -> Tuple[Dict[str, str], Dict[str, np.ndarray]]:
    """Notes (`__metadata__`) and tensors by name, views of the file's bytes."""
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise errors.FileError(f"{os.fspath(path)}: {error.strerror}") from None
    try:
        begin = 8 + int(content[:8].view("<u8")[0])
        header = json.loads(bytes(content[8:begin]))
        notes = header.pop("__metadata__", {})
        return notes, {name: _tensor(content[begin:], entry) for name, entry in header.items()}
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise errors.FileError(f"{os.fspath(path)}: not a .safetensors file of float32 ({error})") from None


def _tensor(values: np.ndarray, entry: Dict[str, object]) -> np.ndarray:
    if entry["dtype"] != "F32":
        raise ValueError(f"a tensor is {entry['dtype']}")
    first, last = entry["data_offsets"]  # type: ignore[misc]
    if not 0 <= first <= last <= len(values):
        raise ValueError("the file is truncated")
    return np.frombuffer(values[first:last].tobytes(), dtype="<f4").reshape(entry["shape"])  # type: ignore[arg-type]
