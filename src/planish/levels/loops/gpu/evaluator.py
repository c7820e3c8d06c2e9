"""Evaluator of GPU schedules: compilation, verification and timing on a device, in a worker process.

Candidates are verified as kernels of processors are (`planish.levels.loops.evaluator`): poisoned outputs and
temporaries, margins around each buffer, inputs that must be unchanged. They are timed by the device's own
events, so that neither copies between host and device nor launches count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import (
    Candidate,
    Failed,
    Outcome,
    PlanishError,
    ScheduleError,
    StageClock,
    Target,
    TargetError,
)
from planish.levels.loops.backends import library_of
from planish.levels.loops.evaluator import LoopsEvaluator
from planish.levels.loops.gpu.cuda import compile_cuda, cubin_cache, cubin_path, cuda_target
from planish.levels.loops.gpu.cuda_driver import CudaDevice, gpu_architecture
from planish.levels.loops.gpu.devices import Gpu, kind_and_name
from planish.levels.loops.gpu.dialect import DIALECTS
from planish.levels.loops.gpu.kernels import GpuProgram, require_fit
from planish.levels.loops.gpu.libraries import LibraryRun
from planish.levels.loops.gpu.opencl import OpenClDevice, device_titles, is_installed, opencl_target
from planish.levels.loops.gpu.running import CompiledKernels, KernelRun
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.tensor import NARROW
from planish.levels.loops.lang.program import TF32
from planish.levels.loops.roofline import DeviceRoofline
from planish.measure import Clocks

if TYPE_CHECKING:
    from planish.levels.loops.lang.program import Program
    from planish.sandbox.confinement import SandboxPolicy


KEPT = 8
"""Compiled candidates that are kept."""


@dataclass(frozen=True)
class GpuEvaluatorSpec:
    """Makes an evaluator in a worker.

    Args:
        program: whose schedules are evaluated.
        target: a device.
        final: for candidates that are about to be kept.
        folder: where kernels may be that were compiled before.
    """

    program: Program
    target: Target
    final: bool = False
    folder: Path | None = None

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined: a driver may start compilers and uses the device's files."""
        from planish.sandbox.confinement import SandboxPolicy

        writes = (str(cubin_cache().folder),) if kind_and_name(self.target)[0] == "cuda" else ()
        return SandboxPolicy(("/",), writes, gpu=not Gpu.of(self.target).processor)

    def __call__(self) -> GpuEvaluator:
        return GpuEvaluator(self.program, self.target, final=self.final, folder=self.folder)


class GpuEvaluator(LoopsEvaluator):
    """Builds, verifies and times candidates on a device.

    Args:
        program: whose schedules are evaluated.
        target: a device.
        final: for candidates that are about to be kept.
        folder: where kernels may be that were compiled before.
    """

    def __init__(
        self, program: Program, target: Target, *, final: bool = False, folder: Path | None = None
    ) -> None:
        # The device's time, in which neither the host's nor its processor time is.
        super().__init__(program, target, final=final, clocks=Clocks(self._device_ns, lambda: 0))
        self._gpu, self._folder = Gpu.of(target), folder
        self._runs: KernelRun | LibraryRun | None = None
        self._outcomes: dict[str, Outcome] = {}
        self._made: dict[str, CompiledKernels] = {}
        if not self._gpu.processor:
            self._roofline = _roofline(program, self._gpu)

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Compile, verify, then time a candidate; equal kernels have the same outcome in a search."""
        if library := library_of(candidate):
            with clock("build"):
                self._release()
                verifier = self._verifier
                called = LibraryRun(library, self._program, verifier.inputs, verifier.outputs)
                self._runs = called
            return self._measured(called, clock)
        with clock("transform"):
            kernels = gpu_program_of(self._program, candidate, self._gpu.flat_block_size)
            source = source_for(kernels, self._target)
        if self._remember and source in self._outcomes:
            return self._outcomes[source]
        with clock("build"):
            self._release()
            compiled = self._compiled(kernels, source, spills=not candidate.steps)
            runs = compiled.bind(self._verifier.inputs, self._verifier.outputs)
            self._runs = runs
        try:
            outcome = self._measured(runs, clock)
        except PlanishError:
            if not runs.damaged:
                raise
            outcome = Failed("verify", "wrong answer", runs.damaged)
        self._outcomes[source] = outcome
        return outcome

    def _compiled(self, kernels: GpuProgram, source: str, *, spills: bool) -> CompiledKernels:
        """Compile kernels; the finalists, which are measured again and again, once."""
        if source not in self._made:
            if len(self._made) >= KEPT:
                self.close()
            compiled = compiled_for(self._program, kernels, source, self._target, self._folder, spills=spills)
            self._made[source] = compiled
        return self._made[source]

    def _release(self) -> None:
        """Free the memory of the candidate before."""
        if self._runs:
            self._runs.close()
        self._runs = None

    def close(self) -> None:
        """Unload all kernels that were compiled."""
        for compiled in self._made.values():
            compiled.close()
        self._made.clear()

    def _device_ns(self) -> int:
        return self._runs.device_ns if self._runs else 0


def _roofline(program: Program, gpu: Gpu) -> DeviceRoofline | None:
    """Return the least time of a program by a GPU's peaks; None where they are not known."""
    if not gpu.bandwidth:
        return None
    # The tensor cores compute products of TF32 at half their rate in float16, or less.
    types = {kind.dtype for _, kind in program.types}
    peak = gpu.tensor_gflops if types & {*NARROW} else gpu.gflops
    return DeviceRoofline(program, peak / (2 if TF32 in types else 1), gpu.bandwidth)


