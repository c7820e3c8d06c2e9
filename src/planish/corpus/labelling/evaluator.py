"""Runs pass lists on one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planish.core import Candidate, Failed, Measured, Outcome, StageClock
from planish.corpus.labelling.ranking import Passes
from planish.llvm.backend import Backend, IRError, Module, PassError
from planish.llvm.evaluator import fingerprint, reproduces
from planish.llvm.ir.attributes import for_size
from planish.llvm.passes import passes_of, print_pipeline, vary
from planish.sandbox import Watchdog

REFUSED, BY_LLVM, NO_CODE = "refused", "refused by LLVM", "no code is made of it"
INVALID, VARIES = "invalid IR", "not reproducible"
OWN = frozenset({REFUSED, BY_LLVM, NO_CODE, INVALID, VARIES})
"""What a pass list can be to blame for; any other failure is the machine's, or ours."""
Values = Mapping[str, float]


class FunctionEvaluator:
    """Evaluates pass lists on one function, prepared for size, in the process where it is made.

    A list whose code may vary from run to run is run again where it matters, and has failed where other code
    came of it.

    Args:
        backend: runs them.
        ir: the function, as a module of its own.
        objectives: what is counted: "instructions", "text_bytes" or both.
        matters: whether it matters what a list costs, such as where it would be the best one.
        watchdog: keeps from what ended LLVM before.

    Attributes:
        module: the function, prepared for size; it stays as it is.

    Raises:
        IRError: the IR cannot be read.
    """

    def __init__(
        self,
        backend: Backend,
        ir: str,
        objectives: Sequence[str],
        matters: Callable[[Passes, Values], bool],
        watchdog: Watchdog,
    ) -> None:
        self._objectives, self._matters, self._watchdog = objectives, matters, watchdog
        self.module = backend.parse(for_size(ir))
        self._sizes: dict[bytes, int] = {}

    def close(self) -> None:
        """Free the function."""
        self.module.close()

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Run the passes on a clone, verify it, and count."""
        del clock  # nobody asks how long a stage took: nearly all of it is LLVM's
        passes = passes_of(candidate)
        pipeline = print_pipeline(passes)
        if not self._watchdog.enter(pipeline):
            return Failed("transform", REFUSED, "it has ended LLVM's process")
        module = self.module.clone()
        try:
            return self._transformed(module, passes, pipeline)
        except PassError as error:
            return Failed("transform", BY_LLVM, error.message)
        except IRError as error:
            return Failed("build", NO_CODE, error.message)
        finally:
            module.close()

    def _transformed(self, module: Module, passes: Passes, pipeline: str) -> Outcome:
        module.run(pipeline)
        if wrong := module.verify():
            return Failed("verify", INVALID, wrong)
        values = {name: float(self._count(module, name)) for name in self._objectives}
        doubtful = vary(passes) and self._matters(passes, values)
        if doubtful and not reproduces(self.module, module, pipeline):
            return Failed("verify", VARIES, f"{pipeline} gives other code from run to run")
        return Measured(values)

    def _count(self, module: Module, objective: str) -> int:
        if objective == "instructions":
            return module.instructions()
        # Compile what no list has made yet: four of five end in a text that is known.
        text = fingerprint(module)
        if text not in self._sizes:
            self._sizes[text] = module.text_bytes()
        return self._sizes[text]
