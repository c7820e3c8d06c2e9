"""Runs that a figure shows: checked, and named for its legend."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import ArgumentError, PlanishError
from planish.core.arguments import wrong_argument
from planish.core.wording import title
from planish.tuning.result import Result

Results = Result | Sequence[Result]

_NAME_CHARACTERS = 40


class NothingToDrawError(PlanishError):
    """A run holds nothing of what a figure shows."""


def results_of(results: Results, function: str) -> Sequence[Result]:
    """Return the results as a list, of one level and of the same leading objective.

    Args:
        results: what the user passed, which may be anything.
        function: the public function that it was passed to.

    Raises:
        ArgumentError: there is none, or something else is among them.
        PlanishError: they cannot be drawn together.
    """
    found: Sequence[object] = [results] if isinstance(results, Result) else _listed(results, function)
    runs = [each for each in found if isinstance(each, Result)]
    if len(runs) < len(found):
        wrong = next(each for each in found if not isinstance(each, Result))
        raise _no_result(wrong, function)
    if not runs:
        raise ArgumentError(f"plot.{function} has no run to show: the list is empty", _HINT)
    check_comparable(runs)
    return runs


def check_comparable(runs: Sequence[Result]) -> None:
    """Check that runs have one level and the same leading objective.

    Raises:
        PlanishError: two differ.
    """
    first = runs[0]
    for other in runs[1:]:
        if other.stored.level != first.stored.level:
            levels = f"'{first.stored.level}' and '{other.stored.level}'"
            what = f"runs {first.run.id} and {other.run.id} are of different levels, {levels}"
            raise PlanishError(what, "Compare runs of one level.")
        if other.objective != first.objective:
            objectives = f"{first.objective.name} and {other.objective.name}"
            what = f"runs {first.run.id} and {other.run.id} have different objectives, {objectives}"
            raise PlanishError(what, "Compare runs whose first objective is the same.")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Check that an argument has one of its values.

    Raises:
        ArgumentError: it has another one.
    """
    if value not in choices:
        raise wrong_argument(name, value, " or ".join(f"'{each}'" for each in choices))


_HINT = "planish.tune returns a Result, and planish.load_run reads one from the store."


def _listed(results: object, function: str) -> Sequence[object]:
    if isinstance(results, (list, tuple)):
        return results
    raise _no_result(results, function)


def _no_result(thing: object, function: str) -> ArgumentError:
    name = type(thing).__name__
    kind = f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    return ArgumentError(f"plot.{function} takes a Result or a list of them, not {kind}", _HINT)


def one_result(result: Result, function: str) -> Result:
    """Return the only result; raises as `results_of` does."""
    found = results_of(result, function)
    if len(found) > 1:
        raise ArgumentError(f"plot.{function} shows one run, not {len(found)}", "Call it once for each.")
    return found[0]


def run_names(runs: Sequence[Result]) -> list[str]:
    """Name runs by their ids and searchers, and by their programs where these differ."""
    mixed = len({each.stored.program for each in runs}) > 1
    return [
        " · ".join((each.run.id, each.run.searcher, *([_cut(title(each.stored.program))] if mixed else [])))
        for each in runs
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_CHARACTERS else f"{text[: _NAME_CHARACTERS - 1]}…"