# Devices


def source_for(kernels: GpuProgram, target: Target) -> str:
    """Write kernels in the language of a target."""
    return kernel_source(kernels, DIALECTS[kind_and_name(target)[0]])


def compiled_for(
    program: Program,
    kernels: GpuProgram,
    source: str,
    target: Target,
    folder: Path | None = None,
    *,
    spills: bool = True,
) -> CompiledKernels:
    """Compile kernels for a target, or load what was compiled before.

    Args:
        program: what they compute.
        kernels: to compile.
        source: of the kernels.
        target: that executes them.
        folder: where they may be that were compiled before.
        spills: whether kernels of CUDA may spill registers, which makes them slow: no launch is worth it.

    Raises:
        TargetError: the target cannot execute them.
        ScheduleError: they spill registers, and must not.
    """
    kind, name = kind_and_name(target)
    gpu = Gpu.of(target)
    require_fit(kernels, gpu.block_size, gpu.shared, emulated=kind == "opencl")
    if kind == "opencl":
        return CompiledKernels(program, kernels, OpenClDevice(source, name, target.cores))
    path = cubin_path(folder, source) if folder else None
    if path and path.is_file():
        return CompiledKernels(program, kernels, CudaDevice(path.read_bytes()))
    compiled = compile_cuda(source, name)
    if compiled.spills and not spills:
        raise ScheduleError(
            f"a thread spills {compiled.spills} bytes of registers", "Use smaller tiles or fewer threads."
        )
    return CompiledKernels(program, kernels, CudaDevice(compiled.cubin))


def has_device(target: Target) -> bool:
    """Return whether this machine has a GPU of a target; OpenCL devices were found when it was described."""
    try:
        require_device(target)
    except TargetError:
        return False
    return True


def require_device(target: Target) -> None:
    """Raise TargetError where this machine has no GPU of a target."""
    kind, name = kind_and_name(target)
    if kind != "cuda":
        return
    batch = f"planish batch PROGRAM --target cuda:{name} -o DIR"
    hint = f"Compile kernels here: {batch}; execute them where the GPU is: planish measure DIR."
    try:
        found = gpu_architecture()
    except TargetError as error:
        raise TargetError(error.message, hint) from error
    if found != name.removesuffix("a"):
        raise TargetError(f"the GPU of this machine is {found}, not {name}", hint)


def gpu_target(backend: str, cores: int) -> Target:
    """Describe a device.

    Args:
        backend: as the target is named.
        cores: of the processor, where the device is one.

    Raises:
        TargetError: there is no such device, or what is needed to use it is not installed.
    """
    kind, _, name = backend.partition(":")
    if kind == "opencl":
        return opencl_target(name, cores)
    if kind == "cuda":
        return cuda_target(name)
    raise TargetError(f"there is no target '{backend}'", "Use opencl, opencl:NAME or cuda:ARCH.")


def gpu_facts() -> Mapping[str, str]:
    """Return what is known of this machine's devices: name to fact; empty where nothing is installed."""
    titles = device_titles() if is_installed() else []
    return {"OpenCL devices": ", ".join(titles)} if titles else {}
