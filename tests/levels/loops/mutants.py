"""Kernels that are wrong at one point: loop trees, changed as a mistake of a code generator would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopTree, Node, Ref, Value, leaves, refs
from planish.levels.loops.lang.program import Const

_OTHER = {"max": "min", "min": "max", "add": "sub", "sub": "add", "mul": "add", "relu": "neg", "abs": "neg"}


def mutants(tree: LoopTree) -> Iterator[tuple[str, LoopTree]]:
    """List wrong trees, each with the kind of its mistake; some may compute the same after all."""
    for position, leaf in enumerate(leaves(tree.body)):
        for kind, wrong in _wrong_leaves(leaf):
            yield kind, replace(tree, body=_with(tree.body, position, wrong))
    for axis, n in tree.sizes:
        if n > 1:
            sizes = tuple((a, m - (a == axis)) for a, m in tree.sizes)
            yield "last iteration skipped", replace(tree, sizes=sizes)


def some_mutants(tree: LoopTree, count: int, seed: int) -> list[tuple[str, LoopTree]]:
    """Draw some of them, of as many kinds as there are."""
    generator, by_kind = np.random.default_rng(seed), dict[str, list[tuple[str, LoopTree]]]()
    for kind, wrong in mutants(tree):
        by_kind.setdefault(kind, []).append((kind, wrong))
    found: list[tuple[str, LoopTree]] = []
    while len(found) < count and by_kind:
        kind = sorted(by_kind)[int(generator.integers(len(by_kind)))]
        found.append(by_kind[kind].pop(int(generator.integers(len(by_kind[kind])))))
        by_kind = {k: v for k, v in by_kind.items() if v}
    return found


def _with(nodes: tuple[Node, ...], position: int, wrong: tuple[Leaf, ...]) -> tuple[Node, ...]:
    """Replace a leaf by others, counted in order of execution."""
    result: list[Node] = []
    for node in nodes:
        inside = 1 if isinstance(node, Leaf) else len(list(leaves((node,))))
        if 0 <= position < inside:
            result += wrong if isinstance(node, Leaf) else (_inside(node, position, wrong),)
        else:
            result.append(node)
        position -= inside
    return tuple(result)


def _inside(loop: Loop, position: int, wrong: tuple[Leaf, ...]) -> Loop:
    return Loop(loop.axis, loop.step, _with(loop.body, position, wrong), loop.kind)


def _wrong_leaves(leaf: Leaf) -> Iterator[tuple[str, tuple[Leaf, ...]]]:
    for ref in dict.fromkeys(refs(leaf.value)):
        for kind, wrong in _wrong_refs(ref):
            yield kind, (replace(leaf, value=_swap(leaf.value, ref, wrong)),)
    for kind, value in _wrong_values(leaf.value):
        yield kind, (replace(leaf, value=value),)
    if leaf.reduce is not None:
        yield "iterations repeated", (leaf, leaf)
        yield "other reduction", (replace(leaf, reduce="min" if leaf.reduce == "max" else "max"),)
    elif isinstance(leaf.value, Const):
        value = 1.0 if leaf.value.value == 0 else 0.0 if not np.isfinite(leaf.value.value) else 2.0
        yield "starts elsewhere", (replace(leaf, value=Const(value)),)


def _wrong_refs(ref: Ref) -> Iterator[tuple[str, Ref]]:
    for position, (loop, stride) in enumerate(ref.strides):
        rest = (*ref.strides[:position], *ref.strides[position + 1 :])
        yield "reads the same again", replace(ref, strides=rest)
        yield "reads the neighbor", replace(ref, offset=ref.offset + stride)
        for other, away in ref.strides[position + 1 :]:
            swapped = {**dict(ref.strides), loop: away, other: stride}
            yield "strides exchanged", replace(ref, strides=tuple(swapped.items()))
    if ref.offset:
        yield "reads the neighbor", replace(ref, offset=ref.offset - 1)


def _wrong_values(value: Value) -> Iterator[tuple[str, Value]]:
    """Change one function or one constant."""
    if isinstance(value, Const):
        yield "other constant", Const(value.value * 1.5 if value.value else 1.0)
    if not isinstance(value, Call):
        return
    if value.function in _OTHER:
        yield "other function", Call(_OTHER[value.function], value.args)
    if len(value.args) == 1:
        yield "function left out", value.args[0]
    for position, arg in enumerate(value.args):
        for kind, wrong in _wrong_values(arg):
            yield kind, Call(value.function, (*value.args[:position], wrong, *value.args[position + 1 :]))


def _swap(value: Value, old: Ref, new: Ref) -> Value:
    if value == old:
        return new
    if isinstance(value, Call):
        return Call(value.function, tuple(_swap(arg, old, new) for arg in value.args))
    return value
