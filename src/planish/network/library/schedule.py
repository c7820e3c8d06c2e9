"""Compiled schedules of a network's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planish.core import Candidate, Target
from planish.levels.loops.backends import NEEDED, PREFERRED, backend_of, code_of, compile_with, tree_of
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.compile import compile_for
from planish.levels.loops.codegen.llvm.straight import compile_straight
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import BFLOAT16X2, Program
from planish.levels.loops.runtime.kernels import is_shared
from planish.network.fusion import FusedKernel
from planish.network.library.dispatch import BITS, PACKED_FEATURES

_AVX2 = ("avx2", "bmi", "bmi2", "f16c", "fma", "movbe")


_FEATURES: Mapping[str, Sequence[str]] = {
    **{f"x86-{isa}": sorted(needed) for isa, needed in NEEDED.items()},
    "aarch64": (),
    "x86-64": (),
    "x86-64-v3": _AVX2,
    "x86-64-v4": (*_AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""Features that the code of a back end, or for another processor, needs of the processor."""


@dataclass(frozen=True)
class Schedule:
    """A kernel's schedule, compiled.

    Args:
        program: what it computes.
        candidate: the schedule.
        tree: lowered.
        code: what it gave.
        cores: threads that share its loops.
        packs: code of the same tree for this machine, which packs constants.
        is_fixed: whether the tree has no other schedule.
    """

    program: Program
    candidate: Candidate
    tree: LoopTree
    code: MachineCode
    cores: int
    packs: MachineCode
    is_fixed: bool = False

    @property
    def scratch_bytes(self) -> int:
        """Return what a call needs of memory beside its operands."""
        return self.code.layout.shared_bytes + self.cores * self.code.layout.private_bytes

    @property
    def is_shared(self) -> bool:
        """Return whether it has a loop that threads share."""
        return self.cores > 1 and any(map(is_shared, self.code.entries))


def compile_schedule(kernel: FusedKernel, candidate: Candidate, target: Target) -> Schedule:
    """Compile a kernel's schedule, whose loops as many threads share as the target has cores."""
    if kernel.fixed_tree:
        return _compile_fixed(kernel.program, candidate, kernel.fixed_tree.tree, target)
    return _compile_tree(kernel.program, candidate, tree_of(kernel.program, candidate), target)


def schedule_for(schedule: Schedule, target: Target) -> Schedule:
    """Compile a schedule's tree for a target, for as many threads as before."""
    compiled = _compile_fixed if schedule.is_fixed else _compile_tree
    return replace(
        compiled(schedule.program, schedule.candidate, schedule.tree, target), cores=schedule.cores
    )


def _compile_fixed(program: Program, candidate: Candidate, tree: LoopTree, target: Target) -> Schedule:
    machine = jit.host_machine()
    if is_foreign(target):
        triple, cpu, features = (target.toolchain[name] for name in ("triple", "cpu", "features"))
        machine = jit.describe(triple, cpu, features)
    code = compile_straight(tree, machine)
    return Schedule(program, candidate, tree, code, target.cores, code, is_fixed=True)


def _compile_tree(program: Program, candidate: Candidate, tree: LoopTree, target: Target) -> Schedule:
    backend = backend_of(candidate) or target.toolchain["backend"]
    if backend == PREFERRED[-1] and not tree.ahead and not is_foreign(target):
        # It is linked, and not called here: to load it too would take LLVM twice the time.
        code = compile_for(tree, jit.host_machine())
    else:
        code = code_of(candidate, target, tree)
    packs = compile_with(PREFERRED[-1], tree) if tree.ahead and is_foreign(target) else code
    return Schedule(program, candidate, tree, code, target.cores, packs)


def is_foreign(target: Target) -> bool:
    """Return whether a target is another processor, by its name, and not this machine."""
    return "triple" in target.toolchain


def runs_here(target: Target) -> bool:
    """Return whether this machine runs the code for a target."""
    if not is_foreign(target):
        return True
    here = jit.host_machine()
    has = {feature.removeprefix("+") for feature in here.features.split(",") if feature.startswith("+")}
    same = target.toolchain["triple"].split("-")[0] == here.triple.split("-", maxsplit=1)[0]
    return same and has.issuperset(_FEATURES[target.processor])


def code_features(backend: str, target: Target) -> Sequence[str]:
    """Return what the code of a back end needs of the processor, of what can be asked for."""
    if is_foreign(target):
        return _FEATURES[target.processor]
    if backend in _FEATURES:
        return _FEATURES[backend]
    # LLVM uses whatever this processor has.
    has = jit.host_machine().features.split(",")
    # No number of its code is a bfloat16.
    return [feature for feature in BITS if f"+{feature}" in has and feature != PACKED_FEATURES[BFLOAT16X2]]
