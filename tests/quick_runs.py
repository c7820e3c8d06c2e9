"""Runs that tests need not wait for: short comparisons, and workers that start at once.

As a program, it is the planish command with such runs; its first argument is the level.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

from planish.measure import Plan
from planish.measure.executors import LocalExecutor
from planish.tuning import budget, validate

SetAttribute = Callable[[object, str, object], None]


def shorten_comparisons(setattr_: SetAttribute) -> None:
    """Have searches and validations compare in one process, three rounds, however undecided that leaves them.

    Args:
        setattr_: of a `pytest.MonkeyPatch`, which undoes it.
    """
    for module in (budget, validate):
        setattr_(module, "PLAN", Plan(processes=1, most=1))


TIMED = {
    "graph": "planish.levels.graph.task_setup",
    "hlo": "planish.levels.hlo.evaluator",
    "llvm": "planish.levels.llvm.task_setup",
}
"""Level to the module that says how long a candidate is timed: for seconds where the machine is busy."""


def shorten_timing(setattr_: SetAttribute, *levels: str) -> None:
    """Have candidates of levels timed for some milliseconds; `loops` does so for users, too.

    Args:
        setattr_: of a `pytest.MonkeyPatch`, which undoes it.
        levels: those of `TIMED` by default; one that is not installed is left out.
    """
    for level in levels or TIMED:
        with suppress(ImportError):
            module = import_module(TIMED[level])
            for name in ("TIMING", "LAST_TIMING"):
                short = replace(vars(module)[name], budget_s=5e-3, block_s=5e-4, fewest=3, most=5)
                setattr_(module, name, short)


def fork_workers() -> None:
    """Have this command fork its workers, as `ForkedExecutor` does: it evaluates nothing itself."""
    if "serve" not in sys.argv:  # its threads may hold what a child would wait for
        setattr(LocalExecutor, "_forks", True)  # noqa: B010  (it is not ours)


if __name__ == "__main__":
    from planish.cli.script import main

    level = sys.argv.pop(1)
    if level in TIMED:
        shorten_timing(setattr, level)
    shorten_comparisons(setattr)
    budget.LEAST_S = 600.0  # a comparison is complete, however slow the machine is
    fork_workers()
    main()
