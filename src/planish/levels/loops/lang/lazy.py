"""Values that are computed on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class lazy(Generic[Owner, Value]):  # noqa: N801 (used like `property`)
    """A property that is computed on first use and kept, as `functools.cached_property` is.

    That one takes a lock in Python 3.11, which is a good part of the cost where values are small and many.
    Two threads that ask for the first time at once may both compute it.
    """

    def __init__(self, compute: Callable[[Owner], Value]) -> None:
        self._compute: Callable[[Any], Value] = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Owner, owner: type[Owner]) -> Value:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
