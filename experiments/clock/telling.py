"""A program made faster, as a line of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from planish.core import PlanishError, Ratio
from planish.levels.llvm.hot import RuntimeResult, optimize_runtime
from planish.levels.llvm.hot.versions import USUAL, pipeline
from planish.levels.llvm.level import LlvmLevel

HEAD = (
    "| program | -O3, ms | times faster | 95 % interval | verdict | lists | hot functions, and how |\n"
    "|---|--:|--:|---|---|--:|---|"
)
_SHOWN = 6


def tuned(name: str, source: Path, seconds: float, options: Mapping[str, str]) -> list[float]:
    """Make a program faster, print its line, and give how many times; nothing where that failed."""
    level = LlvmLevel()
    try:
        program = level.specialize(level.load(str(source), options), [level.objectives["time_s"]])
        found = optimize_runtime(program, seconds)
    except PlanishError as error:
        print(f"| {name} | | | | {error} | | |", flush=True)
        return []
    gain = found.ratio.gain(level.objectives["time_s"]) if found.ratio else Ratio(1.0, 1.0, 1.0)
    cells = (
        name,
        f"{found.baseline_s * 1e3:,.1f}",
        f"{gain.value:.3f}",
        f"{gain.low:.3f} to {gain.high:.3f}",
        found.verdict if found.ratio else "nothing found",
        str(found.tried),
        _functions(found),
    )
    print(f"| {' | '.join(cells)} |", flush=True)
    # What is not better is not kept: the program is then that of -O3.
    return [gain.value if found.verdict == "better" else 1.0]


def _functions(found: RuntimeResult) -> str:
    shown = [each for each in found.functions if each.passes] or found.functions[:2]
    said = (f"{each.name or 'elsewhere'} {each.share:.0%}{_differs(each.passes)}" for each in shown)
    return "; ".join(said)


def _differs(passes: str) -> str:
    """Say what a list has more, and less, than that of -O3."""
    if not passes:
        return ""
    lists = (text.removesuffix(")").partition("(")[2] for text in (passes, pipeline(USUAL)))
    own, usual = (Counter(text.split(",")) for text in lists)
    said = [f"+{each}" for each in own - usual] + [f"-{each}" for each in usual - own]
    return f": `{' '.join(said[:_SHOWN])}{'...' if len(said) > _SHOWN else ''}`"
