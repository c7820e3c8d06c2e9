"""Back ends: the protocol by which the level uses them, ours, and the kernels that they make of candidates.

A back end makes what runs of a loop tree. All are entry points of the group `planish.loops.backends`, ours
like those of other packages: each a `Backend`, or a class that makes one without arguments. A candidate may
name one (`UseBackend`), or a library in place of a kernel (`Library`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from planish.core import (
    Cache,
    Candidate,
    Machine,
    ProgramError,
    Step,
    Target,
    TargetError,
    caches,
    did_you_mean,
    processor,
    registry,
    unknown,
    usable_cores,
)
from planish.core.task import cpu_features
from planish.levels.loops.ir.schedule import Schedule
from planish.levels.loops.lang.program import BFLOAT16X2, QUADS, Program
from planish.levels.loops.space.cursor import resolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planish.levels.loops.codegen.kernel import MachineCode
    from planish.levels.loops.codegen.x86.isa import IsaName
    from planish.levels.loops.ir.annotated import AnnotatedTree
    from planish.levels.loops.ir.tree import LoopTree
    from planish.levels.loops.runtime.kernels import Kernel

Arrays = Mapping[str, "NDArray[Any]"]

# Protocols

GROUP = "planish.loops.backends"
PREFERRED = ("x86-avx512", "x86-avx2", "portable")
"""Back ends of which the first one that works is the default: LoopNest for x86-64 by instruction set, and
LLVM for any processor. Others must be asked for by name."""
GPU_KINDS = ("opencl", "cuda")


def is_gpu(backend: str) -> bool:
    """Return whether a target's back end makes kernels of blocks and threads."""
    return backend.partition(":")[0] in GPU_KINDS


class BoundKernel(Protocol):
    """A kernel with its arrays."""

    def prepare(self) -> None:
        """Pack the constant inputs as they are now."""
        ...

    def poison(self, byte: int = 0xFF) -> None:
        """Fill the kernel's own memory with a byte, on which no result may depend, and prepare.

        Verification fills it with several in turn; by default with NaN.
        """
        ...

    def repeat(self, times: int) -> object:
        """Compute the outputs from what the inputs hold now, a number of times in turn.

        It returns when all is done and the outputs are in their arrays: its caller times it.
        """
        ...


class Executable(Protocol):
    """A compiled program."""

    @property
    def program(self) -> Program:
        """Return the program that it computes."""
        ...

    def allocate(self) -> object:
        """Make the kernel's own memory: temporaries, and what is packed ahead of time.

        Raises:
            TargetError: there is not enough memory.
        """
        ...

    def bind(self, inputs: Arrays, outputs: Arrays) -> BoundKernel:
        """Attach it to arrays, with memory of its own, and prepare it.

        Args:
            inputs: tensor to NumPy array, of the program's shapes and types, C-contiguous.
            outputs: likewise, writeable; they share no memory with each other or with inputs.

        Raises:
            ProgramError: an array is missing, unknown, or not as it must be.
            TargetError: there is no memory for the buffers.
        """
        ...


class Backend(Protocol):
    """Makes kernels of loop trees."""

    @property
    def machine(self) -> Machine:
        """The registers that it uses, from which the default schedule is made; its caches may be left out."""
        ...

    @property
    def packages(self) -> Sequence[str]:
        """The distributions whose versions may change the code: they are part of a target's toolchain."""
        ...

    def works(self) -> bool:
        """Return whether this machine runs what it makes."""
        ...

    def compile(self, program: Program, tree: LoopTree, cores: int) -> Executable:
        """Make a kernel.

        Args:
            program: what the tree computes.
            tree: from `planish.levels.loops.lower`; it is followed strictly.
            cores: how many threads may run a parallel loop.

        Raises:
            TargetError: it cannot be made of this tree.
        """
        ...


@cache
def backend_names() -> tuple[str, ...]:
    """List all back ends, the preferred first; none is imported."""
    found = registry.names(GROUP)
    preferred = [name for name in PREFERRED if name in found]
    return tuple(preferred + [name for name in found if name not in PREFERRED])


