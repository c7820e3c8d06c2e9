"""Gains of kinds of edits on other modules, by which a search orders the patches that it begins with.

A table that comes with planish has what kinds of patches gained on generated modules
(`experiments/first_answers/edit_gains.py`); finalists of the user's own runs are further rows. The gain of a
kind of patch is predicted by kernel regression: rows count by how similar their modules and kinds of edits
are.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from statistics import fmean
from typing import Any

from planish.core import Candidate, Step, Tried
from planish.core.own_tables import read_table

Kinds = tuple[str, ...]
"""Kinds of the edits of a patch, each once, sorted."""

_OPERATION = re.compile(r"\bstablehlo\.(\w+)")
_CLOSE = 30
"""Power of the cosine between modules: what is similar by 0.95 counts a fifth."""
_ALIKE = 6
"""Power of the share of kinds that two patches have in common."""
PRIOR = 0.5
"""Rows that are added: their gain falls along the structure's order, and is that of all rows in the mean."""
DECAY = 0.8
"""Expected gain of each further patch of the same kinds, as a share of the one before it.

These constants were chosen by leaving out networks of the table, alone and by families
(`experiments/first_answers/edit_gains.py judge`)."""


@dataclass(frozen=True)
class GainRow:
    """Gain of patches of some kinds on one module.

    Args:
        module: operations of the module, as `module_profile` describes them.
        kinds: of the patches' edits.
        gain: the mean of their gains: the logarithm of the speed-up where the error stays within bounds, less
            the more it grows; 0 where they gain nothing, or fail.
    """

    module: Mapping[str, float]
    kinds: Kinds
    gain: float


def kinds_of(candidate: Candidate) -> Kinds:
    """Return the kinds of a patch's edits; tiles in a loop are a kind of their own."""
    return tuple(sorted({_kind(step) for step in candidate.steps}))


def _kind(step: Step) -> str:
    name = type(step).__name__
    return f"{name} in a loop" if getattr(step, "loop", False) is True else name


@lru_cache(maxsize=256)
def module_profile(text: str) -> Mapping[str, float]:
    """Describe a module by its operations: name to log(1 + count), as a vector of length 1."""
    counts = Counter(_OPERATION.findall(text))
    length = math.sqrt(sum(math.log1p(count) ** 2 for count in counts.values())) or 1.0
    return {name: round(math.log1p(count) / length, 4) for name, count in sorted(counts.items())}


def shipped_table() -> Mapping[str, Any]:
    """Read the table that comes with planish: `modules`, and `judged`, how good the order by it is."""
    return json.loads((files("planish.levels.hlo") / "edit_gains.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def shipped_gains() -> Sequence[GainRow]:
    """Return the rows of the table that comes with planish."""
    return gain_rows(shipped_table()["modules"])


def gain_rows(modules: Iterable[Mapping[str, Any]]) -> list[GainRow]:
    """Return the rows of a table's modules."""
    return [
        GainRow(module["operations"], tuple(kinds), gain)
        for module in modules
        for kinds, gain in module["gains"]
    ]


OWN_GAINS = "hlo-gains"
"""Name of the user's own table."""


def own_gains(version: str) -> list[GainRow]:
    """Return the rows of the user's own table, which `planish learn` keeps; none where there is no table."""
    table = read_table(OWN_GAINS, version)
    return gain_rows(table[0]) if table else []


def gains_of_runs(winners: Tried) -> list[GainRow]:
    """Make rows of the finalists of the user's own runs: of each module the best of each kinds."""
    found = list[GainRow]()
    for text, outcomes in winners.items():
        best = dict[Kinds, float]()
        for candidate, ratio in outcomes:
            if ratio is not None and 0 < ratio < 1:
                kinds = kinds_of(candidate)
                best[kinds] = max(best.get(kinds, 0.0), -math.log(ratio))
        found += [GainRow(module_profile(text), kinds, gain) for kinds, gain in best.items()]
    return found


def known_gain(text: str, kinds: Kinds, rows: Iterable[GainRow]) -> tuple[float, float]:
    """Return the gains of patches of some kinds on modules like one, and for how many rows that counts.

    Args:
        text: the module.
        kinds: of the patches' edits.
        rows: what such patches gained on other modules.
    """
    profile, wanted = module_profile(text), set(kinds)
    total = weight = 0.0
    for row in rows:
        shared = len(wanted.intersection(row.kinds)) / len(wanted.union(row.kinds))
        if shared:
            close = sum(value * row.module.get(name, 0.0) for name, value in profile.items())
            share = close**_CLOSE * shared**_ALIKE
            total, weight = total + share * row.gain, weight + share
    return (total / weight if weight else 0.0), weight


def by_expected_gain(text: str, patches: Sequence[Candidate], rows: Sequence[GainRow]) -> list[Candidate]:
    """Order patches by the gain that is expected of them, the best first.

    Where nothing is known of similar modules, the order of the structure stands. Of patches of the same
    kinds, each further one is expected to gain less, so that kinds alternate.

    Args:
        text: the module.
        patches: what its structure suggests, the most promising first.
        rows: what patches gained on other modules.
    """
    usual = fmean(row.gain for row in rows) if rows else 0.0
    known, seen, worth = dict[Kinds, tuple[float, float]](), Counter[Kinds](), list[float]()
    for index, patch in enumerate(patches):
        kinds = kinds_of(patch)
        if kinds not in known:
            known[kinds] = known_gain(text, kinds, rows)
        gain, weight = known[kinds]
        suggested = 2 * usual * (1 - index / len(patches))
        worth.append((weight * gain * DECAY ** seen[kinds] + PRIOR * suggested) / (weight + PRIOR))
        seen[kinds] += 1
    # Stable: of equals the structure's own order holds.
    return [patches[index] for index in sorted(range(len(patches)), key=lambda index: -worth[index])]
