"""Base classes of edits, and how recorded repairs are made.

An `Edit` changes a module. A `Rewrite` is an edit that the structure of a module allows for some operations:
it finds them (`match`), lists what may be done there (`enumerate`), and draws one of that (`draw`). All other
edits take any operation, and repair what no longer fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from planish.core import ScheduleError, Step, canonical_json, content_hash
from planish.levels.hlo.edits.editable import EditableModule, Source
from planish.levels.hlo.edits.resize import Resize

if TYPE_CHECKING:
    from numpy.random import Generator

T = TypeVar("T")

Repair = tuple[int, str, Resize]
"""Operand, the value that replaces it, and how that is resized."""


@dataclass(frozen=True)
class Edit(Step):
    """A change of a module.

    Attributes:
        exact: whether it leaves the answer of any module as it is, to rounding.
    """

    exact: ClassVar[bool] = False

    @cached_property
    def id_prefix(self) -> str:
        """The prefix of the ids of new operations."""
        # By content and not by number: the same edit makes the same ids in every patch, so others may refer
        # to them.
        return content_hash(canonical_json(self.to_json()))[:8]

    def apply(self, module: EditableModule) -> None:
        """Change a module, which is not verified here."""
        raise NotImplementedError


class Rewrite(Edit):
    """An edit that the structure of a module allows for some operations alone."""

    @classmethod
    def match(cls, module: EditableModule) -> Collection[Any]:
        """Find what the edit may be made of, among what the results need, in the order of the module.

        Returns:
            Operations by id; or a mapping of operations, values or results to what the edit asks of them.
        """
        raise NotImplementedError

    @classmethod
    def enumerate(cls, module: EditableModule) -> Sequence[Self]:
        """List edits of what matches, of each the mildest first; not all of them are legal."""
        raise NotImplementedError

    @classmethod
    def draw(cls, module: EditableModule, rng: Generator) -> Self:
        """Draw an edit; raises ScheduleError where none is possible."""
        return pick(cls.enumerate(module), rng)


@dataclass(frozen=True)
class GroupRewrite(Rewrite):
    """A rewrite of any number of operations at once.

    Args:
        ops: the operations; one or more, in the order in which they are rewritten.
    """

    ops: tuple[str, ...]

    def apply(self, module: EditableModule) -> None:
        """Rewrite the operations one after the other; raises ScheduleError as `Edit.apply` does."""
        if not self.ops:
            raise ScheduleError("no operation is named", "Name one or more.")
        for number, uid in enumerate(self.ops):
            module.require_target(uid)
            self.rewrite(module, uid, f"{self.id_prefix}.{number}")

    def rewrite(self, module: EditableModule, uid: str, id_prefix: str) -> None:
        """Rewrite an operation that may be changed; ids of new ones begin with the prefix."""
        raise NotImplementedError

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find the operations that may be rewritten, among what the results need, in their order."""
        raise NotImplementedError

    @classmethod
    def enumerate(cls, module: EditableModule) -> Sequence[Self]:
        """List one edit of all operations that match, if any does."""
        return [cls(found)] if (found := cls.match(module)) else []

    @classmethod
    def draw(cls, module: EditableModule, rng: Generator) -> Self:
        """Draw an edit of some of the operations that match; raises ScheduleError where none does."""
        return cls(pick_some(cls.match(module), rng))


class VariantRewrite(Rewrite):
    """A rewrite of one operation, in one of several degrees or kinds."""

    @classmethod
    def match(cls, module: EditableModule) -> Mapping[str, Any]:
        """Find the operations that may be rewritten, with what decides the variants of each."""
        raise NotImplementedError

    @classmethod
    def variants(cls, uid: str, found: Any) -> Sequence[Self]:
        """List the edits of an operation that matches, the mildest first."""
        raise NotImplementedError

    @classmethod
    def enumerate(cls, module: EditableModule) -> Sequence[Self]:
        """List all variants of all operations that match."""
        return [edit for uid, found in cls.match(module).items() for edit in cls.variants(uid, found)]

    @classmethod
    def draw(cls, module: EditableModule, rng: Generator) -> Self:
        """Draw an operation, then one of its variants; raises ScheduleError where there is none."""
        uid, found = pick(list(cls.match(module).items()), rng)
        return pick(cls.variants(uid, found), rng)


def where_legal(uids: Iterable[str], read: Callable[[str], T]) -> dict[str, T]:
    """Map operations to what is read of each, without those where it raises ScheduleError."""
    found = dict[str, T]()
    for uid in uids:
        with suppress(ScheduleError):
            found[uid] = read(uid)
    return found


def pick(items: Sequence[T], rng: Generator) -> T:
    """Choose one; raises ScheduleError where there is none."""
    if not items:
        raise ScheduleError("there is nothing to choose from")
    return items[int(rng.integers(len(items)))]


def pick_some(items: Sequence[str], rng: Generator) -> tuple[str, ...]:
    """Choose some, at least one; any share is as likely as another.

    Raises:
        ScheduleError: there is none.
    """
    share = rng.random()
    return tuple(item for item in items if rng.random() < share) or (pick(items, rng),)


def repair(module: EditableModule, uid: str, repairs: tuple[Repair, ...], id_prefix: str) -> None:
    """Set operands to the recorded values."""
    info = module.infos[uid]
    for index, value, resize in repairs:
        if index in info.init_operands:
            raise ScheduleError(f"operand {index} of operation '{uid}' ({info.name}) is its init value")
        module.set_operand(uid, index, module.resized((value, resize), uid, f"{id_prefix}.{index}"))


def replace_uses(
    module: EditableModule,
    uid: str,
    values: tuple[Source, ...],
    users: list[list[tuple[str, int]]],
    id_prefix: str,
) -> None:
    """Set the users of each result to the recorded value; it is resized just before the operation."""
    for number, uses in enumerate(users):
        if not uses:
            continue
        if number >= len(values):
            raise ScheduleError(f"nothing is given for the users of '{uid}#{number}'")
        value = module.resized(values[number], uid, f"{id_prefix}.{number}")
        for user, index in uses:
            module.set_operand(user, index, value)