@cache
def backend_named(name: str) -> Backend:
    """Load a back end.

    Raises:
        PlanishError: there is none of this name, or another package's cannot be used.
    """
    if name not in backend_names():
        raise unknown("level 'loops' has no back end", name, backend_names())
    found: Any = registry.load(GROUP, name)
    with registry.attributed(GROUP, name):
        return found() if isinstance(found, type) else found


# This machine


@cache
def available_backends() -> tuple[str, ...]:
    """List the back ends that work on this machine, the preferred first, without those that are broken."""
    works, _ = registry.each_usable(GROUP, _works)
    return tuple([name for name in backend_names() if works.get(name)])


def _works(name: str) -> bool:
    made = backend_named(name)
    with registry.attributed(GROUP, name):
        return made.works()


def preferred_backend() -> str:
    """Return the name of the back end that is taken where none is asked for; no other package's is imported.

    Raises:
        TargetError: planish's own back ends are not found.
    """
    for name in PREFERRED:
        if name in backend_names() and backend_named(name).works():
            return name
    raise TargetError(
        "planish's own back ends for loops are not found",
        "Its entry points are older than its code: install planish again.",
    )


def this_machine(cores: int, backend: str = "") -> Target:
    """Describe this machine.

    Args:
        cores: how many a kernel may use.
        backend: the code generator; empty for the preferred one.

    Raises:
        PlanishError: there is no such back end.
        TargetError: the machine has fewer cores, or lacks the back end.
    """
    if not 1 <= cores <= usable_cores():
        raise TargetError(
            f"{cores} cores requested, this process may use {usable_cores()}",
            f"Use cores={usable_cores()} at most.",
        )
    chosen = backend or preferred_backend()
    if chosen not in backend_names():
        raise unknown("level 'loops' has no back end", chosen, backend_names())
    if not _works(chosen):
        raise TargetError(
            f"back end '{chosen}' does not work on this machine",
            f"It has: {', '.join(available_backends())}.",
        )
    made = backend_named(chosen)
    toolchain = {"backend": chosen} | {name: version(name) for name in made.packages}
    return Target(processor(), frozenset({chosen}), cores, toolchain, _machine_of(chosen))


def _machine_of(backend: str) -> Machine:
    """Return this machine's registers, as a back end uses them, and caches."""
    known = backend_named(backend).machine
    return known if known.caches else replace(known, caches=caches())


def with_machine(target: Target) -> Target:
    """Return a stored target with what its processor has, where that is this machine's; else as it is.

    Otherwise, the features of stored trials would differ from those of the same candidates in a search.
    """
    backend = target.toolchain.get("backend", "")
    if target.machine or target.processor != processor() or backend not in backend_names():
        return target
    return replace(target, machine=_machine_of(backend))


# Other processors

_LINUX = "unknown-linux-gnu"
_CROSS: Mapping[str, tuple[str, str, str, Machine]] = {
    "aarch64": (f"aarch64-{_LINUX}", "generic", "", Machine(16, 32, (Cache(1, 64 << 10), Cache(2, 1 << 20)))),
    "x86-64": (f"x86_64-{_LINUX}", "x86-64", "", Machine(16, 16)),
    "x86-64-v3": (f"x86_64-{_LINUX}", "x86-64-v3", "+avx2,+fma,+f16c", Machine(32, 16)),
    "x86-64-v4": (f"x86_64-{_LINUX}", "x86-64-v4", "+avx512f,+avx512vl,+avx512dq,+avx512bw", Machine(64, 32)),
}
"""Name to LLVM's triple, processor and features, and to registers that all processors of the name have."""


