"""Options of a run, checked as they are set."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, MutableMapping, Optional, Tuple, Union

from . import _ffi, errors

Value = Union[str, int, float, bool]

_KINDS = ("text", "whole", "real", "flag", "switch")
_ROOM = 4096  # bytes for a value as text


@dataclass(frozen=True)
class Option:
    """What an option is, as the schema of the library has it."""

    name: str
    group: str
    kind: str  # text, whole, real, flag, switch
    default: Value  # "auto": chosen from the data set, model and algorithm
    choices: Tuple[str, ...]
    lowest: Optional[float]
    highest: Optional[float]
    is_local: bool  # does not change the numbers that are computed
    help: str


def from_text(text: str, kind: str) -> Value:
    """A value as Python has it; "auto" stays text."""
    if kind in ("flag", "switch"):
        return text == "on"
    for wanted, convert in (("whole", int), ("real", float)):
        if kind == wanted:
            try:
                return convert(text)
            except ValueError:
                return text
    return text


def to_text(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return ",".join(to_text(item) for item in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return to_text(value.item())
    if isinstance(value, (str, int, float)):
        return str(value)
    raise errors.InvalidTypeError(f"an option is text, a number, a bool or a list of them, not {value!r}")


def _option(info: _ffi.ct_option_info) -> Option:
    kind = _KINDS[info.kind]
    is_number = kind in ("whole", "real")
    choices = _ffi.decode(info.choices)
    return Option(
        name=errors.keyword(_ffi.decode(info.name)),
        group=_ffi.decode(info.group),
        kind=kind,
        default=from_text(_ffi.decode(info.default_value), kind),
        choices=tuple(choices.split(", ")) if choices else (),
        lowest=info.lowest if is_number else None,
        highest=info.highest if is_number else None,
        is_local=info.is_local,
        help=errors.with_keywords(_ffi.decode(info.help)),
    )


def _walk() -> Iterator[Option]:
    info = _ffi.ct_option_info(size=ctypes.sizeof(_ffi.ct_option_info))
    for k in range(_ffi.library.ct_schema_n_options()):
        if _ffi.library.ct_schema_option(k, ctypes.byref(info)):
            yield _option(info)


_OPTIONS: Dict[str, Option] = {option.name: option for option in _walk()}


def options() -> List[Option]:
    """Every option of a run, in the order of the help.

    >>> [option.name for option in crosstalk.options() if option.group == "agents"]
    ['agents', 'topology', 'weights', 'gamma']
    """
    return list(_OPTIONS.values())


class Config(MutableMapping[str, Value]):
    """Options by keyword. A wrong name or value raises at once.

    >>> config = Config(algorithm="ccl", agents=8, lr=0.05)
    >>> config["batch_size"]
    32
    >>> config["momentum"] = 0.95
    """

    def __init__(self, *sources: MutableMapping[str, Any], **values: Any):
        self._owned = _ffi.Owned("ct_config_create", "ct_config_free")
        for source in (*sources, values):
            self.update(source)

    @classmethod
    def read(cls, path: "str | os.PathLike[str]") -> "Config":
        """The options of a file, such as config.txt of a run directory."""
        config = cls()
        _ffi.call("ct_config_read", config._owned.address, _ffi.encode(path))
        return config

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Writes every option, one `name = value` a line."""
        _ffi.call("ct_config_write", self._owned.address, _ffi.encode(path))

    def copy(self) -> "Config":
        other = Config.__new__(Config)
        other._owned = _ffi.Owned("ct_config_copy", "ct_config_free", self._owned.address)
        return other

    def update(self, *sources: Any, **values: Any) -> None:
        """Sets several options. If one of them is wrong, none is set."""
        trial = self.copy()
        for name, value in {**dict(*sources), **values}.items():
            trial[name] = value
        self._owned = trial._owned

    def __setitem__(self, name: str, value: Any) -> None:
        _ffi.call("ct_config_set", self._owned.address, _name(name), _ffi.encode(to_text(value)))

    def __getitem__(self, name: str) -> Value:
        if name not in self:
            raise KeyError(name)
        room = ctypes.create_string_buffer(_ROOM)
        _ffi.call("ct_config_get", self._owned.address, _name(name), room, _ROOM)
        return from_text(_ffi.decode(room.value), kind_of(name))

    def __delitem__(self, name: str) -> None:
        """Back to the default."""
        self[name] = _OPTIONS[errors.keyword(name)].default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and errors.keyword(name) in _OPTIONS

    def __iter__(self) -> Iterator[str]:
        return iter(_OPTIONS)

    def __len__(self) -> int:
        return len(_OPTIONS)

    def __repr__(self) -> str:
        changed = {name: self[name] for name in self if self[name] != _OPTIONS[name].default}
        return f"Config({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _name(name: str) -> bytes:
    return _ffi.encode(name.replace("_", "-"))


def kind_of(name: str) -> str:
    option = _OPTIONS.get(errors.keyword(name))
    return option.kind if option is not None else "text"
