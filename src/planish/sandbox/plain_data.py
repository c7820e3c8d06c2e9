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
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from planish.core import PlanishError

MOST_BYTES = 256 << 20
"""Size limit of one message, in bytes: modules are the largest."""
_LENGTH = struct.Struct("<Q")
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_Argument = bool | int | float | str | None


class DataError(ValueError):
    """A value or a message does not have the declared type."""


class _Codec(NamedTuple):
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    accepts: Callable[[Any], bool]
    """Tests a value before it is dumped, to find the member of a union to which it belongs."""


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
        raise DataError(f"this is no {_name(of)}: {error}") from error


def loads(data: bytes, of: Any) -> Any:
    """Read a value of a type; `dumps` is the inverse.

    Raises:
        DataError: the data is malformed, or is not of that type.
    """
    try:
        return _codec(of).load(json.loads(data.decode("ascii")))
    except DataError:
        raise
    # A dataclass may check its fields when it is made.
    except Exception as error:
        raise DataError(f"this is no {_name(of)}: {error}") from error


def framed(body: bytes) -> bytes:
    """Put the length of a message in front of it.

    Raises:
        DataError: it exceeds the size limit.
    """
    if len(body) > MOST_BYTES:
        raise DataError(f"a message of {len(body):,} bytes exceeds the limit of {MOST_BYTES:,}")
    return _LENGTH.pack(len(body)) + body


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


@cache
def _codec(of: Any) -> _Codec:
    if of in _PLAIN:
        return _PLAIN[of]
    if isinstance(of, type) and (is_dataclass(of) or hasattr(of, "_fields")):
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
    if origin is tuple:
        return _tuple(arguments)
    if origin in _SEQUENCES:
        return _sequence(*_SEQUENCES[origin], _codec(arguments[0]))
    if origin in _MAPPINGS:
        # A counter has a type of keys alone.
        return _mapping(_MAPPINGS[origin], _codec(arguments[0]), _codec((*arguments, int)[1]))
    if origin is not None and origin.__module__ == "numpy":
        return _array(origin, get_args(arguments[1])[0])
    return None


def _plain(
    dump: Callable[[Any], Any],
    accepts: Callable[[Any], bool],
    load: Callable[[Any], Any] | None,
    *kinds: type,
) -> _Codec:
    """Make the codec of a type that JSON has, or that is written as one; JSON gives one of `kinds`."""

    def checked_dump(value: Any) -> Any:
        # The first question is the usual case: the second takes microseconds for a number of NumPy.
        if load is None and type(value) in kinds:
            return value
        if not accepts(value):
            raise DataError(f"{value!r:.100} has another type")
        return dump(value)

    def checked_load(data: Any) -> Any:
        if type(data) not in kinds:
            raise DataError(f"{data!r:.100} has another type")
        return load(data) if load else data

    return _Codec(checked_dump, checked_load, accepts)


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind)


def _same(value: Any) -> Any:
    return value


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


