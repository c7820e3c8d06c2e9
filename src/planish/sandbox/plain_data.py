"""Plain-data codec: what sandboxed processes send, written as JSON and read back by a declared type.

A pickle runs code of the sender in the reader. Reading this format runs none: a message becomes a value of
the type that the reader names (plain types, dataclasses and named tuples, a closed set), or a `DataError`.
It is JSON, and not a library for typed messages, because JSON keeps what these reject: unions of dataclasses,
integers of any size, and the lone surrogates as which Python reads bytes that are not UTF-8.
"""

from __future__ import annotations

import base64
import builtins
import json
import os
import struct
import sys
import traceback
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

from planish.core import PlanishError

MOST_BYTES = 256 << 20
"""Size limit of one message, in bytes: modules are the largest."""
_LENGTH = struct.Struct("<Q")
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_DECODER = json.JSONDecoder()
_Argument = bool | int | float | str | None


class DataError(ValueError):
    """A value or a message does not have the declared type."""


class _Codec(NamedTuple):
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    accepts: Callable[[Any], bool]
    """Tests a value before it is dumped, to find the member of a union to which it belongs."""
    unchanged: frozenset[type] = frozenset()
    """The types of values that are dumped and loaded as they are: of many, they are tested all at once."""

    def dump_all(self, values: Collection[Any]) -> list[Any]:
        if self.unchanged.issuperset(map(type, values)):
            return list(values)
        return list(map(self.dump, values))

    def load_all(self, data: Any) -> list[Any]:
        if self.unchanged.issuperset(map(type, _listed(data))):
            return data
        return list(map(self.load, data))


def dumps(value: object, of: Any) -> bytes:
    """Write a value of a type as JSON.

    Raises:
        DataError: the value is not of that type, or the type is not supported.
    """
    try:
        return _ENCODER.encode(_codec(of).dump(value)).encode("ascii")
    except DataError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"not a valid {_name(of)}: {error}") from error


def loads(data: bytes, of: Any) -> Any:
    """Read a value of a type; `dumps` is the inverse.

    Raises:
        DataError: the data is malformed, or is not of that type.
    """
    try:
        return _codec(of).load(_DECODER.decode(data.decode("ascii")))
    except DataError:
        raise
    # A dataclass may check its fields when it is made.
    except Exception as error:
        raise DataError(f"not a valid {_name(of)}: {error}") from error


def framed(body: bytes) -> bytes:
    """Put the length of a message in front of it.

    Raises:
        DataError: it exceeds the size limit.
    """
    if len(body) > MOST_BYTES:
        raise DataError(f"a message of {len(body):,} bytes exceeds the limit of {MOST_BYTES:,}")
    return _LENGTH.pack(len(body)) + body


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes to a pipe, which takes what fits, 64 KiB by default."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class FrameReader:
    """Splits a stream of bytes into the messages that `framed` has written.

    Args:
        most_bytes: size limit of one message; objects of Python take some twenty times as much memory.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._data, self._most = bytearray(), most_bytes

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add bytes; yield each message that they complete.

        Raises:
            DataError: a message exceeds the size limit.
        """
        self._data += data
        while len(self._data) >= _LENGTH.size:
            length = _LENGTH.unpack_from(self._data)[0]
            if length > self._most:
                raise DataError(f"a message of {length:,} bytes exceeds the limit of {self._most:,}")
            end = _LENGTH.size + length
            # The rest comes with a later read: a pipe keeps no boundaries of messages.
            if len(self._data) < end:
                return
            body = bytes(self._data[_LENGTH.size : end])
            del self._data[:end]
            yield body


@dataclass(frozen=True)
class ErrorData:
    """An exception as plain data.

    Args:
        kind: module and name of its class.
        arguments: of its constructor.
        traceback: its text, with the traceback.
    """

    kind: str
    arguments: tuple[_Argument, ...]
    traceback: str

    @staticmethod
    def of(error: BaseException) -> ErrorData:
        """Describe an exception that is being handled."""
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        # As an error is copied: that of a file has its name in no other way.
        arguments = (error.message, error.hint) if isinstance(error, PlanishError) else error.__reduce__()[1]
        plain = [each for each in arguments if isinstance(each, _Argument)]
        if len(plain) < len(arguments):
            plain = [str(error)]
        return ErrorData(kind, tuple(plain), traceback.format_exc())

    def error(self) -> Exception:
        """Make the exception again: of its class where that is built in or of planish, else RuntimeError."""
        for kind in _error_classes():
            if f"{kind.__module__}.{kind.__qualname__}" == self.kind:
                try:
                    return kind(*self.arguments)
                except TypeError:
                    break  # its constructor takes something else
        return RuntimeError(f"{self.kind}: {', '.join(map(str, self.arguments))}")


def _error_classes() -> Iterator[type[Exception]]:
    """List the classes of which an exception may be made: it runs no code but their constructors."""
    open_classes = [PlanishError]
    for kind in open_classes:  # grows
        open_classes += kind.__subclasses__()
        yield kind
    for each in vars(builtins).values():
        if isinstance(each, type) and issubclass(each, Exception):
            yield each


