"""Constraint of a user on candidates, and the key by which a run with the same one is found again.

A run is resumed by the same call, so two constraints have to be compared across processes. The key is a hash
of what decides the answer of a function: its code, its constants and defaults, and the values of the
variables that it reads from around it, with the functions among them. Where one of these has no text of its
own, such as an array or an open file, the key is drawn at random: each call then begins a run of its own,
which takes from the store what other runs have measured, so nothing is measured twice.
"""

from __future__ import annotations

import dis
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from planish.core import Candidate, content_hash

Constraint = Callable[[Candidate], object]
"""Returns whether a candidate may be measured."""
WHERE = "where"
"""The option of a run that holds the key of its constraint."""
_LENGTH = 16


class _UnknownError(Exception):
    """A value that has no text of its own."""


def constraint_key(where: Constraint) -> str:
    """Return the key of a constraint: equal functions that read equal values have equal keys."""
    try:
        return content_hash("\n".join(_texts(where, set())))[:_LENGTH]
    except _UnknownError:
        return secrets.token_hex(_LENGTH // 2)


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield texts that decide what a value is; a function that calls itself is described once."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            yield repr(value)
        case type() | ModuleType() | BuiltinFunctionType():
            yield f"{getattr(value, '__module__', '')}.{value.__name__}"
        case tuple() | list() | set() | frozenset() | Mapping():
            yield from _container(value, seen)
        case CodeType():
            yield repr((value.co_code, value.co_names, value.co_varnames, value.co_freevars))
            yield from _texts(value.co_consts, seen)
        case _ if id(value) in seen:
            yield "seen"
        case _:
            seen.add(id(value))
            yield from _callable(value, seen)


def _container(value: Any, seen: set[int]) -> Iterator[str]:
    """Describe a container by its items, in an order that does not depend on their hashes."""
    yield type(value).__name__
    items = value.items() if isinstance(value, Mapping) else value
    texts = ["\n".join(_texts(each, seen)) for each in items]
    yield from texts if isinstance(value, tuple | list) else sorted(texts)


def _callable(value: Any, seen: set[int]) -> Iterator[str]:
    match value:
        case FunctionType():
            yield from _function(value, seen)
        case partial():
            yield from _texts(("partial", value.func, value.args, value.keywords), seen)
        case MethodType():
            yield from _texts((value.__func__, value.__self__), seen)
        case _:
            yield from _object(value, seen)


def _function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    yield from _texts(function.__code__, seen)
    yield from _texts((function.__defaults__, function.__kwdefaults__), seen)
    for cell in function.__closure__ or ():
        yield from _texts(cell.cell_contents, seen)
    for name in sorted(set(_globals_of(function.__code__))):
        if name in function.__globals__:
            yield name
            yield from _texts(function.__globals__[name], seen)


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the names of the global variables that a function reads, in the functions within it too."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _object(value: object, seen: set[int]) -> Iterator[str]:
    """Describe an instance of a class by its attributes, and by its `__call__`."""
    if not hasattr(value, "__dict__"):
        raise _UnknownError
    yield f"{type(value).__module__}.{type(value).__qualname__}"
    yield from _texts(vars(value), seen)
    if isinstance(call := getattr(type(value), "__call__", None), FunctionType):  # noqa: B004  (its code is wanted)
        yield from _texts(call, seen)
