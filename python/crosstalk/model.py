"""Trained models: predict and export."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _ffi, errors
from .data import texts

if TYPE_CHECKING:
    from .run import Run

Path = Union[str, "os.PathLike[str]"]

_FACTS = ("network", "norm", "algorithm", "data-fingerprint", "version")


class Normalisation(NamedTuple):
    """Per channel: a tensor's value is (pixel / 255 - mean) / std."""

    mean: np.ndarray
    std: np.ndarray


class Model:
    """What a run left, and all that is needed to use it.

    >>> model = crosstalk.Model("runs/ccl")                # a run directory or a .safetensors file
    >>> model.predict(["cat.jpg", "dog.png"])              # probabilities [2, n_classes]
    >>> model.classify(images)                             # names, or numbers, of classes
    >>> model.export_onnx("model.onnx", with_preprocessing=True)
    """

    def __init__(self, path: Path, device: str = "auto"):
        self.path = os.fspath(path)
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self._owned: Optional[_ffi.Owned] = _ffi.Owned(
            "ct_model_open", "ct_model_free", _ffi.encode(path), _ffi.encode(device)
        )

    @classmethod
    def of(cls, run: "Run", agent: Optional[int] = None, world: int = 0, device: str = "auto") -> "Model":
        """The consensus model of a run, or an agent's."""
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "model.safetensors")
        run.save(path, agent, world)
        model = cls(path, device)
        model._folder = folder  # goes with the model
        return model

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_failure: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the model."""
        self._owned = None
        self._folder = None

    @property
    def _handle(self) -> int:
        if self._owned is None:
            raise errors.InvalidError("the model is closed")
        return self._owned.address

    @property
    def n_classes(self) -> int:
        return _ffi.library.ct_model_n_classes(self._handle)

    @property
    def class_names(self) -> List[str]:
        """Names of the classes, or their numbers where they have none."""
        names = [_ffi.library.ct_model_class_name(self._handle, k) for k in range(self.n_classes)]
        return [_ffi.decode(name) or str(k) for k, name in enumerate(names)]

    @property
    def shape(self) -> Tuple[int, int, int]:
        """Channels, height and width of its inputs."""
        sizes = [ctypes.c_int() for _ in range(3)]
        _ffi.library.ct_model_shape(self._handle, *[ctypes.byref(size) for size in sizes])
        return sizes[0].value, sizes[1].value, sizes[2].value

    @property
    def normalisation(self) -> Normalisation:
        mean, std = ctypes.c_double(), ctypes.c_double()
        pairs = []
        for channel in range(self.shape[0]):
            _ffi.library.ct_model_normalisation(self._handle, channel, ctypes.byref(mean), ctypes.byref(std))
            pairs.append((mean.value, std.value))
        table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return Normalisation(table[:, 0], table[:, 1])

    @property
    def facts(self) -> Dict[str, str]:
        """What else the file says: network, norm, algorithm, data_fingerprint, version."""
        found = {key: _ffi.library.ct_model_fact(self._handle, _ffi.encode(key)) for key in _FACTS}
        return {errors.keyword(key): _ffi.decode(value) for key, value in found.items() if value is not None}

    # ---- predicting ----

    def predict(self, inputs: Any, *, unreadable: str = "raise", layout: str = "NCHW") -> np.ndarray:
        """Probabilities [n, n_classes].

        uint8 arrays    [n, channels, height, width] (or one picture) as they were for training
        float32 arrays  the same, normalised already (see ``normalisation``)
        paths, PIL      one or a list; prepared as in training. ``unreadable="nan"``: a file that
                        cannot be read has NaN instead of raising
        layout          NHWC arrays are copied
        """
        if _is_file(inputs) or _is_picture(inputs):
            inputs = [inputs]
        if isinstance(inputs, (list, tuple)) and inputs and all(map(_is_file, inputs)):
            return self._predict_files(inputs, unreadable)
        if isinstance(inputs, (list, tuple)) and inputs and all(map(_is_picture, inputs)):
            with _as_files(inputs) as paths:
                return self._predict_files(paths, unreadable)
        return self._predict_array(np.asarray(inputs), layout)

    def classify(self, inputs: Any, **keywords: Any) -> List[str]:
        """The most probable class of each, by name."""
        names = self.class_names
        return [names[k] for k in self.predict(inputs, **keywords).argmax(1)]

    def _predict_array(self, array: np.ndarray, layout: str) -> np.ndarray:
        functions = {np.dtype(np.uint8): "ct_model_predict", np.dtype(np.float32): "ct_model_predict_floats"}
        if array.dtype not in functions:
            raise errors.InvalidTypeError(
                f"inputs are {array.dtype}; uint8 pixels or normalised float32 are taken", about="inputs"
            )
        batch = self._as_batch(array, layout)
        out = np.empty((len(batch), self.n_classes), np.float32)
        _ffi.call(functions[array.dtype], self._handle, batch.ctypes.data, len(batch), out.ctypes.data)
        return out

    def _as_batch(self, array: np.ndarray, layout: str) -> np.ndarray:
        if layout == "NHWC" and array.ndim in (3, 4):
            array = np.moveaxis(array, -1, -3)
        shape, size = self.shape, int(np.prod(self.shape))
        # Axes of length 1 may be left out: grey pictures [n, h, w], rows of numbers [n, w].
        wanted = tuple(axis for axis in shape if axis != 1)
        for n_axes in (len(array.shape) - k for k in range(4) if len(array.shape) >= k):
            inner = tuple(axis for axis in array.shape[n_axes:] if axis != 1)
            if inner == wanted and n_axes <= 1:
                return np.ascontiguousarray(array).reshape((-1, *shape))
        raise errors.InvalidError(
            f"inputs have shape {array.shape}; [n, {', '.join(map(str, shape))}] is taken ({size} numbers each)",
            about="inputs",
        )

    def _predict_files(self, paths: Sequence[Path], unreadable: str) -> np.ndarray:
        if unreadable not in ("raise", "nan"):
            raise errors.InvalidError(f"unreadable is raise or nan, not {unreadable}", about="unreadable")
        out = np.empty((len(paths), self.n_classes), np.float32)
        readable = np.ones(len(paths), np.bool_)
        _ffi.call(
            "ct_model_predict_files",
            self._handle,
            texts([os.fspath(path) for path in paths]),
            len(paths),
            out.ctypes.data,
            readable.ctypes.data if unreadable == "nan" else None,
        )
        return out

    def export_onnx(self, path: Path, with_preprocessing: bool = False) -> None:
        """Writes it as ONNX; with_preprocessing: the graph takes uint8 pixels and normalises them."""
        _ffi.call("ct_model_export", self._handle, _ffi.encode(path), with_preprocessing)

    def __repr__(self) -> str:
        if self._owned is None:
            return "<crosstalk.Model, closed>"
        return f"<crosstalk.Model: {self.facts.get('network', '?')}, {self.n_classes} classes, {self.path}>"


def _is_file(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _is_picture(value: Any) -> bool:
    return hasattr(value, "getbands") and hasattr(value, "save")  # PIL.Image.Image


@contextlib.contextmanager
def _as_files(pictures: Sequence[Any]) -> Iterator[List[str]]:
    """PIL images as PNG files, which lose nothing, so that they are prepared as files are."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{k}.png") for k in range(len(pictures))]
        for path, picture in zip(paths, pictures):
            picture.save(path)
        yield paths
