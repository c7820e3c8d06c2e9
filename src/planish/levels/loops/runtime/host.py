"""Our back ends: code for this processor, which runs in this process on NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import Machine
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program

if TYPE_CHECKING:
    from planish.levels.loops.codegen.x86.isa import IsaName
    from planish.levels.loops.runtime.kernels import Kernel


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


def _x86(name: IsaName, machine: Machine) -> HostBackend:
    def generate(tree: LoopTree) -> MachineCode:
        from planish.levels.loops.codegen.x86.compile import compile_tree

        return compile_tree(tree, name)

    def works() -> bool:
        from planish.levels.loops.codegen.x86.isa import supported_isas

        return name in supported_isas()

    return HostBackend(machine, ("llvmlite", "iced-x86"), generate, works)


def _portable(tree: LoopTree) -> MachineCode:
    from planish.levels.loops.codegen.llvm import compile_tree

    return compile_tree(tree)


# The entry points of pyproject.toml name these.
AVX512 = _x86("avx512", Machine(64, 32))
AVX2 = _x86("avx2", Machine(32, 16))
# Registers as every processor of today has them: to ask LLVM for more takes long.
PORTABLE = HostBackend(Machine(32, 16), ("llvmlite",), _portable, lambda: True)
