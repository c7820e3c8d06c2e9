"""One kernel that is wrong on purpose, as a case that can be written down."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from unittest.mock import patch

from fuzz.case import Written
from fuzz.mutations import annotated_mutations, tree_mutations
from planish.levels.loops.backends import compile_with, tree_of
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.ir.annotated import AnnotatedTree
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.parse import parse_canonical

NONE = "none"
"""No mistake: what is refused of this kind is a false alarm."""
_ANNOTATES = {
    "x86": "planish.levels.loops.codegen.x86.compile.annotate",
    "portable": "planish.levels.loops.codegen.llvm.compile.annotate",
}


@dataclass(frozen=True)
class Mutant(Written):
    """What is tried.

    Args:
        mistake: the kind of the mutation.
        number: which of that kind, in the order in which `Mutants` lists them.
    """

    mistake: str
    number: int


class Mutants:
    """All kernels that differ by one mistake from a right one.

    Args:
        one: any of them.

    Attributes:
        program: what they should compute.
        tree: of the right one.
        right: the right one.
        kinds: mistake to all that have it; that of `NONE` is the right one.

    Raises:
        PlanishError: there is no right one.
    """

    def __init__(self, one: Mutant) -> None:
        self.program = parse_canonical(one.program)
        self.tree = tree_of(self.program, one.candidate)
        self.right = compile_with(one.backend, self.tree)
        self.kinds: dict[str, list[LoopTree | AnnotatedTree]] = {NONE: [self.tree]}
        self._backend = one.backend
        decided = annotated_mutations(self.right.annotated) if self.right.annotated else ()
        for kind, wrong in chain(tree_mutations(self.tree), decided):
            self.kinds.setdefault(kind, []).append(wrong)

    def code(self, mistake: str, number: int) -> tuple[LoopTree, MachineCode]:
        """Compile one; raises whatever a code generator raises where a tree makes no sense."""
        wrong = self.kinds[mistake][number]
        if isinstance(wrong, LoopTree):
            return wrong, compile_with(self._backend, wrong)

        def instead(*_: object, **__: object) -> AnnotatedTree:
            return wrong

        with patch(_ANNOTATES[self._backend.partition("-")[0]], instead):
            return self.tree, compile_with(self._backend, self.tree)
