"""Runs pass lists on one function and keeps what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from planish.llvm.backend import IRError, PassError
from planish.llvm.functions.attributes import for_size
from planish.llvm.passes import print_pipeline, vary
from planish.llvm.repeating import fingerprint, reproduces

if TYPE_CHECKING:
    from planish.isolation import Watchdog
    from planish.llvm.backend import Backend, Module

Passes = tuple[str, ...]


class _Rank(NamedTuple):
    """A list among others: the least of these is the best."""

    cost: int
    other: bool
    length: int
    passes: Passes


class Examiner:
    """Costs of pass lists on one function, prepared for size.

    Each list is run once; one whose code may vary from run to run is run again where it would be the best
    one, or the best beside -Oz, and has failed where other code came of it.

    Args:
        backend: runs them.
        ir: the function, as a module of its own.
        objective: "instructions" or "text_bytes".
        baseline: -Oz as clang means it, on functions that are `minsize optsize`, as all of them are here.
        watchdog: keeps from what ended LLVM before.

    Raises:
        IRError: the IR cannot be read.
    """

    def __init__(
        self, backend: Backend, ir: str, objective: str, baseline: Passes, watchdog: Watchdog
    ) -> None:
        self.baseline = baseline
        self._watchdog = watchdog
        self._sized = objective == "text_bytes"
        self._module = backend.parse(for_size(ir))
        self._costs: dict[Passes, int | None] = {}
        self._sizes: dict[bytes, int] = {}
        self._best: _Rank | None = None
        self._other: int | None = None
        self.unoptimised = self.cost(())

    @property
    def evaluations(self) -> int:
        """How many lists were run."""
        return len(self._costs)

    @property
    def improved(self) -> bool:
        """Whether a list is better than -Oz."""
        return self._best is not None and self._best.other

    def cost(self, passes: Sequence[str]) -> int | None:
        """Give what the function costs after these passes; None where they fail or break it."""
        key = tuple(passes)
        if key not in self._costs:
            cost = self._costs[key] = self._run(key)
            if cost is not None and key:
                self._rank(key, cost)
        return self._costs[key]

    def best(self) -> tuple[int, Passes] | None:
        """Give the least cost, and the shortest of its lists: -Oz where it is as good; None if all failed."""
        return self._best and (self._best.cost, self._best.passes)

    def other(self) -> int | None:
        """Give the least cost of the lists that are not -Oz itself; None if all failed."""
        return self._other

    def _rank(self, passes: Passes, cost: int) -> None:
        if self._leads(passes, cost):
            self._best = _Rank(cost, passes != self.baseline, len(passes), passes)
        if self._leads_others(passes, cost):
            self._other = cost

    def _leads(self, passes: Passes, cost: int) -> bool:
        """Whether a list would be the best one; of equals the first is."""
        # -Oz wins a tie, for it needs no list of its own; then the shorter list.
        return self._best is None or (cost, passes != self.baseline, len(passes)) < self._best[:3]

    def _leads_others(self, passes: Passes, cost: int) -> bool:
        return passes != self.baseline and (self._other is None or cost < self._other)

    def trace(self) -> list[int | None]:
        """List the costs of all lists, in the order in which they were run."""
        return list(self._costs.values())

    def close(self) -> None:
        """Free the function."""
        self._module.close()

    def _run(self, passes: Passes) -> int | None:
        pipeline = print_pipeline(passes)
        if not self._watchdog.enter(pipeline):
            return None
        module = self._module.clone()
        try:
            module.run(pipeline)
            if module.verify():
                return None
            cost = self._bytes(module) if self._sized else module.instructions()
            return cost if self._holds(module, passes, cost) else None
        except (PassError, IRError):  # refused, or no code can be made of what it leaves
            return None
        finally:
            module.close()

    def _bytes(self, module: Module) -> int:
        """Compile what no list has made yet: four of five end in a text that is known."""
        text = fingerprint(module)
        if text not in self._sizes:
            self._sizes[text] = module.text_bytes()
        return self._sizes[text]

    def _holds(self, module: Module, passes: Passes, cost: int) -> bool:
        """Whether a cost can be relied on, as far as it matters."""
        matters = vary(passes) and (self._leads(passes, cost) or self._leads_others(passes, cost))
        return not matters or reproduces(self._module, module, print_pipeline(passes))
