"""Where buffers live: what is decided, what the code asks memory for, and what the interpreter refuses."""

from dataclasses import replace

import pytest

from levels.loops.trees import integers
from planish.core import Candidate, Step
from planish.levels.loops.backends import tree_of
from planish.levels.loops.codegen.kernel import layout
from planish.levels.loops.codegen.llvm.compile import compile_tree
from planish.levels.loops.ir.annotated import MEMORY, REGISTERS, STACK, AnnotatedTree, Vectors, annotated_text
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.regalloc import annotate
from planish.levels.loops.steps import Parallel, Reorder
from planish.levels.loops.testing.annotated_interpreter import emulate
from planish.levels.loops.testing.interpreter import TreeFault

WIDE = Vectors(16, 32, True)
RELU = parse("O[m,n] += A[m,k] * B[k,n]; R[m,n] = relu(O[m,n])", {"m": 4, "n": 40, "k": 9})
# Each row of E is too long for the registers, and is read twice.
SOFT = parse("E[m,n] = exp(A[m,n]); S[m] += E[m,n]; R[m,n] = E[m,n] / S[m]", {"m": 3, "n": 700})


def both(tree: LoopTree) -> list[AnnotatedTree]:
    return [annotate(tree, WIDE), annotate(tree, WIDE._replace(compiled=True))]


def lowered(program: Program, *steps: Step) -> LoopTree:
    return tree_of(program, Candidate(steps))


def test_what_registers_hold_for_all_its_life_takes_no_memory() -> None:
    tree = lowered(RELU, Reorder(("m", "k", "n")))
    for annotated in both(tree):
        assert annotated.spaces["O"] == REGISTERS
        assert layout(annotated).offsets == {}
        assert annotated_text(annotated).splitlines()[1] == "O: 40 of float32 in registers"
    assert compile_tree(tree).layout.offsets == {}


def test_what_lives_inside_a_parallel_iteration_is_on_each_thread_s_stack() -> None:
    for annotated in both(lowered(SOFT)):
        assert annotated.spaces["E"] == MEMORY
    for annotated in both(lowered(SOFT, Parallel("m"))):
        assert annotated.spaces["E"] == STACK


@pytest.mark.parametrize("space", [REGISTERS, MEMORY])
def test_a_wrong_space_is_a_fault_of_the_tree(space: str) -> None:
    """Registers are not looked for in memory, and threads do not write to one place."""
    for annotated in both(lowered(SOFT, Parallel("m"))):
        arrays = integers(annotated.tree)
        emulate(annotated, arrays)
        wrong = replace(annotated, spaces={**annotated.spaces, "E": space})
        with pytest.raises(TreeFault, match=r"registers|share E"):
            emulate(wrong, arrays)