def _name(of: Any) -> str:
    return of.__name__ if isinstance(of, type) else str(of)


def _refuse(value: Any, why: str = "has another type") -> NoReturn:
    raise DataError(f"{value!r:.100} {why}")


@cache
def _codec(of: Any) -> _Codec:
    if of in _PLAIN:
        return _PLAIN[of]
    if _is_record(of):
        return _record(of)
    origin, arguments = get_origin(of), get_args(of)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is Literal:
        return _literal(arguments)
    if (made := _collection(origin, arguments)) is None:
        raise DataError(f"{of} cannot be sent by a sandboxed process")
    return made


def _collection(origin: Any, arguments: tuple[Any, ...]) -> _Codec | None:
    if origin is tuple and arguments[-1] is not ...:
        return _tuple([_codec(each) for each in arguments])
    if origin in _SEQUENCES:
        return _sequence(*_SEQUENCES[origin], _codec(arguments[0]))
    if origin in _MAPPINGS:
        # A counter has a type of keys alone.
        return _mapping(_MAPPINGS[origin], _codec(arguments[0]), _codec((*arguments, int)[1]))
    if origin is not None and origin.__module__ == "numpy":
        return _array(origin, get_args(arguments[1])[0])
    return None


def _is_record(of: Any) -> bool:
    return isinstance(of, type) and (is_dataclass(of) or hasattr(of, "_fields"))


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind)


def _is_integer(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral)