def cross_target(name: str, cores: int = 1) -> Target:
    """Describe another processor, for which the portable back end writes assembly; nothing of it runs here.

    Args:
        name: "aarch64" (with vectors of 128 bits, NEON), or a level of x86-64: "x86-64", "x86-64-v3" (AVX2),
            "x86-64-v4" (AVX-512).
        cores: how many a kernel may use.

    Raises:
        PlanishError: the name is unknown.
    """
    if name not in _CROSS:
        raise unknown("level 'loops' has no target", name, _CROSS)
    triple, cpu, features, machine = _CROSS[name]
    toolchain = {"backend": PREFERRED[-1], "triple": triple, "cpu": cpu, "features": features}
    return Target(name, frozenset(), cores, toolchain | {"llvmlite": version("llvmlite")}, machine)


@dataclass(frozen=True)
class HostBackend:
    """A back end by its code generator; see `planish.levels.loops.backends.Backend`.

    Args:
        machine: the registers that it uses.
        packages: the distributions whose versions may change the code.
        generate: makes code of a tree.
        works: whether this machine runs it.
    """

    machine: Machine
    packages: tuple[str, ...]
    generate: Callable[[LoopTree], MachineCode]
    works: Callable[[], bool]

    def compile(self, program: Program, tree: LoopTree, cores: int = 1) -> Kernel:
        """Generate code, and make it a kernel."""
        from planish.levels.loops.runtime.kernels import Kernel  # NumPy takes long to import

        return Kernel(program, tree, self.generate(tree), cores)


NEEDED: dict[IsaName, frozenset[str]] = {
    # VL for shorter registers where lanes are summed, DQ for the logic of floating-point numbers (VANDPS), BW
    # and F16C for elements narrower than the arithmetic. Only virtual machines hide some of them.
    "avx512": frozenset({"avx512f", "avx512vl", "avx512dq", "avx512bw", "fma"}),
    "avx2": frozenset({"avx2", "f16c", "fma"}),
}
"""Instruction set to the features of a processor that its code needs."""


def supported_isas() -> list[IsaName]:
    """List the instruction sets of x86-64 that we have code for and this processor has, the best first."""
    return [name for name, needed in NEEDED.items() if needed <= cpu_features()]


def multiplied_types(backend: str) -> frozenset[str]:
    """Return the types of elements of several numbers whose products a back end computes, here."""
    if backend == PREFERRED[-1]:
        return frozenset({BFLOAT16X2})
    needed = {"x86-avx512": "avx512_vnni", "x86-avx2": "avx_vnni"}
    found = QUADS if needed.get(backend) in cpu_features() else ()
    pairs = backend == "x86-avx512" and "avx512_bf16" in cpu_features()
    return frozenset((*found, BFLOAT16X2) if pairs else found)


def _x86(name: IsaName, machine: Machine) -> HostBackend:
    def generate(tree: LoopTree) -> MachineCode:
        from planish.levels.loops.codegen.x86.compile import compile_tree

        return compile_tree(tree, name)

    def works() -> bool:
        return name in supported_isas()

    return HostBackend(machine, ("llvmlite", "iced-x86"), generate, works)


def _portable(tree: LoopTree) -> MachineCode:
    from planish.levels.loops.codegen.llvm.compile import compile_tree

    return compile_tree(tree)


# The entry points of pyproject.toml name these.
AVX512 = _x86("avx512", Machine(64, 32))
AVX2 = _x86("avx2", Machine(32, 16))
# Registers as every processor of today has them: to ask LLVM for more takes long.
PORTABLE = HostBackend(Machine(32, 16), ("llvmlite",), _portable, lambda: True)


# Steps that are not part of a schedule


@dataclass(frozen=True)
class Library(Step):
    """Step that has a library compute the program; the baseline.

    Args:
        name: "numpy"; on a GPU one of `planish.levels.loops.gpu.libraries.LIBRARIES`.
    """

    name: str = "numpy"


