"""The level `loops`: tensor computations, whose candidates are loop schedules."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import (
    NO_ANALYSIS,
    Candidate,
    Level,
    Objective,
    ProgramError,
    Space,
    Step,
    Target,
    TargetError,
    Task,
    processor,
    unknown,
    usable_cores,
)
from planish.core.step import steps_from_text
from planish.levels.loops.backends import available_backends, is_gpu, this_machine

if TYPE_CHECKING:
    from planish.levels.loops.context import Peak
    from planish.levels.loops.evaluator import LoopsEvaluator
    from planish.levels.loops.gpu.evaluator import GpuEvaluatorSpec
    from planish.levels.loops.lang.program import Program as TensorProgram
    from planish.sandbox.confinement import SandboxPolicy

OPTIONS = ("size", "shape", "dtype", "constant", "backend")


@dataclass(frozen=True)
class LoopsEvaluatorSpec:
    """Makes an evaluator in a worker; see `planish.levels.loops.evaluator.LoopsEvaluator`.

    Args:
        program: whose schedules are evaluated.
        target: where.
        final: for candidates that are about to be kept.
    """

    program: TensorProgram
    target: Target
    final: bool = False

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined."""
        from planish.sandbox.confinement import SandboxPolicy

        return SandboxPolicy.for_code()

    def __call__(self) -> LoopsEvaluator:
        from planish.levels.loops.evaluator import LoopsEvaluator

        return LoopsEvaluator(self.program, self.target, final=self.final)


