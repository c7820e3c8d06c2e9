"""Kinds of loops and spaces of memory: others than ours can be added, and ours refuse them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from loops.trees import integers, matmul
from planish.core import TargetError
from planish.loops.backends import available_backends
from planish.loops.build import compile_with
from planish.loops.ir.tree import KINDS, Loop, LoopKind, LoopTree, add_kind
from planish.testing.interpreter import TreeFault, interpret

BACKENDS = available_backends()


@pytest.fixture
def block() -> Iterator[LoopKind]:
    yield add_kind(LoopKind("block", concurrent=True))
    del KINDS["block"]


def of_kind(tree: LoopTree, kind: str) -> LoopTree:
    return replace(tree, body=tuple(replace(n, kind=kind) if isinstance(n, Loop) else n for n in tree.body))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of loop 'sideways'"):
        Loop("i", 1, (), "sideways")


def test_a_kind_has_one_meaning(block: LoopKind) -> None:
    assert add_kind(block) is block
    with pytest.raises(ValueError, match="another kind of loop 'block'"):
        add_kind(LoopKind("block"))


@pytest.mark.usefixtures("block")
def test_the_interpreter_knows_what_runs_at_the_same_time() -> None:
    right = of_kind(matmul(4, 4, 4, ("m", "n", "k")), "block")
    interpret(right, integers(right))
    wrong = of_kind(matmul(4, 4, 4, ("k", "m", "n")), "block")
    with pytest.raises(TreeFault, match="share"):
        interpret(wrong, integers(wrong))


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("backend", BACKENDS)
def test_our_back_ends_refuse_what_is_for_another_machine(backend: str) -> None:
    tree = matmul(4, 4, 4, ("m", "n", "k"))
    shared = tuple(replace(b, space="shared") for b in tree.buffers)
    for other, word in ((of_kind(tree, "block"), "block"), (replace(tree, buffers=shared), "shared")):
        with pytest.raises(TargetError, match=word):
            compile_with(backend, other)
