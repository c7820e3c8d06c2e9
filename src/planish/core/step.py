"""Steps and candidates: a candidate is a frozen, replayable sequence of transformations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from planish.core.canonical import canonical_json, content_hash
from planish.core.errors import ProgramError, did_you_mean


@dataclass(frozen=True)
class Step:
    """One transformation; a subclass is a frozen dataclass whose fields are its options.

    Fields hold JSON values, with tuples for lists. The class's name is the step's name.
    """

    def to_json(self) -> list[Any]:
        """Give `[name, {option: value}]`."""
        return [type(self).__name__, {f.name: getattr(self, f.name) for f in fields(self)}]

    def __str__(self) -> str:
        options = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return f"{type(self).__name__}({options})"


_LISTS = (list, tuple)


def _frozen(values: Sequence[Any]) -> tuple[Any, ...]:
    # Called only for lists: a store decodes a hundred thousand options at once.
    return tuple([_frozen(v) if isinstance(v, _LISTS) else v for v in values])


def step_from_json(data: Sequence[Any], known: Mapping[str, type[Step]]) -> Step:
    """Read a step back.

    Args:
        data: `[name, {option: value}]`.
        known: step name to class, as the level lists them.

    Raises:
        ProgramError: the name or an option is unknown.
    """
    name, options = data
    if name not in known:
        raise ProgramError(f"unknown step '{name}'", did_you_mean(name, known))
    try:
        return known[name](**{k: _frozen(v) if isinstance(v, _LISTS) else v for k, v in options.items()})
    except TypeError as error:
        raise ProgramError(f"step '{name}' does not take these options: {error}") from error


@dataclass(frozen=True)
class Candidate:
    """A sequence of steps from the original program; the empty one is the program as it is."""

    steps: tuple[Step, ...] = ()

    @cached_property
    def text(self) -> str:
        """The canonical JSON of the steps."""
        return canonical_json([step.to_json() for step in self.steps])

    @cached_property
    def hash(self) -> str:
        """The content hash of the canonical text: the candidate's identity in the store."""
        return content_hash(self.text)

    def then(self, *steps: Step) -> "Candidate":
        """Give this candidate with more steps at its end."""
        return Candidate(self.steps + steps)

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "(unchanged)"


def candidate_from_json(data: Sequence[Sequence[Any]], known: Mapping[str, type[Step]]) -> Candidate:
    """Read a candidate back from the JSON list of its steps; raises as `step_from_json` does."""
    return Candidate(tuple(step_from_json(item, known) for item in data))


def stored_candidate(
    data: Sequence[Sequence[Any]], text: str, name: str, known: Mapping[str, type[Step]]
) -> Candidate:
    """Read a candidate back whose text and hash are at hand; both need not be made again then.

    Args:
        data: the JSON list of its steps.
        text: what the list was read from, canonical when it was written.
        name: the text's content hash.
        known: step name to class, as the level lists them.

    Raises:
        ProgramError: as `step_from_json` does.
    """
    steps = [step_from_json(item, known) for item in data]
    found = Candidate(tuple(steps))
    # A step that has got a new option since has another text now.
    if all(len(vars(step)) == len(item[1]) for step, item in zip(steps, data, strict=True)):
        found.__dict__.update(text=text, hash=name)
    return found
