"""A level whose programs are lattices: a space with a known optimum; trials may take long, or fail.

A program is `lattice SIZES`, as in `lattice 6x4x4`; the options `pause` (seconds that a trial takes) and
`fail` (nothing can be built) become part of it. Run as a program, this module is the
planish command with this level in the place of all others, which tells often how it goes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.core import (
    NO_ANALYSIS,
    Candidate,
    Failed,
    Level,
    Measured,
    Objective,
    Outcome,
    Program,
    Space,
    StageClock,
    Step,
    Target,
    TargetError,
    Task,
    registry,
    unknown,
)
from planish.measure import Plan
from planish.testing.synthetic import Lattice, Set
from quick_runs import fork_workers, shorten_comparisons

OPTIONS = ("pause", "fail")
GFLOP = 1e-3
BASELINE = Candidate((Set(0, 1),))


@dataclass(frozen=True)
class Grid:
    """A lattice's sizes, the seconds that a trial takes, and whether all fail."""

    sizes: tuple[int, ...]
    pause: float = 0.0
    fail: bool = False
    level: str = "lattice"

    @property
    def text(self) -> str:
        return f"lattice {'x'.join(map(str, self.sizes))} {self.pause} {self.fail}"

    @property
    def space(self) -> Lattice:
        return Lattice(self.sizes)


@dataclass(frozen=True)
class Measuring:
    """Makes an evaluator, and is one; what stands at the forbidden position cannot be built."""

    grid: Grid
    final: bool
    forbidden: tuple[int, ...] = ()

    def __call__(self) -> Measuring:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        with clock("build"):
            if self.grid.fail or self.grid.space.position(candidate) == self.forbidden:
                return Failed("build", "refused", "as asked")
        with clock("run"):
            time.sleep(self.grid.pause)
        outcome = self.grid.space.outcome(candidate)
        if not isinstance(outcome, Measured):
            return outcome
        value = outcome.values["time_s"]
        return Measured({"time_s": value, "gflops": GFLOP / value}, {"time_s": (value, value * 1.01)})


class LatticeLevel(Level[Any]):
    """The level."""

    name = "lattice"
    version = "1"
    objectives: Mapping[str, Objective] = {
        "time_s": Objective("time_s", "s"),
        "gflops": Objective("gflops", "GFLOPS", "up"),
    }
    spaces = ("knobs",)
    searchers = ("random", "genetic")

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Set": Set}

    def accepts(self, source: str) -> bool:
        return source.startswith("lattice")

    def load(self, source: str, options: Mapping[str, str]) -> Grid:
        for name in options:
            if name not in OPTIONS:
                raise unknown("level 'lattice' has no option", name, OPTIONS)
        _, sizes, *rest = source.split()
        grid = Grid(tuple(map(int, sizes.split("x"))))
        if rest:
            grid = replace(grid, pause=float(rest[0]), fail=rest[1] == "True")
        return replace(
            grid, pause=float(options.get("pause", grid.pause)), fail="fail" in options or grid.fail
        )

    def read(self, text: str, target: Target) -> Grid:
        del target
        return self.load(text, {})

    def target(self, program: Program, cores: int) -> Target:
        del program
        if cores > 2:
            raise TargetError(f"{cores} cores requested, there are 2", "Use cores=2 at most.")
        return Target("abacus", frozenset({"beads"}), cores, {"carver": "1.0"})

    def runs_user_code(self, task: Task) -> bool:
        del task
        return False

    def space(self, task: Task, name: str) -> Space:
        if name != "knobs":
            raise unknown("level 'lattice' has no space", name, self.spaces)
        return _grid(task.program).space

    def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
        return Measuring(_grid(task.program), final)

    def baseline(self, task: Task) -> Candidate:
        del task
        return BASELINE

    def describe(
        self, task: Task, candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        del analysis
        return {"place": str(_grid(task.program).space.position(candidate))}

    def export(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        del task
        path.mkdir(parents=True, exist_ok=True)
        file = path / "place.json"
        file.write_text(candidate.text)
        return [file]


def _grid(program: Program) -> Grid:
    assert isinstance(program, Grid)
    return program


def install(
    put: Callable[[object, str, Any], None] = setattr, level: type[LatticeLevel] = LatticeLevel
) -> None:
    """Offer this level alone; its values have no noise, so one process is enough to search and compare."""
    load, names = registry.load, registry.names

    def load_ours(group: str, name: str) -> Callable[..., Any]:
        if group != "planish.levels":
            return load(group, name)
        if name != "lattice":
            raise unknown("unknown level", name, ["lattice"])
        return level

    def names_ours(group: str) -> list[str]:
        return ["lattice"] if group == "planish.levels" else names(group)

    put(registry, "load", load_ours)
    put(registry, "names", names_ours)
    put(os, "sched_getaffinity", lambda _: {0})  # pyright: ignore[reportUnknownLambdaType]
    shorten_comparisons(put)
    put(import_module("planish.tuning.compare"), "Plan", partial(Plan, processes=1))


if __name__ == "__main__":
    from cli import lattices  # not __main__: workers must find the evaluator
    from planish.cli.script import main
    from planish.tuning import progress

    lattices.install()
    fork_workers()
    progress.LINE_S = 0.1
    main()
