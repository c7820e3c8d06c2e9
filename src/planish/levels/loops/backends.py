"""Back ends: the protocol by which the level uses them, ours, and those that this machine has.

A back end makes what runs of a loop tree. All are entry points of the group `planish.loops.backends`, ours
like those of other packages: each a `Backend`, or a class that makes one without arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from planish.core import (
    Cache,
    Machine,
    Target,
    TargetError,
    caches,
    processor,
    registry,
    unknown,
    usable_cores,
)
from planish.core.cores import cpu_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planish.levels.loops.codegen.kernel import MachineCode
    from planish.levels.loops.codegen.x86.isa import IsaName
    from planish.levels.loops.ir.tree import LoopTree
    from planish.levels.loops.lang.program import Program
    from planish.levels.loops.runtime.kernels import Kernel

Arrays = Mapping[str, "NDArray[Any]"]

# Protocols

GROUP = "planish.loops.backends"
PREFERRED = ("x86-avx512", "x86-avx2", "portable")
"""Where none is asked for, the first of these that works is taken: LoopNest for x86-64 by instruction set,
and LLVM for any processor. Others must be asked for by name."""


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
        """Compute the outputs from what the inputs hold now, so many times in turn.

        It returns when all is done and the outputs are in their arrays: its caller times it.
        """
        ...


class Executable(Protocol):
    """A compiled program."""

    @property
    def program(self) -> Program:
        """Return what it computes."""
        ...

    def allocate(self) -> object:
        """Make the kernel's own memory: temporaries, and what is packed ahead of time.

        Raises:
            TargetError: there is not so much.
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
            f"{cores} cores asked for, this process may use {usable_cores()}",
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
    machine = made.machine if made.machine.caches else replace(made.machine, caches=caches())
    return Target(processor(), frozenset({chosen}), cores, toolchain, machine)


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
    # VL for shorter registers where lanes are summed, DQ for the logic of floating-point numbers (VANDPS).
    "avx512": frozenset({"avx512f", "avx512vl", "avx512dq", "fma"}),
    "avx2": frozenset({"avx2", "fma"}),
}
"""Instruction set to the features of a processor that its code needs."""


def supported_isas() -> list[IsaName]:
    """List the instruction sets of x86-64 that we have code for and this processor has, the best first."""
    return [name for name, needed in NEEDED.items() if needed <= cpu_features()]


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