def _is_real(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _to_number(value: Real) -> float:
    return value if isinstance(value, (int, float)) else float(value)


def _to_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _to_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _plain(
    *kinds: type, accepts: Callable[[Any], bool] | None = None, dump: Callable[[Any], Any] | None = None
) -> _Codec:
    """Make the codec of a type that JSON has, which reads it as one of `kinds`."""
    is_one, convert = accepts or partial(_is, kinds[0]), dump or kinds[0]

    def checked_dump(value: Any) -> Any:
        # The first question is the usual case: the second takes microseconds for a number of NumPy.
        if type(value) in kinds:
            return value
        return convert(value) if is_one(value) else _refuse(value)

    def load(data: Any) -> Any:
        return data if type(data) in kinds else _refuse(data)

    return _Codec(checked_dump, load, is_one, frozenset(kinds))


def _as_text(kind: type, dump: Callable[[Any], str], load: Callable[[str], Any]) -> _Codec:
    """Make the codec of a type that is written as a text."""

    def checked_dump(value: Any) -> str:
        return dump(value) if isinstance(value, kind) else _refuse(value)

    def checked_load(data: Any) -> Any:
        return load(_TEXT.load(data))

    return _Codec(checked_dump, checked_load, partial(_is, kind))


def _any() -> _Codec:
    """Make the codec of `Any`: whatever JSON can hold is dumped and loaded as it is, unchecked."""

    def dump(value: Any) -> Any:
        _ENCODER.encode(value)  # raises what `dumps` reports
        return value

    def load(data: Any) -> Any:
        return data

    def accepts(value: Any) -> bool:
        del value
        return True

    return _Codec(dump, load, accepts)


_NONE, _TEXT = _plain(type(None)), _plain(str)
# A float may hold an integer, as in Python, and stays one.
_REAL = _plain(float, int, accepts=_is_real, dump=_to_number)
_PLAIN: dict[Any, _Codec] = {
    None: _NONE,
    type(None): _NONE,
    Any: _any(),
    bool: _plain(bool),
    int: _plain(int, accepts=_is_integer),
    float: _REAL,
    str: _TEXT,
    bytes: _as_text(bytes, _to_text, _to_bytes),
    Path: _as_text(Path, str, Path),
}
_SEQUENCES: dict[Any, tuple[type, type]] = {
    tuple: (tuple, tuple),
    list: (list, list),
    Sequence: (Sequence, tuple),
    Collection: (Collection, tuple),
    set: (set, set),
    frozenset: (frozenset, frozenset),
}
"""Kinds of collections: what a value must be, and what is made of its items."""
_FLOAT = frozenset((float,))
_MAPPINGS: dict[Any, type] = {dict: dict, Mapping: dict, Counter: Counter}


def _listed(data: Any, length: int | None = None) -> list[Any]:
    if type(data) is not list or length not in (None, len(data)):  # type: ignore[arg-type]
        _refuse(data, "is not a list of the right length")
    return data  # type: ignore[return-value]


def _sequence(kind: type, make: type, item: _Codec) -> _Codec:
    # Samples of measurements: their bytes take a tenth of the time that their digits take.
    numbers = item is _REAL

    def accepts(value: Any) -> bool:
        return isinstance(value, kind) and not isinstance(value, str | bytes)

    def dump(value: Any) -> Any:
        if not accepts(value):
            _refuse(value)
        if numbers and _FLOAT.issuperset(map(type, value)):
            return _to_text(array("d", value).tobytes())
        return item.dump_all(value)

    def load(data: Any) -> Any:
        if numbers and type(data) is str:
            return make(array("d", _to_bytes(data)))
        return make(item.load_all(data))

    return _Codec(dump, load, accepts)


def _tuple(items: Sequence[_Codec]) -> _Codec:
    def dump(value: Any) -> Any:
        return [item.dump(each) for item, each in zip(items, value, strict=True)]

    def load(data: Any) -> Any:
        return tuple([item.load(each) for item, each in zip(items, _listed(data), strict=True)])

    return _Codec(dump, load, partial(_is, tuple))


def _mapping(make: type, key: _Codec, item: _Codec) -> _Codec:
    """Make the codec of a mapping: an object where its keys are texts, else its keys and its values."""

    def dump_object(value: Any) -> Any:
        if not _TEXT.unchanged.issuperset(map(type, value)):
            _refuse(value, "has keys of another type")
        if item.unchanged.issuperset(map(type, value.values())):
            return dict(value)
        return {name: item.dump(each) for name, each in value.items()}

    def load_object(data: Any) -> Any:
        if type(data) is not dict:
            _refuse(data)
        given: dict[str, Any] = data
        if item.unchanged.issuperset(map(type, given.values())):
            return given if make is dict else make(given)
        return make({name: item.load(each) for name, each in given.items()})

    def dump(value: Any) -> Any:
        return [key.dump_all(value.keys()), item.dump_all(value.values())]

    def load(data: Any) -> Any:
        keys, values = _listed(data, 2)
        return make(dict(zip(key.load_all(keys), item.load_all(values), strict=True)))

    ways = (dump_object, load_object) if key is _TEXT else (dump, load)
    return _Codec(*ways, partial(_is, Mapping))


def _literal(values: tuple[Any, ...]) -> _Codec:
    kinds = {type(value) for value in values}
    if not kinds <= {str, int, bool, type(None)}:
        raise DataError(f"literals {values} cannot be sent by a sandboxed process")

    def accepts(value: Any) -> bool:
        return type(value) in kinds and value in values

    def check(value: Any) -> Any:
        return value if accepts(value) else _refuse(value, f"is none of {values}")

    return _Codec(check, check, accepts)


def _union(kinds: tuple[Any, ...]) -> _Codec:
    """Make the codec of a union: None as such, and else a value after the number of its type."""
    others = [kind for kind in kinds if kind is not type(None)]
    members, optional = [_codec(kind) for kind in others], type(None) in kinds
    records = {kind: number for number, kind in enumerate(others) if _is_record(kind)}

    def accepts(value: Any) -> bool:
        return (value is None and optional) or any(member.accepts(value) for member in members)

    def dump(value: Any) -> Any:
        if value is None and optional:
            return None
        number = records.get(type(value))
        if number is None:
            number = next((n for n, member in enumerate(members) if member.accepts(value)), None)
        if number is None:
            _refuse(value, f"has none of the types {kinds}")
        return [number, members[number].dump(value)]

    def load(data: Any) -> Any:
        if data is None and optional:
            return None
        number, content = _listed(data, 2)
        if type(number) is not int or not 0 <= number < len(members):
            _refuse(number, "is not the number of a type")
        return members[number].load(content)

    return _Codec(dump, load, accepts)


def _record(kind: Any) -> _Codec:
    """Make the codec of a dataclass or a named tuple: the list of its fields."""
    hints = get_type_hints(kind)
    # A named tuple lists the names of its fields.
    names = kind._fields if hasattr(kind, "_fields") else [each.name for each in fields(kind) if each.init]
    items = [(name, *_codec(hints[name])[:2]) for name in names]

    def accepts(value: Any) -> bool:
        return type(value) is kind

    def dump(value: Any) -> Any:
        if type(value) is not kind:
            _refuse(value, f"is not of type {kind.__name__}")
        return [dump(getattr(value, name)) for name, dump, _ in items]

    def load(data: Any) -> Any:
        return kind(*[load(each) for (_, _, load), each in zip(items, _listed(data), strict=True)])

    return _Codec(dump, load, accepts)


def _array(kind: Any, number: Any) -> _Codec:
    """Make the codec of a NumPy array of one type of numbers: its shape and its bytes."""
    numpy = sys.modules["numpy"]
    dtype = numpy.dtype(number)
    shape_codec = _codec(tuple[int, ...])

    def accepts(value: Any) -> bool:
        return isinstance(value, kind) and value.dtype == dtype

    def dump(value: Any) -> Any:
        if not accepts(value):
            _refuse(value, f"is not an array of {dtype}")
        return [list(value.shape), _to_text(value.tobytes())]

    def load(data: Any) -> Any:
        shape, content = _listed(data, 2)
        return numpy.frombuffer(_to_bytes(content), dtype).reshape(shape_codec.load(shape)).copy()

    return _Codec(dump, load, accepts)
