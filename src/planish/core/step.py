"""Steps and candidates: a candidate is a frozen, replayable sequence of transformations."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from planish.core.errors import ProgramError, did_you_mean
from planish.core.hashing import canonical_json, content_hash


@dataclass(frozen=True)
class Step:
    """One transformation; a subclass is a frozen dataclass whose fields are its options.

    Fields hold JSON values, with tuples for lists. The class's name is the step's name.
    """

    def to_json(self) -> list[Any]:
        """Return `[name, {option: value}]`."""
        return [type(self).__name__, {name: getattr(self, name) for name in _options(type(self))}]

    def __str__(self) -> str:
        options = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return f"{type(self).__name__}({options})"


_LISTS = (list, tuple)
_BETWEEN = "}],["  # what stands between two steps in a candidate's text
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


_LINE_MOST = 1000


def steps_from_text(text: str, known: Mapping[str, type[Step]]) -> tuple[Step, ...]:
    """Read steps from text: one a line, as `Split(axis='m', factor=16)`; empty lines are skipped.

    Args:
        text: what is not trusted; nothing in it is executed.
        known: step name to class, as the level lists them.

    Raises:
        ProgramError: a line is not a step, or its name or an option is unknown.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return tuple(step_from_json(_call(number, line), known) for number, line in lines if line)


def _call(number: int, line: str) -> list[Any]:
    wrong = ProgramError(f"line {number}: expected a step, got '{line[:100]}'", "Write NAME(option=value).")
    if len(line) > _LINE_MOST:
        raise wrong
    try:
        match ast.parse(line, mode="eval").body:
            case ast.Call(ast.Name(name), [], options):
                found = [name, {str(each.arg): ast.literal_eval(each.value) for each in options}]
                json.dumps(found, allow_nan=False)  # plain values alone
                return found
            case _:
                raise wrong
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise wrong from error


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
        """Return this candidate with steps appended."""
        return Candidate(self.steps + steps)

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "(unchanged)"


def candidate_from_json(data: Sequence[Sequence[Any]], known: Mapping[str, type[Step]]) -> Candidate:
    """Read a candidate back from the JSON list of its steps; raises as `step_from_json` does."""
    return Candidate(tuple(step_from_json(item, known) for item in data))


def stored_candidate(text: str, name: str, known: Mapping[str, type[Step]], seen: set[str]) -> Candidate:
    """Read a candidate back whose text and hash are at hand.

    Its steps, which take most of the time and of the memory, are not made before they are asked for.

    Args:
        text: the JSON list of its steps, canonical when it was written.
        name: the text's content hash.
        known: step name to class, as the level lists them.
        seen: the texts of steps that were found to be as the level has them; what is new is added. A run's
            candidates have most of their steps in common.

    Raises:
        ProgramError: as `step_from_json` does.
        ValueError: the text is not JSON.
    """
    # The text of a candidate is [[name,{...}],[name,{...}]]; this is what is between its ends.
    steps = text[2:-3].split(_BETWEEN)
    if not (seen.issuperset(steps) or _are_current(steps, known, seen)) or text != f"[[{text[2:-3]}}}]]":
        return candidate_from_json(json.loads(text), known)
    found = Candidate.__new__(Candidate)
    found.__dict__.update({"text": text, "hash": name, _KNOWN: known})
    return found


def _are_current(steps: Sequence[str], known: Mapping[str, type[Step]], seen: set[str]) -> bool:
    """Return whether texts are those of current steps: with a new option a step has another text."""
    for text in steps:
        if text not in seen:
            try:
                step, options = json.loads(f"[{text}}}]")
            except ValueError:  # no steps at all, or a text was cut in its midst
                return False
            if step not in known or options.keys() != _options(known[step]).keys():
                return False
            seen.add(text)
    return True


@cache
def _options(step: type[Step]) -> Mapping[str, None]:
    """Return the names of a step's options, in their order."""
    return dict.fromkeys(f.name for f in fields(step))
