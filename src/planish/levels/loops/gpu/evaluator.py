"""Evaluator of GPU schedules: compilation, verification and timing on a device, in a worker process.

Candidates are verified as kernels of processors are (`planish.levels.loops.evaluator`): poisoned outputs and
temporaries, margins around each buffer, inputs that must be unchanged. They are timed by the device's own
events, so that neither copies between host and device nor launches count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import Candidate, Failed, Outcome, PlanishError, StageClock, Target
from planish.levels.loops.evaluator import LoopsEvaluator
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.opencl import OpenClProgram, OpenClRun
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import OPENCL, kernel_source
from planish.measure import Clocks

if TYPE_CHECKING:
    from planish.levels.loops.gpu.kernels import GpuProgram
    from planish.levels.loops.lang.program import Program
    from planish.sandbox.confinement import SandboxPolicy


@dataclass(frozen=True)
class GpuEvaluatorSpec:
    """Makes an evaluator in a worker.

    Args:
        program: whose schedules are evaluated.
        target: a device.
        final: for candidates that are about to be kept.
    """

    program: Program
    target: Target
    final: bool = False

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined: a driver may start compilers and uses the device's files."""
        from planish.sandbox.confinement import SandboxPolicy

        return SandboxPolicy(("/",), card=not Gpu.of(self.target).processor)

    def __call__(self) -> GpuEvaluator:
        return GpuEvaluator(self.program, self.target, final=self.final)


class GpuEvaluator(LoopsEvaluator):
    """Builds, verifies and times candidates on a device.

    Args:
        program: whose schedules are evaluated.
        target: a device.
        final: for candidates that are about to be kept.
    """

    def __init__(self, program: Program, target: Target, *, final: bool = False) -> None:
        # The device's time, in which neither the host's nor its processor time is.
        super().__init__(program, target, final=final, clocks=Clocks(self._device_ns, lambda: 0))
        self._gpu = Gpu.of(target)
        self._runs: OpenClRun | None = None
        self._outcomes: dict[str, Outcome] = {}
        if not self._gpu.processor:
            self._roofline = None

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Compile, verify, then time a candidate; equal kernels have the same outcome in a search."""
        with clock("transform"):
            kernels = gpu_program_of(self._program, candidate, self._gpu.flat_group)
            source = kernel_source(kernels, OPENCL)
        if self._remember and source in self._outcomes:
            return self._outcomes[source]
        with clock("build"):
            compiled = compiled_for(self._program, kernels, source, self._target)
            self._runs = compiled.bind(self._verifier.inputs, self._verifier.outputs)
        try:
            outcome = self._measured(self._runs, clock)
        except PlanishError:
            if not self._runs.damaged:
                raise
            outcome = Failed("verify", "wrong answer", self._runs.damaged)
        self._outcomes[source] = outcome
        return outcome

    def _device_ns(self) -> int:
        return self._runs.device_ns if self._runs else 0


def compiled_for(program: Program, kernels: GpuProgram, source: str, target: Target) -> OpenClProgram:
    """Compile kernels for a target; raises TargetError where it cannot execute them."""
    name = target.toolchain["backend"].partition(":")[2]
    return OpenClProgram(program, kernels, source, name, target.cores)
