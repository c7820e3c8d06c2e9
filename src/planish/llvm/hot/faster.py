"""What comes of making a program faster."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import Ratio, Verdict
from planish.llvm.hot.making import HotBuild
from planish.llvm.modules.module_result import ModuleRecipe


@dataclass(frozen=True)
class Share:
    """A function in which a program spends time.

    Args:
        name: as the module calls it; empty: code that is not of the module.
        share: of the samples.
        tried: lists that were run on it; 0: it is not hot enough, or there was no time.
        passes: the pipeline that it has of its own; empty: that of -O3.
    """

    name: str
    share: float
    tried: int = 0
    passes: str = ""


@dataclass(frozen=True)
class HotProgress:
    """How far a search has come.

    Args:
        seconds: since its beginning.
        tried: lists that were measured.
        ratio: of the best time to that of -O3, as far as is known.
    """

    seconds: float
    tried: int
    ratio: float


@dataclass(frozen=True)
class Faster:
    """A program made faster, or left as -O3 makes it.

    Args:
        made: its object, and the module that it is made of.
        recipe: how it is made of the unoptimised module.
        baseline_s: what a run takes by -O3.
        ratio: time over -O3's, measured in turns in fresh processes; None: nothing was found to compare.
        verdict: what that says; only what is `better` is kept.
        functions: where the time goes with -O3, most first.
        samples: how many were taken.
        tried: lists that were measured.
        seconds: that it took.
    """

    made: HotBuild
    recipe: ModuleRecipe
    baseline_s: float
    ratio: Ratio | None
    verdict: Verdict
    functions: tuple[Share, ...]
    samples: int
    tried: int
    seconds: float

    @property
    def verdict_word(self) -> str:
        """The verdict in the words of times."""
        return {"better": "faster", "worse": "slower"}.get(self.verdict, self.verdict)