_PLAIN: dict[Any, _Codec] = {
    type(None): _plain(_same, partial(_is, type(None)), None, type(None)),
    bool: _plain(_same, partial(_is, bool), None, bool),
    int: _plain(int, _is_integer, None, int),
    # A float may hold an integer, as in Python, and stays one.
    float: _plain(_to_number, _is_real, None, float, int),
    str: _plain(str, partial(_is, str), None, str),
    bytes: _plain(_to_text, partial(_is, bytes), _to_bytes, str),
    Path: _plain(str, partial(_is, Path), Path, str),
}
_PLAIN[None] = _PLAIN[type(None)]
_SEQUENCES: dict[Any, tuple[type, type]] = {
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
        raise DataError(f"{data!r:.100} is no list of the right length")
    return data  # type: ignore[return-value]


def _sequence(kind: type, make: type, item: _Codec) -> _Codec:
    # Samples of measurements: their bytes take a tenth of the time that their digits take.
    numbers = item is _PLAIN[float]

    def dump(value: Any) -> Any:
        if not accepts(value):
            raise DataError(f"{value!r:.100} has another type")
        if numbers and _FLOAT.issuperset(map(type, value)):
            return _to_text(array("d", value).tobytes())
        return [item.dump(each) for each in value]

    def accepts(value: Any) -> bool:
        return isinstance(value, kind) and not isinstance(value, str | bytes)

    def load(data: Any) -> Any:
        if numbers and type(data) is str:
            return make(array("d", _to_bytes(data)))
        return make(map(item.load, _listed(data)))

    return _Codec(dump, load, accepts)


def _tuple(arguments: tuple[Any, ...]) -> _Codec:
    if arguments[-1] is ...:
        return _sequence(tuple, tuple, _codec(arguments[0]))
    items = [_codec(each) for each in arguments]

    def dump(value: Any) -> Any:
        return [item.dump(each) for item, each in zip(items, value, strict=True)]

    def load(data: Any) -> Any:
        return tuple(item.load(each) for item, each in zip(items, _listed(data, len(items)), strict=True))

    return _Codec(dump, load, partial(_is, tuple))


def _mapping(make: type, key: _Codec, item: _Codec) -> _Codec:
    """Make the codec of a mapping: a list of pairs, since JSON's keys are texts alone."""

    def dump(value: Any) -> Any:
        return [[key.dump(name), item.dump(each)] for name, each in value.items()]

    def load(data: Any) -> Any:
        pairs = (_listed(pair, 2) for pair in _listed(data))
        return make({key.load(name): item.load(each) for name, each in pairs})

    return _Codec(dump, load, partial(_is, Mapping))


def _literal(values: tuple[Any, ...]) -> _Codec:
    kinds = {type(value) for value in values}
    if not kinds <= {str, int, bool, type(None)}:
        raise DataError(f"literals {values} cannot be sent by a sandboxed process")

    def check(value: Any) -> Any:
        if type(value) not in kinds or value not in values:
            raise DataError(f"{value!r:.100} is none of {values}")
        return value

    def accepts(value: Any) -> bool:
        return type(value) in kinds and value in values

    return _Codec(check, check, accepts)


def _union(kinds: tuple[Any, ...]) -> _Codec:
    """Make the codec of a union: None as such, and else a value after the number of its type."""
    members = [_codec(kind) for kind in kinds if kind is not type(None)]
    optional = type(None) in kinds

    def dump(value: Any) -> Any:
        if value is None and optional:
            return None
        for number, member in enumerate(members):
            if member.accepts(value):
                return [number, member.dump(value)]
        raise DataError(f"{value!r:.100} has none of the types {kinds}")

    def load(data: Any) -> Any:
        if data is None and optional:
            return None
        number, content = _listed(data, 2)
        if type(number) is not int or not 0 <= number < len(members):
            raise DataError(f"{number!r:.100} is no number of a type")
        return members[number].load(content)

    def accepts(value: Any) -> bool:
        return (value is None and optional) or any(member.accepts(value) for member in members)

    return _Codec(dump, load, accepts)


def _record(kind: Any) -> _Codec:
    """Make the codec of a dataclass or a named tuple: the list of its fields."""
    hints = get_type_hints(kind)
    # A named tuple lists the names of its fields.
    named = kind._fields if hasattr(kind, "_fields") else [each.name for each in fields(kind) if each.init]
    items = [(name, _codec(hints[name])) for name in named]

    def dump(value: Any) -> Any:
        if not accepts(value):
            raise DataError(f"{value!r:.100} is no {kind.__name__}")
        return [item.dump(getattr(value, name)) for name, item in items]

    def load(data: Any) -> Any:
        given = zip(items, _listed(data, len(items)), strict=True)
        return kind(**{name: item.load(each) for (name, item), each in given})

    def accepts(value: Any) -> bool:
        return type(value) is kind

    return _Codec(dump, load, accepts)


def _array(kind: Any, number: Any) -> _Codec:
    """Make the codec of a NumPy array of one type of numbers: its shape and its bytes."""
    numpy = sys.modules["numpy"]
    dtype = numpy.dtype(number)
    shape_codec = _tuple((int, ...))

    def dump(value: Any) -> Any:
        if not accepts(value):
            raise DataError(f"{value!r:.100} is no array of {dtype}")
        return [list(value.shape), _to_text(value.tobytes())]

    def load(data: Any) -> Any:
        shape, content = _listed(data, 2)
        return numpy.frombuffer(_to_bytes(content), dtype).reshape(shape_codec.load(shape)).copy()

    def accepts(value: Any) -> bool:
        return isinstance(value, kind) and value.dtype == dtype

    return _Codec(dump, load, accepts)