class LoopsLevel(Level["TensorProgram"]):
    """Tensor computations in Einstein notation; a candidate is a loop schedule, measured by its run time."""

    name = "loops"
    version = "18"
    objectives: Mapping[str, Objective] = {
        "time_s": Objective("time_s", "s"),
        "gflops": Objective("gflops", "GFLOPS", "up"),
    }
    spaces = ("template", "steps", "marked-steps")
    searchers = ("genetic", "annealing", "random")

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class; those of schedules, the library, and the choice of back end."""
        from planish.levels.loops.backends import Library, UseBackend
        from planish.levels.loops.gpu.steps import GPU_STEPS
        from planish.levels.loops.space.cursor import STEPS

        return {**STEPS, **GPU_STEPS, "Library": Library, "UseBackend": UseBackend}

    def accepts(self, source: str) -> bool:
        """Return whether it is a program's text, or a file named `*.loops`."""
        text = "[" in source and "=" in source
        return source.endswith(".loops") or (text and not os.path.exists(source))  # noqa: PTH110 (of any length)

    def load(self, source: str, options: Mapping[str, str]) -> TensorProgram:
        """Read a program.

        Args:
            source: the notation's text, a canonical text, or the path of a `.loops` file with either.
            options: `size` ("m=192,n=192"), `shape` ("I=1,64,56,56"), `dtype`, `constant` ("W", inputs
                that may be packed once, ahead of time), and `backend`, the code generator that the
                target is to use.

        Raises:
            ProgramError: the text is malformed; a size is missing, or given beside a canonical text.
            PlanishError: an option is unknown.
        """
        from planish.levels.loops.lang.parse import (
            is_canonical,
            parse,
            parse_canonical,
            read_shapes,
            read_sizes,
        )

        for name in options:
            if name not in OPTIONS:
                raise unknown("level 'loops' has no option", name, OPTIONS)
        text, backend = _text(source), options.get("backend", "")
        if is_canonical(text):
            _refuse_beside_canonical(options)
            return replace(parse_canonical(text), backend=backend)
        sizes, shapes = read_sizes(options.get("size", "")), read_shapes(options.get("shape", ""))
        program = parse(text, sizes, shapes, options.get("dtype") or "float32")
        constants = filter(None, options.get("constant", "").split(","))
        return replace(program.with_constants(constants), backend=backend)

    def read(self, text: str, target: Target) -> TensorProgram:
        """Read a canonical text; raises ProgramError where it is none."""
        from planish.levels.loops.lang.parse import parse_canonical

        return replace(parse_canonical(text), backend=target.toolchain.get("backend", ""))

    def target(self, program: TensorProgram, cores: int) -> Target:
        """Describe this machine, or a device; raises TargetError where it lacks what is asked of it."""
        from planish.levels.loops.lang.program import PACKED, QINT8, TF32

        dtypes = {kind.dtype for _, kind in program.types}
        if is_gpu(program.backend):
            from planish.levels.loops.gpu.evaluator import gpu_target

            if found := sorted(dtypes.intersection((QINT8, *PACKED))):
                what = f"element type '{found[0]}' is for CPUs"
                raise TargetError(what, "Use bfloat16, or int8 with int32.")
            return gpu_target(program.backend, cores)
        if TF32 in dtypes:
            what = f"element type '{TF32}' is for the tensor cores of GPUs"
            raise TargetError(what, "Choose the target cuda:sm_80, or use float32.")
        from planish.levels.loops.backends import multiplied_types
        from planish.levels.loops.codegen.kernel import refuse_packed

        target = this_machine(cores, program.backend)
        if not program.packed <= multiplied_types(target.toolchain["backend"]):
            refuse_packed(program.packed)
        return target

    def cross_target(self, name: str) -> Target:
        """Describe another processor by name, such as "aarch64"; raises PlanishError where it is unknown."""
        from planish.levels.loops.backends import cross_target

        return cross_target(name)

    def runs_user_code(self, task: Task[TensorProgram]) -> bool:
        """Return whether candidates may do anything: never, a kernel only computes."""
        del task
        return False

    def space(self, task: Task[TensorProgram], name: str) -> Space:
        """Make a space.

        "template" is AutoTVM's, by knobs; "steps" is LoopTune's, by a cursor; "marked-steps" has the back
        end's decisions among the cursor's actions.
        """
        from planish.levels.loops.backends import vector_builds, with_machine
        from planish.levels.loops.space.cursor import AnnotationSpace, CursorSpace
        from planish.levels.loops.space.template import TemplateSpace

        program, target = task.program, task.target
        if _on_gpu(task):
            from planish.levels.loops.gpu.space import GpuSpace

            if name != self.spaces[0]:
                raise unknown("a GPU has no space", name, self.spaces[:1])
            return GpuSpace(program, target)
        target, peak = with_machine(target), _peak_of(target)
        if name == "template":
            builds = {} if program.packed else vector_builds(target)
            return TemplateSpace(program, target, builds, peak)
        if name == "steps":
            return CursorSpace(program, target=target, peak=peak)
        if name == "marked-steps":
            return AnnotationSpace(program, target, peak)
        raise unknown("level 'loops' has no space", name, self.spaces)

    def evaluator(
        self, task: Task[TensorProgram], *, final: bool = False
    ) -> LoopsEvaluatorSpec | GpuEvaluatorSpec:
        """Make the spec for the task's evaluator."""
        if _on_gpu(task):
            from planish.levels.loops.gpu.evaluator import GpuEvaluatorSpec, require_device

            require_device(task.target)
            return GpuEvaluatorSpec(task.program, task.target, final)
        return LoopsEvaluatorSpec(task.program, task.target, final)

    def baseline(self, task: Task[TensorProgram]) -> Candidate:
        """Return the NumPy implementation; on a GPU the untuned kernel."""
        if _on_gpu(task):
            return Candidate()
        from planish.levels.loops.backends import Library

        return Candidate((Library("numpy"),))

    def variants(self, task: Task[TensorProgram], candidate: Candidate) -> Sequence[Candidate]:
        """Return the schedule as built by our other back ends, which may make better code of it.

        LLVM chooses instructions and registers for itself. Vectors of 256 bits pass through memory faster on
        some processors that have those of 512.
        """
        from planish.levels.loops.backends import (
            PREFERRED,
            UseBackend,
            backend_named,
            backend_of,
            library_of,
            multiplied_types,
            schedule_steps,
        )

        own = task.target.toolchain.get("backend", "")
        if library_of(candidate) or own not in PREFERRED:
            return ()
        schedule = schedule_steps(candidate)
        packed = task.program.packed
        others = [b for b in PREFERRED[PREFERRED.index(own) + 1 :] if packed <= multiplied_types(b)]
        builds = {own: schedule} | {name: schedule.then(UseBackend(name)) for name in others}
        chosen = backend_of(candidate) or own
        return tuple([b for name, b in builds.items() if name != chosen and backend_named(name).works()])

    def describe(
        self, task: Task[TensorProgram], candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        """Show a schedule as loop tree, pseudo-code, what the back end makes of it here, and steps."""
        del analysis
        if _on_gpu(task):
            from planish.levels.loops.gpu.export import describe_gpu

            return describe_gpu(task.program, candidate, task.target)
        from planish.levels.loops.backends import annotated_of, library_of, schedule_of, tree_of
        from planish.levels.loops.ir.annotated import annotated_text
        from planish.levels.loops.ir.tree import pseudocode
        from planish.levels.loops.lower.lowering import loop_tree_text

        library = library_of(candidate)
        if library:
            return {"library": f"computed by {library}"}
        program = task.program
        tree = tree_of(program, candidate)
        annotated = annotated_of(candidate, task.target, tree)
        return {
            "loop tree": loop_tree_text(schedule_of(program, candidate)),
            "pseudo-code": pseudocode(tree),
            **({"annotated tree": annotated_text(annotated)} if annotated else {}),
            "steps": "\n".join(map(str, candidate.steps)) or "(unchanged)",
        }

    def least_seconds(self, task: Task[TensorProgram]) -> float | None:
        """Return the seconds at the roofline; None on a GPU."""
        from planish.levels.loops.roofline import least_seconds

        return None if _on_gpu(task) else least_seconds(task.program, task.target.cores)

    def text_format(self, task: Task[TensorProgram]) -> str:
        """Return a schedule as text."""
        del task
        return "The steps of a schedule, one a line, as Split(axis='m', factor=16): see `steps`."

    def candidate_of_text(self, task: Task[TensorProgram], text: str) -> Candidate:
        """Read a schedule from the text of its steps; raises ProgramError where it is none."""
        del task
        return Candidate(steps_from_text(text, self.steps))

    def exportable(self, candidate: Candidate) -> bool:
        """Return whether it is a kernel, and not NumPy's call."""
        from planish.levels.loops.backends import library_of

        return library_of(candidate) is None

    def export(self, task: Task[TensorProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write a kernel in assembly with a C header, and the schedule as JSON; for the task's target.

        Of a GPU: the kernels' source, and a host program that launches them.
        """
        if _on_gpu(task):
            from planish.levels.loops.gpu.export import export_gpu

            return export_gpu(task, candidate, path)
        from planish.levels.loops.export import export_kernel

        return export_kernel(task, candidate, path)

    def export_as(
        self, task: Task[TensorProgram], candidate: Candidate, path: Path, name: str
    ) -> Sequence[Path]:
        """Write a kernel as `export` does; the C function and the files have this name."""
        from planish.levels.loops.export import export_kernel

        return export_kernel(task, candidate, path, name)

    def function(self, task: Task[TensorProgram], candidate: Candidate) -> Callable[..., Any]:
        """Make what is called with row-major arrays, in the order in which the program names its inputs."""
        if _on_gpu(task):
            from planish.levels.loops.gpu.export import gpu_function

            return gpu_function(task.program, candidate, task.target)
        from planish.levels.loops.export import function_of

        return function_of(task.program, candidate, task.target)

    def usual_task(self) -> Task[TensorProgram]:
        """Return a matrix product on one core."""
        program = self.load("C[m,n] += A[m,k] * B[k,n]", {"size": "m=64,n=64,k=64"})
        return Task(program, self.target(program, 1), (self.objectives["time_s"],), self.version)

    def machine(self) -> Mapping[str, str]:
        """Return the level's facts about this machine, by name."""
        from planish.levels.loops.gpu.evaluator import gpu_facts
        from planish.levels.loops.roofline import measured_peak
        from planish.sandbox.confinement import sandbox_status

        backends = available_backends()
        return {
            "processor": processor(),
            "cores": str(usable_cores()),
            "back ends": ", ".join(backends),
            "peak, one core": f"{measured_peak(backends[0]):.0f} GFLOPS float32, measured",
            **gpu_facts(),
            "candidates are confined by": sandbox_status(),
        }


def _peak_of(target: Target) -> Peak:
    """Return what measures the peak of a target, where that is this machine."""
    from planish.levels.loops.context import unknown_peak

    def measured() -> int:
        from planish.levels.loops.roofline import machine_peak

        return machine_peak(target.toolchain["backend"])

    return measured if target.processor == processor() else unknown_peak


def _on_gpu(task: Task[TensorProgram]) -> bool:
    return is_gpu(task.target.toolchain.get("backend", ""))


def _refuse_beside_canonical(options: Mapping[str, str]) -> None:
    """Refuse what a canonical text already says: it would be without effect."""
    given = [f"{name}=" for name in OPTIONS if name != "backend" and options.get(name)]
    if given:
        what = f"the text has its own sizes, types and constants, and {', '.join(given)} would change none"
        raise ProgramError(what, "Leave that out, or give the statements alone, before the first ' | '.")


def _text(source: str) -> str:
    if not source.endswith(".loops"):
        return source
    try:
        return Path(source).read_text()
    except OSError as error:
        raise ProgramError(f"cannot read '{source}': {error.strerror}", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise ProgramError(f"'{source}' is not a text: {error.reason}", "Write programs in UTF-8.") from error
