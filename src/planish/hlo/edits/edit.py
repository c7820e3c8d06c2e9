"""Base class of edits, and how their recorded repairs are made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from planish.core import ScheduleError, Step, canonical_json, content_hash
from planish.hlo.edits import exclusions
from planish.hlo.edits.draft import Draft, Source
from planish.hlo.edits.resize import Resize

Repair = tuple[int, str, Resize]
"""Which operand takes which value, resized how."""


@dataclass(frozen=True)
class Edit(Step):
    """A change of a module."""

    @cached_property
    def mark(self) -> str:
        """What the ids of new operations begin with."""
        # By content and not by number: the same edit makes the same ids in every patch, so others may refer
        # to them.
        return content_hash(canonical_json(self.to_json()))[:8]

    def apply(self, draft: Draft) -> None:
        """Change a draft, which is not verified here.

        Raises:
            ScheduleError: the edit is illegal here; the draft is of no use then.
        """
        raise NotImplementedError


def repair(draft: Draft, uid: str, name: str, repairs: tuple[Repair, ...], mark: str) -> None:
    """Let operands take the recorded values."""
    for index, value, resize in repairs:
        if index in exclusions.starts(name, len(draft.mirror.facts[uid].operands)):
            raise ScheduleError(f"operand {index} of operation '{uid}' ({name}) is what it starts from")
        draft.set_operand(uid, index, draft.resized((value, resize), uid, f"{mark}.{index}"))


def replace_uses(
    draft: Draft, uid: str, values: tuple[Source, ...], users: list[list[tuple[str, int]]], mark: str
) -> None:
    """Let the users of each result take the recorded value; it is resized just before the operation."""
    for number, uses in enumerate(users):
        if not uses:
            continue
        if number >= len(values):
            raise ScheduleError(f"nothing is given for the users of '{uid}#{number}'")
        value = draft.resized(values[number], uid, f"{mark}.{number}")
        for user, index in uses:
            draft.set_operand(user, index, value)
