"""Steps and candidates: a candidate is a frozen, replayable sequence of transformations."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

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
_KNOWN = "_known"  # where a stored candidate keeps the classes of its steps until they are made


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
    """A sequence of steps from the original program; the empty one is the program as it is.

    One that comes from a store may have its text alone at first: its steps are made when they are asked for.
    """

    steps: tuple[Step, ...] = field(default_factory=tuple)

    if not TYPE_CHECKING:  # it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            """Make the steps of a stored candidate; they are an attribute from then on."""
            known = self.__dict__.get(_KNOWN)
            if name != "steps" or known is None:
                raise AttributeError(f"a candidate has no {name}", name=name, obj=self)
            steps = tuple([step_from_json(item, known) for item in json.loads(self.text)])
            self.__dict__["steps"] = steps
            del self.__dict__[_KNOWN]
            return steps

    @cached_property
    def text(self) -> str:
        """The canonical JSON of the steps."""
        return canonical_json([step.to_json() for step in self.steps])

    @cached_property
    def hash(self) -> str:
        """The content hash of the canonical text, which is the candidate's identity in the store."""
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
    """Read a candidate back whose text and hash are at hand.

    Its steps, which take most of the time and of the memory, are not made before they are asked for.

    Args:
        data: the JSON list of its steps.
        text: what the list was read from, canonical when it was written.
        name: the text's content hash.
        known: step name to class, as the level lists them.

    Raises:
        ProgramError: as `step_from_json` does.
    """
    for step, options in data:
        if step not in known or options.keys() != _options(known[step]):
            return candidate_from_json(data, known)  # with a new option it has another text now
    found = Candidate.__new__(Candidate)
    found.__dict__.update({"text": text, "hash": name, _KNOWN: known})
    return found


@cache
def _options(step: type[Step]) -> frozenset[str]:
    return frozenset(f.name for f in fields(step))