@dataclass(frozen=True)
class UseBackend(Step):
    """Step that selects the code generator; without it, that is the target's own.

    Args:
        name: one of `planish.levels.loops.backends.backend_names()`.

    Raises:
        ProgramError: the name is unknown.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in backend_names():
            raise ProgramError(f"unknown back end '{self.name}'", did_you_mean(self.name, backend_names()))


def library_of(candidate: Candidate) -> str | None:
    """Return the name of the library that computes a candidate; None if it is a schedule."""
    return next((s.name for s in candidate.steps if isinstance(s, Library)), None)


def backend_of(candidate: Candidate) -> str | None:
    """Return the name of the back end that a candidate requests; None where it leaves that to the target."""
    return next((s.name for s in candidate.steps if isinstance(s, UseBackend)), None)


def vector_builds(target: Target) -> Mapping[str, Step]:
    """Return the back ends with shorter vectors than those of the target's own, name to step.

    Some processors that have vectors of 512 bits pass what flows through memory faster in those of 256.
    """
    wide = target.toolchain.get("backend") == "x86-avx512"
    return {"x86-avx2": UseBackend("x86-avx2")} if wide and backend_named("x86-avx2").works() else {}


def schedule_steps(candidate: Candidate) -> Candidate:
    """Return the candidate without its choice of back end."""
    return Candidate(tuple(s for s in candidate.steps if not isinstance(s, UseBackend)))


# Building


def schedule_of(program: Program, candidate: Candidate) -> Schedule:
    """Replay a candidate's steps.

    Raises:
        ScheduleError: a step is illegal.
    """
    return resolve(program, schedule_steps(candidate))


def tree_of(program: Program, candidate: Candidate) -> LoopTree:
    """Replay a candidate's steps and lower the schedule."""
    from planish.levels.loops.lower.lowering import lower  # a process that only searches lowers nothing

    return lower(schedule_of(program, candidate))


def compile_with(backend: str, tree: LoopTree) -> MachineCode:
    """Generate code for a processor with one of our back ends.

    Raises:
        PlanishError: there is no such back end.
        TargetError: it cannot make code of the tree, or none that others can run.
    """
    found = backend_named(backend)
    if not isinstance(found, HostBackend):
        raise TargetError(f"back end '{backend}' makes no code for this processor", f"Use {PREFERRED[-1]}.")
    return found.generate(tree)


def code_of(candidate: Candidate, target: Target, tree: LoopTree) -> MachineCode:
    """Generate code of a candidate.

    Args:
        candidate: its back end is the target's, unless a `UseBackend` step names one.
        target: this machine, or another from `planish.levels.loops.backends.cross_target`. Code for another
            has the layout, the entries without addresses, and the assembly.
        tree: the candidate's, from `tree_of`.

    Raises:
        TargetError: the back end cannot make code of it.
    """
    if "triple" not in target.toolchain:
        return compile_with(backend_of(candidate) or target.toolchain["backend"], tree)
    from planish.levels.loops.codegen.llvm.compile import compile_for
    from planish.levels.loops.codegen.llvm.jit import describe

    triple, cpu, features = (target.toolchain[name] for name in ("triple", "cpu", "features"))
    return compile_for(tree, describe(triple, cpu, features))


def annotated_of(candidate: Candidate, target: Target, tree: LoopTree) -> AnnotatedTree | None:
    """Return the decisions that a candidate's back end carries out; None where it does not work here."""
    backend = backend_of(candidate) or target.toolchain.get("backend", "")
    found = backend_named(backend) if backend in backend_names() else None
    if not (isinstance(found, HostBackend) and found.works()):
        return None
    with suppress(TargetError):
        return found.generate(tree).annotated
    return None


def executable_of(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Executable:
    """Compile a candidate.

    Args:
        program: what is computed.
        candidate: its back end is the target's, unless a `UseBackend` step names one.
        target: the machine.
        tree: the candidate's, from `tree_of`.

    Raises:
        TargetError: the back end cannot make code of it.
    """
    backend = backend_of(candidate) or target.toolchain["backend"]
    return backend_named(backend).compile(program, tree, target.cores)


def kernel_of(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Kernel:
    """Compile a candidate with one of our back ends; see `executable_of`."""
    from planish.levels.loops.runtime.kernels import Kernel

    return Kernel(program, tree, code_of(candidate, target, tree), cores=target.cores)
