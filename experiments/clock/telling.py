"""A program made faster, as a line of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from planish.core import Candidate, Measured, PlanishError, Ratio
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.hot.lists import USUAL, pipeline
from planish.levels.llvm.level import LlvmLevel
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings

HEAD = (
    "| program | -O3, ms | times faster | 95 % interval | verdict | lists | hot functions, and how |\n"
    "|---|--:|--:|---|---|--:|---|"
)
_SHOWN = 6
_SETTINGS = Settings(objectives=("time_s",), space="functions", finalists=1)


def tuned(name: str, source: Path, seconds: float, options: Mapping[str, str]) -> list[float]:
    """Make a program faster, print its line, and give how many times; nothing where that failed."""
    level = LlvmLevel()
    # A store of its own: what is found for one program is tried first on the next.
    with TemporaryDirectory() as folder, open_store(Path(folder) / "runs.db") as store:
        try:
            budget, program = Budget(seconds=seconds), level.load(str(source), options)
            found = tune_program(level, program, budget=budget, settings=_SETTINGS, store=store)
        except PlanishError as error:
            print(f"| {name} | | | | {error} | | |", flush=True)
            return []
        trials = found.stored_trials
    if not found.comparison:
        print(f"| {name} | | | | undecided: {'; '.join(found.notes)} | {len(trials)} | |", flush=True)
        return []
    unchanged = level.baseline(found.task)
    best = next((each for each in found.finalists if each.candidate != unchanged), None)
    gain = best.lead.gain if best else Ratio(1.0, 1.0, 1.0)
    (parts,) = (
        t.outcome.parts for t in trials if t.candidate == unchanged and isinstance(t.outcome, Measured)
    )
    cells = (
        name,
        f"{found.comparison.baseline.lead.median * 1e3:,.1f}",
        f"{gain.value:.3f}",
        f"{gain.low:.3f} to {gain.high:.3f}",
        best.lead.verdict if best else "nothing found",
        str(len(trials)),
        _functions(parts, best.candidate if best else unchanged),
    )
    print(f"| {' | '.join(cells)} |", flush=True)
    # What is not better is not kept: the program is then that of -O3.
    return [gain.value if best and best.lead.verdict == "better" else 1.0]


def _functions(parts: Mapping[str, float], candidate: Candidate) -> str:
    lists = {each.functions[0]: each.pipeline for each in candidate.steps if isinstance(each, FunctionPasses)}
    shown = list(lists) or list(parts)[:2]
    total = sum(parts.values())
    return "; ".join(
        f"{each} {parts.get(each, 0.0) / total:.0%}{_differs(lists.get(each, ''))}" for each in shown
    )


def _differs(passes: str) -> str:
    """Say what a list has more, and less, than that of -O3."""
    if not passes:
        return ""
    lists = (text.removesuffix(")").partition("(")[2] for text in (passes, pipeline(USUAL)))
    own, usual = (Counter(text.split(",")) for text in lists)
    said = [f"+{each}" for each in own - usual] + [f"-{each}" for each in usual - own]
    return f": `{' '.join(said[:_SHOWN])}{'...' if len(said) > _SHOWN else ''}`"
