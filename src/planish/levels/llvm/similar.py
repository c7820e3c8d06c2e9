"""Lists that were good for similar modules in the user's store, with which a search of pass lists begins.

Modules are compared by how often they have each opcode: this takes microseconds, and what is similar so has
mostly the same idioms of the same source.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from planish.core import Candidate, Tried
from planish.levels.llvm.passes.pipeline import Pass

_OPCODE = re.compile(
    r"^ *(?:%\S+ = )?(?!(?:target|source_filename|define|declare|attributes)\b)"
    r"(?:(?:must|no)?tail )?([a-z]+)",
    re.MULTILINE,
)
"""Of an instruction, also where the text is normalized, which has no indentation."""
_CLOSE = 8
"""Power of the cosine between modules: what is similar by 0.95 counts two thirds."""
LEAST = 0.95
"""Similarity below which a module recommends nothing: its lists save less than those of the policy."""
RECOMMENDED = 6
"""Lists that are recommended at most."""


def opcode_profile(ir: str) -> Mapping[str, float]:
    """Describe a module by its opcodes: opcode to log(1 + count), as a vector of length 1."""
    counts = Counter(_OPCODE.findall(ir))
    length = math.sqrt(sum(math.log1p(count) ** 2 for count in counts.values())) or 1.0
    return {opcode: math.log1p(count) / length for opcode, count in counts.items()}


def similarity(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine between two profiles."""
    return sum(value * other.get(opcode, 0.0) for opcode, value in one.items())


def recommended(ir: str, winners: Tried, most: int = RECOMMENDED) -> list[Candidate]:
    """List what was good for similar modules, the best first.

    A list counts by what it gained on each module, weighted by how similar that is.

    Args:
        ir: the module.
        winners: finalists of runs for other modules, with their cost over the baseline's.
        most: how many lists at most.
    """
    own, votes = opcode_profile(ir), defaultdict[Candidate, float](float)
    for text, outcomes in winners.items():
        close = similarity(own, opcode_profile(text))
        if close < LEAST:
            continue
        for candidate, ratio in outcomes:
            # Of the space of passes: others have lists for functions by their names.
            if ratio is not None and 0 < ratio < 1 and all(isinstance(s, Pass) for s in candidate.steps):
                votes[candidate] -= close**_CLOSE * math.log(ratio)
    # Stable: of equals what the newest run found comes first.
    return sorted(votes, key=lambda each: -votes[each])[:most]
