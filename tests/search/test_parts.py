"""Searching the parts of a program: settings that join them, then a transformation for each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    Failed,
    HasParts,
    Measured,
    Objective,
    PartGroup,
    Searcher,
    Space,
    Step,
    Trial,
)
from planish.search.parts import Parts, SettingSearch

SIZE = Objective("size", exact=True)
CALLERS = {"a": {"x"}, "b": {"y"}, "x": set[str](), "y": set[str]()}


@dataclass(frozen=True)
class Made(Step):
    """The settings and transformations of a candidate, as JSON."""

    text: str


class Program(Space):
    """Functions that are called: `a` by `x`, `b` by `y`; transformations save what a table says."""

    def __init__(self, callers: Mapping[str, Collection[str]] = CALLERS) -> None:
        self.callers = callers

    def start(self) -> Candidate:
        return self.combined({}, {})

    def combined(
        self, settings: Mapping[str, str], transformations: Mapping[str, Sequence[str]]
    ) -> Candidate:
        given = {name: list(parts) for name, parts in transformations.items()}
        return Candidate((Made(json.dumps([dict(settings), given], sort_keys=True)),))

    def transformations(self) -> Sequence[tuple[str, float]]:
        return [("usual", 1.0), ("good", 0.3), ("better", 0.2)]

    def draw(self, random: Random) -> str:
        return f"drawn {random.randrange(4)}"

    def groups(self, costs: Mapping[str, float]) -> Sequence[PartGroup]:
        return [PartGroup((name,), cost / 100) for name, cost in costs.items()]

    def changes(self, settings: Mapping[str, str], costs: Mapping[str, float]) -> Sequence[tuple[str, str]]:
        return [(name, "apart") for name in ("a", "b") if name not in settings and name not in costs]

    def changed_by(self, part: str, present: Collection[str]) -> frozenset[str]:
        del present
        return frozenset({part, *self.callers[part]})

    def below(self, parts: Iterable[str]) -> frozenset[str]:
        callers = self.callers.items()
        return frozenset(callee for callee, names in callers if not {*parts}.isdisjoint(names))


def apart(callers: Mapping[str, Collection[str]] = CALLERS, **more: float) -> SettingSearch:
    return SettingSearch(Program(callers), {"x": 50, "y": 50, **more})


BOTH = (("a", "apart"), ("b", "apart"))


def test_changes_whose_parts_are_apart_are_tried_in_one_candidate() -> None:
    search = apart()
    assert search.next() == (BOTH, BOTH)
    search.tell(BOTH, {"x": 20, "y": 45, "a": 20, "b": 20})
    assert (search.settings, search.total, search.is_confirmed) == (BOTH[:1], 90, False)
    assert search.next() == ((), BOTH[:1])
    search.tell((), {"x": 20, "y": 50, "a": 20})
    assert (search.settings, search.total, search.is_confirmed) == (BOTH[:1], 90, True)


def test_what_is_worse_when_it_is_combined_is_tried_alone() -> None:
    search = apart()
    assert search.next() == (BOTH, BOTH)
    search.tell(BOTH, {"x": 20, "y": 20, "a": 20, "b": 20})
    assert search.next() == ((), BOTH)
    assert search.next() is None
    search.tell((), {"x": 60, "y": 50, "a": 20, "b": 20})
    assert (search.settings, search.total) == ((), 100)
    assert search.next() == (BOTH[:1], BOTH[:1])
    search.tell(BOTH[:1], {"x": 20, "y": 50, "a": 20})
    assert (search.settings, search.total, search.is_confirmed) == (BOTH[:1], 90, True)
    assert search.next() == (BOTH[1:], BOTH)
    search.tell(BOTH[1:], {"x": 60, "y": 20, "a": 20, "b": 20})
    assert (search.settings, search.total) == (BOTH[:1], 90)


def test_what_fails_together_is_tried_alone_and_then_given_up() -> None:
    search = apart()
    assert search.next() == (BOTH, BOTH)
    search.tell(BOTH, None)
    for each in BOTH:
        assert search.next() == ((each,), (each,))
        search.tell((each,), None)
    assert search.next() is None


def test_what_grows_below_is_counted() -> None:
    search = apart({**CALLERS, "below": {"x"}}, below=10)
    assert search.next() == (BOTH, BOTH)
    search.tell(BOTH, {"x": 20, "y": 20, "a": 20, "b": 20, "below": 40})
    assert search.settings == BOTH[1:]


COSTS = {"usual": 50.0, "good": 45.0, "better": 48.0, "drawn 1": 40.0}


def measured(candidate: Candidate, seconds: float = 0.1) -> Trial:
    """Measure a candidate: with `a` apart `x` is smaller; `better` is good for `y` alone."""
    (step,) = candidate.steps
    assert isinstance(step, Made)
    settings, given = json.loads(step.text)
    of = {part: name for name, parts in given.items() for part in parts}
    parts = {name: COSTS.get(of.get(name, "usual"), 60.0) for name in ("x", "y")}
    if of.get("y") == "better":
        parts["y"] = 30.0
    if "b" in settings:
        return Trial(candidate, Failed("transform", "refused"), seconds={"transform": seconds})
    if "a" in settings:
        parts = {**parts, "x": parts["x"] - 20, "a": 5.0}
    total = sum(parts.values())
    # Of a group, the parts that were tried are reported, and no others.
    told = {name: cost for name, cost in parts.items() if name in of} if len(given) == 1 else parts
    return Trial(candidate, Measured({"size": total}, parts=told), seconds={"transform": seconds})


def driven(searcher: Searcher, trials: int, at_once: int) -> list[Trial]:
    found: list[Trial] = []
    while len(found) < trials and (asked := searcher.ask(at_once)):
        answers = [measured(candidate) for candidate in asked]
        searcher.tell(answers[::-1])
        found += answers
    return found[:trials]


def test_the_best_of_each_part_are_combined() -> None:
    program = Program()
    assert isinstance(program, HasParts)
    searcher = Parts(program, [SIZE], 0)
    trials = driven(searcher, 40, 3)
    (concluded,) = searcher.conclude()
    (step,) = concluded.steps
    assert isinstance(step, Made)
    settings, given = json.loads(step.text)
    assert settings == {"a": "apart"}
    assert given["better"] == ["y"]
    assert given["drawn 1"] == ["x"]
    best = min(trial.cost(SIZE) or 1e9 for trial in trials)
    assert (measured(concluded).cost(SIZE) or 0) <= best


def test_candidates_do_not_depend_on_how_many_are_asked_for() -> None:
    one, many = (driven(Parts(Program(), [SIZE], 5), 60, count) for count in (1, 7))
    assert [trial.candidate for trial in one] == [trial.candidate for trial in many]
    other = driven(Parts(Program(), [SIZE], 6), 60, 7)
    assert [trial.candidate for trial in one] != [trial.candidate for trial in other]


def test_results_of_an_unfinished_round_are_concluded_too() -> None:
    searcher = Parts(Program(), [SIZE], 0)
    assert searcher.conclude() == []
    driven(searcher, 6, 1)
    assert searcher.conclusion_s == 0.1
    assert len(searcher.conclude()) == 1


def test_settings_take_their_share_of_the_time() -> None:
    few = Parts(Program(), [SIZE], 0, replace(EMPTY_CONTEXT, seconds=0.1))
    (start,) = driven(few, 1, 1)
    assert start.candidate == Program().start()
    settings = [json.loads(str(getattr(t.candidate.steps[0], "text")))[0] for t in driven(few, 9, 1)]  # noqa: B009
    assert settings == [{}] * 9


def test_where_the_start_fails_the_search_is_at_its_end() -> None:
    searcher = Parts(Program(), [SIZE], 0)
    (start,) = searcher.ask(4)
    searcher.tell([Trial(start, Failed("transform", "refused"))])
    assert searcher.ask(4) == []
    assert searcher.conclude() == []
