"""Runs pass lists on one function and keeps what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planish.llvm.backend import IRError, PassError
from planish.llvm.functions.attributes import for_size
from planish.llvm.passes import print_pipeline

if TYPE_CHECKING:
    from planish.corpus.labelling.ward import Ward
    from planish.llvm.backend import Backend

Passes = tuple[str, ...]


class Examiner:
    """Costs of pass lists on one function, prepared for size; each list is run once.

    Args:
        backend: runs them.
        ir: the function, as a module of its own.
        objective: "instructions" or "text_bytes".
        baseline: -Oz as clang means it, on functions that are `minsize optsize`, as all of them are here.
        ward: keeps from what ended LLVM before.

    Raises:
        IRError: the IR cannot be read.
    """

    def __init__(self, backend: Backend, ir: str, objective: str, baseline: Passes, ward: Ward) -> None:
        self.baseline = baseline
        self._ward = ward
        self._sized = objective == "text_bytes"
        self._module = backend.parse(for_size(ir))
        self._costs: dict[Passes, int | None] = {}
        self.unoptimised = self.cost(())

    @property
    def evaluations(self) -> int:
        """How many lists were run."""
        return len(self._costs)

    def cost(self, passes: Sequence[str]) -> int | None:
        """Give what the function costs after these passes; None where they fail or break it."""
        key = tuple(passes)
        if key not in self._costs:
            self._costs[key] = self._run(print_pipeline(key))
        return self._costs[key]

    def best(self) -> tuple[int, Passes] | None:
        """Give the least cost, and the shortest of its lists: -Oz where it is as good; None if all failed."""
        known = [(cost, passes) for passes, cost in self._costs.items() if cost is not None and passes]
        return min(known, key=lambda pair: (pair[0], pair[1] != self.baseline, len(pair[1])), default=None)

    def other(self) -> int | None:
        """Give the least cost of the lists that are not -Oz itself; None if all failed."""
        costs = (
            c for passes, c in self._costs.items() if c is not None and passes not in ((), self.baseline)
        )
        return min(costs, default=None)

    def trace(self) -> list[int | None]:
        """List the costs of all lists, in the order in which they were run."""
        return list(self._costs.values())

    def close(self) -> None:
        """Free the function."""
        self._module.close()

    def _run(self, pipeline: str) -> int | None:
        if not self._ward.enter(pipeline):
            return None
        module = self._module.clone()
        try:
            module.run(pipeline)
            if module.verify():
                return None
            return module.text_bytes() if self._sized else module.instructions()
        except (PassError, IRError):  # refused, or no code can be made of what it leaves
            return None
        finally:
            module.close()
